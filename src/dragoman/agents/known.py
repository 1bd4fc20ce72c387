"""The agents that can be started by name: their commands, sources and known behaviour.

The only table of such facts: `scripts/gen_agent_docs.py` makes `docs/reference/agents.md` of it.
"""

from __future__ import annotations

import os
import sys
from typing import Literal

import msgspec

from dragoman.errors import UnknownAgent
from dragoman.transport.stdio import AgentCommand

_REPORTED = frozenset(("cost", "tokens"))


class KnownAgent(msgspec.Struct, frozen=True, kw_only=True):
    """An agent many people use."""

    name: str
    title: str
    command: str
    args: tuple[str, ...] = ()
    install: str = ""
    """What a person types to get it."""
    needs: str = ""
    """What must be there to run its present version."""
    variable: str = ""
    """Where it looks for its key, if it takes one from the environment."""
    sign_in: str = ""
    """What a person does to sign in, as part of a sentence; names the variable, if there is one."""
    homepage: str = ""
    tried: str = ""
    """The version that `make test-agents` runs."""
    seen: str = ""
    """Of others, the version that was started and asked for its ways to sign in; of one without
    either, this data was collected but not tested."""
    steer: Literal["steering", "run", "pull", "queue"] | None = None
    """How it was seen to take a steer; `queue` if it takes none."""
    subagents: Literal["announced", "calls", "hidden"] | None = None
    """How it was seen to show its subagents: by ACP's own update, as tool calls under a tool call,
    or not at all."""
    undone: Literal["agent", "agent, host"] | None = None
    """Who wrote in a trial in which all that two turns changed was seen and undone."""
    writes_unasked: str = ""
    """When it writes files by itself and asks nobody, as part of a sentence."""
    runs_unasked: str = ""
    """The same for commands."""
    tells: tuple[Literal["cost", "tokens"], ...] | None = None
    """What it was seen to report of what it uses."""
    state: tuple[str, ...] = ()
    """What it keeps in the home directory, such as sessions and its sign-in: in a fence, it alone
    may read and write this. `$NAME` is the value of a variable, if that is set."""
    notes: tuple[str, ...] = ()
    """What works differently, or not at all."""

    @property
    def untold(self) -> frozenset[str]:
        """What it is known not to report."""
        return frozenset() if self.tells is None else _REPORTED.difference(self.tells)

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
        tells=("cost", "tokens"),
    ),
    KnownAgent(
        name="claude",
        title="Claude Agent",
        command="claude-agent-acp",
        state=("~/.claude", "~/.claude.json", "$CLAUDE_CONFIG_DIR"),
        install="npm install -g @agentclientprotocol/claude-agent-acp",
        variable="ANTHROPIC_API_KEY",
        needs="Node 22",
        homepage="https://github.com/agentclientprotocol/claude-agent-acp",
        sign_in=(
            "set `ANTHROPIC_API_KEY`, or sign in with `dragoman agents login claude "
            "claude-ai-login` (or `console-login`), or with `claude` itself"
        ),
        tried="0.99.0",
        steer="steering",
        undone="agent",
        subagents="announced",
        runs_unasked="if the command only reads, such as `ls`",
        notes=(
            "After asking, it writes files and runs commands itself.",
            "As root it refuses to start a session unless `IS_SANDBOX=1` is set.",
        ),
        tells=("cost", "tokens"),
    ),
    KnownAgent(
        name="codex",
        title="Codex",
        command="codex-acp",
        state=("~/.codex", "$CODEX_HOME"),
        install="npm install -g @agentclientprotocol/codex-acp",
        variable="CODEX_API_KEY",
        homepage="https://github.com/agentclientprotocol/codex-acp",
        sign_in=(
            "set `CODEX_API_KEY` and run `dragoman agents login codex api-key` once (the variable "
            "alone is not enough); or sign in to ChatGPT with `dragoman agents login codex "
            "chat-gpt`"
        ),
        tried="2.6.0",
        steer="steering",
        undone="agent",
        runs_unasked="if its own sandbox allows the command",
        notes=(
            "A session belongs to the Codex process that opened it: while that process runs, no "
            "other can load or resume the session, and the error says so.",
            "It uses its own terminals; their output is shown as reported by the agent.",
            "While one of its sessions is open, it may refuse to change its model provider "
            "(`Failed to resume …`).",
            "Older versions end the turn as cancelled when a permission is refused.",
            "It does not exit when its input closes; Dragoman ends it a few seconds later.",
        ),
        tells=("tokens",),
    ),
    KnownAgent(
        name="gemini",
        title="Gemini CLI",
        command="gemini",
        state=("~/.gemini", "$GEMINI_CLI_HOME/.gemini"),
        args=("--acp",),
        install="npm install -g @google/gemini-cli",
        variable="GEMINI_API_KEY",
        homepage="https://geminicli.com",
        sign_in="set `GEMINI_API_KEY`, or run `gemini` once and choose how to authenticate",
        tried="0.61.0",
        steer="queue",
        undone="agent, host",
        runs_unasked="if the command only reads, such as `ls`",
        notes=(
            "Reading a missing file returns empty text (quirk `missing_file`), since it cannot "
            "create files otherwise.",
            "It can load sessions but not list them. Version 0.61 loses a session that is loaded "
            "a second time, or within a minute of its creation: Dragoman then exits with code 4, "
            "and `--on-reset new` continues with an empty session.",
            "A model error is reported as an error of the turn, with the HTTP status as its code.",
        ),
        tells=("tokens",),
    ),
    KnownAgent(
        name="opencode",
        title="OpenCode",
        command="opencode",
        state=(
            "~/.config/opencode",
            "~/.local/share/opencode",
            "~/.local/state/opencode",
            "~/.cache/opencode",
        ),
        args=("acp",),
        install="npm install -g opencode-ai",
        homepage="https://opencode.ai",
        sign_in="run `opencode auth login`",
        tried="1.18.33",
        steer="queue",
        undone="agent, host",
        writes_unasked="unless its setting `permission` says `ask`",
        runs_unasked="unless its setting `permission` says `ask`",
        notes=(
            "It does not pass on the permission requests of its subagents: the turn waits until "
            "you cancel it. In its `permission` setting, allow what the subagents need.",
            "It sends its plan as a tool call, not as an ACP plan.",
            "After asking, it runs commands itself: `--exec` allows them, and their output is in "
            "the tool call.",
        ),
        tells=("cost", "tokens"),
    ),
    KnownAgent(
        name="goose",
        title="Goose",
        command="goose",
        state=("~/.config/goose", "~/.local/share/goose", "~/.local/state/goose"),
        args=("acp",),
        install="npm install -g @aaif/goose-acp",
        variable="GOOSE_PROVIDER",
        homepage="https://github.com/aaif-goose/goose",
        sign_in=(
            "run `goose configure`; or set `GOOSE_PROVIDER` to the provider's name, `GOOSE_MODEL`, "
            "and the provider's API key variable"
        ),
        tried="1.50.0",
        steer="run",
        undone="agent, host",
        writes_unasked="in its mode `auto`, if Dragoman does not offer writes",
        notes=(
            "It labels every permission request `other`. Dragoman knows what its own tools do, so "
            "flags and rules for files and commands apply to them. Calls of other tools need "
            "`--yolo`, an answer, or a rule that allows `other`.",
            "File access and commands go through Dragoman, which checks them again.",
            'After "Always allow" it no longer asks about that tool, but Dragoman does: Goose sets '
            "a variable for each command, and no rule matches a command with variables. Choose "
            '"Allow more than this once" (on the page, "Allow more…") instead: then Goose asks, '
            "and the rule answers.",
        ),
        tells=("tokens",),
    ),
    KnownAgent(
        name="kimi",
        title="Kimi Code",
        command="kimi",
        state=("~/.kimi-code", "$KIMI_CODE_HOME"),
        args=("acp",),
        install="npm install -g @moonshot-ai/kimi-code",
        needs="Node 22.19",
        homepage="https://github.com/MoonshotAI/kimi-code",
        sign_in=(
            "run `kimi` and type `/login`, or write a provider into "
            "`~/.kimi-code/config.toml`; it does not read keys from the environment"
        ),
        tried="2.1.0",
        steer="queue",
        undone="agent, host",
        subagents="hidden",
        writes_unasked="in a git repository, if Dragoman does not offer writes",
        notes=(
            "Its permission requests contain only the beginning of a command. Dragoman takes the "
            "rest from what Kimi showed before.",
            "In a git repository it writes files without asking. If Dragoman offers file writes, "
            "they go through Dragoman, which checks them. Without `--write`, a rule or a person to "
            "ask, Dragoman does not offer writes, and Kimi writes files itself.",
            "It does not report model errors: the turn ends without a message.",
        ),
        tells=(),
    ),
    KnownAgent(
        name="qwen",
        title="Qwen Code",
        command="qwen",
        state=("~/.qwen", "$QWEN_HOME"),
        args=("--acp",),
        install="npm install -g @qwen-code/qwen-code",
        needs="Node 22",
        variable="OPENAI_API_KEY",
        homepage="https://github.com/QwenLM/qwen-code",
        sign_in=(
            "set both `OPENAI_API_KEY` and `OPENAI_MODEL` (and `OPENAI_BASE_URL` for another "
            "service); or run `qwen` once and choose how to authenticate"
        ),
        tried="0.24.4",
        steer="pull",
        undone="agent, host",
        subagents="calls",
        writes_unasked="in its mode `auto`, if Dragoman does not offer writes",
        runs_unasked="if the command only reads, such as `ls`",
        notes=(
            "It can load, list and resume sessions, but not fork, close or delete them.",
            "It starts in mode `auto`, in which it does not ask before editing. If Dragoman offers "
            "file writes, the edits go through Dragoman, which checks them. Without `--write`, a "
            "rule or a person to ask, Dragoman does not offer writes, and Qwen edits files itself "
            "without asking. Use `--mode default`.",
            "It sends its questions as permission requests.",
            "It runs subagents in the background unless its model decides otherwise. Background "
            "subagents cannot ask for permission: whatever needs it is refused, and their steps "
            "are not shown.",
            "Its command list can be large (half a megabyte has been seen).",
        ),
        tells=("tokens",),
    ),
    KnownAgent(
        name="copilot",
        title="GitHub Copilot CLI",
        command="copilot",
        state=("~/.copilot", "$COPILOT_HOME"),
        args=("--acp",),
        install="npm install -g @github/copilot",
        variable="COPILOT_GITHUB_TOKEN",
        homepage="https://github.com/github/copilot-cli",
        sign_in=(
            "set `COPILOT_GITHUB_TOKEN`, or run `copilot login`; it also uses a GitHub CLI login"
        ),
        seen="1.0.102",
        notes=("It can load, list and close sessions, but not resume, fork or delete them.",),
    ),
    KnownAgent(
        name="cline",
        title="Cline",
        command="cline",
        state=("~/.cline",),
        args=("--acp",),
        install="npm install -g cline",
        homepage="https://cline.bot/cli",
        sign_in="run `cline auth`, or `dragoman agents login cline cline`",
        seen="3.0.65",
        notes=(
            "It can load sessions, but not list, resume, fork, close or delete them.",
            "It edits files and runs commands itself. In one trial it wrote a file although the "
            "request had been refused.",
            "It starts a daemon outside its process group; Dragoman ends that too.",
        ),
    ),
    KnownAgent(
        name="vibe",
        title="Mistral Vibe",
        command="vibe-acp",
        state=("~/.vibe", "$VIBE_HOME"),
        install="uv tool install mistral-vibe",
        needs="Python 3.12",
        variable="MISTRAL_API_KEY",
        homepage="https://github.com/mistralai/mistral-vibe",
        sign_in="set `MISTRAL_API_KEY`, or run `vibe --setup`",
        seen="3.0.3",
        notes=(
            "It edits files and runs commands itself. To allow a command, `--exec` and `--yolo` "
            "choose the narrowest option that Vibe offers.",
        ),
    ),
    KnownAgent(
        name="hermes",
        title="Hermes Agent",
        command="hermes",
        state=("~/.hermes", "$HERMES_HOME"),
        args=("acp",),
        install="uv tool install 'hermes-agent[acp]'",
        homepage="https://github.com/NousResearch/hermes-agent",
        sign_in="run `hermes setup`",
        tried="0.19.0",
        steer="queue",
        undone="agent",
        runs_unasked="if the command does not look risky to Hermes",
        notes=(
            "It edits files and runs commands itself; `dragoman sessions revert` can undo its "
            "edits.",
            "It cannot close or delete sessions. Resuming one replays its history, which Dragoman "
            "keeps apart from new events.",
        ),
        tells=("tokens",),
    ),
    KnownAgent(
        name="openhands",
        title="OpenHands",
        command="openhands",
        state=("~/.openhands",),
        args=("acp",),
        install="uv tool install openhands --python 3.12",
        needs="Python 3.12",
        homepage="https://github.com/OpenHands/OpenHands-CLI",
        sign_in="run `openhands` once and choose a model",
        seen="1.16.0",
        notes=(
            "It edits files and runs commands itself; `dragoman sessions revert` can undo its "
            "edits.",
            "It asks once for all its pending actions: they are shown together, and the flags and "
            "rules have to allow each of them.",
        ),
    ),
    KnownAgent(
        name="pi",
        title="Pi",
        command="pi-acp",
        state=("~/.pi", "$PI_CODING_AGENT_DIR"),
        install="npm install -g @earendil-works/pi-coding-agent pi-acp",
        needs="Node 22.19",
        homepage="https://github.com/svkozak/pi-acp",
        sign_in="run `pi` and type `/login`, or set the key variable of a provider",
        notes=(
            "This is an adapter for Pi. Pi reads and writes files and runs commands without "
            "asking; only `--fence` limits that.",
            "It uses its own terminals; their output is shown.",
        ),
    ),
    KnownAgent(
        name="amp",
        title="Amp",
        command="acp-amp",
        state=("~/.config/amp", "~/.local/share/amp", "~/.cache/amp"),
        args=("run",),
        install="uv tool install acp-amp",
        variable="AMP_API_KEY",
        homepage="https://github.com/SuperagenticAI/acp-amp",
        sign_in="set `AMP_API_KEY`, or run `amp login`",
        notes=("A third-party adapter for Amp; it requires a paid balance.",),
    ),
    KnownAgent(
        name="auggie",
        title="Auggie",
        command="auggie",
        state=("~/.augment",),
        args=("--acp",),
        install="npm install -g @augmentcode/auggie",
        variable="AUGMENT_SESSION_AUTH",
        homepage="https://www.augmentcode.com",
        sign_in="set `AUGMENT_SESSION_AUTH`, or run `auggie login`",
        seen="0.36.0",
        notes=(
            "It can load and list sessions, but not resume, fork, close or delete them.",
            "Signing in through Dragoman is not supported.",
        ),
    ),
    KnownAgent(
        name="cursor",
        title="Cursor",
        command="cursor-agent",
        state=("~/.cursor", "~/.config/cursor"),
        args=("acp",),
        install="curl https://cursor.com/install -fsS | bash",
        variable="CURSOR_API_KEY",
        homepage="https://cursor.com/docs/cli/acp",
        sign_in="set `CURSOR_API_KEY`, or run `cursor-agent login`",
    ),
    KnownAgent(
        name="droid",
        title="Factory Droid",
        command="droid",
        state=("~/.factory",),
        args=("exec", "--output-format", "acp"),
        install="npm install -g droid",
        variable="FACTORY_API_KEY",
        homepage="https://factory.ai/product/cli",
        sign_in=(
            "set `FACTORY_API_KEY`, or sign in with `dragoman agents login droid device-pairing`"
        ),
        seen="0.215.0",
        notes=("It can load, list and resume sessions, but not fork, close or delete them.",),
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


def known_as(name: str, command: str | None) -> KnownAgent | None:
    """What is known of an agent of the settings, found by its name or by the program it runs."""
    program = os.path.basename(command or "")
    fitting = [each for each in _KNOWN if not each.built_in and program == each.command]
    return _BY_NAME.get(name) or next(iter(fitting), None)


def known_names() -> tuple[str, ...]:
    return tuple(_BY_NAME)
