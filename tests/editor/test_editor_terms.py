"""What the options of `dragoman acp` mean, whichever process runs the session."""

from __future__ import annotations

import sys
from os import environ
from pathlib import Path

import msgspec
import pytest
from support.clients import until
from support.editors import offices
from support.peers import soon

from dragoman import AgentCommand, Client, Policy, Session
from dragoman.editor.own_terms import OwnTerms
from dragoman.errors import RemoteError, ResourceNotFound
from dragoman.host.rules.policy import flag_rules
from dragoman.host.workspace.roots import Workspace
from dragoman.session.state import AgentEntry
from dragoman.testing import AgentTurn, ScriptedAgent

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a fence needs Linux")

PROGRAMS = Path(__file__).parent / "programs"
WRITE = OwnTerms(rules=flag_rules(write=True), typed=["--write"])
FENCED = OwnTerms(alone=["--fence"])


async def edits(turn: AgentTurn) -> None:
    where = [{"path": f"{turn.cwd}/a.txt"}]
    chosen = await turn.request_permission("t1", title="Edit a.txt", kind="edit", locations=where)
    turn.say(str(chosen))


def answer(session: Session) -> str:
    entries = (each for each in session.state.entries if isinstance(each, AgentEntry))
    return "".join(each.text for each in entries)


async def prompted_beside(folder: Path, terms: OwnTerms) -> str:
    """The answer in an editor with these options, while another process runs the session."""
    agent = ScriptedAgent(edits)
    async with (
        offices(folder, [{"it": agent}, {"it": agent}]) as [there, here],
        there.editor() as first,
        here.editor({"terms": terms}) as second,
    ):
        begun = await first.new_session(folder)
        session = await second.load_session(begun.id, folder)
        await soon(session.prompt("go on"))
        return answer(session)


async def test_rules_go_with_the_prompt_to_the_process_that_runs_the_session(
    tmp_path: Path,
) -> None:
    assert await prompted_beside(tmp_path, WRITE) == "allow"


async def test_a_fence_that_the_running_agent_lacks_is_not_left_out(tmp_path: Path) -> None:
    with pytest.raises(RemoteError, match="without --fence of this `dragoman acp`"):
        await prompted_beside(tmp_path, FENCED)


async def test_a_session_that_nobody_runs_is_opened_under_the_options(tmp_path: Path) -> None:
    agent = ScriptedAgent(edits)
    async with (
        offices(tmp_path, [{"it": agent}, {"it": agent}]) as [there, here],
        there.editor() as first,
        here.editor({"terms": FENCED}) as second,
    ):
        begun = await first.new_session(tmp_path)
        await there.hub.rename(begun.id, "kept")
        await there.hub.detach(there.hub.live[begun.id])
        session = await second.load_session(begun.id, tmp_path)
        turn = session.prompt("go on")
        await until(lambda: session.state.pending)
        assert begun.id in here.hub.live
        await session.answer(next(iter(session.state.pending)), "allow")
        await soon(turn)


# ── as processes ──────────────────────────────────────────────────────────────────────────────


class Buffers:
    """The open buffers of an editor, which nobody has saved."""

    def __init__(self) -> None:
        self.written: list[str] = []

    async def read_text_file(
        self, workspace: Workspace, path: str, *, line: int | None = None, limit: int | None = None
    ) -> str:
        if Path(path).name != "notes.txt":
            raise ResourceNotFound(path)
        return "unsaved"

    async def write_text_file(self, workspace: Workspace, path: str, content: str) -> None:
        self.written.append(path)


def acp(env: dict[str, str], *words: str) -> AgentCommand:
    return AgentCommand(sys.executable, ("-m", "dragoman", "acp", *words), {**environ, **env})


@pytest.mark.parametrize("fence", ["off", "require"])
async def test_a_fenced_agent_gets_files_from_the_disk_not_from_the_editor(
    tmp_path: Path, fence: str
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "notes.txt").write_text("saved")
    command = ScriptedAgent.command(f"{PROGRAMS}/reading.py:reading")
    entry = {"command": command.command, "args": list(command.args), "env": dict(command.env)}
    settings = tmp_path / "settings.json"
    settings.write_bytes(msgspec.json.encode({"agent_servers": {"reading": entry}}))
    env = {"DRAGOMAN_HOME": str(tmp_path / "home"), "DRAGOMAN_SETTINGS": str(settings)}
    allowed, buffers = Policy(flag_rules(yolo=True)), Buffers()
    start = acp(env, "-a", "reading", "--write", *(["--fence=require"] * (fence != "off")))
    async with Client.start(start, files=buffers, policy=allowed) as editor:
        session = await editor.new_session(tmp_path / "work")
        await soon(session.prompt("go on"))
        on_disk = (tmp_path / "work" / "new.txt").exists()
        in_editor = [Path(each).name for each in buffers.written]
    if fence == "off":
        assert (answer(session), on_disk, in_editor) == ("unsaved", False, ["new.txt"])
    else:
        assert (answer(session), on_disk, in_editor) == ("saved", True, [])
