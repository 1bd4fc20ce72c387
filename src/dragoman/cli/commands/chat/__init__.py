"""`dragoman chat`: a conversation in the terminal.

The options are here; `conversation` is imported only when the chat starts.
"""

from __future__ import annotations

import argparse

from dragoman.cli import options as shared
from dragoman.cli import standard_streams
from dragoman.cli.parsers import add_worktree_options

_EXAMPLES = """\
examples:
  dragoman chat
  dragoman chat -a gemini --write --cwd ~/project
  dragoman chat "explain this project"      begin with this prompt
  dragoman chat --continue                  continue the latest session here

In the chat, /help lists the commands. Enter sends the prompt; Alt-Enter (or
Esc Enter), or a backslash at the end of a line, starts a new line. While a turn
runs, Enter queues the prompt, and Alt-Enter sends it to the running turn;
"enter" in the settings swaps the two. Esc or Ctrl-C cancels the running turn,
Ctrl-D quits."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    shared.add_optional(parser.add_argument, "prompt", "PROMPT", "the first prompt")
    shared.add_agent_options(parser)
    shared.add_limit_options(parser)
    add_worktree_options(shared.add_session_options(parser).add_argument)
    parser.add_argument(
        "--notify",
        metavar="HOW",
        choices=("off", "bell", "osc9", "osc777"),
        help="notify you when the chat asks something, and when a long turn ends: by the "
        "terminal's bell, or by a notification of the terminal, with the sequence OSC 9 or OSC "
        "777 (default: from the settings, else off)",
    )


def run(options: argparse.Namespace) -> int:
    from dragoman.cli.commands.chat.conversation import chat

    standard_streams.raise_when_interrupted()
    return chat(options)
