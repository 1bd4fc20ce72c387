"""`dragoman serve` as a process: started, spoken to, killed, started again.

It is forked from a process that has already imported it; where a test measures it, or has a shell
prepare it, it is started as a user would start it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO

import httpx
from support.warm_command import WarmProcess, warm_command

COMMAND = Path(sys.executable).parent / "dragoman"
AGENTS = Path(__file__).parents[1] / "web" / "programs" / "agents.py"
SECONDS = 120.0


class ServerProcess:
    """One server: `origin` and `token` are what it printed."""

    def __init__(self, home: Path, *words: str, **variables: str) -> None:
        self.home = home
        self.workspace = home / "workspace"
        self.workspace.mkdir(exist_ok=True)
        self.errors = home / "stderr"
        with open(self.errors, "ab") as errors:
            command = [*self.command(_settings(home)), *words]
            self.process = self._started(command, variables, errors)
        self.address = self._said.readline().decode().strip()
        assert self.address.startswith("http://"), self.errors.read_text()
        self.origin, _, self.token = self.address.partition("/#token=")
        self.port = int(self.origin.rpartition(":")[2])

    def _started(
        self, command: list[str], variables: dict[str, str], errors: IO[bytes]
    ) -> WarmProcess | subprocess.Popen[bytes]:
        reader, writer = os.pipe()
        self._said: IO[bytes] = os.fdopen(reader, "rb")
        env = _environment(self.home) | variables
        with open(os.devnull, "rb") as nothing, open(writer, "wb") as stdout:
            streams = [each.fileno() for each in (nothing, stdout, errors)]
            return warm_command().start(command, env, self.workspace, streams)

    def command(self, settings: str) -> list[str]:
        return [str(COMMAND), "serve", "--settings", settings]

    @property
    def http(self) -> httpx.Client:
        return httpx.Client(
            base_url=self.origin,
            headers={"authorization": f"Bearer {self.token}"},
            timeout=SECONDS,
            trust_env=False,
            verify=False,  # plain HTTP: reading whom to trust takes longer than many a test
        )

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.close()

    def end(self, number: int = signal.SIGTERM) -> int:
        """Ask it to end; its exit code."""
        self.process.send_signal(number)
        code = self.process.wait(SECONDS)
        self.close()
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(SECONDS)
        if isinstance(self.process, WarmProcess):
            self.process.close()
        self._said.close()


@contextmanager
def server_process(home: Path, *words: str, **variables: str) -> Generator[ServerProcess]:
    with closing(ServerProcess(home, *words, **variables)) as server:
        yield server


class StartedProcess(ServerProcess):
    """One that shares nothing with others, not even memory."""

    def _started(
        self, command: list[str], variables: dict[str, str], errors: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            command,
            env=_environment(self.home) | variables,
            cwd=self.workspace,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        assert process.stdout is not None
        self._said = process.stdout
        return process


class PreparedProcess(StartedProcess):
    """One that a shell starts, after a line such as `umask 000`."""

    def __init__(self, home: Path, line: str, *words: str) -> None:
        self._line = line
        super().__init__(home, *words)

    def command(self, settings: str) -> list[str]:
        return ["sh", "-c", f'{self._line}; exec "$0" "$@"', *super().command(settings)]


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def _settings(home: Path) -> str:
    command = [sys.executable, "-m", "dragoman.testing.serve"]
    agents = {
        name: {"command": command[0], "args": [*command[1:], f"{AGENTS}:{name}"]}
        for name in ("steady", "endless", "waiting", "until_told", "crowding", "floods")
    }
    path = home / "settings.json"
    path.write_text(json.dumps({"agent_servers": agents}))
    return str(path)


def _environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return kept | {"HOME": str(home), "DRAGOMAN_HOME": str(home / "state")}
