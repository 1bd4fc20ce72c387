"""What runs inside a fence is seen, stopped by rules about its words, and asked about."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Generator
from pathlib import Path

import pytest
from support.clients import until
from support.descriptor_shortage import room_to_spare

from dragoman.errors import StartError
from dragoman.fence.plan import FencePlan
from dragoman.host.fence.fence import Fence
from dragoman.host.fence.fence_terms import FenceMode
from dragoman.host.fence.floor import FencePlace, FenceWay, Floor, PlaceMode, floor_for
from dragoman.host.fence.overseer import SECONDS_BETWEEN, Overseer, ProgramLog
from dragoman.host.fence.tree_gate import Surface
from dragoman.host.permissions.consent import Consent
from dragoman.host.permissions.questions import PermissionRequest
from dragoman.host.rules.policy import Policy, Rule
from dragoman.host.workspace.roots import Workspace
from dragoman.process.child import ExitStatus
from dragoman.process.spawn import spawn
from dragoman.session import events as e
from dragoman.session.facts import ProgramRun
from dragoman.session.reduce import reduce
from dragoman.session.state import SessionState

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a fence needs Linux")

NO_PUSH = Rule(effect="deny", operation="execute", argv_prefix=("git", "push"), source="no-push")
KNOWS_EXIT_CODES = tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (6, 15)
WAYS: list[FenceWay] = ["namespaces", "landlock"]


class People:
    """Answers questions as it is told to; a `gate` that is not set keeps them waiting."""

    def __init__(self, answer: str | None) -> None:
        self.answer = answer
        self.asked: list[PermissionRequest] = []
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.was_asked = asyncio.Event()

    async def request_permission(self, request: PermissionRequest) -> str | None:
        self.asked.append(request)
        self.was_asked.set()
        await self.may_answer.wait()
        return self.answer


class Inside:
    """A session in a fence, without an agent."""

    def __init__(self, place: Path, mode: FenceMode, people: People, policy: Policy) -> None:
        self.place = place
        self.workspace = place / "ws"
        self.people = people
        self.policy = policy
        self.state = SessionState()
        self.events: list[e.Event] = []
        self.fence = Fence(mode, [str(self.workspace)], floor_for)
        self.fence.policy = policy
        self.overseer: Overseer | None = None
        self.seconds_between = SECONDS_BETWEEN
        self.settled = asyncio.Event()
        self.news = asyncio.Event()

    async def open(self, way: FenceWay) -> FencePlan:
        assert await self.fence.open("test") is not None
        if self.fence.no_gate:
            pytest.skip(f"no gate here: {self.fence.no_gate}")
        if way == "namespaces" != self.fence.way:
            pytest.skip("no namespaces here")
        self.fence.way = way
        assert self.fence.gate is not None
        workspace = Workspace("s", str(self.workspace))
        consent = Consent(
            workspace,
            agent="test",
            policy=self.policy,
            permissions=self.people,
            elicitation=None,
            state=self.state,
            record=self.record,
        )
        self.overseer = Overseer(
            workspace=workspace,
            agent="test",
            policy=self.policy,
            log=ProgramLog(self.record, self.seconds_between),
            consent=consent,
        )
        self.fence.gate.attach(self.overseer)
        plan = self.fence.plan
        assert plan is not None
        return plan

    def record(self, event: e.Event) -> None:
        self.events.append(event)
        if isinstance(event, e.PermissionSettled):
            self.settled.set()
        reduce(self.state, event)
        self.news.set()

    async def ended(self, *argv: str) -> ProgramRun:
        """The one program with these words, once its end is on record."""
        while (found := self.of(*argv))[0].exit_code is None:
            self.news.clear()
            await self.news.wait()
        assert len(found) == 1
        return found[0]

    async def run(self, line: str, way: FenceWay = "namespaces") -> ExitStatus:
        plan = await self.open(way) if self.overseer is None else self.fence.plan
        assert plan is not None
        nothing = os.open(os.devnull, os.O_RDWR)
        try:
            process = await spawn(
                ["/bin/sh", "-c", line],
                env=self.fence.environment(os.environ),
                cwd=str(self.workspace),
                stdin=nothing,
                stdout=nothing,
                stderr=nothing,
                fence=plan,
            )
            try:
                return await process.wait()
            finally:
                await process.stop(exit_within=0, term_within=0)
        finally:
            os.close(nothing)

    @property
    def programs(self) -> list[ProgramRun]:
        assert self.overseer is not None
        self.overseer.log.flush()
        return self.state.programs

    def of(self, *argv: str) -> list[ProgramRun]:
        return [program for program in self.programs if program.argv == list(argv)]

    @property
    def refusals(self) -> list[list[str] | None]:
        assert self.overseer is not None
        self.overseer.log.flush()
        decided = [event for event in self.events if isinstance(event, e.AccessDecided)]
        return [event.argv for event in decided if event.decision.effect == "deny"]


Maker = Callable[..., Inside]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Generator[Maker]:
    """Makes a session in a folder outside `/tmp`, which is private inside a fence."""
    parent = next(
        place for place in ("/srv", "/opt", str(Path.home())) if os.access(place, os.W_OK)
    )
    place = Path(tempfile.mkdtemp(prefix="df-", dir=parent)).resolve()
    (place / "ws").mkdir()
    monkeypatch.setenv("DRAGOMAN_HOME", str(place / "data"))

    def inside(
        mode: FenceMode = "on", answer: str | None = None, rules: tuple[Rule, ...] = ()
    ) -> Inside:
        return Inside(place, mode, People(answer), Policy(rules))

    try:
        yield inside
    finally:
        shutil.rmtree(place)


# ── what ran ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", WAYS)
async def test_every_program_is_told_with_its_words_folder_end_and_parents(
    make: Maker, way: FenceWay
) -> None:
    session = make()
    (session.workspace / "inner").mkdir()
    line = "cd inner; sh -c 'expr 1 + 1; true'; expr 2 - 2; exit 3"
    assert await session.run(line, way) == ExitStatus(3, None)
    wanted: dict[tuple[str, ...], tuple[list[str], Path, int]] = {
        ("expr", "1", "+", "1"): (["sh", "sh"], session.workspace / "inner", 0),
        ("expr", "2", "-", "2"): (["sh"], session.workspace / "inner", 1),
        ("/bin/sh", "-c", line): ([], session.workspace, 3),
    }
    for argv, (parents, folder, code) in wanted.items():
        (program,) = session.of(*argv)
        assert (program.parents, program.cwd) == (parents, str(folder))
        if KNOWS_EXIT_CODES:
            assert (await session.ended(*argv)).exit_code == code


def test_that_a_file_may_be_written_says_nothing_of_its_neighbours() -> None:
    modes: dict[str, PlaceMode] = {
        "/nowhere/ws": "write",
        "/nowhere/ws/.envrc": "read-only",
        "/nowhere/ws/.git/hooks": "read-only",
        "/nowhere/home/.agent.json": "write",
    }
    places = tuple(FencePlace(path, mode, "") for path, mode in modes.items())
    surface = Surface(Floor(places=places, temporary="/nowhere/tmp"))
    for _ in range(2):
        for borne in ("ws/a", "ws/deep/a", "ws/.git/index", "home/.agent.json", "tmp/a"):
            assert surface.bears(f"/nowhere/{borne}")
        for held in ("ws/.envrc", "ws/.git/hooks/pre-commit", "home/.bashrc", "ws2/a"):
            assert not surface.bears(f"/nowhere/{held}")


async def test_what_runs_in_a_row_is_counted_and_what_is_too_much_is_left_out(make: Maker) -> None:
    session = make()
    session.seconds_between = 600.0
    await session.run(
        "for i in 1 2 3 4; do expr 1 + 1; done; for i in $(seq 150); do expr $i; done"
    )
    (alike,) = session.of("expr", "1", "+", "1")
    assert alike.count == 4
    counted = sum(program.count for program in session.programs) + session.state.programs_before
    assert counted == 1 + 4 + 1 + 150  # the shell itself, and seq


async def test_a_program_has_as_many_words_as_can_be_shown(make: Maker) -> None:
    session = make()
    await session.run(f"expr {'x' * 5000} y; expr $(seq 200)")
    long, many = (each for each in session.programs if each.argv[0] == "expr")
    assert len("".join(long.argv)) <= 2000
    assert len(many.argv) <= 64
    assert long.cut
    assert many.cut


async def test_programs_that_run_take_no_descriptor_that_is_kept_for_others(make: Maker) -> None:
    session = make()
    await session.open("namespaces")
    with room_to_spare(3):
        sleeping = "".join(f"sleep {1_000 + number} & " for number in range(10))
        running = asyncio.create_task(session.run(f"{sleeping} wait"))
        await until(lambda: len(session.programs) == 11)
        assert _watched_processes() <= 3
        running.cancel()
        await asyncio.wait([running])


def _watched_processes() -> int:
    links = (os.readlink(path) for path in Path("/proc/self/fd").iterdir() if path.is_symlink())
    return sum("pidfd" in link for link in links)


async def test_what_ran_before_there_was_a_session_belongs_to_the_first(make: Maker) -> None:
    session = make()
    plan = await session.fence.open("test")
    assert plan is not None
    gate = session.fence.gate
    if gate is None:
        pytest.skip("no gate here")
    nothing = os.open(os.devnull, os.O_RDWR)
    stdio = dict.fromkeys(("stdin", "stdout", "stderr"), nothing)
    process = await spawn(["/bin/true"], env={}, cwd="/", fence=plan, **stdio)
    await process.wait()
    await process.stop(exit_within=0, term_within=0)
    os.close(nothing)
    await session.open("namespaces")
    assert [program.argv for program in session.programs] == [["/bin/true"]]


# ── rules ─────────────────────────────────────────────────────────────────────────────────────

PUSHES = {
    "plain": "git push",
    "env": "env git push",
    "line": "sh -c 'git push; true'",
    "script": "./push.sh",
    "make": "make -f push.mk",
    "python": 'python3 -c \'import subprocess; subprocess.run(["git", "push", "-f"])\'',
    "absolute": "/usr/bin/git push",
    "elsewhere": "git -C / push",
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", PUSHES)
async def test_a_rule_stops_a_command_however_it_is_started(
    make: Maker, form: str, way: FenceWay
) -> None:
    for program in ("git", "make", "python3"):
        if program in PUSHES[form] and shutil.which(program) is None:
            pytest.skip(f"there is no {program}")
    session = make(rules=(NO_PUSH,))
    mark = session.workspace / "pushed"
    # Were it to run, it would leave a mark: a remote that is a program.
    (session.workspace / "push.sh").write_text("#!/bin/sh\ngit push\n")
    (session.workspace / "push.sh").chmod(0o755)
    (session.workspace / "push.mk").write_text("all:\n\tgit push\n")
    set_up = (
        "git init -q . && git config remote.origin.url 'ext::sh -c touch% pushed' && "
        "git config protocol.ext.allow always && git config push.default current && "
        "git -c user.name=x -c user.email=x@y commit -q --allow-empty -m x"
    )
    await session.run(set_up, way)
    await session.run(f"{PUSHES[form]}", way)
    assert not mark.exists()
    assert len(session.refusals) == 1
    refused = [program for program in session.programs if program.refused is not None]
    assert [program.refused.split(" denies")[0] for program in refused if program.refused] == [
        "no-push"
    ]


@pytest.mark.parametrize("way", WAYS)
async def test_a_rule_stops_also_the_program_that_we_start(make: Maker, way: FenceWay) -> None:
    line = "echo y > inside"
    session = make(rules=(Rule(effect="deny", argv_prefix=("/bin/sh", "-c", line)),))
    with pytest.raises(StartError):
        await session.run(line, way)
    assert not (session.workspace / "inside").exists()
    assert session.refusals == [["/bin/sh", "-c", line]]
    assert await session.run("true") == ExitStatus(0, None)


async def test_other_commands_run_and_other_rules_do_not_count(make: Maker) -> None:
    everything = Rule(effect="deny", operation="execute")
    session = make(rules=(NO_PUSH, everything))
    assert await session.run("git --version && true") == ExitStatus(0, None)
    assert session.refusals == []


# ── writes beyond the fence ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("way", WAYS)
async def test_an_allowed_write_is_of_the_one_file_that_was_asked_about(
    make: Maker, way: FenceWay
) -> None:
    session = make("ask", "allow")
    out = session.place / "out"
    await session.run("umask 027; echo new > ../out; echo more >> ../out", way)
    assert out.read_text() == "new\nmore\n"
    assert out.stat().st_mode & 0o777 == 0o640
    assert [request.paths for request in session.people.asked] == [[str(out)]] * 2
    assert "outside the fence" in session.people.asked[0].title


async def test_a_refused_write_fails_and_is_not_asked_about_again(make: Maker) -> None:
    session = make("ask", "reject")
    again = "for i in $(seq 12); do echo x > ../out; done"
    assert (await session.run(f"echo x > ../out || {{ {again}; }}")).code != 0
    assert not (session.place / "out").exists()
    assert len(session.people.asked) == 1
    decided = [event for event in session.events if isinstance(event, e.AccessDecided)]
    title = f"Write {session.place}/out (outside the fence)"
    assert [event.title for event in decided] == [title, f"{title} (10 times)"]
    assert {(*event.paths, event.decision.by) for event in decided} == {
        (f"{session.place}/out", "fence")
    }


async def test_without_ask_nobody_is_asked(make: Maker) -> None:
    session = make("on", "allow")
    assert (await session.run("echo x > ../out")).code != 0
    assert session.people.asked == []


async def test_always_makes_a_rule_that_counts_from_then_on(make: Maker) -> None:
    session = make("ask", "allow_always")
    await session.run("for i in 1 2 3; do echo $i >> ../out; done")
    assert (session.place / "out").read_text() == "1\n2\n3\n"
    assert len(session.people.asked) == 1
    assert [rule.path for rule in session.policy.rules] == [str(session.place / "out")]


async def test_no_flag_allows_a_write_outside(make: Maker) -> None:
    session = make("ask", "reject")
    session.policy = Policy(write=True, yolo=True)
    await session.run("echo x > ../out")
    assert not (session.place / "out").exists()
    assert len(session.people.asked) == 1


@pytest.mark.parametrize(
    "line",
    [
        "echo x > inside; mkdir -p a/b; echo x > a/b/c",
        "echo x > /tmp/private; echo x > $TMPDIR/y; echo x > /dev/null",
        "echo x > ../missing/out",
        "cat ../read > copy",
        "echo x > ../data/ours",
    ],
)
async def test_what_needs_no_question_has_none(make: Maker, line: str) -> None:
    session = make("ask", "allow")
    (session.place / "read").write_text("read")
    await session.run(line)
    assert session.people.asked == []
    assert not (session.place / "data/ours").exists()


async def test_a_link_is_asked_about_by_where_it_leads(make: Maker) -> None:
    session = make("ask", "allow")
    (session.workspace / "link").symlink_to(session.place / "target")
    await session.run("echo x > link")
    assert [request.paths for request in session.people.asked] == [[str(session.place / "target")]]
    assert (session.place / "target").read_text() == "x\n"


async def test_a_question_holds_up_nobody_else(make: Maker) -> None:
    session = make("ask", "allow")
    session.people.may_answer.clear()
    plan = await session.open("namespaces")
    assert plan is not None
    waiting = asyncio.create_task(session.run("echo x > ../out"))
    await session.people.was_asked.wait()
    assert await session.run("echo y > inside; expr 1 + 1; test -e inside") == ExitStatus(0, None)
    assert not waiting.done()
    # In the same tree as well.
    await session.run("echo x > ../out & echo z > beside; kill -9 $!; wait")
    assert (session.workspace / "beside").read_text() == "z\n"
    session.people.may_answer.set()
    await waiting
    assert (session.place / "out").read_text() == "x\n"


async def test_a_question_of_one_that_has_ended_is_withdrawn(make: Maker) -> None:
    session = make("ask", "allow")
    session.people.may_answer.clear()
    running = asyncio.create_task(session.run("echo x > ../out & sleep 100"))
    await session.people.was_asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await session.settled.wait()
    assert not (session.place / "out").exists()


# ── what changes meanwhile ────────────────────────────────────────────────────────────────────


async def test_settings_that_are_replaced_meanwhile_stay_covered(
    make: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = make()
    settings = session.place / "dragoman/settings.json"
    settings.parent.mkdir()
    settings.write_text("before")
    monkeypatch.setenv("DRAGOMAN_SETTINGS", str(settings))
    line = f"echo > up; until test -e go; do sleep 0.01; done; cat {settings} > seen; echo > done"
    running = asyncio.create_task(session.run(line))
    await until((session.workspace / "up").exists)
    (session.place / "new").write_text("a secret")
    (session.place / "new").rename(settings)
    (session.workspace / "go").touch()
    await running
    assert (session.workspace / "done").exists()
    assert (session.workspace / "seen").read_text() == ""
