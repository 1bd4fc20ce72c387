"""Export and import: what goes out comes in again, and what does not fit is named by its line."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from store.endings import ENDINGS, Ending
from store.stores import (
    ME,
    Opens,
    batch,
    begin,
    body,
    fill,
    in_memory,
    on_disk,
    record,
    renewed,
    whole,
)

from dragoman.errors import ConfigError, UnknownSession
from dragoman.session.content import Text
from dragoman.session.events import (
    AgentMessage,
    ElicitationRequested,
    Event,
    PermissionRequested,
    PromptQueued,
    PromptUnqueued,
    SessionOpened,
    TerminalStarted,
    TurnEnded,
    TurnLimited,
    TurnStarted,
)
from dragoman.session.facts import Parking
from dragoman.session.reduce import fold
from dragoman.session.state import SessionState
from dragoman.store.archive import exported, import_session, read_archive
from dragoman.store.base import Store
from dragoman.store.mirror_lines import header_line, is_header
from dragoman.store.records import (
    Batch,
    Imported,
    Lease,
    SessionChange,
    decode_event,
    encode_event,
)
from dragoman.store.sqlite.database import FILE_NAME, Database
from dragoman.store.sqlite.recovery import recover
from dragoman.store.transfer import copy_store


async def lines_of(store: Store, session_id: str = "s") -> list[bytes]:
    return [line async for line in exported(store, session_id)]


async def test_a_session_goes_out_and_comes_in_again(opens: Opens, tmp_path: Path) -> None:
    async with opens() as store, in_memory(tmp_path) as other:
        lease = await begin(store)
        asked = encode_event(TurnStarted("t", [Text("where is it")], seq=1))
        await store.append(lease, Batch(first_seq=1, events=[asked]))
        await fill(store, lease, 2499, after=1)
        done = encode_event(TurnEnded("t", stop_reason="end_turn", seq=2501))
        await store.append(lease, Batch(first_seq=2501, events=[done]))
        await store.change_session("s", SessionChange(title="T", name="n", status="running"))
        archive = read_archive(await lines_of(store))
        stored = await import_session(other, archive, "new", ME)
        assert [e.body for e in await whole(other, "new")] == [e.body for e in await whole(store)]
        assert (stored.id, stored.title, stored.name) == ("new", "T", "n")
        assert stored.last_seq == 2501
        # It is not pruned as one that nothing has happened in for long.
        assert abs(stored.updated_at - other.now()) < 60 < other.now() - archive.record.updated_at
        assert await other.session("new") == stored
        assert [(hit.session_id, hit.seq) for hit in await other.search("where")] == [("new", 1)]
        assert await other.owner("new") is None


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
async def test_the_status_is_what_the_events_say(opens: Opens, ending: Ending) -> None:
    async with opens() as store:
        lease = await begin(store)
        await store.append(lease, ending.batch())
        archive = read_archive(await lines_of(store))
        # A file may say anything, and nobody runs what it tells of.
        archive.record.status = "closed" if ending.status == "closed" else "running"
        assert (await import_session(store, archive, "new", ME)).status == ending.at_rest


async def test_a_mirror_is_an_archive(tmp_path: Path) -> None:
    async with on_disk(tmp_path) as store:
        lease = await begin(store)
        await fill(store, lease, 3)
        await store.change_session("s", SessionChange(title="first"))
    async with on_disk(tmp_path) as store:
        await store.change_session("s", SessionChange(title="second"))
        await fill(store, lease, 2, after=3)
    archive = read_archive((tmp_path / "sessions" / "s.jsonl").read_bytes().splitlines())
    assert archive.record.title == "second"
    assert archive.events == [body(seq) for seq in range(1, 6)]
    async with on_disk(tmp_path) as store:
        out = [line for line in await lines_of(store) if not is_header(line)]
        assert out == [event + b"\n" for event in archive.events]


async def test_what_is_not_there_is_not_exported(opens: Opens) -> None:
    async with opens() as store:
        with pytest.raises(UnknownSession):
            await lines_of(store, "nobody")


async def test_a_name_that_is_taken_is_left_out(opens: Opens) -> None:
    async with opens() as store:
        await store.create_session(record("s", name="n"))
        archive = read_archive(await lines_of(store))
        assert (await import_session(store, archive, "t", ME, cwd="/project")).name is None


async def test_a_file_chooses_no_folder(opens: Opens, tmp_path: Path) -> None:
    async with opens() as store, in_memory(tmp_path) as other:
        await store.create_session(
            msgspec.structs.replace(record("s"), cwd="/", additional_directories=["/etc"])
        )
        archive = read_archive([*await lines_of(store), EVENT])
        for target in (store, other):
            stored = await import_session(target, archive, "t", ME)
            assert (stored.cwd, stored.additional_directories) == ("", [])
            assert stored.imported == Imported("/", 1)
            assert await target.session("t") == stored
            # Imported once more it still says where it first came from.
            again = read_archive(await lines_of(target, "t"))
            assert (await import_session(target, again, "u", ME)).imported == Imported("/", 1)


async def test_the_fence_that_a_file_tells_of_is_not_around_the_imported_session(
    opens: Opens,
) -> None:
    fenced = SessionOpened("x", "/", "new", fence="namespaces", network=["example.com"], seq=1)
    async with opens() as store:
        lease = await begin(store)
        await store.append(lease, Batch(first_seq=1, events=[encode_event(fenced)]))
        await import_session(store, read_archive(await lines_of(store)), "new", ME)
        state = fold(SessionState(), [each.decode() for each in await whole(store, "new")])
        assert (state.session_id, state.fence, state.network) == ("x", None, None)


async def test_a_copy_and_a_recovery_are_no_imports(tmp_path: Path) -> None:
    """They keep the folder that a session has, and that it has none."""
    (here := tmp_path / "here").mkdir()
    (there := tmp_path / "there").mkdir()
    async with on_disk(here) as store:
        await store.create_session(record("s"))
        await import_session(store, read_archive([*await lines_of(store), EVENT]), "t", ME)
        async with on_disk(there) as other:
            await copy_store(store, other, ME, None)
            for session_id in ("s", "t"):
                assert await other.session(session_id) == await store.session(session_id)
            before = [await store.session(session_id) for session_id in ("s", "t")]
    (here / "dragoman.db").unlink()
    recover(here)
    async with on_disk(here) as store:
        assert [await store.session(session_id) for session_id in ("s", "t")] == before


HEAD = header_line(record())
EVENT = body(1) + b"\n"


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([], "line 1: expected the header of a session"),
        ([b"\n"], "line 1: expected the header of a session"),
        ([EVENT], "line 1: expected the header of a session"),
        (
            [b'{"dragoman":3,"session":%s}' % HEAD[24:-2]],
            "line 1: expected an archive of version 2 or earlier",
        ),
        (
            [b'{"dragoman":3,"session":{"new":"shape"}}'],
            "line 1: expected an archive of version 2 or earlier",
        ),
        (
            [b'{"dragoman":0,"session":%s}' % HEAD[24:-2]],
            "line 1: expected an archive of version 2 or earlier",
        ),
        ([b'{"dragoman":2,"session":{"id":"s"}}'], "line 1: expected the header of a session"),
        ([b'{"dragoman":1,"session":{"id":"s"}}'], "line 1: expected the header of a session"),
        ([HEAD, b"nonsense\n"], "line 2: expected a session event ("),
        ([HEAD, b'{"type":"surprise","seq":1}\n'], "line 2: expected a session event ("),
        ([HEAD, b"[" * 100_000], "line 2: expected a session event ("),
        ([HEAD, EVENT, EVENT], "line 3: expected event number 2, not 1"),
        ([HEAD, body(2)], "line 2: expected event number 1, not 2"),
        ([HEAD, EVENT, body(2)[:-5]], "line 3: expected a session event ("),
        ([HEAD, EVENT, HEAD, body(3)], "line 4: expected event number 2, not 3"),
        ([HEAD, b'\xff\xfe{"seq":1}'], "line 2: expected a session event ("),
        ([header_line(record(updated_at=1e20))], "line 1: expected a time between 1970 and 9999"),
        ([header_line(record(created_at=-1.0))], "line 1: expected a time between 1970 and 9999"),
        (
            [HEAD, b'{"type":"notice","seq":1,"at":1e300,"title":"x"}'],
            "line 2: expected a time between 1970 and 9999, not 1e+300",
        ),
    ],
)
def test_a_file_that_does_not_fit_is_an_error_at_its_line(lines: list[bytes], says: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_archive(lines, "x.jsonl")
    assert str(caught.value).startswith(f"x.jsonl: {says}")


def test_control_a_file_that_fits_is_taken_also_with_other_line_ends() -> None:
    assert read_archive([HEAD, EVENT, body(2) + b"\r\n"]).events == [body(1), body(2)]


def test_a_line_that_is_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.store.archive.MAX_LINE", 1000)
    with pytest.raises(ConfigError, match="line 2: expected a line of at most 1000 bytes"):
        read_archive([HEAD, body(1, "x" * 2000)])


async def test_an_import_that_fails_leaves_nothing(opens: Opens) -> None:
    async with opens() as store:
        # Two events that would not be one sequence cannot get this far, so the archive is changed.
        archive = read_archive([HEAD, EVENT])
        archive.events.append(b"nonsense")
        with pytest.raises(Exception, match=r"malformed|expected|invalid"):
            await import_session(store, archive, "t", ME)
        assert await store.session("t") is None
        assert await store.all_events() == []


async def test_an_import_is_seen_when_it_is_whole_and_nobody_waits_for_it(opens: Opens) -> None:
    async with opens() as store:
        lease = await begin(store)
        archive = read_archive([HEAD, *(body(seq) for seq in range(1, 2502))])
        archive.record.agent_session_id = "theirs"
        importing = asyncio.create_task(import_session(store, archive, "t", ME))
        written = 0
        while not importing.done():
            written += 1
            await store.append(lease, batch(written))
            seen = {event.session_id for event in await store.all_events(limit=9999)}
            before = await store.session("t")
            if before is not None and not before.last_seq:
                assert before.agent_session_id is None  # what is killed now is known by that
                assert seen == {"s"}
        assert written > 1  # while it was not done
        stored = await importing
        assert (stored.last_seq, stored.agent_session_id) == (2501, "theirs")
        assert [event.body for event in await whole(store, "t")] == archive.events


async def test_an_import_has_an_owner_from_its_first_moment_on(tmp_path: Path) -> None:
    """Where it is killed, its owner's lease says what is to be removed."""
    without = "SELECT count(*) FROM sessions WHERE key NOT IN (SELECT session FROM session_leases)"
    async with on_disk(tmp_path) as store:
        with closing(Database(str(tmp_path / FILE_NAME))) as db:
            seen = list[object]()
            end = store.on_change(lambda: seen.append(db.rows(without)[0][0]))
            await import_session(store, read_archive([HEAD, EVENT]), "t", ME)
            end()
    assert set(seen) == {0}


