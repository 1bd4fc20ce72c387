"""Reports: what they say, in each format, and that two examinations write the same."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import sys
from xml.etree import ElementTree

import pytest
from conformance.agent_mutants import MUTANTS
from conformance.test_agent_checks import examined

from dragoman.conformance.catalogue import select, table
from dragoman.conformance.examination.agent_examination import examine_agent
from dragoman.conformance.examination.verdict import CheckVerdict, ConformanceReport
from dragoman.conformance.probing.evidence import Evidence, Seen
from dragoman.conformance.reports import FORMATS, written
from dragoman.testing import ScriptedAgent
from dragoman.transport.stdio import AgentCommand
from dragoman.transport.transport import Transport


def verdict(key: str, outcome: str, level: str = "must", **more: object) -> CheckVerdict:
    fields = {"id": key, "level": level, "version": 1, "outcome": outcome, "says": "It does."}
    return CheckVerdict(**{**fields, "page": "https://example.com/<a>", **more})  # type: ignore[arg-type]


REPORT = ConformanceReport(
    side="agent",
    name="odd <agent> | `x`",
    version="1",
    verdicts=[
        verdict("a.one", "pass", seconds=0.25),
        verdict("a.two", "fail", "should", text="it is <odd> & ]]>", frames=['← {"a":"<b>"}']),
        verdict("b.one", "skip", "may", text="not offered"),
    ],
)


def test_json_has_the_counts_and_every_verdict() -> None:
    told = json.loads(written(REPORT, "report.json"))
    assert told["counts"]["should"] == {"pass": 0, "fail": 1, "skip": 0}
    assert [each["id"] for each in told["verdicts"]] == ["a.one", "a.two", "b.one"]
    assert told["verdicts"][1]["frames"] == ['← {"a":"<b>"}']


def test_junit_has_a_suite_for_each_subject_and_a_case_for_each_check() -> None:
    root = ElementTree.fromstring(written(REPORT, "junit.xml"))
    assert [(suite.get("name"), suite.get("tests")) for suite in root] == [("a", "2"), ("b", "1")]
    assert (root.get("tests"), root.get("failures"), root.get("skipped")) == ("3", "1", "1")
    failure = root.find(".//failure")
    assert failure is not None
    assert failure.get("message") == "it is <odd> & ]]>"
    assert '← {"a":"<b>"}' in (failure.text or "")


async def test_what_an_agent_calls_itself_cannot_break_a_report() -> None:
    agent = ScriptedAgent(name="a\x01\x1b[31m<b>", version="\x02")

    async def start() -> Transport:
        return agent.connect()

    checks = select(table("agent"), ["initialize.agent-info"])
    report = await examine_agent(start, checks, name="scripted", patience=5.0)
    agent.close()
    root = ElementTree.fromstring(written(report, "junit.xml"))
    assert (root.get("name") or "").endswith("<b>")
    ElementTree.fromstring(written(report, "badge.svg"))


def test_markdown_shows_what_others_wrote_as_text() -> None:
    page = written(REPORT, "report.md")
    assert "# ACP conformance of odd \\<agent\\> \\| \\`x\\` 1" in page
    assert "| must | 1 | 0 | 0 |" in page
    assert "## `a.two`" in page


@pytest.mark.parametrize(
    ("verdicts", "said", "colour"),
    [
        (["must"], "0 of 1", "#b3261e"),
        (["should"], "0 of 1", "#9a6700"),
        ([], "0 of 0", "#b3261e"),
    ],
)
def test_a_badge_has_the_colour_of_the_worst(verdicts: list[str], said: str, colour: str) -> None:
    failed = [verdict("a.b", "fail", level) for level in verdicts]
    passed = [verdict("a.c", "pass")] if verdicts == ["should"] else []
    report = ConformanceReport(side="client", name="x", verdicts=[*failed, *passed])
    drawn = written(report, "badge.svg")
    ElementTree.fromstring(drawn)
    assert colour in drawn
    assert (said if not passed else "1 of 2") in drawn


def test_a_report_fails_at_its_level_and_above() -> None:
    assert not REPORT.fails_at("must")
    assert REPORT.fails_at("should")
    assert REPORT.fails_at("may")
    assert REPORT.share == 50


def test_evidence_names_what_differs_from_run_to_run() -> None:
    evidence = Evidence()
    evidence.call("/tmp/x1", "$CWD")
    key = "0f8fad5b-d9cb-469f-a165-70867728950e"
    frame = f'{{"cwd":"/tmp/x1/a","id":"{key}","again":"{key}","at":"2026-01-02T03:04:05Z"}}'
    assert evidence.text(frame) == '{"cwd":"$CWD/a","id":"<id 1>","again":"<id 1>","at":"<time>"}'
    many = [Seen("→", b"%d" % number) for number in range(20)]
    assert evidence.shown(many) == ["… 8 earlier frames", *(f"→ {n}" for n in range(8, 20))]


@pytest.mark.own_time
async def test_two_examinations_write_the_same_but_for_times() -> None:
    checks = select(table("agent"), ["load", "cancel", "initialize"])
    reports = [await examined(MUTANTS["load.answers-last"], checks) for _ in range(2)]
    assert [each.count("fail") for each in reports] == [1, 1]
    for ending in FORMATS:
        first, second = (_timeless(written(each, f"x{ending}")) for each in reports)
        assert first == second


@pytest.mark.soak
async def test_a_busy_machine_changes_nothing_but_times() -> None:
    """One examination beside as many endless loops as slow everything down, and one without."""
    demo = AgentCommand(sys.executable, ("-m", "dragoman.testing.demo"))
    checks = select(table("agent"), ["initialize", "load", "cancel", "process", "permission"])
    with contextlib.ExitStack() as loops:
        for _ in range(16):
            loop = await asyncio.create_subprocess_exec(sys.executable, "-S", "-c", "while 1: 0")
            loops.callback(loop.kill)
        busy = await examine_agent(demo, checks, name="demo", patience=5.0)
    quiet = await examine_agent(demo, checks, name="demo", patience=5.0)
    assert busy.count("fail") == 0
    assert _timeless(written(busy, "x.json")) == _timeless(written(quiet, "x.json"))


def _timeless(text: str) -> str:
    return re.sub(r'"seconds": [\d.]+|time="[\d.]+"', "", text)
