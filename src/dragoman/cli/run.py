"""`dragoman "…"`: one turn."""

from __future__ import annotations

import argparse
import gc

from dragoman.cli import streams


def run(options: argparse.Namespace) -> int:
    """One turn; the exit code."""
    gc.disable()  # thousands of things are made by these imports, and none of them is garbage
    from dragoman.cli.job import prepare_turn
    from dragoman.cli.turn import run_job

    gc.freeze()  # nor will they ever be
    gc.enable()
    streams.raise_when_interrupted()
    return run_job(prepare_turn(options))
