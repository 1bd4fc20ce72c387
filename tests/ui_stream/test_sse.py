from __future__ import annotations

import pytest
from support.ai_sdk_judge import RELEASES, Case, judge, stream_of

from dragoman.ui_stream import DONE, HEADERS, KEEP_ALIVE, encode
from dragoman.ui_stream.chunks import Data, Finish, Start, TextDelta


def test_a_chunk_is_one_event() -> None:
    chunk = TextDelta(id="t", delta="a\nb\r\u2028é")
    data = '{"type":"text-delta","id":"t","delta":"a\\nb\\r\u2028é"}'
    assert encode(chunk) == f"data: {data}\n\n".encode()


def test_the_end_the_heartbeat_and_the_headers() -> None:
    assert DONE == b"data: [DONE]\n\n"
    assert KEEP_ALIVE.startswith(b":")
    assert KEEP_ALIVE.endswith(b"\n\n")
    assert HEADERS["content-type"] == "text/event-stream"
    assert HEADERS["x-vercel-ai-ui-message-stream"] == "v1"
    assert "no-cache" in HEADERS["cache-control"]


@pytest.mark.parametrize("release", RELEASES)
def test_keys_that_the_sdk_refuses_get_another_name(release: int) -> None:
    data = {
        "__proto__": {"a": 1},
        "list": [{"constructor": {"prototype": {"b": 2}}}],
        "constructor": "of houses",
    }
    start, finish = Start(message_id="m"), Finish()
    [verdict] = judge([Case(release, [stream_of([start, Data("data-x", data), finish])])])
    assert verdict.problems == []
    assert verdict.message["parts"][0]["data"] == {
        "unsafe:__proto__": {"a": 1},
        "list": [{"unsafe:constructor": {"prototype": {"b": 2}}}],
        "constructor": "of houses",
    }
