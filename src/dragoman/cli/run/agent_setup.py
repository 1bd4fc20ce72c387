"""From options to a client and a configured session: which agent, rules and folders."""

from __future__ import annotations

import argparse
import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import UNSET

from dragoman.agents.known import KnownAgent, known_as
from dragoman.agents.settings.project_settings import ProjectSettings, trusted_settings
from dragoman.agents.settings.settings_file import (
    AgentSettings,
    Settings,
    agent_named,
    load_settings,
)
from dragoman.cli.ask.session_questions import ConnectionAsker
from dragoman.cli.exit_codes import UsageError, tell
from dragoman.cli.options import typed
from dragoman.cli.run.stored_rules import StoredRules
from dragoman.client.client import Client
from dragoman.client.client_options import HostCapabilities, Timeouts
from dragoman.client.mcp import McpServer
from dragoman.data_directory import settings_file
from dragoman.errors import Unsupported
from dragoman.host.fence.fence_terms import FenceTerms, NetworkTerms, at_least, changed_terms
from dragoman.host.rules.policy import Policy, flag_rules
from dragoman.hub.running.settings_launcher import fence_of
from dragoman.lazy_pattern import lazy_pattern
from dragoman.session.facts import MOST_SYSTEM_PROMPT, Offer, OnLimit, SystemPrompt
from dragoman.transport.stdio import AgentCommand
from dragoman.transport.target import ProxyTarget, RemoteAgent, check_proxy, is_remote
from dragoman.transport.transport import Side

if TYPE_CHECKING:
    from dragoman.cli.ask.asker import TerminalAsker
    from dragoman.cli.run.job import Job
    from dragoman.client.sessions.session import Session
    from dragoman.host.rules.rule import Rule
    from dragoman.rpc import Tap

_INTERPRETER = lazy_pattern(r"python[\d.]*|node|ruby|perl|(?:ba|da|z)?sh")


class ChosenAgent(msgspec.Struct, frozen=True):
    """The agent that was chosen, and the settings around it."""

    agent: AgentSettings
    settings: Settings
    known: KnownAgent | None = None
    """What we know about it, if we do."""

    @property
    def command(self) -> AgentCommand:
        if self.agent.command is None:
            name = self.agent.name
            raise UsageError(f"{name} is remote; this needs an agent started by a command")
        return self.agent.command

    @property
    def preset_prompts(self) -> tuple[SystemPrompt | None, SystemPrompt | None]:
        """The system prompts of the settings: for this agent, and for all."""
        own, general = self.agent.system_prompt, self.settings.system_prompt
        return (general if own is UNSET else own), general


def choose_agent(options: argparse.Namespace) -> ChosenAgent:
    """By command, by name, or by default. Raises ConfigError, UnknownAgent or UsageError."""
    choice = _choose(options)
    # Those of this run stand nearest to us.
    proxies = (*map(_proxy, getattr(options, "proxy", ())), *choice.agent.proxies)
    agent = msgspec.structs.replace(choice.agent, proxies=proxies)
    agent = msgspec.structs.replace(agent, offer=agent.offer.within(offer_of(options)))
    files: Side | None = getattr(options, "files", None)
    if files is not None:
        agent = _on_side(agent, files)
    protocol: Literal[1, 2] | None = getattr(options, "protocol", None)
    if protocol is not None:
        agent = msgspec.structs.replace(agent, protocol=protocol)
    return msgspec.structs.replace(choice, agent=agent)


def mcp_servers_of(options: argparse.Namespace, settings: Settings) -> list[McpServer]:
    """Those of the settings and of the files that were named; the last of one name counts. Raises
    ConfigError."""
    servers = settings.mcp_servers
    if options.mcp_config:
        from dragoman.agents.settings.mcp_settings import joined, load_mcp_config

        for path in options.mcp_config:
            servers = joined(servers, load_mcp_config(path))
    return list(servers)


def system_prompt_of(options: argparse.Namespace) -> SystemPrompt | None:
    """What the options say. Raises UsageError."""
    option, text = "--system-prompt", options.system_prompt
    if options.system_prompt_file is not None:
        option = f"--system-prompt-file {options.system_prompt_file}"
        text = _text_of(options.system_prompt_file)
    if text is None:
        if options.system_prompt_mode is not None:
            raise UsageError("--system-prompt-mode needs --system-prompt or --system-prompt-file")
        return None
    try:
        # What the shell passed on may hold bytes that are not text.
        text = os.fsencode(text).decode()
        return SystemPrompt(text, options.system_prompt_mode or "append")
    except ValueError as error:
        reason = "it is not UTF-8 text" if isinstance(error, UnicodeError) else error
        raise UsageError(f"{option}: {reason}") from error


def _text_of(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return os.fsdecode(file.read(MOST_SYSTEM_PROMPT + 1))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"--system-prompt-file {path}: {reason.lower()}") from error


