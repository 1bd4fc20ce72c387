"""`dragoman wait`: waits for the end of a session's turns, wherever they run."""

from __future__ import annotations

import argparse

from dragoman.cli.options import SESSION_HELP, duration


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Wait until a session is idle, print the answer of its last turn, and exit with that "
        "turn's code."
    )
    parser.epilog = (
        "examples:\n"
        '  dragoman --session fix --no-wait --on-ask wait "fix the test"\n'
        "  dragoman wait fix --timeout 30m > answer.md\n\n"
        "A session is idle when no turn is running and no prompt is queued or parked. If\n"
        "no process runs the session, the command does not wait, and leaves queued and\n"
        "parked prompts as they are."
    )
    parser.add_argument("session", metavar="SESSION", help=SESSION_HELP)
    parser.add_argument(
        "--timeout",
        metavar="TIME",
        type=duration,
        help="give up after this time, such as 90s, 10m or 2h, with code 3; the turn continues",
    )


def run(options: argparse.Namespace) -> int:
    import asyncio

    from dragoman.cli.commands.wait.session_wait import wait

    return asyncio.run(wait(options))
