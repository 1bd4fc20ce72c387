"""`dragoman watch`: a session, live, wherever it runs; its questions can be answered here."""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "examples:\n"
        "  dragoman watch s-1f3a                 follow it; answer its questions here\n"
        "  dragoman watch s-1f3a --json          its events, a JSON object a line\n"
        '  dragoman --session fix "and test it"  queue a prompt into it meanwhile\n'
        "  dragoman cancel s-1f3a                stop its turn"
    )
    parser.add_argument(
        "session",
        metavar="SESSION",
        help="its id or the beginning of it, its name, or the agent's id",
    )
    parser.add_argument("--all", action="store_true", help="from its beginning on")
    parser.add_argument(
        "--until-idle", action="store_true", help="end when nothing runs there any more"
    )
    parser.add_argument(
        "--on-ask",
        choices=("ignore", "prompt"),
        help="whether its questions are asked here too (default: prompt on a terminal)",
    )
    parser.add_argument("--json", action="store_true", help="the stored events, one a line")


def run(options: argparse.Namespace) -> int:
    from dragoman.cli.run.session_window import watch

    return watch(options)
