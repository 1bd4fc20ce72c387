"""The route table: every route except the page's files."""

from __future__ import annotations

from typing import Final

from dragoman.client.prompts import MAX_JSON_BYTES
from dragoman.web.api import about, agents, chat, events, files, hosts, sessions, steering
from dragoman.web.routing.route import ANY_TYPE, EVENT_STREAM, JSON, JSON_LINES, Route
from dragoman.web.shapes import agents as of_agents
from dragoman.web.shapes import chats as of_chats
from dragoman.web.shapes import files as of_files
from dragoman.web.shapes import hosts as of_hosts
from dragoman.web.shapes import reading
from dragoman.web.shapes import sessions as of_sessions
from dragoman.web.shapes import steering as asked
from dragoman.web.shapes.base import IdQuery
from dragoman.web.uploads import MAX_BYTES

_SESSION = "/api/sessions/{session_id}"
_AGENT = "/api/agents/{name}"
_CHAT = "/api/chat/{chat_id}"

_PROMPT_LIMIT = MAX_JSON_BYTES
"""32 MiB of attachments, in base64, and the words around them."""

_SESSIONS = (
    Route(
        method="GET",
        path="/api/sessions",
        handler=sessions.list_sessions,
        summary="List sessions, newest first",
        query=of_sessions.ListQuery,
        answer=of_sessions.SessionPage,
    ),
    Route(
        method="POST",
        path="/api/sessions",
        handler=sessions.create,
        summary="Start a session",
        body=of_sessions.NewSession,
        answer=of_sessions.Summary,
        status=201,
    ),
    Route(
        method="GET",
        path=_SESSION,
        handler=sessions.show,
        summary="A session with its state and its last entries",
        query=of_sessions.DetailQuery,
        answer=of_sessions.Detail,
    ),
    Route(
        method="PATCH",
        path=_SESSION,
        handler=sessions.edit,
        summary="Rename or archive a session",
        body=of_sessions.SessionEdit,
        answer=of_sessions.Summary,
    ),
    Route(
        method="DELETE",
        path=_SESSION,
        handler=sessions.delete,
        summary="Delete a session, also at its agent if that is possible",
        query=of_sessions.DeleteQuery,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/fork",
        handler=sessions.fork,
        summary="Start a session that remembers this one",
        body=of_sessions.ForkBody,
        body_optional=True,
        answer=of_sessions.Summary,
        status=201,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/move",
        handler=sessions.move,
        summary="Move a session to another host",
        body=of_hosts.MoveBody,
        body_optional=True,
        answer=of_sessions.Summary,
    ),
    Route(
        method="GET",
        path="/api/hosts",
        handler=hosts.list_hosts,
        summary="List hosts, including those that are gone",
        answer=of_hosts.HostList,
    ),
)

_STEERING = (
    Route(
        method="POST",
        path=f"{_SESSION}/prompt",
        handler=steering.prompt,
        summary="Send a prompt; it is queued while a turn runs",
        body=asked.PromptBody,
        body_limit=_PROMPT_LIMIT,
        answer=asked.Accepted,
        status=202,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/cancel",
        handler=steering.cancel,
        summary="Stop the running turn, or one tool call or terminal",
        body=asked.CancelBody,
        body_optional=True,
        answer=asked.Cancelled,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/mode",
        handler=steering.set_mode,
        summary="Switch the mode",
        body=asked.ModeBody,
        answer=asked.Nothing,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/config",
        handler=steering.set_config,
        summary="Change a setting of the session",
        body=asked.ConfigBody,
        answer=asked.Nothing,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/close",
        handler=steering.close,
        summary="End the session; its record stays",
        answer=asked.Nothing,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/kill",
        handler=steering.kill,
        summary="End the agent's work on the session, and its process if necessary",
        body=asked.KillBody,
        body_optional=True,
        answer=asked.Nothing,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/permissions/{{request_id}}",
        handler=steering.answer_permission,
        summary="Answer a permission request; the first answer counts",
        body=asked.PermissionBody,
        answer=asked.Nothing,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/elicitations/{{request_id}}",
        handler=steering.answer_elicitation,
        summary="Answer a form or address of the agent",
        body=asked.ElicitationBody,
        answer=asked.Nothing,
    ),
    Route(
        method="GET",
        path=f"{_SESSION}/queue",
        handler=steering.list_queue,
        summary="List queued prompts",
        answer=asked.Queue,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/queue",
        handler=steering.change_queue,
        summary="Queue a prompt, or change a queued one",
        body=asked.QueueBody,
        body_limit=_PROMPT_LIMIT,
        answer=asked.Queue,
    ),
    Route(
        method="DELETE",
        path=f"{_SESSION}/queue",
        handler=steering.drop_queued,
        summary="Drop a queued prompt",
        query=IdQuery,
        answer=asked.Queue,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/revert",
        handler=steering.revert,
        summary="Revert what was written",
        body=asked.RevertBody,
        body_optional=True,
        answer=asked.Reverted,
    ),
)

