"""The gate between an agent and this machine, one for each session.

Whatever the agent wants us to do passes here, whether or not it asked first: decided by `Consent`,
executed by the providers, recorded as events.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shlex
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from dragoman.data_directory import data_folder
from dragoman.errors import (
    DragomanError,
    InternalError,
    InvalidParams,
    MethodNotFound,
    RemoteError,
    ResourceNotFound,
    Unsupported,
)
from dragoman.host.forms.elicitation import (
    ElicitationAnswer,
    ElicitationProvider,
    ElicitationRequest,
)
from dragoman.host.permissions.consent import Consent
from dragoman.host.permissions.grants import are_harmless
from dragoman.host.permissions.questions import PermissionsProvider
from dragoman.host.permissions.wording import blame, shown_names
from dragoman.host.requester import asking_subagent
from dragoman.host.rules.access import (
    TOO_LONG,
    Access,
    Sighting,
    file_access,
    is_too_long,
    terminal_access,
)
from dragoman.host.rules.decision import Explanation
from dragoman.host.serial_worker import Lane
from dragoman.host.terminals.provider import (
    TerminalCommand,
    TerminalExit,
    TerminalSnapshot,
    TerminalsProvider,
)
from dragoman.host.terminals.pty import LocalTerminals
from dragoman.host.workspace.changes import Change
from dragoman.host.workspace.files import Changed, FilesProvider, Found, LocalFiles
from dragoman.host.workspace.jail import (
    Resolved,
    at,
    check_roots,
    real_file,
    real_path,
    real_roots,
    refusal,
)
from dragoman.host.workspace.reach import Reach, being_written, named
from dragoman.host.workspace.roots import Workspace
from dragoman.session import events as e
from dragoman.session.content import Diff
from dragoman.session.facts import Decision
from dragoman.session.state import SessionState

if TYPE_CHECKING:
    from dragoman.host.fence.fence import Fence

logger = logging.getLogger("dragoman.host")

MOST_ASKED = 5
"""Questions about one write, where the file is another each time."""


_request_meta: ContextVar[dict[str, Any] | None] = ContextVar("request_meta", default=None)


def request_meta() -> dict[str, Any] | None:
    """For providers: the `_meta` of the agent's request that is being served, if it has one."""
    return _request_meta.get()


@contextmanager
def serving_request(meta: dict[str, Any] | None) -> Generator[None]:
    token = _request_meta.set(meta)
    try:
        yield
    finally:
        _request_meta.reset(token)


class Providers(msgspec.Struct, frozen=True, kw_only=True):
    """The providers that serve an agent's requests; without `permissions` and `elicitation`, the
    reader of the turn is asked."""

    files: FilesProvider
    terminals: TerminalsProvider
    permissions: PermissionsProvider | None = None
    elicitation: ElicitationProvider | None = None


