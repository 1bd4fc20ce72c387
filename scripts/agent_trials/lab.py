"""The lab: a folder outside this project that runs real agents against a stand-in for the model.

Found by $DRAGOMAN_LAB; `lab run NAME -- COMMAND` gives the command $LAB_SETTINGS and $LAB_CWD.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec

from agent_trials.model_relay import ModelRelay
from dragoman import AgentCommand, Client
from dragoman.agents.agent_fence import agent_fence
from dragoman.agents.known import KnownAgent, known_as
from dragoman.host.fence.fence import Fence
from dragoman.host.fence.fence_terms import FenceTerms, NetworkTerms

_LEFT_OUT = ("ts-http", "ts-ws")
"""They are not started but reached, which the tests of the transports try."""

_KNOWN_AS = {"kimicode": "kimi"}
"""Agents that the lab calls by another name."""
READ = "read.txt"
"""The file that the prompt `reading` is about."""
_SECONDS = 60.0

FenceChoice = Literal["none", "all", "hosts"]
"""No fence, one with the whole network, or one from which only the model is reached."""


class LabAgent(msgspec.Struct, frozen=True):
    """An agent of the lab, and the prompts that make it do things in one workspace."""

    name: str
    command: str
    args: list[str]
    env: dict[str, str]
    prompts: dict[str, str]
    workspace: str
    fence: FenceTerms
    lab: str

    def client(self, env: dict[str, str], **options: Any) -> Client:
        """Starts it in its workspace, with more variables."""
        command = AgentCommand(self.command, tuple(self.args), self.env | env, self.workspace)
        return Client.start(command, name=self.name, fence=self._fence(command), **options)

    def _fence(self, command: AgentCommand) -> Fence | None:
        if self.fence.mode == "off":
            return None
        return agent_fence(self.fence, [self.workspace], self.name, command)

    @asynccontextmanager
    async def behind_relay(self) -> AsyncGenerator[tuple[LabAgent, ModelRelay]]:
        """The agent with a relay before its model. Its configuration is put back in the end."""
        async with ModelRelay(os.environ["LAB_BASE"]).serving() as relay:
            try:
                yield self._with_model_at(relay.base), relay
            finally:
                self._with_model_at(os.environ["LAB_BASE"])

    def _with_model_at(self, base: str) -> LabAgent:
        words = ("settings", self.name, "--base", base, "--cwd", self.workspace)
        server = json.loads(_lab(Path(self.lab), *words))["agent_servers"][self.name]
        command, args, env = (server[key] for key in ("command", "args", "env"))
        fence = self.fence
        if fence.network != "all":
            fence = msgspec.structs.replace(fence, network=(urlsplit(base).netloc,))
        return msgspec.structs.replace(self, command=command, args=args, env=env, fence=fence)

    @property
    def known(self) -> KnownAgent | None:
        """What the table of agents says of it."""
        return known_as(_KNOWN_AS.get(self.name, self.name), None)

    @property
    def has_model(self) -> bool:
        """Whether prompts are directives to the stand-in; the examples of SDKs have no model."""
        return "think" in self.prompts

    @property
    def hello(self) -> str:
        """What is in the answer to `say`, if that is known."""
        return {"ts-agent": "", "ts-v2": "Hello"}.get(self.name, "hello")

    @property
    def fine(self) -> tuple[int, ...]:
        """The exit codes of a turn in which everything was allowed that may be.

        The example that plays a scene claims to write outside the workspace, which is never
        allowed."""
        return (0, 5) if self._is_play else (0,)

    @property
    def _is_play(self) -> bool:
        return self.name == "ts-agent"

    @property
    def asking(self) -> list[str]:
        """Flags with which it asks before it edits. In the mode in which Qwen Code starts it does
        not, where we offer no writing of files because nothing could allow it."""
        return ["--mode", "default"] if self.name == "qwen" else []

    @property
    def reading(self) -> str | None:
        """A prompt that makes it read `READ`, if it has a way to."""
        path = READ if self.name == "gemini" else f"{self.workspace}/{READ}"
        match self.name:
            case "claude" | "gemini" | "qwen":
                tool = "Read" if self.name == "claude" else "read_file"
                return f"tool:{tool} {json.dumps({'file_path': path})}"
            case "hermes" | "kimicode":
                tool = "Read" if self.name == "kimicode" else "read_file"
                return f"tool:{tool} {json.dumps({'path': path})}"
            case "opencode":
                return f"tool:read {json.dumps({'filePath': path})}"
            case "codex":
                return f"tool:exec_command {json.dumps({'cmd': f'cat {READ}'})}"
            case _:
                return None

    @property
    def holds_sessions(self) -> bool:
        """Codex lets no other process have a session that it has opened, not even closed."""
        return self.name == "codex"

    @property
    def loads_once(self) -> bool:
        """Gemini CLI starts a new record when it loads it, and finds the empty one next time."""
        return self.name == "gemini"

    async def settled(self) -> None:
        """Wait until a session that was just made can be loaded.

        Gemini CLI names its files by the minute: loading within the same one writes over what is
        to be loaded."""
        if self.name == "gemini":
            await asyncio.sleep(61 - time.time() % 60)

    @property
    def slow(self) -> str | None:
        """A prompt that leaves time to do something in the middle of the turn, if there is one."""
        if self.has_model:
            return "slow:120"
        return self.prompts["say"] if self._is_play else None


def installed(lab: Path) -> list[str]:
    """The names of the agents that are there."""
    lines = _lab(lab, "list").splitlines()
    words = [line.split(maxsplit=2) for line in lines]
    return [w[0] for w in words if w[1] == "installed" and w[0] not in _LEFT_OUT]


def inside(lab: Path, name: str, workspace: Path, fence: FenceChoice = "none") -> LabAgent:
    """Within `lab run`: the agent, with prompts for this workspace."""
    settings = json.loads(Path(os.environ["LAB_SETTINGS"]).read_text())
    server = settings["agent_servers"][name]
    prompts = json.loads(_lab(lab, "prompts", name, "--cwd", str(workspace)))
    command, args, env = (server[key] for key in ("command", "args", "env"))
    return LabAgent(name, command, args, env, prompts, str(workspace), _terms(fence), str(lab))


def _terms(fence: FenceChoice) -> FenceTerms:
    if fence == "none":
        return FenceTerms()
    model = urlsplit(os.environ["LAB_BASE"]).netloc
    network: NetworkTerms = "all" if fence == "all" else (model,)
    return FenceTerms(mode="require", network=network)


def _lab(lab: Path, *words: str) -> str:
    done = subprocess.run(
        [lab / "lab", *words], capture_output=True, text=True, check=True, timeout=_SECONDS
    )
    return done.stdout
