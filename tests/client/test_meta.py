"""`_meta` of whatever comes in can be read, and whatever goes out can have one."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.clients import next_of, opened, started, until
from support.fake_terminals import FakeTerminals
from support.peers import soon
from support.raw_agent import RawAgent, notification, text_block

from dragoman import (
    InProcessServer,
    Policy,
    Session,
    TerminalCommand,
    TerminalExit,
    TerminalSnapshot,
    TerminalWatcher,
    Workspace,
    request_meta,
)
from dragoman.host.forms.elicitation import ElicitationAnswer, ElicitationRequest
from dragoman.session import events as e

OURS = {"trace": "1"}
THEIRS = {"vendor": {"x": 1}}
MODES = {"currentModeId": "a", "availableModes": [{"id": i, "name": i} for i in "ab"]}
CHOICE = {
    "type": "select",
    "id": "model",
    "name": "Model",
    "currentValue": "s",
    "options": [{"value": "s", "name": "S"}, {"value": "l", "name": "L"}],
}


async def test_whatever_goes_out_can_have_one(tmp_path: Path) -> None:
    welcome = {"authMethods": [{"id": "key", "name": "Key"}]}
    agent = RawAgent(
        welcome=welcome,
        session__new={"sessionId": "s1", "modes": MODES, "configOptions": [CHOICE]},
        session__set_config_option={"configOptions": [CHOICE | {"currentValue": "l"}]},
        session__list={"sessions": []},
        providers__list={"providers": []},
    )
    agent.answers |= {
        "session/status": {"status": "loaded"},
        "auth/status": {"state": "signed in"},
        "session/set_title": {"title": "T"},
    }
    async with opened(agent, tmp_path) as (client, session):
        await client.authenticate("key", meta=OURS)
        await session.set_mode("b", meta=OURS)
        await session.set_config_option("model", "l", meta=OURS)
        assert [info async for info in client.list_sessions(meta=OURS)] == []
        await client.list_providers(meta=OURS)
        await client.set_provider("p", "openai", "https://x", meta=OURS)
        await client.disable_provider("p", meta=OURS)
        await client.auth_status(meta=OURS)
        await client.session_status("s1", meta=OURS)
        await client.archive_session("s1", meta=OURS)
        await client.unarchive_session("s1", meta=OURS)
        await session.set_title("T", meta=OURS)
        turn = session.prompt("go", meta=OURS)
        request = await agent.expect("session/prompt")
        cancelling = asyncio.create_task(turn.cancel(meta=OURS))
        await agent.expect("session/cancel")
        agent.reply(request["id"], {"stopReason": "cancelled"})
        await soon(cancelling)
        await session.close(meta=OURS)
        await client.delete_session("s1", meta=OURS)
        await client.logout(meta=OURS)
    for method in (
        "session/prompt",
        "session/cancel",
        "session/close",
        "session/delete",
        "session/archive",
        "session/unarchive",
        "session/status",
        "session/set_title",
        "auth/status",
        "logout",
        "authenticate",
        "session/set_mode",
        "session/set_config_option",
        "session/list",
        "providers/list",
        "providers/set",
        "providers/disable",
    ):
        assert agent.sent(method)[0]["_meta"] == OURS, method


async def test_that_of_answers_can_be_read(tmp_path: Path) -> None:
    way = {"id": "key", "name": "Key", "_meta": THEIRS}
    agent = RawAgent(
        welcome={"_meta": THEIRS, "authMethods": [way]},
        session__new={"sessionId": "s1", "_meta": THEIRS},
    )
    async with opened(agent, tmp_path) as (client, session):
        assert (client.meta, client.auth_methods[0].meta, session.meta) == (THEIRS,) * 3


async def test_that_of_every_other_answer_is_kept_by_its_method(tmp_path: Path) -> None:
    theirs = {"_meta": THEIRS}
    agent = RawAgent(
        welcome={"authMethods": [{"id": "key", "name": "Key"}]},
        authenticate=theirs,
        session__new={"sessionId": "s1", "modes": MODES, "configOptions": [CHOICE]},
        session__set_mode=theirs,
        session__set_config_option={"configOptions": [CHOICE], **theirs},
        session__list={"sessions": [], **theirs},
        providers__list={"providers": [], **theirs},
        providers__set=theirs,
    )
    async with opened(agent, tmp_path) as (client, session):
        assert client.reply_meta == {}
        await client.authenticate("key")
        await session.set_mode("b")
        await session.set_config_option("model", "s")
        assert [info async for info in client.list_sessions()] == []
        await client.list_providers()
        await client.set_provider("p", "openai", "https://x")
        methods = ("authenticate", "session/set_mode", "session/set_config_option", "session/list")
        methods += ("providers/list", "providers/set")
        assert client.reply_meta == dict.fromkeys(methods, THEIRS)
        agent.answers["providers/list"] = {"providers": []}
        await client.list_providers()
        assert "providers/list" not in client.reply_meta


class Notebook(FakeTerminals):
    """Serves files and terminals, and notes with what each was asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.noted: list[tuple[str, Any]] = []

    def note(self, what: str) -> None:
        self.noted.append((what, request_meta()))

    async def read_text_file(self, *_: Any, **__: Any) -> str:
        self.note("fs/read_text_file")
        return "text"

    async def write_text_file(self, *_: Any) -> None:
        self.note("fs/write_text_file")

    async def create(
        self, workspace: Workspace, command: TerminalCommand, watcher: TerminalWatcher
    ) -> str:
        self.note("terminal/create")
        return await super().create(workspace, command, watcher)

    async def output(self, workspace: Workspace, terminal_id: str) -> TerminalSnapshot:
        self.note("terminal/output")
        return await super().output(workspace, terminal_id)

    async def wait_for_exit(self, workspace: Workspace, terminal_id: str) -> TerminalExit:
        self.note("terminal/wait_for_exit")
        return await super().wait_for_exit(workspace, terminal_id)

    async def kill(self, workspace: Workspace, terminal_id: str) -> None:
        self.note("terminal/kill")
        await super().kill(workspace, terminal_id)

    async def release(self, workspace: Workspace, terminal_id: str) -> None:
        self.note("terminal/release")
        await super().release(workspace, terminal_id)


