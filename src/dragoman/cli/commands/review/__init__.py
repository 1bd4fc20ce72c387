"""`dragoman review`: goes through what a session changed, and tells the agent about it."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dragoman.cli.options import SESSION_HELP, add_permission_options, add_settings_option

if TYPE_CHECKING:
    from dragoman.cli.commands.review.review_walk import Walk

_EXAMPLES = """\
examples:
  dragoman review fix                   all that the session fix changed
  dragoman review fix --turn -1         what its last turn changed
  dragoman review fix --write           let the agent write when it answers

Each change is shown with who made it. Nothing is reverted or sent until you
have gone through all changes or quit. Reverting can itself be undone."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("session", metavar="SESSION", help=SESSION_HELP)
    parser.add_argument(
        "--turn",
        metavar="TURN",
        help="only this turn: its number (1 is the first, -1 the last) or its id",
    )
    parser.add_argument(
        "--agent-command",
        metavar="'CMD ARGS'",
        help="command that starts its agent, for a session that was started with --agent-command",
    )
    add_settings_option(parser.add_argument)
    add_permission_options(parser, "the turn that answers the review")


def run(options: argparse.Namespace) -> int:
    """Review, then one turn if there is something to say; the exit code."""
    import asyncio
    import sys

    from dragoman.cli.commands.review.review_walk import Walk
    from dragoman.cli.exit_codes import Exit, UsageError
    from dragoman.errors import DragomanError

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        how = f"dragoman sessions changes {options.session}"
        raise UsageError(f"review needs a terminal; without one, `{how}` prints the changes")
    walk = Walk(options)
    try:
        text = asyncio.run(walk.hold())
    except BaseException:
        walk.show_unsent()  # nobody should have to type it again
        raise
    if text is None:
        return Exit.DONE
    try:
        return _send(options, walk, text)
    except DragomanError:
        walk.show_unsent("your review, in case the agent has not received it:")
        raise


def _send(options: argparse.Namespace, walk: Walk, text: str) -> int:
    """As the prompt of a turn, which is shown like any other."""
    from dragoman.cli.commands.run import run_job
    from dragoman.cli.parsers import parsed
    from dragoman.cli.run.job import prepare_quoting

    given = {name: value for name, value in vars(options).items() if name != "session"}
    turn = vars(parsed("run", ["--resume", walk.session_id])) | given
    return run_job(prepare_quoting(argparse.Namespace(**turn), text))
