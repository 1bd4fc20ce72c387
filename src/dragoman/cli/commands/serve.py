"""`dragoman serve`: the sessions of this user over HTTP, for the page and for programs."""

from __future__ import annotations

import argparse
import os
import re
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module

from dragoman.cli.exit_codes import UsageError, tell
from dragoman.cli.options import add_offer_options
from dragoman.cli.run.agent_setup import given_rules
from dragoman.cli.server.listen_options import add_address_options, check_address
from dragoman.cli.server.server_log import Lines, keep_journal
from dragoman.data_directory import data_directory, make_private


def add_arguments(parser: argparse.ArgumentParser) -> None:
    where = add_address_options(parser)
    where.add_argument(
        "--open",
        action="store_true",
        help="open the page in a browser, if there is one with windows",
    )
    where.add_argument(
        "--headless",
        action="store_true",
        help="no page and no address: run what other servers on the same store call for",
    )
    where.add_argument(
        "--name",
        metavar="NAME",
        type=_name,
        help="what this host is called among others (default: the machine's name)",
    )
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
    add_offer_options(allowed.add_argument)
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
    allowed.add_argument(
        "--policy",
        action="append",
        default=[],
        metavar="FILE",
        help="permission rules for all sessions; repeatable",
    )


def run(options: argparse.Namespace) -> int:
    check_address(options)
    _check_headless(options)
    if not os.path.isdir(options.cwd):
        raise UsageError(f"--cwd {options.cwd}: there is no such directory")
    _delete_left_behind()
    with Lines(sys.stderr.fileno()) as log:
        keep_journal(log, debug=options.debug)
        import_module("dragoman.web.server.runner").serve(
            _announce,
            log,
            host=options.host,
            port=options.port,
            token_file=options.token_file,
            origins=options.allow_origin,
            agent=options.agent,
            cwd=os.path.abspath(options.cwd),
            settings=options.settings,
            rules=given_rules(options.policy),
            write=options.write,
            execute=options.exec,
            yolo=options.yolo,
            no_files=options.no_files,
            no_terminals=options.no_terminals,
            name=options.name,
            headless=options.headless,
            open_page=_open if options.open else None,
        )
    return 0


def _check_headless(options: argparse.Namespace) -> None:
    """What is for the page makes no sense without one."""
    given = {
        "--port": options.port,
        "--open": options.open,
        "--token-file": options.token_file,
        "--allow-origin": options.allow_origin,
    }
    for name, value in given.items():
        if options.headless and value:
            raise UsageError(f"{name} makes no sense with --headless")


def _name(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", text) is None:
        sentence = f"expected up to 63 letters, digits, dots, dashes and underscores, not {text!r}"
        raise argparse.ArgumentTypeError(sentence)
    return text


def _announce(address: str) -> None:
    print(address, flush=True)


def _open(address: str) -> Callable[[], None]:
    """Through a file that leads there: every user of the machine sees what a browser is started
    with, and the address has the token in it. What is returned deletes the file."""
    from html import escape

    path = make_private(data_directory()) / f"open-{os.getpid()}.html"
    path.unlink(missing_ok=True)
    leading = f'<meta http-equiv="refresh" content="0; url={escape(address)}">'
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"<!doctype html>{leading}\n")
    if not opened(path.as_uri()):
        path.unlink(missing_ok=True)
        tell("there is no browser with windows here: open the address above in one")
    return lambda: path.unlink(missing_ok=True)


def _delete_left_behind() -> None:
    """Such files of servers that were killed."""
    from dragoman.hub.owner import started

    for path in data_directory().glob("open*.html"):
        pid = path.stem.removeprefix("open-")
        with suppress(OSError):  # whether it runs cannot be told
            if not pid.isdecimal() or int(pid) == os.getpid() or not started(int(pid)):
                path.unlink(missing_ok=True)


_OF_TERMINALS = {"www-browser", "links", "links2", "elinks", "lynx", "w3m", "browsh"}


def opened(address: str) -> bool:
    """Whether there was such a browser to give it to."""
    browser = _found()
    if browser is None:
        return False
    # One in the background that has ended at once handed the page to a window that was open, and
    # `webbrowser` takes that for a failure.
    return browser.open(address) or isinstance(browser, webbrowser.BackgroundBrowser)


def _found() -> webbrowser.BaseBrowser | None:
    # Without a display even xdg-open looks for a browser of terminals.
    told = any(map(os.environ.get, ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")))
    if not told and sys.platform != "darwin":
        return None
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return None
    program = os.path.basename(browser.name.partition(" ")[0])
    return None if program in _OF_TERMINALS else browser
