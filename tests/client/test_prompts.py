"""A prompt made ready: only what the agent takes, within limits, and nothing lost silently."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.bridges import TOKEN, bridged
from support.clients import gathered, kinds, opened
from support.examples import EXAMPLES
from support.peers import tidy_loop
from support.raw_agent import RawAgent, text_block

from dragoman import Audio, Client, Image, Resource, ResourceLink, Text
from dragoman.client.capabilities import AgentCapabilities
from dragoman.client.sessions import prompts
from dragoman.client.sessions.prompts import prepare
from dragoman.errors import PromptTooLarge
from dragoman.session import events as e
from dragoman.session.content import Content, UnknownContent
from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import say
from dragoman.transport.target import RemoteAgent
from dragoman.transport.transport import Transport

ALL = AgentCapabilities(image=True, audio=True, embedded_context=True)
NONE = AgentCapabilities()
PNG = Image("aGk=", "image/png")
PNG_AT = Image("aGk=", "image/png", "file:///project/pic.png")
WAV = Audio("aGk=", "audio/wav")
FILE = Resource("file:///project/a.txt", content="inside", mime_type="text/plain")


def ready(*parts: str | Content, agent: AgentCapabilities = ALL) -> tuple[list[Content], list[str]]:
    return prepare(parts, agent, "/project")


# ── what is sent ──────────────────────────────────────────────────────────────────────────────


def test_a_text_is_one_part_and_a_link_for_each_mention(tmp_path: Path) -> None:
    (tmp_path / "README.md").touch()
    content, warnings = prepare("Summarise @README.md.", NONE, str(tmp_path))
    assert content == [
        Text("Summarise @README.md."),
        ResourceLink(f"file://{tmp_path}/README.md", "README.md", "text/markdown"),
    ]
    assert warnings == []


def test_a_mention_of_a_file_that_is_not_there_is_sent_and_warned_of(tmp_path: Path) -> None:
    text = "@nofile.txt, @src/ and @https://example.com/x by @alice"
    content, warnings = prepare(text, NONE, str(tmp_path))
    assert content[0] == Text(text)
    assert [getattr(part, "name", "") for part in content[1:]] == [
        "nofile.txt",
        "src/",
        "https://example.com/x",
    ]
    assert warnings == [
        "@nofile.txt: no such file; sent as a link anyway",
        "@src/: no such file; sent as a link anyway",
    ]


def test_of_files_on_another_machine_none_is_said_to_be_missing(tmp_path: Path) -> None:
    text = "see @nofile.txt"
    here, _ = prepare(text, NONE, str(tmp_path))
    assert prepare(text, NONE, str(tmp_path), files_are_here=False) == (here, [])


def test_content_is_sent_as_it_is() -> None:
    odd = UnknownContent("hologram", '{"type":"hologram"}')
    parts = [Text("a"), PNG, WAV, FILE, ResourceLink("file:///x", "x"), odd]
    assert ready(*parts) == (parts, [])


def test_a_single_part_and_strings_among_parts_will_do() -> None:
    assert prepare(PNG, ALL, "/project") == ([PNG], [])
    assert ready("Look:", PNG) == ([Text("Look:"), PNG], [])


def test_blocks_are_taken_as_acp_writes_them() -> None:
    blocks: list[dict[str, Any]] = [
        {"type": "text", "text": "a"},
        {"type": "image", "data": "aGk=", "mimeType": "image/png"},
        {
            "type": "resource",
            "resource": {
                "uri": "file:///project/a.txt",
                "text": "inside",
                "mimeType": "text/plain",
            },
        },
    ]
    assert prepare(blocks, ALL, "/project") == ([Text("a"), PNG, FILE], [])
    assert prepare(blocks[0], ALL, "/project") == ([Text("a")], [])


@pytest.mark.parametrize(
    ("prompt", "error", "words"),
    [
        ([{"type": "text"}], ValueError, "missing required field `text`"),
        ([{"type": "unknown", "kind": "x", "raw": "{}"}], ValueError, "expected a known type"),
        ([5], TypeError, "not int"),
        (5, TypeError, "not int"),
        (b"bytes", TypeError, "not int"),
        ([[Text("a")]], TypeError, "not list"),
    ],
)
def test_what_is_no_content_is_an_error_at_once(
    prompt: Any, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        prepare(prompt, ALL, "/project")


@pytest.mark.parametrize("prompt", ["", "  \n\t", [], [""], [Text(" ")]])
def test_an_empty_prompt_is_an_error(prompt: str | list[str | Content]) -> None:
    with pytest.raises(ValueError, match="the prompt is empty"):
        prepare(prompt, ALL, "/project")


@pytest.mark.parametrize(
    "prompt",
    ["caf\udce9", [Resource("file:///x", content="\ud800")], [Text("x", meta={"\udfff": 1})]],
)
def test_text_that_is_not_unicode_is_an_error(prompt: str | list[str | Content]) -> None:
    with pytest.raises(ValueError, match="not Unicode"):
        prepare(prompt, ALL, "/project")


@EXAMPLES
@given(st.text(min_size=1).filter(lambda text: text.strip()))
def test_any_text_stays_as_typed(text: str) -> None:
    content, _ = prepare(text, NONE, "/project")
    assert content[0] == Text(text)


# ── what an agent does not take ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("part", "instead", "warning"),
    [
        (
            PNG,
            Text("[image left out: the agent does not accept images]"),
            "an attachment was left out: the agent does not accept images",
        ),
        (
            PNG_AT,
            ResourceLink("file:///project/pic.png", "pic.png", "image/png"),
            "pic.png was sent as a link: the agent does not accept images",
        ),
        (
            WAV,
            Text("[audio left out: the agent does not accept audio]"),
            "an attachment was left out: the agent does not accept audio",
        ),
        (
            FILE,
            ResourceLink("file:///project/a.txt", "a.txt", "text/plain"),
            "a.txt was sent as a link: the agent does not accept embedded resources",
        ),
    ],
)
def test_what_the_agent_does_not_take_is_replaced_and_said(
    part: Content, instead: Content, warning: str
) -> None:
    assert ready("Look:", part, agent=NONE) == ([Text("Look:"), instead], [warning])


def test_links_and_texts_every_agent_takes() -> None:
    parts = [Text("a"), ResourceLink("file:///x", "x")]
    assert ready(*parts, agent=NONE) == (parts, [])


# ── limits ────────────────────────────────────────────────────────────────────────────────────


def test_an_attachment_over_the_limit_is_sent_as_a_link() -> None:
    big = Resource("file:///project/big.txt", content="x" * (prompts.MAX_ATTACHMENT_BYTES + 1))
    content, (warning,) = ready("Look:", big)
    assert content[1] == ResourceLink("file:///project/big.txt", "big.txt")
    assert warning == "big.txt was sent as a link: larger than 10485760 bytes"


def test_an_attachment_at_the_limit_is_sent() -> None:
    full = Resource("file:///project/full.txt", content="x" * prompts.MAX_ATTACHMENT_BYTES)
    assert ready(full) == ([full], [])


def test_the_size_of_an_attachment_is_that_of_its_bytes() -> None:
    """Base64 is a third longer than what it stands for, and a letter may be several bytes."""
    encoded = "A" * (prompts.MAX_ATTACHMENT_BYTES // 3 * 4)
    assert ready(Image(encoded, "image/png"))[1] == []
    assert len(ready(Image(encoded + "AAAA" * 2, "image/png"))[1]) == 1
    full = b64encode(bytes(prompts.MAX_ATTACHMENT_BYTES)).decode()
    assert ready(Image(full, "image/png"))[1] == []
    letters = "é" * (prompts.MAX_ATTACHMENT_BYTES // 2 + 1)
    assert len(ready(Resource("file:///x", content=letters))[1]) == 1


def test_attachments_together_have_a_limit_too() -> None:
    each = "x" * (prompts.MAX_ATTACHMENT_BYTES - 1)
    parts = [Resource(f"file:///project/{n}", content=each) for n in range(4)]
    content, (warning,) = ready(*parts)
    assert [type(part) for part in content] == [Resource, Resource, Resource, ResourceLink]
    assert "together are larger than 33554432 bytes" in warning


def test_a_blob_counts_by_its_bytes() -> None:
    blob = Resource("file:///x.bin", blob="A" * (prompts.MAX_ATTACHMENT_BYTES * 2))
    assert isinstance(ready("x", blob)[0][1], ResourceLink)


# ── on the wire ───────────────────────────────────────────────────────────────────────────────


async def test_every_kind_of_content_goes_over_the_wire_with_its_annotations(
    tmp_path: Path,
) -> None:
    agent = RawAgent(session__prompt={"stopReason": "end_turn"})
    notes = {"audience": ["user"], "priority": 0.5}
    odd = '{"type":"hologram","depth":3}'
    async with opened(agent, tmp_path) as (_, session):
        await session.prompt(
            [
                Text("hi", annotations=notes, meta={"x": 1}),
                PNG_AT,
                WAV,
                ResourceLink("file:///x", "x", "text/plain", title="X", size=3),
                FILE,
                Resource("file:///b", blob="aGk="),
                UnknownContent("hologram", odd),
            ]
        )
    assert agent.sent("session/prompt")[0]["prompt"] == [
        text_block("hi") | {"annotations": notes, "_meta": {"x": 1}},
        {
            "type": "image",
            "data": "aGk=",
            "mimeType": "image/png",
            "uri": "file:///project/pic.png",
        },
        {"type": "audio", "data": "aGk=", "mimeType": "audio/wav"},
        {
            "type": "resource_link",
            "uri": "file:///x",
            "name": "x",
            "mimeType": "text/plain",
            "title": "X",
            "size": 3,
        },
        {
            "type": "resource",
            "resource": {
                "uri": "file:///project/a.txt",
                "text": "inside",
                "mimeType": "text/plain",
            },
        },
        {"type": "resource", "resource": {"uri": "file:///b", "blob": "aGk="}},
        {"type": "hologram", "depth": 3},
    ]


async def test_whoever_reads_the_turn_sees_what_was_changed(tmp_path: Path) -> None:
    agent = RawAgent({}, session__prompt={"stopReason": "end_turn"})
    async with opened(agent, tmp_path) as (_, session):
        events = await gathered(session.prompt(["Look:", PNG]))
        assert kinds(events) == ["TurnStarted", "Notice", "TurnEnded"]
        notice = events[1]
        assert isinstance(notice, e.Notice)
        assert (notice.source, notice.severity) == ("client", "warning")
        assert "does not accept images" in notice.text
    assert agent.sent("session/prompt")[0]["prompt"][1] == text_block(
        "[image left out: the agent does not accept images]"
    )


async def test_a_queued_prompt_says_in_its_own_turn_what_was_changed(tmp_path: Path) -> None:
    agent = RawAgent({})
    async with opened(agent, tmp_path) as (_, session):
        first, second = session.prompt("one"), session.prompt(["two", PNG])
        for _ in range(2):
            request = await agent.expect("session/prompt")
            agent.reply(request["id"], {"stopReason": "end_turn"})
        assert "Notice" not in kinds(await gathered(first))
        assert kinds(await gathered(second)) == ["TurnStarted", "Notice", "TurnEnded"]


async def test_a_prompt_that_cannot_be_sent_leaves_no_turn(tmp_path: Path) -> None:
    async with opened(RawAgent(), tmp_path) as (_, session):
        with pytest.raises(ValueError, match="empty"):
            session.prompt(" ")
        with pytest.raises(ValueError, match="Unicode"):
            session.prompt("\ud800")
        assert (session.busy, session.state.turns) == (False, [])


@pytest.mark.parametrize(("files", "notices"), [("here", 1), ("there", 0), (None, 0)])
async def test_a_turn_warns_of_missing_files_only_when_they_are_here(
    files: Literal["here", "there"] | None, notices: int, tmp_path: Path
) -> None:
    agent = RawAgent(session__prompt={"stopReason": "end_turn"})

    async def reached() -> Transport:
        return agent.connect()

    async with tidy_loop(), bridged(reached) as bridge:
        remote = RemoteAgent(f"ws://127.0.0.1:{bridge.port}/acp#token={TOKEN}", files=files)
        async with Client.start(remote) as client:
            session = await client.new_session(tmp_path)
            turn = session.prompt("see @nofile.txt")
            waiting = session.prompt("then")
            session.edit_queued(waiting, "then @nofile.txt")
            assert kinds(await gathered(turn)).count("Notice") == notices
            assert kinds(await gathered(waiting)).count("Notice") == notices


@pytest.mark.parametrize("text", ["x" * (64 << 20), "\x01" * (9 << 20)])
async def test_a_prompt_that_is_too_large_is_refused_and_the_session_goes_on(
    text: str, tmp_path: Path
) -> None:
    async with opened(ScriptedAgent([say("fine")]), tmp_path) as (_, session):
        before = session.state.last_seq
        with pytest.raises(PromptTooLarge) as refused:
            session.prompt(text)
        assert refused.value.size > refused.value.limit == prompts.MAX_JSON_BYTES
        assert session.state.last_seq == before
        assert not session.busy
        await session.prompt("something shorter")
        assert session.state.turns[-1].stop_reason == "end_turn"
