"""The agents that can be started by name alone: how, where each comes from, what is known of it.

The only table of such facts: `scripts/gen_agent_docs.py` makes `docs/reference/agents.md` of it.
"""

from __future__ import annotations

import os
import sys

import msgspec

from dragoman.errors import UnknownAgent
from dragoman.transport.stdio import AgentCommand


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
    either, what stands here was collected and not tried."""
    notes: tuple[str, ...] = ()
    """What works differently, or not at all."""

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
        needs="Node 22",
        homepage="https://github.com/agentclientprotocol/claude-agent-acp",
        sign_in=(
            "set `ANTHROPIC_API_KEY`, or log in with `dragoman agents login claude "
            "claude-ai-login` (or `console-login`), or with `claude` itself"
        ),
        tried="0.99.0",
        notes=(
            "It writes and runs by itself after it asked, so there is nothing to revert.",
            "As root it starts no session, unless `IS_SANDBOX=1` is set; it says so.",
        ),
    ),
    KnownAgent(
        name="codex",
        title="Codex",
        command="codex-acp",
        install="npm install -g @agentclientprotocol/codex-acp",
        variable="CODEX_API_KEY",
        homepage="https://github.com/agentclientprotocol/codex-acp",
        sign_in=(
            "set `CODEX_API_KEY` and once run `dragoman agents login codex api-key`, the variable "
            "alone is not enough; or sign in to ChatGPT with `dragoman agents login codex chat-gpt`"
        ),
        tried="2.6.0",
        notes=(
            "A session belongs to the Codex process that opened it: while that process runs, no "
            "other can load or resume the session, and the error says so.",
            "Its terminals are its own: what they print is shown as its word.",
            "Older versions end the turn as cancelled when a permission is refused.",
            "It does not leave when its input closes; it is ended a few seconds later.",
        ),
    ),
    KnownAgent(
        name="gemini",
        title="Gemini CLI",
        command="gemini",
        args=("--acp",),
        install="npm install -g @google/gemini-cli",
        variable="GEMINI_API_KEY",
        homepage="https://geminicli.com",
        sign_in="set `GEMINI_API_KEY`, or run `gemini` once and choose how to authenticate",
        tried="0.61.0",
        notes=(
            "Reading a file that is not there answers an empty text (quirk `missing_file`): "
            "it cannot create files otherwise.",
            "It can load sessions, not list them. 0.61 loses a session that is loaded within the "
            "minute in which it was made, or a second time; exit code 4 then says so, and "
            "`--on-reset new` goes on without its memory.",
            "An error of the model is an error of the turn, with the HTTP status as its code.",
        ),
    ),
    KnownAgent(
        name="opencode",
        title="OpenCode",
        command="opencode",
        args=("acp",),
        install="npm install -g opencode-ai",
        homepage="https://opencode.ai",
        sign_in="run `opencode auth login`",
        tried="1.18.33",
        notes=(
            "Its plan is a tool call, not a plan.",
            "It runs commands by itself after it asked: `--exec` allows them, the output is "
            "in the tool call.",
        ),
    ),
    KnownAgent(
        name="goose",
        title="Goose",
        command="goose",
        args=("acp",),
        install="npm install -g @aaif/goose-acp",
        variable="GOOSE_PROVIDER",
        homepage="https://github.com/aaif-goose/goose",
        sign_in=(
            "run `goose configure`; or set `GOOSE_PROVIDER` to the provider's name, `GOOSE_MODEL`, "
            "and the provider's own variable for its key"
        ),
        tried="1.50.0",
        notes=(
            "It calls everything it asks for `other`, so `--write` and `--exec` alone do not "
            "allow it: say `--yolo`, answer at a terminal, or allow `other` for it with a "
            "rule. Files and commands go through the host all the same and are checked there.",
        ),
    ),
    KnownAgent(
        name="kimi",
        title="Kimi Code",
        command="kimi",
        args=("acp",),
        install="npm install -g @moonshot-ai/kimi-code",
        needs="Node 22.19",
        homepage="https://github.com/MoonshotAI/kimi-code",
        sign_in=(
            "run `kimi` and type `/login`, or write a provider into "
            "`~/.kimi-code/config.toml`; it takes no key from the environment"
        ),
        tried="2.1.0",
        notes=(
            "Its requests for permission do not say what they are for. Whoever is asked is "
            "asked a second time, by the host, with the file or the command; without anyone "
            "to ask, only `--yolo` allows them.",
            "Of an error of the model it says nothing: the turn ends without a word.",
        ),
    ),
    KnownAgent(
        name="qwen",
        title="Qwen Code",
        command="qwen",
        args=("--acp",),
        install="npm install -g @qwen-code/qwen-code",
        needs="Node 22",
        variable="OPENAI_API_KEY",
        homepage="https://github.com/QwenLM/qwen-code",
        sign_in=(
            "set `OPENAI_API_KEY` and `OPENAI_MODEL`, one without the other is not enough "
            "(`OPENAI_BASE_URL` for another service); or run `qwen` once and choose how to "
            "authenticate"
        ),
        tried="0.24.4",
        notes=(
            "It offers load, list and resume; not fork, close or delete.",
            "It starts in its mode `auto`, in which it does not ask before it edits. Its edits go "
            "through the host, and are checked there, wherever writing is offered. Without "
            "`--write`, a rule or someone to ask, writing is not offered; Qwen then edits files "
            "itself, unasked. Use `--mode default`.",
            "It asks questions as requests for permission.",
            "Its list of commands can be large (half a megabyte was seen).",
        ),
    ),
    KnownAgent(
        name="copilot",
        title="GitHub Copilot CLI",
        command="copilot",
        args=("--acp",),
        install="npm install -g @github/copilot",
        variable="COPILOT_GITHUB_TOKEN",
        homepage="https://github.com/github/copilot-cli",
        sign_in=(
            "set `COPILOT_GITHUB_TOKEN`, or run `copilot login`; a login of the GitHub CLI is "
            "found too"
        ),
        seen="1.0.102",
        notes=("It offers load, list and close; not resume, fork or delete.",),
    ),
    KnownAgent(
        name="cline",
        title="Cline",
        command="cline",
        args=("--acp",),
        install="npm install -g cline",
        homepage="https://cline.bot/cli",
        sign_in="run `cline auth`, or `dragoman agents login cline cline`",
        seen="3.0.65",
        notes=(
            "It offers load; not list, resume, fork, close or delete.",
            "It edits files and runs commands by itself, so there is nothing to revert. In one "
            "trial it wrote a file although the request had been refused.",
            "It leaves a daemon running outside its process group; that is ended with it.",
        ),
    ),
    KnownAgent(
        name="vibe",
        title="Mistral Vibe",
        command="vibe-acp",
        install="uv tool install mistral-vibe",
        needs="Python 3.12",
        variable="MISTRAL_API_KEY",
        homepage="https://github.com/mistralai/mistral-vibe",
        sign_in="set `MISTRAL_API_KEY`, or run `vibe --setup`",
        seen="3.0.3",
        notes=(
            "It edits files and runs commands by itself, so there is nothing to revert. Of its "
            "ways to allow a command, `--exec` and `--yolo` take the narrowest.",
        ),
    ),
    KnownAgent(
        name="hermes",
        title="Hermes Agent",
        command="hermes",
        args=("acp",),
        install="uv tool install 'hermes-agent[acp]'",
        homepage="https://github.com/NousResearch/hermes-agent",
        sign_in="run `hermes setup`",
        tried="0.19.0",
        notes=(
            "It edits files and runs commands by itself, so there is nothing to revert.",
            "It cannot close or delete sessions. Resuming one tells its history again, which "
            "is kept apart from what is new.",
        ),
    ),
    KnownAgent(
        name="openhands",
        title="OpenHands",
        command="openhands",
        args=("acp",),
        install="uv tool install openhands --python 3.12",
        needs="Python 3.12",
        homepage="https://github.com/OpenHands/OpenHands-CLI",
        sign_in="run `openhands` once and choose a model",
        seen="1.16.0",
        notes=(
            "It edits files and runs commands by itself, so there is nothing to revert.",
            "It asks once for all its pending actions: they are shown together, and the flags and "
            "rules have to allow each of them.",
        ),
    ),
    KnownAgent(
        name="pi",
        title="Pi",
        command="pi-acp",
        install="npm install -g @earendil-works/pi-coding-agent pi-acp",
        needs="Node 22.19",
        homepage="https://github.com/svkozak/pi-acp",
        sign_in="run `pi` and type `/login`, or set the key variable of a provider",
        notes=(
            "An adapter around Pi, which reads, writes and runs by itself and asks nobody: no flag "
            "and no rule stops it.",
            "Its terminals are its own: what they print is shown.",
        ),
    ),
    KnownAgent(
        name="amp",
        title="Amp",
        command="acp-amp",
        args=("run",),
        install="uv tool install acp-amp",
        variable="AMP_API_KEY",
        homepage="https://github.com/SuperagenticAI/acp-amp",
        sign_in="set `AMP_API_KEY`, or run `amp login`",
        notes=("An adapter around Amp by others; it needs a paid balance.",),
    ),
    KnownAgent(
        name="auggie",
        title="Auggie",
        command="auggie",
        args=("--acp",),
        install="npm install -g @augmentcode/auggie",
        variable="AUGMENT_SESSION_AUTH",
        homepage="https://www.augmentcode.com",
        sign_in="set `AUGMENT_SESSION_AUTH`, or run `auggie login`",
        seen="0.36.0",
        notes=(
            "It offers load and list; not resume, fork, close or delete.",
            "It cannot be signed in to through us.",
        ),
    ),
    KnownAgent(
        name="cursor",
        title="Cursor",
        command="cursor-agent",
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
        args=("exec", "--output-format", "acp"),
        install="npm install -g droid",
        variable="FACTORY_API_KEY",
        homepage="https://factory.ai/product/cli",
        sign_in=(
            "set `FACTORY_API_KEY`, or log in with `dragoman agents login droid device-pairing`"
        ),
        seen="0.215.0",
        notes=("It offers load, list and resume; not fork, close or delete.",),
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
