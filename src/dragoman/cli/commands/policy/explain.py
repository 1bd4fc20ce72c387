"""`dragoman policy explain`: shows what the rules would decide, and why.

Asks the same code as a live session does; nothing is read, written or run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Collection, Iterator

import msgspec

from dragoman.agents.agent_fence import agent_floor
from dragoman.agents.settings.settings_file import agent_named, load_settings
from dragoman.cli.exit_codes import Exit, UsageError
from dragoman.cli.render.printed_json import indented_json
from dragoman.cli.run.agent_setup import policy_of
from dragoman.cli.run.playback import recorded
from dragoman.cli.run.stored_rules import StoredRules
from dragoman.errors import InvalidMessage
from dragoman.host.permissions.consent import Consent
from dragoman.host.permissions.trial import Explained, Trial
from dragoman.host.rules.access import Access
from dragoman.host.rules.decision import Explanation
from dragoman.host.rules.policy import Policy, PolicyDecision
from dragoman.host.workspace.roots import Workspace
from dragoman.safe_text import reveal
from dragoman.schema import codec
from dragoman.session.events import Event
from dragoman.session.facts import fields_of
from dragoman.session.state import SessionState
from dragoman.testing.recordings.asked_requests import (
    EFFECTS,
    AskedPermission,
    asked_effect,
    asked_permission,
)
from dragoman.testing.recordings.recorded_events import Transcript, current_name
from dragoman.testing.recordings.recording import FROM_AGENT
from dragoman.transport.stdio import AgentCommand
from dragoman.wire import messages
from dragoman.wire.messages import Request


def run(options: argparse.Namespace) -> int:
    explained = list(_recorded(options) if options.recording else [_asked(options)])
    kernel = _Kernel(options) if options.fenced else None
    if options.json:
        fields = [each.fields() | (kernel.fields(each) if kernel else {}) for each in explained]
        shown = fields if options.recording else fields[0]
        print(indented_json(shown))
    elif not explained:
        print("this recording contains no requests")
    else:
        print("\n\n".join(_text(each, kernel) for each in explained))
    effects = {each.explanation.decision.effect for each in explained}
    return _code(effects) if options.exit_code else Exit.DONE


def _text(explained: Explained, kernel: _Kernel | None) -> str:
    return explained.text() if kernel is None else f"{explained.text()}\n{kernel.line(explained)}"


class _Kernel:
    """What a fence would let through, if the agent does it itself."""

    def __init__(self, options: argparse.Namespace) -> None:
        settings = load_settings()
        name = options.agent or next(iter(settings.agents), "demo")
        agent = agent_named(name, settings)
        workspace = _workspace(options.cwd or ".", options.add_dir)
        command = agent.command or AgentCommand(name)
        terms = settings.fence_of(agent)
        self._floor = agent_floor(terms, workspace.roots, name, command)
        self._network = terms.network
        self._workspace = workspace
        self._policy = policy_of(options, StoredRules())

    def line(self, explained: Explained) -> str:
        if explained.access.operation not in _HELD:
            return "  kernel: a fence holds what it reads, writes, runs and reaches, not this"
        refusal, privacy = self._refusal(explained), self._privacy(explained)
        met = "let through" if refusal is None else f"refused, {reveal(refusal)}"
        if refusal is None and privacy is not None:
            met = f"let through, but {reveal(privacy)}"
        return f"  kernel: if the agent does this itself in a fence: {met}"

    def fields(self, explained: Explained) -> dict[str, object]:
        refusal = self._refusal(explained)
        reason = self._privacy(explained) if refusal is None else refusal
        return {"kernel": {"refused": refusal is not None, "reason": reason}}

    def _privacy(self, explained: Explained) -> str | None:
        """What is read or written is the session's own, and not what is there outside."""
        access = explained.access
        if access.operation not in ("read", "write"):
            return None
        return next(filter(None, map(self._floor.privacy, access.paths)), None)

    def _refusal(self, explained: Explained) -> str | None:
        access = explained.access
        if access.operation == "fetch":
            return self._out_of_reach(explained)
        if access.operation == "execute":
            return self._stopped(access)
        if access.operation not in _HELD:
            return None
        write = access.operation == "write"
        found = (self._floor.refusal(path, write=write) for path in access.paths)
        return next(filter(None, found), None)

    def _stopped(self, access: Access) -> str | None:
        """Which rule stops the program; a line is more than one, and each is judged alone."""
        fenced = msgspec.structs.replace(access, fenced=True)
        decision = self._policy.forbids(fenced, self._workspace)
        return None if decision is None else decision.reason

    def _out_of_reach(self, explained: Explained) -> str | None:
        if isinstance(self._network, str):
            return None if self._network == "all" else "the fence has no network"
        from dragoman.host.fence.network.host_patterns import read_patterns
        from dragoman.host.fence.network.network_rules import HostRefused, NetworkRules

        rules = NetworkRules(read_patterns(self._network))
        rules.sessions = lambda: [_AsExplained(explained)]
        try:
            for host in explained.access.hosts:
                rules.candidates(host, _SECURE_PORT)
        except HostRefused as error:
            return f"{error}; {error.remedy}" if error.remedy else str(error)
        except ValueError as error:
            return str(error)
        return None