def fence_terms(options: argparse.Namespace, choice: ChosenAgent) -> FenceTerms:
    """Those of the settings, with what was typed."""
    return with_typed(options, choice.settings.fence_of(choice.agent))


def with_typed(options: argparse.Namespace, terms: FenceTerms) -> FenceTerms:
    """What the options say of a fence counts more. Raises UsageError."""
    return changed_terms(terms, getattr(options, "fence", None), typed_network(options))


def typed_network(options: argparse.Namespace) -> NetworkTerms | None:
    """Raises UsageError."""
    text: str | None = getattr(options, "fence_network", None)
    match text:
        case None | "all" | "none":
            return text
        case _:
            return _hosts(text)


def _hosts(text: str) -> tuple[str, ...]:
    from dragoman.host.fence.network.host_patterns import read_patterns  # few commands name any

    hosts = tuple(word.strip() for word in text.split(",") if word.strip())
    try:
        read_patterns(hosts)
    except ValueError as error:
        raise UsageError(f"--fence-network: expected {error}") from error
    return hosts


def offer_of(options: argparse.Namespace) -> Offer:
    """What the flags leave on."""
    return Offer(
        files=not getattr(options, "no_files", False),
        terminals=not getattr(options, "no_terminals", False),
    )


def _on_side(agent: AgentSettings, files: Side) -> AgentSettings:
    command = agent.command
    if command is not None:
        command = msgspec.structs.replace(command, files=files)
    proxies = tuple(msgspec.structs.replace(proxy, files=files) for proxy in agent.proxies)
    return msgspec.structs.replace(agent, files=files, command=command, proxies=proxies)


def _choose(options: argparse.Namespace) -> ChosenAgent:
    if options.agent_command is not None:
        settings = load_settings(options.settings) if options.settings else Settings()
        if (project := _trusted_project(options)) is not None:
            settings = project.over(settings)
        agent = from_command(options.agent_command, session_of=options.agent)
        return ChosenAgent(agent, settings)
    settings = load_settings(options.settings)
    preferred = None
    if (project := _trusted_project(options)) is not None:
        settings, preferred = project.over(settings), project.agent()
    name = options.agent or preferred or next(iter(settings.agents), "demo")
    agent = agent_named(name, settings, os.path.abspath(options.settings or settings_file()))
    program = None if agent.command is None else agent.command.command
    return ChosenAgent(agent, settings, known_as(name, program))


def _trusted_project(options: argparse.Namespace) -> ProjectSettings | None:
    """The project's own settings, if a person has trusted them. Raises ConfigError."""
    if not hasattr(options, "cwd"):
        return None
    told: set[str] = vars(options).setdefault("told_of_projects", set())

    def tell_once(sentence: str) -> None:
        if sentence not in told:
            told.add(sentence)
            tell(sentence)

    # In a worktree, those of the checkout that it was made of: these are what was trusted.
    folder: str = getattr(options, "project", None) or options.cwd or "."
    return trusted_settings(folder, tell_once)


def better_than_demo(options: argparse.Namespace, agent: str) -> str | None:
    """A sentence for a person who named no agent and gets the demo, though there are others."""
    if agent != "demo" or options.agent is not None or options.agent_command is not None:
        return None
    from dragoman.agents.listing import list_agents  # most runs name an agent, or have settings

    installed = [each.name for each in list_agents(Settings()) if each.state == "installed"]
    if not installed or "demo" in load_settings(options.settings).agents:
        return None
    names = ", ".join(installed[:5])
    return (
        f"this is the built-in demo agent, which has no model; installed: {names} (use "
        f"`-a {installed[0]}`, or `dragoman agents default {installed[0]}`)"
    )


def from_command(line: str, *, session_of: str | None = None) -> AgentSettings:
    """The agent of `--agent-command`, by the name it gets: in a session that was recorded by the
    name of its program, by that one. Raises UsageError."""
    target = _target("--agent-command", line)
    if isinstance(target, RemoteAgent):
        return AgentSettings(name=target.name, url=target.url)
    name = program_of(target) if session_of == program_of(target) else _called(target)
    return AgentSettings(name=name, command=target)


def program_of(command: AgentCommand) -> str:
    return os.path.basename(command.command)


def _called(command: AgentCommand) -> str:
    """By its program; where that is an interpreter, by the script or module right after it: rules
    for one script should not hold for all. What follows other options is not guessed at."""
    program = program_of(command)
    match command.args:
        case ("-m", module, *_) if program.startswith("python"):
            script = module
        case (script, *_) if _INTERPRETER.fullmatch(program) and not script.startswith("-"):
            pass
        case _:
            return program
    return os.path.basename(script) or program


def _proxy(line: str) -> ProxyTarget:
    proxy = _target("--proxy", line)
    try:
        check_proxy(proxy)
    except ValueError as error:
        raise UsageError(f"--proxy: {error}") from error
    # Its words may be paths, relative to where they were typed.
    folder = os.getcwd()
    return proxy if isinstance(proxy, RemoteAgent) else msgspec.structs.replace(proxy, cwd=folder)


