from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

from dragoman import errors
from dragoman.errors import (
    AgentExited,
    CallTimeout,
    CancelIgnored,
    ChainBroken,
    CommandNotFound,
    ConfigError,
    ConnectionClosed,
    DragomanError,
    FrameTooLarge,
    InternalError,
    MethodNotFound,
    NoProgress,
    NotAnAgent,
    PeerStalled,
    PromptTooLarge,
    RemoteError,
    RevertConflict,
    SessionBusy,
    SessionGone,
    SessionNotContinued,
    SlowConsumer,
    StartError,
    Unsupported,
    VersionMismatch,
    WouldDeadlock,
)
from dragoman.wire.error_replies import remote_error, to_wire

ALL = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, DragomanError)]
NAMES = {c.__name__ for c in ALL}
CODES = {
    "ParseError": -32700,
    "InvalidRequest": -32600,
    "MethodNotFound": -32601,
    "InvalidParams": -32602,
    "InternalError": -32603,
    "RequestCancelled": -32800,
    "AuthRequired": -32000,
    "ResourceNotFound": -32002,
}


def test_every_error_of_ours_is_in_this_module() -> None:
    sources = Path(errors.__file__).parent
    for module in sources.rglob("*.py"):
        if module != Path(errors.__file__):
            found = re.findall(r"^class (\w+)\((\w+)", module.read_text(), re.MULTILINE)
            assert [name for name, base in found if base in NAMES] == [], module


def test_each_wire_code_has_its_class() -> None:
    known = {c.__name__: c.code for c in ALL if issubclass(c, RemoteError) and c is not RemoteError}
    assert known == CODES


@pytest.mark.parametrize(("name", "code"), CODES.items())
def test_an_error_goes_over_the_wire_and_back(name: str, code: int) -> None:
    cls: type[RemoteError] = getattr(errors, name)
    assert to_wire(cls("no", {"a": 1})) == (code, "no", {"a": 1})
    back = remote_error(code, "no", {"a": 1})
    assert (type(back), back.code, back.message, back.data) == (cls, code, "no", {"a": 1})


def test_an_unknown_code_gives_a_plain_remote_error_that_keeps_it() -> None:
    error = remote_error(-7, "odd")
    assert (type(error), error.code, str(error)) == (RemoteError, -7, "odd (code -7)")
    assert to_wire(error) == (-7, "odd", None)


def test_an_error_without_a_message_has_its_title() -> None:
    assert remote_error(-32601, "").message == "method not found"
    assert str(MethodNotFound()) == "method not found (code -32601)"


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (None, "failed (code -32603)"),
        ("no model", "failed (code -32603): no model"),
        ("failed", "failed (code -32603)"),
        ({"message": "no model"}, "failed (code -32603): no model"),
        ({"details": "no model", "x": 1}, "failed (code -32603): no model"),
        ({"reason": "no model"}, "failed (code -32603): no model"),
        ({"message": 7}, "failed (code -32603)"),
        ([1], "failed (code -32603)"),
    ],
)
def test_the_sentence_of_a_remote_error_holds_what_its_data_explains(
    data: Any, sentence: str
) -> None:
    assert str(InternalError("failed", data)) == sentence


def test_an_error_of_our_own_is_told_to_the_other_side_in_its_sentence() -> None:
    assert to_wire(CallTimeout("x", 1.5)) == (-32603, "no reply to x within 1.5 s", None)


