"""Requests that do not say what is done, the truth about them, and the rules they are judged by."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from support.permission_requests import RECORDED_IN, RecordedRequest, recorded_claim

from dragoman.host.rules.access import Access, file_access, terminal_access
from dragoman.host.rules.policy import Policy, PolicyDecision
from dragoman.host.rules.rule import Effect, Rule
from dragoman.host.workspace.reach import Reach
from dragoman.host.workspace.roots import Workspace

Json: TypeAlias = dict[str, Any]
Truth: TypeAlias = Callable[[Path], Access]
WS = RECORDED_IN
STRICTEST: list[Effect] = ["deny", "ask", "allow"]


# ── the truth ─────────────────────────────────────────────────────────────────────────────────


def writes(path: str) -> Truth:
    def access(ws: Path) -> Access:
        seen = Reach((str(ws),)).look(str(ws / path))
        assert seen is not None
        return file_access("write", seen, agent="liar", roots=[str(ws)])

    return access


def runs(command: str, *args: str, cwd: str = ".", **more: Any) -> Truth:
    def access(ws: Path) -> Access:
        where = str((ws / cwd).resolve())
        return terminal_access(command, args, agent="liar", cwd=where, roots=[str(ws)], **more)

    return access


def fetches(host: str) -> Truth:
    return lambda ws: Access(operation="fetch", agent="liar", hosts=(host,), roots=(str(ws),))


def reads(path: str) -> Truth:
    def access(ws: Path) -> Access:
        seen = Reach((str(ws),)).look(str(ws / path))
        assert seen is not None
        return file_access("read", seen, agent="liar", roots=[str(ws)])

    return access


def calls(tool: str) -> Truth:
    return lambda ws: Access(operation="mcp", agent="liar", tool=tool, roots=(str(ws),))


# ── the lies ──────────────────────────────────────────────────────────────────────────────────


class Lie(msgspec.Struct, frozen=True):
    """`dark` if nothing in it names the truth: then a person may be asked where it is denied, and
    --yolo covers it, as it does all that nobody can read."""

    call: Json
    truth: Truth
    agent: str = "liar"
    earlier: tuple[Json, ...] = ()
    dark: bool = False


def diff(path: str, text: str = "x\n") -> Json:
    return {"type": "diff", "path": f"{WS}/{path}", "oldText": None, "newText": text}


def text(words: str) -> Json:
    return {"type": "content", "content": {"type": "text", "text": words}}


def terminal(terminal_id: str) -> Json:
    return {"type": "terminal", "terminalId": terminal_id}


def link_to(uri: str) -> Json:
    return {"type": "content", "content": {"type": "resource_link", "uri": uri, "name": "x"}}


def resource(uri: str, words: str) -> Json:
    return {
        "type": "content",
        "content": {"type": "resource", "resource": {"uri": uri, "text": words}},
    }


def call(kind: str | None, raw: Any = None, **fields: Any) -> Json:
    told = {"title": "Something harmless", "kind": kind, "rawInput": raw, **fields}
    return {key: value for key, value in told.items() if value is not None}


def at(*paths: str) -> list[Json]:
    return [{"path": path if path.startswith("/") else f"{WS}/{path}"} for path in paths]


def goose(tool: str, raw: Json, **fields: Any) -> tuple[Json, tuple[Json, ...]]:
    """A call of one of its tools; only the announcement has the name."""
    meta = {"goose": {"toolCall": {"toolName": tool}}}
    return call("other", raw, **fields), (call(None, raw, _meta=meta),)


def gemini(command: str, where: str, **fields: Any) -> Json:
    return call("execute", title=command, content=[text(where)], **fields)


def typed(raw: Any) -> tuple[Json, ...]:
    """What Kimi Code shows while the model writes the input."""
    return (call("execute", content=[text(raw if isinstance(raw, str) else json.dumps(raw))]),)


def running(words: str) -> Json:
    return call(None, title="Bash", content=[text(f"Requesting approval to Running: {words}")])


PATCH = "*** Begin Patch\n*** Add File: {}\n+x\n*** End Patch"
UNIFIED = "--- {0}\n+++ {0}\n@@ -0,0 +1 @@\n+x\n"
OUT = "/outside/x"
CLAUDE, QWEN = "@agentclientprotocol/claude-agent-acp", "qwen-code"
GEMINI, KIMI = "gemini-cli", "Kimi Code CLI"
HERMES, HANDS = "hermes-agent", "OpenHands CLI ACP Agent"
GOOD, EVIL = "https://good.example/page", "https://evil.example/page"
HERE = f"[current working directory {WS}] (look)"
WROTE_A, WROTE_OUT = writes("a.txt"), writes(f"..{OUT}")
REMOVED = runs("rm -rf src")


# ── the rules ─────────────────────────────────────────────────────────────────────────────────


def allow(**conditions: Any) -> Rule:
    return Rule(effect="allow", **conditions)


ALLOWING = [
    allow(operation="write", path="a.txt"),
    allow(operation="execute", argv=("ls",)),
    allow(operation="execute", argv_prefix=("ls",)),
    allow(operation="fetch", host="good.example"),
    allow(operation="mcp", tool="search"),
]
STRICT = [
    Rule(effect="deny", operation="write", path="secret.txt"),
    Rule(effect="deny", operation="write", path="keys/**"),
    Rule(effect="deny", operation="execute", argv_prefix=("rm",)),
    Rule(effect="deny", host="evil.example"),
    Rule(effect="deny", tool="drop_tables"),
]
BLANKET = [allow(operation=operation) for operation in ("read", "write", "execute", "fetch", "mcp")]
POLICIES = {
    "nothing": Policy(),
    "--yolo": Policy(yolo=True),
    "--yolo and strict rules": Policy(STRICT, yolo=True),
    "--write": Policy(write=True),
    "--exec": Policy(execute=True),
    "--write --exec": Policy(write=True, execute=True),
    "rules": Policy(ALLOWING),
    "--write and rules": Policy(ALLOWING, write=True),
    "strict rules": Policy([*ALLOWING, *STRICT]),
    "--write --exec and strict rules": Policy(STRICT, write=True, execute=True),
    "blanket rules": Policy(BLANKET),
    "blanket and strict rules": Policy([*BLANKET, *STRICT]),
}


def lying_workspace(parent: Path) -> Path:
    """With a link that leads out of it."""
    made = parent / "work"
    (made / "src").mkdir(parents=True)
    (made / ".git" / "hooks").mkdir(parents=True)
    (parent / "outside").mkdir()
    (made / "link").symlink_to(parent / "outside")
    (made / "a.txt").write_text("x\n")
    return made


def recorded(lie: Lie) -> RecordedRequest:
    kinds = ("tool_call", *["tool_call_update"] * len(lie.earlier))
    updates = [
        {"sessionUpdate": kind, "toolCallId": "t", "title": "", **each}
        for kind, each in zip(kinds, lie.earlier, strict=False)
    ]
    options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}]
    request = {"sessionId": "s", "toolCall": {"toolCallId": "t", **lie.call}, "options": options}
    return RecordedRequest("lie", lie.agent, updates, request)


async def decided_about(told: Lie, policy: Policy, ws: Path) -> PolicyDecision:
    claim = await recorded_claim(recorded(told), ws)
    return policy.decide(claim.access, Workspace("s", str(ws)))


async def assert_no_more_than_the_truth(lie: Lie, ws: Path) -> None:
    claim = await recorded_claim(recorded(lie), ws)
    workspace = Workspace("s", str(ws))
    truth = msgspec.structs.replace(lie.truth(ws), agent=lie.agent)
    for label, policy in POLICIES.items():
        if lie.dark and label == "--yolo":
            continue
        told = policy.decide(claim.access, workspace)
        due = policy.decide(truth, workspace)
        much = f"{label}: {told.effect} ({told.reason}) instead of {due.effect} ({due.reason})"
        most = "ask" if lie.dark and due.effect == "deny" else due.effect
        assert STRICTEST.index(told.effect) <= STRICTEST.index(most), much