def _target(option: str, line: str) -> AgentCommand | RemoteAgent:
    """A command, or an address. Raises UsageError."""
    if is_remote(line):
        return _address(option, line)
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"{option} cannot be read: {str(error).lower()}") from error
    if not words:
        raise UsageError(f"{option} is empty")
    return AgentCommand(words[0], tuple(words[1:]))


def _address(option: str, url: str) -> RemoteAgent:
    try:
        return RemoteAgent(url)
    except ValueError as error:
        raise UsageError(f"{option}: {error}") from error


def policy_of(options: argparse.Namespace, stored: StoredRules) -> Policy:
    """The rules of this run: its flags, its file, and what was answered with always before.

    Raises ConfigError for a file that cannot be read or understood.
    """
    return Policy(given_rules(options), stored=stored)


def folders(options: argparse.Namespace, files: Side | None) -> tuple[str, list[str]]:
    """The workspace and its further roots. Raises UsageError for one that is not there; those of
    another machine cannot be looked for."""
    cwd = "." if options.cwd is None else options.cwd
    if files == "there":
        return os.path.abspath(cwd), [os.path.abspath(path) for path in options.add_dir]
    more = [folder("--add-dir", path) for path in options.add_dir]
    return folder("--cwd", cwd), more


def folder(option: str, path: str) -> str:
    if os.path.isdir(path):
        return os.path.abspath(path)
    problem = "not a directory" if os.path.exists(path) else "no such directory"
    raise UsageError(f"{option} {path}: {problem}")


def client_for(
    job: Job,
    asker: TerminalAsker | None,
    offer: Offer,
    *,
    timeout: float | None = None,
    tap: Tap | None = None,
) -> Client:
    """The client of the job's agent, not started yet, which offers at most this; without an asker
    nobody is asked. What a session asks is asked from its record, everything else by the client.

    Raises UsageError for a recording that cannot be written.
    """
    offer = job.agent.offer.within(offer)
    fence = at_least(job.fence, offer.fence)
    # Someone who answers from another window is a person, too.
    is_attended = asker is not None or job.options.on_ask == "wait"
    return Client.start(
        job.command,
        name=job.agent.name,
        policy=job.policy,
        capabilities=HostCapabilities(
            read_files=offer.files,
            write_files=offer.files and could_write(job, attended=is_attended),
            terminals=offer.terminals,
            elicitation=is_attended,
            terminal_sign_in=True,
        ),
        timeouts=_timeouts(timeout, job.question_timeout),
        tap=job.record.beside(tap),
        elicitation=None if asker is None else ConnectionAsker(asker),
        quirks=job.agent.quirks,
        protocol=job.agent.protocol,
        proxies=job.proxies,
        model_providers=job.agent.providers,
        fence=fence_of(fence, [job.cwd, *job.more_folders], job.agent, job.command),
        limits=job.limits,
        on_limit=on_limit_of(job),
    )


def could_write(job: Job, *, attended: bool) -> bool:
    """Whether any write of the agent could be allowed; else it is not offered to write through
    us."""
    return job.policy.could_allow("write", agent=job.agent.name, person=attended)


def _timeouts(seconds: float | None, question: float | None) -> Timeouts:
    """The same limit applies while the agent starts."""
    if seconds is None:
        return Timeouts(question=question)
    return Timeouts(initialize=seconds, control=seconds, progress=seconds, question=question)


async def configure(session: Session, job: Job) -> None:
    """Mode, model and options. Raises UsageError for what is not there."""
    options = job.options
    try:
        if options.mode is not None:
            await session.set_mode(options.mode)
        if options.model is not None:
            await session.set_model(options.model)
        for option, value in job.assignments:
            await session.set_config_option(option, typed(session.state, option, value))
    except (ValueError, Unsupported) as error:
        raise UsageError(str(error)) from error


def on_limit_of(job: Job) -> OnLimit:
    """What was typed, else what the settings say."""
    return job.options.on_limit or job.agent.on_limit or job.on_limit


def typed_rules(options: argparse.Namespace) -> list[str]:
    """The options that say what an agent may do in a turn, as they were typed."""
    words = [f"--policy {shlex.quote(path)}" for path in options.policy]
    words += [f"--{flag}" for flag in ("write", "exec", "yolo") if getattr(options, flag)]
    if getattr(options, "on_ask", None) is not None:
        words.append(f"--on-ask {options.on_ask}")
    return words


def given_rules(options: argparse.Namespace) -> tuple[Rule, ...]:
    """Those of `--policy`, then `--write`, `--exec` and `--yolo`.

    Raises ConfigError for a file that cannot be read or understood.
    """
    flags = flag_rules(write=options.write, execute=options.exec, yolo=options.yolo)
    if not options.policy:
        return flags
    from dragoman.host.rules.policy_file import load_policy  # brings a TOML parser along

    home = str(Path.home())
    loaded = (rule for path in options.policy for rule in load_policy(Path(path), home=home))
    return (*loaded, *flags)
