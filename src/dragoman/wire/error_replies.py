"""Error replies as exceptions, and exceptions as error replies."""

from __future__ import annotations

from typing import Any

from dragoman.errors import DragomanError, InternalError, RemoteError

_BY_CODE = {cls.code: cls for cls in RemoteError.__subclasses__()}


def remote_error(code: int, message: str, data: Any = None) -> RemoteError:
    """The exception for an error reply; an unknown code gives a plain `RemoteError`."""
    cls = _BY_CODE.get(code, RemoteError)
    return cls(message, data, code=code)


def to_wire(error: BaseException) -> tuple[int, str, Any]:
    """Code, message and data with which to answer when a handler raised `error`."""
    match error:
        case RemoteError():
            return error.code, error.message, error.data
        case DragomanError():
            return InternalError.code, str(error), None
        case _:
            # Only our own errors were written for the other side to read.
            return InternalError.code, InternalError.title, None
