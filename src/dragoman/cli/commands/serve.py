"""`dragoman serve`: this user's sessions over HTTP, for the web page and for programs."""

from __future__ import annotations

import argparse
import os
import re
import sys
import webbrowser
from collections.abc import Callable
from contextlib import suppress

from dragoman.cli.exit_codes import UsageError, tell
from dragoman.cli.options import (
    add_permission_options,
    add_server_folder_option,
    add_settings_option,
)
from dragoman.cli.server_address import add_address_options, address_of, announce
from dragoman.cli.server_log import Lines, keep_journal
from dragoman.data_directory import data_directory, make_private

TYPE_CHECKING = False  # that of `typing` would cost `--help` the import
if TYPE_CHECKING:
    from dragoman.cli.server_address import Address


def add_arguments(parser: argparse.ArgumentParser) -> None:
    where = add_address_options(parser)
    where.add_argument(
        "--open",
        action="store_true",
        help="open the page in a graphical browser, if there is one",
    )
    where.add_argument(
        "--pair",
        metavar="NAME",
        nargs="?",
        const="phone",
        type=_device,
        help="print a QR code that pairs a device, once, within ten minutes (default name: phone)",
    )
    where.add_argument(
        "--headless",
        action="store_true",
        help="do not listen on HTTP; only run sessions for other servers that use the same store",
    )
    where.add_argument(
        "--name",
        metavar="NAME",
        type=_name,
        help="name of this host, if several share a store (default: the machine's name)",
    )
    agent = parser.add_argument_group("sessions")
    agent.add_argument(
        "-a", "--agent", metavar="NAME", help="agent for sessions that do not name one"
    )
    add_settings_option(agent.add_argument)
    add_server_folder_option(agent.add_argument, "workspace for sessions that do not name one")
    add_permission_options(parser, "all sessions")


def run(options: argparse.Namespace) -> int:
    address = address_of(options)
    _check_headless(options)
    from dragoman.cli.run.agent_setup import folder

    cwd = folder("--cwd", options.cwd)
    _delete_stale_redirects()
    with Lines(sys.stderr.fileno()) as log:
        keep_journal(log, debug=options.debug)
        _serve(options, address, cwd, log)
    return 0


def _serve(options: argparse.Namespace, address: Address, cwd: str, log: Lines) -> None:
    from dragoman.agents.settings.settings_file import load_settings
    from dragoman.cli.run.agent_setup import given_rules, offer_of, typed_network
    from dragoman.cli.run.given_limits import limits_in
    from dragoman.web.server.lifecycle import ServeOptions, serve

    # Settings that cannot be read are reported where an agent is to be started.
    agents = load_settings(options.settings).agents if options.policy else {}
    limits = limits_in(options.policy, agents)
    settings = ServeOptions(
        **address,
        agent=options.agent,
        cwd=cwd,
        settings=options.settings,
        rules=given_rules(options),
        limits=limits,
        offer=offer_of(options),
        fence=options.fence,
        network=typed_network(options),
        name=options.name,
        headless=options.headless,
        open_page=_open if options.open else None,
        pair=options.pair,
        show_pairing=_show_pairing,
    )
    serve(settings, announce, log)


def _check_headless(options: argparse.Namespace) -> None:
    """Refuse options that only concern HTTP."""
    given = {
        "--port": options.port,
        "--open": options.open,
        "--pair": options.pair,
        "--token-file": options.token_file,
        "--allow-origin": options.allow_origin,
    }
    for name, value in given.items():
        if options.headless and value:
            raise UsageError(f"{name} cannot be used with --headless")


def _name(text: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", text) is None:
        sentence = f"expected up to 63 letters, digits, dots, dashes or underscores, not {text!r}"
        raise argparse.ArgumentTypeError(sentence)
    return text


def _device(text: str) -> str:
    from dragoman.access.access_tokens import name_in

    try:
        return name_in(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _show_pairing(name: str, address: str, *, is_local: bool) -> None:
    """Print the code on standard output, after the address of the page."""
    from dragoman.web.server.pairing import qr_in_terminal, qr_rows

    print(qr_in_terminal(qr_rows(address), coloured=sys.stdout.isatty()))
    print(f"pair {name} within ten minutes: {address}", flush=True)
    if is_local:
        tell(
            "only this machine can open that address; for a phone, put an HTTPS proxy in front "
            "and name it with --allow-origin, or listen elsewhere with --host and --allow-remote"
        )


def _open(address: str) -> Callable[[], None]:
    """Open the address through a file that redirects to it.

    Other users of the machine can see a browser's command line, and the address contains the token.
    The returned function deletes the file.
    """
    from html import escape

    path = make_private(data_directory()) / f"open-{os.getpid()}.html"
    path.unlink(missing_ok=True)
    leading = f'<meta http-equiv="refresh" content="0; url={escape(address)}">'
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(f"<!doctype html>{leading}\n")
    if not opened(path.as_uri()):
        path.unlink(missing_ok=True)
        tell("no graphical browser found; open the address above in one yourself")
    return lambda: path.unlink(missing_ok=True)


def _delete_stale_redirects() -> None:
    """Delete such files left by servers that were killed."""
    from dragoman.hub.cluster.owner import started

    for path in data_directory().glob("open*.html"):
        pid = path.stem.removeprefix("open-")
        with suppress(OSError):  # cannot know whether it is running
            if not pid.isdecimal() or int(pid) == os.getpid() or not started(int(pid)):
                path.unlink(missing_ok=True)


_TEXT_BROWSERS = {"www-browser", "links", "links2", "elinks", "lynx", "w3m", "browsh"}


def opened(address: str) -> bool:
    """Whether a graphical browser could open the address."""
    browser = _found()
    if browser is None:
        return False
    # A background browser that exits at once has handed the page to an open window; `webbrowser`
    # takes that for a failure.
    return browser.open(address) or isinstance(browser, webbrowser.BackgroundBrowser)


def _found() -> webbrowser.BaseBrowser | None:
    # Without a display even xdg-open looks for a text browser.
    display = any(map(os.environ.get, ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")))
    if not display and sys.platform != "darwin":
        return None
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return None
    program = os.path.basename(browser.name.partition(" ")[0])
    return None if program in _TEXT_BROWSERS else browser
