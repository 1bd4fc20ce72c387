"""`dragoman.ui_stream` on its own: a scripted agent behind a chat, with no server anywhere."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
from support.clients import opened

import dragoman.ui_stream as ui
from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import say


async def test_a_chat_request_becomes_a_stream(tmp_path: Path) -> None:
    part = {"type": "text", "text": "hello?"}
    body = {"id": "chat-1", "messages": [{"id": "u", "role": "user", "parts": [part]}]}
    async with opened(ScriptedAgent([say("hello!")]), tmp_path) as (client, session):
        prompt, files = ui.decode(msgspec.json.encode(body)).prompt(client.capabilities, "file:///")
        encoder, sent = ui.Encoder(session.id), b""
        events = session.events()
        session.prompt(prompt)
        async for event in events:
            chunks = encoder.feed(event, pending=session.state.pending)
            sent += b"".join(map(ui.encode, chunks))
            if encoder.ended:
                break
        sent += ui.DONE
    assert files == []
    assert b'"delta":"hello!"' in sent
    assert sent.startswith(b'data: {"type":"start"')
    assert sent.endswith(b"data: [DONE]\n\n")


def test_the_names_are_few_and_all_there() -> None:
    assert len(ui.__all__) == 16
    assert all(hasattr(ui, name) for name in ui.__all__)


def test_it_needs_neither_a_loop_nor_a_web_server() -> None:
    heavy = "{'starlette', 'uvicorn', 'apsw', 'dragoman.client.client', 'dragoman.testing'}"
    code = f"import sys, dragoman.ui_stream; print(sorted({heavy} & set(sys.modules)))"
    run = [sys.executable, "-I", "-c", code]
    assert subprocess.check_output(run, text=True, timeout=60).strip() == "[]"