class Gate(msgspec.Struct, eq=False, kw_only=True):
    """Files and terminals for one session; `offered` names the methods that are on."""

    workspace: Workspace
    agent: str
    consent: Consent
    providers: Providers
    offered: frozenset[str]
    missing_file: Literal["error", "empty"]
    state: SessionState
    record: Callable[[e.Event], None]
    on_close: Callable[[], None] | None = None
    """Called when everything of the session is to end."""
    _lane: Lane = msgspec.field(default_factory=Lane)
    _early: dict[str, list[e.Event]] = msgspec.field(default_factory=dict[str, list[e.Event]])
    """What terminals do whose start is not on record yet."""
    _starting: int = 0

    def __post_init__(self) -> None:
        if not self.offered.isdisjoint(("fs/read_text_file", "fs/write_text_file")):
            self.consent.look = self._current

    # ── files ─────────────────────────────────────────────────────────────────────────────────

    async def read_text_file(
        self,
        path: str,
        line: int | None,
        limit: int | None,
        reading: AbstractAsyncContextManager[None],
    ) -> str:
        """Once it is allowed, the file is read within `reading`."""
        self._require("fs/read_text_file", operation="read", paths=[path])
        await self._admitted()
        check_roots(self.workspace)
        met: list[str] = []
        real = real_file(path, met)
        access = self._file_access("read", named(path, real, met))
        # What is allowed outside the roots is opened beneath its own folder.
        workspace = self._widened(os.path.dirname(real), outside=access.place == "outside")
        await self.consent.permit(access, f"Read {path}")
        try:
            async with reading:
                with self._blaming("files"):
                    return await self.providers.files.read_text_file(
                        workspace, real, line=line, limit=limit
                    )
        except ResourceNotFound:
            if self.missing_file == "empty":
                return ""
            raise

    async def write_text_file(self, path: str, content: str) -> None:
        self._require("fs/write_text_file", operation="write", paths=[path])
        await self._admitted()
        check_roots(self.workspace)
        met: list[str] = []
        real = real_file(path, met)
        was_asked = False
        for _ in range(MOST_ASKED):
            found = await self._found(real)
            seen = await self._lane.run(lambda: self._reach.sighting(path, real, met))
            # After a yes, an agent that also writes by itself may be first: nothing would change.
            if not (was_asked and found.text == content):
                was_asked = await self._permit_write(path, seen, content, found)
            as_judged = self._as_judged(path, seen, met)
            try:
                return await self._write(real, content, found if was_asked else None, as_judged)
            except Changed as change:
                text = f"{real} {change}: it is judged again"
                self.record(e.Notice(text, "warning", source="client"))
        raise refusal(InternalError, real, "it changed each time a person was asked")

    async def _permit_write(self, path: str, seen: Sighting, content: str, found: Found) -> bool:
        why = f" over what cannot be shown ({found.unseen})" if found.unseen else ""
        return await self.consent.permit(
            self._file_access("write", seen),
            f"Write {path}{why}",
            lambda grants: not found.unseen and grants.take_write(seen.path, content, found.text),
            content=(Diff(str(seen.path), content, found.text, replaces=_unseen(found.unseen)),),
        )

    @contextmanager
    def _as_judged(self, path: str, seen: Sighting, met: Sequence[str]) -> Generator[None]:
        """To write within: other writes since it was judged may have made the file a part of
        something else. Raises Changed then."""
        with being_written(seen.path):
            if self._reach.sighting(path, Resolved(seen.path), met) != seen:
                raise Changed("is in a folder that other writes changed")
            yield

    async def _write(
        self,
        path: str,
        content: str,
        expected: Found | None,
        as_judged: AbstractContextManager[None],
    ) -> None:
        """Record what was really replaced. Raises Changed where it is not what is expected: much
        may have happened while someone was asked."""

        asker = asking_subagent()

        def written(before: str | None, created: bool) -> None:
            # Plain text in what is recorded: a subclass of str cannot be stored.
            self.record(e.FileWritten(str(path), content, before, created, subagent=asker))

        files, turn = self.providers.files, self.consent.turn
        if isinstance(files, LocalFiles):
            files.changes(self.workspace).turn = None if turn is None else turn.id
            with self._blaming("files"):
                await files.write_text_file(
                    self.workspace,
                    path,
                    content,
                    written=written,
                    expected=expected,
                    within=as_judged,
                )
            return
        found = await self._found(path)
        if expected not in (None, found):
            raise Changed("was changed while the question waited")
        with as_judged, self._blaming("files"):
            await files.write_text_file(self.workspace, path, content)
        written(found.text, created=found.text is None and not found.unseen)

    async def _current(self, path: str) -> tuple[str | None, str]:
        """The file as it is, or why there is a file that cannot be shown."""
        found = await self._found(path)
        return found.text, found.unseen

    async def _found(self, path: str) -> Found:
        """The file as it is before a write."""
        files = self.providers.files
        try:
            with self._blaming("files"):
                return Found(await files.read_text_file(self.workspace, path))
        except ResourceNotFound:
            return Found(None)
        except RemoteError as error:
            mark = files.mark(self.workspace, path) if isinstance(files, LocalFiles) else None
            return Found(None, error.message, mark)

    @property
    def _reach(self) -> Reach:
        return Reach((*self._real_roots, os.path.expanduser("~")))

    def _file_access(self, operation: Literal["read", "write"], path: str | Sighting) -> Access:
        return file_access(operation, path, agent=self.agent, roots=self._real_roots)

    @property
    def _real_roots(self) -> tuple[str, ...]:
        return real_roots(self.workspace)

    def _widened(self, folder: str, *, outside: bool) -> Workspace:
        """With a folder without links in its name, as it is now: not whatever that name leads to
        by the time it is allowed."""
        if not outside:
            return self.workspace
        more = (*self.workspace.additional_directories, folder)
        found = (*self.workspace.found, at(folder))
        return msgspec.structs.replace(self.workspace, additional_directories=more, found=found)

    def changes(self, turn_id: str | None) -> tuple[Change, ...]:
        """What was written, as far as the files provider keeps it. Raises Unsupported."""
        return self._local_files.changes(self.workspace).list(turn_id)

    async def revert(
        self, turn_id: str | None, *, paths: Collection[str] | None = None, force: bool
    ) -> tuple[Change, ...]:
        """Undo it. Raises Unsupported, or RevertConflict where someone changed a file since."""
        undone = await self._local_files.revert(
            self.workspace, turn=turn_id, paths=paths, force=force
        )
        for event in told_of(undone, turn_id):
            self.record(event)
        return undone

    def recall(self, earlier: Sequence[Change]) -> None:
        """Have what was written before this process ran the session listed and undone as well, as
        far as it is inside the workspace. Raises Unsupported."""
        self._local_files.recall(self.workspace, earlier)

    def forget(self) -> None:
        """Let go of what the writes replaced: nobody is going to look at them here."""
        if isinstance(self.providers.files, LocalFiles):
            self.providers.files.forget(self.workspace.session_id)

    @property
    def _local_files(self) -> LocalFiles:
        if not isinstance(self.providers.files, LocalFiles):
            raise Unsupported("listing changes with this files provider")
        return self.providers.files

    # ── terminals ─────────────────────────────────────────────────────────────────────────────

    async def create_terminal(self, command: TerminalCommand) -> str:
        """Raises InvalidParams for one that is too long, and what `permit` raises."""
        argv = [command.command, *command.args]
        if is_too_long((tuple(argv),)):
            refused = Decision("deny", TOO_LONG, by="host")
            self.record(e.AccessDecided("execute", refused, subagent=asking_subagent()))
            raise InvalidParams(TOO_LONG)
        self._require("terminal/create", operation="execute", argv=argv)
        await self._admitted()
        check_roots(self.workspace)
        met: list[str] = []
        asker = asking_subagent()
        cwd = real_path(asked := command.cwd or self._folder_of(asker), met)
        access = terminal_access(
            command.command,
            command.args,
            agent=self.agent,
            cwd=named(asked, cwd, met),
            roots=self._real_roots,
            env=bool(command.env),
            variables=command.env,
        )
        title = _title(command, None if cwd == real_path(self.workspace.cwd) else cwd)
        shown = msgspec.structs.replace(access, env=not are_harmless(command.env))
        workspace = self._widened(cwd, outside=access.place_of_cwd == "outside")
        await self.consent.permit(access, title, lambda grants: grants.take_command(shown))
        command = msgspec.structs.replace(command, cwd=cwd)
        with self._blaming("terminals"), self._starting_one(title):
            terminal_id = await self.providers.terminals.create(workspace, command, self)
            argv = [command.command, *command.args]
            self.record(e.TerminalStarted(terminal_id, argv, str(cwd), subagent=asker))
            for event in self._early.pop(terminal_id, []):
                self.record(event)
        return terminal_id

    def _folder_of(self, subagent_id: str | None) -> str:
        """Where commands run unless they say otherwise; what is outside is judged as such."""
        path = [] if subagent_id is None else self.state.subagent_path(subagent_id)
        folders = [each.cwd for each in path if each.cwd]
        return folders[-1] if folders else self.workspace.cwd

    @contextmanager
    def _starting_one(self, title: str) -> Generator[None]:
        self._starting += 1
        try:
            yield
        except asyncio.CancelledError:
            # It is ended then, but nobody knows how far it came.
            what = f"a command was cancelled while it started, and may have run: {title}"
            self.record(e.Notice(what, "warning", source="client"))
            raise
        finally:
            self._starting -= 1
            if not self._starting:
                self._early.clear()

    async def terminal_output(self, terminal_id: str) -> TerminalSnapshot:
        self._require("terminal/create")
        with self._blaming("terminals"):
            return await self.providers.terminals.output(self.workspace, terminal_id)

    async def wait_for_terminal_exit(self, terminal_id: str) -> TerminalExit:
        self._require("terminal/create")
        with self._blaming("terminals"):
            return await self.providers.terminals.wait_for_exit(self.workspace, terminal_id)

    async def kill_terminal(self, terminal_id: str) -> None:
        self._require("terminal/create")
        with self._blaming("terminals"):
            await self.providers.terminals.kill(self.workspace, terminal_id)

    async def release_terminal(self, terminal_id: str) -> None:
        self._require("terminal/create")
        with self._blaming("terminals"):
            await self.providers.terminals.release(self.workspace, terminal_id)
        terminal = self.state.terminals.get(terminal_id)
        if terminal is not None and not terminal.released:
            self.record(e.TerminalReleased(terminal_id))

    def on_output(self, terminal_id: str, text: str) -> None:
        self._terminal_event(terminal_id, e.TerminalOutput(terminal_id, text))

    def on_exit(self, terminal_id: str, ended: TerminalExit) -> None:
        event = e.TerminalExited(terminal_id, ended.exit_code, ended.signal)
        self._terminal_event(terminal_id, event)

    def _terminal_event(self, terminal_id: str, event: e.Event) -> None:
        """A fast command prints before we have its id from `create`: it started anyway."""
        if terminal_id in self.state.terminals or not self._starting:
            self.record(event)
        else:
            self._early.setdefault(terminal_id, []).append(event)

    # ── what programs in a fence reach by themselves ──────────────────────────────────────────

    def about_host(self, host: str) -> Explanation:
        return self.consent.explain(Access(operation="fetch", agent=self.agent, hosts=(host,)))

    def note(self, event: e.Event) -> None:
        self.record(event)

    # ── and the rest ──────────────────────────────────────────────────────────────────────────

    async def create_elicitation(self, request: ElicitationRequest) -> ElicitationAnswer:
        self._require("elicitation/create")
        await self._admitted()
        return await self.consent.elicitations.create(request)

    async def _admitted(self) -> None:
        """Raises InternalError if a person was asked whether the turn may continue, and said no."""
        if not await self.consent.hold.admits():
            raise InternalError("the turn was stopped at a limit")

    def _require(
        self,
        method: str,
        *,
        operation: str | None = None,
        paths: Sequence[str] = (),
        argv: list[str] | None = None,
    ) -> None:
        """Refuse a method that is off. An agent that tries it wanted something done: with an
        `operation`, that is on the record like any other refusal."""
        if method in self.offered:
            return
        reason = f"{method} is switched off here"
        if operation is not None:
            decision = Decision("deny", reason, by="offer")
            asker = asking_subagent()
            self.record(e.AccessDecided(operation, decision, list(paths), argv, subagent=asker))
        raise MethodNotFound(reason)

    @contextmanager
    def _blaming(self, provider: str) -> Generator[None]:
        """An error that was not written for the agent is logged and recorded; the agent only
        learns that there was one."""
        try:
            yield
        except (DragomanError, Changed):
            raise
        except Exception as error:
            logger.exception("the %s provider failed", provider)
            self.record(e.Notice(blame(provider, error), "error", source="client"))
            raise InternalError(f"the {provider} provider failed") from error

    async def close(self) -> None:
        """Everything of this session that still runs ends here."""
        self.consent.close("the session ended")
        await self.providers.terminals.release_all(self.workspace)
        if self.on_close is not None:
            self.on_close()


