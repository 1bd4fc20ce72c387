"""The answers to a permission request as people are shown them: in one order, in plain words. Pure.

Agents offer them in any order, and some give only the kind for a name; what is sent back to the
agent, and what is recorded, stays as it came.
"""

from __future__ import annotations

from collections.abc import Iterable

from dragoman.session.facts import PermissionOption

_PLAIN = {
    "allow_once": "Allow",
    "allow_always": "Always allow",
    "reject_once": "Reject",
    "reject_always": "Always reject",
}
_ORDER = list(_PLAIN)


def in_order(options: Iterable[PermissionOption]) -> list[PermissionOption]:
    """By kind, so that the first is never one for always where there is one for once; those of
    one kind, and of kinds nobody knows at the end, as the agent has them."""
    return sorted(options, key=_place)


def plain_name(option: PermissionOption) -> str:
    """What it is called; a name that is only the kind, or nothing, is put into words."""
    name = option.name.strip()
    return _PLAIN.get(option.kind, option.kind) if name in ("", option.kind) else name


def _place(option: PermissionOption) -> int:
    return _ORDER.index(option.kind) if option.kind in _PLAIN else len(_ORDER)
