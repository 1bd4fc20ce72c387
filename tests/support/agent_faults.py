"""What can be wrong with an agent, as mutations of its connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from support.mutant_link import Change, Frames, MutantLink, Mutation, When

from dragoman.conformance.examination.agent_words import LONG, TINY, WORK
from dragoman.conformance.probing.loose_json import Wire, at, items, obj, objects

MakeMutation: TypeAlias = Callable[[], Mutation]
NOBODYS = "conformance-no-such-session"


# ── kinds of faults ───────────────────────────────────────────────────────────────────────────


class OfReply(Mutation):
    """Does something with the answers to a method, if the request is the one it is for."""

    def __init__(
        self, method: str, act: Callable[[MutantLink, Wire], Frames | None], when: When
    ) -> None:
        self._method = method
        self._act = act
        self._when = when

    def received(self, link: MutantLink, message: Wire) -> Frames | None:
        request = link.request(message)
        if request.get("method") == self._method and self._when(params_of(request)):
            return self._act(link, message)
        return None


class OfMessage(Mutation):
    """Does something with the requests and notifications of a method that come from the agent."""

    def __init__(self, method: str, act: Callable[[MutantLink, Wire], Frames | None]) -> None:
        self._method = method
        self._act = act

    def received(self, link: MutantLink, message: Wire) -> Frames | None:
        return self._act(link, message) if message.get("method") == self._method else None


class OfSent(Mutation):
    """Does something with what we send."""

    def __init__(self, act: Callable[[MutantLink, Wire], Frames | None]) -> None:
        self._act = act

    def sent(self, link: MutantLink, message: Wire) -> Frames | None:
        return self._act(link, message)


class OfBytes(Mutation):
    """Does something with the bytes we send."""

    def __init__(self, act: Callable[[MutantLink, bytes], bytes]) -> None:
        self._act = act

    def written(self, link: MutantLink, data: bytes) -> bytes:
        return self._act(link, data)


def params_of(message: Wire) -> Any:
    """As they are: they may be a list."""
    return message.get("params")


def always(params: Any) -> bool:
    return True


def answers(method: str, change: Change, when: When = always) -> MakeMutation:
    """Changes the result."""

    def act(link: MutantLink, reply: Wire) -> Frames | None:
        if isinstance(reply.get("result"), dict):
            change(reply["result"])
        return [reply]

    return lambda: OfReply(method, act, when)


def changes_reply(method: str, change: Change, when: When = always) -> MakeMutation:
    """Changes the whole answer."""

    def act(link: MutantLink, reply: Wire) -> Frames:
        change(reply)
        return [reply]

    return lambda: OfReply(method, act, when)


def fails(method: str, when: When = always, code: int = -32603) -> MakeMutation:
    """Answers with an error instead."""
    return lambda: OfReply(method, lambda _, reply: [error(reply["id"], code)], when)


def succeeds(method: str, when: When = always, **result: Any) -> MakeMutation:
    """Answers with a result instead."""
    return lambda: OfReply(method, lambda _, reply: [answer(reply["id"], result)], when)


def adds(method: str, extra: Frames, when: When = always, *, before: bool = True) -> MakeMutation:
    """Says more, before the answer or behind it."""

    def act(link: MutantLink, reply: Wire) -> Frames:
        return [*extra, reply] if before else [reply, *extra]

    return lambda: OfReply(method, act, when)


def tells(*updates: Wire, when: When | None = None) -> MakeMutation:
    """Reports more at the end of a turn of work."""

    def act(link: MutantLink, reply: Wire) -> Frames:
        session_id = at(link.request(reply), "params", "sessionId")
        return [*(update(session_id, each) for each in updates), reply]

    return lambda: OfReply("session/prompt", act, when or works)


def asks(method: str, change: Change) -> MakeMutation:
    """Changes the params of the agent's requests."""

    def act(link: MutantLink, request: Wire) -> Frames:
        change(obj(request.get("params")))
        return [request]

    return lambda: OfMessage(method, act)


def dies_of(*lines: bytes) -> MakeMutation:
    """Ends at a line like that."""

    def act(link: MutantLink, data: bytes) -> bytes:
        if data in lines:
            link.die()
        return data

    return lambda: OfBytes(act)


def drops_reply(key: str) -> MakeMutation:
    class Drops(Mutation):
        def received(self, link: MutantLink, message: Wire) -> Frames | None:
            return [] if message.get("id") == key and "method" not in message else None

    return Drops


