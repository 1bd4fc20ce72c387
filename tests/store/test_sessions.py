"""What every store promises about the records of sessions."""

from __future__ import annotations

from pathlib import Path

import pytest
from store.stores import (
    Opens,
    acquire,
    batch,
    begin,
    fill,
    in_memory,
    in_postgres,
    on_disk,
    record,
    whole,
)

from dragoman.errors import NameTaken, SessionOwned, StoreError, UnknownSession
from dragoman.session.facts import Offer, SystemPrompt
from dragoman.store.records import (
    Kin,
    Said,
    SessionChange,
    SessionFilter,
    SessionRecord,
    Snapshot,
    utc,
)

FULL = SessionRecord(
    id="a-Z_9",
    agent="demo",
    cwd="/project",
    created_at=1.25,
    updated_at=2.5,
    name="mine",
    agent_session_id="theirs",
    title="A title",
    renamed=True,
    status="waiting",
    archived=True,
    parent="s0",
    additional_directories=["/a", '/ü "quoted"'],
    offer=Offer(terminals=False),
    system_prompt=SystemPrompt('Be "brief".\nThen stop.', "override"),
)


async def test_a_session_is_read_as_it_was_created(opens: Opens) -> None:
    async with opens() as store:
        await store.create_session(FULL)
        await store.create_session(record())
        assert await store.session("a-Z_9") == FULL
        assert await store.session("s") == record()


async def test_a_session_that_is_not_there_is_none(opens: Opens) -> None:
    async with opens() as store:
        assert await store.session("nobody") is None


async def test_all_sessions_are_told_with_their_parents(opens: Opens) -> None:
    async with opens() as store:
        for each in (FULL, record(), record("deleted")):
            await store.create_session(each)
        await store.delete_session("deleted")
        plain = record()
        assert {each.id: each for each in await store.kin()} == {
            "a-Z_9": Kin("a-Z_9", "s0", 1.25),
            "s": Kin("s", None, plain.created_at),
        }


async def test_a_store_has_the_same_id_whenever_it_is_opened(tmp_path: Path) -> None:
    ids: list[str] = []
    for folder in ("a", "a"):
        async with on_disk(tmp_path / folder) as store:
            ids.append(store.id)
    async with in_postgres(tmp_path / "one") as store, in_postgres(tmp_path / "one") as again:
        ids += [store.id, again.id]
    async with in_memory(tmp_path) as store:
        ids.append(store.id)
    assert (ids[0], ids[2], len(set(ids))) == (ids[1], ids[3], 3)


async def test_an_id_is_used_once(opens: Opens) -> None:
    async with opens() as store:
        await store.create_session(record())
        with pytest.raises(StoreError, match="session s already exists"):
            await store.create_session(record(cwd="/elsewhere"))


@pytest.mark.parametrize("bad", ["", ".", "../x", "a/b", "a b", "ä", "x" * 129, "a\n", "a\0b"])
async def test_an_id_that_could_not_be_a_file_name_is_refused(opens: Opens, bad: str) -> None:
    async with opens() as store:
        with pytest.raises(StoreError, match="is not a valid session id"):
            await store.create_session(record(bad))
        await store.create_session(record("x" * 128))


async def test_a_name_is_unique_in_its_folder(opens: Opens) -> None:
    async with opens() as store:
        await store.create_session(record("a", name="x"))
        await store.create_session(record("b", name="x", cwd="/elsewhere"))
        await store.create_session(record("c"))
        await store.create_session(record("d"))
        with pytest.raises(NameTaken) as caught:
            await store.create_session(record("e", name="x"))
        assert (caught.value.session_id, caught.value.name) == ("e", "x")
        with pytest.raises(NameTaken):
            await store.change_session("c", SessionChange(name="x", title="no"))
        assert await store.session("c") == record("c")
        assert await store.session("e") is None


async def test_only_what_is_given_changes(opens: Opens) -> None:
    async with opens() as store:
        await store.create_session(FULL)
        changed = await store.change_session("a-Z_9", SessionChange(title="B", archived=False))
        expected = SessionRecord(**{f: getattr(FULL, f) for f in FULL.__struct_fields__})
        expected.title, expected.archived = "B", False
        assert changed == expected == await store.session("a-Z_9")


async def test_none_clears_and_everything_can_change(opens: Opens) -> None:
    async with opens() as store:
        await store.create_session(FULL)
        everything = SessionChange(
            name=None,
            agent_session_id=None,
            title=None,
            renamed=False,
            status="closed",
            archived=False,
            updated_at=9.75,
        )
        changed = await store.change_session("a-Z_9", everything)
        assert (changed.name, changed.agent_session_id, changed.title) == (None, None, None)
        assert (changed.renamed, changed.status, changed.archived) == (False, "closed", False)
        assert changed.updated_at == 9.75
        assert changed.cwd == "/project"


async def test_what_is_not_there_cannot_be_changed(opens: Opens) -> None:
    async with opens() as store:
        with pytest.raises(UnknownSession, match="no such session: nobody"):
            await store.change_session("nobody", SessionChange(title="x"))


