"""The fields of a form, whatever an agent sent as its schema."""

from __future__ import annotations

from support.nasty import NASTY, is_safe

from dragoman.cli.form import fields_of


def test_a_form_takes_whatever_schema_it_is_given() -> None:
    assert fields_of(None) == []
    assert fields_of({"properties": "nonsense"}) == []
    schema = {
        "properties": {
            "a": "nonsense",
            "b": {"type": "boolean", "title": NASTY},
            "c": {"oneOf": [{"const": "x"}, 7, {"title": "no const"}]},
            "d": {"type": "array", "items": {"enum": ["p", "q"]}},
            "e": {"type": "number", "default": 2},
        },
        "required": "nonsense",
    }
    a, b, c, d, number = fields_of(schema)
    assert is_safe(b.label, painted=False)
    assert a.parsed("text") == "text"
    assert (b.parsed("yes"), b.parsed("No"), b.parsed("perhaps")) == (True, False, None)
    assert (c.parsed("x"), c.parsed("y")) == ("x", None)
    assert (d.parsed("p, q"), d.parsed("p, z")) == (["p", "q"], None)
    assert (number.parsed("1.5"), number.parsed("much"), number.default) == (1.5, None, 2)


def test_a_field_says_what_is_expected_and_what_enter_means() -> None:
    schema = {
        "properties": {
            "gift": {"type": "boolean", "title": "A gift", "default": False},
            "many": {"type": "integer", "default": 2},
            "name": {"type": "string"},
            "note": {"type": "string"},
        },
        "required": ["name"],
    }
    assert [field.label for field in fields_of(schema)] == [
        "A gift (yes or no, Enter for no)",
        "many (a whole number, Enter for 2)",
        "name",
        "note (optional)",
    ]
