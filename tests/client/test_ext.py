"""Methods and notifications of an agent's own, in both directions."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from dragoman import Client, InvalidParams, MethodNotFound, RemoteError, ext
from dragoman.testing import AgentTurn, ScriptedAgent


async def call_back(turn: AgentTurn) -> None:
    """Notify, ask, and say what came back."""
    turn.notify("_own/progress", {"done": 1})
    turn.notify("_own/nobody", {})
    turn.notify("_own/progress", {"done": 2})
    try:
        turn.say(f"{await turn.call('_own/ask', {'what': turn.text})}")
    except RemoteError as error:
        turn.say(f"{type(error).__name__}: {error}")


def own(version: int = 1) -> ScriptedAgent:
    return ScriptedAgent(
        call_back,
        answers={"_own/status": lambda params: {"asked": params}},
        protocol_versions=(version,),
    )


async def test_a_method_of_the_agent_is_called(tmp_path: Path) -> None:
    async with Client.start(own().connect()) as client:
        assert await ext.call(client, "_own/status", {"a": [1, None]}) == {
            "asked": {"a": [1, None]}
        }
        with pytest.raises(MethodNotFound):
            await ext.call(client, "_own/nothing")
        with pytest.raises(ValueError, match="begins with _; 'session/new' does not"):
            await ext.call(client, "session/new")
        with pytest.raises(ValueError, match="begins with _"):
            ext.notify(client, "session/cancel", {})


@pytest.mark.parametrize("version", [1, 2])
async def test_requests_and_notifications_of_the_agent_are_served(
    tmp_path: Path, version: int
) -> None:
    heard: list[Any] = []

    async def answer(params: Any) -> Any:
        if params["what"] == "refuse":
            raise InvalidParams("not that")
        return {"yes": params["what"]}

    client = Client.start(own(version).connect(), protocol=version)
    ext.serve(client, "_own/ask", answer)
    ext.listen(client, "_own/progress", heard.append)
    async with client:
        session = await client.new_session(tmp_path)
        assert (await session.prompt("it")).text == "{'yes': 'it'}"
        assert heard == [{"done": 1}, {"done": 2}]
        assert "not that" in (await session.prompt("refuse")).text


async def test_what_is_not_served_does_not_exist(tmp_path: Path) -> None:
    async with Client.start(own().connect()) as client:
        session = await client.new_session(tmp_path)
        assert "_own/ask is not offered here" in (await session.prompt("it")).text


async def test_a_listener_that_fails_breaks_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(params: Any) -> None:
        raise KeyError(params["done"])

    async with Client.start(own().connect()) as client:
        ext.listen(client, "_own/progress", fail)
        session = await client.new_session(tmp_path)
        with caplog.at_level(logging.ERROR):
            assert "not offered" in (await session.prompt("it")).text
    assert caplog.text.count("the listener for _own/progress failed") == 2


async def test_a_notification_reaches_the_agent(tmp_path: Path) -> None:
    frames: list[bytes] = []

    def tap(way: str, frame: bytes) -> None:
        if way == "sent":
            frames.append(frame)

    async with Client.start(own().connect(), tap=tap) as client:
        ext.notify(client, "_own/note", {"a": 1})
    assert b'"method":"_own/note","params":{"a":1}' in frames[-1]
