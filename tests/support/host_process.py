"""`dragoman serve` on a machine of its own, with a home and an agent that others do not have."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import httpx
from support.machines import Machine
from support.server_process import COMMAND

_AGENT = Path(__file__).parents[1] / "hub" / "programs" / "loaded.py"
_PORT = 8123


class HostProcess:
    """One host: `start` and `kill` it; `marks` is what its agent has done."""

    def __init__(self, machine: Machine, folder: Path, store: str) -> None:
        self.machine = machine
        self.name = machine.name
        self.marks = folder / "marks"
        self.errors = folder / "stderr"
        self.is_up = False
        self.http = httpx.AsyncClient(
            base_url=f"http://{machine.address}:{_PORT}", timeout=60, trust_env=False, verify=False
        )
        self._folder = folder
        self._store = store
        self._process: subprocess.Popen[bytes] | None = None

    async def start(self) -> None:
        self._folder.mkdir(exist_ok=True)
        address = await asyncio.to_thread(self._start)
        token = address.partition("#token=")[2]
        assert token, self.errors.read_text()
        self.http.headers["authorization"] = f"Bearer {token}"
        self.is_up = True

    def _start(self) -> str:
        where = ["--host", self.machine.address, "--port", str(_PORT), "--allow-remote"]
        words = [
            str(COMMAND),
            "serve",
            "--debug",
            *where,
            "--name",
            self.name,
            "--settings",
            self._settings(),
        ]
        with open(self.errors, "ab") as errors:
            self._process = self.machine.run(
                words, cwd=self._folder, env=self._environment(), errors=errors
            )
        assert self._process.stdout is not None
        return self._process.stdout.readline().decode().strip()

    def _settings(self) -> str:
        path = self._folder / "settings.json"
        agent = {
            "command": sys.executable,
            "args": ["-m", "dragoman.testing.serve", f"{_AGENT}:loaded"],
            "env": {"MARKS": str(self.marks), "MEMORY": str(self._folder / "memory")},
        }
        path.write_text(json.dumps({"agent_servers": {"loaded": agent}}))
        return str(path)

    def _environment(self) -> dict[str, str]:
        home = {"HOME": str(self._folder), "DRAGOMAN_HOME": str(self._folder / "state")}
        return home | {"PATH": os.environ["PATH"], "DRAGOMAN_STORE": self._store}

    def refused(self) -> set[bytes]:
        """The events it could not write any more, since another host had taken the session."""
        files = (self._folder / "state" / "undelivered").glob("*.jsonl")
        return {line for path in files for line in path.read_bytes().splitlines()}

    def kill(self) -> None:
        """As if its power had failed."""
        self.is_up = False
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    async def aclose(self) -> None:
        self.kill()
        await self.http.aclose()
