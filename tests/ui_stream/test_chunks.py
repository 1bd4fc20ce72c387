from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from support.ai_sdk_judge import Case, judge, stream_of
from support.chunk_rules import wire

from dragoman.ui_stream import chunks as k

# One of each type, with all that it can carry.
_TOOL: dict[str, Any] = {
    "tool_call_id": "a",
    "dynamic": True,
    "provider_executed": True,
    "provider_metadata": {"acp": {"x": None}},
}
IN_BOTH: list[k.Chunk] = [
    k.MessageMetadata(message_metadata={"a": 1}),
    k.StartStep(),
    k.TextStart(id="t"),
    k.TextDelta(id="t", delta="x", provider_metadata={"acp": {}}),
    k.TextEnd(id="t"),
    k.ReasoningStart(id="r"),
    k.ReasoningDelta(id="r", delta="x"),
    k.ReasoningEnd(id="r"),
    k.ToolInputStart(**_TOOL, tool_name="n", title="T"),
    k.ToolInputDelta(tool_call_id="a", input_text_delta="{}"),
    k.ToolInputAvailable(**_TOOL, tool_name="n", input=None, title="T"),
    k.ToolOutputAvailable(**_TOOL, output=None, preliminary=True),
    k.ToolOutputError(**_TOOL, error_text="no"),
    k.ToolInputAvailable(tool_call_id="b", tool_name="n", input={}, dynamic=True),
    k.ToolApprovalRequest(approval_id="p", tool_call_id="b"),
    k.ToolInputError(tool_call_id="c", tool_name="n", input={}, error_text="no", dynamic=True),
    k.SourceUrl(source_id="u", url="http://x", title="T", provider_metadata={"acp": {}}),
    k.SourceDocument(source_id="d", media_type="text/plain", title="T", filename="f"),
    k.File(url="data:,", media_type="text/plain"),
    k.Data("data-x", {"a": 1}, id="1", transient=True),
    k.FinishStep(),
]
ONLY_IN_7: list[k.Chunk] = [
    k.ToolApprovalResponse(approval_id="p", approved=True, reason="fine", provider_executed=True),
    k.ResetStep(),
    k.ReasoningFile(url="data:,", media_type="text/plain"),
    k.Custom(kind="acp.thing"),
    k.SteeringMessage(id="s", parts=[{"type": "text", "text": "go"}]),
]
START, FINISH = k.Start(message_id="m", message_metadata={}), k.Finish(finish_reason="stop")


def test_every_type_is_tried() -> None:
    ends = {k.Start, k.Finish, k.Abort, k.Error, k.ToolOutputDenied}
    assert {type(chunk) for chunk in IN_BOTH} | ends == set(get_args(k.InBoth))
    assert {type(chunk) for chunk in ONLY_IN_7} == set(get_args(k.OnlyIn7))


def test_names_are_in_camel_case_and_what_is_not_there_is_absent() -> None:
    [told] = wire([k.ToolInputStart(tool_call_id="a", tool_name="Bash")])
    assert told == {"type": "tool-input-start", "toolCallId": "a", "toolName": "Bash"}


def test_required_values_are_told_even_when_null() -> None:
    assert b'"output":null' in msgspec.json.encode(
        k.ToolOutputAvailable(tool_call_id="a", output=None)
    )


@pytest.mark.parametrize("end", [FINISH, k.Abort(reason="enough"), k.Error(error_text="broken")])
def test_both_releases_accept_the_types_that_both_know(end: k.Chunk) -> None:
    body = stream_of([START, *IN_BOTH, end])
    for verdict in judge([Case(6, [body]), Case(7, [body])]):
        assert verdict.problems == []


def test_only_release_7_accepts_the_others() -> None:
    asked = IN_BOTH[1:15]
    bodies = [stream_of([START, *asked, chunk, FINISH]) for chunk in ONLY_IN_7]
    verdicts = judge([Case(release, [body]) for release in (6, 7) for body in bodies])
    assert all(verdict.problems for verdict in verdicts[: len(bodies)])
    # What it does to the message is not the point here, only that no chunk is refused.
    refusals = [p for v in verdicts[len(bodies) :] for p in v.problems if "Error" in p]
    assert refusals == []
