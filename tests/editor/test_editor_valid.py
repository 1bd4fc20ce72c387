"""What `dragoman acp` sends, held against the official schemas and the types of the Python SDK."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest
from acp import schema as sdk
from jsonschema import Draft202012Validator, ValidationError
from support.clients import until
from support.editors import office
from support.official_schemas import definitions
from support.peers import soon
from support.v2_agent import Judge

from dragoman import Client
from dragoman.schema import v1
from dragoman.session.state import PendingPermission
from dragoman.testing.demo.demo_agent import DemoAgent


class FirstJudge:
    """A tap of an editor of version 1; what is wrong with what it gets is in `wrong`."""

    def __init__(self) -> None:
        self.judged: set[str] = set()
        self.wrong: list[str] = []
        self._called: dict[Any, str] = {}

    def __call__(self, direction: Literal["sent", "received"], frame: bytes) -> None:
        message = json.loads(frame)
        if direction == "sent":
            if "method" in message and "id" in message:
                self._called[message["id"]] = message["method"]
        elif "method" in message:
            known = v1.REQUESTS_TO_CLIENT | v1.NOTIFICATIONS_TO_CLIENT
            self._judge(known[message["method"]].params, message["params"])
        elif "result" in message:
            method = self._called[message["id"]]
            self._judge(v1.REQUESTS_TO_AGENT[method].result, message["result"])

    def _judge(self, type_: Any, value: Any) -> None:
        name = type_.__name__
        self.judged.add(name)
        whole = {"$ref": f"#/$defs/{name}", "$defs": definitions("v1")}
        try:
            judge: Any = Draft202012Validator(whole)
            judge.validate(value)
            if (model := getattr(sdk, name, None)) is not None:
                model.model_validate(value)
        except (ValidationError, ValueError) as error:
            self.wrong.append(f"{name}: {json.dumps(value)[:300]}: {str(error)[:300]}")


async def conversation(editor: Client, folder: Path) -> None:
    """All that an editor asks for, and a turn with all that the demo agent shows."""
    session = await editor.new_session(folder)
    for prompt in ("do something", "/plan"):
        turn = session.prompt(prompt)
        while not turn.done:
            await until(lambda turn=turn: turn.done or session.state.pending)
            for asked in list(session.state.pending.values()):
                assert isinstance(asked, PendingPermission)
                await session.answer(asked.id, asked.options[0].id)
                await until(lambda asked=asked: asked.id not in session.state.pending)
        await soon(turn)
    for option in session.state.config_options[1:2]:
        await session.set_config_option(option.id, option.value)
    again = await editor.load_session(session.id, folder)
    listed = [each.id async for each in editor.list_sessions(folder)]
    assert session.id in listed
    fork = await editor.fork_session(session.id, folder)
    await again.close()
    await editor.delete_session(fork.id)


@pytest.mark.parametrize("version", [1, 2])
async def test_nothing_is_wrong_with_what_an_editor_gets(tmp_path: Path, version: int) -> None:
    (tmp_path / "README.md").write_text("hello\n")
    judge = FirstJudge() if version == 1 else Judge(of_agent=True)
    async with (
        office(tmp_path, DemoAgent()) as here,
        here.editor(tap=judge, protocol=version) as editor,
    ):
        await conversation(editor, tmp_path)
    assert judge.wrong == []
    if isinstance(judge, FirstJudge):
        assert judge.judged >= {
            "InitializeResponse",
            "NewSessionResponse",
            "LoadSessionResponse",
            "ListSessionsResponse",
            "PromptResponse",
            "SessionNotification",
            "RequestPermissionRequest",
            "ForkSessionResponse",
        }
