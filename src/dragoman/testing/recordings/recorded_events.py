"""A recording as events: frames in, events and session states out.

The same fold as live. Nothing is executed: the frames hold what the client answered at the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.agents.extensions import added_tokens, reply_tokens
from dragoman.agents.sign_ins import AuthStatus
from dragoman.client.dialects import translation
from dragoman.client.dialects.v1 import wire_format
from dragoman.client.dialects.v1.inbound import OLD_NAMES, Serving
from dragoman.client.sessions.subagent_routing import concerns_tree, placed
from dragoman.errors import InvalidMessage
from dragoman.schema import codec, v1
from dragoman.session import events as e
from dragoman.session.facts import Decision, PermissionOption, TokenUsage
from dragoman.session.reduce import reduce
from dragoman.session.state import PendingPermission, SessionState, Terminal
from dragoman.testing.recordings.recording import FROM_AGENT, TO_AGENT, Line
from dragoman.wire import messages
from dragoman.wire.messages import Failure, Id, Message, Notification, Reply, Request

if TYPE_CHECKING:
    from dragoman.testing.recordings.recorded_events_v2 import SecondTranscript, Story


class RecordedEvent(msgspec.Struct, frozen=True):
    """One event, and the state of its session after it; later events change the same state."""

    state: SessionState
    event: e.Event


class Transcript:
    """Feed it the lines of a recording, in order."""

    def __init__(self) -> None:
        self.states: dict[str, SessionState] = {}
        self._called: dict[Id, Request] = {}
        self._asked: dict[Id, Request] = {}
        # To translate updates, a host only needs to receive them.
        host: Any = Listening(self)
        self._serving = Serving(host)
        self._owners: dict[str, str] = {}
        """The session that each subagent works for."""
        self.second: SecondTranscript | None = None
        """What understands the frames, once version 2 was agreed on."""
        self._retelling: set[str] = set()
        self._ended: dict[tuple[str, str], e.TerminalExited] = {}
        self._happened: list[RecordedEvent] = []
        self._turns = 0
        self._requested: dict[str, TokenUsage | None] = {}
        """What the requests to the model of each session's turn have used."""

    def feed(self, line: Line) -> list[RecordedEvent]:
        """What this line made happen. A frame that cannot be read makes nothing happen."""
        self._happened = []
        message = messages.decode(line.frame) if line.frame else None
        try:
            if line.dir == TO_AGENT:
                self._sent(message)
            elif line.dir == FROM_AGENT:
                self._received(message)
        except InvalidMessage:
            return self._happened
        return self._happened

    def known(self, session_id: str) -> SessionState | None:
        """That of the session that a subagent works for, if it is one."""
        return self.states.get(self._owners.get(session_id, session_id))

    def told(self, session_id: str, event: e.Event) -> None:
        """The agent told this."""
        forking = any(call.method == "session/fork" for call in self._called.values())
        if forking and session_id not in self.states:
            self._retelling.add(session_id)  # the reply, which names it, is still to come
        owner = self._owners.get(session_id)
        event.replay = (owner or session_id) in self._retelling and event.is_history
        state = self._state(owner or session_id)
        if owner is None and not concerns_tree(state, [event]):
            self._record(state, event)
            return
        for each in placed(state, None if owner is None else session_id, event):
            each.replay = event.replay
            if isinstance(each, e.SubagentUpdated):
                self._owners[each.session_id] = owner or session_id
            self._record(state, each)

    def happen(self, session_id: str, event: e.Event) -> None:
        """Record an event, whatever caused it; one of a subagent is its session's, with its id."""
        state = self._state(self._owners.get(session_id, session_id))
        if session_id in self._owners and isinstance(event, _ASCRIBED):
            event.subagent = session_id
            if isinstance(event, e.PermissionRequested):
                event.asked_by = state.subagent_name(session_id)
        self._record(state, event)

    def _state(self, session_id: str) -> SessionState:
        if session_id not in self.states:
            self.states[session_id] = SessionState(session_id)
        return self.states[session_id]

    def _record(self, state: SessionState, event: e.Event) -> None:
        event.seq = state.last_seq + 1
        reduce(state, event)
        self._happened.append(RecordedEvent(state, event))

    # ── to the agent ──────────────────────────────────────────────────────────────────────────

    def _sent(self, message: Message | None) -> None:
        match message:
            case Request():
                self._call(message)
            case Notification(method="session/cancel"):  # the same in both versions
                session_id = codec.decode(message.params, v1.CancelNotification).session_id
                state = self.states.get(session_id)  # cancelling a subagent ends no turn
                if state is not None and state.turn is not None:
                    self.happen(session_id, e.TurnCancelling(state.turn.id))
            case Reply() | Failure() if message.id in self._asked:
                self._answered(self._asked.pop(message.id), message)
            case _:
                pass

    def _call(self, request: Request) -> None:
        if request.method == "initialize":  # a new connection numbers its ids from the start
            self._called.clear()
            self._asked.clear()
            self.second = None
        self._called[request.id] = request
        if self.second is not None:
            self.second.called(request)
            return
        match request.method:
            case "session/prompt":
                asked = codec.decode(request.params, v1.PromptRequest)
                content = [translation.content(block) for block in asked.prompt]
                self.begin_turn(asked.session_id, content)
            case "session/load" | "session/resume":
                again = codec.decode(request.params, v1.LoadSessionRequest)
                self.reopen(again.session_id, again.cwd, again.additional_directories)
            case _:
                pass

    def begin_turn(self, session_id: str, content: list[Any]) -> str:
        """A prompt was sent; the id of its turn."""
        self._turns += 1
        self._retelling.discard(session_id)
        turn_id = f"turn-{self._turns}"
        self.happen(session_id, e.TurnStarted(turn_id, content))
        return turn_id

    def reopen(self, session_id: str, cwd: str, more: list[str]) -> None:
        """A session is asked for that the agent may tell again."""
        self.states.pop(session_id, None)
        self._retelling.add(session_id)
        self.happen(session_id, e.SessionOpened(session_id, cwd, "continued", more))

    # ── from the agent ────────────────────────────────────────────────────────────────────────

    def _received(self, message: Message | None) -> None:
        match message:
            case Notification() if self.second is not None:
                self.second.notified(message)
            case Notification():
                self._serving.on_notification(message.method, message.params)
            case Request():
                self._asked[message.id] = message
                if current_name(message.method) == "session/request_permission":
                    ask = self._permission if self.second is None else self.second.asked
                    ask(message)
            case Reply() | Failure() if message.id in self._called:
                self._replied(self._called.pop(message.id), message)
            case _:
                pass

    def _permission(self, request: Request) -> None:
        asked = codec.decode(request.params, v1.RequestPermissionRequest)
        call = wire_format.tool_call_update(asked.tool_call)
        self.told(asked.session_id, call)
        self.happen(
            asked.session_id,
            e.PermissionRequested(
                request.id.decode(),
                [translation.permission_option(option) for option in asked.options],
                title=call.text,
                tool_call_id=call.tool_call_id,
            ),
        )

    def _replied(self, request: Request, reply: Reply | Failure) -> None:
        if self.second is not None:
            self.second.replied(request, reply)
            return
        match request.method, reply:
            case "initialize", Reply():
                self._agree(codec.decode(reply.result, v1.InitializeResponse).protocol_version)
            case "session/prompt", _:
                session_id = codec.decode(request.params, v1.PromptRequest).session_id
                self._turn_ended(session_id, reply)
            case "session/new" | "session/fork", Reply():
                opened = codec.decode(reply.result, v1.NewSessionResponse)
                asked = codec.decode(request.params, v1.NewSessionRequest)
                more = asked.additional_directories
                place = e.SessionOpened(opened.session_id, asked.cwd, "new", more)
                self.happen(opened.session_id, place)
                self._facts(opened.session_id, opened)
            case "session/load" | "session/resume", Reply():
                session_id = codec.decode(request.params, v1.LoadSessionRequest).session_id
                opened = codec.decode(codec.object_of(reply.result), v1.LoadSessionResponse)
                self._facts(session_id, opened)
            case _:
                pass

    def _agree(self, version: int) -> None:
        if version == 2:
            from dragoman.testing.recordings.recorded_events_v2 import SecondTranscript

            self.second = SecondTranscript(self)

    def _facts(
        self, session_id: str, reply: v1.NewSessionResponse | v1.LoadSessionResponse
    ) -> None:
        if reply.modes is not None:
            self.happen(session_id, wire_format.modes(reply.modes))
        if reply.config_options:
            options = translation.config_options(reply.config_options)
            self.happen(session_id, e.ConfigChanged(options))

    def requested(self, session_id: str, usage: TokenUsage) -> None:
        """A request to the model has used that."""
        self._requested[session_id] = added_tokens(self._requested.get(session_id), usage)

    def _turn_ended(self, session_id: str, reply: Reply | Failure) -> None:
        state = self.states.get(session_id)
        turn_id = "" if state is None or state.turn is None else state.turn.id
        if isinstance(reply, Failure):
            self.happen(session_id, e.TurnEnded(turn_id, error=reply.message))
            return
        ended = codec.decode(reply.result, v1.PromptResponse)
        usage = reply_tokens(translation.token_usage(ended.usage), ended.meta)
        usage, self._requested[session_id] = usage or self._requested.get(session_id), None
        self.happen(session_id, e.TurnEnded(turn_id, ended.stop_reason, usage))

    # ── what the client did for the agent ─────────────────────────────────────────────────────

    def _answered(self, request: Request, reply: Reply | Failure) -> None:
        """`reply` is what the client answered then; a failure is a refusal."""
        refusal = reply.message if isinstance(reply, Failure) else None
        result = reply.result if isinstance(reply, Reply) else messages.NULL
        match current_name(request.method):
            case "session/request_permission" if refusal is None:
                self._settled(request, codec.decode(result, v1.RequestPermissionResponse))
            case "fs/write_text_file":
                self._written(codec.decode(request.params, v1.WriteTextFileRequest), refusal)
            case "terminal/create":
                asked = codec.decode(request.params, v1.CreateTerminalRequest)
                self._started(asked, result, refusal)
            case "terminal/output" if refusal is None:
                self._printed(
                    codec.decode(request.params, v1.TerminalOutputRequest),
                    codec.decode(result, v1.TerminalOutputResponse),
                )
            case "terminal/wait_for_exit" if refusal is None:
                asked = codec.decode(request.params, v1.WaitForTerminalExitRequest)
                ended = codec.decode(result, v1.WaitForTerminalExitResponse)
                exited = e.TerminalExited(asked.terminal_id, ended.exit_code, ended.signal)
                # What it printed is often asked for only now.
                self._ended[asked.session_id, asked.terminal_id] = exited
            case "terminal/release":
                asked = codec.decode(request.params, v1.ReleaseTerminalRequest)
                self._exited(asked.session_id, asked.terminal_id)
            case _:
                pass

    def _settled(self, request: Request, answer: v1.RequestPermissionResponse) -> None:
        session_id = codec.decode(request.params, v1.RequestPermissionRequest).session_id
        request_id = request.id.decode()
        state = self.known(session_id)
        pending = None if state is None else state.pending.get(request_id)
        options = pending.options if isinstance(pending, PendingPermission) else []
        outcome = answer.outcome
        chosen = outcome.option_id if isinstance(outcome, v1.SelectedPermissionOutcome) else None
        decision = Decision(_effect(options, chosen), "as recorded")
        self.happen(session_id, e.PermissionSettled(request_id, chosen, decision))

    def _written(self, asked: v1.WriteTextFileRequest, refusal: str | None) -> None:
        if refusal is None:
            self.happen(asked.session_id, e.FileWritten(asked.path, asked.content))
        else:
            refused = e.AccessDecided("write", Decision("deny", refusal), [asked.path])
            self.happen(asked.session_id, refused)

    def _started(
        self, asked: v1.CreateTerminalRequest, result: msgspec.Raw, refusal: str | None
    ) -> None:
        argv = [asked.command, *asked.args]
        if refusal is None:
            made = codec.decode(result, v1.CreateTerminalResponse)
            self.happen(
                asked.session_id, e.TerminalStarted(made.terminal_id, argv, asked.cwd or "")
            )
        else:
            refused = e.AccessDecided("execute", Decision("deny", refusal), argv=argv)
            self.happen(asked.session_id, refused)

    def _printed(self, asked: v1.TerminalOutputRequest, now: v1.TerminalOutputResponse) -> None:
        """The answer holds all of the output so far; what is new in it is an event."""
        terminal = self._terminal(asked.session_id, asked.terminal_id)
        if terminal is None:
            return
        if new := now.output.removeprefix(terminal.output):
            self.happen(asked.session_id, e.TerminalOutput(asked.terminal_id, new))
        if (ended := now.exit_status) is not None:
            exited = e.TerminalExited(asked.terminal_id, ended.exit_code, ended.signal)
            self._ended[asked.session_id, asked.terminal_id] = exited
        self._exited(asked.session_id, asked.terminal_id)

    def _exited(self, session_id: str, terminal_id: str) -> None:
        terminal = self._terminal(session_id, terminal_id)
        exited = self._ended.pop((session_id, terminal_id), None)
        if exited is not None and terminal is not None and terminal.running:
            self.happen(session_id, exited)

    def _terminal(self, session_id: str, terminal_id: str) -> Terminal | None:
        state = self.known(session_id)
        return None if state is None else state.terminals.get(terminal_id)


_ASCRIBED = (e.PermissionRequested, e.AccessDecided, e.TerminalStarted, e.FileWritten)
"""Events of a session that name the subagent they are about."""


class Listening:
    """Receives the updates of sessions and passes them on; ignores everything else."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self.known = story.known

    def on_events(self, session_id: str, events: list[e.Event], size: int) -> None:
        for event in events:
            self._story.told(session_id, event)

    def on_elicitation_complete(self, elicitation_id: str) -> None:
        pass

    def on_auth_status(self, status: AuthStatus) -> None:
        pass

    def on_extension(self, method: str, params: msgspec.Raw) -> bool:
        return False

    def on_run(self, session_id: str, run_id: str | None) -> None:
        pass

    def on_tokens(self, session_id: str, usage: TokenUsage) -> None:
        self._story.requested(session_id, usage)


def current_name(method: str) -> str:
    """What a method is called today."""
    return OLD_NAMES.get(method, method)


def _effect(options: Sequence[PermissionOption], chosen: str | None) -> str:
    if chosen is None:
        return "cancelled"
    kinds = [option.kind for option in options if option.id == chosen]
    return "allow" if kinds and kinds[0].startswith("allow") else "deny"
