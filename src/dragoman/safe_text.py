"""Makes text from an agent or a command safe to show: it cannot control a terminal, or mislead.

`sanitise` (and `Sanitiser` for streams) is for what flows by: escape sequences go, whole; every
other character that acts or hides is shown as a mark. `reveal` is for what a person decides on (a
command, a path, a title): there nothing is dropped, because what is not shown would still be run.
Knows nothing of who prints, nor of colours.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache

# Characters that draw nothing, or draw other characters elsewhere: (first, last).
HIDDEN: tuple[tuple[int, int], ...] = (
    (0x00AD, 0x00AD),  # soft hyphen
    (0x034F, 0x034F),  # combining grapheme joiner
    (0x061C, 0x061C),  # Arabic letter mark
    (0x115F, 0x1160),  # Hangul fillers
    (0x17B4, 0x17B5),  # Khmer inherent vowels
    (0x180E, 0x180E),  # Mongolian vowel separator
    (0x200B, 0x200B),  # zero width space
    (0x200E, 0x200F),  # left-to-right and right-to-left marks
    (0x2028, 0x202E),  # line and paragraph separators, bidi embeddings and overrides
    (0x2060, 0x206F),  # word joiner, invisible operators, bidi isolates, deprecated controls
    (0x3164, 0x3164),  # Hangul filler
    (0xFDD0, 0xFDEF),  # noncharacters
    (0xFEFF, 0xFEFF),  # byte order mark
    (0xFFA0, 0xFFA0),  # halfwidth Hangul filler
    (0xFFF0, 0xFFFB),  # unassigned, then interlinear annotation
    (0xFFFE, 0xFFFF),  # noncharacters
    (0x1BCA0, 0x1BCA3),  # shorthand format controls
    (0x1D173, 0x1D17A),  # musical format controls
    (0xE0000, 0xE00FF),  # tags: a whole alphabet nobody sees
    (0xE01F0, 0xE0FFF),  # unassigned and invisible
    *((plane | 0xFFFE, plane | 0xFFFF) for plane in range(0x10000, 0x110000, 0x10000)),
)
# Joiners and variation selectors are invisible too, but emoji and many scripts need them.
JOINERS = ((0x200C, 0x200D),)
SELECTORS = ((0x180B, 0x180D), (0x180F, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF))
SPACES = (
    (0xA0, 0xA0),
    (0x1680, 0x1680),
    (0x2000, 0x200A),
    (0x202F, 0x202F),
    (0x205F, 0x205F),
    (0x2800, 0x2800),  # the Braille pattern without a dot
    (0x3000, 0x3000),
)
SURROGATES = ((0xD800, 0xDFFF),)
FLOWING_CONTROLS = ((0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x9F))
CONTROLS = ((0x00, 0x1F), (0x7F, 0x9F))


def _one_of(*tables: Iterable[tuple[int, int]]) -> re.Pattern[str]:
    ranges = (rf"\U{first:08x}-\U{last:08x}" for table in tables for first, last in table)
    return re.compile(f"[{''.join(ranges)}]")


_ALWAYS = (*HIDDEN, *JOINERS, *SELECTORS, *SURROGATES)
# What is special within ASCII; ten times as fast as the whole, which few programs ever need.
_special_in_ascii = _one_of(((0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x7F)))
_joiner = _one_of(JOINERS)
_selector = _one_of(SELECTORS)
_control = _one_of(CONTROLS)
_surrogate = _one_of(SURROGATES)
_line_breaks = re.compile(r"[\n\t]")


@cache
def _special() -> re.Pattern[str]:
    return _one_of(_ALWAYS, FLOWING_CONTROLS)


@cache
def _revealed(newlines: bool) -> re.Pattern[str]:
    return _one_of(_ALWAYS, FLOWING_CONTROLS if newlines else CONTROLS, SPACES)


@cache
def _acting_in_json() -> re.Pattern[str]:
    """JSON has escapes of its own for the other controls."""
    return _one_of(HIDDEN, SURROGATES, ((0x7F, 0x9F),))


# What ends the body of each kind of sequence: its final character, or one that breaks it off.
_after_csi_body = re.compile(r"[^ -?]")
_after_intermediates = re.compile(r"[^ -/]")
_after_string_body = re.compile(r"[\x00-\x1f\x80-\x9f]")
_OPENERS = {"[": "csi", **dict.fromkeys("]PX^_", "string")}
_C1_OPENERS = {"\x9b": "csi", **dict.fromkeys("\x90\x98\x9d\x9e\x9f", "string")}
_STRING_ENDS = frozenset("\x07\x18\x1a\x9c")


def sanitise(text: str, *, newlines: bool = True) -> str:
    """Flowing text without escape sequences, and with everything else that hides made visible.

    A lone carriage return starts a new line. Without `newlines` the result is one line, with
    spaces where lines and tabs were.
    """
    if _next_special(text, 0) is not None:
        sanitiser = Sanitiser()
        text = sanitiser.feed(text) + sanitiser.flush()
    return text if newlines else _line_breaks.sub(" ", text)


def reveal(text: str, *, newlines: bool = False) -> str:
    """All of the text, with every character that acts, hides or passes for a space as a mark.

    With `newlines`, line feeds and tabs stay what they are.
    """
    return _revealed(newlines).sub(lambda found: _shown(found.group(), _before(found)), text)


def escaped_json(text: str) -> str:
    """The same JSON, with an escape for each character that acts on a terminal, or hides there."""
    if text.isascii() and "\x7f" not in text:
        return text
    return _acting_in_json().sub(_json_escape, text)


def _json_escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))


def single_line(text: str, width: int) -> str:
    """A title or a name on one line of at most `width` columns, "…" for what was cut.

    Not for a command a person has to judge: show that whole, by `reveal`.
    """
    width = max(width, 1)
    # Beyond this even combining characters, which take no column, are cut.
    head = text[: 8 * width]
    revealed = reveal(head)
    if len(head) == len(text) and columns(revealed) <= width:
        return revealed
    return _cut(revealed, width - 1) + "…"


def decomposed(text: str) -> str:
    """The text in plain letters and marks on them (NFKD), the marks in the order they came in: to
    sort a run of them takes quadratic time."""
    if text.isascii():
        return text
    return "".join(unicodedata.normalize("NFKD", char) for char in text)


class Sanitiser:
    """`sanitise` for text that comes in pieces, cut anywhere, in the middle of a sequence too.

    Holds no text, only where it is: an unterminated sequence of a gigabyte costs nothing. One
    that never ends hides the rest of its line and not more.

    With `keep_hidden` only what could drive a terminal goes. Direction marks, soft hyphens and the
    like stay: in a file they are part of the text.
    """

    __slots__ = ("_keep_hidden", "_last", "_out", "_state")

    def __init__(self, *, keep_hidden: bool = False) -> None:
        self._keep_hidden = keep_hidden
        self._state = "text"
        self._last = ""
        self._out: list[str] = []

    def feed(self, chunk: str) -> str:
        """What can be shown of the text so far and was not returned before."""
        at = 0
        while at < len(chunk):
            at = self._step(chunk, at)
        return self._take()

    def flush(self) -> str:
        """The end of the text; the sanitiser is then as new."""
        if self._state == "escape":
            self._out.append(_picture("\x1b"))
        self._state, self._last = "text", ""
        return self._take()

    def _take(self) -> str:
        shown = "".join(self._out)
        self._out.clear()
        return shown

    def _step(self, chunk: str, at: int) -> int:
        match self._state:
            case "escape":
                return self._after_escape(chunk, at)
            case "charset":
                return self._skip(chunk, at, _after_intermediates, "0")
            case "csi":
                return self._skip(chunk, at, _after_csi_body, "@")
            case "string":
                return self._in_string(chunk, at)
            case "return":
                return self._after_return(chunk, at)
            case _:
                return self._in_text(chunk, at)

    def _in_text(self, chunk: str, at: int) -> int:
        found = _next_special(chunk, at)
        end = len(chunk) if found is None else found.start()
        if end > at:
            self._emit(chunk[at:end])
        if found is None:
            return end
        self._special(found.group())
        return end + 1

    def _special(self, char: str) -> None:
        if char == "\x1b":
            self._state = "escape"
        elif char == "\r":
            self._state = "return"
            self._emit("\n")
        elif char in _C1_OPENERS:
            self._state = _C1_OPENERS[char]
        else:
            hidden = not (_control.match(char) or _surrogate.match(char))
            shown = char if self._keep_hidden and hidden else _shown(char, self._last)
            self._out.append(shown)
            # Nothing joins itself to a mark.
            self._last = char if shown == char else ""

    def _after_return(self, chunk: str, at: int) -> int:
        # The line break is out already: a CR, CR LF or CR CR LF makes one.
        if chunk[at] == "\r":
            return at + 1
        self._state = "text"
        return at + 1 if chunk[at] == "\n" else at

    def _after_escape(self, chunk: str, at: int) -> int:
        char = chunk[at]
        if " " <= char <= "/":
            self._state = "charset"
            return at + 1
        self._state = _OPENERS.get(char, "text")
        if "0" <= char <= "~":
            return at + 1
        self._out.append(_picture("\x1b"))
        self._last = ""
        return at

    def _skip(self, chunk: str, at: int, end_of_body: re.Pattern[str], first_final: str) -> int:
        found = end_of_body.search(chunk, at)
        if found is None:
            return len(chunk)
        self._state = "text"
        return found.end() if first_final <= found.group() <= "~" else found.start()

    def _in_string(self, chunk: str, at: int) -> int:
        found = _after_string_body.search(chunk, at)
        if found is None:
            return len(chunk)
        self._state = "text"
        return found.end() if found.group() in _STRING_ENDS else found.start()

    def _emit(self, text: str) -> None:
        self._out.append(text)
        self._last = text[-1]


def _next_special(text: str, at: int) -> re.Match[str] | None:
    return (_special_in_ascii if text.isascii() else _special()).search(text, at)


def _shown(char: str, before: str) -> str:
    """How a special character is shown, given the one before it."""
    if _joiner.match(char):
        return char if before and _may_be_joined(before) else _mark(char)
    if _selector.match(char):
        return char if before and _has_variants(before, char) else _mark(char)
    if _surrogate.match(char):
        return "\ufffd"
    return _picture(char) if _control.match(char) else _mark(char)


def _may_be_joined(char: str) -> bool:
    # Emoji, and letters of the scripts that use joiners; never Latin, Greek or Cyrillic.
    return ord(char) >= 0x0590 and unicodedata.category(char) in ("Lo", "Mn", "Mc", "So", "Sk")


def _has_variants(char: str, selector: str) -> bool:
    if "\ufe00" <= selector <= "\ufe0f":
        # Emoji are symbols and a few punctuation marks; keycaps begin with ASCII.
        kinds = ("Lo", "Pd", "Po", "Sk", "Sm", "So")
        return char in "0123456789#*" or (
            not char.isascii() and unicodedata.category(char) in kinds
        )
    return ord(char) >= 0x1820 and unicodedata.category(char) in ("Lm", "Lo")


def _before(found: re.Match[str]) -> str:
    start = found.start()
    return found.string[start - 1 : start] if start else ""


def _picture(control: str) -> str:
    """The symbol Unicode has for a control character; those above DEL have none."""
    code = ord(control)
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else _mark(control)


def _mark(char: str) -> str:
    return f"⟨U+{ord(char):04X}⟩"


def columns(text: str) -> int:
    """How many columns of a terminal the text takes."""
    return len(text) if text.isascii() else sum(map(_width, text))


def _width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me") or _joiner.match(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _cut(text: str, width: int) -> str:
    for end, char in enumerate(text):
        width -= _width(char)
        if width < 0:
            return text[:end]
    return text
