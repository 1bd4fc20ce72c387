"""Asking at a terminal that is not there: what is written, and what becomes of what is typed."""

from __future__ import annotations

import io
from typing import Any

from dragoman.cli.ask.asker import Choice, TerminalAsker, Tty
from dragoman.cli.render.status_line import Status
from dragoman.cli.render.style import Style
from dragoman.host.forms.elicitation import ElicitationAnswer, ElicitationRequest
from dragoman.host.permissions.questions import PermissionRequest
from dragoman.session.content import Diff
from dragoman.session.facts import PermissionOffer, PermissionOption


class Typist(Tty):
    """Somebody who types these lines; None is Ctrl-D."""

    def __init__(self, *lines: str | None) -> None:
        self.lines = list(lines)
        self.written = ""

    def write(self, text: str) -> None:
        self.written += text

    def forget_typed(self) -> None:
        pass

    async def line(self) -> str | None:
        typed = self.lines.pop(0)
        self.written += "^D\n" if typed is None else f"{typed}\n"
        return typed


def asker(typist: Typist) -> TerminalAsker:
    return TerminalAsker(typist, Style(colour=False), Status(io.StringIO(), visible=False))


async def filled_in(typist: Typist, schema: dict[str, Any] | None) -> ElicitationAnswer:
    request = ElicitationRequest(request_id="e", message="Who?", mode="form", schema=schema)
    answer = await asker(typist).create_elicitation(request)
    assert typist.lines == []
    return answer


# ── forms ─────────────────────────────────────────────────────────────────────────────────────

NAME = {"properties": {"name": {"type": "string"}, "age": {}}, "required": ["name"]}


async def test_a_field_that_is_needed_is_asked_for_again() -> None:
    typist = Typist("", "  ", "Ada", "")
    assert await filled_in(typist, NAME) == ElicitationAnswer("accept", {"name": "Ada"})
    assert typist.written == (
        "\n? Who?\n  Ctrl-D declines\n"
        "  name: \n  required\n"
        "  name:   \n  required\n"
        "  name: Ada\n  age (optional): \n"
    )


async def test_the_end_of_input_declines_a_form_wherever_it_comes() -> None:
    assert await filled_in(Typist(None), NAME) == ElicitationAnswer("decline")
    assert await filled_in(Typist("Ada", None), NAME) == ElicitationAnswer("decline")


async def test_what_does_not_fit_is_asked_for_again_and_enter_takes_the_default() -> None:
    schema = {"properties": {"many": {"type": "integer", "default": 2}}, "required": ["many"]}
    typist = Typist("much", "")
    assert await filled_in(typist, schema) == ElicitationAnswer("accept", {"many": 2})
    assert "  expected a whole number\n" in typist.written


async def test_choices_and_what_they_mean_stand_above_the_field() -> None:
    sizes = [{"const": "A", "title": "Alpha", "description": "first"}, {"const": "B"}]
    typist = Typist("Alpha")
    schema = {"properties": {"x": {"oneOf": sizes, "title": "Pick", "description": "just one"}}}
    assert await filled_in(typist, schema) == ElicitationAnswer("accept", {"x": "A"})
    asked = "  just one\n    A  Alpha: first\n    B\n  Pick (one of A, B, optional): Alpha\n"
    assert typist.written.endswith(asked)


async def test_a_form_without_fields_is_not_agreed_to_by_itself() -> None:
    assert await filled_in(Typist(""), None) == ElicitationAnswer("decline")
    assert await filled_in(Typist("y"), {"properties": {}}) == ElicitationAnswer("accept")


# ── permissions ───────────────────────────────────────────────────────────────────────────────


async def permitted(typist: Typist, *kinds: str) -> str | None:
    request = PermissionRequest(
        request_id="p",
        session_id="s",
        agent="goose",
        operation="execute",
        options=[PermissionOption(f"id-{kind}", kind, kind) for kind in kinds],
    )
    choice = await asker(typist).request_permission(request)
    return None if choice is None else choice.option_id


async def test_a_number_means_the_option_that_is_shown_with_it() -> None:
    goose = ("allow_always", "allow_once", "reject_once", "reject_always")
    chosen = [await permitted(Typist(number), *goose) for number in "1234"]
    assert chosen == ["id-allow_once", "id-allow_always", "id-reject_once", "id-reject_always"]


