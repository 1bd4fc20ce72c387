"""`dragoman replay`: a recording shown as it happened, or served as an agent that repeats it."""

from __future__ import annotations

import argparse

from dragoman.cli.options import not_negative

_EXAMPLES = """\
examples:
  dragoman --record recording.jsonl "fix it"    makes a recording
  dragoman replay recording.jsonl               as fast as it happened
  dragoman replay session.jsonl --speed 0       an exported session, at once
  dragoman --agent-command 'dragoman replay recording.jsonl --serve' "fix it"

A recording has the frames of both directions; what `dragoman sessions export`
writes has none, and can only be shown. Nothing in either is executed when it is
shown. An agent that is served from a recording asks the client for the files
and commands that were asked for then."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument("file", metavar="FILE", help="a recording, or an exported session")
    parser.add_argument(
        "--speed",
        metavar="X",
        type=not_negative,
        default=1.0,
        help="how many times as fast; 0 means at once (default: 1)",
    )
    parser.add_argument(
        "--serve",
        action="store_true",
        help="be an agent on standard input and output that does what was recorded",
    )


def run(options: argparse.Namespace) -> int:
    from dragoman.cli.run.recording_player import serve, show

    return serve(options.file) if options.serve else show(options.file, options.speed)
