"""The frames to an agent, for people who look: in order, within bounds, without secrets."""

from __future__ import annotations

import json
from pathlib import Path

from support.serving import served

from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import say
from dragoman.web.frames import BLANK, MAX_BYTES, MAX_FRAME_BYTES, Frames

SECRET = "s3cr3t-canary"


def shown(*frames: object, direction: str = "sent") -> list[str]:
    kept = Frames()
    for frame in frames:
        kept("sent" if direction == "sent" else "received", json.dumps(frame).encode())
    return [frame.text for frame in kept.of(None, 0)]


def test_variables_headers_and_arguments_of_servers_are_blanked() -> None:
    servers = [
        {"name": "a", "command": "x", "args": [SECRET], "env": [{"name": "KEY", "value": SECRET}]},
        {"type": "http", "name": "b", "url": "https://b", "headers": {"Authorization": SECRET}},
    ]
    for method in ("session/new", "session/load", "session/resume", "session/fork"):
        params = {"cwd": "/", "mcpServers": servers}
        [text] = shown({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        assert SECRET not in text
        found = json.loads(text)["params"]["mcpServers"]
        assert found[0]["env"] == [{"name": "KEY", "value": BLANK}]
        assert found[1]["headers"] == {"Authorization": BLANK}
        assert (found[0]["name"], found[0]["command"]) == ("a", "x")


def test_variables_of_commands_are_blanked_and_their_words_are_not() -> None:
    params = {"command": "x", "args": ["-v"], "env": [{"name": "KEY", "value": SECRET}]}
    frame = {"jsonrpc": "2.0", "id": 1, "method": "terminal/create", "params": params}
    [text] = shown(frame, direction="received")
    assert SECRET not in text
    assert json.loads(text)["params"]["args"] == ["-v"]


def test_what_a_person_typed_into_a_form_is_blanked() -> None:
    kept = Frames()
    kept("received", b'{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{}}')
    answer = {"jsonrpc": "2.0", "id": 7, "result": {"action": "accept", "content": {"k": SECRET}}}
    kept("sent", json.dumps(answer).encode())
    texts = [frame.text for frame in kept.of(None, 0)]
    assert SECRET not in texts[1]
    assert '"accept"' in texts[1]


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
