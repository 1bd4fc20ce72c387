"""Every attempt to get out of a fence that is not about the network; `attempts.py` says how."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(__file__))

from importlib import import_module

from attempts import ESCAPES, HOME, WS, Held, Impossible, make_all

SANDBOX = (
    "bwrap --ro-bind / / --dev /dev --proc /proc --unshare-pid --unshare-net --die-with-parent"
)


def starting_its_own_sandbox() -> None:
    """Not an escape: agents have sandboxes, which are to work inside."""
    if shutil.which("bwrap") is None:
        raise Impossible("there is no bwrap")
    line = f"echo inside > {WS}/sandboxed && ! touch {HOME}/held"
    words = [*SANDBOX.split(), "--bind", f"{WS}/boxed", f"{WS}", "sh", "-c", line]
    os.makedirs(f"{WS}/boxed", exist_ok=True)
    done = subprocess.run(words, capture_output=True, check=False)
    if done.returncode or not os.path.exists(f"{WS}/boxed/sandboxed"):
        raise Held(done.stderr.decode(errors="replace"))


if __name__ == "__main__":
    ESCAPES[starting_its_own_sandbox.__name__] = starting_its_own_sandbox
    for kind in ("file", "process", "later", "kernel"):
        import_module(f"{kind}_escapes")
    make_all(sys.argv[5:])
