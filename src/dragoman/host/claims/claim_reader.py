"""Reads a `session/request_permission` as a claim: what the agent says it is about to do.

A command anywhere in the raw input makes it execute; a diff, or a kind that changes files, makes it
write; a read or search whose every path is inside the workspace is read; anything else is other.
Titles are not looked at, unless the habits of an agent are known, and a name can only refuse.

`ClaimReader` calls `read_claim` off the event loop, since an agent chooses how much there is to
read and to look up. Nothing is decided here.
"""

from __future__ import annotations

import functools
import os
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import msgspec

from dragoman.host.claims.contradictions import (
    NO_WORDS,
    AgentWords,
    Claimed,
    contradiction,
)
from dragoman.host.claims.habits import Habits
from dragoman.host.claims.named_paths import MOST_PATHS, NamedPaths, claimed_path
from dragoman.host.claims.other_fields import other_fields
from dragoman.host.claims.raw_input import RawInput, looks_like_a_path, names_address, whole_file
from dragoman.host.permissions.questions import NO_SUBJECT, Earlier, Subject
from dragoman.host.requester import asking_subagent
from dragoman.host.rules.access import Access, Command, Operation, Sighting, normalise
from dragoman.host.rules.globs import is_within
from dragoman.host.serial_worker import Lane
from dragoman.host.workspace.jail import real_roots
from dragoman.host.workspace.reach import Reach
from dragoman.host.workspace.roots import Workspace
from dragoman.session.content import (
    UNREAD,
    ContentItem,
    Diff,
    Resource,
    ResourceLink,
    TerminalItem,
    ToolContent,
    UnknownItem,
    diffs_in,
)
from dragoman.session.facts import PermissionOption
from dragoman.session.permission_options import is_question
from dragoman.session.state import OPEN_STATUSES, SessionState, ToolCall

T = TypeVar("T")

_WRITING = frozenset({"edit", "delete", "move"})
_WITHOUT_CONTENT = frozenset({"delete", "move"})
_READING = frozenset({"read", "search"})
# Kinds that say what is done; any other may be a call of an MCP tool.
_TELLING = _WRITING | _READING | {"execute", "fetch", "think", "switch_mode"}
# What an editor's `command` may be where it says that it reads.
_VIEWING = frozenset({"view"})
# Kinds that ask what to do next, not whether something may be done.
_ASKING = frozenset({"switch_mode"})
MOST_CALLS = 64
"""That one request can be about; more are a question for a person."""


def read_claim(
    kind: str | None,
    raw_input: Any = None,
    *,
    agent: str,
    cwd: str,
    roots: Sequence[str],
    home: str,
    diff_paths: Sequence[str] = (),
    locations: Sequence[str] = (),
    look: Callable[[str], Sighting | None] = lambda path: Sighting(normalise(path)),
    name: str | None = None,
    verbs: Collection[str] = (),
    editors: Collection[str] = (),
    fetches: bool = False,
    changes: bool = False,
    words: AgentWords = NO_WORDS,
    written: Sequence[str] = (),
) -> Access:
    """What the host would be asked to do if the agent did as it claims, with the tool of that name.

    `roots` are the real ones. `look` says what an absolute path is on the disk, None where that
    is unknown; without it links are taken at their word. `verbs` are not commands where files
    are read or changed, and `editors` not further tools where files are changed. `fetches` says
    that a call of the kind `fetch` is known to do nothing else, `changes` that it changes files
    whatever its kind. `words` are the agent's for it, and `written` is what is there before and
    after a change: where the words name something else, no rule allows it.
    """
    found = RawInput(raw_input, verbs=_verbs(kind, verbs))
    names = NamedPaths(cwd, home, look, roots=None if found.commands else roots)
    writes = bool(diff_paths) or kind in _WRITING or changes
    # An editor that changes a file where the call says that it reads; or a program of that name.
    writes |= kind in _READING and any(command in verbs for command in found.commands)
    own = [tool for tool in found.tools if writes and tool in editors]
    found.tools = [tool for tool in found.tools if tool not in own]
    found.outputs += found.doubts.names if writes or kind in _READING else []
    # Other names next to a patch do not replace the files that the patch names.
    patched = [*found.patched, *filter(looks_like_a_path, found.outputs)] if writes else []
    texts = [*diff_paths, *locations, *_named(found, kind, writes), *patched]
    texts += [] if found.commands else found.in_other_folders()
    paths, aliases = names.with_aliases(texts)
    outputs = [*found.outputs, *(found.ends if writes else found.patched)]
    aliases = (*aliases, *NamedPaths(cwd, home, look).all_of(outputs))
    facts = msgspec.structs.replace(
        _stated(found, agent, (*own, *filter(None, (name,)))),
        paths=paths,
        aliases=aliases,
        hazard=names.hazard,
        roots=tuple(roots),
        action=_is_action(found, kind, told=writes or bool(locations)),
    )
    facts = _with_folders(facts, found, names)
    claimed = Claimed(
        found=found,
        facts=facts,
        files=[*texts, *paths, *aliases],
        places=locations,
        written=[*written, *found.texts],
        kind=_by_its_kind(facts, kind, writes),
        tool=name,
    )
    if (against := contradiction(words, claimed, names.seen)) is not None:
        facts = msgspec.structs.replace(facts, contradiction=against.quote, said=against.said)
    return _with_operations(facts, found, names, kind, writes, fetches)


