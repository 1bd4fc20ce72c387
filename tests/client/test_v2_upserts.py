"""Messages, terminals and diffs as version 2 tells them, and what that adds to what is known."""

from __future__ import annotations

import base64
import gc
from collections.abc import Callable
from types import FunctionType, ModuleType
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from support.cost import is_done_within
from support.examples import examples
from support.v2_agent import updates

from dragoman.client.dialects.v2 import upserts
from dragoman.client.dialects.v2.inbound import Serving
from dragoman.client.dialects.v2.wire_format import diffs
from dragoman.schema import codec, v2
from dragoman.session import events as e
from dragoman.session.content import Diff, Text, UnknownItem
from dragoman.session.reduce import reduce
from dragoman.session.state import AgentEntry, SessionState
from dragoman.session.state_limits import ID, LIMITS


class Told:
    """The host of a dialect, as far as updates need one: what is told is folded."""

    def __init__(self) -> None:
        self.state = SessionState("s")
        self.events: list[e.Event] = []
        host: Any = self
        self.serving = Serving(host)

    def on_events(self, session_id: str, events: list[e.Event], size: int) -> None:
        for event in events:
            event.seq = len(self.events) + 1
            self.events.append(event)
            reduce(self.state, event)

    def known(self, session_id: str) -> SessionState:
        return self.state

    def update(self, *wire: Any) -> None:
        for update in wire:
            params = codec.encode({"sessionId": "s", "update": update})
            self.serving.on_notification("session/update", msgspec.Raw(params))


def text(*words: str) -> list[v2.ContentBlock]:
    return [v2.TextContent(text=word) for word in words]


def whole(content: Any = UNSET) -> v2.AgentMessage:
    return v2.AgentMessage(message_id="m", content=content)


def chunk(word: str) -> v2.AgentMessageChunk:
    return v2.AgentMessageChunk(message_id="m", content=v2.TextContent(text=word))


# ── messages ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("told", "now", "replaced"),
    [
        ([whole(text("A")), chunk("B")], "AB", 0),
        ([chunk("A"), chunk("B"), whole(text("AB"))], "AB", 0),
        ([chunk("A"), whole(text("A", "BC"))], "ABC", 0),
        ([chunk("A"), whole()], "A", 0),
        ([whole(text("A")), chunk("B"), whole(text("C")), chunk("D")], "CD", 1),
        ([chunk("AB"), whole(text("A"))], "A", 1),
        ([chunk("A"), whole(None)], "", 1),
        ([chunk("A"), whole([]), chunk("B")], "B", 1),
    ],
)
def test_a_message_is_as_it_was_told_last(told: list[Any], now: str, replaced: int) -> None:
    host = Told()
    host.update(*told)
    assert "".join(entry.text for entry in host.state.entries) == now
    assert sum(getattr(event, "replaces", False) for event in host.events) == replaced


def test_a_message_of_other_things_than_words_is_compared_whole() -> None:
    image = v2.ImageContent(data="aQ==", mime_type="image/png")
    other = v2.ImageContent(data="eA==", mime_type="image/png")
    host = Told()
    host.update(whole([*text("A"), image]), whole([*text("A"), image, *text("B")]))
    assert len(host.events) == 3
    host.update(whole([*text("A"), other]))
    (entry,) = host.state.entries
    assert [part.text for part in getattr(entry, "content", [])] == ["A", ""]


def test_a_message_nobody_holds_a_state_of_is_told_as_it_is() -> None:
    events = upserts.message(whole(text("A", "B")), None)
    assert [event.text for event in events] == ["A", "B"]


# ── terminals ─────────────────────────────────────────────────────────────────────────────────


def printed(data: bytes) -> v2.TerminalOutputChunk:
    return v2.TerminalOutputChunk(terminal_id="t", data=base64.b64encode(data).decode())


def terminal(**fields: Any) -> v2.TerminalUpdate:
    if isinstance(data := fields.get("output"), bytes):
        fields["output"] = v2.TerminalOutput(data=base64.b64encode(data).decode())
    return v2.TerminalUpdate(terminal_id="t", **fields)


@examples(60)
@given(st.text(max_size=20), st.data())
def test_characters_may_be_cut_anywhere(text: str, data: st.DataObject) -> None:
    raw = text.encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=5)))
    pieces = [raw[a:b] for a, b in zip([0, *cuts], [*cuts, len(raw)], strict=True)]
    host = Told()
    host.update(*map(printed, pieces))
    assert host.state.terminals["t"].output == text if text else not host.events


