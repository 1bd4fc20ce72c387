from __future__ import annotations

import json
import subprocess
import sys

import msgspec
import pytest
from msgspec import UNSET

from dragoman.errors import InvalidMessage
from dragoman.schema import Unknown, decode, encode, v1, v2
from dragoman.schema.codec import object_of


def updated(update: str) -> bytes:
    return b'{"sessionId":"s","update":%s}' % update.encode()


def update_of(update: str) -> v1.SessionUpdate:
    return decode(updated(update), v1.SessionNotification).update


def session(servers: str) -> bytes:
    return b'{"cwd":"/w","mcpServers":[%s]}' % servers.encode()


# Decoding ----------------------------------------------------------------------------------------


def test_an_update_decodes_to_the_struct_of_its_kind() -> None:
    update = update_of(
        '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}'
    )
    assert update == v1.AgentMessageChunk(content=v1.TextContent(text="hi"))


def test_raw_json_decodes_like_bytes() -> None:
    data = msgspec.Raw(b'{"sessionId":"s"}')
    assert decode(data, v1.CancelNotification) == v1.CancelNotification(session_id="s")


@pytest.mark.parametrize("result", [b"null", b"{}"])
def test_a_result_of_null_is_an_empty_object(result: bytes) -> None:
    found = decode(object_of(msgspec.Raw(result)), v1.LoadSessionResponse)
    assert found == v1.LoadSessionResponse()


def test_any_other_result_is_decoded_as_it_is() -> None:
    with pytest.raises(InvalidMessage):
        decode(object_of(msgspec.Raw(b"[]")), v1.LoadSessionResponse)


def test_the_kinds_that_share_a_definition_are_told_apart() -> None:
    kinds = [v1.UserMessageChunk, v1.AgentMessageChunk, v1.AgentThoughtChunk]
    names = ["user_message_chunk", "agent_message_chunk", "agent_thought_chunk"]
    content = '"content":{"type":"text","text":""}'
    found = [update_of(f'{{"sessionUpdate":"{name}",{content}}}') for name in names]
    assert [type(update) for update in found] == kinds
    assert all(isinstance(update, v1.ContentChunk) for update in found)


def test_a_tool_call_update_is_one_both_as_an_update_and_in_a_permission_request() -> None:
    update = update_of('{"sessionUpdate":"tool_call_update","toolCallId":"c"}')
    asked = decode(
        b'{"sessionId":"s","toolCall":{"toolCallId":"c"},"options":[]}',
        v1.RequestPermissionRequest,
    )
    assert isinstance(update, v1.ToolCallUpdate)
    assert asked.tool_call == v1.ToolCallUpdate(tool_call_id="c")
    assert encode(asked.tool_call) == b'{"toolCallId":"c"}'
    assert json.loads(encode(update)) == {"sessionUpdate": "tool_call_update", "toolCallId": "c"}


def test_an_enum_accepts_values_it_does_not_know() -> None:
    reply = decode(b'{"stopReason":"bored"}', v1.PromptResponse)
    assert reply.stop_reason == "bored"
    assert "bored" not in v1.STOP_REASON_VALUES


def test_fields_the_schema_does_not_have_are_ignored() -> None:
    assert decode(b'{"stopReason":"refusal","new":[1]}', v1.PromptResponse) == v1.PromptResponse(
        stop_reason="refusal"
    )


def test_metadata_is_kept_everywhere() -> None:
    data = (
        b'{"sessionId":"s","_meta":{"a":1},"update":{"sessionUpdate":"tool_call","_meta":{"b":2},'
        b'"toolCallId":"c","title":"t","content":[{"type":"content","_meta":{"c":3},'
        b'"content":{"type":"text","text":"x","_meta":{"d":4}}}]}}'
    )
    found = decode(data, v1.SessionNotification)
    assert isinstance(found.update, v1.ToolCall)
    content = found.update.content[0]
    assert isinstance(content, v1.Content)
    assert isinstance(content.content, v1.TextContent)
    metas = [found.meta, found.update.meta, content.meta, content.content.meta]
    assert metas == [{"a": 1}, {"b": 2}, {"c": 3}, {"d": 4}]
    assert json.loads(encode(found)) == json.loads(data)


