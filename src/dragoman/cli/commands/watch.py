"""`dragoman watch`: follows a session wherever it is running, and can answer its questions."""

from __future__ import annotations

import argparse

from dragoman.cli.options import SESSION_HELP


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "examples:\n"
        "  dragoman watch s-1f3a                 follow it; answer its questions here\n"
        "  dragoman watch s-1f3a --json          print its events as JSON Lines\n"
        '  dragoman --resume s-1f3a "and test"   queue a prompt for it\n'
        "  dragoman cancel s-1f3a                stop its turn"
    )
    parser.add_argument("session", metavar="SESSION", help=SESSION_HELP)
    parser.add_argument(
        "--all", action="store_true", help="start from the beginning of the session"
    )
    parser.add_argument("--until-idle", action="store_true", help="stop when the session is idle")
    parser.add_argument(
        "--on-ask",
        choices=("ignore", "prompt"),
        help="whether to ask the session's questions here too (default: prompt on a terminal, "
        "else ignore)",
    )
    parser.add_argument(
        "--json", action="store_true", help="print the stored events as JSON, one per line"
    )


def run(options: argparse.Namespace) -> int:
    from dragoman.cli.run.elsewhere.remote_session import watch

    return watch(options)