def _unseen(reason: str) -> str | None:
    return f"what cannot be shown ({reason})" if reason else None


def _title(command: TerminalCommand, cwd: str | None) -> str:
    """All that will run; of variables only the names, as values may be secret."""
    words = (command.command, *command.args)
    line = shlex.join(words) if command.args else command.command
    where = "" if cwd is None else f" in {cwd}"
    names = ", ".join(shown_names(tuple(command.env)))
    return f"Run {line}{where}" + (f" with {names} set" if command.env else "")


def told_of(undone: Sequence[Change], turn_id: str | None) -> Iterator[e.Event]:
    """What goes on record of writes that were undone."""
    for change in undone:
        yield e.FileReverted(str(change.path), turn_id)
        how = "was restored" if change.existed else "was deleted, because it was new"
        yield e.Notice(f"{change.path} {how}", source="client")


_PROTOCOLS = {
    "files": FilesProvider,
    "terminals": TerminalsProvider,
    "permissions": PermissionsProvider,
    "elicitation": ElicitationProvider,
}


def checked_providers(
    files: FilesProvider | None,
    terminals: TerminalsProvider | None,
    permissions: PermissionsProvider | None,
    elicitation: ElicitationProvider | None,
    fence: Fence | None = None,
) -> Providers:
    """With ours for files and terminals where there is no other. Raises TypeError now rather than
    when the agent first needs what is not there."""
    closed = [data_folder()]
    providers = Providers(
        files=files or LocalFiles(forbidden=closed),
        terminals=terminals or LocalTerminals(forbidden=closed, fence=fence),
        permissions=permissions,
        elicitation=elicitation,
    )
    for name, protocol in _PROTOCOLS.items():
        provider = getattr(providers, name)
        methods = [method for method in vars(protocol) if not method.startswith("_")]
        lacking = [each for each in methods if not callable(getattr(provider, each, None))]
        if provider is not None and lacking:
            raise TypeError(
                f"{name}= takes a {protocol.__module__}.{protocol.__name__}: "
                f"{type(provider).__name__} has no {' and no '.join(lacking)}"
            )
    return providers