def renames_id(key: Any, other: Any) -> MakeMutation:
    class Renames(Mutation):
        def received(self, link: MutantLink, message: Wire) -> Frames | None:
            if "method" not in message and repr(message.get("id")) == repr(key):
                return [{**message, "id": other}]
            return None

    return Renames


def dies(when: Callable[[Wire], bool]) -> MakeMutation:
    def act(link: MutantLink, message: Wire) -> None:
        if when(message):
            link.die()

    return lambda: OfSent(act)


def answers_notification(method: str, when: When = always) -> MakeMutation:
    """Answers what no one should answer."""

    def act(link: MutantLink, message: Wire) -> None:
        if message.get("method") == method and when(params_of(message)):
            link.inject(error(None, -32601))

    return lambda: OfSent(act)


def answer(key: Any, result: Any) -> Wire:
    return {"jsonrpc": "2.0", "id": key, "result": result}


def error(key: Any, code: Any = -32603) -> Wire:
    return {"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": "mutant"}}


def update(session_id: Any, told: Wire) -> Wire:
    params = {"sessionId": session_id, "update": told}
    return {"jsonrpc": "2.0", "method": "session/update", "params": params}


def chunk(content: Any, kind: str = "agent_message_chunk") -> Wire:
    return {"sessionUpdate": kind, "content": content}


SAID = {"type": "text", "text": "and more"}


# ── what they look for ────────────────────────────────────────────────────────────────────────


def text_is(text: str) -> When:
    """A prompt with this text."""
    return lambda params: any(each.get("text") == text for each in objects(at(params, "prompt")))


works, counts_long, is_short = text_is(WORK), text_is(LONG), text_is(TINY)


def has(**wanted: Any) -> When:
    return lambda params: all(at(params, name) == value for name, value in wanted.items())


def lacks(name: str) -> When:
    return lambda params: name not in obj(params)


def block(kind: str) -> When:
    return lambda params: any(each.get("type") == kind for each in objects(at(params, "prompt")))


def puts(*path: str, value: Any) -> Change:
    """Puts a value somewhere in an object."""

    def change(place: Wire) -> None:
        for name in path[:-1]:
            place = place.setdefault(name, {})
        place[path[-1]] = value

    return change


def drops(*path: str) -> Change:
    def change(place: Wire) -> None:
        for name in path[:-1]:
            place = obj(place.get(name))
        place.pop(path[-1], None)

    return change


def cancels(result: Wire) -> None:
    result["stopReason"] = "end_turn" if result.get("stopReason") == "cancelled" else "cancelled"


# ── faults with a memory ──────────────────────────────────────────────────────────────────────


class Turns(Mutation):
    """Knows the prompts that are open, and those that were, by session."""

    def __init__(self) -> None:
        self.open: dict[Any, Wire] = {}
        """The prompts, by the ids of their sessions."""
        self.past: dict[Any, tuple[Wire, Any]] = {}
        """The last prompt of each session, and why it ended."""
        self.heard: set[Any] = set()
        """The sessions that have said something in their turn."""
        self.settled: set[str] = set()
        """Requests that were answered by us."""

    def sent(self, link: MutantLink, message: Wire) -> Frames | None:
        method, session_id = message.get("method"), at(message, "params", "sessionId")
        if method == "session/prompt":
            self.heard.discard(session_id)
            frames = self.prompted(link, message)
            self.open[session_id] = message
            return frames
        return self.told(link, message, method, session_id)

    def received(self, link: MutantLink, message: Wire) -> Frames | None:
        if at(message, "params", "update", "sessionUpdate") == "agent_message_chunk":
            self.heard.add(at(message, "params", "sessionId"))
        request = link.request(message)
        if request.get("method") != "session/prompt":
            return None
        session_id = at(request, "params", "sessionId")
        self.open.pop(session_id, None)
        if repr(message.get("id")) in self.settled:
            return []
        frames = self.ended(link, request, message)
        self.past[session_id] = (request, at(message, "result", "stopReason"))
        return frames

    def settle(self, link: MutantLink, prompt: Wire, reply: Wire) -> None:
        """Answer a prompt, and keep quiet when the agent does."""
        self.settled.add(repr(prompt["id"]))
        link.inject(reply)

    def prompted(self, link: MutantLink, message: Wire) -> Frames | None:
        return None

    def told(self, link: MutantLink, message: Wire, method: Any, key: Any) -> Frames | None:
        return None

    def ended(self, link: MutantLink, request: Wire, reply: Wire) -> Frames | None:
        return None