def test_defaults_of_the_schema_are_filled_in() -> None:
    reply = decode(b'{"protocolVersion":1}', v1.InitializeResponse)
    assert reply.agent_capabilities.prompt_capabilities.image is False
    assert reply.auth_methods == []


def test_a_float_field_accepts_an_integer() -> None:
    assert decode(b'{"amount":3,"currency":"USD"}', v1.Cost).amount == 3.0


# Omitted, null, value ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("title", "expected"), [("", UNSET), (',"title":null', None), (',"title":"t"', "t")]
)
def test_a_patch_tells_omitted_from_null_from_a_value(title: str, expected: object) -> None:
    for text in (
        f'{{"sessionUpdate":"tool_call_update","toolCallId":"c"{title}}}',
        f'{{"sessionUpdate":"session_info_update"{title}}}',
    ):
        update = update_of(text)
        assert isinstance(update, v1.ToolCallUpdate | v1.SessionInfoUpdate)
        assert update.title == expected
        assert json.loads(encode(update)) == json.loads(text)


def test_a_patch_tells_omitted_metadata_from_null() -> None:
    assert decode(b'{"messageId":"m"}', v2.AgentMessage).meta is UNSET
    assert decode(b'{"messageId":"m","_meta":null}', v2.AgentMessage).meta is None


def test_an_optional_field_that_is_none_is_not_sent() -> None:
    assert encode(v1.ReadTextFileRequest(session_id="s", path="/p", line=None)) == (
        b'{"sessionId":"s","path":"/p"}'
    )


def test_a_required_list_is_sent_even_when_empty() -> None:
    assert encode(v1.NewSessionRequest(cwd="/w", mcp_servers=[])) == b'{"cwd":"/w","mcpServers":[]}'


def test_a_required_field_that_is_null_is_sent_as_null() -> None:
    assert encode(v1.CancelRequestNotification(request_id=None)) == b'{"requestId":null}'


def test_a_null_result_of_an_mcp_message_is_not_a_missing_one() -> None:
    assert encode(v1.MessageMcpResponse(result=None)) == b'{"result":null}'
    failed = v1.MessageMcpResponse(error=v1.McpError(code=1, message="no"))
    assert encode(failed) == b'{"error":{"code":1,"message":"no"}}'


# Unions without tags -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("server", "wire"),
    [
        (
            v1.McpServerStdio(name="n", command="/c", args=["a"], env=[]),
            '{"name":"n","command":"/c","args":["a"],"env":[]}',
        ),
        (
            v1.McpServerHttp(name="n", url="u", headers=[]),
            '{"type":"http","name":"n","url":"u","headers":[]}',
        ),
        (
            v1.McpServerSse(name="n", url="u", headers=[]),
            '{"type":"sse","name":"n","url":"u","headers":[]}',
        ),
        (
            v1.McpServerAcp(name="n", server_id="i"),
            '{"type":"acp","name":"n","serverId":"i"}',
        ),
    ],
)
def test_each_mcp_server_is_sent_in_its_own_shape_and_comes_back(
    server: v1.McpServer, wire: str
) -> None:
    request = v1.NewSessionRequest(cwd="/w", mcp_servers=[server])
    assert encode(request) == session(wire)
    assert decode(session(wire), v1.NewSessionRequest) == request


def test_an_mcp_server_of_an_unknown_type_is_kept() -> None:
    request = decode(session('{"type":"pipe","at":1}'), v1.NewSessionRequest)
    assert request.mcp_servers == [Unknown("pipe", b'{"type":"pipe","at":1}')]


def test_a_sign_in_method_without_a_type_is_the_agents_own() -> None:
    data = (
        b'{"protocolVersion":1,"authMethods":[{"id":"a","name":"A"},'
        b'{"type":"terminal","id":"b","name":"B","args":["login"]}]}'
    )
    assert decode(data, v1.InitializeResponse).auth_methods == [
        v1.AuthMethodAgent(id="a", name="A"),
        v1.AuthMethodTerminal(id="b", name="B", args=["login"]),
    ]


