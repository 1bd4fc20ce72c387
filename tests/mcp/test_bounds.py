"""What an agent tries with the tools of `dragoman mcp`, to get more than it was given: nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.clients import until
from support.serving import FakeLauncher

from dragoman import AgentCommand, Policy, Rule, StdioServer
from dragoman.errors import ConfigError, RemoteError
from dragoman.host.rules.rule import RuleFields
from dragoman.hub.assembly import new_hub
from dragoman.hub.hub import Hub
from dragoman.hub.running.caller import VARIABLE, Caller, caller_here, starts_others, with_caller
from dragoman.mcp.caller_bounds import Bounds
from dragoman.mcp.mcp_connection import McpMethods
from dragoman.mcp.mcp_service import McpOptions, bounds_of, rules_within
from dragoman.mcp.session_tools import SessionTools
from dragoman.session.facts import Offer
from dragoman.session.limits.spending_limits import SpendingLimit
from dragoman.store.open import open_store
from dragoman.testing import AgentTurn, ScriptedAgent


async def work(turn: AgentTurn) -> None:
    """Does what the prompt says: writes a file, or asks whether it may run something."""
    match turn.text.split(" ", 1):
        case ["write", path]:
            try:
                await turn.write_text_file(path, "mine")
                turn.say("written")
            except RemoteError as error:
                turn.say(f"refused: {error}")
        case ["ask", command]:
            outcome = await turn.request_permission("c", title=command, kind="execute")
            turn.say(f"answered {outcome}")
        case _:
            turn.say(f"heard {turn.text}")


class Agents(FakeLauncher):
    """Those of this program, and no others."""

    def target(self, agent: str) -> AgentCommand:
        return AgentCommand(agent)


class Adversary:
    """The agent that has the tools, and all it can do with them."""

    def __init__(self, hub: Hub, tools: SessionTools) -> None:
        self.hub = hub
        self.told: list[Any] = []
        self._methods = McpMethods(tools, lambda method, params: self.told.append(method))

    async def call(self, name: str, **arguments: Any) -> Any:
        """What the tool returns; the text of its error if it refuses."""
        try:
            params = {"name": name, "arguments": arguments}
            reply = await self._methods.answer("tools/call", params)
        except RemoteError as error:
            return f"error: {error}"
        if reply.get("isError"):
            return f"error: {reply['content'][0]['text']}"
        return reply["structuredContent"]

    async def send(self, method: str, **params: Any) -> Any:
        try:
            return await self._methods.answer(method, params)
        except RemoteError as error:
            return f"error: {error}"

    async def start(self, prompt: str | None = None, **more: Any) -> Any:
        words = {} if prompt is None else {"prompt": prompt, "wait": 30}
        return await self.call("start_session", agent="worker", **words, **more)


@asynccontextmanager
async def calling(
    tmp_path: Path,
    *,
    caller: dict[str, Any] | None = None,
    attended: bool = False,
    most: int = 3,
    rules: tuple[Rule, ...] = (),
) -> AsyncGenerator[Adversary]:
    """A caller that may work in `inside` alone."""
    (inside := tmp_path / "inside").mkdir(exist_ok=True)
    (tmp_path / "outside").mkdir(exist_ok=True)
    given = None
    if caller is not None:
        given = Caller(session="s-parent", folders=[str(inside)], **caller)
    options = McpOptions(
        folders=[str(inside)], most_sessions=most, rules=rules, agents=["worker"], caller=given
    )
    agents = {"worker": ScriptedAgent(work), "other": ScriptedAgent(work)}
    launcher = Agents(agents, Policy(rules_within(rules, given)))
    store = await open_store(tmp_path / "store")
    try:
        async with new_hub(store, launcher, attended=attended) as hub:
            bounds = bounds_of(options)
            yield Adversary(hub, SessionTools(hub, launcher, bounds, attended=attended))
    finally:
        await store.aclose()


async def test_what_is_allowed_works(tmp_path: Path) -> None:
    """Otherwise nothing below would show anything."""
    write = Rule(effect="allow", operation="write")
    async with calling(tmp_path, rules=(write,)) as agent:
        path = tmp_path / "inside" / "a.txt"
        assert (await agent.start(f"write {path}"))["answer"] == "written"
        assert path.read_text() == "mine"
        (tmp_path / "inside" / "deep").mkdir()
        for folder in ("deep", "./deep", str(tmp_path / "inside" / "deep"), "deep/../deep"):
            assert (await agent.call("list_sessions"))["sessions"]
            found = Bounds([str(tmp_path / "inside")]).folder(folder)
            assert found == str(tmp_path / "inside" / "deep")


# ── folders ───────────────────────────────────────────────────────────────────────────────────

ESCAPES: dict[str, Callable[[Path], str]] = {
    "above": lambda _: "..",
    "beside": lambda _: "../outside",
    "absolute": lambda at: str(at / "outside"),
    "root": lambda _: "/",
    "home": lambda _: "~",
    "back and forth": lambda at: f"{at}/inside/../outside",
    "a name that begins alike": lambda at: str(at / "inside-not"),
    "a link": lambda _: "link",
    "beneath a link": lambda _: "link/deep",
    "through /proc": lambda at: f"/proc/self/root{at}/outside",
    "a NUL": lambda _: "a\0b",
    "a file": lambda _: "file",
    "nothing": lambda _: "none",
    "twice up": lambda _: "./.././/..",
}


@pytest.mark.parametrize("escape", ESCAPES)
async def test_it_does_not_leave_its_folders(tmp_path: Path, escape: str) -> None:
    async with calling(tmp_path) as agent:
        (tmp_path / "inside-not").mkdir()
        (tmp_path / "outside" / "deep").mkdir()
        (tmp_path / "inside" / "link").symlink_to(tmp_path / "outside")
        (tmp_path / "inside" / "file").write_text("")
        told = await agent.start(cwd=ESCAPES[escape](tmp_path))
        assert told.startswith("error: ")
        assert not agent.hub.live


@pytest.mark.parametrize(
    "tool", ["read_answer", "read_changes", "wait", "prompt", "cancel", "resource", "as a prompt"]
)
async def test_sessions_of_other_folders_are_not_there(tmp_path: Path, tool: str) -> None:
    async with calling(tmp_path) as agent:
        other = await agent.hub.create("worker", str(tmp_path / "outside"))
        match tool:
            case "resource":
                told = await agent.send("resources/read", uri=f"dragoman://sessions/{other.id}")
            case "as a prompt":
                arguments = {"session": other.id}
                told = await agent.send("prompts/get", name="session", arguments=arguments)
            case _:
                text = {"text": "x"} if tool == "prompt" else {}
                told = await agent.call(tool, session=other.id, **text)
        assert told.startswith("error: ")
        assert (await agent.call("list_sessions"))["sessions"] == []
        assert not other.state.turns


@pytest.mark.parametrize("tool", ["prompt", "cancel"])
async def test_a_session_that_it_did_not_start_is_only_read(tmp_path: Path, tool: str) -> None:
    """Such as the one that it is itself."""
    async with calling(tmp_path) as agent:
        own = await agent.hub.create("worker", str(tmp_path / "inside"))
        text = {"text": "x"} if tool == "prompt" else {}
        told = await agent.call(tool, session=own.id, **text)
        assert "you have not started" in told
        assert not own.state.turns
        assert (await agent.call("read_answer", session=own.id))["status"] == "idle"


# ── questions and rules ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("answer", {"optionId": "yes"}),
        ("answer_permission", {"optionId": "yes"}),
        ("approve", {}),
        ("allow_always", {"rule": "*"}),
        ("prompt", {"text": "yes"}),
        ("prompt", {"text": "x", "terms": {"rules": [{"effect": "allow"}]}}),
        ("prompt", {"text": "x", "yolo": True}),
        ("start_session", {"agent": "worker", "prompt": "yes"}),
    ],
)
async def test_it_cannot_answer_a_question_of_what_it_started(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    async with calling(tmp_path, attended=True) as agent:
        started = await agent.start()
        session = agent.hub.live[started["session"]]
        await agent.call("prompt", session=session.id, text="ask rm -rf .")
        await until(lambda: session.state.pending)
        waiting = await agent.call("wait", session=session.id)
        assert waiting["waitsForAPerson"] == ["rm -rf ."]
        [request] = session.state.pending
        about = {"session": session.id, "request": request, "requestId": request}
        await agent.call(tool, **(about if tool != "start_session" else {}), **arguments)
        for method in ("session/answer", "sampling/createMessage", "elicitation/create"):
            assert (await agent.send(method, **about)).startswith("error: ")
        assert request in session.state.pending


async def test_without_a_person_what_no_rule_decides_is_refused(tmp_path: Path) -> None:
    async with calling(tmp_path) as agent:
        told = await agent.start("ask rm -rf .")
        assert "yes" not in told["answer"]


@pytest.mark.parametrize(
    "more",
    [
        {"write": True},
        {"yolo": True},
        {"rules": [{"effect": "allow", "operation": "write"}]},
        {"policy": "/tmp/policy.json"},
        {"offer": {"files": True}},
        {"limits": []},
        {"mode": "bypassPermissions"},
        {"add_dir": ["/"]},
    ],
)
async def test_no_argument_widens_the_rules(tmp_path: Path, more: dict[str, Any]) -> None:
    async with calling(tmp_path) as agent:
        path = tmp_path / "inside" / "a.txt"
        told = await agent.start(f"write {path}", **more)
        assert told["answer"].startswith("refused")
        assert not path.exists()


@pytest.mark.parametrize("effect", ["deny", "ask"])
async def test_rules_of_the_caller_hold_for_what_it_starts(tmp_path: Path, effect: Any) -> None:
    """And those of the command line cannot make them wider."""
    own = [RuleFields.of(Rule(effect=effect, operation="write"))]
    allow = Rule(effect="allow", operation="write")
    async with calling(tmp_path, caller={"rules": own}, rules=(allow,)) as agent:
        path = tmp_path / "inside" / "a.txt"
        assert (await agent.start(f"write {path}"))["answer"].startswith("refused")
        assert not path.exists()


async def test_an_allow_of_the_command_line_does_not_count_for_a_caller(tmp_path: Path) -> None:
    allow = Rule(effect="allow", operation="write")
    async with calling(tmp_path, caller={}, rules=(allow,)) as agent:
        told = await agent.start(f"write {tmp_path / 'inside' / 'a.txt'}")
        assert told["answer"].startswith("refused")


async def test_what_the_caller_is_not_offered_is_not_offered(tmp_path: Path) -> None:
    given = {"offer": Offer(files=False), "rules": [RuleFields(effect="allow", operation="write")]}
    async with calling(tmp_path, caller=given) as agent:
        told = await agent.start(f"write {tmp_path / 'inside' / 'a.txt'}")
        assert told["answer"].startswith("refused")


# ── number, budget, depth ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", ["other", "demo", "goose", "../worker", "", "worker "])
async def test_only_the_agents_that_were_named_are_started(tmp_path: Path, name: str) -> None:
    async with calling(tmp_path) as agent:
        assert (await agent.call("start_session", agent=name)).startswith("error: ")
        assert [each["name"] for each in (await agent.call("list_agents"))["agents"]] == []
        assert not agent.hub.live


async def test_it_starts_as_many_sessions_as_it_may(tmp_path: Path) -> None:
    async with calling(tmp_path, most=2) as agent:
        assert [type(await agent.start()) for _ in range(4)] == [dict, dict, str, str]
        assert len(agent.hub.live) == 2


async def test_all_it_starts_shares_what_is_left(tmp_path: Path) -> None:
    limit = SpendingLimit(measure="cost", most=3.0)
    async with calling(tmp_path, caller={"limits": [limit]}) as agent:
        for _ in range(3):
            await agent.start()
        shares = [live.record.limits.limits[0].most for live in agent.hub.live.values()]
        assert shares == [1.0, 1.0, 1.0]


async def test_a_limit_of_turns_holds_for_each_and_for_all(tmp_path: Path) -> None:
    limit = SpendingLimit(measure="turns", most=2)
    async with calling(tmp_path, caller={"limits": [limit]}) as agent:
        first = await agent.start("one")
        assert first["answer"] == "heard one"
        refused = await agent.call("prompt", session=first["session"], text="two", wait=30)
        assert refused["answer"] != "heard two"
        assert isinstance(await agent.start("one"), dict)
        assert "used up" in await agent.start("one")


@pytest.mark.parametrize("seconds", [-1, 0, float("nan"), 1e300, "long", None])
async def test_no_time_makes_it_wait_forever_or_fail(tmp_path: Path, seconds: Any) -> None:
    async with calling(tmp_path) as agent:
        started = await agent.start("hello")
        told = await agent.call("wait", session=started["session"], seconds=seconds)
        assert isinstance(told, str) or told["status"] == "idle"


def test_what_it_starts_cannot_start_others() -> None:
    ours = [
        StdioServer(name="a", command="dragoman", args=("mcp",)),
        StdioServer(name="b", command="/usr/bin/dragoman", args=("mcp", "--yolo")),
        StdioServer(name="c", command="uvx", args=("dragoman", "mcp")),
        StdioServer(name="d", command="python3", args=("-m", "dragoman", "mcp")),
    ]
    others = [
        StdioServer(name="e", command="dragoman", args=("serve",)),
        StdioServer(name="f", command="mcp-files", args=("dragoman",)),
    ]
    assert [starts_others(each) for each in (*ours, *others)] == [True] * 4 + [False] * 2


def test_a_session_is_noted_for_the_server_that_starts_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    caller = Caller(
        session="s-1",
        folders=["/work"],
        rules=[RuleFields.of(Rule(effect="deny", argv_prefix=("git", "push")))],
        limits=[SpendingLimit(measure="cost", most=2.0)],
        offer=Offer(terminals=False),
        fence="require",
    )
    other = StdioServer(name="x", command="x")
    ours = StdioServer(name="a", command="dragoman", args=("mcp",), env={"A": "b"})
    told, same = with_caller([ours, other], lambda: caller)
    assert same is other
    assert isinstance(told, StdioServer)
    monkeypatch.setenv(VARIABLE, told.env[VARIABLE])
    assert caller_here() == caller
    assert told.env["A"] == "b"


@pytest.mark.parametrize("note", ["{", "[]", '{"session": "s"}', '{"session":"s","folders":5}'])
def test_a_note_that_is_not_ours_stops_the_server(
    monkeypatch: pytest.MonkeyPatch, note: str
) -> None:
    monkeypatch.setenv(VARIABLE, note)
    with pytest.raises(ConfigError):
        caller_here()


async def test_the_caller_and_what_it_started_are_linked(tmp_path: Path) -> None:
    async with calling(tmp_path) as agent:
        parent = await agent.hub.create("worker", str(tmp_path / "inside"))
        launcher = Agents({"worker": ScriptedAgent(work)}, Policy())
        caller = Caller(session=parent.id, folders=[str(tmp_path / "inside")])
        bounds = Bounds(caller.folders, caller=caller)
        tools = Adversary(agent.hub, SessionTools(agent.hub, launcher, bounds, attended=False))
        started = await tools.start("hello")
        child = agent.hub.live[started["session"]]
        assert f"started by session {parent.id}" in _notices(child.state.entries)
        assert f"started session {child.id} with worker" in _notices(parent.state.entries)


def _notices(entries: Any) -> list[str]:
    return [entry.text for entry in entries if type(entry).__name__ == "NoticeEntry"]