class SameId(Mutation):
    """Gives two sessions of a folder of twins one id."""

    def __init__(self) -> None:
        self.first: Any = None

    def received(self, link: MutantLink, message: Wire) -> Frames | None:
        request = link.request(message)
        if not str(at(request, "params", "cwd")).endswith("/twins"):
            return None
        self.first = self.first or at(message, "result", "sessionId")
        return [answer(message["id"], {"sessionId": self.first})]


class PromptsAgain(Turns):
    """Takes one short prompt for each session."""

    def ended(self, link: MutantLink, request: Wire, reply: Wire) -> Frames | None:
        before, why = self.past.get(at(request, "params", "sessionId"), ({}, None))
        again = is_short(params_of(request)) and is_short(params_of(before)) and why == "end_turn"
        return [error(reply["id"])] if again else None


class OneAtATime(Turns):
    """Refuses a short prompt while another session has one."""

    def prompted(self, link: MutantLink, message: Wire) -> Frames | None:
        if is_short(params_of(message)) and any(is_short(params_of(p)) for p in self.open.values()):
            link.inject(error(message["id"]))
            return []
        return None


class EarlyCancel(Turns):
    """Fails a turn that is cancelled before anything was said."""

    def told(self, link: MutantLink, message: Wire, method: Any, key: Any) -> Frames | None:
        early = key in self.open and key not in self.heard
        if method == "session/cancel" and early and counts_long(params_of(self.open[key])):
            self.settle(link, self.open[key], error(self.open[key]["id"]))
        return None


class CancelsTwice(Turns):
    """Answers each cancel."""

    def __init__(self) -> None:
        super().__init__()
        self.cancels: dict[Any, int] = {}

    def told(self, link: MutantLink, message: Wire, method: Any, key: Any) -> Frames | None:
        if method == "session/cancel":
            self.cancels[key] = self.cancels.get(key, 0) + 1
        return None

    def ended(self, link: MutantLink, request: Wire, reply: Wire) -> Frames | None:
        twice = self.cancels.get(at(request, "params", "sessionId"), 1) > 1
        return [reply, reply] if twice else None


class StaysCancelled(Turns):
    """Ends every turn as cancelled once one was."""

    def ended(self, link: MutantLink, request: Wire, reply: Wire) -> Frames | None:
        if self.past.get(at(request, "params", "sessionId"), ({}, None))[1] == "cancelled":
            reply["result"]["stopReason"] = "cancelled"
        return [reply]


class CancelsAll(Turns):
    """Cancels the turns of all sessions."""

    def told(self, link: MutantLink, message: Wire, method: Any, key: Any) -> Frames | None:
        if method == "session/cancel":
            for other, prompt in self.open.items():
                if other != key:
                    self.settle(link, prompt, answer(prompt["id"], {"stopReason": "cancelled"}))
        return None


class WithdrawnWrong(Turns):
    """Answers a withdrawn request with an error of its own."""

    def told(self, link: MutantLink, message: Wire, method: Any, key: Any) -> Frames | None:
        if method == "$/cancel_request":
            wanted = at(message, "params", "requestId")
            for prompt in self.open.values():
                if prompt["id"] == wanted:
                    self.settle(link, prompt, error(wanted, -1))
        return None