@pytest.mark.parametrize("error", [ValueError("secret"), OSError(2, "secret"), KeyboardInterrupt()])
def test_any_other_error_is_told_without_its_text(error: BaseException) -> None:
    assert to_wire(error) == (-32603, "internal error", None)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (ConnectionClosed(), "the connection is closed"),
        (ConnectionClosed("gone"), "gone"),
        (AgentExited("a", code=3), "the agent 'a' exited with code 3"),
        (AgentExited("/bin/a", code=3, name="goose"), "the agent 'goose' exited with code 3"),
        (AgentExited("a", signal="SIGKILL", code=-9), "the agent 'a' was ended by SIGKILL"),
        (AgentExited("a"), "the agent 'a' closed its output"),
        (
            AgentExited("a", code=1, stderr=" boom \n"),
            "the agent 'a' exited with code 1; it printed:\nboom",
        ),
        (
            AgentExited("a", code=1, stderr="\n".join([f"step {n}" for n in range(30)])),
            "the agent 'a' exited with code 1; it printed:\n…\n"
            + "\n".join(f"step {n}" for n in range(10, 30)),
        ),
        (NotAnAgent("a", code=0), "the agent 'a' ended before it spoke ACP (exited with code 0)"),
        (
            NotAnAgent("a", code=0, stderr="warning", printed="Usage: a"),
            "the agent 'a' ended before it spoke ACP (exited with code 0); it printed:\n"
            "Usage: a\nwarning",
        ),
        (
            NotAnAgent("a", code=0, stderr="warning"),
            "the agent 'a' ended before it spoke ACP (exited with code 0); it printed:\nwarning",
        ),
        (PeerStalled(9), "the agent stopped reading its input (9 bytes could not be sent)"),
        (StartError("a", "not allowed"), "could not start 'a': not allowed"),
        (CommandNotFound("a"), "could not start 'a': command not found"),
        (FrameTooLarge(8), "a frame exceeds the limit of 8 bytes"),
        (
            PromptTooLarge(9, 8),
            "the prompt has 9 bytes as JSON, and the limit is 8; put large parts in a file and "
            "mention it, for the agent to read",
        ),
        (CallTimeout("x", 30), "no reply to x within 30 s"),
        (CallTimeout("x", 30, "it"), "no reply to x within 30 s: it has not answered"),
        (ChainBroken("the proxy 'p'", "closed its output"), "the proxy 'p' closed its output"),
        (
            SlowConsumer(8),
            "the reader fell more than 8 bytes behind; later events were dropped",
        ),
        (VersionMismatch(9), "the agent speaks ACP version 9, which is not supported"),
        (SessionBusy("s"), "session s is busy with another turn"),
        (SessionGone("s"), "session s is unknown or closed"),
        (SessionNotContinued("s", "no such file"), "session s cannot be continued: no such file"),
        (NoProgress("s", 2.5), "the agent made no progress for 2.5 s"),
        (CancelIgnored("s", 30), "the agent did not stop within 30 s of the cancel"),
        (Unsupported("images"), "the agent does not support images"),
        (ConfigError("a.json", "agents.x", "a string"), "a.json: agents.x: expected a string"),
        (ConfigError("a.json", "", "an object"), "a.json: expected an object"),
        (RevertConflict({"a": "changed"}), "nothing was reverted: a: changed"),
        (
            WouldDeadlock("x"),
            "x was called from a notification handler: its reply is read only after the handler "
            "returns; start a task for the call instead",
        ),
    ],
)
def test_an_error_says_one_clear_sentence(error: DragomanError, sentence: str) -> None:
    assert str(error) == sentence


def test_an_error_carries_its_data() -> None:
    error = NotAnAgent("a", code=2, stderr="err", printed="out")
    found = (error.command, error.code, error.signal, error.stderr, error.printed)
    assert found == ("a", 2, None, "err", "out")
    assert (StartError("a", "r").command, StartError("a", "r").reason) == ("a", "r")
    assert (CallTimeout("m", 2.0).method, CallTimeout("m", 2.0).seconds) == ("m", 2.0)
    assert (PeerStalled(9).pending, FrameTooLarge(8).limit, SlowConsumer(7).limit) == (9, 8, 7)
    assert (NoProgress("s", 2.0).session_id, NoProgress("s", 2.0).seconds) == ("s", 2.0)
    assert RevertConflict({"a": "b"}).reasons == {"a": "b"}
    assert [RevertConflict({}, by_force=each).by_force for each in (True, False)] == [True, False]
    assert (WouldDeadlock("m").method, ConnectionClosed("r").reason) == ("m", "r")
