"""The AI SDK's own chat engine against an encoder, a decoder and the demo agent: no server yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.ai_sdk_judge import FOLDER, RELEASES, node, stream_of
from support.demo import demo_session

from dragoman import Session
from dragoman.client.capabilities import AgentCapabilities
from dragoman.session import events as e
from dragoman.session.state import PendingPermission
from dragoman.stream import Stream
from dragoman.ui_stream import ChatRequest, Chunk, Encoder, decode
from dragoman.ui_stream.chunks import Sdk


@pytest.fixture(autouse=True, scope="module")
def sdk_is_there() -> None:
    """Fetched before a test's time begins."""
    node()


FOLDER_OF_FILES = "file:///attachments/"


class Answerer:
    """What a server does with the requests of one chat, and no more."""

    def __init__(self, session: Session, sdk: Sdk) -> None:
        self.requests: list[ChatRequest] = []
        self._session = session
        self._sdk: Sdk = sdk
        self._encoder = Encoder(session.id, sdk=sdk)
        self._events: Stream[e.Event] = session.events()
        assert session.pending == []

    async def post(self, body: Any) -> str:
        request = decode(msgspec.json.encode(body))
        self.requests.append(request)
        chunks = await self._answered(request) if request.answers else self._prompted(request)
        async for event in self._events:
            chunks += self._encoder.feed(event, pending=self._session.state.pending)
            if not self._encoder.open and self._encoder.message_id is not None:
                break
        return stream_of(chunks)

    def _prompted(self, request: ChatRequest) -> list[Chunk]:
        content, files = request.prompt(AgentCapabilities(), FOLDER_OF_FILES)
        assert files == []
        self._encoder = Encoder(self._session.id, sdk=self._sdk)
        self._session.prompt(content)
        return []

    async def _answered(self, request: ChatRequest) -> list[Chunk]:
        for key, answer in request.answers.items():
            pending = self._session.state.pending[key]
            assert isinstance(pending, PendingPermission)
            option = answer.choose(pending.options)
            assert option is not None
            await self._session.answer(key, option)
        return self._encoder.resume(request.approvals)


class Engine:
    """The chat engine in Node; it asks us for what it would fetch."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    def tell(self, value: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(msgspec.json.encode(value) + b"\n")

    async def hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        return msgspec.json.decode(await self._process.stdout.readline())


@asynccontextmanager
async def engine() -> AsyncGenerator[Engine]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        node(), "chat.mjs", cwd=FOLDER, stdin=pipe, stdout=pipe, limit=2**24
    )
    try:
        yield Engine(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


async def chatted(
    folder: Path, release: Sdk, sdk: Sdk, *answers: dict[str, Any]
) -> tuple[dict[str, Any], Answerer]:
    """A chat with one task, to its end."""
    async with demo_session(folder) as session, engine() as chat:
        answerer = Answerer(session, sdk)
        prompt = "Add a line to the notes"
        chat.tell({"ai": release, "chatId": "chat-1", "prompt": prompt, "answers": answers})
        while "messages" not in (heard := await chat.hear()):
            assert heard["method"] == "POST"
            chat.tell({"status": 200, "body": await answerer.post(heard["body"])})
        return heard, answerer


def states(ended: dict[str, Any]) -> list[str]:
    """Of the tools that were asked about."""
    parts = ended["messages"][-1]["parts"]
    return [part["state"] for part in parts if "approval" in part]


PAIRS: list[tuple[Sdk, Sdk]] = [(6, None), (7, None), (6, 6), (7, 7)]


@pytest.mark.parametrize(("release", "sdk"), PAIRS)
async def test_a_chat_approves_and_the_turn_goes_on_in_one_message(
    release: Sdk, sdk: Sdk, tmp_path: Path
) -> None:
    ended, answerer = await chatted(tmp_path, release, sdk, *[{"approved": True}] * 2)
    assert (ended["status"], ended["error"], ended["requests"]) == ("ready", None, 3)
    user, assistant = ended["messages"]
    assert user["role"] == "user"
    assert states(ended) == ["output-available", "output-available"]
    assert assistant["metadata"]["acp"]["stopReason"] == "end_turn"
    assert [len(request.answers) for request in answerer.requests] == [0, 1, 1]
    assert {request.message_id for request in answerer.requests[1:]} == {assistant["id"]}
    assert (tmp_path / "dragoman-demo.txt").read_text() == "You asked: Add a line to the notes\n"


@pytest.mark.parametrize(("release", "sdk"), PAIRS)
async def test_a_chat_refuses_and_nothing_is_written(
    release: Sdk, sdk: Sdk, tmp_path: Path
) -> None:
    ended, _ = await chatted(tmp_path, release, sdk, *[{"approved": False}] * 2)
    assert (ended["status"], ended["error"]) == ("ready", None)
    assert states(ended) == ["output-denied", "output-denied"]
    assert not (tmp_path / "dragoman-demo.txt").exists()


@pytest.mark.parametrize("release", RELEASES)
async def test_an_option_travels_in_the_reason_or_in_the_body(release: Sdk, tmp_path: Path) -> None:
    in_reason = {"approved": True, "reason": "always"}
    in_body = {"approved": True, "body": {"acp": {"optionId": "allow"}}}
    ended, _ = await chatted(tmp_path, release, None, in_reason, in_body)
    parts = ended["messages"][-1]["parts"]
    chosen = [p["data"]["optionId"] for p in parts if p["type"] == "data-acp-permission"]
    assert chosen == ["always", "allow"]


@pytest.mark.parametrize("release", RELEASES)
async def test_an_option_that_says_no_behind_a_yes_is_a_no(release: Sdk, tmp_path: Path) -> None:
    contradiction = {"approved": True, "body": {"acp": {"optionId": "reject"}}}
    ended, _ = await chatted(tmp_path, release, None, contradiction, contradiction)
    assert (ended["status"], ended["error"]) == ("ready", None)
    assert states(ended) == ["output-error", "output-error"]
    assert not (tmp_path / "dragoman-demo.txt").exists()
