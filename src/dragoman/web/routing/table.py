"""The route table: every route except the page's files."""

from __future__ import annotations

from typing import Final

from dragoman.client.sessions.prompts import MAX_JSON_BYTES
from dragoman.web.api import (
    agents,
    chat,
    events,
    files,
    folders,
    frames,
    health,
    hosts,
    policies,
    session_actions,
    sessions,
)
from dragoman.web.routing.route import ANY_TYPE, EVENT_STREAM, JSON, JSON_LINES, Route
from dragoman.web.shapes import policy_shapes, server_shapes, session_shapes
from dragoman.web.shapes.server_shapes import IdQuery
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
        query=session_shapes.ListQuery,
        answer=session_shapes.SessionPage,
    ),
    Route(
        method="POST",
        path="/api/sessions",
        handler=sessions.create,
        summary="Start a session",
        body=session_shapes.NewSession,
        answer=session_shapes.Summary,
        status=201,
    ),
    Route(
        method="GET",
        path=_SESSION,
        handler=sessions.show,
        summary="A session with its state and its last entries",
        query=session_shapes.DetailQuery,
        answer=session_shapes.Detail,
    ),
    Route(
        method="PATCH",
        path=_SESSION,
        handler=sessions.edit,
        summary="Rename or archive a session, or set the folder of an imported one",
        body=session_shapes.SessionEdit,
        answer=session_shapes.Summary,
    ),
    Route(
        method="DELETE",
        path=_SESSION,
        handler=sessions.delete,
        summary="Delete a session, and the agent's copy if possible",
        query=session_shapes.DeleteQuery,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/fork",
        handler=sessions.fork,
        summary="Fork a session: start one with the same history",
        body=session_shapes.ForkBody,
        body_optional=True,
        answer=session_shapes.Summary,
        status=201,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/move",
        handler=sessions.move,
        summary="Move a session to another host",
        body=server_shapes.MoveBody,
        body_optional=True,
        answer=session_shapes.Summary,
    ),
    Route(
        method="GET",
        path="/api/hosts",
        handler=hosts.list_hosts,
        summary="List hosts, including those that are gone",
        answer=server_shapes.HostList,
    ),
)

_STEERING = (
    Route(
        method="POST",
        path=f"{_SESSION}/prompt",
        handler=session_actions.prompt,
        summary="Send a prompt; it is queued while a turn runs",
        body=session_shapes.PromptBody,
        body_limit=_PROMPT_LIMIT,
        answer=session_shapes.Accepted,
        status=202,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/steer",
        handler=session_actions.steer,
        summary="Send a message to the running turn, or queue it as the next prompt",
        body=session_shapes.PromptBody,
        body_limit=_PROMPT_LIMIT,
        answer=session_shapes.SteerAnswer,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/cancel",
        handler=session_actions.cancel,
        summary="Stop the running turn, or one tool call, terminal or subagent",
        body=session_shapes.CancelBody,
        body_optional=True,
        answer=session_shapes.Cancelled,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/mode",
        handler=session_actions.set_mode,
        summary="Switch the mode",
        body=session_shapes.ModeBody,
        answer=session_shapes.Nothing,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/config",
        handler=session_actions.set_config,
        summary="Change a setting of the session",
        body=session_shapes.ConfigBody,
        answer=session_shapes.Nothing,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/close",
        handler=session_actions.close,
        summary="Close the session but keep its record",
        answer=session_shapes.Nothing,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/kill",
        handler=session_actions.kill,
        summary="End the agent's work on the session, and its process if necessary",
        body=session_shapes.KillBody,
        body_optional=True,
        answer=session_shapes.Nothing,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/permissions/{{request_id}}",
        handler=session_actions.answer_permission,
        summary="Answer a permission request; the first answer counts",
        body=session_shapes.PermissionBody,
        answer=session_shapes.Nothing,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/elicitations/{{request_id}}",
        handler=session_actions.answer_elicitation,
        summary="Answer a form, or confirm an address to visit",
        body=session_shapes.ElicitationBody,
        answer=session_shapes.Nothing,
    ),
    Route(
        method="GET",
        path=f"{_SESSION}/queue",
        handler=session_actions.list_queue,
        summary="List queued prompts",
        answer=session_shapes.Queue,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/queue",
        handler=session_actions.change_queue,
        summary="Queue a prompt, or change a queued one",
        body=session_shapes.QueueBody,
        body_limit=_PROMPT_LIMIT,
        answer=session_shapes.Queue,
    ),
    Route(
        method="DELETE",
        path=f"{_SESSION}/queue",
        handler=session_actions.drop_queued,
        summary="Drop a queued prompt",
        query=IdQuery,
        answer=session_shapes.Queue,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/revert",
        handler=folders.revert,
        summary="Revert what happened in the folders",
        body=session_shapes.RevertBody,
        body_optional=True,
        answer=session_shapes.RevertAnswer,
    ),
    Route(
        method="POST",
        path=f"{_SESSION}/rewind",
        handler=folders.rewind,
        summary="Go back to before a turn",
        body=session_shapes.RewindBody,
        answer=session_shapes.RewindAnswer,
    ),
)

