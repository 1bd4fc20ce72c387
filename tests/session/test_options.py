"""The answers to a permission request as they are shown: the first is for once, whoever asks."""

from __future__ import annotations

from dragoman.session.facts import PermissionOption
from dragoman.session.options import in_order, plain_name


def option(name: str, kind: str) -> PermissionOption:
    return PermissionOption(f"id of {name}", name, kind)


def test_options_stand_by_kind_and_within_a_kind_as_they_came() -> None:
    kinds = ["reject_always", "later", "allow_always", "allow_once", "reject_once", "allow_once"]
    offered = [option(f"{number}", kind) for number, kind in enumerate(kinds)]
    shown = in_order(offered)
    assert [each.name for each in shown] == ["3", "5", "2", "4", "0", "1"]
    assert [each.kind for each in offered] == kinds  # what is recorded stays as it came


def test_a_name_that_is_only_the_kind_is_put_into_words() -> None:
    kinds = ("allow_once", "allow_always", "reject_once", "reject_always", "later")
    names = [plain_name(option(kind, kind)) for kind in kinds]
    assert names == ["Allow", "Always allow", "Reject", "Always reject", "later"]
    assert plain_name(option("", "reject_once")) == "Reject"
    assert plain_name(option("Yes, and go on", "allow_once")) == "Yes, and go on"
    assert plain_name(option("allow_once", "reject_once")) == "allow_once"
