"""Endpoints for permission rules: list, add, revoke, try, and trust those of a project."""

from __future__ import annotations

import asyncio
import time
import uuid

from dragoman.errors import ConfigError
from dragoman.host.permissions.always_rules import describe
from dragoman.host.permissions.own_rules import doubts, same_rule, words_of, written_rule
from dragoman.host.permissions.trial import Trial
from dragoman.host.rules.access import TOO_LONG, is_too_long
from dragoman.host.rules.policy import StoredRule
from dragoman.host.rules.project_file import project_rules, stop_trusting, trust
from dragoman.host.rules.rule import Rule, RuleFields
from dragoman.host.workspace.roots import Workspace
from dragoman.safe_text import reveal
from dragoman.store.records import utc
from dragoman.web.context import Server
from dragoman.web.failures import RequestFailed
from dragoman.web.placement import folder, plain
from dragoman.web.shapes.policy_shapes import (
    AddedRule,
    FolderQuery,
    NewRule,
    ProjectRule,
    ProjectRuleList,
    RuleList,
    RuleShape,
    TrialBody,
    TriedRule,
    TrustBody,
    Verdict,
)
from dragoman.web.shapes.server_shapes import IdQuery


async def policies(server: Server) -> RuleList:
    stored = await asyncio.to_thread(server.hub.store.rules.load)
    hosts = () if all(each.here for each in stored) else await server.hub.store.hosts()
    names = {host.home: host.name for host in hosts}
    return RuleList(
        policies=[_shape(each, names.get(each.home, each.home)) for each in stored],
        given=tuple(map(RuleFields.of, server.given)),
    )


def _shape(stored: StoredRule, host: str | None) -> RuleShape:
    return RuleShape(
        id=stored.rule.id,
        rule=RuleFields.of(stored.rule),
        created_at=utc(stored.created_at),
        used_at=None if stored.used_at is None else utc(stored.used_at),
        here=stored.here,
        host=None if stored.here else host,
    )


async def revoke(server: Server, query: IdQuery) -> None:
    if not await asyncio.to_thread(server.hub.store.rules.revoke, query.id):
        raise RequestFailed(404, "unknown_rule", f"no such rule: {query.id}")


# ── adding ────────────────────────────────────────────────────────────────────────────────────


async def add(server: Server, body: NewRule) -> AddedRule:
    """Raises Failure for a rule that means nothing."""
    try:
        rule = _written(body)
    except ConfigError as error:
        sentence = f"{error.place or 'the rule'}: expected {error.expected}"
        raise RequestFailed(400, "invalid", sentence, {"key": error.place}) from error
    return await asyncio.to_thread(_added, server, rule)


def _written(body: NewRule) -> Rule:
    if body.expires_at is not None and body.expires_at <= time.time():
        raise ConfigError("", "expiresAt", "a time to come")
    fields = {
        key: getattr(body, key)
        for key in ("effect", "operation", "agent", "path", "cwd", "host", "tool")
    }
    if body.command is not None:
        words = words_of([body.command] if isinstance(body.command, str) else body.command)
        fields |= {"operation": body.operation or "execute"}
        fields |= {"argv_prefix" if body.prefix else "argv": words}
    elif body.effect != "ask" and not any(fields[key] for key in fields if key != "effect"):
        raise ConfigError("", "", "what it is about: an operation, or another condition")
    return written_rule(
        fields,
        "",
        rule_id=uuid.uuid4().hex[:12],
        scope="user" if body.project is None else "project",
        project="" if body.project is None else plain(body.project),
        expires_at=body.expires_at,
    )


def _added(server: Server, rule: Rule) -> AddedRule:
    rules = server.hub.store.rules
    known = same_rule(rules.list(), rule)
    warnings: list[str] = []
    if known is None:
        warnings = doubts(rule, server.launcher.policy, Workspace("", rule.project or server.cwd))
        rules.add(rule)
    wanted = rule if known is None else known
    [stored] = [each for each in rules.load() if each.rule.id == wanted.id]
    return AddedRule(
        policy=_shape(stored, None),
        sentence=describe(wanted),
        warnings=warnings,
        existed=known is not None,
    )


# ── trying ────────────────────────────────────────────────────────────────────────────────────


async def explain(server: Server, body: TrialBody) -> Verdict:
    """Raises ValueError for a request that says too little."""
    command = [body.command] if isinstance(body.command, str) else body.command or []
    trial = Trial(
        operation=body.operation,
        command=command,
        paths=[] if body.path is None else [body.path],
        hosts=[] if body.host is None else [body.host],
        tool=body.tool,
        agent=body.agent,
    )
    if is_too_long([tuple(command)]):
        raise ValueError(TOO_LONG)
    workspace = Workspace("", server.cwd if body.cwd is None else plain(body.cwd))
    return await asyncio.to_thread(_verdict, server, trial, workspace)


def _verdict(server: Server, trial: Trial, workspace: Workspace) -> Verdict:
    explained = trial.explain(server.launcher.policy, workspace)
    decision = explained.explanation.decision
    return Verdict(
        effect=decision.effect,
        reason=decision.reason,
        subject=explained.subject,
        rule=None if decision.rule is None else RuleFields.of(decision.rule),
        rules=[
            TriedRule(
                rule=RuleFields.of(each.rule),
                sentence=describe(each.rule),
                matches=each.matched,
                mismatch=each.mismatch,
            )
            for each in explained.explanation.considered
        ],
    )


# ── rules kept with a project ─────────────────────────────────────────────────────────────────


async def of_project(server: Server, query: FolderQuery) -> ProjectRuleList:
    return await asyncio.to_thread(_of_project, server, plain(query.folder))


def _of_project(server: Server, project: str) -> ProjectRuleList:
    found = project_rules(server.hub.store.rules.list(), project)
    return ProjectRuleList(
        folder=project,
        path=found.path,
        standing=found.standing,
        digest=found.digest,
        problem=None if found.problem is None else reveal(str(found.problem)),
        rules=[
            ProjectRule(
                effect=rule.effect, sentence=describe(rule), written=written, trusted=trusted
            )
            for rule, written, trusted in found.compared()
        ],
    )


async def trust_project(server: Server, body: TrustBody) -> ProjectRuleList:
    """Raises Failure, and trusts nothing, if the file is not the one that was shown."""
    return await asyncio.to_thread(_trusted, server, folder(body.folder), body.digest)


def _trusted(server: Server, project: str, digest: str) -> ProjectRuleList:
    rules = server.hub.store.rules
    found = project_rules(rules.list(), project)
    if found.digest != digest:
        why = found.problem or f"{found.path} is not as it was shown; look at it again"
        raise RequestFailed(409, "conflict", reveal(f"nothing was trusted: {why}"))
    trust(rules, found)
    return _of_project(server, project)


async def distrust_project(server: Server, query: FolderQuery) -> ProjectRuleList:
    return await asyncio.to_thread(_distrusted, server, plain(query.folder))


def _distrusted(server: Server, project: str) -> ProjectRuleList:
    rules = server.hub.store.rules
    stop_trusting(rules, project_rules(rules.list(), project))
    return _of_project(server, project)
