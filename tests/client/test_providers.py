"""A provider that fails is named, with what it failed with: in the log and on the record."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from support.clients import opened
from support.raw_agent import Json, RawAgent

from dragoman import Client, Policy
from dragoman.host.forms.elicitation import ElicitationAnswer, ElicitationRequest
from dragoman.host.permissions.questions import PermissionRequest
from dragoman.session.state import NoticeEntry


class Broken:
    """Of every kind, and fails whatever it is asked for."""

    def _fail(self) -> Any:
        raise RuntimeError("the disk is made of cheese")

    async def read_text_file(self, *_: Any, **__: Any) -> str:
        return self._fail()

    async def write_text_file(self, *_: Any, **__: Any) -> None:
        self._fail()

    async def create(self, *_: Any) -> str:
        return self._fail()

    async def output(self, *_: Any) -> Any:
        return self._fail()

    async def wait_for_exit(self, *_: Any) -> Any:
        return self._fail()

    async def kill(self, *_: Any) -> None:
        self._fail()

    async def release(self, *_: Any) -> None:
        self._fail()

    async def release_all(self, *_: Any) -> None:
        pass

    async def request_permission(self, _: PermissionRequest) -> str | None:
        return self._fail()

    async def create_elicitation(self, request: ElicitationRequest) -> ElicitationAnswer:
        return self._fail()


def asked_for(folder: Path) -> dict[str, tuple[str, Json]]:
    session = {"sessionId": "s1"}
    path = str(folder / "a")
    return {
        "files": ("fs/read_text_file", session | {"path": path}),
        "terminals": ("terminal/create", session | {"command": "ls"}),
        "elicitation": ("elicitation/create", session | {"mode": "form", "message": "Name?"}),
    }


@pytest.mark.parametrize("kind", ["files", "terminals", "elicitation"])
async def test_what_a_provider_fails_with_is_logged_and_on_the_record(
    kind: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    agent = RawAgent()
    method, params = asked_for(tmp_path)[kind]
    provider: Any = {kind: Broken()}
    with caplog.at_level(logging.ERROR, "dragoman"):
        async with opened(agent, tmp_path, policy=Policy(yolo=True), **provider) as (_, session):
            answer = await agent.ask(method, params)
            said = [entry.text for entry in session.state.entries if type(entry) is NoticeEntry]
    sentence = f"the {kind} provider failed: RuntimeError: the disk is made of cheese"
    assert said == [sentence]
    assert "cheese" not in str(answer)
    [logged] = [record for record in caplog.records if record.exc_info]
    assert (logged.name.split(".")[0], logged.levelname) == ("dragoman", "ERROR")


PERMISSION: Json = {
    "sessionId": "s1",
    "toolCall": {"toolCallId": "c1", "title": "Do it"},
    "options": [
        {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
        {"optionId": "no", "name": "Reject", "kind": "reject_once"},
    ],
}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("session/request_permission", PERMISSION),
        ("terminal/create", {"sessionId": "s1", "command": "ls"}),
    ],
)
async def test_what_the_permissions_provider_fails_with_stays_on_this_side(
    method: str, params: Json, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether the agent asks or we do, before we act for it."""
    agent = RawAgent()
    with caplog.at_level(logging.ERROR, "dragoman"):
        async with opened(agent, tmp_path, permissions=Broken()) as (_, session):
            answer = await agent.ask(method, params)
            said = [entry.text for entry in session.state.entries if type(entry) is NoticeEntry]
    assert said == ["the permissions provider failed: RuntimeError: the disk is made of cheese"]
    assert "cheese" not in str(answer)
    if method == "terminal/create":
        assert answer["error"]["message"] == "ls: refused (the permissions provider failed)"
    else:
        assert answer["result"] == {"outcome": {"outcome": "selected", "optionId": "no"}}
    [logged] = [record for record in caplog.records if record.exc_info]
    assert (logged.name.split(".")[0], logged.levelname) == ("dragoman", "ERROR")


class Half:
    async def read_text_file(self, *_: Any, **__: Any) -> str:
        return ""


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (
            {"files": Half()},
            "files= takes a dragoman.host.workspace.files.FilesProvider: Half has no write",
        ),
        ({"permissions": print}, "PermissionsProvider: .* has no request_permission"),
        ({"elicitation": Half()}, "ElicitationProvider: Half has no create_elicitation"),
        ({"terminals": Half()}, "Half has no create and no output"),
    ],
)
def test_a_provider_that_lacks_a_method_is_refused_at_once(given: Any, complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        Client.start("demo", **given)
