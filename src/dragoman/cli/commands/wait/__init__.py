"""`dragoman wait`: waits for the end of a session's turns, wherever they run."""

from __future__ import annotations

import argparse

from dragoman.cli.options import SESSION_HELP, duration


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Wait until no turn of the session runs and no prompt is queued or parked, print the "
        "answer of its last turn, and exit with the code of that turn. If no process runs the "
        "session, prompts that are queued or parked stay so, and the command does not wait."
    )
    parser.epilog = (
        "examples:\n"
        '  dragoman --session fix --on-ask wait "fix the test" &\n'
        "  dragoman wait fix --timeout 30m > answer.md"
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