async def test_the_lease_of_a_long_import_does_not_run_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_disk(tmp_path) as store:
        fill = store.fill

        async def long(lease: Lease, batches: Iterable[Batch], change: SessionChange) -> int:
            await renewed(tmp_path)
            return await fill(lease, batches, change)

        monkeypatch.setattr(store, "fill", long)
        archive = read_archive([HEAD, EVENT])
        assert (await import_session(store, archive, "t", ME, lease_seconds=0.2)).last_seq == 1


def test_unknown_fields_of_an_event_are_kept_as_they_stood() -> None:
    newer = encode_event(AgentMessage(Text("x"), seq=1))[:-1] + b',"of_tomorrow":1}'
    assert read_archive([HEAD, newer]).events == [newer]


async def test_control_the_exported_lines_are_what_was_stored(opens: Opens) -> None:
    async with opens() as store:
        lease = await begin(store)
        await store.append(lease, batch(1, 2))
        assert (await lines_of(store))[1:] == [body(1) + b"\n", body(2) + b"\n"]


async def test_prompts_that_wait_in_a_file_are_dropped(opens: Opens) -> None:
    told = [
        PromptQueued("done", [Text("one")], seq=1),
        PromptUnqueued("done", seq=2),
        PromptQueued("waits", [Text("rm -rf /")], seq=3),
        PromptQueued("waits too", [Text("and then")], seq=4, at=5.0),
    ]
    async with opens() as store:
        archive = read_archive([HEAD, *map(encode_event, told)])
        stored = await import_session(store, archive, "t", ME)
        assert stored.last_seq == 6
        events = [decode_event(each.body) for each in await whole(store, "t")]
        assert events[4:] == [
            PromptUnqueued("waits", dropped=True, seq=5, at=5.0),
            PromptUnqueued("waits too", dropped=True, seq=6, at=5.0),
        ]
        assert fold(SessionState(), events).queue == []


