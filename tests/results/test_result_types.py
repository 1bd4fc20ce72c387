"""What can be the type of a result, and what is one: by schema, and by what is read."""

from __future__ import annotations

import dataclasses
import enum
import json
from typing import Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

from dragoman.results.answer_text import json_in
from dragoman.results.json_schema import as_property, written_out
from dragoman.results.result_type import MOST_BYTES, InvalidResult, result_type
from dragoman.results.wanted_result import WantedResult


class Line(msgspec.Struct):
    name: str
    price: float


class Invoice(msgspec.Struct):
    number: str
    lines: list[Line]


class Tree(msgspec.Struct):
    name: str
    branches: list[Tree] = []


@dataclasses.dataclass
class Point:
    x: int
    y: int

    def __post_init__(self) -> None:
        if self.x > self.y:
            raise ValueError("x must not be above y")


class Verdict(TypedDict):
    good: bool


class Colour(enum.Enum):
    RED = "red"


class Part(pydantic.BaseModel):
    good: bool


class Model(pydantic.BaseModel):
    name: str
    verdict: Part


TEAM = {
    "type": "object",
    "properties": {"members": {"type": "array", "items": {"$ref": "#/$defs/member"}}},
    "required": ["members"],
    "$defs": {"member": {"type": "object", "required": ["name"]}},
}
"""A JSON schema."""


@pytest.mark.parametrize(
    ("output", "good", "value"),
    [
        (Invoice, '{"number":"1","lines":[]}', Invoice("1", [])),
        (Point, '{"x":1,"y":2}', Point(1, 2)),
        (Verdict, '{"good":true}', {"good": True}),
        (Model, '{"name":"n","verdict":{"good":true}}', Model(name="n", verdict=Part(good=True))),
        (list[Point], '[{"x":1,"y":2}]', [Point(1, 2)]),
        (dict[int, str], '{"1":"a"}', {1: "a"}),
        (Colour, '"red"', Colour.RED),
        (Literal["yes", "no"], '"no"', "no"),
        (int | None, "null", None),
        (TEAM, '{"members":[{"name":"n"}]}', {"members": [{"name": "n"}]}),
    ],
)
def test_json_of_the_type_becomes_a_value_of_it(output: Any, good: str, value: Any) -> None:
    wanted = result_type(output)
    assert wanted.read(good.encode()) == value
    assert json.loads(json.dumps(wanted.schema))


@pytest.mark.parametrize(
    ("output", "bad", "words"),
    [
        (Invoice, '{"number":1,"lines":[]}', "Expected `str`, got `int` - at `$.number`"),
        (Invoice, '{"number":"1"}', "missing required field `lines`"),
        (Invoice, '{"number":"1","lines":[{"name":"n"}]}', "`price` - at `$.lines[0]`"),
        (Invoice, "{", "truncated"),
        (Invoice, "", "truncated"),
        (Tree, '{"name":"","branches":[' * 30_000, "too deeply"),
        (Point, '{"x":2,"y":1}', "x must not be above y"),
        (Verdict, '{"good":1}', "Expected `bool`"),
        (Model, '{"name":"n"}', "Field required"),
        (Model, "{", "Invalid JSON"),
        (Literal["yes", "no"], '"maybe"', "Invalid enum value"),
        (TEAM, '{"members":[{}]}', "'name' is a required property - at `$.members[0]`"),
        (TEAM, "[]", "is not of type 'object'"),
        (TEAM, "nonsense", "not valid JSON: JSON is malformed"),
        (TEAM, '{"members":NaN}', "JSON is malformed"),
        (TEAM, "[" * 100_000, "too deeply"),
    ],
)
def test_what_is_not_of_the_type_is_refused_with_its_place(
    output: Any, bad: str, words: str
) -> None:
    with pytest.raises(InvalidResult) as told:
        result_type(output).read(bad.encode())
    assert words in str(told.value)


def test_what_is_said_of_a_large_value_is_short() -> None:
    with pytest.raises(InvalidResult) as told:
        result_type({"type": "object"}).read(json.dumps(["x" * 100_000]).encode())
    assert len(str(told.value)) < 1100
    assert str(told.value).endswith("is not of type 'object'")


def test_a_result_may_have_so_many_bytes() -> None:
    wanted = result_type(list[str])
    assert wanted.read(json.dumps(["x" * (MOST_BYTES - 4)]).encode())
    with pytest.raises(InvalidResult, match="at most 1024 KiB"):
        wanted.read(json.dumps(["x" * (MOST_BYTES - 3)]).encode())


