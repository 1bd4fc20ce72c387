"""`dragoman policy explain`: shows what the rules would decide, and why.

Asks the same code as a live session does; nothing is read, written or run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shlex
from collections.abc import Iterator
from typing import Any

import msgspec

from dragoman.cli.exit_codes import UsageError
from dragoman.cli.run.agent_setup import policy_of
from dragoman.cli.run.playback import recorded
from dragoman.cli.run.stored_rules import StoredRules
from dragoman.client import translation
from dragoman.client.v1 import wire_format
from dragoman.errors import InvalidMessage
from dragoman.host.permissions.always_rules import describe
from dragoman.host.permissions.consent import Consent
from dragoman.host.permissions.questions import NO_SUBJECT, Subject
from dragoman.host.rules.access import Access, Operation, Sighting, file_access, terminal_access
from dragoman.host.rules.policy import Considered, Explanation, Policy, PolicyDecision
from dragoman.host.workspace.reach import Reach
from dragoman.host.workspace.roots import Workspace
from dragoman.safe_text import reveal
from dragoman.schema import codec, v1
from dragoman.session.events import ToolCallUpdated
from dragoman.session.facts import PermissionOption
from dragoman.session.state import SessionState
from dragoman.testing.recorded_events import Transcript, current_name
from dragoman.testing.recording import FROM_AGENT
from dragoman.wire import messages
from dragoman.wire.messages import Request


def run(options: argparse.Namespace) -> int:
    explained = list(_recorded(options) if options.recording else [_asked(options)])
    if options.json:
        fields = [each.fields() for each in explained]
        shown = fields if options.recording else fields[0]
        print(msgspec.json.format(msgspec.json.encode(shown), indent=2).decode())
    elif not explained:
        print("this recording contains no requests")
    else:
        print("\n\n".join(each.text() for each in explained))
    return 0


class Explained(msgspec.Struct, frozen=True):
    """What was asked, and what the rules say to it."""

    access: Access
    explanation: Explanation

    def text(self) -> str:
        decision = self.explanation.decision
        heading = f"{decision.effect}: {_subject(self.access)}"
        return "\n".join(
            reveal(line)
            for line in (
                heading,
                f"  because {decision.reason}",
                *(f"  {_rule_line(each)}" for each in self.explanation.considered),
            )
        )

    def fields(self) -> dict[str, Any]:
        decision = self.explanation.decision
        return {
            "effect": decision.effect,
            "reason": decision.reason,
            "operation": self.access.operation,
            "claimed": self.access.claimed,
            "paths": self.access.paths,
            "commands": self.access.commands,
            "rules": [_rule_fields(each) for each in self.explanation.considered],
        }


def _subject(access: Access) -> str:
    commands = [each if isinstance(each, str) else shlex.join(each) for each in access.commands]
    named = [*commands, *access.paths, *access.hosts, access.tool or ""]
    claimed = " (as reported by the agent)" if access.claimed else ""
    return f"{access.operation} {', '.join(filter(None, named))}".rstrip() + claimed


def _rule_line(each: Considered) -> str:
    why = "matches" if each.mismatch is None else f"no match: {each.mismatch}"
    return f"- {each.rule.label}: {describe(each.rule)}: {why}"


def _rule_fields(each: Considered) -> dict[str, Any]:
    return {
        "rule": each.rule.label,
        "sentence": describe(each.rule),
        "matches": each.matched,
        "mismatch": each.mismatch,
    }


# ── one question ──────────────────────────────────────────────────────────────────────────────


def _asked(options: argparse.Namespace) -> Explained:
    workspace = _workspace(options.cwd or ".", options.add_dir)
    access = _access(options, workspace)
    return Explained(access, policy_of(options, StoredRules()).explain(access, workspace))


def _access(options: argparse.Namespace, workspace: Workspace) -> Access:
    roots = [os.path.realpath(root) for root in workspace.roots]
    operation: Operation | None = options.operation
    if options.command:
        if operation not in (None, "execute") or options.path:
            raise UsageError("a command implies --operation execute and takes no --path")
        command, *args = options.command
        where = _seen(workspace.cwd, roots)
        return terminal_access(command, args, agent=options.agent, cwd=where, roots=roots)
    if operation is None:
        raise UsageError("name the request: --operation, or a command after --")
    if operation == "execute":
        raise UsageError("put the command after --, as in: -- git push")
    paths = [_seen(os.path.join(workspace.cwd, path), roots) for path in options.path]
    if operation in ("read", "write"):
        if len(paths) != 1:
            raise UsageError(f"--operation {operation} needs one --path")
        kind = "read" if operation == "read" else "write"
        return file_access(kind, paths[0], agent=options.agent, roots=roots)
    return Access(
        operation=operation,
        agent=options.agent,
        paths=tuple(seen.path for seen in paths),
        aliases=tuple(alias for seen in paths for alias in seen.aliases),
        hosts=tuple(options.host),
        tool=options.tool,
        roots=tuple(roots),
        cwd=roots[0],
        claimed=True,
    )


def _workspace(cwd: str, more: list[str]) -> Workspace:
    return Workspace("", os.path.abspath(cwd), tuple(os.path.abspath(path) for path in more))


# ── a whole recording ─────────────────────────────────────────────────────────────────────────


def _recorded(options: argparse.Namespace) -> Iterator[Explained]:
    """Everything that was asked for, as today's rules would have decided it."""
    policy = policy_of(options, StoredRules())
    transcript = Transcript()
    recording = recorded(options.recording, but="replay can show it, but rules need frames")
    for line in recording.lines:
        transcript.feed(line)
        request = messages.decode(line.frame) if line.dir == FROM_AGENT else None
        if isinstance(request, Request):
            try:
                yield from _decided(request, transcript, policy, options)
            except InvalidMessage:
                continue