async def test_sessions_are_listed_newest_first_in_pages(opens: Opens) -> None:
    async with opens() as store:
        for number in range(7):
            await store.create_session(record(f"s{number}", updated_at=float(number // 2)))
        first = await store.sessions(SessionFilter(limit=3))
        second = await store.sessions(SessionFilter(limit=3, before=first[-1].id))
        third = await store.sessions(SessionFilter(limit=3, before=second[-1].id))
        listed = [each.id for each in (*first, *second, *third)]
        assert listed == ["s6", "s5", "s4", "s3", "s2", "s1", "s0"]
        with pytest.raises(UnknownSession):
            await store.sessions(SessionFilter(before="nobody"))


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (SessionFilter(), {"a", "b", "c"}),
        (SessionFilter(agent="x"), {"a"}),
        (SessionFilter(cwd="/b"), {"b"}),
        (SessionFilter(name="n"), {"a"}),
        (SessionFilter(agent_session_id="t"), {"c"}),
        (SessionFilter(status="closed"), {"b"}),
        (SessionFilter(archived=True), {"c"}),
        (SessionFilter(archived=False), {"a", "b"}),
        (SessionFilter(agent="demo", archived=False), {"b"}),
        (SessionFilter(agent="nobody"), set[str]()),
    ],
)
async def test_a_list_can_be_narrowed(opens: Opens, wanted: SessionFilter, found: set[str]) -> None:
    async with opens() as store:
        await store.create_session(record("a", agent="x", name="n"))
        await store.create_session(record("b", cwd="/b", status="closed"))
        await store.create_session(record("c", agent_session_id="t", archived=True))
        assert {each.id for each in await store.sessions(wanted)} == found


async def test_a_deleted_session_is_gone_with_all_it_had(opens: Opens) -> None:
    async with opens() as store:
        lease = await begin(store)
        other = await begin(store, "other")
        await store.append(lease, batch(1, 5, said=[Said(1, "user", "unrepeatable")]))
        await store.append(other, batch(1, 2, said=[Said(1, "user", "remaining")]))
        await store.save_snapshot(lease, Snapshot(5, b"state"))
        command = await store.send("s", b"{}")
        await store.release(lease)
        await store.delete_session("s")
        assert await store.session("s") is None
        assert await store.events("s") == []
        assert await store.snapshot("s") is None
        assert await store.search("unrepeatable") == []
        assert await store.owner("s") is None
        assert (await store.outcome(command)).state == "unknown"
        assert {event.session_id for event in await store.all_events()} == {"other"}
        assert len(await store.search("remaining")) == 1
        with pytest.raises(UnknownSession):
            await store.delete_session("s")


async def test_a_session_that_is_run_is_not_deleted(opens: Opens) -> None:
    async with opens() as store:
        lease = await begin(store)
        await store.append(lease, batch(1))
        with pytest.raises(SessionOwned, match="process 1 on here"):
            await store.delete_session("s")
        assert len(await whole(store)) == 1


async def test_a_session_whose_lease_ran_out_can_be_deleted(opens: Opens) -> None:
    async with opens() as store:
        await begin(store)
        await store.renew((await store.owned())[0][1], seconds=-1)
        await store.delete_session("s")
        assert await store.session("s") is None


async def test_id_and_name_are_free_after_a_deletion_and_positions_still_grow(
    opens: Opens,
) -> None:
    async with opens() as store:
        await store.create_session(record(name="n"))
        lease = await acquire(store)
        last = await store.append(lease, batch(1, 3))
        await store.release(lease)
        await store.delete_session("s")
        await store.create_session(record(name="n"))
        lease = await acquire(store)
        assert await store.append(lease, batch(1)) > last
        assert (await store.session("s")) is not None


async def test_those_that_nothing_has_happened_in_can_be_listed(opens: Opens) -> None:
    async with opens() as store:
        for number in range(1, 5):
            fields = {"updated_at": number, "cwd": f"/{number}"}
            await store.create_session(record(f"s{number}", **fields))
        found = await store.sessions(SessionFilter(unused_since=3))
        assert [each.id for each in found] == ["s2", "s1"]


async def test_a_session_has_a_size(opens: Opens) -> None:
    async with opens() as store:
        lease = await begin(store)
        assert await store.size_of("s") == 0
        sent = batch(1, 2, said=[Said(1, "user", "fünf")])
        await store.append(lease, sent)
        assert await store.size_of("s") == sum(map(len, sent.events)) + 5
        with pytest.raises(UnknownSession):
            await store.size_of("another")


async def test_a_long_session_is_deleted_whole(opens: Opens) -> None:
    async with opens() as store:
        lease = await begin(store)
        await fill(store, lease, 5000)
        await store.release(lease)
        await store.delete_session("s")
        assert await store.all_events() == []
        assert await store.last_position() == 5000


@pytest.mark.parametrize(("moment", "year"), [(1e20, "9999"), (-1e20, "1970"), (0.0, "1970")])
def test_a_moment_that_has_no_date_is_the_nearest_that_has_one(moment: float, year: str) -> None:
    assert utc(moment).isoformat().startswith(year)
