"""Agents that take steers, one for each way, with moments of their own choice.

`taken` is what reached the model, prompts and steers, in order: what a client may neither lose nor
repeat.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, Literal, TypeAlias

from support.raw_agent import Json, RawAgent, Refusal, text_block
from support.v2_agent import CAPABILITIES

Way: TypeAlias = Literal["steering", "run", "pull", "prompt", "queue"]
WAYS: tuple[Way, ...] = ("steering", "run", "pull", "prompt", "queue")


class SteeredAgent(RawAgent):
    """Each pause is drawn from `chance`, up to `longest` seconds."""

    def __init__(self, way: Way, chance: Random, *, longest: float = 1.0) -> None:
        super().__init__(welcome=_WELCOMES.get(way))
        self.way = way
        self.taken: list[str] = []
        self.cancelled = False
        self.gone = False
        self._chance = chance
        self._longest = longest
        self._runs = 0
        self._run: str | None = None
        self._steers: list[tuple[str, str]] = []
        """Accepted and not taken up yet, each with its name."""
        self._work: set[asyncio.Task[None]] = set()
        self._asked = 0

    # ── requests ──────────────────────────────────────────────────────────────────────────────

    def _received(self, message: Json) -> None:
        method, params, key = message.get("method"), message.get("params", {}), message.get("id")
        self.received.append(message)
        self._arrived.set()
        if self.gone:
            return
        if method == "session/cancel":
            self.cancelled = True
        serve = self._served().get(method or "")
        if serve is not None and key is not None:
            self._spawn(self._answer(key, serve, params))
        elif key is not None and method is not None:
            self.reply(key, self.answers.get(method, {}))

    def _served(self) -> dict[str, Callable[[Json], Coroutine[Any, Any, Json]]]:
        return {
            "session/prompt": self._prompted,
            "_session/steering": self._steered,
            "_goose/unstable/session/steer": self._steered_run,
        }

    async def _answer(
        self, key: Any, serve: Callable[[Json], Coroutine[Any, Any, Json]], params: Json
    ) -> None:
        try:
            result = await serve(params)
        except Refusal as refusal:
            self.send({"id": key, "error": refusal.error})
        else:
            self.reply(key, result)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    def send(self, *messages: Json) -> None:
        if not self.gone:
            super().send(*messages)

    async def crash(self) -> None:
        self.gone = True
        for task in self._work:
            task.cancel()
        await self.vanish()

    async def close(self) -> None:
        self.gone = True
        for task in self._work:
            task.cancel()
        await asyncio.gather(*self._work, return_exceptions=True)

    async def pause(self) -> None:
        await asyncio.sleep(self._chance.random() * self._longest)

    # ── a turn ────────────────────────────────────────────────────────────────────────────────

    async def _prompted(self, params: Json) -> Json:
        text = _text(params)
        if self.way == "prompt":
            return await self._inserted(text)
        self._begins(text)
        await self._works()
        self._ends()
        await self.pause() if self._chance.random() < 0.3 else None
        return {"stopReason": "cancelled" if self.cancelled else "end_turn"}

    def _begins(self, text: str) -> None:
        self.cancelled = False
        self._runs += 1
        self._run = f"run-{self._runs}"
        self.taken.append(text)
        if self.way == "run":
            self._tell_run()

    def _tell_run(self) -> None:
        self.update("session_info_update", _meta={"goose": {"activeRunId": self._run}})

    async def _works(self) -> None:
        for step in range(self._chance.randrange(5)):
            await self.pause()
            if self.cancelled:
                return
            self._does(step)
            await self._takes_up()

    def _does(self, step: int) -> None:
        if self._chance.random() < 0.5:
            self.say("x") if self.way != "prompt" else self._say_second()
            return
        kind = "tool_call" if self.way != "prompt" else "tool_call_update"
        self.update(kind, toolCallId=f"c{self._runs}-{step}", title="T", status="in_progress")

    def _say_second(self) -> None:
        self.update("agent_message_chunk", messageId=f"m{self._runs}", content=text_block("x"))

    async def _takes_up(self) -> None:
        """Between two steps."""
        if self.way == "run":
            self._takes_up_accepted()
        elif self.way == "pull":
            self._asked += 1
            params = {"sessionId": "s1"}
            answer = await self.ask("craft/drainMidTurnQueue", params, f"pull-{self._asked}")
            items = answer["result"]["items"]
            self.taken += ["".join(block["text"] for block in each["content"]) for each in items]
        elif self.way == "prompt":
            self._insert_held()

    def _takes_up_accepted(self) -> None:
        steers, self._steers = self._steers, []
        for key, text in steers:
            self.taken.append(text)
            meta = {"goose": {"steer": True}}
            block = text_block(text)
            self.update("user_message_chunk", messageId=key, content=block, _meta=meta)

    def _ends(self) -> None:
        self._run = None
        self._steers.clear()
        if self.way == "run":
            self._tell_run()

    # ── steers ────────────────────────────────────────────────────────────────────────────────

    async def _steered(self, params: Json) -> Json:
        assert params["_meta"] == {"steering": {"idleBehavior": "promptRequired"}}
        await self.pause()
        if self._run is None:
            return {"outcome": "promptRequired", "reason": "noRunningTurn"}
        self.taken.append(_text(params))
        await self.pause()
        return {"outcome": "injected"}

    async def _steered_run(self, params: Json) -> Json:
        await self.pause()
        if self._run is None:
            raise Refusal(-32602, "Invalid params", "no active run to steer")
        if params["expectedRunId"] != self._run:
            raise Refusal(-32602, "Invalid params", {"actualRunId": self._run})
        key = f"steer-{len(self.received)}"
        self._steers.append((key, _text(params)))
        if self._chance.random() < 0.3:
            self._takes_up_accepted()  # before the answer to it is on the wire
        return {"runId": self._run, "messageId": key}

    # ── version 2 ─────────────────────────────────────────────────────────────────────────────

    _held: list[tuple[str, asyncio.Future[Json]]] | None = None

    async def _inserted(self, text: str) -> Json:
        """A prompt in flight is held until the next step, or the end."""
        self._held = self._held or []
        if self._run is not None:
            waits: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
            self._held.append((text, waits))
            return await waits
        self._spawn(self._second_turn(text))
        return await self._begin_second(text)

    async def _begin_second(self, text: str) -> Json:
        self._run = "reserved"
        await asyncio.sleep(0)
        return {"messageId": f"u-{text}"}

    async def _second_turn(self, text: str) -> None:
        await asyncio.sleep(0)
        self._begins(text)
        self.update("user_message", messageId=f"u-{text}", content=[text_block(text)])
        self.update("state_update", state="running")
        await self._works()
        reason = "cancelled" if self.cancelled else "end_turn"
        self._ends()
        self.update("state_update", state="idle", stopReason=reason)
        if self._held:
            following, waits = self._held.pop(0)
            waits.set_result({"messageId": f"u-{following}"})
            self._run = "reserved"
            self._spawn(self._second_turn(following))

    def _insert_held(self) -> None:
        for text, waits in self._held or ():
            self.taken.append(text)
            self.update("user_message", messageId=f"u-{text}", content=[text_block(text)])
            waits.set_result({"messageId": f"u-{text}"})
        self._held = []


def _text(params: Json) -> str:
    return "".join(block["text"] for block in params["prompt"])


_WELCOMES: dict[str, Json] = {
    "steering": {"_meta": {"steering": {"supported": True}}},
    "prompt": {
        "protocolVersion": 2,
        "info": {"name": "raw", "version": "7", "title": "Raw"},
        "capabilities": CAPABILITIES | {"_meta": {"claudeCode": {"promptQueueing": True}}},
        "authMethods": [],
    },
}