_HELD = ("read", "write", "execute", "fetch")
_SECURE_PORT = 443


class _AsExplained:
    """A session whose rules have been asked already."""

    def __init__(self, explained: Explained) -> None:
        self._explained = explained

    def about_host(self, host: str) -> Explanation:
        return self._explained.explanation

    def note(self, event: Event) -> None:
        """Nothing happens here that could be on record."""


def _code(effects: Collection[str]) -> Exit:
    """The strictest counts."""
    if "deny" in effects:
        return Exit.DENIED
    return Exit.ASKED if "ask" in effects else Exit.DONE


# ── one question ──────────────────────────────────────────────────────────────────────────────


def _asked(options: argparse.Namespace) -> Explained:
    _check(options)
    trial = Trial(**fields_of(options, Trial))
    workspace = _workspace(options.cwd or ".", options.add_dir)
    try:
        return trial.explain(policy_of(options, StoredRules()), workspace)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _check(options: argparse.Namespace) -> None:
    """Name the option that is missing or too much; a `Trial` knows no options."""
    operation, has_command = options.operation, bool(options.command)
    if has_command and (operation not in (None, "execute") or options.paths):
        raise UsageError("a command implies --operation execute and takes no --path")
    if operation is None and not (has_command or options.hosts or options.tool):
        raise UsageError("name the request: --operation, or a command after --")
    if operation == "execute" and not has_command:
        raise UsageError("put the command after --, as in: -- git push")
    if operation in ("read", "write") and len(options.paths) != 1:
        raise UsageError(f"--operation {operation} needs one --path")


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
            asked = asked_permission(request, second=transcript.second is not None)
            state = states[asked.session_id]
            workspace = _recorded_workspace(options, state)
            yield from _permission(asked, state, workspace, policy, options.agent)
        case method if method in EFFECTS:
            session_id = codec.decode(request.params, _OfSession).session_id
            workspace = _recorded_workspace(options, states.get(session_id))
            access = asked_effect(method, request, workspace, options.agent)
            yield Explained(access, policy.explain(access, workspace))
        case _:
            pass


class _OfSession(msgspec.Struct, rename="camel"):
    session_id: str


def _permission(
    asked: AskedPermission,
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


async def _settle(consent: Consent, asked: AskedPermission) -> None:
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


def _recorded_workspace(options: argparse.Namespace, state: SessionState | None) -> Workspace:
    """Where the session worked then, unless another place is named now."""
    if options.cwd is not None or state is None or not state.cwd:
        return _workspace(options.cwd or ".", options.add_dir)
    return _workspace(state.cwd, [*state.additional_directories, *options.add_dir])