def _decided(
    request: Request, transcript: Transcript, policy: Policy, options: argparse.Namespace
) -> Iterator[Explained]:
    states = transcript.states
    match current_name(request.method):
        case "session/request_permission":
            asked = _request(request, second=transcript.second is not None)
            state = states[asked.session_id]
            workspace = _recorded_workspace(options, state)
            yield from _permission(asked, state, workspace, policy, options.agent)
        case "fs/read_text_file" | "fs/write_text_file" | "terminal/create" as method:
            access, workspace = _effect(method, request, states, options)
            yield Explained(access, policy.explain(access, workspace))
        case _:
            pass


class _Asked(msgspec.Struct, frozen=True):
    """A request for permission, in either version."""

    session_id: str
    call: ToolCallUpdated | None
    options: list[PermissionOption]
    subject: Subject = NO_SUBJECT


def _request(request: Request, *, second: bool) -> _Asked:
    if second:
        from dragoman.testing.recorded_events_v2 import permission

        return _Asked(*permission(request))
    asked = codec.decode(request.params, v1.RequestPermissionRequest)
    options = [translation.permission_option(option) for option in asked.options]
    return _Asked(asked.session_id, wire_format.tool_call_update(asked.tool_call), options)


def _permission(
    asked: _Asked,
    state: SessionState,
    workspace: Workspace,
    policy: Policy,
    agent: str,
) -> Iterator[Explained]:
    watched = _Watched(policy)
    consent = Consent(
        workspace,
        agent=agent,
        policy=watched,
        permissions=None,
        elicitation=None,
        state=state,
        record=lambda event: None,
    )
    asyncio.run(_settle(consent, asked))
    yield from watched.explained


async def _settle(consent: Consent, asked: _Asked) -> None:
    await consent.request_permission(asked.call, asked.options, asked.subject)


class _Watched(Policy):
    """The same rules, and a note of what they were asked."""

    def __init__(self, policy: Policy) -> None:
        super().__init__()
        self._policy = policy
        self.explained: list[Explained] = []

    def decide(self, access: Access, workspace: Workspace) -> PolicyDecision:
        explanation = self._policy.explain(access, workspace)
        self.explained.append(Explained(access, explanation))
        return explanation.decision


def _effect(
    method: str, request: Request, states: dict[str, SessionState], options: argparse.Namespace
) -> tuple[Access, Workspace]:
    if method == "terminal/create":
        asked = codec.decode(request.params, v1.CreateTerminalRequest)
        workspace = _recorded_workspace(options, states.get(asked.session_id))
        roots = _roots(workspace)
        return terminal_access(
            asked.command,
            asked.args,
            agent=options.agent,
            cwd=_seen(asked.cwd or workspace.cwd, roots),
            roots=roots,
            env=bool(asked.env),
            variables=[each.name for each in asked.env],
        ), workspace
    file = codec.decode(request.params, v1.ReadTextFileRequest)
    workspace = _recorded_workspace(options, states.get(file.session_id))
    operation = "read" if method == "fs/read_text_file" else "write"
    roots = _roots(workspace)
    seen = _seen(file.path, roots)
    return file_access(operation, seen, agent=options.agent, roots=roots), workspace


def _seen(path: str, roots: list[str]) -> Sighting:
    seen = Reach((*roots, os.path.expanduser("~"))).look(path)
    return Sighting(os.path.realpath(path)) if seen is None else seen


def _roots(workspace: Workspace) -> list[str]:
    return [os.path.realpath(root) for root in workspace.roots]


def _recorded_workspace(options: argparse.Namespace, state: SessionState | None) -> Workspace:
    """Where the session worked then, unless another place is named now."""
    if options.cwd is not None or state is None or not state.cwd:
        return _workspace(options.cwd or ".", options.add_dir)
    return _workspace(state.cwd, [*state.additional_directories, *options.add_dir])