async def test_what_a_file_left_open_is_ended_with_the_import(opens: Opens) -> None:
    told: list[Event] = [
        TurnStarted("t", [Text("hi")], seq=1),
        ElicitationRequested("f", "sign in", mode="url", url="https://evil.example/", seq=2),
        PermissionRequested("q", [], seq=3),
        TerminalStarted("mine", ["sh"], "/", seq=4, at=5.0),
    ]
    async with opens() as store:
        stored = await import_session(
            store, read_archive([HEAD, *map(encode_event, told)]), "t", ME
        )
        events = [decode_event(each.body) for each in await whole(store, "t")]
        state = fold(SessionState(), events)
        assert (state.pending, state.turn, stored.status) == ({}, None, "interrupted")
        assert not any(terminal.running for terminal in state.terminals.values())
        assert [(each.seq, each.at) for each in events[4:]] == [(n, 5.0) for n in (5, 6, 7, 8)]
        assert stored.imported == Imported("/project", 4)


async def test_a_prompt_that_is_parked_in_a_file_is_not_sent(opens: Opens) -> None:
    parked = Parking("t", [Text("theirs")], "rate", resumes_at=1.0)
    told: list[Event] = [
        TurnStarted("t", [Text("theirs")], seq=1),
        TurnLimited("limit", turn_id="t", kind="rate", parked=parked, seq=2),
        TurnEnded("t", error="limit", seq=3),
    ]
    async with opens() as store:
        archive = read_archive([HEAD, *map(encode_event, told)])
        stored = await import_session(store, archive, "t", ME)
        state = fold(SessionState(), [decode_event(each.body) for each in await whole(store, "t")])
    assert (state.parked, stored.status) == (None, "idle")


async def test_a_conversation_that_another_session_has_is_not_taken(opens: Opens) -> None:
    async with opens() as store:
        archive = read_archive([HEAD, body(1)])
        archive.record.agent_session_id = "theirs"
        assert (await import_session(store, archive, "t", ME)).agent_session_id == "theirs"
        assert (await import_session(store, archive, "u", ME)).agent_session_id is None
        archive.record.agent = "another"
        assert (await import_session(store, archive, "v", ME)).agent_session_id == "theirs"
