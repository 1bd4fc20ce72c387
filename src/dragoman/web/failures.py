"""Maps exceptions to a status and `{"error": {"code", "message", "detail"?}}`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from dragoman import errors
from dragoman.client.capabilities import AuthMethod
from dragoman.errors import UnknownAgent
from dragoman.host.forms.elicitation import FormError
from dragoman.ui_stream import UnusableRequest
from dragoman.web.routing.route import JSON


class RequestFailed(Exception):
    """A request that is answered with an error."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        detail: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(status, code, message)
        self.status = status
        self.code = code
        self.message = message
        self.detail = detail
        self.headers = dict(headers or {})

    def __str__(self) -> str:
        return self.message


class Problem(msgspec.Struct, omit_defaults=True):
    """What went wrong: a word for programs, a sentence for people."""

    code: str
    message: str
    detail: Any = None


class ErrorBody(msgspec.Struct):
    error: Problem


def response_for(failure: RequestFailed) -> Response:
    body = ErrorBody(Problem(failure.code, failure.message, failure.detail))
    return Response(
        msgspec.json.encode(body), failure.status, headers=failure.headers, media_type=JSON
    )


_STATUSES: list[tuple[type[Exception], int, str]] = [
    (errors.UnknownSession, 404, "unknown_session"),
    (UnknownAgent, 404, "unknown_agent"),
    (errors.NameTaken, 409, "name_taken"),
    (errors.SessionOwned, 409, "session_owned"),
    (errors.LeaseLost, 409, "session_owned"),
    (errors.SessionElsewhere, 409, "session_elsewhere"),
    (errors.UnknownHost, 404, "unknown_host"),
    (errors.RaceError, 404, "unknown_race"),
    (errors.WorktreeError, 404, "unknown_worktree"),
    (errors.UnknownToken, 404, "unknown_token"),
    (errors.SessionBusy, 409, "session_busy"),
    (errors.SessionNotContinued, 409, "not_continued"),
    (errors.SessionGone, 409, "session_gone"),
    (errors.Unsupported, 409, "unsupported"),
    (errors.LimitUnusable, 400, "unusable_limit"),
    (errors.RevertConflict, 409, "conflict"),
    (errors.AuthRequired, 409, "auth_required"),
    (errors.ResourceNotFound, 409, "not_continued"),
    (errors.CommandNotFound, 409, "agent_missing"),
    (UnusableRequest, 400, "invalid"),
    (msgspec.ValidationError, 400, "invalid"),
    (msgspec.DecodeError, 400, "malformed"),
    (errors.PromptTooLarge, 413, "too_large"),
    (errors.ConfigError, 500, "bad_configuration"),
    (errors.StoreFull, 507, "store_full"),
    (errors.StoreAway, 503, "store_away"),
    (errors.StoreError, 503, "store_failed"),
    (errors.CallTimeout, 504, "agent_silent"),
    (errors.CancelIgnored, 504, "cancel_ignored"),
    (errors.DragomanError, 502, "agent_failed"),
    (ValueError, 400, "invalid"),
]
"""The first that fits counts."""

_REFUSALS = {
    "settled": 409,
    "queue_full": 409,
    "busy": 409,
    "nothing": 409,
    "elsewhere": 409,
    "invalid": 400,
    "too_large": 413,
    "unsupported": 409,
    "not_continued": 409,
    "session_gone": 409,
    "conflict": 409,
    "owner_gone": 409,
    "host_gone": 409,
    "no_workspace": 409,
    "unknown_agent": 404,
    "unknown_tool_call": 404,
    "unknown_terminal": 404,
    "unknown_subagent": 404,
    "unknown_turn": 404,
    "agent_missing": 409,
    "auth_required": 409,
    "name_taken": 409,
    "unsure": 409,
    "cancel_ignored": 504,
    "no_answer": 504,
    "store_away": 503,
    "store_full": 507,
}


def failure_of(error: Exception) -> RequestFailed | None:
    """What to answer when a handler raises this; None for what nobody expected."""
    if isinstance(error, RequestFailed):
        return error
    if isinstance(error, errors.CommandRefused):
        status = _REFUSALS.get(error.code, 502)
        return RequestFailed(
            status, error.code, str(error), error.detail or _detail(error.__cause__)
        )
    for kind, status, code in _STATUSES:
        if isinstance(error, kind):
            return RequestFailed(status, code, str(error), _detail(error))
    return None


def _detail(error: BaseException | None) -> Any:
    match error:
        case errors.AuthRequired(methods=methods):
            return {"methods": [_method(each) for each in methods if isinstance(each, AuthMethod)]}
        case errors.RevertConflict(reasons=reasons, by_force=by_force):
            return {"reasons": reasons, "byForce": by_force}
        case FormError(fields=fields):
            return {"fields": fields}
        case errors.AgentExited(stderr=stderr) if stderr:
            return {"stderr": stderr}
        case UnknownAgent(known=known):
            return {"known": known}
        case UnusableRequest(place=place):
            return {"place": place}
        case _:
            return None


def _method(method: AuthMethod) -> dict[str, Any]:
    """Without the values of its variables, which may be secret."""
    return msgspec.to_builtins(method) | {"kind": method.kind, "env": sorted(method.env)}
