"""The library's face: one client for the turns, new ones to continue what they left."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec

from agent_trials import replayed
from agent_trials.as_editor import conversation, difference, through_dragoman
from agent_trials.detour import Detour
from agent_trials.face import STEER, Face
from agent_trials.features import NotOffered
from agent_trials.model_relay import ModelRelay
from agent_trials.turns import (
    a_moment,
    answered,
    contents,
    end_of,
    is_for_more,
    run,
    said,
    texts,
)
from dragoman import Client, InProcessServer, ModelProvider, Policy, Session, Timeouts, Turn
from dragoman.errors import DragomanError, InvalidParams, NoResult
from dragoman.session import events as e
from dragoman.session.facts import TokenUsage

_NO_MCP = {
    "hermes": "it is installed without its extra for MCP",
    "codex": "it has tools in a namespace, which the stand-in for the model cannot name",
}
_STARTS_SUBAGENT: dict[str, tuple[str, dict[str, str | bool]]] = {
    "claude": ("Agent", {"subagent_type": "general-purpose"}),
    "qwen": ("agent", {"subagent_type": "general-purpose", "run_in_background": False}),
    "kimicode": ("Agent", {"subagent_type": "coder"}),
}
"""The tool that starts a subagent, and which one: in the background, Qwen's may ask for nothing.
Codex has its own in a namespace, which the stand-in for the model cannot name."""
_NO_SUBAGENTS = {"opencode": "it does not pass on what its subagents ask, and waits without end"}
_WORK = (e.AgentMessage, e.ToolCallUpdated)
_TOOL = {"name": "word", "description": "a word", "inputSchema": {"type": "object"}}


class _Invoice(msgspec.Struct):
    number: str
    total: float


_INVOICE = _Invoice("A1", 5)


def _names_of(server: str, tool: str) -> tuple[str, ...]:
    """What agents make of the name of a tool."""
    both = f"{server}__{tool}", f"{server}_{tool}"
    return f"mcp__{both[0]}", *both, f"mcp_{both[1]}", tool


class LibraryFace(Face):
    _kept = ""

    def client(self, **options: Any) -> Client:
        return self._agent.client(
            self._mark.agent_env, tap=self._learned.tap, timeouts=Timeouts(cancel=20), **options
        )

    # ── turns ─────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> str:
        self._client = self.client()
        await self._client.__aenter__()
        self._learned.capabilities = self._client.capabilities
        self._session = await self._client.new_session(self._workspace)
        return f"{self._client.agent_info.name} {self._client.agent_info.version}".strip()

    async def text(self) -> str:
        await said(self._session, self._agent.prompts["say"], self._agent.hello)
        self._learned.modes = self._session.state.modes
        self._learned.options = self._session.state.config_options
        return ""

    async def thought(self) -> str:
        events = await run(self._session, self._prompt("think"))
        self._learned.require_seen("agent_thought_chunk", "the agent sends no thoughts")
        assert "hmm" in texts(events, e.AgentThought)
        return ""

    async def write(self) -> str:
        events = await run(self._session, self._prompt("write"))
        self._assert_written()
        return self._asked(events)

    async def shell(self) -> str:
        events = await run(self._session, self._prompt("shell"))
        self._assert_ran()
        return self._asked(events)

    async def editor(self) -> str:
        """A conversation through `dragoman acp` is the one without it, update by update."""
        allowing: dict[str, Any] = {"policy": Policy(yolo=True)}
        told: list[list[Any]] = []
        for client in (self.client(**allowing), through_dragoman(self._agent, str(self._home))):
            self._unwritten()
            self._ran.unlink(missing_ok=True)
            told.append(await conversation(client, self._agent, str(self._workspace)))
        problem = difference(*told)
        assert not problem, problem
        return f"{len(told[0])} updates"

    async def undo(self) -> str:
        """What turns did is seen, all of it, and undone: compared with what was there before."""
        prompts = [self._prompt(kind) for kind in ("write", "shell")]
        self._unwritten()
        self._ran.unlink(missing_ok=True)
        before = contents(self._workspace)
        session = await self._client.new_session(self._workspace)
        session.track_changes()
        for prompt in prompts:
            await run(session, prompt)
        self._assert_written()
        self._assert_ran()
        files = (await session.changes()).files
        told = {path for each in files for path in (each.path, each.old_path) if path}
        self._assert_told(told, before)
        await session.revert()
        assert contents(self._workspace) == before
        await session.close()
        return f"by {' and '.join(sorted({by for each in files for by in each.by}))}"

    def _asked(self, events: list[e.Event]) -> str:
        requests = [event for event in events if isinstance(event, e.PermissionRequested)]
        self._learned.vague |= any(map(is_for_more, requests))
        return self._learned.asked(len(requests))

    async def plan(self) -> str:
        events = await run(self._session, self._prompt("plan"))
        self._learned.require_seen("plan", "the agent's plan is a tool call")
        assert [event for event in events if isinstance(event, e.PlanUpdated)]
        plan = self._session.state.plan
        assert plan is not None
        assert [step.content for step in plan.steps] == ["one", "two"]
        return ""

    async def question(self) -> str:
        events = await run(self._session, self._prompt("ask"))
        self._learned.require_seen("elicitation/create", "the agent asks no questions")
        assert "A" in texts(events, e.AgentMessage)
        return ""

    async def mcp(self) -> str:
        """A tool of this process, whatever the agent makes of its name."""
        self._prompt("shell")  # an agent without a model calls no tools
        if reason := _NO_MCP.get(self._agent.name):
            raise NotOffered(reason)
        called = asyncio.Event()

        async def handle(method: str, params: dict[str, Any] | None) -> dict[str, Any]:
            if method == "tools/list":
                return {"tools": [_TOOL]}
            if method != "tools/call":
                raise InvalidParams(f"no {method} here")
            called.set()
            return {"content": [{"type": "text", "text": "quicksilver"}]}

        server = InProcessServer(name="lexicon", id="lexicon", handle=handle)
        session = await self._client.new_session(self._workspace, mcp_servers=[server])
        for name in _names_of("lexicon", "word"):
            events = await run(session, f"tool:{name} {{}}")
            if called.is_set():
                assert "quicksilver" in texts(events, e.AgentMessage)
                return f"as {name}"
        raise AssertionError("the tool was never called")

    async def typed(self) -> str:
        """A result by the tool, with nobody to allow it, and one from the text."""
        session = await self._client.new_session(self._workspace)
        if not self._agent.has_model:
            with suppress(NoResult):
                await session.ask(self._agent.prompts["say"], output=_Invoice, retries=1)
                raise AssertionError("it cannot have given a result")
            raise NotOffered("the agent has no model, and gives no result")
        prompt = f"say:{msgspec.json.encode(_INVOICE).decode()}"
        assert await session.ask(prompt, output=_Invoice) == _INVOICE
        if self._agent.name in _NO_MCP:
            return "from the text"
        async with self.client(questions="refuse") as client:
            for name in _names_of("dragoman", "submit_result"):
                session = await client.new_session(self._workspace, results=_Invoice)
                arguments = msgspec.json.encode({"result": _INVOICE}).decode()
                with suppress(NoResult):
                    given = await session.ask(
                        f"tool:{name} {arguments}\nsay:bye", output=_Invoice, retries=0
                    )
                    assert given == _INVOICE
                    return f"by the tool, as {name}, and from the text"
        raise AssertionError("no result came by the tool")

    async def providers(self) -> str:
        """The model is asked where we say, as soon as we say it and when the agent starts."""
        self._learned.require("providers")
        async with Detour(self._agent) as detour:
            async with self.client() as client:
                [provider, *_] = await client.list_providers()
                kind, address = detour.instead_of(provider)
                await client.set_provider(provider["providerId"], kind, address)
                [now, *_] = await client.list_providers()
                assert now["current"] == {"apiType": kind, "baseUrl": address}
                await self._says_hello(client)
            assert detour.taken, "the agent went to the old address"
            before = detour.taken
            wanted = {provider["providerId"]: ModelProvider(api_type=kind, base_url=address)}
            async with self.client(model_providers=wanted) as client:
                await self._says_hello(client)
            assert detour.taken > before, "the agent forgot the address when it started"
        return f"{provider['providerId']} speaks {', '.join(provider['supported'])}"

    async def _says_hello(self, client: Client) -> None:
        session = await client.new_session(self._workspace)
        await said(session, self._agent.prompts["say"], self._agent.hello)

    # ── settings ──────────────────────────────────────────────────────────────────────────────

    async def mode(self) -> str:
        other = self._learned.other_mode()
        before = self._current_mode()
        await self._session.set_mode(other)
        assert self._current_mode() == other
        await self._session.set_mode(before)
        assert self._current_mode() == before
        return ""

    def _current_mode(self) -> str:
        state = self._session.state
        if state.modes is not None:
            return state.modes.current
        return next(str(o.value) for o in state.config_options if o.category == "mode")

    async def config(self) -> str:
        option, other = self._learned.setting()
        before = self._value(option)
        await self._session.set_config_option(option, other)
        assert self._value(option) == other
        if other == before:
            return f"{option} has one value only"
        await self._session.set_config_option(option, before)
        assert self._value(option) == before
        return ""

    def _value(self, option: str) -> str | bool:
        return next(o.value for o in self._session.state.config_options if o.id == option)

    async def commands(self) -> str:
        names = [command.name for command in self._session.state.commands]
        called = self._harmless(names)
        if called is None:
            return f"{len(names)} listed, none of them called"
        await run(self._session, f"/{called}")
        return f"{len(names)} listed, /{called} called"

    # ── sessions that the agent keeps ─────────────────────────────────────────────────────────

    async def list(self) -> str:
        await self._keep_one()
        self._learned.require("list")
        known = [info.id async for info in self._client.list_sessions(self._workspace)]
        assert self._kept in known, f"{self._kept} is not among {len(known)} sessions"
        return ""

    async def _keep_one(self) -> None:
        """A session to come back to."""
        if not self._agent.holds_sessions:
            await self._keep_one_of(self._client)
            return
        async with self._elsewhere() as client:
            await self._keep_one_of(client)

    async def _keep_one_of(self, client: Client) -> None:
        session = await client.new_session(self._workspace)
        self._kept = session.id
        await said(session, self._memorable, self._remembered)
        await session.close()  # or it may be listed although it is deleted

    async def load(self) -> str:
        self._learned.require("load")
        await self._agent.settled()
        async with self._elsewhere() as client:
            session = await client.load_session(self._kept, self._workspace)
            if not self._agent.has_model:
                return "whether it remembers is unknown"
            while self._remembered not in "".join(entry.text for entry in session.state.entries):
                await a_moment()  # history may come after the reply
            await said(session, self._again, self._remembered)
        return ""

    async def resume(self) -> str:
        self._learned.require("resume")
        async with self._elsewhere() as client:
            session = await client.resume_session(self._kept, self._workspace)
            await said(session, self._again, self._remembered)
        return ""

    async def fork(self) -> str:
        self._learned.require("fork")
        session = await self._client.fork_session(self._kept, self._workspace)
        assert session.id != self._kept
        await said(session, self._again, self._remembered)
        return ""

    async def close(self) -> str:
        session = await self._client.new_session(self._workspace)
        await said(session, self._agent.prompts["say"], "")
        await session.close()
        self._learned.require("close")
        return ""

    async def delete(self) -> str:
        self._learned.require("delete")
        await self._client.delete_session(self._kept)
        if not self._learned.capabilities.list:
            return ""
        known = [info.id async for info in self._client.list_sessions(self._workspace)]
        assert self._kept not in known, "it is still listed"
        return ""

    @asynccontextmanager
    async def _elsewhere(self) -> AsyncGenerator[Client]:
        """The agent in a process that has not seen the session."""
        async with self.client() as client:
            yield client

    # ── going wrong ───────────────────────────────────────────────────────────────────────────

    async def rejected(self) -> str:
        path = self._unwritten()
        events = await run(self._session, self._refused_prompt(), allow=False)
        assert not path.exists()
        if not any(isinstance(event, e.PermissionRequested) for event in events):
            raise NotOffered("the agent asks no permission")
        await said(self._session, self._agent.prompts["say"], self._agent.hello)
        return f"it ended as {end_of(events).stop_reason}"

    async def steer(self) -> str:
        """While a command runs, which must not suffer."""
        session, heard = self._session, self._session.events()
        running = asyncio.create_task(run(session, self._working_prompt()))
        await self._works()
        steer = await session.steer(STEER)
        await running
        while session.at_work:
            await a_moment()
        self._assert_ran()
        events = list(heard.ready)
        [told] = [event for event in events if isinstance(event, e.Steered)]
        assert "steered" in texts(events, e.AgentMessage), f"{steer.way}: {told.outcome}"
        self._learned.steer = f"{told.way}: {told.outcome}"
        return self._learned.steer

    async def subagents(self) -> str:
        """One that runs a command: what it does is its own, not the session's."""
        if self._agent.name not in _STARTS_SUBAGENT:
            unknown = "no tool that starts a subagent is known"
            raise NotOffered(_NO_SUBAGENTS.get(self._agent.name, unknown))
        tool, which = _STARTS_SUBAGENT[self._agent.name]
        self._ran.unlink(missing_ok=True)
        inner = f"{self._prompt('shell')}\nsay:child done"
        asked = {"description": "Look around", "prompt": inner} | which
        session = await self._client.new_session(self._workspace)
        await run(session, f"tool:{tool} {json.dumps(asked)}\nsay:parent done")
        self._assert_ran()
        assert self._client.strays == 0
        if not (found := list(session.state.subagents.values())):
            raise NotOffered("the agent shows nothing of its subagents")
        [child] = found
        calls = [call for call in child.thread.tool_calls.values() if call.status == "completed"]
        assert calls, "its command is not in its thread"
        assert not child.is_at_work
        return f"{'announced' if child.tool_call_id is None else 'as tool calls'}: {child.name}"

    async def usage(self) -> str:
        """What is reported of two turns, the second with two requests to a model that counts 100
        tokens in and 10 out for each; it has to be what the table of agents says."""
        known = self._agent.known
        counted = self._client.openings.quirks.counted_tokens
        first = await self._used(self._agent.prompts["say"])
        second = await self._used(self._prompt("write"))
        cost = None if self._session.state.usage is None else self._session.state.usage.cost
        told = {"tokens": second is not None, "cost": cost is not None}
        seen = {what for what, is_told in told.items() if is_told}
        assert known is None or seen == set(known.tells or ()), f"it reports {seen or 'nothing'}"
        money = "no cost" if cost is None else f"a cost of {cost.amount:g} {cost.currency}"
        if first is None or second is None:
            return f"no tokens, {money}"
        requests = {"turn": 2, "request": 1, "session": first.total // 110 + 2}[counted]
        assert second.total == 110 * requests, f"{second.total} tokens, counted as of the {counted}"
        models = ", ".join(each.model for each in second.models or ()) or "no model"
        return f"tokens of the {counted}, {models}, {money}"

    async def limit(self) -> str:
        """Its provider takes no more, at once or when the command has run: the prompt is parked,
        and sent once more, by the clock or by a person."""
        self._require_limits()
        async with self._agent.behind_relay() as (agent, relay):
            options = {"timeouts": Timeouts(cancel=20), "on_limit": "park"}
            async with agent.client(self._mark.agent_env, **options) as client:
                session = await client.new_session(self._workspace)
                first = await self._parked_once(session, relay, lambda: True)
                later = await self._parked_once(session, relay, self._at_work.exists)
        return f"at once: {first}; when the command has run: {later}"

    async def _parked_once(
        self, session: Session, relay: ModelRelay, refuses: Callable[[], bool]
    ) -> str:
        prompt, seen = self._counting_prompt(), session.events()
        relay.refuses = refuses
        turn = session.prompt(prompt)
        events = await answered(session, turn)
        assert turn.parked is not None, f"not parked: {texts(events, e.AgentMessage)!r}"
        way = "repeated" if turn.parked.repeats else "continued"
        assert way == ("continued" if self._at_work.exists() else "repeated")
        relay.let_through()
        if turn.parked.ends_at is None:
            sent, by = await session.parking.send_now(), "a person"
        else:
            sent, by = await session.parking.continued(turn), "the clock"
        assert sent is not None
        await answered(session, sent)
        assert sent.stop_reason == "end_turn"
        assert session.state.parked is None
        assert sum(isinstance(event, e.TurnStarted) for event in seen.ready) == 2
        told = self._assert_ran_once(is_repeated=turn.parked.repeats)
        return f"{turn.parked.kind}, {way} by {by}{told}"

    async def _used(self, prompt: str) -> TokenUsage | None:
        """The table of agents says that a cost comes when all else of the turn was reported."""
        events = await run(self._session, prompt)
        worked = [at for at, event in enumerate(events) if isinstance(event, _WORK)]
        costs = [
            at
            for at, event in enumerate(events)
            if isinstance(event, e.UsageChanged) and event.cost is not None
        ]
        assert not costs or costs[0] > worked[-1], "it reports its cost while it works"
        return end_of(events).usage

    async def cancel(self) -> str:
        turn = await self._begun()
        await self._session.cancel()
        await said(self._session, self._agent.prompts["say"], self._agent.hello)
        return f"it ended as {turn.stop_reason}"

    async def failure(self) -> str:
        prompt = self._failing_prompt()
        try:
            events = await run(self._session, prompt)
            words = texts(events, e.AgentMessage)
            self._learned.silent = not words
            told = f"it ended as {end_of(events).stop_reason}, saying {words!r}"
        except DragomanError as error:
            told = f"it ended with {type(error).__name__}: {error}"
        await said(self._session, self._agent.prompts["say"], self._agent.hello)
        return told[:200]

    async def killed(self) -> str:
        turn = await self._begun()
        self._mark.kill_agent()
        try:
            async for _ in turn:
                pass
        except DragomanError as error:
            told = str(error).partition("; it printed")[0]
        else:
            raise AssertionError(f"the turn ended as {turn.stop_reason}")
        if not self._reopens:
            return told
        await self._agent.settled()
        await self._session.reconnect()
        await said(self._session, self._agent.prompts["say"], self._agent.hello)
        return f"{told}; it continued after a new start"

    async def _begun(self) -> Turn:
        """A turn in which the agent has begun to speak."""
        turn = self._session.prompt(self._slow_prompt()).detach()
        async for event in turn:
            if isinstance(event, e.AgentMessage):
                return turn
        raise AssertionError("the turn ended without a word")

    async def replay(self) -> str:
        path = self._workspace.parent / "recording.jsonl"
        live = await replayed.record(self._agent, self._mark.agent_env, self._workspace, path)
        first = await replayed.replay(self._agent, self._workspace, path)
        again = await replayed.replay(self._agent, self._workspace, path)
        assert first == again, "two replays differ"
        assert first == live, f"the replay differs: {replayed.difference(live, first)}"
        self._learned.digest, self._learned.recording = live, path.read_bytes()
        self._learned.workspace = self._workspace
        return f"{len(live)} entries"

    async def exit(self) -> str:
        await self._client.aclose()
        await self._mark.all_gone()
        return ""
