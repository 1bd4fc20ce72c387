"""Options of a server's address, for `serve` and `bridge`: where it listens, and whom it admits."""

from __future__ import annotations

import argparse

from dragoman.cli.options import add_repeatable

TYPE_CHECKING = False  # that of `typing` would cost `--help` the import
if TYPE_CHECKING:
    from argparse import _ArgumentGroup as ArgumentGroup  # pyright: ignore[reportPrivateUsage]
    from typing import Any, TypeAlias

    Address: TypeAlias = dict[str, Any]

_REMOTE = (
    "--host {host}: anyone who can reach that address and has the token can run commands as you, "
    "and the connection is not encrypted; add --allow-remote to listen there anyway"
)


def add_address_options(parser: argparse.ArgumentParser) -> ArgumentGroup:
    """Add them and return their group, for options that only one command has."""
    where = parser.add_argument_group("address")
    where.add_argument(
        "--host",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="address to listen on (default: 127.0.0.1)",
    )
    where.add_argument(
        "--port", metavar="N", type=_port, default=0, help="port to listen on (default: a free one)"
    )
    where.add_argument(
        "--allow-remote",
        action="store_true",
        help="allow --host to be an address that other machines can reach",
    )
    text = "let pages from this origin connect (they still need the token)"
    add_repeatable(where.add_argument, "--allow-origin", "ORIGIN", text, type=_origin)
    where.add_argument(
        "--token-file",
        metavar="PATH",
        help="keep the token in this file across restarts; created if missing",
    )
    return where


def address_of(options: argparse.Namespace) -> Address:
    """Where a server listens, and which clients it admits: the fields of a `Door`.

    Raises UsageError for an address that other machines reach, without --allow-remote.
    """
    from dragoman.cli.exit_codes import UsageError
    from dragoman.web.server.guard import is_loopback

    if not options.allow_remote and not is_loopback(options.host):
        raise UsageError(_REMOTE.format(host=options.host))
    return {
        "host": options.host,
        "port": options.port,
        "token_file": options.token_file,
        "origins": options.allow_origin,
    }


def announce(address: str) -> None:
    """Print where a server listens, for people and for programs that read our output."""
    print(address, flush=True)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"expected a port from 0 to 65535, not {text}")
    return int(text)


def _origin(text: str) -> str:
    """An origin exactly as browsers send it: scheme, host, and port unless it is the default."""
    from urllib.parse import urlsplit

    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or text != f"{parts.scheme}://{parts.netloc}":
        raise argparse.ArgumentTypeError(f"expected an origin like https://host[:port], not {text}")
    if not parts.netloc or parts.netloc != parts.netloc.lower() or "@" in parts.netloc:
        raise argparse.ArgumentTypeError(f"expected a plain lowercase host, not {text}")
    return text
