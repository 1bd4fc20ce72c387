from __future__ import annotations

import pytest

from dragoman.schema.model import Unknown, wire_name


@pytest.mark.parametrize(
    ("attribute", "wire"),
    [("text", "text"), ("tool_call_id", "toolCallId"), ("meta", "_meta"), ("one_of", "oneOf")],
)
def test_an_attribute_has_its_camel_case_name_on_the_wire(attribute: str, wire: str) -> None:
    assert wire_name(attribute) == wire


def test_unknown_variants_are_equal_when_kind_and_json_are() -> None:
    assert Unknown("a", b"{}") == Unknown("a", b"{}")
    assert Unknown("a", b"{}") != Unknown("b", b"{}")
    assert Unknown("a", b"{}") != "a"
    assert len({Unknown("a", b"{}"), Unknown("a", b"{}")}) == 1


def test_an_unknown_variant_can_be_matched_by_kind_and_shows_itself() -> None:
    match Unknown("video", b'{"type":"video"}'):
        case Unknown("video") as found:
            assert repr(found) == """Unknown(kind='video', raw=b'{"type":"video"}')"""
        case _:
            pytest.fail("it did not match")