def test_an_embedded_resource_is_text_or_a_blob_by_what_it_has() -> None:
    text = v1.EmbeddedResource(resource=v1.TextResourceContents(uri="u", text="t"))
    blob = v1.EmbeddedResource(resource=v1.BlobResourceContents(uri="u", blob="YQ=="))
    assert encode(text) == b'{"type":"resource","resource":{"text":"t","uri":"u"}}'
    assert decode(encode(text), v1.EmbeddedResource) == text
    assert decode(encode(blob), v1.EmbeddedResource) == blob


def test_select_options_may_be_flat_or_grouped() -> None:
    one = v1.SessionConfigSelectOption(value="v", name="V")
    group = v1.SessionConfigSelectGroup(group="g", name="G", options=[one])
    select = v1.SessionConfigSelect(id="i", name="n", current_value="v", options=[one, group])
    assert decode(encode(select), v1.SessionConfigSelect) == select


def test_a_merged_union_has_the_fields_of_all_its_variants() -> None:
    data = b'{"message":"m","mode":"form","requestId":null,"requestedSchema":{"type":"object"}}'
    request = decode(data, v1.CreateElicitationRequest)
    assert request.request_id is None
    assert request.requested_schema == v1.ElicitationSchema()
    scoped = decode(
        b'{"message":"m","mode":"url","sessionId":"s","url":"u","elicitationId":"e"}',
        v1.CreateElicitationRequest,
    )
    assert (scoped.request_id, scoped.session_id, scoped.url) == (UNSET, "s", "u")


def test_a_state_update_has_two_tags_on_the_wire_and_one_struct() -> None:
    data = updated('{"sessionUpdate":"state_update","state":"idle","stopReason":"x"}')
    update = decode(data, v2.UpdateSessionNotification).update
    assert isinstance(update, v2.StateUpdate)
    assert (update.state, update.stop_reason) == ("idle", "x")
    assert json.loads(encode(update)) == json.loads(data)["update"]


# Unknown variants --------------------------------------------------------------------------------

ODD = '{ "sessionUpdate" : "dance" , "steps":[1, 2.50,1e3] ,"\\u00e9":"\\/"}'


def test_an_unknown_update_is_kept_and_encodes_to_the_very_same_json() -> None:
    found = decode(updated(ODD), v1.SessionNotification)
    assert found.update == Unknown("dance", ODD.encode())
    assert encode(found) == updated(ODD)


def test_an_unknown_content_block_does_not_make_its_update_unknown() -> None:
    block = '{"type":"video","data":[ 1 ]}'
    text = f'{{"sessionUpdate":"agent_message_chunk","content":{block}}}'
    update = update_of(text)
    assert update == v1.AgentMessageChunk(content=Unknown("video", block.encode()))
    assert encode(update) == text.encode()


def test_an_unknown_item_stays_in_its_place_in_a_list() -> None:
    request = decode(
        b'{"sessionId":"s","prompt":[{"type":"text","text":"a"},{"type":"odor"},'
        b'{"type":"text","text":"b"}]}',
        v1.PromptRequest,
    )
    assert request.prompt == [
        v1.TextContent(text="a"),
        Unknown("odor", b'{"type":"odor"}'),
        v1.TextContent(text="b"),
    ]


def test_an_unknown_variant_of_a_union_with_one_known_variant_is_kept() -> None:
    data = b'{"sessionId":"s","availableCommands":[{"type":"macro","name":"n"}]}'
    found = decode(data, v2.NewSessionResponse)
    assert found.available_commands == [Unknown("macro", b'{"type":"macro","name":"n"}')]


def test_an_unknown_variant_does_not_hold_on_to_its_message() -> None:
    update = decode(msgspec.Raw(updated(ODD)), v1.SessionNotification).update
    assert isinstance(update, Unknown)
    assert type(update.raw) is bytes


def test_an_unknown_variant_is_kept_on_one_line() -> None:
    update = update_of('{"sessionUpdate":\n"dance",\n"text":"a\\nb"}')
    assert update == Unknown("dance", b'{"sessionUpdate":"dance","text":"a\\nb"}')


def test_something_that_is_not_of_the_schema_cannot_be_encoded() -> None:
    with pytest.raises(NotImplementedError, match="a complex cannot be sent"):
        encode(1j)


def test_text_that_is_not_unicode_cannot_be_encoded() -> None:
    with pytest.raises(UnicodeEncodeError):
        encode(v1.TextContent(text="\ud800"))


