"""A role with only the rights on the database that docs/how-to/several-machines.md grants."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import psycopg

_DOCS = Path(__file__).parents[2] / "docs" / "how-to" / "several-machines.md"
_NAME = "dragoman_host"


@contextmanager
def least_role(address: str, *, connections: int = -1) -> Generator[str]:
    """The address for it; the tables must be there. It may have so many connections."""
    with psycopg.connect(address, autocommit=True) as owner:
        _drop(owner)
        for statement in _documented():
            owner.execute(statement.replace("CURRENT_DATABASE", owner.info.dbname).encode())
        owner.execute(f"ALTER ROLE {_NAME} CONNECTION LIMIT {connections}".encode())
        try:
            yield address.replace("//dragoman@", f"//{_NAME}@")
        finally:
            _drop(owner)


def _documented() -> list[str]:
    """The statements of the docs, word for word but for the names of the database and its owner."""
    [block] = re.findall(r"```sql\n(.*?)```", _DOCS.read_text(), re.DOTALL)
    text = block.replace("DATABASE dragoman", "DATABASE CURRENT_DATABASE")
    return [each.strip() for each in text.split(";") if each.strip()]


def _drop(owner: psycopg.Connection) -> None:
    row = owner.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (_NAME,)).fetchone()
    if row is not None:
        owner.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (_NAME,)
        )
        owner.execute(f"DROP OWNED BY {_NAME}".encode())
        owner.execute(f"DROP ROLE {_NAME}".encode())
