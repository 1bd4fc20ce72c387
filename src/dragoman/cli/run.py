"""`dragoman "…"`: one turn."""

from __future__ import annotations

import argparse
import gc


def run(options: argparse.Namespace) -> int:
    """One turn; the exit code."""
    gc.disable()  # thousands of things are made by these imports, and none of them is garbage
    from dragoman.cli.job import prepare
    from dragoman.cli.turn import run_job

    gc.freeze()  # nor will they ever be
    gc.enable()
    return run_job(prepare(options))