# What is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "is not valid JSON"),
        (b"{", "is not valid JSON"),
        (b"[]", r"wrong at \$: expected `object`"),
        (b"42", r"wrong at \$: expected `object`"),
        (updated("{}"), r"wrong at \$.update.sessionUpdate: it is missing"),
        (
            updated('{"sessionUpdate":7}'),
            r"wrong at \$.update.sessionUpdate: expected `str`, got `int`",
        ),
        (updated("[]"), r"wrong at \$.update: expected `object`, got `array`"),
        (
            updated('{"sessionUpdate":"tool_call","title":"t"}'),
            r"wrong at \$.update.toolCallId: it is missing",
        ),
        (
            updated('{"sessionUpdate":"tool_call","title":"t","toolCallId":4}'),
            r"wrong at \$.update.toolCallId: expected `str`, got `int`",
        ),
        (
            updated('{"sessionUpdate":"user_message_chunk","content":{"type":"image"}}'),
            r"wrong at \$.update.content.data: it is missing",
        ),
        (
            updated('{"sessionUpdate":"user_message_chunk","content":{"text":"no type"}}'),
            r"wrong at \$.update.content.type: it is missing",
        ),
        (updated('{"sessionUpdate":"notice","severity":NaN}'), "is not valid JSON"),
        (updated('{"sessionUpdate":"dance","x":NaN}'), "is not valid JSON"),
        (updated('{"sessionUpdate":"dance","x":"\\ud83d"}'), "is not valid JSON"),
        (b'{"sessionId":"\xff"}', "is not valid JSON"),
        (updated('{"sessionUpdate":"dance"}').replace(b"dance", b"\xff"), "is not valid JSON"),
    ],
)
def test_what_cannot_be_read_is_an_invalid_message_that_says_where(data: bytes, says: str) -> None:
    with pytest.raises(InvalidMessage, match=f"SessionNotification (is )?{says}"):
        decode(data, v1.SessionNotification)


def test_bytes_that_are_not_utf8_are_refused_even_inside_an_unknown_variant() -> None:
    data = updated('{"sessionUpdate":"dance","x":"?"}').replace(b"?", b"\xff")
    with pytest.raises(InvalidMessage, match="not valid JSON"):
        decode(data, v1.SessionNotification)


@pytest.mark.parametrize("kind", ["dance", "tool_call"])
def test_deep_nesting_is_refused(kind: str) -> None:
    deep = "[" * 100_000 + "]" * 100_000
    text = f'{{"sessionUpdate":"{kind}","toolCallId":"c","title":"t","rawInput":{deep}}}'
    with pytest.raises(InvalidMessage, match="SessionNotification is nested too deeply"):
        update_of(text)


def test_a_struct_of_another_kind_is_refused() -> None:
    with pytest.raises(InvalidMessage, match=r"wrong at \$.type: expected 'text'"):
        decode(b'{"type":"image","text":"x"}', v1.TextContent)


def test_a_result_that_is_not_a_struct_is_decoded_and_refused_too() -> None:
    assert bytes(decode(b'{"any":1}', v1.ProxySuccessorResponse)) == b'{"any":1}'
    with pytest.raises(InvalidMessage, match=r"str is wrong at \$: expected `str`, got `int`"):
        decode(b"1", str)


@pytest.mark.parametrize("number", [2**63, 2**64, -(2**63) - 1, 10**40])
def test_big_integers_survive(number: int) -> None:
    text = f'{{"sessionUpdate":"usage_update","used":{number},"size":1,"_meta":{{"n":{number}}}}}'
    update = update_of(text)
    assert update == v1.UsageUpdate(used=number, size=1, meta={"n": number})
    assert json.loads(encode(update)) == json.loads(text)


def test_an_integer_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(InvalidMessage, match=r"\$.update.used: integer value out of range"):
        update_of(f'{{"sessionUpdate":"usage_update","used":{"9" * 5000},"size":1}}')


# Import ------------------------------------------------------------------------------------------


def test_the_codec_does_not_import_any_protocol_version() -> None:
    code = (
        "import sys, dragoman.schema.codec;"
        "sys.exit(any(f'dragoman.schema.v{n}' in sys.modules for n in (1, 2)))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0