_READING = (
    Route(
        method="GET",
        path=f"{_SESSION}/events",
        handler=events.session_events,
        summary="The events of a session, as JSON or as a stream",
        query=session_shapes.EventsQuery,
        answer=session_shapes.EventPage,
        gives=(JSON, EVENT_STREAM),
        wants_request=True,
    ),
    Route(
        method="GET",
        path="/api/events",
        handler=events.all_events,
        summary="The events of all sessions, as a stream",
        query=session_shapes.AllEventsQuery,
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
        handler=sessions.search,
        summary="Search all transcripts",
        query=session_shapes.SearchQuery,
        answer=session_shapes.Hits,
    ),
    Route(
        method="GET",
        path="/api/costs",
        handler=sessions.costs,
        summary="The costs that agents have reported since a given time",
        query=session_shapes.CostsQuery,
        answer=session_shapes.CostList,
    ),
)

_FILES = (
    Route(
        method="GET",
        path=f"{_SESSION}/files",
        handler=files.complete,
        summary="Complete the path of a mention",
        query=session_shapes.FilesQuery,
        answer=session_shapes.Files,
    ),
    Route(
        method="GET",
        path=f"{_SESSION}/changes",
        handler=folders.changes,
        summary="Changed files, as diffs",
        query=session_shapes.ChangesQuery,
        answer=session_shapes.FileChanges,
    ),
    Route(
        method="GET",
        path=f"{_SESSION}/frames",
        handler=frames.frames,
        summary="The last frames to and from the agent",
        query=session_shapes.FramesQuery,
        answer=session_shapes.FrameList,
    ),
    Route(
        method="POST",
        path="/api/uploads",
        handler=files.upload,
        summary="Upload a file for a prompt",
        query=session_shapes.UploadQuery,
        body=bytes,
        body_limit=MAX_BYTES,
        takes=ANY_TYPE,
        answer=session_shapes.Upload,
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
        answer=server_shapes.AgentList,
    ),
    Route(
        method="GET",
        path=f"{_AGENT}/sessions",
        handler=agents.sessions,
        summary="List sessions that the agent knows",
        query=server_shapes.AgentSessionsQuery,
        answer=server_shapes.AgentSessions,
    ),
    Route(
        method="POST",
        path=f"{_AGENT}/sessions",
        handler=agents.import_session,
        summary="Import a session that the agent knows",
        body=server_shapes.ImportBody,
        answer=session_shapes.Summary,
        status=201,
    ),
    Route(
        method="POST",
        path=f"{_AGENT}/auth",
        handler=agents.auth,
        summary="Sign in, or list the sign-in methods",
        body=server_shapes.AuthBody,
        body_optional=True,
        answer=server_shapes.SignIns,
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
        answer=server_shapes.QuestionList,
    ),
    Route(
        method="POST",
        path=f"{_AGENT}/questions/{{request_id}}",
        handler=agents.answer,
        summary="Answer what the agent asks while it signs in or opens a session",
        body=session_shapes.ElicitationBody,
    ),
    Route(
        method="POST",
        path=f"{_AGENT}/doctor",
        handler=agents.doctor,
        summary="Check how well the agent speaks ACP",
        answer=server_shapes.DoctorReport,
    ),
)

