"""The installed command, run as a user would run it: a home of its own, bounded, nothing shared.

What is run to its end is a fork that has imported the command before; what a test looks at, stops
or kills is a process that was started as a user would start it.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeAlias

from support.warm_command import warm_command

SECONDS = 120.0
COMMAND = Path(sys.executable).parent / "dragoman"
PROGRAMS = Path(__file__).parents[1] / "cli" / "programs"
AGENTS = PROGRAMS / "agents.py"

ALONE = ("looking", "crashing", "stubborn")
"""Agents that need a process of their own: their folder and variables count, or they end it."""

_OF_PYTHON = ("PYTHON", "LC_", "LANG", "COVERAGE")
"""Variables that Python itself reads when it starts."""

MIDDAY = {"TZ": f"MID{time.gmtime().tm_hour - 12:+d}"}
"""A time zone in which it is about noon: no day ends while a test runs."""

Json: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Done:
    """How a run ended, and all it printed."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.split("\n")[:-1]

    @property
    def frames(self) -> list[Json]:
        return [json.loads(line) for line in self.lines]

    def tagged(self, tag: str) -> list[str]:
        return [line for line in self.lines if line.startswith(f"[{tag}]")]


def refused(done: Done, *words: str, code: int = 2) -> None:
    """It did nothing, and said why in one line that has these words."""
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1), done
    for word in words:
        assert word in done.err


class Dragoman:
    """A user with a home, a workspace, and settings that name agents of `programs/agents.py`."""

    def __init__(self, home: Path, server: str) -> None:
        self.home = home
        self._server = server
        self.state = home / "state"
        self.settings = home / "config" / "dragoman" / "settings.json"
        self.workspace = home / "workspace"
        self.workspace.mkdir()
        self.env = _environment(home)

    def write_settings(self, settings: object) -> Path:
        self.settings.parent.mkdir(parents=True, exist_ok=True)
        text = settings if isinstance(settings, str) else json.dumps(settings)
        self.settings.write_text(text)
        return self.settings

    def agent(self, name: str, file: str = "agents.py") -> str:
        """The command of an agent in `programs`, served by the process that has them all."""
        relay = [sys.executable, "-I", "-S", str(PROGRAMS / "relay.py")]
        return shlex.join([*relay, self._server, f"{file}:{name}"])

    def own_process(self, name: str) -> str:
        """The same in a process of its own, for those that end it or look around in it."""
        return shlex.join([sys.executable, "-m", "dragoman.testing.serve", f"{AGENTS}:{name}"])

    def __call__(
        self,
        *words: str,
        agent: str | None = None,
        stdin: str | bytes | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        seconds: float = SECONDS,
    ) -> Done:
        """Run it to its end; without `stdin` its input is empty, and not a terminal."""
        command, directory = self.command(*words, agent=agent), cwd or self.workspace
        data = stdin.encode() if isinstance(stdin, str) else stdin or b""
        variables = self.env | dict(env or {})
        if any(name.startswith(_OF_PYTHON) for name in env or {}):
            done = subprocess.run(
                command,
                env=variables,
                cwd=directory,
                input=data,
                capture_output=True,
                check=False,
                timeout=seconds,
            )
            code, out, err = done.returncode, done.stdout, done.stderr
        else:
            code, out, err = warm_command().run(command, variables, directory, data, seconds)
        return Done(code, out.decode(), err.decode())

    @contextmanager
    def started(
        self,
        *words: str,
        agent: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: int = subprocess.PIPE,
        stdout: int | IO[bytes] = subprocess.PIPE,
    ) -> Generator[subprocess.Popen[bytes]]:
        """Started and not waited for; killed at the end if it still runs."""
        process = subprocess.Popen(
            self.command(*words, agent=agent),
            env=self.env | dict(env or {}),
            cwd=cwd or self.workspace,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
        )
        try:
            yield process
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait(SECONDS)
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    stream.close()

    def command(self, *words: str, agent: str | None = None) -> list[str]:
        if agent is None:
            return [str(COMMAND), *words]
        alone = agent in ALONE
        command = self.own_process(agent) if alone else self.agent(agent)
        return [str(COMMAND), "--agent-command", command, *words]


@contextmanager
def agents_server(folder: Path) -> Generator[str]:
    """All agents in one process, while this lasts; the socket they are reached by."""
    path = str(folder / "agents")
    server = subprocess.Popen(
        [sys.executable, str(PROGRAMS / "server.py"), path],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        yield path
    finally:
        server.kill()
        server.wait(SECONDS)
        if server.stdout is not None:
            server.stdout.close()


def _environment(home: Path) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return kept | {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        "DRAGOMAN_HOME": str(home / "state"),
        "CI": "1",  # no agent stays after a run, unless a test wants that
    }
