"""`dragoman replay`: plays back a recording, or serves it as an agent that repeats it."""

from __future__ import annotations

import argparse

from dragoman.cli.options import not_negative

_EXAMPLES = """\
examples:
  dragoman --record recording.jsonl "fix it"    make a recording
  dragoman replay recording.jsonl               play it at its original speed
  dragoman replay session.jsonl --speed 0       an exported session, at once
  dragoman --agent-command 'dragoman replay recording.jsonl --serve' "fix it"

A recording contains the frames in both directions. A file written by `dragoman
sessions export` does not, and can only be played back. Playback executes
nothing. An agent served from a recording makes the same file and command
requests to the client as the original agent did."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("file", metavar="FILE", help="recording or exported session")
    parser.add_argument(
        "--speed",
        metavar="X",
        type=not_negative,
        default=1.0,
        help="playback speed as a factor; 0 prints everything at once (default: 1)",
    )
    parser.add_argument(
        "--serve",
        action="store_true",
        help="serve the recording as an agent on standard input and output",
    )


def run(options: argparse.Namespace) -> int:
    from dragoman.cli.run.playback import serve, show

    return serve(options.file) if options.serve else show(options.file, options.speed)
