"""The server's face: `dragoman serve`, and a program that speaks to it over HTTP."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import httpx

from agent_trials import replayed
from agent_trials.command import DRAGOMAN, environment, write_settings
from agent_trials.detour import Detour
from agent_trials.face import STEER, Face
from agent_trials.features import NotOffered
from agent_trials.lab import LabAgent
from agent_trials.learned import Learned, form_content
from agent_trials.marked import Mark
from agent_trials.turns import a_moment, contents

Json = dict[str, Any]


class ServerFace(Face):
    def __init__(
        self, agent: LabAgent, workspace: Path, home: Path, mark: Mark, learned: Learned
    ) -> None:
        super().__init__(agent, workspace, home, mark, learned)
        self._session = ""
        self._kept: Json = {}

    # ── speaking to it ────────────────────────────────────────────────────────────────────────

    async def _call(self, method: str, path: str, body: Json | None = None) -> Any:
        response = await self._http.request(method, f"/api{path}", json=body)
        assert response.is_success, f"{method} {path}: {response.status_code} {response.text[:300]}"
        return response.json() if response.content else None

    async def _new(self, agent: str | None = None, *, on_limit: str = "fail") -> str:
        body = {"agent": agent or self._agent.name, "cwd": str(self._workspace)}
        body["onLimit"] = on_limit
        return (await self._call("POST", "/sessions", body))["id"]

    async def _detail(self, session: str) -> Json:
        return await self._call("GET", f"/sessions/{session}?entries=1000")

    async def _turn(
        self, session: str, prompt: str, *, allow: bool = True
    ) -> tuple[list[Json], int]:
        """The entries of the turn, and how many questions there were."""
        turn = await self._prompted(session, prompt)
        detail, questions = await self._over(session, allow=allow)
        return [entry for entry in detail["entries"] if entry.get("turnId") == turn], questions

    async def _over(self, session: str, *, allow: bool = True) -> tuple[Json, int]:
        """The session when nothing runs or waits, and how many questions there were."""
        answered: set[str] = set()
        while True:
            detail = await self._detail(session)
            for pending in detail["pending"]:
                if pending["id"] not in answered:
                    answered.add(pending["id"])
                    await self._answer(session, pending, allow)
            busy = detail["status"] in ("running", "waiting", "parked")
            if detail["turn"] is None and not busy:
                return detail, len(answered)
            await a_moment()

    async def _prompted(self, session: str, prompt: str) -> str:
        return (await self._call("POST", f"/sessions/{session}/prompt", {"text": prompt}))["turn"]

    async def _answer(self, session: str, pending: Json, allow: bool) -> None:
        if pending["kind"] == "elicitation":
            body = {"action": "accept", "content": form_content(pending.get("schema"))}
            await self._call("POST", f"/sessions/{session}/elicitations/{pending['id']}", body)
            return
        kind = "allow" if allow else "reject"
        option = next(
            option["id"]
            for once in (True, False)
            for option in pending["options"]
            if option["kind"].startswith(kind) and (option["kind"].endswith("once") or not once)
        )
        body = {"optionId": option}
        await self._call("POST", f"/sessions/{session}/permissions/{pending['id']}", body)

    async def _said(self, session: str, prompt: str, words: str) -> None:
        entries, _ = await self._turn(session, prompt)
        answer = text_of(entries, "agent")
        assert answer, f"there was no answer: {entries}"[:300]
        assert words in answer, f"{words!r} is not in {answer[:200]!r}"

    # ── turns ─────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> str:
        (self._home / "recording.jsonl").write_bytes(self._learned.recording)
        await self._serve(self._agent)
        self._session = await self._new()
        return ""

    async def _serve(self, agent: LabAgent) -> None:
        command = {"command": str(DRAGOMAN)}
        command |= {"args": ["replay", str(self._home / "recording.jsonl"), "--serve"]}
        played = command | {"process": "per-session"}
        settings = write_settings(self._home, agent, self._mark, played=played)
        self._process = await asyncio.create_subprocess_exec(
            DRAGOMAN,
            *("serve", "--settings", str(settings), "--cwd", str(self._workspace)),
            env=environment(self._home, self._mark),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )
        assert self._process.stdout is not None
        address = (await self._process.stdout.readline()).decode().strip()
        origin, _, token = address.partition("/#token=")
        assert origin, "the server printed no address"
        self._http = httpx.AsyncClient(
            base_url=origin,
            headers={"authorization": f"Bearer {token}"},
            timeout=120.0,
            trust_env=False,
        )

    async def _serve_after_a_kill(self, agent: LabAgent) -> None:
        await self._http.aclose()
        self._process.kill()
        await self._process.wait()
        await self._mark.all_gone()
        await self._serve(agent)

    async def text(self) -> str:
        await self._said(self._session, self._agent.prompts["say"], self._agent.hello)
        return ""

    async def thought(self) -> str:
        entries, _ = await self._turn(self._session, self._prompt("think"))
        self._learned.require_seen("agent_thought_chunk", "the agent sends no thoughts")
        assert "hmm" in text_of(entries, "thought")
        return ""

    async def write(self) -> str:
        _, asked = await self._turn(self._session, self._prompt("write"))
        self._assert_written()
        changes = (await self._call("GET", f"/sessions/{self._session}/changes"))["changes"]
        told = self._learned.asked(asked)
        return told if changes else f"{told}; no change is known".lstrip("; ")

    async def shell(self) -> str:
        _, asked = await self._turn(self._session, self._prompt("shell"))
        self._assert_ran()
        return self._learned.asked(asked)

    async def plan(self) -> str:
        await self._turn(self._session, self._prompt("plan"))
        self._learned.require_seen("plan", "the agent's plan is a tool call")
        plan = (await self._detail(self._session))["plan"]
        assert [step["content"] for step in plan["steps"]] == ["one", "two"]
        return ""

    async def question(self) -> str:
        entries, asked = await self._turn(self._session, self._prompt("ask"))
        self._learned.require_seen("elicitation/create", "the agent asks no questions")
        assert asked == 1
        assert "A" in text_of(entries, "agent")
        return ""

    # ── settings ──────────────────────────────────────────────────────────────────────────────

    async def mode(self) -> str:
        other = self._learned.other_mode()
        await self._call("POST", f"/sessions/{self._session}/mode", {"modeId": other})
        detail = await self._detail(self._session)
        current = [option["value"] for option in detail["configOptions"]]
        assert other in ([detail["modes"]["current"]] if detail["modes"] else current)
        self._session = await self._new()  # in its usual mode
        return ""

    async def config(self) -> str:
        option, value = self._learned.setting()
        body = {"configId": option, "value": value}
        await self._call("POST", f"/sessions/{self._session}/config", body)
        options = (await self._detail(self._session))["configOptions"]
        assert next(o["value"] for o in options if o["id"] == option) == value
        self._session = await self._new()
        return ""

    async def commands(self) -> str:
        await self._said(self._session, self._agent.prompts["say"], "")
        detail = await self._detail(self._session)
        called = self._harmless([command["name"] for command in detail["commands"]])
        if called is not None:
            await self._turn(self._session, f"/{called}")
        return ""

    # ── sessions ──────────────────────────────────────────────────────────────────────────────

    async def list(self) -> str:
        await self._keep_one()
        self._learned.require("list")
        known = await self._known()
        assert self._kept["agentSessionId"] in known
        return ""

    async def _keep_one(self) -> None:
        """A session to come back to."""
        session = await self._new()
        await self._said(session, self._memorable, "")
        self._kept = await self._detail(session)

    async def _known(self) -> list[str]:
        found = await self._call("GET", f"/agents/{self._agent.name}/sessions?limit=500")
        return [session["id"] for session in found["sessions"]]

    async def resume(self) -> str:
        """A closed session is opened again by the next prompt."""
        if not self._reopens:
            raise NotOffered("the agent can neither resume nor load")
        if self._agent.loads_once:
            await self._keep_one()
        await self._call("POST", f"/sessions/{self._kept['id']}/close")
        await self._agent.settled()
        await self._said(self._kept["id"], self._again, self._remembered)
        return ""

    async def load(self) -> str:
        """A session whose record is gone is imported from the agent."""
        self._learned.require("load")
        await self._agent.settled()
        await self._call("DELETE", f"/sessions/{self._kept['id']}?local=true")
        body = {"sessionId": self._kept["agentSessionId"], "cwd": str(self._workspace)}
        made = await self._call("POST", f"/agents/{self._agent.name}/sessions", body)
        self._kept = await self._detail(made["id"])
        while self._remembered not in text_of(self._kept["entries"], "agent"):
            await a_moment()  # history may come after the reply
            self._kept = await self._detail(made["id"])
        return ""

    async def fork(self) -> str:
        self._learned.require("fork")
        made = await self._call("POST", f"/sessions/{self._kept['id']}/fork", {})
        await self._said(made["id"], self._again, self._remembered)
        return ""

    async def close(self) -> str:
        await self._call("POST", f"/sessions/{self._kept['id']}/close")
        assert (await self._detail(self._kept["id"]))["status"] == "closed"
        self._learned.require("close")
        return ""

    async def delete(self) -> str:
        await self._call("DELETE", f"/sessions/{self._kept['id']}")
        response = await self._http.get(f"/api/sessions/{self._kept['id']}")
        assert response.status_code == 404
        self._learned.require("delete")
        if self._learned.capabilities.list:
            assert self._kept["agentSessionId"] not in await self._known()
        return ""

    # ── going wrong ───────────────────────────────────────────────────────────────────────────

    async def rejected(self) -> str:
        path = self._unwritten()
        _, asked = await self._turn(self._session, self._refused_prompt(), allow=False)
        assert not path.exists()
        if not asked:
            raise NotOffered("no person is asked for a permission")
        await self._said(self._session, self._agent.prompts["say"], self._agent.hello)
        return ""

    async def steer(self) -> str:
        turn = asyncio.create_task(self._turn(self._session, self._working_prompt()))
        await self._works()
        told = await self._call("POST", f"/sessions/{self._session}/steer", {"text": STEER})
        await turn
        self._assert_ran()
        while "steered" not in text_of((await self._detail(self._session))["entries"], "agent"):
            await a_moment()
        await self._idle()
        return f"{told['way']}: {told['outcome']}"

    async def providers(self) -> str:
        self._learned.require("providers")
        if self._agent.holds_sessions:
            raise NotOffered("it takes none while a session is open: it cannot resume it then")
        path = f"/agents/{self._agent.name}/providers"
        async with Detour(self._agent) as detour:
            [provider, *_] = (await self._call("GET", path))["providers"]
            kind, address = detour.instead_of(provider)
            one = f"{path}/{provider['providerId']}"
            await self._call("PUT", one, {"apiType": kind, "baseUrl": address})
            session = await self._new()
            await self._said(session, self._agent.prompts["say"], self._agent.hello)
            assert detour.taken, "the agent went to the old address"
            await self._call("DELETE", one)
        return ""

    async def rewind(self) -> str:
        """To before a turn that wrote: its file is gone again, and another session continues in the
        same process, so that an agent need not remember its sessions."""
        self._unwritten()
        session = await self._new()
        for word in ("one", "two"):
            await self._said(session, f"say:{word}", word)
        before = contents(self._workspace)
        prompt = self._prompt("write")
        turn = await self._prompted(session, prompt)
        await self._over(session)
        assert contents(self._workspace) != before
        done = await self._call("POST", f"/sessions/{session}/rewind", {"turnId": turn})
        assert contents(self._workspace) == before
        assert done["prompt"] == prompt, done
        forked = done["continuity"] == "continued"
        assert forked or done["reason"], done
        await self._said(done["session"], "say:four", "four")
        entries = (await self._detail(done["session"]))["entries"]
        assert ("two" in text_of(entries, "agent")) == forked, "what it begins with"
        return "by a fork" if forked else "in a new conversation"

    async def cancel(self) -> str:
        await self._begin()
        reply = await self._call("POST", f"/sessions/{self._session}/cancel")
        assert reply["cancelled"]
        await self._idle()
        await self._said(self._session, self._agent.prompts["say"], self._agent.hello)
        return ""

    async def failure(self) -> str:
        entries, _ = await self._turn(self._session, self._failing_prompt())
        told = text_of(entries, "agent") or text_of(entries, "error")
        assert told or self._learned.silent, f"nothing was said: {entries}"[:300]
        await self._said(self._session, self._agent.prompts["say"], self._agent.hello)
        return ""

    async def limit(self) -> str:
        """Its provider takes no more, and the server is killed: the next one starts the agent again
        when the time has come, as a server does that has ended its agent during a long wait."""
        self._require_limits()
        if not self._reopens:
            raise NotOffered("the agent can neither resume nor load")
        prompt = self._counting_prompt()
        async with self._agent.behind_relay() as (agent, relay):
            relay.refuses, relay.seconds = lambda: True, 10
            await self._serve_after_a_kill(agent)
            self._session = await self._new(on_limit="park")
            await self._prompted(self._session, prompt)
            while (await self._detail(self._session))["status"] != "parked":
                await a_moment()
            relay.let_through()
            await self._serve_after_a_kill(agent)
            detail, _ = await self._over(self._session)
        assert detail["lastTurn"]["status"] == "completed", f"{detail['entries']}"[:300]
        rows = (await self._call("GET", "/usage?by=session&since=0"))["rows"]
        turns = [row["spent"]["turns"] for row in rows if row["name"] == self._session]
        assert turns == [2], f"turns: {turns}"
        await self._serve_after_a_kill(self._agent)
        self._session = await self._new()
        return self._assert_ran_once(is_repeated=True)

    async def killed(self) -> str:
        await self._begin()
        self._mark.kill_agent()
        detail = await self._idle()
        told = text_of(detail["entries"], "error")
        assert told, "nothing was said"
        if self._reopens:
            await self._agent.settled()
            await self._said(self._session, self._agent.prompts["say"], self._agent.hello)
            return "it continued after a new start"
        return ""

    async def _begin(self) -> None:
        """A turn in which the agent has begun to speak."""
        turn = await self._prompted(self._session, self._slow_prompt())
        while True:
            detail = await self._detail(self._session)
            entries = [entry for entry in detail["entries"] if entry.get("turnId") == turn]
            if text_of(entries, "agent"):
                return
            await a_moment()

    async def _idle(self) -> Json:
        while (detail := await self._detail(self._session))["turn"] is not None:
            await a_moment()
        return detail

    async def replay(self) -> str:
        """The recording as an agent, through the hub and the store, to what the page receives."""
        if not self._learned.recording:
            raise NotOffered("there is no recording")
        first = await self._played()
        assert first == await self._played(), "two replays differ"
        live = self._learned.digest
        assert first == live, f"the replay differs: {replayed.difference(live, first)}"
        return ""

    async def _played(self) -> list[str]:
        replayed.empty(self._workspace)
        session = await self._new("played")
        for kind in replayed.KINDS:
            if kind in self._agent.prompts:
                await self._turn(session, self._agent.prompts[kind])
        entries = (await self._detail(session))["entries"]
        # A path that was sent in pieces is replayed as it was recorded.
        return replayed.digest(entries, self._workspace, self._learned.workspace)

    async def exit(self) -> str:
        await self._http.aclose()
        self._process.send_signal(signal.SIGTERM)
        code = await self._process.wait()
        await self._mark.all_gone()
        assert code == 0, f"exit code {code}"
        return ""


def text_of(entries: list[Json], kind: str) -> str:
    """The words of the entries of one kind."""
    found = [entry for entry in entries if entry["type"] == kind]
    pieces = [piece for entry in found for piece in entry.get("pieces", [])]
    said = [piece if isinstance(piece, str) else piece.get("text", "") for piece in pieces]
    return "".join([*said, *(entry.get("message", "") for entry in found)])
