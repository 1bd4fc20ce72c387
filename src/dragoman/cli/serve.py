"""`dragoman serve`: the sessions of this user over HTTP, for the page and for programs."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from functools import partial
from importlib import import_module

from dragoman.cli.guard import UsageError

_REMOTE = (
    "--host {host}: whoever reaches that address and has the token can run commands as you, and "
    "nothing is encrypted on the way; --allow-remote serves there all the same"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
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
    where.add_argument("--open", action="store_true", help="open the page in a browser")
    agent = parser.add_argument_group("sessions")
    agent.add_argument("-a", "--agent", metavar="NAME", help="the agent of sessions that name none")
    agent.add_argument("--settings", metavar="PATH", help="the settings file")
    agent.add_argument(
        "--cwd",
        metavar="DIR",
        default=".",
        help="the workspace of sessions that name none (default: the current directory)",
    )
    _add_permissions(parser)


def _add_permissions(parser: argparse.ArgumentParser) -> None:
    allowed = parser.add_argument_group("permissions")
    allowed.add_argument("--write", action="store_true", help="allow writes inside the workspace")
    allowed.add_argument(
        "--exec",
        action="store_true",
        help="allow commands whose working directory is inside the workspace",
    )
    allowed.add_argument(
        "--yolo",
        action="store_true",
        help="both of these, reads anywhere, and whatever else can be allowed",
    )
    allowed.add_argument("--policy", metavar="FILE", help="permission rules for all sessions")


def run(options: argparse.Namespace) -> int:
    hosts = import_module("dragoman.web.hosts")
    if not options.allow_remote and not hosts.is_loopback(options.host):
        raise UsageError(_REMOTE.format(host=options.host))
    if not os.path.isdir(options.cwd):
        raise UsageError(f"--cwd {options.cwd}: there is no such directory")
    import_module("dragoman.web.serving").serve(
        partial(_announce, options.open),
        _log,
        host=options.host,
        port=options.port,
        token_file=options.token_file,
        origins=options.allow_origin,
        agent=options.agent,
        cwd=os.path.abspath(options.cwd),
        settings=options.settings,
        rules=_rules(options.policy),
        write=options.write,
        execute=options.exec,
        yolo=options.yolo,
    )
    return 0


def _announce(in_browser: bool, address: str) -> None:
    print(address, flush=True)
    if in_browser:
        _open(address)


def _open(address: str) -> None:
    """Through a file that leads there: every user of the machine sees what a browser is started
    with, and the address has the token in it."""
    import webbrowser

    from dragoman.host.home import data_directory, make_private

    path = make_private(data_directory()) / "open.html"
    path.unlink(missing_ok=True)
    path.touch(0o600, exist_ok=False)
    path.write_text(f'<!doctype html><meta http-equiv="refresh" content="0; url={address}">\n')
    webbrowser.open(path.as_uri())


def _log(line: str) -> None:
    with suppress(OSError):  # whoever read the log may have gone
        print(line, file=sys.stderr, flush=True)


def _rules(path: str | None):
    if path is None:
        return ()
    from pathlib import Path

    from dragoman.host.policy_file import load_policy

    return load_policy(Path(path), home=str(Path.home()))


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
