"""`--output-schema`: the result alone on standard output, and 9 where none came."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.command import Dragoman
from support.programs.submitting_agent import script

SCHEMA = {
    "type": "object",
    "properties": {"number": {"type": "string"}, "total": {"type": "number"}},
    "required": ["number", "total"],
}
GOOD = {"number": "A1", "total": 5}
LINE = '{"number":"A1","total":5}\n'
BLOCK = {"say": f"Here:\n```json\n{json.dumps(GOOD)}\n```"}
BAD = {"say": "```json\n[]\n```"}


@pytest.fixture
def typed(dragoman: Dragoman) -> Dragoman:
    (dragoman.home / "schema.json").write_text(json.dumps(SCHEMA))
    agent = dragoman.agent("agent", "../../support/programs/submitting_agent.py")
    words = agent.split()
    dragoman.write_settings({"agent_servers": {"x": {"command": words[0], "args": words[1:]}}})
    return dragoman


def schema(dragoman: Dragoman) -> tuple[str, str]:
    return "--output-schema", str(dragoman.home / "schema.json")


def test_what_the_agent_submits_is_printed_alone(typed: Dragoman) -> None:
    steps: list[Any] = [
        {"say": "working"},
        {"submit": {"result": {}}},
        {"submit": {"result": GOOD}},
    ]
    done = typed(*schema(typed), script(steps), agent=None)
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == GOOD
    assert done.out.count("\n") == 1


def test_what_the_agent_writes_is_corrected_and_printed(typed: Dragoman) -> None:
    done = typed(*schema(typed), script(BAD, BAD, BLOCK), agent=None)
    assert (done.code, json.loads(done.out)) == (0, GOOD)


def test_nine_if_no_valid_result_came(typed: Dragoman) -> None:
    done = typed(*schema(typed), script(BAD, BAD, BAD, BLOCK), agent=None)
    assert (done.code, done.out) == (9, "")
    assert "the agent gave no valid result in 3 tries: [] is not of type 'object'" in done.err


def test_nine_if_the_tool_was_called_in_vain(typed: Dragoman) -> None:
    done = typed(*schema(typed), script([{"submit": {}}] * 4), agent=None)
    assert (done.code, done.out) == (9, "")


def test_other_codes_stay(typed: Dragoman) -> None:
    done = typed(*schema(typed), "--mode", "x", script(BLOCK), agent=None)
    assert (done.code, done.out) == (2, "")


def test_a_named_session_is_asked_again_and_keeps_no_agent(typed: Dragoman) -> None:
    first = typed(*schema(typed), "--session", "s", script(BLOCK, BLOCK), agent=None)
    assert first.code == 0
    assert typed("agents", "list", "--running", "--json", agent=None).out.strip() in ("", "[]")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("-o", "json"), "prints the result alone; remove -o json"),
        (("--list-modes",), "remove the --list options"),
        (("--no-wait",), "remove --no-wait"),
        (("--output-schema", "/nowhere"), "/nowhere cannot be read: no such file"),
    ],
)
def test_what_does_not_go_together(typed: Dragoman, words: tuple[str, ...], told: str) -> None:
    done = typed(*schema(typed), *words, "x", agent=None)
    assert (done.code, done.out) == (2, "")
    assert told in done.err


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "Input data was truncated"),
        ("[]", "Expected `object`, got `array`"),
        ('{"type": "objct"}', "not a JSON schema: 'objct'"),
        ('{"$ref": "other.json"}', "refers to other.json, which is not part of it"),
    ],
)
def test_a_file_without_a_schema_is_told_before_an_agent_is_started(
    typed: Dragoman, tmp_path: Path, text: str, told: str
) -> None:
    (tmp_path / "bad.json").write_text(text)
    done = typed("--output-schema", str(tmp_path / "bad.json"), "x", agent=None)
    assert (done.code, done.out) == (2, "")
    assert told in done.err
    assert "bad.json" in done.err
