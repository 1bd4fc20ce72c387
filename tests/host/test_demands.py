"""What a form demands of the values in it."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.host.demands import FormError, demands, unmet, wrong_fields
from dragoman.host.elicitation import ElicitationAnswer, check

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
        ({"type": "boolean"}, "yes", "expected true or false"),
        (PICKED, [], "expected 1 to 2 items"),
        (PICKED, ["a", "b", "c"], "expected 1 to 2 items"),
        (PICKED, ["d"], "expected any of a, b, c"),
        (PICKED, ["a", "c"], None),
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


def test_a_demand_in_words() -> None:
    field = {"minLength": 1, "maxLength": 9, "pattern": "^a"}
    assert demands(field) == "1 to 9 characters, matching ^a"
    assert demands({"minItems": 1}) == "at least 1 item"
    assert demands({}) == ""
