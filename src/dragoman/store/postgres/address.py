"""Where a database is, in a form that may be shown: the password of an address never is."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from dragoman.errors import StoreError
from dragoman.store.store_limits import StoreLimits

CONNECT_SECONDS = 5
# A network that is cut must be noticed by both sides within seconds, not within hours.
_DEFAULTS: dict[str, Any] = {
    "connect_timeout": CONNECT_SECONDS,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "tcp_user_timeout": 10_000,
    "application_name": "dragoman",
    "client_encoding": "UTF8",
}


class Address:
    """`shown` is for people, `conninfo` for the driver alone; `limits` apply to its connections.
    Raises StoreError."""

    def __init__(self, address: str, limits: StoreLimits | None = None) -> None:
        self.limits = limits or StoreLimits()
        try:
            given = conninfo_to_dict(address)
        except psycopg.Error:
            # What the driver says of it may quote the password.
            raise _not_understood() from None
        if _is_torn(given):
            raise _not_understood("; percent-encode the password")
        self.conninfo = make_conninfo("", **(_DEFAULTS | given))
        self.shown = _shown(given)

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"


def _not_understood(advice: str = "") -> StoreError:
    reason = "is not valid; expected postgresql://user@host:port/database"
    return StoreError("the address of the PostgreSQL store", reason + advice)


def _is_torn(given: dict[str, Any]) -> bool:
    """Whether a piece of the password may be where something else belongs: one with a `/` or an
    `@` in it ends too early."""
    others = (str(given.get(name) or "") for name in ("host", "hostaddr", "port", "dbname"))
    ports = str(given.get("port") or "").split(",")
    return any("@" in each for each in others) or any(
        each and not (each.isascii() and each.isdigit()) for each in ports
    )


def _shown(given: dict[str, Any]) -> str:
    user = f"{given['user']}@" if given.get("user") else ""
    host = str(given.get("host") or given.get("hostaddr") or "")
    where = "" if host.startswith("/") else host
    ports = str(given.get("port") or "").strip(",")
    port = f":{ports}" if ports and where else ""
    return f"postgresql://{user}{where}{port}/{given.get('dbname') or ''}"
