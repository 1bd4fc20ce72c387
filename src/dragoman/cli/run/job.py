"""The work of a run, validated as far as possible before an agent is started."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from dragoman.agents.known import KnownAgent
from dragoman.agents.settings.settings_file import AgentSettings
from dragoman.cli.exit_codes import UsageError, tell
from dragoman.cli.options import LISTS, Assignment, assignment
from dragoman.cli.run import agent_setup
from dragoman.cli.run.frame_output import FrameFile
from dragoman.cli.run.given_limits import limits_of
from dragoman.cli.run.stored_rules import StoredRules
from dragoman.cli.warm.front import CAN_STAY
from dragoman.client.mcp import McpServer
from dragoman.client.sessions.prompts import MAX_ATTACHMENT_BYTES, MAX_JSON_BYTES, check_size
from dragoman.errors import CommandNotFound, CommandRefused, SessionNotContinued, UnknownAgent
from dragoman.host.fence.fence_terms import NO_FENCE, FenceTerms
from dragoman.host.rules.policy import Policy
from dragoman.host.snapshots.snapshot_limits import SnapshotLimits
from dragoman.hub.running.settings_launcher import run_in
from dragoman.hub.session_records import workspace_of
from dragoman.session.content import Audio, Content, Image, Resource, ResourceLink, Text
from dragoman.session.facts import OnLimit, SystemPrompt
from dragoman.session.limits.model_prices import all_prices
from dragoman.session.limits.prices import Prices
from dragoman.session.limits.spending_limits import SpendingLimit
from dragoman.store.records import SessionRecord
from dragoman.transport.stdio import AgentCommand
from dragoman.transport.target import ProxyTarget, RemoteAgent

if TYPE_CHECKING:
    from dragoman.client.asking.result_tool import ResultTool
    from dragoman.results.wanted_result import WantedResult

KEEP_WARM_SECONDS = 300.0
"""How long an agent stays unless the settings or the options say otherwise."""


class Job(msgspec.Struct, kw_only=True):
    """`prompt` is what was typed; None when there are only lists to print."""

    options: argparse.Namespace
    agent: AgentSettings
    known: KnownAgent | None
    command: AgentCommand | RemoteAgent
    proxies: list[ProxyTarget]
    mcp_servers: list[McpServer]
    preset_prompts: tuple[SystemPrompt | None, SystemPrompt | None]
    """The system prompts of the settings for new sessions: of this agent, and of all agents."""
    system_prompt: SystemPrompt | None
    """What the options say."""
    enter: Literal["queue", "steer"]
    """What Enter does in a chat while a turn runs."""
    notify: Literal["off", "bell", "osc9", "osc777"]
    """How a chat notifies the person."""
    rules: StoredRules
    policy: Policy
    cwd: str
    more_folders: list[str]
    assignments: list[Assignment]
    asks: bool
    prompt: list[Content] | None
    record: FrameFile
    fence: FenceTerms = NO_FENCE
    snapshots: SnapshotLimits = SnapshotLimits()
    limits: tuple[SpendingLimit, ...] = ()
    on_limit: OnLimit = "fail"
    """That of the settings for all agents."""
    question_timeout: float | None = None
    prices: Prices = {}
    """Of models."""
    keep_warm: float | None = None
    """That of the settings."""
    mentions: bool = True
    """Whether `@NAME` in the prompt means a file: not in code that is quoted there."""
    continues: SessionRecord | None = None
    """The session of another agent whose work this one continues in a new session."""
    wanted: WantedResult[Any] | None = None
    """What the answer has to be, if it is to be of a type."""
    result_tool: ResultTool | None = None
    """With which the agent submits that."""

    @property
    def stays(self) -> float:
        """How many seconds its agent stays after the run."""
        typed: float | None = getattr(self.options, "keep_warm", None)  # only runs have it
        if typed is not None:
            return typed
        return KEEP_WARM_SECONDS if self.keep_warm is None else self.keep_warm

    @property
    def program(self) -> str:
        """What is run, or where the agent is; nothing that could be a secret."""
        command = self.command
        return command.place if isinstance(command, RemoteAgent) else command.command

    @property
    def files_are_here(self) -> bool:
        return all(each.files == "here" for each in (self.command, *self.proxies))

    def with_hint(self, error: CommandNotFound) -> CommandNotFound:
        """The same error, and what to do about it if we know that."""
        if self.known is not None and self.known.install:
            hint = f"to install: {self.known.install}"
        elif "$" in error.command:
            hint = "variables are not expanded, only a leading ~"
        elif " " in error.command:
            hint = "arguments go into args, one string each"
        else:
            return error
        return CommandNotFound(error.command, f"{error.reason}; {hint}")


def prepare(
    options: argparse.Namespace,
    *,
    asks: bool,
    rules: StoredRules | None = None,
    record: FrameFile | None = None,
) -> Job:
    """All but a prompt. Raises UsageError, ConfigError or UnknownAgent."""
    _check_stay(options)
    if options.no_store and (options.session is not None or options.continues):
        option = "--continue" if options.continues else "--session"
        raise UsageError(f"{option} needs the store; remove --no-store")
    if options.save_session is not None:
        _check_place(options.save_session)
    choice = agent_setup.choose_agent(options)
    cwd, more_folders = agent_setup.folders(options, choice.agent.files)
    command = choice.agent.target
    if options.agent_command is None:
        command = run_in(command, cwd)
    rules = rules or StoredRules()
    return Job(
        options=options,
        agent=choice.agent,
        known=choice.known,
        command=command,
        proxies=[run_in(proxy, cwd) for proxy in choice.agent.proxies],
        mcp_servers=agent_setup.mcp_servers_of(options, choice.settings),
        preset_prompts=choice.preset_prompts,
        system_prompt=agent_setup.system_prompt_of(options),
        enter=choice.settings.enter,
        notify=choice.settings.notify,
        rules=rules,
        policy=agent_setup.policy_of(options, rules),
        cwd=cwd,
        more_folders=more_folders,
        assignments=[assignment(text) for text in options.set],
        asks=asks,
        prompt=None,
        record=record or FrameFile(options.record),
        fence=agent_setup.fence_terms(options, choice),
        snapshots=choice.settings.snapshots,
        limits=limits_of(options, choice, cwd),
        on_limit=choice.settings.on_limit,
        prices=all_prices(choice.settings.prices),
        keep_warm=choice.settings.keep_warm,
        question_timeout=options.question_timeout or choice.settings.question_timeout,
    )


def _check_stay(options: argparse.Namespace) -> None:
    """Whether an agent can stay, where that was asked for. Raises UsageError."""
    if not getattr(options, "keep_warm", None):
        return
    if not CAN_STAY:
        raise UsageError("--keep-warm needs Linux; here, an agent ends with its run")
    frames = "another run would get the frames, which belong to this one"
    for is_given, option, why in (
        (options.no_store, "--no-store", "the next run finds the agent by the store"),
        (options.record is not None, "--record", frames),
        (options.output in ("json", "jsonl"), f"-o {options.output}", frames),
        (options.worktree is not None, "--worktree", "the folder may be removed after the run"),
        (options.no_wait, "--no-wait", "the run continues in the background itself"),
        (options.debug, "--debug", "only the process that has the agent can log what it does"),
    ):
        if is_given:
            raise UsageError(f"--keep-warm and {option} exclude each other: {why}")


def _check_place(path: str) -> None:
    """Whether an id can be written there, before there is a session whose it is."""
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path):
        problem = "it is a directory"
    elif not os.path.isdir(folder):
        problem = "no such directory"
    elif not os.access(path if os.path.exists(path) else folder, os.W_OK):
        problem = "permission denied"
    else:
        return
    raise UsageError(f"--save-session {path}: {problem}")


def prepare_turn(options: argparse.Namespace) -> Job:
    """With its prompt, if there is to be a turn. Raises what `prepare` does."""
    if options.directions and options.output not in ("jsonl", "json"):
        raise UsageError("--directions is for -o jsonl")
    if options.no_wait:
        _check_no_wait(options)
    if options.output_schema is not None:
        _check_typed(options)
    job = prepare(options, asks=_asks(options))
    if options.output_schema is not None:
        _want_result(job, options.output_schema)
    if _is_prompted(options):
        job.prompt = _prompt(options)
    return job


def _check_typed(options: argparse.Namespace) -> None:
    """Raises UsageError for what prints something else, or nothing."""
    if options.output != "text":
        raise UsageError(f"--output-schema prints the result alone; remove -o {options.output}")
    if any(getattr(options, f"list_{what}") for what in LISTS):
        raise UsageError("--output-schema prints the result alone; remove the --list options")
    for is_given, option in ((options.no_wait, "--no-wait"), (options.steer, "--steer")):
        if is_given:
            raise UsageError(f"--output-schema waits for the answer to a prompt; remove {option}")


def _want_result(job: Job, path: str) -> None:
    """Raises UsageError for a file that has no JSON schema."""
    from dragoman.client.asking.result_tool import result_tool
    from dragoman.results.result_type import result_type
    from dragoman.results.wanted_result import WantedResult

    text = _decoded(_read_file(path, MAX_JSON_BYTES + 1), path)
    try:
        schema = msgspec.json.decode(text, type=dict[str, Any])
        job.wanted = WantedResult(result_type(schema))
        job.result_tool = result_tool(schema)
    except ValueError as error:
        raise UsageError(f"--output-schema {path}: {error}") from error


def _check_no_wait(options: argparse.Namespace) -> None:
    """Raises UsageError for what needs someone who waits."""
    if options.output not in ("text", "simple"):
        raise UsageError(f"--no-wait prints only the session's id; remove -o {options.output}")
    if any(getattr(options, f"list_{what}") for what in LISTS):
        raise UsageError("--no-wait is for a prompt; remove the --list options")
    if options.no_store:
        raise UsageError("--no-wait needs the store; remove --no-store")
    if options.on_ask == "prompt":
        raise UsageError("--no-wait leaves nobody to ask here; use --on-ask wait or reject")


def prepare_quoting(options: argparse.Namespace, text: str) -> Job:
    """With this prompt, which quotes code. Raises what `prepare` does, and PromptTooLarge."""
    job = prepare(options, asks=_asks(options))
    job.prompt, job.mentions = [Text(text)], False
    check_size(job.prompt)
    return job


def _asks(options: argparse.Namespace) -> bool:
    """On a terminal someone can be asked, unless the options forbid it; also while the answer goes
    into a file."""
    if options.on_ask is not None or options.no_wait:
        return options.on_ask == "prompt"
    return sys.stdin.isatty() and (sys.stdout.isatty() or sys.stderr.isatty())


def for_session(job: Job, record: SessionRecord) -> Job:
    """The job with the agent and in the folder of the session it continues.

    Raises UsageError if another agent or folder was named, if that agent no longer exists,
    or if one was imported and is given no folder, SessionNotContinued if the folder is not there.
    """
    if job.options.continues:  # whichever is used last from now on
        pinned = vars(job.options) | {"continues": False, "resume": record.id}
        job = msgspec.structs.replace(job, options=argparse.Namespace(**pinned))
    record = _placed(job, record)
    if record.agent == job.agent.name and record.cwd == job.cwd:
        return job
    if job.options.cwd is not None and not _is_same(record.cwd, job.cwd):
        raise UsageError(f"session {record.id} belongs to {record.cwd}, not to --cwd {job.cwd}")
    if not os.path.isdir(record.cwd) and job.agent.files != "there":
        raise SessionNotContinued(record.id, f"its directory {record.cwd} no longer exists")
    options = _options_for(job, record)
    again = prepare(options, asks=job.asks, rules=job.rules, record=job.record)
    again.prompt, again.mentions = job.prompt, job.mentions
    again.wanted, again.result_tool = job.wanted, job.result_tool
    return again


def _placed(job: Job, record: SessionRecord) -> SessionRecord:
    """An imported session without a folder works in the one that was named: never in the current
    directory by itself."""
    if record.cwd:
        return record
    try:
        workspace_of(record, job.options.cwd)
    except CommandRefused as error:
        raise UsageError(f"{error}; set one with --cwd DIR") from error
    return msgspec.structs.replace(record, cwd=job.cwd)


def _is_same(folder: str, other: str) -> bool:
    return os.path.realpath(folder) == os.path.realpath(other)


def _options_for(job: Job, record: SessionRecord) -> argparse.Namespace:
    # A project's settings may name another default agent, and are read again in its folder.
    options = vars(job.options) | {"cwd": record.cwd, "agent": record.agent}
    chosen = argparse.Namespace(**options)
    if record.agent == job.agent.name:
        return chosen
    whose = f"session {record.id} belongs to {record.agent}"
    another = UsageError(f"{whose}, not to {job.agent.name}")
    if job.options.agent is not None:
        raise another
    try:
        if agent_setup.choose_agent(chosen).agent.name != record.agent:
            raise another
    except UnknownAgent as error:
        hint = "add it there, or use its --agent-command"
        raise UsageError(f"{whose}, which is not in the settings; {hint}") from error
    return chosen


PIPE_SECONDS = 1.0
"""How long to wait for the first byte of a pipe that comes along with a prompt."""


def _is_prompted(options: argparse.Namespace) -> bool:
    """Lists alone need no prompt, and then standard input is not read."""
    lists = any(getattr(options, f"list_{what}") for what in LISTS)
    return not lists or options.prompt is not None or options.file is not None


def _prompt(options: argparse.Namespace) -> list[Content]:
    """The text, and what is attached. Raises UsageError, PromptTooLarge."""
    said = [Text(_text(options)), *map(attachment, options.attach)]
    check_size(said)  # before an agent is started for it
    return said


def _text(options: argparse.Namespace) -> str:
    if options.prompt is not None and options.file not in (None, "-"):
        raise UsageError("pass the prompt as an argument or with --file, not both")
    if options.prompt not in (None, "-"):
        # What the shell passed on may hold bytes that are not text; the wire carries text only.
        text = os.fsencode(options.prompt).decode("utf-8", "replace")
        text = _joined(text, _piped(patient=options.file == "-"))
    elif options.file not in (None, "-"):
        text = _decoded(_read_file(options.file, MAX_JSON_BYTES + 1), options.file)
    else:
        text = _read_standard_input()
    if not text.strip():
        raise UsageError("the prompt is empty; pass it as an argument, with --file, or by a pipe")
    return text


def _joined(text: str, piped: str) -> str:
    return f"{text}\n\n{piped}" if text.strip() and piped.strip() else text


def _piped(*, patient: bool) -> str:
    """What is piped in with a prompt, as in `git diff | dragoman "review this"`.

    A program that starts us may leave us a pipe that nobody ever writes to, so unless it was asked
    for, it is not waited for longer than a moment.
    """
    import select
    import stat

    try:
        kind = os.fstat(0).st_mode
    except OSError:
        return ""  # it is closed
    if not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind) or stat.S_ISSOCK(kind)):
        return ""
    if not patient and not select.select([0], [], [], PIPE_SECONDS)[0]:
        tell(
            f"standard input is not part of the prompt: nothing arrived within {PIPE_SECONDS:.0f} s"
            " (`-f -` waits for it, `</dev/null` says that there is none)"
        )
        return ""
    return _from_standard_input()


def _read_standard_input() -> str:
    if sys.stdin.isatty():
        tell("reading the prompt; end it with Ctrl-D")
    return _from_standard_input()


def _from_standard_input() -> str:
    return _decoded(sys.stdin.buffer.read(MAX_JSON_BYTES + 1), "standard input")


def _decoded(data: bytes, source: str) -> str:
    """Of a file without an end not more is read than can be sent. Raises UsageError."""
    if len(data) > MAX_JSON_BYTES:
        raise UsageError(
            f"{source} has more than {MAX_JSON_BYTES >> 20} MiB, the most that a prompt may have; "
            "mention a large file in the prompt (@PATH) for the agent to read"
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        if b"\0" in data:
            raise UsageError(
                f"{source} is not text; --attach FILE sends a file as it is"
            ) from error
        tell(f"{source} is not valid UTF-8; invalid bytes are sent as \ufffd")
        return data.decode("utf-8", "replace")


def attachment(path: str) -> Content:
    """A file as content: an image, a sound, or a resource; a link if it is too large to be sent.

    Raises UsageError for one that cannot be read.
    """
    import mimetypes
    from base64 import b64encode

    mime_type = mimetypes.guess_type(path)[0]
    uri = Path(path).absolute().as_uri()
    data = _read_file(path, MAX_ATTACHMENT_BYTES + 1)
    if len(data) > MAX_ATTACHMENT_BYTES:
        tell(f"{path} is larger than {MAX_ATTACHMENT_BYTES >> 20} MiB and is attached as a link")
        return ResourceLink(uri, os.path.basename(path), mime_type)
    match (mime_type or "").partition("/")[0]:
        case "image":
            return Image(b64encode(data).decode(), mime_type or "", uri)
        case "audio":
            return Audio(b64encode(data).decode(), mime_type or "")
        case _:
            return _resource(uri, data, mime_type)


def _resource(uri: str, data: bytes, mime_type: str | None) -> Resource:
    from base64 import b64encode

    try:
        return Resource(uri, content=data.decode(), mime_type=mime_type)
    except UnicodeDecodeError:
        return Resource(uri, blob=b64encode(data).decode(), mime_type=mime_type)


def _read_file(path: str, most: int) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read(most)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{path} cannot be read: {reason.lower()}") from error
