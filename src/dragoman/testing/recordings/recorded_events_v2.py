"""A recording in ACP v2 as the events of its sessions.

Imported when a recording turns out to be one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from dragoman.client.dialects import translation
from dragoman.client.dialects.dialect import Finished
from dragoman.client.dialects.v2 import wire_format
from dragoman.client.dialects.v2.foreground import Prompted
from dragoman.client.dialects.v2.inbound import Serving, subject_of, tool_call_of
from dragoman.errors import DragomanError
from dragoman.host.permissions.questions import Subject
from dragoman.schema import codec, v2
from dragoman.session import events as e
from dragoman.session.facts import PermissionOption, TokenUsage
from dragoman.session.state import SessionState
from dragoman.testing.recordings.recorded_events import Listening
from dragoman.wire.messages import Failure, Id, Notification, Reply, Request


class Story(Protocol):
    """Where it is written: the transcript of the whole recording."""

    def known(self, session_id: str) -> SessionState | None: ...

    def told(self, session_id: str, event: e.Event) -> None: ...

    def happen(self, session_id: str, event: e.Event) -> None: ...

    def requested(self, session_id: str, usage: TokenUsage) -> None: ...

    def begin_turn(self, session_id: str, content: list[Any]) -> str: ...

    def reopen(self, session_id: str, cwd: str, more: list[str]) -> None: ...


class SecondTranscript:
    """Understands the frames of version 2, in order."""

    def __init__(self, story: Story) -> None:
        self._story = story
        # To translate updates, a host only needs to receive them.
        host: Any = Listening(story)
        self._serving = Serving(host)
        self._prompts: dict[Id, Prompted] = {}

    def notified(self, message: Notification) -> None:
        self._serving.on_notification(message.method, message.params)

    def called(self, request: Request) -> None:
        match request.method:
            case "session/prompt":
                self._prompted(request)
            case "session/resume":
                again = codec.decode(request.params, v2.ResumeSessionRequest)
                self._story.reopen(again.session_id, again.cwd, again.additional_directories)
            case _:
                pass

    def _prompted(self, request: Request) -> None:
        asked = codec.decode(request.params, v2.PromptRequest)
        content = translation.contents(asked.prompt)
        turn_id = self._story.begin_turn(asked.session_id, content)
        foreground = self._serving.conversations.of(asked.session_id).foreground
        finish = self._ending(asked.session_id, turn_id)
        self._prompts[request.id] = foreground.prompted(content, finish)

    def _ending(self, session_id: str, turn_id: str) -> Callable[[Finished], None]:
        def finish(finished: Finished) -> None:
            error = None if finished.error is None else str(finished.error)
            reason = finished.stop_reason if error is None else None
            ended = e.TurnEnded(turn_id, reason, finished.usage, error)
            self._story.happen(session_id, ended)

        return finish

    def replied(self, request: Request, reply: Reply | Failure) -> None:
        match request.method, reply:
            case "session/prompt", _:
                self._taken(request, reply)
            case "session/new" | "session/fork", Reply():
                opened = codec.decode(reply.result, v2.NewSessionResponse)
                asked = codec.decode(request.params, v2.NewSessionRequest)
                self._story.happen(
                    opened.session_id,
                    e.SessionOpened(
                        opened.session_id, asked.cwd, "new", asked.additional_directories
                    ),
                )
                self._facts(opened.session_id, opened)
            case "session/resume", Reply():
                session_id = codec.decode(request.params, v2.ResumeSessionRequest).session_id
                self._facts(session_id, codec.decode(reply.result, v2.ResumeSessionResponse))
            case _:
                pass

    def _taken(self, request: Request, reply: Reply | Failure) -> None:
        session_id = codec.decode(request.params, v2.PromptRequest).session_id
        foreground = self._serving.conversations.of(session_id).foreground
        prompt = self._prompts.pop(request.id)
        if isinstance(reply, Failure):
            foreground.withdraw(prompt)
            prompt.finish(Finished("error", error=DragomanError(reply.message)))
        else:
            taken = codec.decode(reply.result, v2.PromptResponse)
            foreground.acknowledged(prompt, taken.message_id)

    def _facts(
        self, session_id: str, reply: v2.NewSessionResponse | v2.ResumeSessionResponse
    ) -> None:
        if options := translation.config_options(reply.config_options):
            self._story.happen(session_id, e.ConfigChanged(options))
        if commands := wire_format.commands(reply.available_commands):
            self._story.happen(session_id, e.CommandsChanged(commands))

    def asked(self, request: Request) -> None:
        """The agent asks for permission."""
        session_id, call, options, subject = permission(request)
        if call is not None:
            self._story.told(session_id, call)
        self._story.happen(
            session_id,
            e.PermissionRequested(
                request.id.decode(),
                options,
                title=subject.title,
                tool_call_id=subject.tool_call_id if call is None else call.tool_call_id,
                argv=None if subject.command is None else [subject.command],
                explanation=subject.explanation,
                claimed=True,
            ),
        )


def permission(
    request: Request,
) -> tuple[str, e.ToolCallUpdated | None, list[PermissionOption], Subject]:
    """Who asks, about which tool call, with which options, and what it says by itself."""
    asked = codec.decode(request.params, v2.RequestPermissionRequest)
    call = tool_call_of(asked, request.params)
    options = [translation.permission_option(option) for option in asked.options]
    return asked.session_id, call, options, subject_of(asked)
