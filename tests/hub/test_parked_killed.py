"""A parked prompt whose process is killed: the agent gets it once more, and never twice."""

from __future__ import annotations

import asyncio
import random
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import msgspec
import pytest
from support.clients import until
from support.hubs import dead_process, stored
from support.parking import Limited, events_of, host_on, hub_of, parked_in
from support.postgres import empty_database

from dragoman.host.snapshots.snapshots import Snapshots
from dragoman.hub.cluster import commands as c
from dragoman.hub.hub import Hub
from dragoman.schema import codec, v1
from dragoman.session import events as e
from dragoman.session.content import Text
from dragoman.session.facts import RootSnapshot
from dragoman.session.reduce import fold
from dragoman.session.state import SessionState
from dragoman.store.base import Store
from dragoman.store.open import open_store
from dragoman.store.postgres.store import open_postgres
from dragoman.store.records import Batch, SessionChange, encode_events
from dragoman.testing.demo.demo_agent import StoredSessions
from dragoman.testing.scripted_agent import EVERYTHING

PROGRAM = Path(__file__).parent / "programs" / "parked_host.py"
SECONDS = 240.0
LOOK_SECONDS = 0.1
SEED = 24
RESUMES = msgspec.structs.replace(EVERYTHING, load_session=False)


# ── what is found out ───────────────────────────────────────────────────────────────────────────


class Killed:
    """A session whose process was killed when it had just sent what was parked, or later."""

    def __init__(self, store: Store, folder: Path, agent: Limited) -> None:
        self.store = store
        self.folder = folder
        self.agent = agent
        self.snapshots = Snapshots(folder.parent / "snapshots")
        self.id = ""

    async def park(self) -> None:
        async with self.hub() as hub:
            self.id = (await parked_in(hub, self.folder)).id

    def hub(self) -> Hub:
        return hub_of(self.store, self.agent, snapshots=self.snapshots)

    @asynccontextmanager
    async def host(self) -> AsyncGenerator[Hub]:
        """It has found what the process left."""
        async with host_on(self.store, self.agent, snapshots=self.snapshots) as hub:
            await hub.maintenance.recover()
            yield hub

    async def take(self) -> list[RootSnapshot]:
        return await self.snapshots.take([str(self.folder)], self.id)

    async def send(self, turn_id: str, *more: e.Event, sent: bool = True) -> None:
        """As that process did, until it was killed."""
        lease = await self.store.acquire(self.id, dead_process(), seconds=60, gone=lambda _: False)
        before = fold(SessionState(), await events_of(self.store, self.id))
        assert before.parked is not None
        events: list[e.Event] = [
            e.TurnStarted(turn_id, before.parked.content),
            e.WorkspaceSnapshot("turn_start", turn_id, await self.take()),
        ]
        if sent:
            told = e.ParkingChanged(
                "sent", parking_id=before.parked.id, outcome="continued", turn_id=turn_id
            )
            events.append(told)
        first = before.last_seq + 1
        for seq, event in enumerate([*events, *more], first):
            event.seq = seq
        change = SessionChange(status="running")
        batch = Batch(first_seq=first, events=encode_events([*events, *more]), change=change)
        await self.store.append(lease, batch)

    def arrives(self) -> None:
        """The agent has recorded it."""
        session = next(iter(self.agent.agent.sessions.values()))
        chunk = v1.UserMessageChunk(content=v1.TextContent(text="fix it"), message_id="again")
        session.history.append(msgspec.Raw(codec.encode(chunk)))

    async def told(self) -> list[str]:
        """Notices, since what was parked was sent."""
        events = await events_of(self.store, self.id)
        return [each.title for each in events if isinstance(each, e.Notice)][1:]


@asynccontextmanager
async def killed_in(tmp_path: Path, agent: Limited | None = None) -> AsyncGenerator[Killed]:
    folder = tmp_path / "project"
    folder.mkdir()
    async with stored(tmp_path) as store:
        killed = Killed(store, folder, agent or Limited())
        await killed.park()
        yield killed


async def taken_up(hub: Hub, killed: Killed) -> None:
    """What was in doubt, and now is not."""
    await hub.parked.take_up()
    live = hub.live[killed.id]

    def is_found_out() -> bool:
        parked = live.state.parked
        return not live.session.busy and (parked is None or parked.resumes_at is None)

    await until(is_found_out)
    await live.recording.settled()


