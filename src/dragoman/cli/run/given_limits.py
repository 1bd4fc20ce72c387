"""The limits of a run: of its options, of `--policy`, and of the settings."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dragoman.agents.known import known_names
from dragoman.agents.settings.limit_settings import BadLimit, must_be_told, read_limits
from dragoman.cli.exit_codes import UsageError
from dragoman.errors import ConfigError
from dragoman.session.facts import LimitScope
from dragoman.session.limits.spending_limits import MEASURES, SpendingLimit, limits_for

if TYPE_CHECKING:
    from dragoman.cli.run.agent_setup import ChosenAgent


def limits_of(
    options: argparse.Namespace, choice: ChosenAgent, cwd: str
) -> tuple[SpendingLimit, ...]:
    """All of them. Raises LimitUnusable for one that nothing could be compared with, UsageError,
    and ConfigError for a policy file."""
    agents = {choice.agent.name, *choice.settings.agents}
    limits = (*typed_limits(options), *limits_in(options.policy, agents), *choice.settings.limits)
    binding = limits_for(limits, choice.agent.name, cwd)
    must_be_told(binding, choice.known)
    for limit in binding:
        if limit.is_shared and options.no_store:
            raise UsageError(
                f"{limit.source} is a limit of several sessions, so it needs the store: remove "
                "--no-store or the limit"
            )
    return limits


def typed_limits(options: argparse.Namespace) -> list[SpendingLimit]:
    """What the `--max-…` options say. Raises UsageError."""
    found: list[SpendingLimit] = []
    for measure in MEASURES:
        option = f"--max-{measure.replace('_', '-')}"
        given: tuple[float | tuple[float, str], LimitScope] | None
        given = getattr(options, f"max_{measure}")
        if given is None:
            continue
        value, per = given
        if measure == "turns" and per == "turn":
            raise UsageError(f"{option}: a turn has no turns; leave out /turn")
        most, currency = value if isinstance(value, tuple) else (value, "USD")
        try:
            limit = SpendingLimit(
                measure=measure,
                most=most,
                currency=currency,
                per=per,
                then=options.at_max or "stop",
                source=option,
            )
        except ValueError as error:  # a number that is too large
            raise UsageError(f"{option}: {error}") from error
        found.append(limit)
    if options.at_max is not None and not found:
        raise UsageError("--at-max needs a limit, such as --max-cost")
    return found


def limits_in(files: Sequence[str], agents: Collection[str]) -> tuple[SpendingLimit, ...]:
    """The `limits` of policy files. Raises ConfigError."""
    return tuple(limit for file in files for limit in _limits_of(file, agents))


def _limits_of(file: str, agents: Collection[str]) -> tuple[SpendingLimit, ...]:
    from dragoman.host.rules.policy_file import policy_limits  # brings a TOML parser along

    try:
        return read_limits(policy_limits(Path(file)), {*agents, *known_names()}, file)
    except BadLimit as error:
        raise ConfigError(file, error.place, error.expected) from error