_POLICIES = (
    Route(
        method="GET",
        path="/api/policies",
        handler=policies.policies,
        summary="The stored permission rules, and those the server was started with",
        answer=policy_shapes.RuleList,
    ),
    Route(
        method="POST",
        path="/api/policies",
        handler=policies.add,
        summary="Store a permission rule",
        body=policy_shapes.NewRule,
        answer=policy_shapes.AddedRule,
        status=201,
    ),
    Route(
        method="POST",
        path="/api/policies/explain",
        handler=policies.explain,
        summary="What the rules would decide about a request, and why",
        body=policy_shapes.TrialBody,
        answer=policy_shapes.Verdict,
    ),
    Route(
        method="DELETE",
        path="/api/policies",
        handler=policies.revoke,
        summary="Revoke a stored rule",
        query=IdQuery,
    ),
    Route(
        method="GET",
        path="/api/policies/project",
        handler=policies.of_project,
        summary="The rules kept with a project, and what was trusted of them",
        query=policy_shapes.FolderQuery,
        answer=policy_shapes.ProjectRuleList,
    ),
    Route(
        method="POST",
        path="/api/policies/project",
        handler=policies.trust_project,
        summary="Trust the rules kept with a project, as they were shown",
        body=policy_shapes.TrustBody,
        answer=policy_shapes.ProjectRuleList,
    ),
    Route(
        method="DELETE",
        path="/api/policies/project",
        handler=policies.distrust_project,
        summary="Stop trusting the rules kept with a project",
        query=policy_shapes.FolderQuery,
        answer=policy_shapes.ProjectRuleList,
    ),
)

_CHATS = (
    Route(
        method="POST",
        path="/api/chat",
        handler=chat.chat,
        summary="A useChat request; the response is a UI message stream",
        query=server_shapes.ChatQuery,
        body=bytes,
        body_limit=_PROMPT_LIMIT,
        gives=(EVENT_STREAM,),
    ),
    Route(
        method="GET",
        path=f"{_CHAT}/stream",
        handler=chat.resume,
        summary="The stream of the active message, from its start",
        query=server_shapes.ChatQuery,
        gives=(EVENT_STREAM,),
        may_be_empty=True,
    ),
    Route(
        method="POST",
        path=f"{_CHAT}/steer",
        handler=chat.steer,
        summary="Send a message to the running turn of a chat",
        body=session_shapes.PromptBody,
        body_limit=_PROMPT_LIMIT,
        answer=session_shapes.SteerAnswer,
    ),
    Route(
        method="POST",
        path=f"{_CHAT}/stop",
        handler=chat.stop,
        summary="Stop the running turn of a chat",
        answer=session_shapes.Cancelled,
    ),
    Route(
        method="GET",
        path=f"{_CHAT}/messages",
        handler=chat.list_messages,
        summary="A session as UI messages",
        query=server_shapes.MessagesQuery,
        answer=server_shapes.Messages,
    ),
)

_ABOUT = (
    Route(
        method="GET",
        path="/api/openapi.json",
        handler=health.document,
        summary="The OpenAPI description of this API",
        answer=dict,
    ),
    Route(
        method="GET",
        path="/healthz",
        handler=health.health,
        summary="Whether the server is running",
        answer=server_shapes.Health,
        public=True,
    ),
    Route(
        method="GET",
        path="/readyz",
        handler=health.readiness,
        summary="Whether the server is healthy; 503 names what is failing",
        answer=server_shapes.Readiness,
        public=True,
    ),
)

ROUTES: Final = (
    *(*_SESSIONS, *_STEERING, *_READING, *_FILES),
    *(*_AGENTS, *_POLICIES, *_CHATS, *_ABOUT),
)