async def test_what_is_not_in_the_history_and_left_no_trace_is_sent_again(tmp_path: Path) -> None:
    async with killed_in(tmp_path) as killed:
        await killed.send("last")
        async with killed.host() as hub:
            parked = (await hub.state(killed.id)).parked
            assert parked is not None
            assert (parked.id, parked.is_doubted, parked.attempt) == ("last", True, 1)
            assert (await hub.record(killed.id)).status == "parked"
            await taken_up(hub, killed)
            assert killed.agent.prompts == ["fix it", "fix it"]
            assert (await hub.state(killed.id)).parked is None
            assert "the agent does not have the parked prompt: it is sent again" in (
                await killed.told()
            )


async def test_what_is_in_the_history_is_not_sent_again(tmp_path: Path) -> None:
    """Its turn is interrupted, like any other; what waited behind it is sent."""
    async with killed_in(tmp_path) as killed:
        await killed.send("last", e.PromptQueued("next", [Text("and this")]))
        killed.arrives()
        async with killed.host() as hub:
            await taken_up(hub, killed)
            await until(lambda: hub.live[killed.id].idle)
            assert killed.agent.prompts == ["fix it", "and this"]
            turns = {each.id: each.status for each in hub.live[killed.id].state.turns}
            assert turns["last"] == "interrupted"
            assert "the agent already has the parked prompt: it is not sent again" in (
                await killed.told()
            )


async def decided_by_a_person(hub: Hub, killed: Killed) -> None:
    """Nothing runs by itself; then someone has it sent."""
    before = list(killed.agent.prompts)
    await taken_up(hub, killed)
    assert (await hub.record(killed.id)).status == "waiting"
    assert (await killed.told())[-1] == "it is not known whether the agent has the parked prompt"
    await hub.parked.take_up()
    assert killed.agent.prompts == before
    await hub.send(killed.id, c.ContinueParked())
    await until(lambda: hub.live[killed.id].idle)
    assert killed.agent.prompts == [*before, "fix it"]


async def test_a_person_decides_if_the_agent_can_only_resume(tmp_path: Path) -> None:
    async with killed_in(tmp_path, Limited(capabilities=RESUMES)) as killed:
        await killed.send("last")
        async with killed.host() as hub:
            await decided_by_a_person(hub, killed)


async def test_a_person_who_says_so_while_no_process_runs_it_is_heard(tmp_path: Path) -> None:
    async with killed_in(tmp_path, Limited(capabilities=RESUMES)) as killed:
        await killed.send("last")
        async with killed.host() as hub:
            await taken_up(hub, killed)
        async with killed.host() as hub:
            await hub.parked.schedule(killed.id, now=True)
            await hub.parked.take_up()
            await until(lambda: hub.live[killed.id].idle)
            assert killed.agent.prompts == ["fix it", "fix it"]


async def test_a_person_decides_if_something_in_the_folder_has_changed(tmp_path: Path) -> None:
    """Some agents record what they are asked only once they have answered."""
    async with killed_in(tmp_path) as killed:
        await killed.send("last")
        (killed.folder / "new").write_text("by the agent, perhaps")
        async with killed.host() as hub:
            await decided_by_a_person(hub, killed)


async def test_a_person_decides_without_snapshots(tmp_path: Path) -> None:
    async with killed_in(tmp_path) as killed:
        await killed.send("last")
        async with host_on(killed.store, killed.agent) as hub:
            await hub.maintenance.recover()
            await decided_by_a_person(hub, killed)


async def test_a_person_decides_if_the_folder_could_not_be_read(tmp_path: Path) -> None:
    async with killed_in(tmp_path) as killed:
        unread = [RootSnapshot(root=str(killed.folder), problem="it is too large")]
        await killed.send("last", e.WorkspaceSnapshot("turn_start", "last", unread))
        async with killed.host() as hub:
            await decided_by_a_person(hub, killed)


async def test_a_person_decides_if_the_history_is_another_one(tmp_path: Path) -> None:
    async with killed_in(tmp_path) as killed:
        await killed.send("last")
        killed.arrives()
        killed.arrives()
        async with killed.host() as hub:
            await decided_by_a_person(hub, killed)


async def test_what_was_not_sent_before_the_kill_still_waits(tmp_path: Path) -> None:
    async with killed_in(tmp_path) as killed:
        await killed.send("cut", sent=False)
        async with killed.host() as hub:
            parked = (await hub.state(killed.id)).parked
            assert parked is not None
            assert not parked.is_doubted
            *_, told = await killed.told()
            assert told == "the process has ended before it sent the parked prompt"
            await hub.send(killed.id, c.ContinueParked())
            await until(lambda: hub.live[killed.id].idle)
            assert killed.agent.prompts == ["fix it", "fix it"]


