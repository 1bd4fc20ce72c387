"""What was spent since a moment: by how much the sums that agents told have grown."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from page.seeding import Teller, told_session

from dragoman.hub.cluster.owner import is_gone, this_process
from dragoman.session.content import Text
from dragoman.session.events import AgentMessage, Event, UsageChanged
from dragoman.session.facts import Cost
from dragoman.store.archive import Archive, import_session
from dragoman.store.open import open_store
from dragoman.store.records import Batch, SessionRecord, encode_event
from dragoman.web.spent_today import Costs

HOUR = 3600.0


def _paid(amount: float, currency: str = "USD", *, replay: bool = False) -> Event:
    return UsageChanged(10, 100, Cost(amount, currency), replay=replay)


async def _told(teller: Teller, *events: Event, hours_ago: float = 0.0) -> None:
    await teller.tell(events, at=time.time() - hours_ago * HOUR)


async def _since(home: Path, hours_ago: float) -> dict[str, float]:
    store = await open_store(home)
    try:
        return await Costs(store).since(time.time() - hours_ago * HOUR)
    finally:
        await store.aclose()


async def test_what_grew_since_the_moment_counts(tmp_path: Path) -> None:
    async with told_session(tmp_path, "a", tmp_path, created_at=1.0) as teller:
        await _told(teller, _paid(1.0), _paid(4.0), hours_ago=30)
        await _told(teller, *[AgentMessage(Text("word "))] * 40, hours_ago=30)
        await _told(teller, _paid(4.5), UsageChanged(11, 100), _paid(5.0))
    async with told_session(tmp_path, "b", tmp_path) as teller:
        await _told(teller, _paid(0.25), _paid(3.0, "EUR"))
    assert await _since(tmp_path, 1) == pytest.approx({"USD": 1.25, "EUR": 3.0})
    assert await _since(tmp_path, 1e4) == pytest.approx({"USD": 5.25, "EUR": 3.0})


async def test_a_sum_that_was_begun_anew_counts_whole(tmp_path: Path) -> None:
    async with told_session(tmp_path, "a", tmp_path) as teller:
        await _told(teller, _paid(2.0), _paid(0.5), _paid(0.75))
    assert await _since(tmp_path, 1) == pytest.approx({"USD": 2.75})


async def test_what_an_agent_tells_again_was_paid_before(tmp_path: Path) -> None:
    async with told_session(tmp_path, "a", tmp_path) as teller:
        await _told(teller, _paid(2.0, replay=True), _paid(2.5))
    assert await _since(tmp_path, 1) == pytest.approx({"USD": 0.5})


async def test_a_fork_does_not_pay_for_its_parent(tmp_path: Path) -> None:
    async with told_session(tmp_path, "parent", tmp_path, created_at=1.0) as teller:
        await _told(teller, _paid(2.0), hours_ago=0.01)
    async with told_session(tmp_path, "child", tmp_path, parent="parent") as teller:
        await _told(teller, _paid(2.0), hours_ago=0.01)
        await _told(teller, _paid(2.25))
    assert await _since(tmp_path, 1) == pytest.approx({"USD": 2.25})


async def test_nor_does_one_that_was_imported(tmp_path: Path) -> None:
    now = time.time()
    record = SessionRecord(
        id="theirs", agent="it", cwd="/", created_at=now - 1, updated_at=now, parent="gone"
    )
    told = [(_paid(2.0), now - 2), (_paid(2.25), now)]
    for seq, (event, at) in enumerate(told, 1):
        event.seq, event.at = seq, at
    store = await open_store(tmp_path)
    try:
        archive = Archive(record, [encode_event(event) for event, _ in told])
        await import_session(store, archive, "s-1", this_process())
        costs = Costs(store)
        assert await costs.since(now - HOUR) == {}
        lease = await store.acquire("s-1", this_process(), seconds=60, gone=is_gone)
        paid = _paid(2.75)
        paid.seq, paid.at = 3, time.time()
        await store.append(lease, Batch(first_seq=3, events=[encode_event(paid)]))
        assert await costs.since(now - HOUR) == pytest.approx({"USD": 0.5})
        assert await Costs(store).since(now - HOUR) == pytest.approx({"USD": 0.5})
    finally:
        await store.aclose()


async def test_each_event_counts_once_however_often_one_asks(tmp_path: Path) -> None:
    store = await open_store(tmp_path)
    costs = Costs(store)
    since = time.time() - HOUR
    try:
        async with told_session(tmp_path, "a", tmp_path) as teller:
            await _told(teller, _paid(2.0), _paid(0.5))
            assert await costs.since(since) == pytest.approx({"USD": 2.5})
            assert await costs.since(since) == pytest.approx({"USD": 2.5})
            await _told(teller, _paid(1.0))
            assert await costs.since(since) == pytest.approx({"USD": 3.0})
        assert await costs.since(time.time() + HOUR) == {}
    finally:
        await store.aclose()


async def test_what_is_no_sum_of_money_does_not_count(tmp_path: Path) -> None:
    async with told_session(tmp_path, "a", tmp_path) as teller:
        odd = [_paid(amount) for amount in (1.7e308, 0.0, 1.7e308, -10.0)]
        await _told(teller, *odd, _paid(1.0, "x" * 1_000), _paid(1.0, ""), _paid(2.0))
    assert await _since(tmp_path, 1) == pytest.approx({"USD": 2.0})


async def test_a_session_is_paid_in_a_few_currencies_at_most(tmp_path: Path) -> None:
    async with told_session(tmp_path, "a", tmp_path) as teller:
        await _told(teller, *(_paid(1.0, f"{number}") for number in range(1_000)))
        await _told(teller, _paid(3.0, "0"))
    found = await _since(tmp_path, 1)
    assert (len(found), found["0"]) == (16, 3.0)
