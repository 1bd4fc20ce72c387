from __future__ import annotations

import logging

import pytest
from msgspec import UNSET

from dragoman.errors import InvalidMessage
from dragoman.schema import Unknown, decode, v1, v2


def update_of(update: str) -> v1.SessionUpdate:
    return decode(b'{"sessionId":"s","update":%s}' % update.encode(), v1.SessionNotification).update


def tool_call(rest: str) -> v1.SessionUpdate:
    return update_of(f'{{"sessionUpdate":"tool_call","toolCallId":"c","title":"t",{rest}}}')


@pytest.mark.parametrize("wrong", ['"kind":5', '"content":"text"', '"rawInput":1e999', '"_meta":3'])
def test_a_field_marked_default_on_error_gets_its_default(wrong: str) -> None:
    assert tool_call(wrong) == v1.ToolCall(tool_call_id="c", title="t")


def test_only_the_wrong_field_is_lost() -> None:
    found = tool_call('"kind":5,"status":"failed","rawOutput":{"a":1}')
    assert found == v1.ToolCall(tool_call_id="c", title="t", status="failed", raw_output={"a": 1})


def test_a_wrong_field_of_a_patch_leaves_the_value_as_it_was() -> None:
    found = update_of('{"sessionUpdate":"tool_call_update","toolCallId":"c","title":5,"kind":null}')
    assert isinstance(found, v1.ToolCallUpdate)
    assert (found.title, found.kind) == (UNSET, None)


def test_a_wrong_field_inside_a_lenient_one_drops_no_more_than_it_must() -> None:
    found = update_of(
        '{"sessionUpdate":"user_message_chunk",'
        '"content":{"type":"text","text":"t","annotations":{"priority":"high","lastModified":"l"}}}'
    )
    assert found == v1.UserMessageChunk(
        content=v1.TextContent(text="t", annotations=v1.Annotations(last_modified="l"))
    )


def test_a_required_list_marked_default_on_error_becomes_empty() -> None:
    assert update_of('{"sessionUpdate":"plan","entries":"none"}') == v1.Plan(entries=[])


def test_a_required_list_that_is_missing_is_still_missing() -> None:
    with pytest.raises(InvalidMessage, match=r"\$.update.entries: it is missing"):
        update_of('{"sessionUpdate":"plan"}')


def test_a_list_marked_skip_invalid_items_leaves_out_only_those() -> None:
    good = '{"content":"a","priority":"high","status":"pending"}'
    found = update_of(f'{{"sessionUpdate":"plan","entries":[{good},{{"content":"b"}},7,{good}]}}')
    assert found == v1.Plan(
        entries=[v1.PlanEntry(content="a", priority="high", status="pending")] * 2
    )


def test_an_unknown_variant_is_not_an_invalid_item() -> None:
    found = tool_call('"content":[{"type":"diff"},{"type":"hologram"},{}]')
    assert isinstance(found, v1.ToolCall)
    assert found.content == [Unknown("hologram", b'{"type":"hologram"}')]


def test_a_list_without_the_mark_is_refused_with_the_items_path() -> None:
    with pytest.raises(InvalidMessage, match=r"\$.options\[1\].name: it is missing"):
        decode(
            b'{"sessionId":"s","toolCall":{"toolCallId":"c"},'
            b'"options":[{"optionId":"a","name":"A","kind":"allow_once"},{"optionId":"b"}]}',
            v1.RequestPermissionRequest,
        )


def test_skipping_items_alone_does_not_excuse_something_that_is_no_list() -> None:
    data = b'{"type":"diff","changes":[{"operation":"add"},{"operation":"modify","path":"/p"}]}'
    assert decode(data, v2.Diff).changes == [v2.DiffModify(path="/p")]
    with pytest.raises(InvalidMessage, match=r"\$.changes: expected `array`"):
        decode(b'{"type":"diff","changes":1}', v2.Diff)


def test_a_field_marked_default_on_null_gets_its_default_for_null_alone() -> None:
    start = '{"sessionId":"s","command":"ls","args":'
    assert decode(f"{start}null}}".encode(), v1.CreateTerminalRequest).args == []
    with pytest.raises(InvalidMessage, match=r"\$.args: expected `array`, got `int`"):
        decode(f"{start}5}}".encode(), v1.CreateTerminalRequest)


def test_a_required_list_marked_default_on_null_becomes_empty() -> None:
    data = b'{"cwd":"/w","mcpServers":null}'
    assert decode(data, v1.NewSessionRequest) == v1.NewSessionRequest(cwd="/w", mcp_servers=[])


def test_items_of_a_union_without_tags_are_mended_too() -> None:
    data = (
        b'{"protocolVersion":1,"authMethods":[{"id":"a","name":"A","description":3},'
        b'{"name":"no id"},"no object",'
        b'{"type":"terminal","id":"b","name":"B","args":null},{"type":"x"}]}'
    )
    assert decode(data, v1.InitializeResponse).auth_methods == [
        v1.AuthMethodAgent(id="a", name="A"),
        v1.AuthMethodTerminal(id="b", name="B"),
        Unknown("x", b'{"type":"x"}'),
    ]


def test_the_only_variant_of_a_union_needs_no_tag() -> None:
    data = b'{"sessionId":"s","availableCommands":[{"name":"n","description":"d","input":3}]}'
    found = decode(data, v2.NewSessionResponse)
    assert found.available_commands == [v2.Command(name="n", description="d")]


def test_values_of_a_map_are_mended_or_refused_without_their_key() -> None:
    form = '{"message":"m","mode":"form","requestedSchema":{"properties":{"secret":%s}}}'
    number = form % '{"type":"number","title":1}'
    found = decode(number.encode(), v1.CreateElicitationRequest).requested_schema
    assert found == v1.ElicitationSchema(properties={"secret": v1.NumberPropertySchema()})
    with pytest.raises(InvalidMessage, match=r"requestedSchema.properties\[...\].type: it is miss"):
        decode((form % "{}").encode(), v1.CreateElicitationRequest)


def test_a_whole_number_written_as_a_float_is_an_integer() -> None:
    found = update_of('{"sessionUpdate":"usage_update","used":12.0,"size":1e3}')
    assert found == v1.UsageUpdate(used=12, size=1000)
    located = tool_call('"locations":[{"path":"/p","line":3.0},{"path":"/q","line":3.5}]')
    assert isinstance(located, v1.ToolCall)
    assert [location.line for location in located.locations] == [3, None]


def test_a_nullable_value_of_the_wrong_type_is_mended_where_it_is_wrong() -> None:
    found = decode(b'{"stopReason":"refusal","usage":{"totalTokens":1}}', v1.PromptResponse)
    assert found == v1.PromptResponse(stop_reason="refusal")
    empty = decode(b'{"stopReason":"refusal","usage":null,"_meta":1}', v1.PromptResponse)
    assert empty == v1.PromptResponse(stop_reason="refusal")


def test_what_was_dropped_is_logged_by_path_and_never_by_content(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, "dragoman.schema")
    tool_call('"kind":5,"name":["secret"],"content":[{"type":"diff","path":"secret"}]')
    said = sorted(record.getMessage() for record in caplog.records)
    assert said == [
        "dropped $.update.content[0], wrong at $.update.content[0].newText",
        "dropped $.update.kind, wrong at $.update.kind",
        "dropped $.update.name, wrong at $.update.name",
    ]
