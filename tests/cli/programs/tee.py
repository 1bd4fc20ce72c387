"""`tee.py FOLDER COMMAND …`: runs an agent and keeps every byte that passes, each way in a file."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO


def copy(source: IO[bytes], target: IO[bytes], kept: Path) -> None:
    with kept.open("wb") as file:
        while data := os.read(source.fileno(), 65536):
            file.write(data)
            file.flush()
            target.write(data)
            target.flush()
    target.close()


def main() -> int:
    folder, *command = sys.argv[1:]
    agent = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert agent.stdin is not None
    assert agent.stdout is not None
    sent = threading.Thread(
        target=copy, args=(sys.stdin.buffer, agent.stdin, Path(folder, "sent")), daemon=True
    )
    sent.start()
    copy(agent.stdout, sys.stdout.buffer, Path(folder, "received"))
    return agent.wait()


sys.exit(main())
