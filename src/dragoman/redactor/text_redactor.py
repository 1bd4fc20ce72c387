"""Removes secrets from texts, and counts what it removed. Pure.

A secret that was seen once is removed wherever it occurs again, also where nothing tells that it is
one; so is the beginning of one at the end of a text that was cut there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dragoman.redactor.secret_kinds import Span, is_secretive, spans_of_kinds, spans_of_random

MIN_KNOWN = 8
"""Characters that a known value needs: a shorter one would be part of ordinary words."""
_MIN_BEGINNING = 8
_TOO_LONG = 1_000_000
"""Texts beyond this are searched in parts that overlap by `_OVERLAP`."""
_OVERLAP = 20_000


_FREE = ("rawInput", "rawOutput", "meta", "_meta")
"""Fields in which agents may use any names."""


class Redactor:
    """`known` are secrets by the names of what holds them, such as variables. `counts` says how
    often something was removed, by kind; `removed` has each secret once, with its kind."""

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self.counts: Counter[str] = Counter()
        self.removed: dict[str, str] = {}
        self._known: dict[str, str] = {}
        for name, value in (known or {}).items():
            if len(value) >= MIN_KNOWN:
                self._known[value] = f"value of {name}"

    def learn(self, text: str) -> None:
        """Remember the secrets of a text, so that they are removed from others too."""
        for span in self._shaped(text):
            secret = text[span.start : span.end]
            if len(secret) >= MIN_KNOWN:
                self._known.setdefault(secret, span.kind)

    def learn_value(self, value: str, name: str) -> None:
        """The same of a field that holds a secret by its name."""
        if len(value) >= MIN_KNOWN:
            self._known.setdefault(value, f"value of {name}")

    def redacted(self, text: str) -> str:
        return replaced(text, self.counted(text))

    def counted(self, text: str) -> list[Span]:
        """The spans of a text from which they are removed."""
        spans = self.spans(text)
        for span in spans:
            self.note(span.kind, text[span.start : span.end])
        return spans

    def note(self, kind: str, secret: str) -> None:
        self.counts[kind] += 1
        self.removed.setdefault(secret, kind)

    def spans(self, text: str) -> list[Span]:
        """Where secrets are, in order, none overlapping."""
        return _merged([*self._shaped(text), *self._known_in(text), *self._cut_off(text)])

    def _shaped(self, text: str) -> Iterable[Span]:
        for start, part in _parts(text):
            for span in (*spans_of_kinds(part), *spans_of_random(part)):
                yield span._replace(start=span.start + start, end=span.end + start)

    def _known_in(self, text: str) -> Iterable[Span]:
        for secret, kind in self._known.items():
            at = text.find(secret)
            while at >= 0:
                yield Span(at, at + len(secret), kind)
                at = text.find(secret, at + len(secret))

    def _cut_off(self, text: str) -> Iterable[Span]:
        """A known secret whose beginning is the end of the text."""
        for secret, kind in self._known.items():
            at = text.find(secret[:_MIN_BEGINNING], max(0, len(text) - len(secret)))
            while at >= 0:
                if secret.startswith(text[at:]):
                    yield Span(at, len(text), kind)
                    break
                at = text.find(secret[:_MIN_BEGINNING], at + 1)


def in_json(value: Any, redactor: Redactor, names: Callable[[str], bool] | None = None) -> Any:
    """The same JSON without the secrets in its texts, and without what fields hold whose name says
    that it is one. Pictures and sounds stay, and so do texts in fields for which `names` is true,
    except in what an agent and its tools tell each other."""
    match value:
        case str():
            return redactor.redacted(value)
        case {"type": "image" | "audio", "data": str()}:
            return value
        case {**members}:
            return {
                name if names and names(name) else redactor.redacted(name): _member(
                    name, inner, redactor, names
                )
                for name, inner in members.items()
            }
        case [*items]:
            return [in_json(item, redactor, names) for item in items]
        case _:
            return value


def texts_in(value: Any) -> Iterable[tuple[str, str]]:
    """Every text with the name of the field that holds it, or an empty one."""
    match value:
        case str():
            yield "", value
        case {"type": "image" | "audio", "data": str()}:
            return
        case {**members}:
            for name, inner in members.items():
                yield "", name
                if isinstance(inner, str):
                    yield name, inner
                else:
                    yield from texts_in(inner)
        case [*items]:
            for item in items:
                yield from texts_in(item)
        case _:
            pass


def replaced(text: str, spans: Iterable[Span]) -> str:
    """The text with a mark in place of each secret. A span without a kind gets no mark: it is the
    rest of a secret that began in an earlier text."""
    pieces: list[str] = []
    end = 0
    for span in spans:
        pieces += (text[end : span.start], mark(span.kind) if span.kind else "")
        end = span.end
    return "".join((*pieces, text[end:]))


def hint(secret: str) -> str:
    """Enough of a secret for its owner to know it by, and for nobody else to use it."""
    line = " ".join(secret.split())
    return (
        f"{line[:4]}… ({len(secret)} characters)"
        if len(secret) >= 12
        else f"({len(secret)} characters)"
    )


def mark(kind: str) -> str:
    return f"[removed: {kind}]"


def _member(name: str, value: Any, redactor: Redactor, names: Callable[[str], bool] | None) -> Any:
    if isinstance(value, str):
        if names is not None and names(name):
            return value
        if holds_secret(name, value):
            kind = f"value of {name}"
            redactor.note(kind, value)
            return mark(kind)
    return in_json(value, redactor, None if name in _FREE else names)


def holds_secret(name: str, value: str) -> bool:
    """Whether the field is a secret as a whole. One of several words is a sentence about one."""
    return is_secretive(name) and len(value) >= MIN_KNOWN and not any(c.isspace() for c in value)


def _parts(text: str) -> Iterable[tuple[int, str]]:
    if len(text) <= _TOO_LONG:
        yield 0, text
        return
    for start in range(0, len(text), _TOO_LONG - _OVERLAP):
        yield start, text[start : start + _TOO_LONG]


def _merged(spans: list[Span]) -> list[Span]:
    """Sorted; of spans that overlap the whole is one, of the kind of the first."""
    merged: list[Span] = []
    for span in sorted(spans, key=lambda each: (each.start, -each.end)):
        if merged and span.start < merged[-1].end:
            merged[-1] = merged[-1]._replace(end=max(merged[-1].end, span.end))
        else:
            merged.append(span)
    return merged
