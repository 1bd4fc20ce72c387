"""What a text is about, taken from the text itself. Pure: strings in, Markdown out."""

from __future__ import annotations

import re

_HEADINGS = 8
_SENTENCES = 2
_fence = re.compile(r"^(```|~~~).*?^\1[^\n]*$", re.MULTILINE | re.DOTALL)
_heading = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)
_definition = re.compile(r"^(?:async def|def|class|fn|func|function|struct)\s+(\w+)", re.MULTILINE)
_sentence = re.compile(r".+?[.!?](?=\s|$)|.+$", re.DOTALL)
_markup = re.compile(r"^\s*(?:[#>|*+-]+\s*|\d+\.\s+|/[/*]+\s*|\"{3})|\"{3}", re.MULTILINE)


def summarise(name: str, text: str) -> str:
    """A short extract: the first sentences, the headings or definitions, and the size."""
    parts = [f"{_title(name, text)}: {_size(text)}."]
    if opening := _opening(text):
        parts.append(opening)
    if names := _contents(name, text):
        parts.append("It has:\n" + "\n".join(f"- {item}" for item in names))
    return "\n\n".join(parts) + "\n"


def _title(name: str, text: str) -> str:
    heading = _heading.search(text) if name.lower().endswith((".md", ".markdown")) else None
    return f"**{heading.group(1)}** (`{name}`)" if heading else f"`{name}`"


def _size(text: str) -> str:
    lines, words = text.count("\n") + (not text.endswith("\n")), len(text.split())
    return "empty" if not text.strip() else f"{_count(lines, 'line')}, {_count(words, 'word')}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _opening(text: str) -> str:
    """The first sentences of the first paragraph that is prose."""
    for paragraph in re.split(r"\n\s*\n", _fence.sub("", text)):
        prose = " ".join(_markup.sub("", paragraph).split())
        if len(prose.split()) >= 5 and not paragraph.lstrip().startswith("#!"):
            sentences = [s.strip() for s in _sentence.findall(prose)[:_SENTENCES]]
            return " ".join(sentences)[:400]
    return ""


def _contents(name: str, text: str) -> list[str]:
    if name.lower().endswith((".md", ".markdown", ".txt", ".rst")):
        return _heading.findall(_fence.sub("", text))[1 : _HEADINGS + 1]
    return [f"`{found}`" for found in _definition.findall(text)[:_HEADINGS]]