async def test_that_of_a_request_can_be_read_by_the_provider_that_serves_it(
    tmp_path: Path,
) -> None:
    agent, notebook = RawAgent(), Notebook()
    file, terminal = {"path": str(tmp_path / "a")}, {"terminalId": "x"}
    requests: list[tuple[str, dict[str, Any]]] = [
        ("fs/read_text_file", file),
        ("fs/write_text_file", file | {"content": "new"}),
        ("terminal/create", {"command": "true"}),
        ("terminal/output", terminal),
        ("terminal/kill", terminal),
        ("terminal/wait_for_exit", terminal),
        ("terminal/release", terminal),
    ]
    yes = Policy(yolo=True)
    async with opened(agent, tmp_path, files=notebook, terminals=notebook, policy=yes):
        for number, (method, params) in enumerate(requests):
            asked = {"sessionId": "s1", **params, "_meta": {"number": number}}
            assert "error" not in await soon(agent.ask(method, asked, number))
        await soon(agent.ask("fs/read_text_file", {"sessionId": "s1", **file}, 99))
    for number, (method, _) in enumerate(requests):
        assert (method, {"number": number}) in notebook.noted
    assert notebook.noted[-1] == ("fs/read_text_file", None)
    assert request_meta() is None


class Person:
    def __init__(self) -> None:
        self.metas: list[Any] = []

    async def create_elicitation(self, request: ElicitationRequest) -> ElicitationAnswer:
        self.metas.append(request.meta)
        return ElicitationAnswer("decline")

    async def request_permission(self, request: Any) -> str | None:
        self.metas.append(request.meta)
        return None


async def test_that_of_questions_reaches_the_provider_and_the_record(tmp_path: Path) -> None:
    agent, person = RawAgent(), Person()
    heard: list[e.Event] = []

    def listen(session: Session, event: e.Event) -> None:
        heard.append(event)

    async with opened(
        agent,
        tmp_path,
        permissions=person,
        elicitation=person,
        listen=listen,
    ):
        form = {"sessionId": "s1", "mode": "form", "message": "?", "_meta": THEIRS}
        await agent.ask("elicitation/create", form, 1)
        options = [{"optionId": "n", "name": "No", "kind": "reject_once"}]
        asked = {"sessionId": "s1", "toolCall": {"toolCallId": "t"}, "options": options}
        await agent.ask("session/request_permission", asked | {"_meta": THEIRS}, 2)
    assert person.metas == [THEIRS, THEIRS]
    questions = (e.ElicitationRequested, e.PermissionRequested)
    assert [each.meta for each in heard if isinstance(each, questions)] == [THEIRS, THEIRS]


async def test_that_of_a_notification_is_the_event_s_beside_its_own(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        turn = session.prompt("go")
        update = notification("agent_message_chunk", content=text_block("hi"), _meta={"own": 1})
        update["params"]["_meta"] = THEIRS
        agent.send(update)
        assert (await next_of(turn, e.AgentMessage)).meta == THEIRS | {"own": 1}


async def test_an_option_of_an_unknown_kind_is_kept_and_cannot_be_set(tmp_path: Path) -> None:
    slider = {"type": "slider", "id": "heat", "name": "Heat", "currentValue": 0.7, "max": 1}
    odd = {"type": "slider", "name": "without an id"}
    agent = RawAgent(session__new={"sessionId": "s1", "configOptions": [CHOICE, slider, odd]})
    async with opened(agent, tmp_path) as (_, session):
        model, heat = session.state.config_options
        assert (model.kind, heat.kind, heat.name, heat.value) == (None, "slider", "Heat", "0.7")
        with pytest.raises(ValueError, match="cannot be set from here: it is a slider"):
            await session.set_config_option("heat", "0.8")
    assert agent.sent("session/set_config_option") == []


# ── MCP over ACP ──────────────────────────────────────────────────────────────────────────────


async def test_a_server_of_ours_can_notify_while_it_answers(tmp_path: Path) -> None:
    async def handle(method: str, params: Any) -> Any:
        server.notify("notifications/progress", {"progress": 1})
        await asyncio.sleep(0)
        server.notify("notifications/progress", {"progress": 2})
        return {"done": True}

    server = InProcessServer(name="ours", id="ours", handle=handle)
    agent = RawAgent()
    async with started(agent) as client:
        await client.new_session(tmp_path, mcp_servers=[server])
        message = {"serverId": "ours", "requestId": "r7", "method": "tools/call"}
        answer = await soon(agent.ask("mcp/message", message))
        assert answer["result"] == {"result": {"done": True}}
        await until(lambda: len(agent.sent("mcp/message")) == 2)
        told = agent.sent("mcp/message")
    assert [each["params"]["progress"] for each in told] == [1, 2]
    assert {(each["serverId"], each["requestId"]) for each in told} == {("ours", "r7")}
    with pytest.raises(RuntimeError, match="while handling a request"):
        server.notify("notifications/progress")
