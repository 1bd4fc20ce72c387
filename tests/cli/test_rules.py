"""The rules of a run are those of its store: no decision waits for a database."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.postgres import empty_database

from dragoman import data_directory
from dragoman.cli.parsers import parser_for
from dragoman.cli.run.hub_access import hub_of
from dragoman.cli.run.job import for_session, prepare
from dragoman.client.client import Client
from dragoman.host.rules.rule import Rule
from dragoman.session.facts import Offer
from dragoman.store.records import SessionRecord

RULE = Rule(effect="allow", operation="execute", argv=("npm", "test"), id="r1")


def no_agent(offer: Offer) -> Client:
    raise AssertionError("nobody asked for one")


async def test_a_run_decides_by_the_rules_that_its_store_has_at_hand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(data_directory, "_store", [empty_database()])
    monkeypatch.chdir(tmp_path)
    words = ["--agent-command", "true", "hello"]
    job = prepare(parser_for("run").parse_args(words), asks=False)
    async with hub_of(job, no_agent, attended=False) as hub:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        agent, cwd = job.agent.name, str(elsewhere)
        record = SessionRecord(id="s", agent=agent, cwd=cwd, created_at=1.0, updated_at=1.0)
        there = for_session(job, record)
        # Nothing has been awaited since, so that the database cannot have it yet.
        hub.store.rules.add(RULE)
        assert RULE in job.policy.rules
        assert RULE in there.policy.rules
        assert there.cwd != job.cwd