_READING = (
    Route(
        method="GET",
        path=f"{_SESSION}/events",
        handler=events.session_events,
        summary="The events of a session, as JSON or as a stream",
        query=reading.EventsQuery,
        answer=reading.EventPage,
        gives=(JSON, EVENT_STREAM),
        wants_request=True,
    ),
    Route(
        method="GET",
        path="/api/events",
        handler=events.all_events,
        summary="The events of all sessions, as a stream",
        query=reading.AllEventsQuery,
        gives=(EVENT_STREAM,),
        wants_request=True,
    ),
    Route(
        method="GET",
        path=f"{_SESSION}/export",
        handler=events.export,
        summary="A session as JSON Lines: a header, then one event per line",
        gives=(JSON_LINES,),
    ),
    Route(
        method="GET",
        path="/api/search",
        handler=events.search,
        summary="Search all transcripts",
        query=reading.SearchQuery,
        answer=reading.Hits,
    ),
    Route(
        method="GET",
        path="/api/costs",
        handler=events.costs,
        summary="The costs that agents reported since a time",
        query=reading.CostsQuery,
        answer=reading.CostList,
    ),
)

_FILES = (
    Route(
        method="GET",
        path=f"{_SESSION}/files",
        handler=files.complete,
        summary="Complete the path of a mention",
        query=of_files.FilesQuery,
        answer=of_files.Files,
    ),
    Route(
        method="GET",
        path=f"{_SESSION}/changes",
        handler=files.changes,
        summary="Changed files, as diffs",
        query=of_files.ChangesQuery,
        answer=of_files.FileChanges,
    ),
    Route(
        method="GET",
        path=f"{_SESSION}/frames",
        handler=files.frames,
        summary="The last frames to and from the agent",
        query=of_files.FramesQuery,
        answer=of_files.FrameList,
    ),
    Route(
        method="POST",
        path="/api/uploads",
        handler=files.upload,
        summary="Upload a file for a prompt",
        query=of_files.UploadQuery,
        body=bytes,
        body_limit=MAX_BYTES,
        takes=ANY_TYPE,
        answer=of_files.Upload,
        status=201,
        wants_request=True,
    ),
)

_AGENTS = (
    Route(
        method="GET",
        path="/api/agents",
        handler=agents.list_all,
        summary="List agents that can be started",
        answer=of_agents.AgentList,
    ),
    Route(
        method="GET",
        path=f"{_AGENT}/sessions",
        handler=agents.sessions,
        summary="List sessions that the agent knows",
        query=of_agents.AgentSessionsQuery,
        answer=of_agents.AgentSessions,
    ),
    Route(
        method="POST",
        path=f"{_AGENT}/sessions",
        handler=agents.import_session,
        summary="Import a session that the agent knows",
        body=of_agents.ImportBody,
        answer=of_sessions.Summary,
        status=201,
    ),
    Route(
        method="POST",
        path=f"{_AGENT}/auth",
        handler=agents.auth,
        summary="Sign in, or list the sign-in methods",
        body=of_agents.AuthBody,
        body_optional=True,
        answer=of_agents.SignIns,
    ),
    Route(
        method="DELETE",
        path=f"{_AGENT}/auth",
        handler=agents.sign_out,
        summary="Sign out",
    ),
    Route(
        method="GET",
        path=f"{_AGENT}/questions",
        handler=agents.questions,
        summary="What the agent asks while it signs in or opens a session",
        answer=of_agents.QuestionList,
    ),
    Route(
        method="POST",
        path=f"{_AGENT}/questions/{{request_id}}",
        handler=agents.answer,
        summary="Answer what the agent asks while it signs in or opens a session",
        body=asked.ElicitationBody,
    ),
    Route(
        method="POST",
        path=f"{_AGENT}/doctor",
        handler=agents.doctor,
        summary="Check how well the agent speaks ACP",
        answer=of_agents.DoctorReport,
    ),
    Route(
        method="GET",
        path="/api/policies",
        handler=agents.policies,
        summary="The stored permission rules, and those the server was started with",
        answer=of_agents.RuleList,
    ),
    Route(
        method="DELETE",
        path="/api/policies",
        handler=agents.revoke,
        summary="Revoke a stored rule",
        query=IdQuery,
    ),
)

_CHATS = (
    Route(
        method="POST",
        path="/api/chat",
        handler=chat.chat,
        summary="A request of useChat, answered with a UI message stream",
        query=of_chats.ChatQuery,
        body=bytes,
        body_limit=_PROMPT_LIMIT,
        gives=(EVENT_STREAM,),
    ),
    Route(
        method="GET",
        path=f"{_CHAT}/stream",
        handler=chat.resume,
        summary="The stream of the active message, from its start",
        query=of_chats.ChatQuery,
        gives=(EVENT_STREAM,),
        may_be_empty=True,
    ),
    Route(
        method="POST",
        path=f"{_CHAT}/stop",
        handler=chat.stop,
        summary="Stop the running turn of a chat",
        answer=asked.Cancelled,
    ),
    Route(
        method="GET",
        path=f"{_CHAT}/messages",
        handler=chat.list_messages,
        summary="A session as UI messages",
        query=of_chats.MessagesQuery,
        answer=of_chats.Messages,
    ),
)

_ABOUT = (
    Route(
        method="GET",
        path="/api/openapi.json",
        handler=about.document,
        summary="This document",
        answer=dict,
    ),
    Route(
        method="GET",
        path="/healthz",
        handler=about.health,
        summary="Whether the server runs",
        answer=of_chats.Health,
        public=True,
    ),
    Route(
        method="GET",
        path="/readyz",
        handler=about.readiness,
        summary="Whether the server is healthy; 503 names what is failing",
        answer=of_chats.Readiness,
        public=True,
    ),
)

ROUTES: Final = (*_SESSIONS, *_STEERING, *_READING, *_FILES, *_AGENTS, *_CHATS, *_ABOUT)