def test_a_character_may_be_cut_between_a_snapshot_and_what_follows() -> None:
    host = Told()
    host.update(terminal(output="é".encode()[:1]), printed("é".encode()[1:]))
    assert host.state.terminals["t"].output == "é"


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    host = Told()
    host.update(printed(b"\xff!"), printed(b"\xc3"), terminal(exit_status=v2.TerminalExitStatus()))
    assert host.state.terminals["t"].output == "\ufffd!\ufffd"


def test_what_is_no_base64_is_shown_as_it_came() -> None:
    host = Told()
    host.update(v2.TerminalOutputChunk(terminal_id="t", data="plain words"))
    assert host.state.terminals["t"].output == "plain words"


def test_a_snapshot_replaces_what_was_printed() -> None:
    host = Told()
    host.update(printed(b"one"), terminal(output=b"two"), printed(b"!"))
    assert host.state.terminals["t"].output == "two!"
    host.update(terminal(output=None))
    assert host.state.terminals["t"].output == ""


def test_a_snapshot_that_only_adds_is_told_as_what_it_adds() -> None:
    host = Told()
    host.update(printed(b"one"), terminal(output=b"one two"), terminal(output=b"one two"))
    outputs = [event for event in host.events if isinstance(event, e.TerminalOutput)]
    assert [(event.data, event.replaces) for event in outputs] == [("one", False), (" two", False)]


def test_a_terminal_is_patched_by_what_is_told() -> None:
    host = Told()
    cancel = v2.TerminalCapabilities(cancel=v2.TerminalCancelCapabilities())
    host.update(terminal(command="make", cwd="/w", capabilities=cancel))
    found = host.state.terminals["t"]
    assert (found.command, found.cwd, found.cancellable) == ("make", "/w", True)
    host.update(terminal(cwd=None), terminal())
    assert (found.command, found.cwd, found.cancellable) == ("make", "", True)
    assert len(host.events) == 2
    ended = v2.TerminalExitStatus(exit_code=2)
    host.update(terminal(exit_status=ended, capabilities=None), terminal(exit_status=ended))
    assert (found.running, found.exit_code, found.cancellable) == (False, 2, False)
    assert len(host.events) == 3
    host.update(terminal(command="make all"))
    assert (found.command, found.running, found.exit_code) == ("make all", False, 2)
    host.update(terminal(exit_status=None))
    assert (found.running, found.exit_code) == (True, None)


def test_a_message_of_many_pieces_is_compared_in_little_time() -> None:
    """Each joined to all before it, this copies 20 GB."""
    told, pieces = Told(), text(*["x" * 100] * 20_000)
    told.update(chunk("x"))
    assert is_done_within(1.5, lambda: told.update(whole(pieces)), repeat=1)
    [entry] = told.state.entries
    assert isinstance(entry, AgentEntry)
    assert entry.text == "x" * 2_000_000


# ── diffs ─────────────────────────────────────────────────────────────────────────────────────

EDIT = "--- /w/a\n+++ /w/a\n@@ -1 +1 @@\n-diff --git is a word\n+x\n"
PATCH = (
    f"diff --git /w/a /w/a\n{EDIT}"
    "diff --git /w/old /w/new\nsimilarity index 100%\nrename from /w/old\nrename to /w/new\n"
    'diff --git "/w/caf\\303\\251" "/w/caf\\303\\251"\nnew file mode 100644\n'
    '--- /dev/null\n+++ "/w/caf\\303\\251"\n@@ -0,0 +1 @@\n+y\n'
)


def change_of(*changes: Any, patch: str | None = None, how: str = "git_patch") -> list[Any]:
    told = None if patch is None else v2.DiffPatch(format=how, text=patch)
    return diffs(v2.Diff(changes=list(changes), patch=told, meta={"k": 1}))


def test_each_file_gets_its_part_of_the_patch() -> None:
    edit, move, add = change_of(
        v2.DiffModify(path="/w/a", file_type="text"),
        v2.DiffMove(old_path="/w/old", path="/w/new"),
        v2.DiffAdd(path="/w/café", mime_type="text/plain"),
        patch=PATCH,
    )
    assert edit.patch == f"diff --git /w/a /w/a\n{EDIT}"
    assert (edit.operation, edit.file_type, edit.meta) == ("modify", "text", {"k": 1})
    assert (move.operation, move.old_path) == ("move", "/w/old")
    assert "rename to /w/new" in move.patch
    assert add.patch.endswith("+y\n")
    assert (add.operation, add.mime_type) == ("add", "text/plain")