@pytest.mark.parametrize("has_arrived", [False, True])
async def test_killed_again_and_again_it_is_found_out_each_time(
    tmp_path: Path, has_arrived: bool
) -> None:
    async with killed_in(tmp_path) as killed:
        await killed.send("first")
        async with killed.hub() as hub:
            await hub.maintenance.recover()
        await killed.send("second", sent=False)
        async with killed.hub() as hub:
            await hub.maintenance.recover()
        told = e.ParkingChanged(
            "unsent", parking_id="first", outcome="waiting", resumes_at=1.0, turn_id="first"
        )
        lease = await killed.store.acquire(
            killed.id, dead_process(), seconds=60, gone=lambda _: False
        )
        told.seq = (await events_of(killed.store, killed.id))[-1].seq + 1
        batch = Batch(first_seq=told.seq, events=encode_events([told]), change=SessionChange())
        await killed.store.append(lease, batch)
        await killed.store.release(lease)
        await killed.send("third")
        if has_arrived:
            killed.arrives()
        async with killed.host() as hub:
            await taken_up(hub, killed)
            assert killed.agent.prompts == ["fix it"] * (1 if has_arrived else 2)


@pytest.mark.parametrize(
    "said",
    [
        e.AgentMessage(Text("I begin")),
        e.ToolCallUpdated("call", title="Look", status="pending"),
        e.FileWritten("/tmp/a", "b"),
        e.TurnCancelling("last"),
    ],
)
async def test_what_the_agent_has_begun_or_a_person_has_stopped_is_not_parked_again(
    tmp_path: Path, said: e.Event
) -> None:
    async with killed_in(tmp_path) as killed:
        await killed.send("last", said)
        async with killed.host() as hub:
            assert (await hub.state(killed.id)).parked is None
            assert (await hub.record(killed.id)).status == "interrupted"


# ── kill -9 ─────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def host(folder: Path, store: str, *words: str) -> Generator[str]:
    """A host as a process, killed in the end; the session that it has begun."""
    command = [sys.executable, str(PROGRAM), str(folder), store, *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().removeprefix("session ").strip()
        finally:
            process.send_signal(signal.SIGKILL)


async def killed_once(folder: Path, address: str | None, after: float, hosts: int) -> None:
    """Kill the first host so many seconds after it has parked the prompt. Whatever it was doing,
    the agent gets the prompt once more, and nobody has to decide."""
    place = address or str(folder / "store")
    with host(folder, place, "begin") as session_id:
        await asyncio.sleep(after)
    store: Store = await (
        open_store(folder / "store") if address is None else open_postgres(address, folder / "own")
    )
    try:
        with ExitStack() as others:
            for _ in range(hosts):
                others.enter_context(host(folder, place))
            await settled(store, session_id)
    finally:
        await store.aclose()
    assert received_in(folder) == ["fix it", "fix it"]


def received_in(folder: Path) -> list[str]:
    """The prompts that the agent has recorded, which it does before anything else."""
    (session,) = StoredSessions(str(folder / "agent")).values()
    told = [msgspec.json.decode(each) for each in session.history]
    return [x["content"]["text"] for x in told if x["sessionUpdate"] == "user_message_chunk"]


async def settled(store: Store, session_id: str) -> None:
    """Until nothing runs and nothing waits."""
    for _ in range(int(SECONDS / LOOK_SECONDS)):
        state = fold(SessionState(), await events_of(store, session_id))
        if state.turn is None and state.parked is None:
            return
        await asyncio.sleep(LOOK_SECONDS)
    raise AssertionError([type(each).__name__ for each in await events_of(store, session_id)])


async def check_kills(folder: Path, database: str, hosts: int, batch: int, times: int) -> None:
    dice = random.Random(f"{SEED} {database} {hosts} {batch}")
    for number in range(times):
        place = folder / str(number)
        place.mkdir()
        address = empty_database() if database == "postgresql" else None
        await killed_once(place, address, dice.uniform(0.0, 0.9), hosts)


WHERE = pytest.mark.parametrize(
    ("database", "hosts"),
    [("sqlite", 1), ("sqlite", 2), ("postgresql", 1), ("postgresql", 2)],
)


@WHERE
async def test_killed_while_parked_and_while_resuming(
    tmp_path: Path, database: str, hosts: int
) -> None:
    await check_kills(tmp_path, database, hosts, -1, 1)


@pytest.mark.soak
@pytest.mark.within(900)
@pytest.mark.parametrize("batch", range(20))
@WHERE
async def test_killed_two_hundred_times(
    tmp_path: Path, database: str, hosts: int, batch: int
) -> None:
    """Ten times in each of twenty batches, in each setting."""
    await check_kills(tmp_path, database, hosts, batch, 10)