async def test_letters_are_answers_where_it_is_clear_which() -> None:
    goose = ("allow_always", "allow_once", "reject_once", "reject_always")
    chosen = [await permitted(Typist(letter), *goose) for letter in ("y", " N ", "a")]
    assert chosen == ["id-allow_once", "id-reject_once", "id-allow_always"]
    twice = Typist("y", "a", "2")
    assert await permitted(twice, "allow_once", "allow_once", "reject_once") == "id-allow_once"
    assert twice.written.count("expected a number from 1 to 3") == 2


async def test_an_answer_that_is_none_is_told_what_was_expected() -> None:
    typist = Typist("9", "yes", "", "1")
    assert await permitted(typist, "allow_once", "reject_once") == "id-allow_once"
    assert typist.written.count("expected a number from 1 to 2\nchoose 1-2: ") == 3


async def test_the_end_of_input_answers_no_question() -> None:
    assert await permitted(Typist(None), "allow_once") is None


async def test_v_shows_all_of_what_was_too_long_before_it_is_answered() -> None:
    lines = "".join(f"line {n}\n" for n in range(80))
    request = PermissionRequest(
        request_id="p",
        session_id="s",
        agent="goose",
        operation="write",
        content=[Diff("/w/a", lines)],
        options=[PermissionOption("yes", "Yes", "allow_once")],
    )
    typist = Typist("v", "w", "1")
    assert await asker(typist).request_permission(request) == Choice("yes")
    before, after = typist.written.split("choose 1, v to show everything: v\n")
    assert "+line 79" in before
    assert "line 40" not in before
    assert all(f"+line {n}\n" in after for n in range(80))
    assert after.count("  1. Allow once\n") == 1
    assert "expected a number from 1 to 1\nchoose 1, v to show everything: 1\n" in after


async def test_what_fits_has_no_more_to_show() -> None:
    typist = Typist("v", "1")
    assert await permitted(typist, "allow_once") == "id-allow_once"
    assert typist.written.endswith("choose 1: v\nexpected a number from 1 to 1\nchoose 1: 1\n")


# ── more than once ────────────────────────────────────────────────────────────────────────────


def offer(breadth: str, scope: str, subject: str, *, confirm: bool = False) -> PermissionOffer:
    how_long = {"session": "in this session", "project": "in this project"}[scope]
    words = f"Allow {subject} {how_long}"
    offer_id = f"{breadth}:{scope}"
    return PermissionOffer(offer_id, breadth, scope, subject, words, "the rule", confirm)


OFFERS = [
    offer("this", "session", "this command"),
    offer("this", "project", "this command"),
    offer("program", "session", "“make …”"),
]


async def offered(typist: Typist, offers: list[PermissionOffer], **more: Any) -> Choice | None:
    request = PermissionRequest(
        request_id="p",
        session_id="s",
        agent="goose",
        operation="execute",
        argv=["make", "test"],
        options=[PermissionOption("yes", "Yes", "allow_once")],
        offers=offers,
        **more,
    )
    return await asker(typist).request_permission(request)


async def test_m_asks_what_to_allow_and_for_how_long() -> None:
    typist = Typist("m", "1", "2")
    assert await offered(typist, OFFERS) == Choice("this:project")
    assert typist.written.count("make test") == 1
    assert typist.written.endswith(
        "  1. Allow once\n     the agent calls this “Yes”\n  m. Allow more than this once …\n"
        "choose 1: m\n"
        "  1. this command\n  2. “make …”\nwhat? 1-2, Enter to go back: 1\n"
        "  1. in this session\n  2. in this project\nhow long? 1-2, Enter to go back: 2\n"
        "  from now on: the rule\n"
    )
    assert await offered(Typist("m", "2", "1"), OFFERS) == Choice("program:session")


async def test_one_can_go_back_from_what_is_offered() -> None:
    assert await offered(Typist("m", "", "1"), OFFERS) == Choice("yes")
    assert await offered(Typist("m", "9", "1", "", "1"), OFFERS) == Choice("yes")


async def test_a_dangerous_command_is_marked_and_has_to_be_said_twice() -> None:
    offers = [offer("this", "project", "this command", confirm=True)]
    typist = Typist("m", "1", "1", "y", "m", "1", "1", "yes")
    choice = await offered(typist, offers, danger="rm deletes folders")
    assert choice == Choice("this:project", confirmed=True)
    assert typist.written.count("  ! rm deletes folders\n") == 1
    assert typist.written.count("type yes to allow it from now on: ") == 2


async def test_without_offers_m_is_no_answer() -> None:
    typist = Typist("m", "1")
    assert await offered(typist, []) == Choice("yes")
    assert "expected a number from 1 to 1\n" in typist.written
