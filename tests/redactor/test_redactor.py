from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import msgspec
import pytest
from redactor.planted import SHAPES, pieces, text_with

import dragoman
from dragoman.redactor.event_redactor import redacted_events
from dragoman.redactor.secret_kinds import is_secretive
from dragoman.redactor.text_redactor import Redactor

EACH = 10
ROOT = Path(dragoman.__file__).parents[2]
PLANTED = [
    (shape, draw(random.Random(f"{shape} {number}")))
    for shape, draw in SHAPES.items()
    for number in range(EACH)
]


def body(**members: Any) -> bytes:
    return msgspec.json.encode(members)


def cleaned(*bodies: bytes, known: dict[str, str] | None = None) -> tuple[list[Any], Redactor]:
    redactor = Redactor(known)
    events = [msgspec.json.decode(each) for each in redacted_events(lambda: bodies, redactor)]
    return events, redactor


def said(text: str, message_id: str | None = "m", **more: Any) -> bytes:
    return body(
        type="agent_message", content={"type": "text", "text": text}, messageId=message_id, **more
    )


def leaks(secret: str, text: str) -> bool:
    """Whether a part of it that helps to guess the rest is there."""
    secret = secret.removeprefix("https://hooks.slack.com/services/")
    lines = [line for line in secret.split("\n") if not line.startswith("-----")]
    return any(line[at : at + 8] in text for line in lines for at in range(len(line) - 7))


# ── what is removed ───────────────────────────────────────────────────────────────────────────


def test_of_two_hundred_planted_secrets_almost_none_is_left_in_texts() -> None:
    assert len(SHAPES) >= 20
    assert len(PLANTED) >= 200
    left = [
        (shape, secret)
        for shape, secret in PLANTED
        if leaks(secret, Redactor().redacted(text_with(shape, secret, random.Random(secret))))
    ]
    assert len(left) <= len(PLANTED) // 100, left


def test_of_two_hundred_secrets_said_in_pieces_almost_none_is_left() -> None:
    left: list[str] = []
    for shape, secret in PLANTED:
        parts = pieces(text_with(shape, secret, random.Random(secret)), random.Random(secret))
        events, _ = cleaned(*[said(part) for part in parts])
        assert len(events) == len(parts)
        if leaks(secret, "".join(event["content"]["text"] for event in events)):
            left.append(secret)
    assert len(left) <= len(PLANTED) // 100, left


def test_a_secret_that_was_seen_once_is_removed_where_nothing_tells_that_it_is_one() -> None:
    events, _ = cleaned(
        body(type="tool_call", toolCallId="t", rawInput={"password": "correct7horse"}),
        body(type="file_written", path="notes", after="then type correct7horse and go on"),
    )
    assert "correct7horse" not in msgspec.json.encode(events).decode()


def test_the_beginning_of_a_secret_at_the_end_of_a_text_is_removed() -> None:
    token = "ghp_" + "a1B2c3D4e5" * 4
    events, _ = cleaned(
        body(type="tool_call", toolCallId="t", title=f"use {token[:20]}"),
        body(type="tool_call", toolCallId="t", title=f"use {token}"),
    )
    assert events[0]["title"] == "use [removed: GitHub token]"


def test_the_values_of_known_variables_are_removed() -> None:
    events, redactor = cleaned(said("it is plain-words-only"), known={"KEY": "plain-words-only"})
    assert events[0]["content"]["text"] == "it is [removed: value of KEY]"
    assert redactor.counts == {"value of KEY": 1}


def test_a_known_value_of_a_few_characters_is_not_looked_for() -> None:
    events, _ = cleaned(said("a test is a test"), known={"MODE": "test"})
    assert events[0]["content"]["text"] == "a test is a test"


def test_pieces_of_one_message_are_searched_as_one_though_others_come_between() -> None:
    token = "npm_" + "a1B2c3D4e5F6" * 3
    events, redactor = cleaned(
        said("use " + token[:10]),
        body(type="terminal_output", terminalId="x", data="…"),
        said("something else", "other"),
        said(token[10:] + " now"),
    )
    texts = [event["content"]["text"] for event in events if "content" in event]
    assert texts == ["use [removed: npm token]", "something else", " now"]
    assert redactor.counts == {"npm token": 1}


def test_a_text_that_replaces_another_is_not_joined_with_it() -> None:
    events, _ = cleaned(said("ghp_" + "a" * 20), said("b" * 20, replaces=True))
    assert [event["content"]["text"] for event in events] == ["ghp_" + "a" * 20, "b" * 20]


def test_output_of_a_terminal_in_a_subagent_is_searched_as_one() -> None:
    token = "hf_" + "aBcDeFgHiJ" * 4
    parts = [
        body(
            type="subagent_event",
            sessionId="s",
            event={"type": "terminal_output", "terminalId": "t", "data": data},
        )
        for data in (token[:8], token[8:])
    ]
    events, _ = cleaned(*parts)
    assert [event["event"]["data"] for event in events] == ["[removed: Hugging Face token]", ""]


# ── what stays ────────────────────────────────────────────────────────────────────────────────


def test_of_ordinary_words_at_most_one_in_a_thousand_is_harmed() -> None:
    words = harmed = 0
    for path in (
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("src/**/*.py"),
        *ROOT.glob("web/src/**/*.ts*"),
    ):
        text = path.read_text()
        spans = Redactor().spans(text)
        words += len(text.split())
        harmed += sum(max(1, len(text[span.start : span.end].split())) for span in spans)
    assert words > 100_000
    assert harmed <= words / 1000


@pytest.mark.parametrize(
    "text",
    [
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "123e4567-e89b-12d3-a456-426614174000",
        "password = get_password()",
        'token: str = ""',
        'counted_tokens="session"',
        "api_key = os.environ['API_KEY']",
        "src/dragoman/host/permissions/always_rules.py",
        "getUserById2AndThenSomethingElse3WithMoreWords",
        "https://example.org/a/b?c=d",
        "sha512-T7jf+5zgsZHwNJ4lvQ7/aezbyk0nNX+zJVWpmHA7VYsEx7a7qr5Rg5IbtJFqkgze5Y2s==",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert Redactor().redacted(text) == text


def test_ids_stay_so_that_events_still_belong_together() -> None:
    call = "toolu_01A2b3C4d5E6f7G8h9J0kLmN"
    events, _ = cleaned(body(type="tool_call", toolCallId=call, title="x", seq=3, at=1.5))
    assert events == [{"type": "tool_call", "toolCallId": call, "title": "x", "seq": 3, "at": 1.5}]


def test_pictures_stay() -> None:
    picture = {"type": "image", "data": "iVBORw0KGgo" + "aB3" * 40, "mimeType": "image/png"}
    events, _ = cleaned(body(type="turn_started", turnId="t", content=[picture]))
    assert events[0]["content"] == [picture]


def test_a_field_that_is_a_sentence_about_a_secret_stays() -> None:
    events, _ = cleaned(body(type="tool_call", rawInput={"password": "ask the person for it"}))
    assert events[0]["rawInput"]["password"] == "ask the person for it"


def test_a_variable_that_names_a_folder_holds_no_secret() -> None:
    assert [is_secretive(name) for name in ("PWD", "OLDPWD", "DB_PWD", "dbPassword")] == [
        False,
        False,
        True,
        True,
    ]
