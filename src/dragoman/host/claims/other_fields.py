"""The fields of a tool call's raw input that nothing else in a question shows.

A question shows the command, its folder and variables, the files and the changes. An agent may say
more next to these, such as code to run: no rule reads it, and the person who answers must see it.
Bounded, because an agent chooses how much there is. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from dragoman.host.claims.idle_fields import IDLE
from dragoman.host.claims.raw_input import field_role, is_list, is_object, spelling
from dragoman.host.rules.access import Access
from dragoman.session.content import ContentItem, Diff, Text, ToolContent

_DEEPEST = 8
_MOST_VALUES = 5_000
_MOST_FIELDS = 200
_MOST_LETTERS = 64 << 10
_MOST_KNOWN = 256 << 10
_TELLING = 12
_MORE = "… and more, which is too much to be shown"


def other_fields(
    inputs: Sequence[Any], access: Access, words: Sequence[str], shown: Sequence[ToolContent]
) -> tuple[ToolContent, ...]:
    """What is to be shown of the inputs of a claim, next to `access`, the agent's `words` for it
    and what is `shown` already."""
    commands = (each if isinstance(each, str) else " ".join(each) for each in access.commands)
    changed = [item.path for item in shown if isinstance(item, Diff)]
    places = (*changed, *access.paths, *access.folders, access.unread_cwd or "")
    told = _told(inputs, _Known((*words, *commands, *places), with_diffs=bool(changed)))
    return (ContentItem(Text(told)),) if told else ()


def _told(inputs: Sequence[Any], known: _Known) -> str:
    """A line for each field, more for a longer text."""
    fields: dict[str, None] = {}
    letters = 0
    for at, (name, value) in enumerate(_leaves(inputs, "", 0)):
        if at >= _MOST_VALUES or len(fields) >= _MOST_FIELDS or letters >= _MOST_LETTERS:
            return "\n".join((*fields, _MORE))
        if not known.has(name, value):
            field = f"{name}: {_value(value)}" if name else str(value)
            fields[field[:_MOST_LETTERS]] = None
            letters += len(field)
    return "\n".join((*fields, *((_MORE,) if letters > _MOST_LETTERS else ())))


def _leaves(value: Any, name: str, depth: int) -> Iterator[tuple[str, Any]]:
    if depth > _DEEPEST:
        yield name, "…"
    elif is_object(value):
        for key, each in value.items():
            yield from _leaves(each, str(key), depth + 1)
    elif is_list(value):
        for each in value:
            yield from _leaves(each, name, depth + 1)
    else:
        yield name, value


class _Known:
    """What a question shows anyway."""

    def __init__(self, texts: Iterable[str], *, with_diffs: bool) -> None:
        self._texts = frozenset(texts)
        self._all = "\n".join(self._texts)[:_MOST_KNOWN]
        self._with_diffs = with_diffs

    def has(self, name: str, value: Any) -> bool:
        role = field_role(name)
        if not value or role == "command" or spelling(name) in IDLE:
            return True
        said = str(value).strip()
        if role == "text" and self._with_diffs:
            return True
        if role == "path":  # these are shown in full, however they were written
            return said.rpartition("/")[2] in self._all
        # A short text may be part of another by chance.
        return said in self._texts or (len(said) >= _TELLING and said in self._all)


def _value(value: Any) -> str:
    if isinstance(value, str):
        return value if "\n" not in value.strip() else f"\n{value}"
    return "true" if value is True else str(value)