def _by_its_kind(facts: Access, kind: str | None, writes: bool) -> Operation:
    if facts.commands:
        return "execute"
    if writes:
        return "write"
    return "read" if kind in _READING else "fetch" if kind == "fetch" else "other"


def _stated(found: RawInput, agent: str, names: tuple[str, ...]) -> Access:
    """What the input says by itself, without a look at the disk; `names` can only refuse."""
    tools = tuple(dict.fromkeys(found.tools))
    return Access(
        operation="other",
        agent=agent,
        commands=tuple(dict.fromkeys(found.commands)),
        env=bool(found.variables),
        variables=tuple(dict.fromkeys(found.variables)),
        hosts=tuple(dict.fromkeys((*found.hosts, *found.perhaps_hosts))),
        tool=tools[0] if tools else None,
        names=(*tools, *names),
        claimed=True,
    )


def _is_action(found: RawInput, kind: str | None, *, told: bool) -> bool:
    """Texts that only look like paths do not count: the choices of a question may."""
    named = found.commands or found.hosts or found.tools or found.paths
    return told or kind == "fetch" or bool(named)


def _with_folders(facts: Access, found: RawInput, names: NamedPaths) -> Access:
    """Where it would run: in the folders it names, else in the session's."""
    said = found.cwds + (found.folders if found.commands else [])
    cwds, aliases = names.with_aliases(said)
    unread = next((each for each in said if not names.of([each])), None)
    if (where := _hardest(cwds, facts.roots)) is None:
        where, aliases = names.here.path, names.here.aliases
    others = tuple(each for each in cwds if each != where) if found.commands else ()
    return msgspec.structs.replace(
        facts, cwd=where, cwds=others, cwd_aliases=aliases, unread_cwd=unread
    )


def _with_operations(
    facts: Access,
    found: RawInput,
    names: NamedPaths,
    kind: str | None,
    writes: bool,
    fetches: bool,
) -> Access:
    """What it would do, and whether that is all of it."""
    into_a_file = any("." in each or "/" in each for each in found.outputs)
    facts = msgspec.structs.replace(
        facts,
        question=kind in _ASKING or names.too_many,
        complete=found.complete
        and facts.contradiction is None
        and names.complete
        and len(dict.fromkeys(found.tools)) < 2
        and not facts.cwds
        and not found.doubts.remain(
            runs=bool(found.commands),
            changes=writes,
            whole_files=kind in _WITHOUT_CONTENT,
            reads=kind in _READING,
            searches=kind == "search",
            fetches=kind == "fetch",
        )
        and (found.patch_is_clear or not writes)
        # Who says that a patch is read may yet write it, and so may one who names a file for what
        # is read.
        and (kind not in _READING or not (found.patched or into_a_file)),
    )
    operation = _operation(facts, kind, writes, fetches)
    may_write = into_a_file if kind in _READING else bool(found.outputs or found.patched)
    outputs = ("write",) if may_write else ()
    kinds = _all(((operation,), tuple(_claimed(facts, kind, writes)), outputs))
    return _apart(facts, kinds, tuple(_said(found, kind, writes)))


def _apart(facts: Access, kinds: tuple[Operation, ...], said: Sequence[Operation]) -> Access:
    """One access; where a command or an edit names something else too, each of them is to be
    allowed for itself."""
    whole = msgspec.structs.replace(facts, operation=kinds[0], also=kinds[1:])
    said = [each for each in said if each != whole.operation]
    if whole.operation not in ("execute", "write") or not said:
        return whole
    parts = [
        msgspec.structs.replace(
            whole, operation=each, also=tuple(kind for kind in kinds if kind != each)
        )
        for each in said
    ]
    return msgspec.structs.replace(whole, parts=(whole, *parts))


