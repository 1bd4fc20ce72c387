"""The fields of a form, whatever an agent sent as its schema."""

from __future__ import annotations

from support.nasty_text import NASTY, is_safe

from dragoman.cli.ask.form_input import as_typed, form_fields


def test_a_form_takes_whatever_schema_it_is_given() -> None:
    assert form_fields(None) == []
    assert form_fields({"properties": "nonsense"}) == []
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
    a, b, c, d, number = form_fields(schema)
    assert is_safe(b.label, painted=False)
    assert a.parsed("text") == "text"
    assert (b.parsed("yes"), b.parsed("No"), b.parsed("perhaps")) == (True, False, None)
    assert (c.parsed("x"), c.parsed("y")) == ("x", None)
    assert (d.parsed("p, q"), d.parsed("p, z")) == (["p", "q"], None)
    assert (number.parsed("1.5"), number.parsed("much"), number.default) == (1.5, None, 2)


def test_choices_are_told_with_their_titles_and_descriptions() -> None:
    sizes = [
        {"const": "s", "title": "Small", "description": "fits anywhere"},
        {"const": "m", "title": "m", "description": f"first {NASTY}"},
        {"const": "l", "title": "Large"},
        {"const": "xl"},
    ]
    schema = {
        "properties": {
            "size": {"title": "Size", "description": "of the shirt", "oneOf": sizes},
            "sizes": {"type": "array", "items": {"anyOf": sizes}},
            "plain": {"enum": ["a", "b"]},
        }
    }
    size, several, plain = form_fields(schema)
    assert size.description == "of the shirt"
    assert size.told[0] == "s  Small: fits anywhere"
    assert size.told[1].startswith("m  first ")
    assert is_safe(size.told[1], painted=False)
    assert size.told[2:] == ("l  Large", "xl")
    assert several.told == size.told
    assert (size.label, plain.told) == ("Size (one of s, m, l, xl, optional)", ())
    # A title is as good as the value it stands for.
    assert (size.parsed("Small"), size.parsed("l"), size.parsed("tiny")) == ("s", "l", None)
    assert (several.parsed("Large, m"), several.parsed("Large, tiny")) == (["l", "m"], None)


def test_a_field_says_what_is_expected_and_what_enter_means() -> None:
    schema = {
        "properties": {
            "gift": {"type": "boolean", "title": "A gift", "default": False},
            "many": {"type": "integer", "default": 2},
            "name": {"type": "string"},
            "note": {"type": "string"},
            "sizes": {"type": "array", "items": {"enum": ["s", "m"]}, "default": ["s", "m"]},
        },
        "required": ["name"],
    }
    assert [field.label for field in form_fields(schema)] == [
        "A gift (yes or no, Enter for no)",
        "many (a whole number, Enter for 2)",
        "name",
        "note (optional)",
        "sizes (any of s, m, with commas between, Enter for s,m)",
    ]


def test_what_a_field_does_not_take_is_no_value_of_it() -> None:
    schema = {
        "properties": {
            "name": {"type": "string", "pattern": "^[a-z-]+$", "maxLength": 9},
            "size": {"type": "integer", "minimum": 1, "maximum": 3},
            "parts": {"type": "array", "minItems": 2, "items": {"enum": ["a", "b"]}},
        }
    }
    name, size, parts = form_fields(schema)
    assert name.label == "name (a text, at most 9 characters, matching ^[a-z-]+$, optional)"
    assert [name.parsed(text) for text in ("good", "Bad Name!", "far-too-long")] == [
        "good",
        None,
        None,
    ]
    assert [size.parsed(text) for text in ("1", "0", "4", "x")] == [1, None, None, None]
    assert [parts.parsed(text) for text in ("a,b", "a", "a,c")] == [["a", "b"], None, None]


def test_what_is_shown_as_the_default_can_be_typed() -> None:
    schema = {
        "properties": {
            "gift": {"type": "boolean", "default": True},
            "many": {"type": "integer", "default": 2},
            "size": {"enum": ["s", "m"], "default": "m"},
            "sizes": {"type": "array", "items": {"enum": ["s", "m"]}, "default": ["s", "m"]},
        }
    }
    for field in form_fields(schema):
        assert field.parsed(as_typed(field.default)) == field.default
