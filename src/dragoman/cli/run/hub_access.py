"""Opens the hub for a run, and for commands that look at sessions or steer them."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING

import msgspec

from dragoman.agents.settings.project_settings import NO_TERMS, ProjectTerms
from dragoman.agents.settings.settings_file import Settings, load_settings
from dragoman.cli.ask.sign_in_prompt import sign_in
from dragoman.cli.exit_codes import UsageError
from dragoman.cli.run.agent_setup import offer_of
from dragoman.client.capabilities import NO_OVERRIDE, NO_SYSTEM_PROMPT
from dragoman.client.client import Client
from dragoman.client.client_options import tracing
from dragoman.client.mcp import McpServer
from dragoman.errors import (
    AmbiguousSession,
    AuthRequired,
    DragomanError,
    RemoteError,
    SessionNotContinued,
    StoreCorrupt,
    StoreError,
    UnknownSession,
    Unsupported,
)
from dragoman.host.rules.policy import Policy
from dragoman.hub.assembly import limits_in, new_hub
from dragoman.hub.cluster.owner import is_gone
from dragoman.hub.hub import Hub
from dragoman.hub.running.running_session import RunningSession
from dragoman.hub.running.settings_launcher import SettingsLauncher
from dragoman.hub.session_records import RecordReach
from dragoman.hub.stored.stored_sessions import find_session
from dragoman.session.facts import Offer, SystemPrompt
from dragoman.session.state import SessionState
from dragoman.store.base import Store
from dragoman.store.open import open_default, open_store
from dragoman.store.records import SessionFilter, SessionRecord

if TYPE_CHECKING:
    from dragoman.cli.ask.asker import TerminalAsker
    from dragoman.cli.run.job import Job

_LAST_USED = 1000
"""How many sessions of a directory are looked through for one that is not closed."""
_FORGET_SECONDS = 2.0
"""Nobody waits for an agent at its end."""


class JobLauncher:
    """The one agent of a run."""

    def __init__(self, start: Callable[[Offer], Client], job: Job) -> None:
        self._start = start
        self._job = job

    def client(self, agent: str, cwd: str, offer: Offer) -> Client:
        return self._start(offer)

    def is_shared(self, agent: str) -> bool:
        return True

    def mcp_servers(self, session_id: str) -> list[McpServer]:
        tool = self._job.result_tool
        return [*self._job.mcp_servers, *(() if tool is None else (tool,))]

    def system_prompt(self, agent: str | None, cwd: str) -> SystemPrompt | None:
        own, general = self._job.preset_prompts
        return general if agent is None else own

    def of_project(self, agent: str, cwd: str) -> ProjectTerms:
        """Its client has that already: all is in one folder."""
        return NO_TERMS


@asynccontextmanager
async def hub_of(
    job: Job, start: Callable[[Offer], Client], *, attended: bool
) -> AsyncGenerator[Hub]:
    """`start` makes the client of the job's agent; `attended` says whether someone here answers
    what it asks. The environment may say what trace this run belongs to. Raises StoreError."""
    with tracing(os.environ.get("TRACEPARENT"), os.environ.get("TRACESTATE")):
        async with _hub_of(job, start, attended=attended) as hub:
            yield hub


@asynccontextmanager
async def _hub_of(
    job: Job, start: Callable[[Offer], Client], *, attended: bool
) -> AsyncGenerator[Hub]:
    is_recorded = not job.options.no_store
    try:
        store = await (open_default() if is_recorded else open_store(None))
    except StoreCorrupt:
        raise  # the rules are in there too: no run goes without them
    except StoreError as error:
        raise type(error)(
            error.place, f"{error.reason}; use --no-store to run without recording"
        ) from error
    unused: list[str] = []
    if is_recorded:
        job.rules.use(store.rules)
    try:
        launcher = JobLauncher(start, job)
        async with new_hub(
            store,
            launcher,
            attended=attended,
            tracks_agents=is_recorded,
            snapshots=job.snapshots,
        ) as hub:
            try:
                yield hub
            finally:
                if job.options.save_session is None:
                    lives = [live for live in hub.live.values() if live.is_unused]
                    unused += [live.id for live in lives]
                    await asyncio.gather(*map(_forgotten, lives))
    finally:
        for session_id in unused:
            with suppress(DragomanError):
                await store.delete_session(session_id)
        await store.aclose()
        job.record.close()


async def _forgotten(live: RunningSession) -> None:
    """By the agent, where it can: its own list should not fill with what nobody used."""
    client = live.agent.client
    forget = client.delete_session if client.capabilities.delete else client.close_session
    with suppress(DragomanError, TimeoutError):
        async with asyncio.timeout(_FORGET_SECONDS):
            await forget(live.session.id)


class Meant(msgspec.Struct):
    """The session of a run: one that is stored, one that only the agent knows, or a new one."""

    record: SessionRecord | None = None
    known_id: str | None = None
    state: SessionState = msgspec.field(default_factory=SessionState)
    """What is known of it; the run continues from there."""

    def offer(self, job: Job) -> Offer:
        """What its agent is offered, in this run and later: what it began with."""
        begins = offer_of(job.options)
        if self.record is None:
            return begins
        return self.record.offer if job.options.fork is None else self.record.offer.within(begins)

    @property
    def folders(self) -> Sequence[str]:
        """What it has besides its workspace and what the options add."""
        return () if self.record is None else self.record.additional_directories


async def meant_by(hub: Hub, job: Job) -> Meant:
    """Raises UsageError when it belongs to another agent."""
    options = job.options
    word = options.fork if options.resume is None else options.resume
    if word is not None:
        try:
            record = await find_session(hub.store, word, job.cwd)
        except AmbiguousSession:
            raise
        except UnknownSession:
            return Meant(known_id=word)
    elif options.session is not None:
        found = await hub.store.sessions(SessionFilter(name=options.session, cwd=job.cwd))
        record = found[0] if found else None
    elif options.continues:
        is_named = options.agent is not None or options.agent_command is not None
        record = await last_used(hub.store, job.cwd, job.agent.name if is_named else None)
    else:
        record = None
    if record is None:
        return Meant()
    owner = await hub.store.owner(record.id)
    if owner is not None and is_gone(owner):
        await hub.maintenance.recover()
    return Meant(record, state=await hub.state(record.id))


async def last_used(store: Store, cwd: str, agent: str | None) -> SessionRecord:
    """What `--continue` means in that directory. Raises UnknownSession when there is none."""
    wanted = SessionFilter(cwd=cwd, agent=agent, archived=False, limit=_LAST_USED)
    for record in await store.sessions(wanted):
        if record.status != "closed":
            return record
    whose = "" if agent is None else f" of {agent}"
    raise UnknownSession(
        "", f"there is no session{whose} in {cwd} to continue; without --continue, one is started"
    )


async def runs_elsewhere(hub: Hub, record: SessionRecord) -> bool:
    """Whether another process runs it, or has to: the one with its workspace."""
    owner = await hub.store.owner(record.id)
    if owner is None or is_gone(owner):
        return not hub.hosts.has(record)
    return owner.id != hub.owner.id


async def open_live(
    hub: Hub, job: Job, meant: Meant, asker: Callable[[], TerminalAsker | None]
) -> RunningSession:
    """The session, as the options say; `asker` asks which way to sign in, if that is wanted.

    Raises SessionNotContinued, SignInNeeded, UsageError for a system prompt that the agent does not
    accept, and what starting a session raises.
    """
    while True:
        try:
            live = await _open(hub, job, meant)
        except Unsupported as error:
            raise UsageError(f"{job.agent.name} does not accept {error.feature}") from error
        except AuthRequired as error:
            # Which may be another process than before: one sign-in method restarts it.
            offer = meant.offer(job)
            async with hub.using(job.agent.name, job.cwd, offer, meant.folders) as client:
                await sign_in(client, job, error, asker())
        else:
            save_id(job, live.session.id if job.options.no_store else live.id)
            return live


async def _open(hub: Hub, job: Job, meant: Meant) -> RunningSession:
    options, agent = job.options, job.agent.name
    if options.fork is not None:
        return await _fork(hub, job, meant)
    match meant.record, meant.known_id:
        case SessionRecord(id=ours, cwd=cwd), _:
            if not cwd:
                await hub.give_folder(ours, job.cwd)
            return await hub.open(
                ours,
                on_reset=options.on_reset,
                more_directories=job.more_folders,
                system_prompt=job.system_prompt,
            )
        case _, str(known):
            return await hub.adopt(
                agent,
                known,
                job.cwd,
                on_reset=options.on_reset,
                **_reach(job, meant),
            )
        case _:
            return await _begin(hub, job, meant)


async def _begin(hub: Hub, job: Job, meant: Meant) -> RunningSession:
    """A new session, which may continue what another agent has begun."""
    reach, old = _reach(job, meant), job.continues
    if old is not None:
        reach["limits"] = old.limits
    live = await hub.create(job.agent.name, job.cwd, name=job.options.session, **reach)
    if old is not None:
        from dragoman.hub.running.handoffs import link

        await link(hub, old, live)
    return live


def _reach(job: Job, meant: Meant) -> RecordReach:
    """What a session is given that is new to the store."""
    return {
        "additional_directories": job.more_folders,
        "offer": meant.offer(job),
        "system_prompt": job.system_prompt,
    }


async def _fork(hub: Hub, job: Job, meant: Meant) -> RunningSession:
    try:
        if meant.record is not None:
            return await hub.fork(
                meant.record.id,
                cwd=job.cwd,
                more_directories=job.more_folders,
                offer=meant.offer(job),
                system_prompt=job.system_prompt,
            )
        return await hub.fork_known(
            job.agent.name, meant.known_id or "", job.cwd, **_reach(job, meant)
        )
    except AuthRequired:
        raise
    except (RemoteError, Unsupported) as error:
        if isinstance(error, Unsupported) and error.feature in (NO_SYSTEM_PROMPT, NO_OVERRIDE):
            raise
        raise SessionNotContinued(job.options.fork, str(error)) from error


def save_id(job: Job, known: str) -> None:
    """Write the id of the session where `--save-session` says. Raises UsageError."""
    path: str | None = job.options.save_session
    if path is None:
        return
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"{known}\n")
    except OSError as error:
        reason = (error.strerror or "error").lower()
        raise UsageError(f"--save-session {os.fspath(path)}: {reason}") from error


@asynccontextmanager
async def opened_hub(
    settings: str | None = None, agent_command: str | None = None
) -> AsyncGenerator[Hub]:
    """A hub that asks nobody: what an agent wants is decided by the stored rules.

    With an `agent_command` it also starts that agent, by the name it has in a run. Sessions of
    owners that were killed are recovered first. Raises StoreError.
    """
    store = await open_default()
    try:
        launcher = SettingsLauncher(
            lambda: _settings(settings, agent_command), Policy(stored=store.rules)
        )
        kept = limits_in(lambda: load_settings(settings))
        async with new_hub(store, launcher, attended=False, snapshots=kept) as hub:
            with suppress(DragomanError):  # what cannot be written can still be looked at
                await hub.maintenance.recover()
            yield hub
    finally:
        await store.aclose()


def _settings(path: str | None, agent_command: str | None) -> Settings:
    settings = load_settings(path)
    if agent_command is None:
        return settings
    from dragoman.cli.run.agent_setup import from_command, program_of

    agent = from_command(agent_command)
    agents = {agent.name: agent}
    if agent.command is not None:  # sessions may be recorded by the name of the program
        program = program_of(agent.command)
        agents |= {program: msgspec.structs.replace(agent, name=program)}
    return msgspec.structs.replace(settings, agents=agents)


@asynccontextmanager
async def opened_store() -> AsyncGenerator[Store]:
    """Where sessions are recorded, for commands that need no agent. Raises StoreError."""
    async with opened_hub() as hub:
        yield hub.store


@asynccontextmanager
async def opened_session(
    options: argparse.Namespace, settings: str | None = None, agent_command: str | None = None
) -> AsyncGenerator[tuple[Hub, SessionRecord]]:
    """Such a hub, and the session that the options name. Raises StoreError, UnknownSession."""
    async with opened_hub(settings, agent_command) as hub:
        yield hub, await find_session(hub.store, options.session, os.getcwd())
