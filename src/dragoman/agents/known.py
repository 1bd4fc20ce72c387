"""The agents that can be started by name alone: how, and where each comes from.

A table of facts. `install` is what a person types to get the agent; `variable` is where it looks
for its key, if it takes one from the environment.
"""

from __future__ import annotations

import sys

import msgspec

from dragoman.errors import DragomanError
from dragoman.transport.stdio import AgentCommand


class UnknownAgent(DragomanError):
    """There is no agent of that name; `settings` is the file where one could be added."""

    def __init__(self, name: str, known: tuple[str, ...], settings: str = "") -> None:
        super().__init__(name, known, settings)
        self.name = name
        self.known = known
        self.settings = settings

    def __str__(self) -> str:
        where = f"; others go into agent_servers in {self.settings}" if self.settings else ""
        return f"there is no agent {self.name!r}; known are: {', '.join(self.known)}{where}"


class KnownAgent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent many people use."""

    name: str
    title: str
    command: str
    args: tuple[str, ...] = ()
    install: str = ""
    variable: str = ""
    homepage: str = ""

    @property
    def built_in(self) -> bool:
        return not self.install


_KNOWN = (
    KnownAgent(
        name="demo",
        title="Dragoman's demo agent",
        command=sys.executable or "python3",
        # -P: a module of the same name in the folder we run in must not be imported instead.
        args=("-P", "-m", "dragoman.testing.demo"),
    ),
    KnownAgent(
        name="claude",
        title="Claude Agent",
        command="claude-agent-acp",
        install="npm install -g @agentclientprotocol/claude-agent-acp",
        variable="ANTHROPIC_API_KEY",
        homepage="https://github.com/agentclientprotocol/claude-agent-acp",
    ),
    KnownAgent(
        name="codex",
        title="Codex",
        command="codex-acp",
        install="npm install -g @agentclientprotocol/codex-acp",
        variable="CODEX_API_KEY",
        homepage="https://github.com/agentclientprotocol/codex-acp",
    ),
    KnownAgent(
        name="gemini",
        title="Gemini CLI",
        command="gemini",
        args=("--acp",),
        install="npm install -g @google/gemini-cli",
        variable="GEMINI_API_KEY",
        homepage="https://geminicli.com",
    ),
    KnownAgent(
        name="opencode",
        title="OpenCode",
        command="opencode",
        args=("acp",),
        install="npm install -g opencode-ai",
        homepage="https://opencode.ai",
    ),
    KnownAgent(
        name="goose",
        title="Goose",
        command="goose",
        args=("acp",),
        install="npm install -g @aaif/goose-acp",
        variable="GOOSE_PROVIDER",
        homepage="https://github.com/block/goose",
    ),
    KnownAgent(
        name="kimi",
        title="Kimi Code",
        command="kimi",
        args=("acp",),
        install="npm install -g @moonshot-ai/kimi-code",
        homepage="https://github.com/MoonshotAI/kimi-cli",
    ),
    KnownAgent(
        name="qwen",
        title="Qwen Code",
        command="qwen",
        args=("--acp",),
        install="npm install -g @qwen-code/qwen-code",
        homepage="https://github.com/QwenLM/qwen-code",
    ),
    KnownAgent(
        name="copilot",
        title="GitHub Copilot CLI",
        command="copilot",
        args=("--acp",),
        install="npm install -g @github/copilot",
        variable="COPILOT_GITHUB_TOKEN",
        homepage="https://github.com/github/copilot-cli",
    ),
    KnownAgent(
        name="cline",
        title="Cline",
        command="cline",
        args=("--acp",),
        install="npm install -g cline",
        homepage="https://cline.bot/cli",
    ),
    KnownAgent(
        name="vibe",
        title="Mistral Vibe",
        command="vibe-acp",
        install="uv tool install mistral-vibe",
        variable="MISTRAL_API_KEY",
        homepage="https://github.com/mistralai/mistral-vibe",
    ),
    KnownAgent(
        name="hermes",
        title="Hermes Agent",
        command="hermes",
        args=("acp",),
        install="uv tool install 'hermes-agent[acp]'",
        homepage="https://github.com/NousResearch/hermes-agent",
    ),
    KnownAgent(
        name="auggie",
        title="Auggie",
        command="auggie",
        args=("--acp",),
        install="npm install -g @augmentcode/auggie",
        variable="AUGMENT_SESSION_AUTH",
        homepage="https://www.augmentcode.com",
    ),
    KnownAgent(
        name="cursor",
        title="Cursor",
        command="cursor-agent",
        args=("acp",),
        install="curl https://cursor.com/install -fsS | bash",
        variable="CURSOR_API_KEY",
        homepage="https://cursor.com/docs/cli/acp",
    ),
    KnownAgent(
        name="droid",
        title="Factory Droid",
        command="droid",
        args=("exec", "--output-format", "acp"),
        install="npm install -g droid",
        variable="FACTORY_API_KEY",
        homepage="https://factory.ai/product/cli",
    ),
)
_BY_NAME = {agent.name: agent for agent in _KNOWN}


def known_agents() -> tuple[KnownAgent, ...]:
    return _KNOWN


def known_command(name: str) -> AgentCommand:
    """How to start a known agent. Raises UnknownAgent."""
    agent = _BY_NAME.get(name)
    if agent is None:
        raise UnknownAgent(name, tuple(_BY_NAME))
    return AgentCommand(agent.command, agent.args)


def known_names() -> tuple[str, ...]:
    return tuple(_BY_NAME)
