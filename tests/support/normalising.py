"""Sees what is handed to `unicodedata.normalize`, whose time is quadratic in a run of marks."""

from __future__ import annotations

import unicodedata
from itertools import groupby

import pytest


class Normalised:
    """`longest_run` is the most combining marks in a row that were ever to be sorted, with those
    that a character is made of; `chars` is how many characters were handed over in all."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.longest_run = self.chars = 0
        self._normalize = unicodedata.normalize
        monkeypatch.setattr(unicodedata, "normalize", self._seen)

    def _seen(self, form: str, text: str) -> str:
        self.chars += len(text)
        parts = "".join(self._normalize("NFKD", char) for char in text)
        marks = groupby(parts, lambda char: bool(unicodedata.combining(char)))
        runs = (len(list(run)) for combine, run in marks if combine)
        self.longest_run = max([self.longest_run, *runs])
        return text if self.longest_run > 10_000 else self._normalize(form, text)  # type: ignore[arg-type]
