"""The frames to an agent, for people who look: in order, within bounds, without secrets."""

from __future__ import annotations

import json
from pathlib import Path

from support.cost import Memory
from support.serving import served

from dragoman.client.redaction import BLANK
from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import say
from dragoman.web.streams.frame_ring import MAX_BYTES, MAX_FRAME_BYTES, Frames

SECRET = "s3cr3t-canary"


def test_what_may_be_secret_is_blanked_before_it_is_kept() -> None:
    kept = Frames()
    servers = [{"name": "a", "url": f"https://{SECRET}@a", "headers": {"KEY": SECRET}}]
    new = {"jsonrpc": "2.0", "id": 7, "method": "session/new", "params": {"mcpServers": servers}}
    kept("sent", json.dumps(new).encode())
    kept("received", b'{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{}}')
    answer = {"jsonrpc": "2.0", "id": 7, "result": {"action": "accept", "content": {"k": SECRET}}}
    kept("sent", json.dumps(answer).encode())
    texts = [frame.text for frame in kept.of(None, 0)]
    assert SECRET not in "".join(texts)
    assert json.loads(texts[2])["result"] == {"action": "accept", "content": {"k": BLANK}}


def test_a_large_frame_is_cut_and_one_with_secrets_is_not_shown_at_all() -> None:
    kept = Frames()
    kept("received", b'{"x":"' + b"y" * MAX_FRAME_BYTES + b'"}')
    kept("sent", b'{"env":{"KEY":"' + SECRET.encode() * MAX_FRAME_BYTES + b'"}}')
    large, secret = kept.of(None, 0)
    assert (len(large.text), large.cut) == (MAX_FRAME_BYTES, True)
    assert (secret.text, secret.cut) == ("", True)


def test_what_is_no_json_does_not_hurt() -> None:
    kept = Frames()
    for frame in (b"", b"nonsense", b"[]", b'{"env": broken', b"\xff\xfe", b'{"id": 1.5}'):
        kept("received", frame)
    assert len(list(kept.of(None, 0))) == 6


def test_only_so_much_is_kept() -> None:
    kept = Frames()
    for number in range(40):
        kept("sent", b'{"n":%d,"x":"%b"}' % (number, b"y" * 60_000))
    assert sum(len(frame.text) for frame in kept.of(None, 0)) <= MAX_BYTES
    assert kept.lost(0)
    assert not kept.lost(kept.last)


def test_long_ids_and_methods_are_not_kept_whole() -> None:
    kept = Frames()
    told = b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"%d%b"}}'
    asked = b'{"jsonrpc":"2.0","id":%d,"method":"%b","params":{"sessionId":"%b"}}'
    with Memory() as memory:
        for number in range(10):
            kept("received", told % (number, b"z" * 2_000_000))
            kept("received", asked % (number, b"m" * 2_000_000, b"z" * 2_000_000))
    assert memory.left < 4 * MAX_BYTES


def test_small_frames_count_for_what_they_take() -> None:
    kept = Frames()
    with Memory() as memory:
        for _ in range(30_000):
            kept("received", b"{}")
    assert memory.left < 2 * MAX_BYTES


def test_a_session_with_a_long_id_shows_its_own_frames() -> None:
    kept = Frames()
    name = "z" * 5_000
    frame = {"jsonrpc": "2.0", "method": "x", "params": {"sessionId": name}}
    kept("received", json.dumps(frame).encode())
    assert len(list(kept.of(name, 0))) == 1
    assert not list(kept.of("other", 0))


async def test_a_session_shows_its_own_frames_and_no_others(tmp_path: Path) -> None:
    async with served(tmp_path, {"scripted": ScriptedAgent([say("hello")])}) as web:
        one, other = await web.new_session(), await web.new_session()
        await web.done(one, "for the first")
        await web.done(other, "for the other")
        path = f"/api/sessions/{one}/frames"
        found = await web.call("GET", path)
        text = "".join(frame["text"] for frame in found["frames"])
        assert "for the first" in text
        assert "for the other" not in text
        assert '"initialize"' in text
        assert {frame["direction"] for frame in found["frames"]} == {"sent", "received"}
        more = await web.call("GET", f"{path}?after={found['last']}")
        assert (more["frames"], more["last"]) == ([], found["last"])
        page = await web.call("GET", f"{path}?limit=2")
        assert page["last"] == page["frames"][1]["seq"]
        await web.call("POST", f"/api/sessions/{one}/close")
        assert (await web.call("GET", path))["frames"] == []
