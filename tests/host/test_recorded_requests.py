"""What real agents ask for, as it was recorded: what is read of it, and which flag allows it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.permission_requests import (
    ALWAYS,
    RECORDED,
    RECORDED_IN,
    RecordedRequest,
    recorded_claim,
)
from support.permission_scene import scene, selected
from support.recordings import FOLDER

from dragoman.agents.extensions import quirks_for
from dragoman.host.claims.claim_reader import diffs_in
from dragoman.host.rules.access import Access
from dragoman.host.rules.policy import Policy
from dragoman.host.rules.rule import Effect, Rule
from dragoman.host.workspace.roots import Workspace

LOG = "git log --oneline --decorate --graph --all --max-count=20 -- README.md src"


def ran(command: str, cwd: str = ".", **more: Any) -> dict[str, Any]:
    return {"operation": "execute", "commands": (command,), "cwd": cwd, **more}


def wrote(path: str) -> dict[str, Any]:
    return {"operation": "write", "paths": (path,), "commands": ()}


FETCHED: dict[str, Any] = {"operation": "fetch", "hosts": ("example.org",), "paths": ()}
OTHER: dict[str, Any] = {"operation": "other", "commands": ()}
READ = {
    "claude-write": wrote("new.txt"),
    "claude-edit": wrote("README.md"),
    "claude-bash": ran("touch made.txt && echo one", paths=("made.txt",)),
    "claude-fetch": FETCHED,
    "claude-search": OTHER,
    "codex-add": wrote("new.txt"),
    "codex-update": wrote("README.md"),
    "codex-run": ran("git status --short"),
    "codex-line": ran("cd src && ls"),
    "gemini-write": wrote("new.txt"),
    "gemini-edit": wrote("README.md"),
    "gemini-line": ran("ls -la && wc -l README.md"),
    "gemini-folder": ran("touch made", "src"),
    "gemini-long": ran(f"{LOG} && touch made"),
    "gemini-fetch": OTHER,
    "goose-write": wrote("new.txt"),
    "goose-edit": wrote("README.md"),
    "goose-pytest": ran("pytest -q"),
    "goose-line": ran("cd src && ls"),
    "goose-tree": {"operation": "read", "paths": ("src",)},
    "goose-read": {"operation": "read", "paths": ("README.md",)},
    "goose-todo": OTHER,
    "hermes-write": wrote("new.txt"),
    "hermes-edit": wrote("README.md"),
    "hermes-risky": ran("echo one && rm -rf nothing-here"),
    "kimicode-write": wrote("new.txt"),
    "kimicode-edit": wrote("README.md"),
    "kimicode-bash": ran("echo one && wc -l README.md"),
    "kimicode-long": ran(LOG),
    "kimicode-folder": ran("ls", "src"),
    "opencode-write": wrote("new.txt"),
    "opencode-edit": wrote("README.md"),
    "opencode-cd": ran("cd src && ls"),
    "opencode-and": ran("git status --short && echo done"),
    "opencode-status": ran("git status --short"),
    "opencode-workdir": ran("ls"),
    "opencode-outside": ran("ls", paths=("/usr",)),
    "opencode-outside-2": ran("ls", "/usr"),
    "qwen-write": wrote("new.txt"),
    "qwen-edit": wrote("README.md"),
    "qwen-shell": ran("touch made.txt"),
    "qwen-fetch": FETCHED,
}
OUTSIDE = "opencode-outside-2"


def found(access: Access, field: str, cwd: Path) -> Any:
    """The field, with paths as they are from the workspace."""

    def short(path: str) -> str:
        return str(Path(path).relative_to(cwd)) if Path(path).is_relative_to(cwd) else path

    value = getattr(access, field)
    if field == "paths":
        return tuple(map(short, value))
    return short(value) if field == "cwd" else value


@pytest.mark.parametrize("name", RECORDED)
async def test_what_a_recorded_request_is_for_is_known(name: str, tmp_path: Path) -> None:
    access = (await recorded_claim(RECORDED[name], tmp_path)).access
    assert access.complete
    assert not access.question
    told = {field: found(access, field, tmp_path) for field in READ[name]}
    assert told == READ[name]


def test_the_requests_that_people_answered_with_always_are_among_them() -> None:
    assert {*ALWAYS} <= {*RECORDED}
    assert {*RECORDED} == {*READ}


async def decided(recorded: RecordedRequest, cwd: Path, policy: Policy) -> tuple[Effect, str]:
    access = (await recorded_claim(recorded, cwd)).access
    decision = policy.decide(access, Workspace("s", str(cwd)))
    return decision.effect, decision.reason


FLAGS = {"write": Policy(write=True), "execute": Policy(execute=True)}


@pytest.mark.parametrize("name", READ)
async def test_the_flag_for_it_allows_it_and_no_other_does(name: str, tmp_path: Path) -> None:
    recorded, operation = RECORDED[name], READ[name]["operation"]
    without = "allow" if operation == "read" else "deny" if name == OUTSIDE else "ask"
    assert (await decided(recorded, tmp_path, Policy()))[0] == without
    for flag, policy in FLAGS.items():
        due = "allow" if flag == operation and name != OUTSIDE else without
        assert (await decided(recorded, tmp_path, policy))[0] == due


async def test_a_rule_for_a_host_counts_where_an_agent_says_what_it_fetches(tmp_path: Path) -> None:
    for host, effect in (("example.org", "allow"), ("example.com", "ask")):
        policy = Policy([Rule(effect="allow", operation="fetch", host=host)])
        for name in ("claude-fetch", "qwen-fetch"):
            assert (await decided(RECORDED[name], tmp_path, policy))[0] == effect


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("goose-todo", "goose does not say what this is; --yolo or a rule for `other` allows it"),
        (
            "gemini-fetch",
            "gemini-cli does not say exactly what it would fetch; --yolo or a rule for `other` "
            "allows it",
        ),
        ("goose-write", "no rule allows it"),
    ],
)
async def test_where_no_flag_counts_it_is_said_what_would(
    name: str, why: str, tmp_path: Path
) -> None:
    policy = Policy(execute=True)
    assert await decided(RECORDED[name], tmp_path, policy) == ("ask", why)


async def test_what_was_typed_before_is_shown_as_a_change(tmp_path: Path) -> None:
    claim = await recorded_claim(RECORDED["kimicode-write"], tmp_path)
    path = str(tmp_path / "new.txt")
    assert [(diff.path, diff.new_text) for diff in diffs_in(claim.content)] == [(path, "AAA\n")]
    assert claim.places == {path: path}


async def test_a_command_that_is_asked_for_and_then_run_with_a_cd_is_asked_once(
    tmp_path: Path,
) -> None:
    """Kimi Code runs it after a `cd` to its own folder, with variables for every command."""
    recorded = (FOLDER / "kimicode.jsonl").read_text(encoding="utf-8")
    frames = [
        json.loads(line)["msg"]
        for line in recorded.replace(RECORDED_IN, str(tmp_path)).splitlines()
    ]
    [create] = (each["params"] for each in frames if each.get("method") == "terminal/create")
    asked = [e["params"] for e in frames if e.get("method") == "session/request_permission"]
    call = asked[-1]["toolCall"]["toolCallId"]
    updates = [e["params"]["update"] for e in frames if e.get("method") == "session/update"]
    before = [each for each in updates if each.get("toolCallId") == call]
    typed = next(at for at, each in enumerate(before) if "rawInput" in each)
    async with scene(tmp_path, quirks=quirks_for("Kimi Code CLI")) as s:
        for each in before[:typed]:
            s.agent.update(each.pop("sessionUpdate"), **each)
        request = s.ask_permission({**asked[-1], "sessionId": "s1"})
        await s.answer("approve_once")
        assert (await request)["result"] == selected("approve_once")
        assert "result" in await s.result("terminal/create", {**create, "sessionId": "s1"})
        assert len(s.requests) == 1
        again = s.ask("terminal/create", {**create, "sessionId": "s1"})
        await s.session.answer((await s.waiting()).id, None)
        assert "error" in await again
        assert len(s.requests) == 2


@pytest.mark.parametrize(
    ("where", "operation"),
    [
        ("[in src]", "execute"),
        ("[in src] (a look) [background]", "execute"),
        ("[in src] (/../../etc] (look)", "other"),
        ("[in a[b]]", "other"),
        ("", "other"),
    ],
)
async def test_a_command_in_a_title_needs_a_folder_that_is_clear(
    where: str, operation: str, tmp_path: Path
) -> None:
    recorded = RECORDED["gemini-line"]
    content = [{"type": "content", "content": {"type": "text", "text": where}}]
    call = recorded.request["toolCall"] | {"content": content}
    told = RecordedRequest("x", recorded.agent, [], recorded.request | {"toolCall": call})
    assert (await recorded_claim(told, tmp_path)).access.operation == operation