def _said(found: RawInput, kind: str | None, writes: bool) -> Iterator[Operation]:
    """What the claim names, other than what it may hide."""
    if writes:
        yield "write"
    if kind == "fetch" or found.has_address:
        yield "fetch"
    if found.tools:
        yield "mcp"


def together(claims: Sequence[Access]) -> Access:
    """One access for several claims, to be shown as one question; each of them is decided alone."""
    first, *others = claims
    if not others:
        return first
    kinds = _all(claim.operations for claim in claims)
    alike = all(claim.operation == first.operation for claim in others)
    operation: Operation = first.operation if alike else "other"
    running = [claim for claim in claims if claim.commands] or [first]
    apart = len({(claim.folders, claim.unread_cwd) for claim in running}) > 1
    return Access(
        operation=operation,
        agent=first.agent,
        also=tuple(kind for kind in kinds if kind != operation),
        paths=_all(claim.paths for claim in claims),
        aliases=_all(claim.aliases for claim in claims),
        hazard=next(filter(None, (claim.hazard for claim in claims)), None),
        commands=_all(_with_folder(claim) if apart else claim.commands for claim in claims),
        env=any(claim.env for claim in claims),
        variables=_all(claim.variables for claim in claims),
        cwd=None if apart else running[0].cwd,
        cwds=() if apart else running[0].cwds,
        unread_cwd=next((claim.unread_cwd for claim in running if claim.unread_cwd), None),
        roots=first.roots,
        hosts=_all(claim.hosts for claim in claims),
        names=_all(claim.names for claim in claims),
        claimed=True,
        action=any(claim.action for claim in claims),
        question=any(claim.question for claim in claims),
        complete=all(claim.complete for claim in claims),
        parts=tuple(claims),
    )


def _with_folder(claim: Access) -> tuple[Command, ...]:
    """Its commands as lines that say where each would run."""
    where = claim.unread_cwd or " or ".join(map(shlex.quote, claim.folders))
    lines = (each if isinstance(each, str) else shlex.join(each) for each in claim.commands)
    return tuple(f"cd {where} && {line}" for line in lines)


def _all(groups: Iterable[tuple[T, ...]]) -> tuple[T, ...]:
    return tuple(dict.fromkeys(item for group in groups for item in group))


def _verbs(kind: str | None, verbs: Collection[str]) -> Collection[str]:
    """The kinds that are not commands; a change by a call that says it reads remains one."""
    if kind in _READING:
        return _VIEWING.intersection(verbs)
    return verbs if kind in _WRITING else ()


def _named(found: RawInput, kind: str | None, writes: bool) -> list[str]:
    """The texts to take for paths; in an edit, a text that only looks like one may be content."""
    ends = [end for end in found.ends if kind == "move" or looks_like_a_path(end)]
    has_content = writes and kind not in _WITHOUT_CONTENT
    strays = [] if has_content or found.commands else found.strays
    ends += [name for name in found.new_names if writes or looks_like_a_path(name)]
    return found.paths + found.folders + ends + strays


def _operation(facts: Access, kind: str | None, writes: bool, fetches: bool) -> Operation:
    if facts.commands:
        return "execute"
    if writes:
        return "write"
    if kind == "fetch" and fetches and facts.complete and not facts.paths and facts.tool is None:
        return "fetch"
    named = facts.hosts or facts.tool is not None
    inside = facts.place == "inside" and facts.complete and not named
    return "read" if kind in _READING and inside else "other"


def _claimed(facts: Access, kind: str | None, writes: bool) -> Iterator[Operation]:
    """All that the claim says or may hide, so that no deny is evaded by claiming more at once."""
    if kind == "execute" or not facts.complete:
        yield "execute"
    if writes or not facts.complete:
        yield "write"
    if kind in _READING or not facts.complete:
        yield "read"
    if kind == "fetch" or facts.hosts or not facts.complete:
        yield "fetch"
    if kind not in _TELLING or facts.tool is not None or not facts.complete:
        yield "mcp"


def _hardest(cwds: Sequence[str], roots: Sequence[str]) -> str | None:
    """Of several working directories the one outside the workspace, if there is one."""
    outside = (cwd for cwd in cwds if not any(is_within(cwd, root) for root in roots))
    return next(outside, cwds[0] if cwds else None)


Places: TypeAlias = Mapping[str, str]
"""The real path of each file that a question shows a change of, as it was when it was asked."""


class Claim(msgspec.Struct, frozen=True):
    """What an agent asks permission for, as it was when it asked."""

    access: Access
    title: str
    content: tuple[ToolContent, ...]
    places: Places
    weight: int
    """What the tool calls weigh that it is about."""