class ClosedTakesPrompts(Turns):
    """Answers a prompt to a session that is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.closed: set[Any] = set()

    def told(self, link: MutantLink, message: Wire, method: Any, key: Any) -> Frames | None:
        if method == "session/close" and key not in self.open:
            self.closed.add(key)
        return None

    def ended(self, link: MutantLink, request: Wire, reply: Wire) -> Frames | None:
        if at(request, "params", "sessionId") in self.closed:
            return [answer(reply["id"], {"stopReason": "end_turn"})]
        return None


class ClosedTurnHangs(Turns):
    """Never answers the prompt of a session that was closed in its turn."""

    def told(self, link: MutantLink, message: Wire, method: Any, key: Any) -> Frames | None:
        if method == "session/close" and key in self.open:
            self.settled.add(repr(self.open[key]["id"]))
        return None


class ResumedTakesNone(Turns):
    """Refuses prompts to a session that was resumed."""

    def __init__(self) -> None:
        super().__init__()
        self.resumed: set[Any] = set()

    def told(self, link: MutantLink, message: Wire, method: Any, key: Any) -> Frames | None:
        if method == "session/resume":
            self.resumed.add(key)
        return None

    def ended(self, link: MutantLink, request: Wire, reply: Wire) -> Frames | None:
        resumed = at(request, "params", "sessionId") in self.resumed
        return [error(reply["id"])] if resumed else None


class Replays(Mutation):
    """Does something with what is told again between `session/load` and its answer."""

    def __init__(self, kind: str = "", *, late: bool = False) -> None:
        self._kind = kind
        self._late = late
        self._loading = False
        self._held: Frames = []

    def sent(self, link: MutantLink, message: Wire) -> Frames | None:
        self._loading = self._loading or message.get("method") == "session/load"
        return None

    def received(self, link: MutantLink, message: Wire) -> Frames | None:
        if link.request(message).get("method") == "session/load":
            self._loading, held = False, self._held
            return [message, *held]
        kind = at(message, "params", "update", "sessionUpdate")
        if not self._loading or kind is None:
            return None
        if self._late:
            self._held.append(message)
        return [] if self._late or kind == self._kind else None


class RepeatsPages(Mutation):
    """Has the sessions of the first page on every page."""

    def __init__(self) -> None:
        self._first: list[Any] = []

    def received(self, link: MutantLink, message: Wire) -> Frames | None:
        request = link.request(message)
        if request.get("method") == "session/list" and isinstance(message.get("result"), dict):
            page = items(message["result"].get("sessions"))
            if at(request, "params", "cursor") is None:
                self._first = page
            else:
                message["result"]["sessions"] = [*page, *self._first]
        return [message]


class AfterAnswer(Mutation):
    """Does something when a question of the agent was answered: `act` gets the question and the
    answer."""

    def __init__(self, method: str, act: Callable[[MutantLink, Wire, Wire], Frames | None]) -> None:
        self._method = method
        self._act = act
        self._open: dict[str, Wire] = {}

    def received(self, link: MutantLink, message: Wire) -> Frames | None:
        if message.get("method") == self._method:
            self._open[repr(message.get("id"))] = message
        return None

    def sent(self, link: MutantLink, message: Wire) -> Frames | None:
        question = None if "method" in message else self._open.pop(repr(message.get("id")), None)
        return None if question is None else self._act(link, question, message)


def was_refused(reply: Wire) -> bool:
    return at(reply, "result", "outcome", "optionId") == "reject"


def completes(when: When) -> MakeMutation:
    """Reports the tool call of a question as completed."""

    def act(link: MutantLink, question: Wire, reply: Wire) -> None:
        if when(reply):
            key = at(question, "params", "toolCall", "toolCallId")
            done = {"sessionUpdate": "tool_call_update", "toolCallId": key, "status": "completed"}
            link.inject(update(at(question, "params", "sessionId"), done))

    return lambda: AfterAnswer("session/request_permission", act)


class FailsAfter(Turns):
    """Ends the turn with an error as soon as a request of the agent is answered like that."""

    def __init__(self, method: str, when: When) -> None:
        super().__init__()
        self._method = method
        self._when = when
        self._questions: dict[str, Wire] = {}

    def received(self, link: MutantLink, message: Wire) -> Frames | None:
        if message.get("method") == self._method:
            self._questions[repr(message.get("id"))] = message
        elif "method" in message and self.settled:
            return []  # the turn is over
        return super().received(link, message)

    def told(self, link: MutantLink, message: Wire, method: Any, key: Any) -> Frames | None:
        question = self._questions.pop(repr(message.get("id")), None)
        if method is None and question is not None and self._when(message):
            prompt = self.open[at(question, "params", "sessionId")]
            self.settle(link, prompt, error(prompt["id"]))
        return None


class AsksUnoffered(Mutation):
    """Uses what a client without capabilities does not offer."""

    def __init__(self, method: str, version: int = 1) -> None:
        self._method = method
        self._version = version
        self._offers = True

    def sent(self, link: MutantLink, message: Wire) -> Frames | None:
        if message.get("method") == "initialize":
            same = at(message, "params", "protocolVersion") == self._version
            self._offers = not same or bool(at(message, "params", "clientCapabilities"))
        if message.get("id") == "unoffered":
            return []
        if message.get("method") == "session/prompt" and works(params_of(message)):
            session_id = at(message, "params", "sessionId")
            params = {"sessionId": session_id, "path": "/x", "command": "true"}
            if not self._offers:
                asked = {"jsonrpc": "2.0", "id": "unoffered", "method": self._method}
                link.inject({**asked, "params": params})
        return None


class KeepsTerminals(Mutation):
    """Releases no terminal."""

    def received(self, link: MutantLink, message: Wire) -> Frames | None:
        if message.get("method") != "terminal/release":
            return None
        link.tell(answer(message["id"], {}))
        return []


def uses_released(link: MutantLink, question: Wire, reply: Wire) -> None:
    asked = {"jsonrpc": "2.0", "id": "too late", "method": "terminal/output"}
    link.inject({**asked, "params": question["params"]})
