"""What a recorder writes is what went over the wire, and can be read back."""

from __future__ import annotations

import stat
from pathlib import Path

import msgspec
import pytest
from support.peers import tidy_loop

from dragoman import Client
from dragoman.errors import ConfigError
from dragoman.events import AgentMessage, TurnEnded
from dragoman.testing import Line, Recorder, Recording, ScriptedAgent, load_recording
from dragoman.testing.steps import say


async def test_a_recording_holds_every_frame_both_ways(tmp_path: Path) -> None:
    path, seen = tmp_path / "r.jsonl", list[tuple[str, bytes]]()
    with Recorder(path) as recorder:

        def tap(direction: str, frame: bytes) -> None:
            seen.append(("->" if direction == "sent" else "<-", frame))
            recorder("sent" if direction == "sent" else "received", frame)

        async with (
            tidy_loop(),
            Client.start(ScriptedAgent([say("é\u2028")]).connect(), tap=tap) as c,
        ):
            await (await c.new_session(tmp_path)).prompt("hi")
    lines = load_recording(path).lines
    assert [(line.dir, line.frame) for line in lines] == seen
    assert len(seen) == 7
    assert [line.t for line in lines] == sorted(line.t for line in lines)


@pytest.mark.parametrize(
    "frame",
    [
        b'{"jsonrpc": "2.0",  "id":1.0, "result" : {"a":[1e5, "\\u00e9"]}}',
        '{"text":"\u2028\u2029\x85"}'.encode(),
        b'{"a":1}\r',
        b'{"a":1,"a":2}',
    ],
)
def test_a_frame_stands_in_the_file_byte_for_byte(frame: bytes, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with Recorder(path) as recorder:
        recorder("received", frame)
    assert frame in path.read_bytes()
    assert msgspec.json.decode(path.read_bytes())["dir"] == "<-"
    assert load_recording(path).frames[0].frame == frame.strip()


@pytest.mark.parametrize(
    "frame", [b'{"a":NaN}', b'{"a":"\xff"}', b'{"a":"\\ud83d"}', b'{"a":', b"[" * 5000]
)
def test_a_frame_that_is_no_json_is_kept_all_the_same(frame: bytes, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with Recorder(path) as recorder:
        recorder("sent", frame)
    msgspec.json.decode(path.read_bytes())
    assert load_recording(path).frames[0].frame == frame


def test_a_recording_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.touch(mode=0o644)
    Recorder(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_notes_are_kept_apart_from_frames(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text(
        '{"t": 0, "dir": "spawn", "cmd": ["agent"], "cwd": "/project"}\n'
        '{"t": 0.5, "dir": "->", "msg": {"id": 1}}\n'
        '{"t": 1, "dir": "stderr", "raw": "hm"}\n\n'
        '{"t": 2, "dir": "note", "text": "3 more left out"}\n'
        '{"t": 3, "dir": "eof"}\n'
    )
    recording = load_recording(path)
    assert [line.dir for line in recording.lines] == ["spawn", "->", "stderr", "note", "eof"]
    assert recording.frames == (Line(0.5, "->", b'{"id": 1}'),)


def test_a_last_line_cut_off_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"t":0,"dir":"->","msg":{}}\n{"t":1,"dir":"<-","ms')
    assert len(load_recording(path).lines) == 1


@pytest.mark.parametrize("line", ["not JSON", "[]", '{"t":1}', '{"dir":"<-","bytes":"?"}'])
def test_a_line_of_something_else_is_an_error_that_says_where(line: str, tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    path.write_text('{"t":0,"dir":"->","msg":{}}\n' + line + "\n")
    with pytest.raises(ConfigError, match="line 2"):
        load_recording(path)


@pytest.mark.parametrize("protocol", [1, 2])
async def test_a_recording_gives_the_events_of_its_sessions(protocol: int, tmp_path: Path) -> None:
    agent = ScriptedAgent([say("hello")])
    with Recorder(tmp_path / "r.jsonl") as recorder:
        transport = agent.connect()
        async with tidy_loop(), Client.start(transport, tap=recorder, protocol=protocol) as client:
            session = await client.new_session(tmp_path)
            await session.prompt("hi")
    recorded = list(load_recording(tmp_path / "r.jsonl").events())
    said = [each.event.text for each in recorded if isinstance(each.event, AgentMessage)]
    assert "".join(said) == "hello"
    assert isinstance(recorded[-1].event, TurnEnded)
    assert recorded[-1].state.session_id == session.id
    assert [entry.text for entry in recorded[-1].state.entries] == ["hi", "hello"]


def test_a_frame_that_cannot_be_read_gives_no_events() -> None:
    assert list(Recording((Line(0.0, "<-", b"noise"), Line(0.0, "note"))).events()) == []