def test_many_sections_for_other_files_are_compared_in_little_time() -> None:
    patch = "".join(f"diff --git a/s{n} b/s{n}\n--- a/s{n}\n+++ b/s{n}\n" for n in range(600))
    told = [v2.DiffModify(path=f"/w/{n}") for n in range(600)]
    assert is_done_within(1, lambda: change_of(*told, patch=patch))
    first, *others, rest = change_of(*told, patch=patch)
    assert (first.patch, rest) == (patch, UnknownItem("patch", patch))
    assert not any(each.patch for each in others)


def test_a_section_with_many_names_is_compared_in_little_time() -> None:
    names = "".join(f"rename from {'./' * n}s\n" for n in range(900))
    patch = f"diff --git a/s b/s\n@@ -1 +1 @@\n-a\n+b\n{names}rename from other\n"
    told = [v2.DiffModify(path=f"/w/s{'/.' * 900}/s")] * 1000
    assert is_done_within(1, lambda: change_of(*told, patch=patch))
    assert change_of(*told, patch=patch)[-1] == UnknownItem("patch", patch)


def test_a_patch_of_very_many_lines_belongs_to_no_change() -> None:
    """A rule must not allow what was not read."""
    patch = "diff --git a/w/a b/w/a\n--- a/w/a\n+++ b/w/a\n" + "+x\n" * 60_000
    told, rest = change_of(v2.DiffModify(path="/w/a"), patch=patch)
    assert (told.patch, rest) == (patch, UnknownItem("patch", patch))


def test_a_change_needs_no_patch() -> None:
    assert change_of(v2.DiffDelete(path="/w/a", file_type="binary")) == [
        Diff("/w/a", "", operation="delete", file_type="binary", meta={"k": 1})
    ]


def test_nothing_of_a_patch_is_lost() -> None:
    first, second, rest = change_of(
        v2.DiffModify(path="/w/b"), v2.DiffCopy(old_path="/w/b", path="/w/c"), patch=PATCH
    )
    assert (first.patch, second.patch) == (PATCH, None)
    assert rest == UnknownItem("patch", PATCH)
    odd, rest = change_of(v2.DiffModify(path="/w/b"), patch="@@ words", how="_ours")
    assert odd.patch == "@@ words"
    assert rest == UnknownItem("patch", "@@ words")


def test_a_part_of_a_patch_about_a_file_that_is_not_named_is_shown_and_never_understood() -> None:
    hook = "diff --git a/.git/hooks/x b/.git/hooks/x\nnew file mode 100755\nGIT binary patch\n"
    mine, rest = change_of(
        v2.DiffModify(path="/w/a"),
        patch=f"diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n{hook}",
    )
    assert mine.patch.endswith(hook)
    assert rest == UnknownItem("patch", hook)
    (alone,) = change_of(
        v2.DiffModify(path="/w/src/a"), patch="--- a/src/a\n+++ b/src/a\n@@ -1 +1 @@\n"
    )
    assert alone.patch is not None


OWN = "diff --git a/src/a b/src/a\n--- a/src/a\n+++ b/src/a\n@@ -1 +1 @@\n-x\n+y\n"
SECOND_FILES = [
    "diff --git a/src/a b/.envrc\nrename from src/a\nrename to .envrc\n",
    "diff --git a/src/a b/.envrc\nrename from /w/src/a\nrename to .envrc\n@@ -1 +1 @@\n-x\n+y\n",
    "diff --git a/src/a b/src/a\n--- a/src/a\n+++ b/.envrc\n@@ -1 +1 @@\n-x\n+y\n",
    "diff --git a/src/a b/src/a\ncopy to .envrc\n",
    f"{OWN}--- /dev/null\n+++ b/.envrc\n@@ -0,0 +1 @@\n+y\n",
    f"{OWN}rename to .envrc\n",
    'diff --git a/src/a b/src/a\n--- a/src/a\n+++ "b/\\056envrc"\n@@ -1 +1 @@\n-x\n+y\n',
]