class ClaimReader:
    """Reads what the agent of one session asks for."""

    def __init__(
        self, workspace: Workspace, *, agent: str, habits: Habits, state: SessionState
    ) -> None:
        self._workspace = workspace
        self._agent = agent
        self._habits = habits
        self._state = state
        self._lane = Lane()

    async def read(
        self,
        call_id: str | None,
        options: Sequence[PermissionOption],
        subject: Subject,
        turn_id: str | None,
    ) -> Claim:
        known = None if call_id is None else self._thread.tool_call(call_id)
        # As they are now: the calls may change while the claim is read.
        for_several, calls = self._is_for_several(known), self._meant(known, subject, turn_id)
        titles = filter(None, (call.title for call in calls[:MOST_CALLS]))
        title = subject.title or "; ".join(titles)
        content = self._all_shown(calls, subject)
        weight = sum(call.size for call in calls[:MOST_CALLS])
        is_understood = _is_understood(calls, subject) and len(calls) <= MOST_CALLS

        def as_asked(access: Access) -> Access:
            action = access.action or for_several
            question = not is_understood or is_question(options, names_action=action)
            return msgspec.structs.replace(
                access,
                action=action,
                question=access.question or question,
                parts=tuple(map(as_asked, access.parts)),
            )

        reading = self._reading(calls, subject, as_asked)
        inputs = [each for call in calls[:MOST_CALLS] for each in self._inputs(call, subject)]

        def read() -> tuple[Access, Places, tuple[ToolContent, ...]]:
            access = reading()
            words = title, subject.explanation or ""
            return access, self._places(content), other_fields(inputs, access, words, content)

        access, places, others = await self._lane.run(read)
        return Claim(access, title, (*content, *others), places, weight)

    def with_earlier(self, subject: Subject, call_id: str) -> Subject:
        """With what the agent has said of the call so far."""
        if (known := self._thread.tool_call(call_id)) is None:
            return subject
        earlier = Earlier(
            kind=self._habits.kind_of(known),
            inputs=tuple(self._habits.inputs_of(known)),
            diff_paths=tuple(path for diff in known.diffs for path in diff.paths),
            title=known.title,
        )
        return msgspec.structs.replace(subject, earlier=earlier)

    @property
    def _thread(self) -> SessionState:
        """Of the one who asks."""
        return self._state.thread_of(asking_subagent())

    def is_inside(self, real: str) -> bool:
        return any(is_within(real, root) for root in self._real_roots)

    def _meant(
        self, call: ToolCall | None, subject: Subject, turn_id: str | None
    ) -> list[ToolCall]:
        """What a request is about: its own call, and all of the turn that are not over yet, where
        an agent is known to ask for them together. Its own is left out only if it says nothing."""
        if call is None:
            return []
        if not self._is_for_several(call):
            return [call]
        calls = self._thread.tool_calls.values()
        mine = [each for each in calls if each.turn_id == turn_id and each.status in OPEN_STATUSES]
        others = [each for each in mine if each.id != call.id]
        is_silent = _names_nothing(call) and subject.command is None
        return others if others and is_silent else [call, *others]

    def _is_for_several(self, call: ToolCall | None) -> bool:
        return call is not None and call.title in self._habits.permission_titles

    def _reading(
        self, calls: Sequence[ToolCall], subject: Subject, as_asked: Callable[[Access], Access]
    ) -> Callable[[], Access]:
        """What is left to do about a claim, with the calls as they are now."""
        asked: Sequence[ToolCall | None] = calls[:MOST_CALLS] or (None,)
        # What the request says by itself is about its own call, which is the first.
        subjects = (subject, *[NO_SUBJECT] * (len(asked) - 1))
        readings = list(map(self._reading_one, asked, subjects))

        def job() -> Access:
            claims = [as_asked(reading()) for reading in readings]
            _ = [claim.protection for claim in claims]  # may be long too; it is kept
            return together(claims)

        return job

    def _reading_one(self, call: ToolCall | None, subject: Subject) -> Callable[[], Access]:
        home = os.path.expanduser("~")
        roots = self._real_roots
        content = () if call is None else tuple(call.content)
        locations = () if call is None else tuple(call.locations)
        inputs = self._inputs(call, subject)
        reading = functools.partial(
            read_claim,
            None if call is None else self._habits.kind_of(call),
            inputs[0] if len(inputs) == 1 else inputs,
            agent=self._agent,
            cwd=self._workspace.cwd,
            roots=roots,
            home=home,
            look=Reach((*roots, home)).look,
            name=None if call is None else call.name,
            verbs=self._habits.edit_verbs,
            editors=self._habits.edit_tools,
            fetches=call is not None
            and self._habits.fetches(call)
            and all(map(names_address, inputs)),
            # Announced as a change of files, it still is one when it is asked for.
            changes=subject.earlier.kind in _WRITING,
            words=_words_of(call, subject),
            written=[text for diff in diffs_in(content) for text in _texts_of(diff)],
        )
        return lambda: reading(
            diff_paths=[
                *(path for diff in diffs_in(content) for path in diff.paths),
                *subject.earlier.diff_paths,
            ],
            locations=[place.path for place in locations],
        )

    def _inputs(self, call: ToolCall | None, subject: Subject) -> list[Any]:
        """What is read for a claim: the command that is asked for, the call's own input, and what
        it was before."""
        told = [] if call is None else self._habits.inputs_of(call)
        where = {"cwd": subject.cwd} if subject.cwd else {}
        asked = [] if subject.command is None else [{"command": subject.command, **where}]
        found: list[Any] = []
        for each in (*asked, *told, *subject.earlier.inputs):
            if each and not any(_is_same(each, other) for other in found):
                found.append(each)
        return found

    def _all_shown(self, calls: Sequence[ToolCall], subject: Subject) -> tuple[ToolContent, ...]:
        """What they show, and that there are more than can be shown."""
        subjects = (subject, *[NO_SUBJECT] * len(calls))
        asked = zip(calls[:MOST_CALLS], subjects, strict=False)
        shown = [item for call, of in asked for item in _shown(call, self._inputs(call, of))]
        more = len(calls) - MOST_CALLS
        if more > 0:
            shown.append(UnknownItem(UNREAD, f"{more} tool calls more: too many to be shown"))
        return tuple(shown)

    def _places(self, content: Sequence[ToolContent]) -> Places:
        """Where the files of its diffs really are: a yes is for these, whatever the paths lead to
        once it is given."""
        paths = [diff.path for diff in diffs_in(content)][:MOST_PATHS]
        found = ((path, self._real(path)) for path in dict.fromkeys(paths))
        return {path: real for path, real in found if real is not None}

    def _real(self, path: str) -> str | None:
        """What a relative path means is the session's folder, not ours."""
        home = os.path.expanduser("~")
        # Only where it is: that needs no look for links that lead there.
        return claimed_path(path, cwd=self._workspace.cwd, home=home, look=Reach(()).look)

    @property
    def _real_roots(self) -> tuple[str, ...]:
        return real_roots(self._workspace)


