"""Where a server listens and whom it lets in: the options that `serve` and `bridge` share."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any

from dragoman.cli.exit_codes import UsageError

_REMOTE = (
    "--host {host}: whoever reaches that address and has the token can run commands as you, and "
    "nothing is encrypted on the way; --allow-remote serves there all the same"
)


def add_address_options(parser: argparse.ArgumentParser) -> Any:
    """The group, for options that only one of them has."""
    where = parser.add_argument_group("address")
    where.add_argument(
        "--host", metavar="ADDRESS", default="127.0.0.1", help="listen here (default: 127.0.0.1)"
    )
    where.add_argument(
        "--port", metavar="N", type=_port, default=0, help="and on this port (default: a free one)"
    )
    where.add_argument(
        "--allow-remote",
        action="store_true",
        help="listen on an address that other machines can reach",
    )
    where.add_argument(
        "--allow-origin",
        metavar="ORIGIN",
        type=_origin,
        action="append",
        default=[],
        help="let pages of this origin call the API, with the token; repeatable",
    )
    where.add_argument(
        "--token-file",
        metavar="PATH",
        help="keep the token in this file over restarts; made if it is not there",
    )
    return where


def check_address(options: argparse.Namespace) -> None:
    """Raises UsageError for an address that others reach, unless that is wanted."""
    hosts = import_module("dragoman.web.server.host_header")
    if not options.allow_remote and not hosts.is_loopback(options.host):
        raise UsageError(_REMOTE.format(host=options.host))


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to 65535, not {text}")
    return int(text)


def _origin(text: str) -> str:
    """Exactly as browsers send it: a scheme, a host, a port if it is not the scheme's own."""
    from urllib.parse import urlsplit

    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or text != f"{parts.scheme}://{parts.netloc}":
        raise argparse.ArgumentTypeError(f"expected an origin as https://host[:port], not {text}")
    if not parts.netloc or parts.netloc != parts.netloc.lower() or "@" in parts.netloc:
        raise argparse.ArgumentTypeError(f"expected a plain host in lower case, not {text}")
    return text
