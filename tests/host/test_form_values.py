"""What a form demands of the values in it."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.cli.ask.form_input import form_fields
from dragoman.host.forms.bounded_pattern import MOST_WORK, Work
from dragoman.host.forms.elicitation import (
    ElicitationAnswer,
    FormError,
    check,
    demands,
    unmet,
    wrong_fields,
)

PICKED = {"type": "array", "minItems": 1, "maxItems": 2, "items": {"enum": ["a", "b", "c"]}}


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ({"type": "string", "pattern": "^[a-z-]+$"}, "Bad Name!", "expected to match ^[a-z-]+$"),
        ({"type": "string", "pattern": "^[a-z-]+$"}, "good", None),
        ({"type": "string", "pattern": "(?=x)"}, "not judged", None),
        ({"type": "string", "minLength": 3}, "ab", "expected at least 3 characters"),
        ({"type": "string", "maxLength": 1}, "ab", "expected at most 1 character"),
        ({"type": "string", "minLength": 2, "maxLength": 3}, "abcd", "expected 2 to 3 characters"),
        ({"type": "string", "maxLength": 2}, "😀😀", None),
        ({"type": "string"}, 7, "expected a text"),
        ({"enum": ["a", "b"]}, "c", "expected one of a, b"),
        ({"oneOf": [{"const": "a"}, 7]}, "b", "expected one of a"),
        ({"type": "integer"}, 1.5, "expected a whole number"),
        ({"type": "integer"}, True, "expected a whole number"),
        ({"type": "number", "minimum": 0.5, "maximum": 2}, 3, "expected 0.5 to 2"),
        ({"type": "number", "minimum": 0.5}, 1, None),
        ({"type": "integer", "minimum": 10**400}, 5, "expected at least inf"),
        ({"type": "integer", "minimum": -(10**400)}, 5, None),
        ({"type": "integer", "maximum": 10**400}, 10**300, None),
        ({"type": "boolean"}, "yes", "expected true or false"),
        (PICKED, [], "expected 1 to 2 items"),
        (PICKED, ["a", "b", "c"], "expected 1 to 2 items"),
        (PICKED, ["d"], "expected any of a, b, c"),
        (PICKED, ["a", "c"], None),
        (PICKED, [["a"]], "expected any of a, b, c"),
        ({"minLength": "3", "pattern": 7, "type": ["string"]}, "x", None),
        ("no schema", "x", None),
    ],
)
def test_a_value_that_does_not_fit_is_told_what_would(field: Any, value: Any, words: str) -> None:
    assert unmet(field, value) == words


def test_all_that_is_wrong_is_said_at_once_by_field() -> None:
    schema = {
        "required": ["name", "size"],
        "properties": {"name": {"type": "string"}, "size": {"type": "integer", "maximum": 3}},
    }
    with pytest.raises(FormError) as refused:
        check(schema, ElicitationAnswer("accept", {"size": 4}))
    assert refused.value.fields == {"name": "an answer is needed", "size": "expected at most 3"}
    check(schema, ElicitationAnswer("decline"))
    check(None, ElicitationAnswer("accept", {"any": 1}))
    assert wrong_fields(schema, {"other": 1}) == {}


SLOW = "(?:[" + "".join(chr(0x4E00 + at) for at in range(450)) + "]?){660}Z$"


@pytest.mark.parametrize(
    "pattern", [SLOW, "((((){2000}){2000}){2000}){2000}", "a" * 500, "(" * 500]
)
def test_the_patterns_of_a_form_cost_no_more_together_than_one(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spent = 0
    spend = Work.spend

    def counted(work: Work, steps: int = 1) -> None:
        nonlocal spent
        spent += steps
        # Beyond the budget each pattern asks once, for its length.
        assert spent <= MOST_WORK + 1_000 * 500
        spend(work, steps)

    monkeypatch.setattr(Work, "spend", counted)
    fields: dict[str, Any] = {
        f"f{at}": {"type": "string", "pattern": pattern} for at in range(1_000)
    }
    fields |= {
        "unjudged": {"type": "string", "pattern": "^a$"},
        "judged": {"type": "string", "pattern": "^a$", "maxLength": 1},
    }
    wrong = wrong_fields({"properties": fields}, dict.fromkeys(fields, "x" * 95))
    assert "unjudged" not in wrong
    assert wrong["judged"] == "expected at most 1 character"


class _Counted(str):
    """A name that counts how often it is compared."""

    __slots__ = ()
    looks = 0

    def __eq__(self, other: object) -> bool:
        _Counted.looks += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


def test_many_choices_and_many_fields_are_compared_once_each() -> None:
    names = [_Counted(at) for at in range(2_000)]
    picked = {"type": "array", "items": {"enum": names}}
    _Counted.looks = 0
    assert unmet(picked, [str(name) for name in names]) is None
    schema: dict[str, Any] = {
        "required": [*names, ["no name"]],
        "properties": {str(name): {} for name in names},
    }
    check(schema, ElicitationAnswer("accept", {str(name): 1 for name in names}))
    assert len(form_fields(schema)) == len(names)
    assert _Counted.looks < 10 * len(names)


def test_a_demand_in_words() -> None:
    field = {"minLength": 1, "maxLength": 9, "pattern": "^a"}
    assert demands(field) == "1 to 9 characters, matching ^a"
    assert demands({"minItems": 1}) == "at least 1 item"
    assert demands({}) == ""
