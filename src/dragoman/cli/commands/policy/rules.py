"""`dragoman policy list`, `check` and `revoke`."""

from __future__ import annotations

import argparse
import asyncio
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from dragoman.agents.settings.settings_file import load_settings
from dragoman.cli.exit_codes import UsageError
from dragoman.cli.render.printed_json import indented_json
from dragoman.cli.run.given_limits import limits_in
from dragoman.cli.run.stored_rules import StoredRules
from dragoman.host.permissions.always_rules import describe
from dragoman.host.rules.policy import StoredRule
from dragoman.host.rules.policy_file import load_policy
from dragoman.host.rules.project_file import NAME, is_of_file
from dragoman.host.rules.rule import RuleFields
from dragoman.safe_text import reveal
from dragoman.store.open import open_default
from dragoman.store.records import utc

_Hosts: TypeAlias = dict[str | None, str | None]


def run(options: argparse.Namespace) -> int:
    match options.action:
        case "list":
            rules = StoredRules().load()
            _names(rules) if options.names else _list(rules, _hosts(rules), as_json=options.json)
        case "check":
            _check(options.file)
        case _:
            _revoke(options.id)
    return 0


def _names(rules: tuple[StoredRule, ...]) -> None:
    for stored in rules:
        print(stored.rule.id)


def _hosts(rules: tuple[StoredRule, ...]) -> _Hosts:
    """The names of the hosts on which rules count that do not count here."""
    if all(stored.here for stored in rules):
        return {}
    names = asyncio.run(_host_names())
    return {stored.home: names.get(stored.home, stored.home) for stored in rules if not stored.here}


async def _host_names() -> _Hosts:
    store = await open_default()
    try:
        return {host.home: host.name for host in await store.hosts()}
    finally:
        await store.aclose()


def _list(rules: tuple[StoredRule, ...], hosts: _Hosts, *, as_json: bool) -> None:
    if as_json:
        fields = [_fields(stored) | _place(stored, hosts) for stored in rules]
        print(indented_json(fields))
    elif not rules:
        print('no stored rules; "always" answers and `policy add` create them')
    for stored in () if as_json else rules:
        print(reveal(f"{stored.rule.id}  {describe(stored.rule)}{_where(stored, hosts)}"))
        print(f"    {_when(stored)}")


def _where(stored: StoredRule, hosts: _Hosts) -> str:
    project = f" ({stored.rule.project})" if stored.rule.project else ""
    if stored.here:
        return project
    host = hosts[stored.home]
    where = f"applies only on the host {host}" if host else "not in force: its host is not known"
    return f"{project}; {where}"


def _place(stored: StoredRule, hosts: _Hosts) -> dict[str, Any]:
    return {"here": stored.here, "host": None if stored.here else hosts[stored.home]}


def _when(stored: StoredRule) -> str:
    used = "never used" if stored.used_at is None else f"last used {_moment(stored.used_at)}"
    expires = stored.rule.expires_at
    end = "" if expires is None else f", until {_moment(expires)}"
    verb = f"from {NAME}, trusted" if is_of_file(stored.rule) else "created"
    return f"{verb} {_moment(stored.created_at)}, {used}{end}"


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M")


def _fields(stored: StoredRule) -> dict[str, Any]:
    rule = msgspec.to_builtins(RuleFields.of(stored.rule))
    times = {
        "createdAt": stored.created_at,
        "usedAt": stored.used_at,
        "expiresAt": rule.pop("expiresAt", None),
    }
    return {
        "id": stored.rule.id,
        "sentence": describe(stored.rule),
        "scope": stored.rule.scope,
        **{
            name: None if at is None else utc(at).isoformat(timespec="seconds")
            for name, at in times.items()
        },
        "rule": {name: value for name, value in rule.items() if name not in ("id", "scope")},
    }


def _check(file: str) -> None:
    rules = load_policy(Path(file), home=str(Path.home()))
    limits = limits_in([file], load_settings().agents)
    parts = [_counted(len(rules), "rule"), *([_counted(len(limits), "limit")] if limits else [])]
    print(f"{file}: {' and '.join(parts)}, all valid")


def _counted(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _revoke(rule_id: str) -> None:
    if not StoredRules().revoke(rule_id):
        raise UsageError(f"no stored rule {rule_id!r}; see `dragoman policy list`")
    print(f"revoked {rule_id}")
