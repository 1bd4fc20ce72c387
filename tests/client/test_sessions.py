"""Sessions: opened in every way, continued or not, kept by the agent, and closed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from support.clients import gathered, opened, started, until
from support.listeners import Heard, refuse
from support.peers import settled, soon
from support.raw_agent import RawAgent, Refusal, notification, text_block

from dragoman import Session
from dragoman.client.capabilities import SessionInfo
from dragoman.errors import (
    InternalError,
    InvalidMessage,
    ResourceNotFound,
    SessionBusy,
    SessionGone,
    SessionNotContinued,
    Unsupported,
)
from dragoman.session import events as e
from dragoman.session.facts import Mode, Modes, SystemPrompt
from dragoman.session.state import AgentEntry, ResetEntry, UserEntry

MODES = {
    "currentModeId": "ask",
    "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
}
OPTION = {"type": "boolean", "id": "fast", "name": "Fast", "currentValue": False}


def told_user(text: str, session: str = "s1") -> Any:
    return notification("user_message_chunk", session=session, content=text_block(text))


def told_agent(text: str, session: str = "s1") -> Any:
    return notification("agent_message_chunk", session=session, content=text_block(text))


# ── opening ───────────────────────────────────────────────────────────────────────────────────


async def test_a_new_session_is_new(tmp_path: Path) -> None:
    agent = RawAgent(session__new={"sessionId": "s1", "modes": MODES, "configOptions": [OPTION]})
    heard = Heard()
    async with opened(agent, tmp_path, listen=heard) as (_, session):
        assert (session.id, session.continuity, session.cwd) == ("s1", "new", str(tmp_path))
        assert session.state.open
        assert session.state.modes == Modes("ask", [Mode("ask", "Ask"), Mode("code", "Code")])
        assert [option.id for option in session.state.config_options] == ["fast"]
    assert heard.openings == [("s1", "new")]
    assert agent.sent("session/new") == [{"cwd": str(tmp_path), "mcpServers": []}]


async def test_a_relative_folder_is_made_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    agent = RawAgent()
    async with opened(agent, Path(".")):
        pass
    assert agent.sent("session/new")[0]["cwd"] == str(tmp_path)


@pytest.mark.parametrize(
    ("cwd", "why"), [("missing", "missing does not exist"), ("file", "file is not a directory")]
)
async def test_a_folder_that_is_none_is_an_error_before_anything_is_sent(
    cwd: str, why: str, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    agent = RawAgent()
    async with started(agent) as client:
        with pytest.raises(ValueError, match=why):
            await client.new_session(tmp_path / cwd)
    assert agent.sent("session/new") == []


OPENINGS: list[tuple[str, list[str], str]] = [
    ("new_session", [], "session/new"),
    ("load_session", ["s1"], "session/load"),
    ("resume_session", ["s1"], "session/resume"),
    ("fork_session", ["s1"], "session/fork"),
]


@pytest.mark.parametrize(("name", "ids", "method"), OPENINGS)
async def test_every_way_to_open_takes_the_same_keywords(
    name: str, ids: list[str], method: str, tmp_path: Path
) -> None:
    (tmp_path / "more").mkdir()
    agent = RawAgent()
    async with started(agent) as client:
        await getattr(client, name)(
            *ids,
            tmp_path,
            additional_directories=[tmp_path / "more"],
            system_prompt="Be brief.",
            meta={"x": 1},
        )
    (params,) = agent.sent(method)
    assert params["cwd"] == str(tmp_path)
    assert params["additionalDirectories"] == [str(tmp_path / "more")]
    assert params["systemPrompt"] == {"mode": "append", "content": [text_block("Be brief.")]}
    assert params["_meta"] == {"x": 1}
    assert params.get("sessionId") == (ids[0] if ids else None)


async def test_a_system_prompt_takes_the_place_of_the_agents_own_where_it_accepts_that(
    tmp_path: Path,
) -> None:
    instead = SystemPrompt("Be brief.", mode="override")
    only_added: dict[str, Any] = {"sessionCapabilities": {"systemPrompt": {}}}
    both: dict[str, Any] = {"sessionCapabilities": {"systemPrompt": {"mode": {"override": {}}}}}
    for capabilities, accepts in ((only_added, False), (both, True)):
        agent = RawAgent(capabilities)
        async with started(agent) as client:
            assert client.capabilities.system_prompt
            assert client.capabilities.system_prompt_override == accepts
            session = await client.new_session(tmp_path, system_prompt=instead)
            notes = [entry.text for entry in session.state.entries]
        (params,) = agent.sent("session/new")
        if accepts:
            told = {"mode": "override", "content": [text_block("Be brief.")]}
            assert (params["systemPrompt"], notes) == (told, [])
        else:
            assert "systemPrompt" not in params
            assert "in the place of its own" in notes[0]


@pytest.mark.parametrize("text", ["", " \n", "a\0b", "\udc80", "x" * (64 * 1024 + 1)])
async def test_a_text_that_cannot_be_a_system_prompt_is_refused(tmp_path: Path, text: str) -> None:
    agent = RawAgent()
    async with started(agent) as client:
        with pytest.raises(ValueError, match="the system prompt "):
            await client.new_session(tmp_path, system_prompt=text)
    assert agent.sent("session/new") == []


async def test_what_the_agent_cannot_take_is_left_out_and_said(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    agent = RawAgent({})
    async with started(agent) as client:
        session = await client.new_session(
            tmp_path, additional_directories=[tmp_path / "more"], system_prompt="Be brief."
        )
        notes = [entry.text for entry in session.state.entries]
        assert session.state.additional_directories == [str(tmp_path / "more")]
        answer = await agent.ask(
            "fs/read_text_file", {"sessionId": "s1", "path": str(tmp_path / "more" / "none")}
        )
        assert answer["error"]["code"] == -32002
    assert agent.sent("session/new") == [{"cwd": str(tmp_path), "mcpServers": []}]
    assert len(notes) == 2
    assert "additional directories" in notes[0]
    assert "system prompt" in notes[1]


async def test_a_session_the_agent_will_not_open_leaves_nothing(tmp_path: Path) -> None:
    heard = Heard()
    agent = RawAgent(session__new=refuse(-32603, "no room"))
    async with started(agent, listen=heard) as client:
        with pytest.raises(InternalError, match="no room"):
            await client.new_session(tmp_path)
    assert heard.events == []


@pytest.mark.parametrize("reply", [{}, {"sessionId": 7}, ["s1"]])
async def test_a_reply_that_names_no_session_fails_that_call_alone(
    reply: Any, tmp_path: Path
) -> None:
    agent = RawAgent(session__new=lambda params: reply)
    async with started(agent) as client:
        with pytest.raises(InvalidMessage):
            await client.new_session(tmp_path)
        agent.answers["session/new"] = {"sessionId": "s1"}
        assert (await client.new_session(tmp_path)).id == "s1"


@pytest.mark.parametrize("way", ["new", "fork"])
async def test_whoever_is_cancelled_with_the_reply_there_leaves_no_session_behind(
    way: str, tmp_path: Path
) -> None:
    agent = RawAgent()
    opening: asyncio.Task[Session] | None = None
    heard: list[str] = []

    def listen(session: Session, event: e.Event) -> None:
        heard.append(type(event).__name__)
        assert opening is not None
        opening.cancel()  # the reply is being read, whoever waits for it does not run yet

    async with started(agent, listen=listen) as client:
        call = client.new_session(tmp_path) if way == "new" else client.fork_session("s", tmp_path)
        opening = asyncio.create_task(call)
        with pytest.raises(asyncio.CancelledError):
            await soon(opening)
        assert heard.count("SessionOpened") == 1
        before = len(heard)
        session_id = "s1" if way == "new" else "s2"
        agent.say("still there?", session=session_id)
        params = {"sessionId": session_id, "path": str(tmp_path / "a")}
        assert "error" in await agent.ask("fs/read_text_file", params)
        assert len(heard) == before


async def test_loading_replays_history_into_the_state_and_to_no_reader(tmp_path: Path) -> None:
    agent = RawAgent()

    def load(params: Any) -> Any:
        agent.send(told_user("Why?", "old"), told_agent("Be", "old"), told_agent("cause.", "old"))
        agent.update("current_mode_update", session="old", currentModeId="code")
        return {"modes": MODES}

    agent.answers["session/load"] = load
    heard = Heard()
    async with started(agent, listen=heard) as client:
        session = await client.load_session("old", tmp_path)
        assert session.continuity == "replayed"
        entries = [(type(entry), entry.text) for entry in session.state.entries]
        assert entries == [(UserEntry, "Why?"), (AgentEntry, "Because.")]
        events = session.events()
        await session.close()
        assert [type(event) for event in await gathered(events)] == [e.SessionClosed]
    history = [event.replay for _, event in heard.events]
    assert history == [False, True, True, True, False, False, False]
    assert heard.openings == [("old", "replayed")]


async def test_resuming_continues_without_history(tmp_path: Path) -> None:
    agent = RawAgent(session__resume={"modes": MODES})
    async with started(agent) as client:
        session = await client.resume_session("old", tmp_path)
        assert (session.id, session.continuity) == ("old", "continued")
        assert session.state.entries == []
        assert session.state.modes is not None


@pytest.mark.parametrize("way", ["load", "resume"])
async def test_null_as_a_reply_to_load_or_resume_means_nothing_to_tell(
    way: str, tmp_path: Path
) -> None:
    agent = RawAgent()

    def answer(params: Any) -> Any:
        request = agent.received[-1]
        agent.raw(b'{"jsonrpc":"2.0","id":%d,"result":null}\n' % request["id"])

    agent.answers[f"session/{way}"] = answer
    async with started(agent) as client:
        session = await getattr(client, f"{way}_session")("old", tmp_path)
        assert session.state.open


async def test_a_session_that_cannot_be_loaded_is_no_session(tmp_path: Path) -> None:
    heard = Heard()
    agent = RawAgent(session__load=refuse(-32002, "never heard of it"))
    async with started(agent, listen=heard) as client:
        with pytest.raises(ResourceNotFound, match="never heard"):
            await client.load_session("old", tmp_path)
        with pytest.raises(SessionGone):
            await client.close_session("old")
        answer = await agent.ask("fs/read_text_file", {"sessionId": "old", "path": "/x"})
        assert answer["error"]["code"] == -32002
    assert heard.events == []


async def test_a_load_that_fails_halfway_through_the_history_is_closed(tmp_path: Path) -> None:
    heard = Heard()
    agent = RawAgent()

    def load(params: Any) -> Any:
        agent.send(told_user("Why?", "old"))
        raise Refusal(-32603)

    agent.answers["session/load"] = load
    async with started(agent, listen=heard) as client:
        with pytest.raises(InternalError):
            await client.load_session("old", tmp_path)
    kinds = [type(event) for _, event in heard.events]
    assert kinds == [e.SessionOpened, e.UserMessage, e.SessionClosed]


async def test_loading_a_session_that_is_open_here_takes_its_place(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (client, first):
        events = first.events()
        second = await client.load_session("s1", tmp_path)
        (closed,) = await gathered(events)
        assert isinstance(closed, e.SessionClosed)
        assert "reopened" in closed.reason
        agent.say("hello")
        await settled()
        assert (len(first.state.entries), len(second.state.entries)) == (0, 1)
        with pytest.raises(SessionGone):
            first.prompt("hi")


async def test_a_load_that_fails_leaves_the_open_session_as_it_is(tmp_path: Path) -> None:
    agent = RawAgent(session__load=refuse(-32603))
    async with opened(agent, tmp_path) as (client, first):
        with pytest.raises(InternalError):
            await client.load_session("s1", tmp_path)
        agent.say("hello")
        await until(lambda: first.state.entries)
        assert first.state.open


async def test_a_session_with_a_running_turn_is_not_loaded_again(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (client, session):
        turn = session.prompt("hi")
        with pytest.raises(SessionBusy):
            await client.load_session("s1", tmp_path)
        assert not turn.done
    assert agent.sent("session/load") == []


async def test_a_fork_is_another_session_that_remembers(tmp_path: Path) -> None:
    agent = RawAgent(session__fork={"sessionId": "s2", "modes": MODES})
    async with opened(agent, tmp_path) as (client, session):
        fork = await client.fork_session(session.id, tmp_path)
        assert (fork.id, fork.continuity) == ("s2", "continued")
        assert fork.state.modes is not None
        agent.say("to the first")
        agent.say("to the second", session="s2")
        await until(lambda: fork.state.entries)
        assert [entry.text for entry in session.state.entries] == ["to the first"]
    assert agent.sent("session/fork")[0]["sessionId"] == "s1"


async def test_an_agent_cannot_give_a_new_session_the_id_of_one_that_is_open(
    tmp_path: Path,
) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (client, session):
        with pytest.raises(InvalidMessage, match="the id of one that is open"):
            await client.new_session(tmp_path)
        turn = session.prompt("go")
        request = await agent.expect("session/prompt")
        agent.update("agent_message_chunk", content=text_block("still here"))
        agent.reply(request["id"], {"stopReason": "end_turn"})
        assert (await soon(turn)).text == "still here"


async def test_an_id_that_is_empty_is_said_before_anything_is_sent(tmp_path: Path) -> None:
    agent = RawAgent()
    async with started(agent) as client:
        for begun in (
            client.load_session("", tmp_path),
            client.resume_session("", tmp_path),
            client.fork_session("", tmp_path),
            client.ensure_session("", tmp_path),
        ):
            with pytest.raises(ValueError, match="the session id must not be empty"):
                await begun
    methods = ("session/load", "session/resume", "session/fork", "session/new")
    assert [agent.sent(method) for method in methods] == [[]] * 4


# ── ensuring ──────────────────────────────────────────────────────────────────────────────────


async def test_ensuring_loads_where_the_agent_can(tmp_path: Path) -> None:
    agent = RawAgent()
    async with started(agent) as client:
        session = await client.ensure_session("old", tmp_path)
        assert (session.id, session.continuity) == ("old", "replayed")
    assert agent.sent("session/resume") == []


async def test_ensuring_resumes_where_loading_fails(tmp_path: Path) -> None:
    heard = Heard()
    agent = RawAgent(session__load=refuse(-32601))
    async with started(agent, listen=heard) as client:
        session = await client.ensure_session("old", tmp_path)
        assert (session.id, session.continuity) == ("old", "continued")
    assert heard.openings == [("old", "continued")]


async def test_ensuring_resumes_where_there_is_no_loading(tmp_path: Path) -> None:
    agent = RawAgent({"sessionCapabilities": {"resume": {}}})
    async with started(agent) as client:
        assert (await client.ensure_session("old", tmp_path)).continuity == "continued"
    assert agent.sent("session/load") == []


async def test_a_session_that_cannot_be_continued_is_not_started_empty(tmp_path: Path) -> None:
    agent = RawAgent(session__load=refuse(-32002), session__resume=refuse(-32602, "unknown id"))
    async with started(agent) as client:
        with pytest.raises(SessionNotContinued, match="unknown id") as caught:
            await client.ensure_session("old", tmp_path)
    assert caught.value.session_id == "old"
    assert agent.sent("session/new") == []


async def test_an_agent_without_memory_cannot_continue(tmp_path: Path) -> None:
    async with started(RawAgent({})) as client:
        with pytest.raises(SessionNotContinued, match="neither load nor resume"):
            await client.ensure_session("old", tmp_path)


async def test_a_new_start_in_place_of_a_session_is_a_reset_and_said_once(tmp_path: Path) -> None:
    heard = Heard()
    agent = RawAgent(session__load=refuse(-32002), session__resume=refuse(-32002))
    async with started(agent, listen=heard) as client:
        session = await client.ensure_session("old", tmp_path, allow_new=True)
        assert (session.id, session.continuity) == ("s1", "reset")
        assert [type(entry) for entry in session.state.entries] == [ResetEntry]
    assert heard.openings == [("s1", "reset")]


async def test_ensuring_without_an_id_is_new(tmp_path: Path) -> None:
    async with started(RawAgent()) as client:
        assert (await client.ensure_session(None, tmp_path)).continuity == "new"


# ── sessions the agent keeps ──────────────────────────────────────────────────────────────────


async def test_sessions_are_listed_page_by_page(tmp_path: Path) -> None:
    pages = {
        None: {"sessions": [{"sessionId": "a", "cwd": "/", "title": "A"}], "nextCursor": "2"},
        "2": {"sessions": [{"sessionId": "b", "cwd": "/", "updatedAt": "now", "archived": True}]},
    }
    agent = RawAgent(session__list=lambda params: pages[params.get("cursor")])
    async with started(agent) as client:
        found = [info async for info in client.list_sessions(tmp_path)]
    assert found == [
        SessionInfo(id="a", cwd="/", title="A"),
        SessionInfo(id="b", cwd="/", updated_at="now", archived=True),
    ]
    assert agent.sent("session/list") == [
        {"cwd": str(tmp_path)},
        {"cwd": str(tmp_path), "cursor": "2"},
    ]


async def test_a_list_can_begin_at_a_cursor_and_be_broken_off() -> None:
    page = {"sessions": [{"sessionId": "a", "cwd": "/"}], "nextCursor": "more"}
    agent = RawAgent(session__list=page)
    async with started(agent) as client:
        async for info in client.list_sessions(cursor="5"):
            assert info.id == "a"
            break
    assert agent.sent("session/list") == [{"cursor": "5"}]


async def test_pages_that_go_in_a_circle_come_to_an_end() -> None:
    following = {None: "1", "1": "2", "2": "1"}
    agent = RawAgent(
        session__list=lambda params: {
            "sessions": [{"sessionId": f"at {params.get('cursor')}", "cwd": "/"}],
            "nextCursor": following[params.get("cursor")],
        }
    )
    async with started(agent) as client:
        found = [info.id async for info in client.list_sessions()]
    assert found == ["at None", "at 1", "at 2"]


async def test_a_deleted_session_is_gone_here_too(tmp_path: Path) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (client, session):
        await client.delete_session("s1")
        assert not session.state.open
        with pytest.raises(SessionGone):
            await session.set_mode("x")
        await client.delete_session("another")
    assert agent.sent("session/delete") == [{"sessionId": "s1"}, {"sessionId": "another"}]


async def test_a_session_the_agent_will_not_delete_stays(tmp_path: Path) -> None:
    agent = RawAgent(session__delete=refuse(-32602))
    async with opened(agent, tmp_path) as (client, session):
        with pytest.raises(Exception, match="no"):
            await client.delete_session("s1")
        assert session.state.open


async def test_archive_status_and_title(tmp_path: Path) -> None:
    agent = RawAgent(session__status={"status": "saved"}, session__set_title={"title": "Stored"})
    async with opened(agent, tmp_path) as (client, session):
        await client.archive_session("s1")
        await client.unarchive_session("s1")
        assert await client.session_status("s1") == "saved"
        await session.set_title(" Stored ")
        assert session.state.title == "Stored"
    for method in ("session/archive", "session/unarchive", "session/status"):
        assert agent.sent(method) == [{"sessionId": "s1"}]
    assert agent.sent("session/set_title") == [{"sessionId": "s1", "title": " Stored "}]


async def test_a_title_an_agent_does_not_take_is_an_error(tmp_path: Path) -> None:
    agent = RawAgent({})
    async with opened(agent, tmp_path) as (_, session):
        with pytest.raises(Unsupported, match="session/set_title"):
            await session.set_title("x")
    assert agent.sent("session/set_title") == []


# ── between turns ─────────────────────────────────────────────────────────────────────────────