@pytest.mark.parametrize(
    ("output", "kind", "words"),
    [
        (5, TypeError, "5 cannot be the type of a result"),
        (object, TypeError, "cannot be the type of a result"),
        ({"type": "objct"}, ValueError, "not a JSON schema: 'objct'"),
        ({"$ref": "https://example.com/x"}, ValueError, "refers to https://example.com/x, which"),
        ({"$ref": "#/$defs/none"}, ValueError, "refers to #/$defs/none, which is not part"),
    ],
)
def test_what_cannot_be_a_type_is_refused_before_anything_is_sent(
    output: Any, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind) as told:
        result_type(output)
    assert words in str(told.value)


# ── schemas ───────────────────────────────────────────────────────────────────────────────────


def test_a_schema_is_written_out_unless_it_is_recursive() -> None:
    assert "$ref" not in json.dumps(result_type(Invoice).schema)
    assert "$ref" not in json.dumps(result_type(Model).schema)
    assert result_type(Tree).schema["$defs"]


def test_a_schema_that_would_become_long_keeps_its_references() -> None:
    """Each names the next twice: written out, the last is there a million times."""
    definitions: dict[str, Any] = {"a0": {"type": "integer"}}
    for number in range(1, 13):
        below = {"$ref": f"#/$defs/a{number - 1}"}
        definitions[f"a{number}"] = {"properties": {"x": below, "y": below}}
    schema = {"$ref": "#/$defs/a12", "$defs": definitions}
    assert written_out(schema) is schema


def test_a_schema_can_be_a_property_unless_its_references_would_break() -> None:
    recursive = result_type(Tree).schema
    read = result_type(as_property("result", recursive)).read
    assert read(b'{"result":{"name":"n","branches":[{"name":"m"}]}}')
    with pytest.raises(InvalidResult):
        read(b'{"result":{"name":"n","branches":[{}]}}')
    pointing = {"properties": {"a": {"type": "string"}, "b": {"$ref": "#/properties/a"}}}
    assert as_property("result", pointing)["properties"] == {"result": {}}


# ── an answer as text ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("```json\n{}\n```", "{}"),
        ("a\n```\n1\n```\nb\n```json\n2\n```\nc", "2"),
        ("~~~\n```\n1\n```\n~~~", "```\n1\n```"),
        ("````json\n```\n````", "```"),
        ("- list\n  ```json\n  {}\n  ```", "{}"),
        ("cut off\n```json\n{", "{"),
        ("```js\r\n[1]\r\n```\r\n", "[1]"),
        ('  {"a": 1}\n', '{"a": 1}'),
        ("true", "true"),
        ("```json {} ```", None),
        ("It is done.", None),
        ("", None),
    ],
)
def test_the_last_fenced_block_is_the_result(text: str, found: str | None) -> None:
    assert json_in(text) == found


# ── what an agent may mean with the tool ──────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "arguments",
    [
        {"result": {"x": 1, "y": 2}},
        {"x": 1, "y": 2},
        {"result": '{"x": 1, "y": 2}'},
    ],
)
def test_the_tool_takes_the_result_however_models_write_it(arguments: Any) -> None:
    wanted = WantedResult[Point](result_type(Point))
    wanted.submit(arguments)
    assert wanted.found == [Point(1, 2)]
    assert json.loads(wanted.json) == {"x": 1, "y": 2}


@pytest.mark.parametrize("arguments", [None, [], "text", {}, {"result": None}, {"result": {}}, 5])
def test_what_the_tool_cannot_take_counts_as_a_try(arguments: Any) -> None:
    wanted = WantedResult[Point](result_type(Point), retries=1)
    for _ in range(2):
        assert not wanted.is_given_up
        with pytest.raises(InvalidResult):
            wanted.submit(arguments)
    assert wanted.is_given_up
    assert not wanted.found
    assert wanted.failure.startswith("the agent gave no valid result in 2 tries: ")


def test_the_newest_valid_result_counts() -> None:
    wanted = WantedResult[Point](result_type(Point))
    wanted.submit({"x": 1, "y": 2})
    wanted.submit({"x": 3, "y": 4})
    assert wanted.find("```json\n{}\n```")
    assert wanted.found[-1] == Point(3, 4)


def test_the_number_of_retries_is_none_or_more() -> None:
    with pytest.raises(ValueError, match="must not be negative, and is -1"):
        WantedResult[Point](result_type(Point), retries=-1)