@pytest.mark.parametrize("patch", SECOND_FILES)
def test_a_part_of_a_patch_that_names_another_file_as_well_is_shown_and_never_understood(
    patch: str,
) -> None:
    mine, rest = change_of(v2.DiffModify(path="/w/src/a"), patch=patch)
    assert mine.patch == patch
    assert rest == UnknownItem("patch", patch)


def test_a_part_of_a_patch_may_name_both_files_of_a_move() -> None:
    moved = "diff --git a/src/a b/lib/b\nrename from src/a\nrename to lib/b\n"
    (move,) = change_of(v2.DiffMove(old_path="/w/src/a", path="/w/lib/b"), patch=moved)
    assert move.patch == moved
    blank = (
        "diff --git a/my file b/my file\n--- a/my file\t\n+++ b/my file\t\n@@ -1 +1 @@\n-x\n+y\n"
    )
    (edit,) = change_of(v2.DiffModify(path="/w/my file"), patch=blank)
    assert edit.patch == blank


def test_a_change_nobody_knows_is_kept_as_it_came() -> None:
    raw = b'{"operation":"_link","path":"/w/a"}'
    wire = codec.decode(b'{"type":"diff","changes":[%b]}' % raw, v2.Diff)
    assert diffs(wire) == [UnknownItem("diff/_link", raw.decode())]


def test_a_diff_without_a_change_is_something_nobody_understands() -> None:
    raw = '{"type":"diff","changes":[],"patch":{"format":"git_patch","text":"diff --git /a /a\\n"}}'
    assert diffs(codec.decode(raw.encode(), v2.Diff)) == [UnknownItem("diff", raw)]


INSIDE = {"operation": "modify", "path": "/w/a"}
READABLE = {"type": "diff", "changes": [INSIDE, {"operation": "_link"}]}


@pytest.mark.parametrize(
    ("kind", "told", "lost"),
    [
        ("tool_call_update", {"content": [READABLE], "locations": [{"path": "/w/a"}]}, False),
        ("tool_call_update", {"content": [{"type": "_x", "changes": [1]}]}, False),
        ("tool_call_update", {"content": None, "locations": None}, False),
        ("tool_call_update", {"title": "x"}, False),
        ("tool_call_content_chunk", {"content": READABLE}, False),
        (
            "tool_call_update",
            {"content": [{"type": "diff", "changes": [INSIDE, {"operation": "modify"}]}]},
            True,
        ),
        ("tool_call_update", {"content": [{"type": "diff"}]}, True),
        ("tool_call_update", {"content": [7]}, True),
        ("tool_call_update", {"content": "rm"}, True),
        ("tool_call_update", {"locations": [{"path": "/w/a"}, {"path": 7}]}, True),
        (
            "tool_call_content_chunk",
            {"content": {"type": "diff", "changes": [INSIDE, {"operation": "move"}]}},
            True,
        ),
    ],
)
def test_what_cannot_be_read_of_a_tool_call_leaves_a_trace(
    kind: str, told: dict[str, Any], lost: bool
) -> None:
    host = Told()
    update = {"sessionUpdate": kind, "toolCallId": "c"} | told
    host.update(update)
    unread = [item for item in host.state.tool_calls["c"].content if _is_unread(item)]
    raw = codec.encode(update).decode()
    assert unread == ([UnknownItem("unread", raw)] if lost else [])


def _is_unread(item: Any) -> bool:
    return isinstance(item, UnknownItem) and item.kind == "unread"


# ── what is kept ──────────────────────────────────────────────────────────────────────────────


class Deaf(Told):
    """A host that keeps nothing of what it is told."""

    def on_events(self, session_id: str, events: list[e.Event], size: int) -> None:
        pass


def output_of(terminal_id: str) -> dict[str, str]:
    return {"sessionUpdate": "terminal_output_chunk", "terminalId": terminal_id, "data": "QQ=="}


def said(message_id: str, text: str) -> dict[str, Any]:
    content = {"type": "text", "text": text}
    return {"sessionUpdate": "user_message_chunk", "messageId": message_id, "content": content}


