"""Proxies for tests: real processes that run `programs/proxy.py`, and whether they still do."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dragoman import AgentCommand

PROGRAM = Path(__file__).parent / "programs" / "proxy.py"


def proxy(how: str = "plain", *, signed: str = "plain") -> AgentCommand:
    """One that signs the prompts it passes on; `how` is what else it does."""
    return AgentCommand(sys.executable, ("-I", "-S", str(PROGRAM), how), {"SIGNED": signed})


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
