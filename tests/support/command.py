"""The installed command, run as a user would run it: a home of its own, bounded, nothing shared."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

SECONDS = 30.0
COMMAND = Path(sys.executable).parent / "dragoman"
AGENTS = Path(__file__).parents[1] / "cli" / "programs" / "agents.py"

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


class Dragoman:
    """A user with a home, a workspace, and settings that name agents of `programs/agents.py`."""

    def __init__(self, home: Path, compiled: str) -> None:
        self.home = home
        self.state = home / "state"
        self.settings = home / "config" / "dragoman" / "settings.json"
        self.workspace = home / "workspace"
        self.workspace.mkdir()
        self.env = _environment(home, compiled)

    def write_settings(self, settings: object) -> Path:
        self.settings.parent.mkdir(parents=True, exist_ok=True)
        text = settings if isinstance(settings, str) else json.dumps(settings)
        self.settings.write_text(text)
        return self.settings

    def agent(self, name: str) -> str:
        """The options that choose an agent of ours."""
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
        with self.started(*words, agent=agent, env=env, cwd=cwd) as process:
            data = stdin.encode() if isinstance(stdin, str) else stdin
            out, err = process.communicate(data or b"", timeout=seconds)
        return Done(process.returncode, out.decode(), err.decode())

    @contextmanager
    def started(
        self,
        *words: str,
        agent: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        **streams: Any,
    ) -> Generator[subprocess.Popen[bytes]]:
        """Started and not waited for; killed at the end if it still runs."""
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            self.command(*words, agent=agent),
            env=self.env | (env or {}),
            cwd=cwd or self.workspace,
            **({"stdin": pipe, "stdout": pipe, "stderr": pipe} | streams),
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
        chosen = [] if agent is None else ["--agent-command", self.agent(agent)]
        return [str(COMMAND), *chosen, *words]


def _environment(home: Path, compiled: str) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return kept | {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / "config"),
        "XDG_DATA_HOME": str(home / "data"),
        "DRAGOMAN_HOME": str(home / "state"),
        "PYTHONPYCACHEPREFIX": compiled,
    }