FLOODS: dict[str, Callable[[int], tuple[str, dict[str, Any]]]] = {
    "terminals": lambda number: ("s", output_of(f"{number}")),
    "terminals with long names": lambda number: ("s", output_of(f"{number}{'x' * 50_000}")),
    "terminals that end": lambda number: (
        "s",
        {"sessionUpdate": "terminal_update", "terminalId": f"{number}", "exitStatus": {}},
    ),
    "messages": lambda number: ("s", said(f"{number}", "x" * 20_000)),
    "messages with long names": lambda number: ("s", said(f"{number}{'x' * 50_000}", "p")),
    "pieces of a message": lambda _: ("s", said("m", "x" * 20_000)),
    "sessions": lambda number: (f"{number}", output_of("t")),
    "sessions with long names": lambda number: (f"{number}{'x' * 50_000}", output_of("t")),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_what_is_kept_to_understand_an_agent_is_bounded(flood: str) -> None:
    host = Deaf()
    foreground = host.serving.conversations.of("s").foreground
    prompt = foreground.prompted([Text("prompt")], lambda finished: None)
    for number in range(500 if "long" in flood else 4_000):
        session_id, update = FLOODS[flood](number)
        params = codec.encode({"sessionId": session_id, "update": update})
        host.serving.on_notification("session/update", msgspec.Raw(params))
    foreground.acknowledged(prompt, None)
    objects, characters = kept_by(host.serving)
    assert objects < 20 * LIMITS.others
    assert characters < 4 * LIMITS.others * ID


def kept_by(root: Any) -> tuple[int, int]:
    """How many objects can be reached from one, and the characters of all texts among them."""
    seen: dict[int, Any] = {}
    rest = [root]
    while rest:
        each = rest.pop()
        is_code = isinstance(each, type | ModuleType | FunctionType)
        if id(each) not in seen and not is_code:
            seen[id(each)] = each
            rest += gc.get_referents(each)
            rest += each if isinstance(each, dict) else ()  # which does not tell of its keys
    return len(seen), sum(len(each) for each in seen.values() if isinstance(each, str))


def test_a_session_that_was_closed_leaves_nothing() -> None:
    host = Deaf()
    before = kept_by(host.serving)
    host.serving.conversations.of("s")
    host.update(output_of("t"))
    assert kept_by(host.serving) > before
    host.serving.conversations.forget("s")
    assert kept_by(host.serving) == before


# ── anything ──────────────────────────────────────────────────────────────────────────────────


@examples(150)
@given(st.lists(updates(), max_size=8))
def test_any_updates_in_any_order_fold(told: list[Any]) -> None:
    host = Told()
    host.update(*told)
    again = SessionState("s")
    for event in host.events:
        reduce(again, event)
    assert again == host.state
    assert not any(isinstance(event, e.UnknownUpdate) for event in host.events)


def test_what_nobody_knows_is_kept_as_it_came() -> None:
    host = Told()
    host.update({"sessionUpdate": "_weather", "sky": "clear"})
    host.update({"sessionUpdate": "plan_update", "plan": {"type": "_map", "planId": "p"}})
    host.update({"sessionUpdate": "agent_message_chunk", "messageId": 7})
    kinds = [event.kind for event in host.events if isinstance(event, e.UnknownUpdate)]
    assert kinds == ["_weather", "plan_update/_map", "agent_message_chunk"]


def test_values_nobody_knows_are_kept() -> None:
    host = Told()
    host.update(
        {"sessionUpdate": "tool_call_update", "toolCallId": "c", "kind": "_x", "status": "_y"}
    )
    odd = {"type": "_video", "src": "x"}
    host.update({"sessionUpdate": "agent_message", "messageId": "m", "content": [odd]})
    call = host.state.tool_calls["c"]
    assert (call.kind, call.status) == ("_x", "_y")
    assert isinstance(host.events[-1], e.AgentMessage)
    assert host.events[-1].content != Text("")


def test_what_changes_nothing_but_meta_is_kept() -> None:
    told = Told()
    told.update(whole(text("Hello")), terminal(command="ls"))
    before = msgspec.json.encode(told.state.entries)
    mark = {"vendor": 1}
    told.update(
        v2.AgentMessage(message_id="m", content=UNSET, meta=mark),
        v2.AgentMessage(message_id="m", content=text("Hello"), meta=mark),
        v2.TerminalUpdate(terminal_id="t", meta=mark),
    )
    assert [event.meta for event in told.events[-3:]] == [mark] * 3
    assert msgspec.json.encode(told.state.entries) == before
    told.update(whole(text("Hello")))
    assert told.events[-1].meta == mark, "what changes nothing at all is no event"
