"""The command line's face: the installed `dragoman`, run as a user would run it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from agent_trials import unasked
from agent_trials.detour import Detour
from agent_trials.face import STEER, Face
from agent_trials.features import NotOffered
from agent_trials.lab import READ, LabAgent
from agent_trials.learned import Learned
from agent_trials.marked import Mark
from agent_trials.turns import a_moment, contents
from agent_trials.typing_person import Typed, run_typed
from agent_trials.unasked import Situation
from dragoman.agents.known import KnownAgent

DRAGOMAN = Path(sys.executable).parent / "dragoman"
_RULES = [
    {"effect": "allow", "operation": "write", "path": "a.txt"},
    {"effect": "deny", "operation": "write", "path": "denied.txt"},
    {"effect": "allow", "operation": "execute"},
]


class Done(msgspec.Struct):
    code: int
    out: str
    err: str

    def good(self) -> Done:
        assert self.code == 0, f"exit code {self.code}: {self.err[-300:]} {self.out[-200:]}"
        return self


class CommandFace(Face):
    def __init__(
        self, agent: LabAgent, workspace: Path, home: Path, mark: Mark, learned: Learned
    ) -> None:
        super().__init__(agent, workspace, home, mark, learned)
        self._settings = write_settings(home, agent, mark)
        self._env = environment(home, mark)
        self._local = ""
        self._kept = ""

    # ── running it ────────────────────────────────────────────────────────────────────────────

    def _words(self, *words: str) -> list[str]:
        agent = ["-a", self._agent.name, "--cwd", str(self._workspace)]
        return [str(DRAGOMAN), "--settings", str(self._settings), *agent, *words]

    async def _turn(self, *words: str) -> Done:
        return await self._run(*self._words(*words))

    async def _sessions(self, *words: str) -> Done:
        return await self._run(str(DRAGOMAN), "sessions", *words)

    async def _run(self, *command: str) -> Done:
        async with self._started(*command) as process:
            out, err = await process.communicate()
        await self._mark.all_gone()
        return Done(process.returncode or 0, out.decode(), err.decode())

    @asynccontextmanager
    async def _started(self, *command: str) -> AsyncGenerator[asyncio.subprocess.Process]:
        process = await asyncio.create_subprocess_exec(
            *command,
            env=self._env,
            cwd=self._workspace,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def _typed(self, *words: str, lasting: bool = False) -> Typed:
        command = self._words(*words)
        done = await run_typed(command, env=self._env, cwd=self._workspace, lasting=lasting)
        await self._mark.all_gone()
        return done

    def _fine(self, done: Done) -> Done:
        assert done.code in self._agent.fine, f"exit code {done.code}: {done.err[-300:]}"
        return done

    # ── turns ─────────────────────────────────────────────────────────────────────────────────

    async def start(self) -> str:
        shown = (await self._turn("--list-caps")).good().out
        assert "protocol version: 1" in shown
        return ""

    async def text(self) -> str:
        done = self._fine(await self._turn("--yolo", "-o", "simple", self._agent.prompts["say"]))
        assert done.out.strip()
        assert self._agent.hello in done.out, done.out
        return ""

    async def thought(self) -> str:
        done = (await self._turn("--yolo", self._prompt("think"))).good()
        self._learned.require_seen("agent_thought_chunk", "the agent sends no thoughts")
        assert "[thought] hmm" in done.out, done.out
        return ""

    async def write(self) -> str:
        done = await self._typed(self._prompt("write"))
        assert done.code == 0, done.screen[-500:]
        self._assert_written()
        return self._learned.asked(done.questions)

    async def write_flag(self) -> str:
        return await self._needs("--write", self._prompt("write"), self._unwritten())

    async def exec_flag(self) -> str:
        self._ran.unlink(missing_ok=True)
        return await self._needs("--exec", self._prompt("shell"), self._ran)

    async def _needs(self, flag: str, prompt: str, made: Path) -> str:
        """With nobody to ask: refused without the flag, done with it."""
        done = await self._turn(*self._agent.asking, prompt)
        assert not _is_there(made), f"done without {flag}: {done.out[-300:]}"
        assert done.code == 5, f"exit code {done.code}: {done.err[-300:]}"
        (await self._turn(flag, prompt)).good()
        assert _is_there(made)
        return _reason(done.err)

    async def write_unasked(self) -> str:
        """Where the table of agents says so, it writes without asking; elsewhere it does not."""
        agent = self._require_known()
        folder, done = await self._acted_alone(unasked.writing(agent), self._prompt("write"))
        wrote = _is_there(folder / self._written.name)
        assert wrote == bool(agent.writes_unasked), f"it {_told(wrote, 'write', done)}"
        return agent.writes_unasked or _refused(done)

    async def exec_unasked(self) -> str:
        """The same for a command that only lists a folder."""
        agent = self._require_known()
        prompt = unasked.only_looking(self._prompt("shell"))
        _, done = await self._acted_alone(unasked.running(agent), prompt)
        ran = unasked.LISTED in done.out
        assert ran == bool(agent.runs_unasked), f"it {_told(ran, 'run', done)}"
        return agent.runs_unasked or _refused(done)

    def _require_known(self) -> KnownAgent:
        if self._agent.known is None or not self._agent.known.tried:
            raise NotOffered("the table of agents says nothing of it")
        return self._agent.known

    async def _acted_alone(self, situation: Situation, prompt: str) -> tuple[Path, Done]:
        """A turn in a git repository of its own, with nobody to ask and no flag that allows."""
        folder = unasked.repository(self._home)
        agent = unasked.in_situation(self._agent, situation)
        settings = write_settings(folder.with_name(f"{folder.name}-settings"), agent, self._mark)
        flags = situation.flags or tuple(self._agent.asking)
        words = ["--settings", str(settings), "-a", agent.name, "--cwd", str(folder), "-o", "jsonl"]
        prompt = prompt.replace(str(self._workspace), str(folder))
        return folder, await self._run(str(DRAGOMAN), *words, *flags, prompt)

    async def shell(self) -> str:
        done = await self._typed(self._prompt("shell"))
        assert done.code == 0, done.screen[-500:]
        self._assert_ran()
        return self._learned.asked(done.questions)

    async def yolo(self) -> str:
        """An edit, a command and a read, with nobody to ask."""
        return await self._acts("--yolo")

    async def rules(self) -> str:
        """The same, allowed by a file of rules, which refuses another edit."""
        policy = self._home / "rules.json"
        policy.write_text(json.dumps({"rules": _RULES}))
        told = await self._acts("--policy", str(policy))
        denied = self._workspace / "denied.txt"
        prompt = self._prompt("write").replace(self._written.name, denied.name)
        done = await self._turn(*self._agent.asking, "--policy", str(policy), prompt)
        assert not denied.exists(), done.out[-300:]
        # 0 where the agent's own request was allowed, and what it then wanted of us refused.
        assert done.code in (0, 5), f"exit code {done.code}: {done.err[-300:]}"
        return told

    async def _acts(self, *flags: str) -> str:
        self._unwritten()
        self._ran.unlink(missing_ok=True)
        (await self._turn(*flags, self._prompt("write"))).good()
        self._assert_written()
        (await self._turn(*flags, self._prompt("shell"))).good()
        self._assert_ran()
        if self._agent.reading is None:
            return "edit and command; it has no tool to read"
        (self._workspace / READ).write_text("what was to be read\n")
        done = (await self._turn(*flags, self._agent.reading)).good()
        assert "what was to be read" in done.out, done.out[-300:]
        return "edit, command and read"

    async def undo(self) -> str:
        """What one turn did is seen, all of it, and undone: compared with what was there before."""
        self._unwritten()
        self._ran.unlink(missing_ok=True)
        before = contents(self._workspace)
        by = [f"{kind} by {await self._undone(kind, before)}" for kind in ("write", "shell")]
        return ", ".join(by)

    async def _undone(self, kind: str, before: dict[str, object]) -> str:
        name = f"undo-{kind}"
        (await self._turn("--yolo", "--session", name, self._prompt(kind))).good()
        assert contents(self._workspace) != before
        shown = (await self._sessions("changes", name, "--json")).good().out
        files: list[dict[str, Any]] = json.loads(shown)
        self._assert_told({each["path"] for each in files}, before)
        (await self._sessions("revert", name)).good()
        assert contents(self._workspace) == before
        return " and ".join(sorted({by for each in files for by in each["by"]}))

    async def rewind(self) -> str:
        """To before the third of three turns; the session that continues takes a prompt."""
        if not self._reopens:
            raise NotOffered("the agent can neither resume nor load")
        if self._agent.loads_once:
            raise NotOffered("each turn is a process here, and the agent loads a session once")
        for word in ("one", "two", "three"):
            (await self._turn("--session", "rewind", f"say:{word}")).good()
        settings = ("--settings", str(self._settings))
        done = (await self._sessions("rewind", "rewind", "3", *settings)).good()
        new = done.out.strip()
        (await self._turn("--resume", new, "say:four")).good()
        forked = "the agent forked its conversation" in done.err
        assert forked or "the agent remembers nothing" in done.err, done.err
        exported = (await self._sessions("export", new)).good().out
        assert ("say:two" in exported, "say:three" in exported) == (forked, False)
        return "by a fork" if forked else "in a new conversation"

    async def plan(self) -> str:
        done = (await self._turn("--yolo", self._prompt("plan"))).good()
        self._learned.require_seen("plan", "the agent's plan is a tool call")
        assert "[plan]" in done.out, done.out
        return ""

    async def question(self) -> str:
        prompt = self._prompt("ask")
        self._learned.require_seen("elicitation/create", "the agent asks no questions")
        done = await self._typed(prompt)
        assert done.code == 0, done.screen[-500:]
        assert done.questions == 1, done.screen[-500:]
        return ""

    # ── settings ──────────────────────────────────────────────────────────────────────────────

    async def mode(self) -> str:
        other = self._learned.other_mode()
        done = (await self._turn("--mode", other, "--list-modes")).good()
        assert f"* {other}:" in done.out, done.out
        return ""

    async def config(self) -> str:
        option, value = self._learned.setting()
        word = str(value).lower() if isinstance(value, bool) else value
        # Without a prompt: another model than the stand-in's cannot be reached.
        (await self._turn("--set", f"{option}={word}", "--list-modes")).good()
        return ""

    async def commands(self) -> str:
        shown = (await self._turn("--list-commands")).good().out
        called = self._harmless(re.findall(r"^  /([^\s:]+)", shown, re.MULTILINE))
        if called is not None:
            (await self._turn("--yolo", f"/{called}")).good()
        return ""

    # ── sessions ──────────────────────────────────────────────────────────────────────────────

    async def list(self) -> str:
        await self._keep_one()
        self._learned.require("list")
        known = await self._known()
        assert self._kept in known, f"{self._kept} is not among {len(known)} sessions"
        return ""

    async def _keep_one(self) -> None:
        path = self._home / "id"
        self._fine(await self._turn("--yolo", "--save-session", str(path), self._memorable))
        self._local = path.read_text().strip()
        stored = await self._stored()
        self._kept = next(s["agentSessionId"] for s in stored if s["id"] == self._local)

    async def _stored(self) -> list[dict[str, Any]]:
        return json.loads((await self._sessions("list", "--json")).good().out)

    async def _known(self) -> list[str]:
        words = ["--known", "-a", self._agent.name, "--json", "--limit", "1000"]
        words += ["--settings", str(self._settings), "--cwd", str(self._workspace)]
        listed: list[dict[str, Any]] = json.loads((await self._sessions("list", *words)).good().out)
        return [session.get("agentSessionId") or session["id"] for session in listed]

    async def load(self) -> str:
        """By a user who has no record of the session."""
        self._learned.require("load")
        await self._agent.settled()
        before = self._env
        self._env = before | {"DRAGOMAN_HOME": str(self._home / "other")}
        try:
            return await self._load()
        finally:
            self._env = before

    async def _load(self) -> str:
        words = ["-a", self._agent.name, self._kept, "--cwd", str(self._workspace)]
        done = await self._sessions("import", *words, "--settings", str(self._settings))
        local = done.good().out.strip()
        if not self._agent.has_model:
            return "whether it remembers is unknown"
        shown = (await self._sessions("show", local)).good().out
        assert self._remembered in shown, f"not told again: {shown[:300]!r}"
        return ""

    async def resume(self) -> str:
        if not self._reopens:
            done = await self._turn("--resume", self._local, "x")
            assert done.code == 4, f"exit code {done.code}"
            raise NotOffered("the agent can neither resume nor load, and exit code 4 says so")
        if self._agent.loads_once:
            await self._keep_one()
        await self._agent.settled()
        done = (await self._turn("--yolo", "--resume", self._local, self._again)).good()
        assert self._remembered in done.out, done.out
        return ""

    async def fork(self) -> str:
        self._learned.require("fork")
        done = (await self._turn("--yolo", "--fork", self._local, self._again)).good()
        assert self._remembered in done.out, done.out
        return ""

    async def close(self) -> str:
        (await self._sessions("close", self._local, "--settings", str(self._settings))).good()
        stored = await self._stored()
        assert [s["status"] for s in stored if s["id"] == self._local] == ["closed"]
        self._learned.require("close")
        return ""

    async def delete(self) -> str:
        (await self._sessions("delete", self._local, "--settings", str(self._settings))).good()
        assert self._local not in [session["id"] for session in await self._stored()]
        self._learned.require("delete")
        if self._learned.capabilities.list:
            assert self._kept not in await self._known(), "the agent still lists it"
        return ""

    # ── going wrong ───────────────────────────────────────────────────────────────────────────

    async def rejected(self) -> str:
        path = self._unwritten()
        done = await self._turn(*self._agent.asking, self._refused_prompt())
        assert not path.exists()
        if done.code == 0 and not self._agent.has_model:
            raise NotOffered("the agent asks no permission")
        assert done.code == 5, f"exit code {done.code}: {done.err[-300:]} {done.out[-300:]}"
        return ""

    async def steer(self) -> str:
        words = ("--session", "steered", "--yolo", "-o", "simple", self._working_prompt())
        async with self._started(*self._words(*words)) as process:
            await self._works()
            named = ("--settings", str(self._settings), "--session", "steered")
            async with self._started(str(DRAGOMAN), *named, "--steer", STEER) as other:
                told, err = await other.communicate()
            assert other.returncode == 0, err.decode()
            out, _ = await process.communicate()
        await self._mark.all_gone()
        self._assert_ran()
        if self._learned.steer.endswith("delivered"):
            assert "steered" in out.decode(), out.decode()[-300:]
        return told.decode().strip()

    async def providers(self) -> str:
        self._learned.require("providers")
        async with Detour(self._agent) as detour:
            [provider, *_] = json.loads((await self._providers("--json")).out)
            key = provider["providerId"]
            kind, address = detour.instead_of(provider)
            await self._providers("set", key, "--api-type", kind, "--base-url", address)
            hello = self._agent.prompts["say"]
            done = (await self._turn("--yolo", "-o", "simple", hello)).good()
            assert self._agent.hello in done.out, done.out
            assert detour.taken, "the agent went to the old address"
            before = detour.taken
            await self._providers("reset", key)
            (await self._turn("--yolo", "-o", "simple", hello)).good()
            assert detour.taken == before, "the agent still goes to the new address"
        return ""

    async def _providers(self, *words: str) -> Done:
        named = (self._agent.name, *words, "--settings", str(self._settings))
        return (await self._run(str(DRAGOMAN), "agents", "providers", *named)).good()

    async def cancel(self) -> str:
        async with self._begun() as process:
            process.send_signal(signal.SIGINT)
            _, err = await process.communicate()
        assert process.returncode == 130, f"exit code {process.returncode}: {err.decode()}"
        await self._mark.all_gone()
        return ""

    async def failure(self) -> str:
        done = await self._turn("--yolo", "-o", "simple", self._failing_prompt())
        assert done.code in (0, 1), f"exit code {done.code}"
        told = (done.err + done.out).strip()
        if self._learned.silent:
            return "the agent says nothing of it"
        assert told, "nothing was said"
        return f"exit code {done.code}: {' '.join(told.split())[:150]}"

    async def limit(self) -> str:
        """Its provider takes no more: the run waits, until another command has it continue."""
        self._require_limits()
        prompt = self._counting_prompt()
        try:
            process, err = await self._parked(prompt)
        finally:
            write_settings(self._home, self._agent, self._mark)
        assert process.returncode == 0, f"exit code {process.returncode}: {err.decode()[-300:]}"
        await self._mark.all_gone()
        shown = (await self._sessions("list", "--status", "idle", "--json")).good().out
        assert [
            each["spent"]["turns"] for each in json.loads(shown) if each["name"] == "parked"
        ] == [2]
        return self._assert_ran_once(is_repeated=True)

    async def _parked(self, prompt: str) -> tuple[asyncio.subprocess.Process, bytes]:
        """A run that had to wait, when it is over, and what it said."""
        async with self._agent.behind_relay() as (agent, relay):
            relay.refuses, relay.seconds = lambda: True, 3600
            path = write_settings(self._home, agent, self._mark)
            words = ["-a", agent.name, "--cwd", str(self._workspace), "--session", "parked"]
            words += ["--settings", str(path), "--yolo", "--on-limit", "park", prompt]
            async with self._started(str(DRAGOMAN), *words) as process:
                while not await self._told("sessions", "list", "--status", "parked", "--names"):
                    assert process.returncode is None, "it did not wait"
                    await a_moment()
                relay.let_through()
                await self._told("sessions", "continue", "parked")
                _, err = await process.communicate()
        return process, err

    async def _told(self, *words: str) -> str:
        """What another command says during a run."""
        async with self._started(str(DRAGOMAN), *words) as process:
            out, err = await process.communicate()
        assert process.returncode == 0, err.decode()
        return out.decode().strip()

    async def killed(self) -> str:
        async with self._begun() as process:
            self._mark.kill_agent()
            _, err = await process.communicate()
        assert process.returncode == 1, f"exit code {process.returncode}: {err.decode()}"
        assert err.strip(), "nothing was said"
        await self._mark.all_gone()
        return err.decode().strip().partition("; it printed")[0]

    @asynccontextmanager
    async def _begun(self) -> AsyncGenerator[asyncio.subprocess.Process]:
        command = self._words("--yolo", "-o", "simple", self._slow_prompt())
        async with self._started(*command) as process:
            assert process.stdout is not None
            assert await process.stdout.read(1), "it ended without a word"
            yield process

    async def always(self) -> str:
        """Whether a yes from now on makes a rule, and is asked again in another session."""
        return ", ".join([await self._lasts(kind) for kind in ("write", "shell")])

    async def _lasts(self, kind: str) -> str:
        words = (*self._agent.asking, self._prompt(kind))
        first = await self._typed(*words, lasting=True)
        assert first.code == 0, first.screen[-500:]
        if not first.questions:
            return f"{kind}: the agent asked nobody"
        rules: list[str] = (await self._policy("list", "--names")).out.split()
        if not rules:
            return f"{kind}: no rule that is stored, only once or for the session"
        again = await self._typed(*words, lasting=True)
        for rule in rules:
            await self._policy("revoke", rule)
        assert again.code == 0, again.screen[-500:]
        return f"{kind}: a rule" + (", asked again anyway" if again.questions else "")

    async def _policy(self, *words: str) -> Done:
        return (await self._run(str(DRAGOMAN), "policy", *words)).good()

    async def doctor(self) -> str:
        words = ["doctor", self._agent.name, "--settings", str(self._settings)]
        done = await self._run(str(DRAGOMAN), "agents", *words)
        faults = [
            line.strip() for line in done.out.splitlines() if line.strip()[:4] in ("FAIL", "warn")
        ]
        assert done.out.strip(), f"exit code {done.code}: {done.err[-200:]}"
        counts = [line for line in done.out.splitlines() if re.match(r"\d+ passed, ", line)]
        return "; ".join([*counts, *faults])

    async def exit(self) -> str:
        """Looked after behind every command; here once more for all of them."""
        await self._mark.all_gone()
        return ""


def _is_there(path: Path) -> bool:
    return path.exists()


def _told(acted: bool, verb: str, done: Done) -> str:
    return f"did{'' if acted else ' not'} {verb}: exit code {done.code}: {done.err[-300:]}"


def _refused(done: Done) -> str:
    """Why; what went wrong otherwise says nothing of what the agent does."""
    assert done.code == 5, f"exit code {done.code}: {done.err[-300:]}"
    return _reason(done.err)


def _reason(err: str) -> str:
    """Why something was refused."""
    return err.strip().partition("\n")[0].removeprefix("dragoman: ")


def write_settings(home: Path, agent: LabAgent, mark: Mark, **more: Any) -> Path:
    """A settings file with the agent, marked; `more` are other agents."""
    entry = {"command": agent.command, "args": agent.args, "env": agent.env | mark.agent_env}
    entry["fence"] = msgspec.to_builtins(agent.fence)
    home.mkdir(exist_ok=True)
    path = home / "settings.json"
    path.write_text(json.dumps({"agent_servers": {agent.name: entry} | more}))
    path.chmod(0o600)
    return path


def environment(home: Path, mark: Mark) -> dict[str, str]:
    own = {"HOME": str(home), "DRAGOMAN_HOME": str(home / "state"), "TERM": "xterm-256color"}
    own["CI"] = "1"  # no agent stays after a run
    own |= {"XDG_CONFIG_HOME": str(home / "config"), "XDG_DATA_HOME": str(home / "data")}
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "LC_ALL") if name in os.environ}
    return kept | own | mark.env