def _words_of(call: ToolCall | None, subject: Subject) -> AgentWords:
    """What is said of it and claims nothing; of a resource, what it is and what is in it."""
    titles = [subject.title, subject.explanation or "", subject.earlier.title]
    if call is None:
        return AgentWords(titles=tuple(titles))
    shown = [item.content for item in call.content if isinstance(item, ContentItem)]
    return AgentWords(
        titles=(*titles, call.title),
        texts=tuple(each.text for each in shown),
        uris=tuple(each.uri for each in shown if isinstance(each, ResourceLink | Resource)),
        outputs=() if call.raw_output is None else (call.raw_output,),
        shows_terminal=any(isinstance(item, TerminalItem) for item in call.content),
    )


def _texts_of(diff: Diff) -> tuple[str, ...]:
    return (diff.new_text, diff.old_text or "")


def _names_nothing(call: ToolCall) -> bool:
    """Whether there is nothing to judge in it but its title."""
    told = call.raw_input or call.content or call.locations or call.name or call.cut
    return call.kind == "other" and not told


def _shown(call: ToolCall, inputs: Sequence[Any]) -> tuple[ToolContent, ...]:
    """What the call shows. Some agents tell a whole file in their raw input alone: as a diff it can
    be read by the person who is asked, and a yes covers it."""
    told = () if call.diffs or call.cut else filter(None, map(whole_file, inputs))
    shown = (*call.content, *(Diff(*each) for each in dict.fromkeys(told)))
    if not call.cut:
        return shown
    return (*shown, UnknownItem(UNREAD, f"{call.cut} characters more: too much to be shown"))


def _is_understood(calls: Sequence[ToolCall], subject: Subject) -> bool:
    """Whether it is known what is asked for. No rule may allow something with a part that nobody
    here can read, whatever the rest of it says."""
    if any(call.cut or any(isinstance(i, UnknownItem) for i in call.content) for call in calls):
        return False
    return bool(calls) if subject.command is None else bool(subject.command.strip())


def _is_same(one: Any, other: Any) -> bool:
    try:
        return bool(one == other)
    except RecursionError:
        return False  # then each is read
