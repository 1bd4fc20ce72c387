"""Markdown rendered as it streams: printed text is never redrawn.

Held back is only what may still become something else: the first marks of a line, a word that is
not over, a span whose end has not come (for `_SPAN` characters at most), a line of code, and a
table until it is over. The same text gives the same bytes however it was cut. Pure: text in, text
for a terminal out; without colour the marks stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from dragoman.cli.render.markdown.code_colours import CodeColours
from dragoman.cli.render.markdown.table_layout import TableLines
from dragoman.cli.render.style import BOLD, CYAN, DIM, ITALIC, STRUCK, UNDERLINE, Codes, Style
from dragoman.cli.render.wrap import Wrap
from dragoman.lazy_pattern import lazy_pattern

_SPAN = 300
_LINE = 4000

# The beginning of a line that more characters could turn into another kind of line.
_UNDECIDED = lazy_pattern(
    r"[ \t]*(?:`{1,2}|~{1,2}|#{1,6}|>|[-*_+][-*_ ]*(?:(?<= )\[(?:[ xX]\]?)?)?|\d{1,9}[.)]?)?\Z"
)
_FENCE = lazy_pattern(r"[ \t]*(?P<fence>`{3,}|~{3,})[ \t]*")
_TABLE = lazy_pattern(r"[ \t]*\|")
_RULE = lazy_pattern(r"[ \t]*(?:(?:- *){3,}|(?:\* *){3,}|(?:_ *){3,})(?=\n|\Z)")
_HEADING = lazy_pattern(r" {0,3}(?P<level>#{1,6})[ \t]")
_QUOTE = lazy_pattern(r" {0,3}>[ \t]?")
_ITEM = lazy_pattern(r"(?P<indent>[ \t]*)(?P<mark>[-*+]|\d{1,9}[.)])[ \t]")
_TASK = lazy_pattern(r"\[(?P<done>[ xX])\][ \t]")
_INDENT = lazy_pattern(r"[ \t]*")

_SPECIAL = lazy_pattern(r"[*_`~&\[\\\n]")
_MARKS = lazy_pattern(r"\*+|_+|`+|~+")
_ENTITY = lazy_pattern(r"&(?P<name>#?\w{1,8});")
_MAYBE_ENTITY = lazy_pattern(r"&#?\w{0,8}\Z")
_ENTITIES = {
    "amp": "&",
    "lt": "<",
    "gt": ">",
    "quot": '"',
    "apos": "'",
    "#39": "'",
    "nbsp": "\u00a0",
    "hellip": "…",
    "mdash": "—",
    "ndash": "–",
    "larr": "←",
    "rarr": "→",
    "times": "×",
}
"""Those that models write; any other stays as it is."""
_LINK = lazy_pattern(r"\[(?P<text>[^\[\]\n]+)\]\((?P<url>[^()\s]+)\)")
_PUNCTUATION = frozenset("\\`*_{}[]()#+-.!|<>~")


class MarkdownStream:
    """`feed` chunks, in any cut; `flush` at the end. `base` is how ordinary text is painted."""

    def __init__(self, style: Style, width: Callable[[], int], base: Codes = ()) -> None:
        self._style = style
        self._width = width
        self._base = base
        self._wrap = Wrap(style, width)
        self._text = ""
        self._at = 0
        self._final = False
        self._fence = ""
        self._verbatim: Codes | None = None
        self._colours: CodeColours | None = None
        self._table = TableLines(style, width, base, self._cell)
        self._line_start = True
        self._codes = base
        self._before = " "

    def feed(self, text: str) -> str:
        self._text = self._text[self._at :] + text
        self._at = 0
        out: list[str] = []
        while self._at < len(self._text) and (piece := self._step()) is not None:
            out.append(piece)
        return "".join(out)

    def flush(self) -> str:
        """The end of the text; the stream is then as new, but does not end the line."""
        self._final = True
        out = self.feed("") + self._table.close() + self._wrap.rest()
        self._wrap = Wrap(self._style, self._width)
        self._text, self._at = "", 0
        self._final = False
        self._fence, self._verbatim, self._colours = "", None, None
        self._line_start, self._codes, self._before = True, self._base, " "
        return out

    def sentence(self, text: str, indent: int) -> str:
        """A text that is not a block of its own, indented so far."""
        self._line_start = False
        self._wrap.begin("", " " * indent, indent)
        return self.feed(text) + self.flush()

    def pause(self) -> str:
        """The word that is held: nothing has come for a while, and someone is reading."""
        return self._wrap.rest()

    def _step(self) -> str | None:
        """Take a piece off the text; None when more is needed to know what it is."""
        if self._verbatim is not None:
            return self._verbatim_piece()
        if self._line_start:
            return self._code_line() if self._fence else self._block()
        return self._inline()

    # ── lines ─────────────────────────────────────────────────────────────────────────────────

    def _block(self) -> str | None:
        """What kind of line begins here."""
        text, at = self._text, self._at
        if not self._final and len(text) - at < _SPAN and _UNDECIDED.match(text, at):
            return None
        if self._style.colour and (self._table.is_open or _TABLE.match(text, at)):
            return self._table_line()
        fence = _FENCE.match(text, at, at + _SPAN)
        if fence is not None and self._end_of_line() is None:
            return None
        if fence is not None:
            self._fence = fence["fence"]
            return self._fence_line(fence.end())
        self._line_start = False
        if _TABLE.match(text, at):
            self._verbatim = self._base
            return ""
        if not self._style.colour:
            return self._hanging(_ITEM.match(text, at) or _INDENT.match(text, at))
        if rule := _RULE.match(text, at, at + _SPAN):
            self._at = rule.end()
            return self._style("─" * min(self._width() - 1, 60), DIM)
        return self._painted_block()

    def _table_line(self) -> str | None:
        """A line that begins like a row of a table, or the one after the last."""
        if not _TABLE.match(self._text, self._at):
            return self._table.close()
        end = self._end_of_line()
        if end is None:
            return None
        is_ended = self._text.startswith("\n", end)
        if not (is_ended or self._final):  # too long to be one
            self._line_start, self._verbatim = False, self._base
            return self._table.close()
        line = self._text[self._at : end]
        self._at = end + is_ended
        return self._table.add(line, is_ended=is_ended)

    def _cell(self, text: str, codes: Codes, width: int) -> str:
        return MarkdownStream(self._style, lambda: width + 1, codes).sentence(text, 0)

    def _painted_block(self) -> str:
        text, at = self._text, self._at
        if heading := _HEADING.match(text, at):
            self._at = heading.end()
            more = (UNDERLINE,) if len(heading["level"]) == 1 else ()
            self._codes = (*self._base, BOLD, *more)
            return ""
        if quote := _QUOTE.match(text, at):
            self._at = quote.end()
            bar = self._style("│ ", DIM)
            return self._wrap.begin(bar, bar, 2)
        if item := _ITEM.match(text, at):
            indent = item["indent"].replace("\t", "    ")
            mark = "•" if item["mark"] in "-*+" else item["mark"]
            self._at = item.end()
            if mark == "•" and (task := _TASK.match(text, self._at)):
                mark = "☐" if task["done"] == " " else "☑"
                self._at = task.end()
            return self._indented(f"{indent}{mark} ")
        return self._hanging(_INDENT.match(text, at))

    def _hanging(self, prefix: re.Match[str] | None) -> str:
        """Text behind a prefix that stays as it is, in lines that are all indented as far."""
        shown = "" if prefix is None else prefix.group().replace("\t", "    ")
        self._at += 0 if prefix is None else prefix.end() - prefix.start()
        return self._indented(shown)

    def _indented(self, prefix: str) -> str:
        # A deep indent on a narrow terminal would leave no room for words.
        taken = len(prefix) if len(prefix) < self._width() // 2 else 0
        painted = self._style(prefix, *self._base) if prefix.strip() else prefix
        return self._wrap.begin(painted, " " * taken, taken)

    def _code_line(self) -> str | None:
        end = self._end_of_line()
        if end is None:
            return None
        line = self._text[self._at : end].strip()
        if line.startswith(self._fence) and not line.strip(self._fence[0]):
            self._fence, self._colours = "", None
            return self._fence_line(end)
        self._line_start = False
        self._verbatim = (*self._base, CYAN)
        return ""

    def _fence_line(self, marks_end: int) -> str:
        """The line above code or below it: where code is painted only what follows the marks
        is shown, and no line where nothing does."""
        if self._style.colour:
            self._at = marks_end
            if self._fence:
                self._colours = CodeColours.of(self._text[marks_end : self._end_of_line()])
            if self._text.startswith("\n", marks_end):
                self._at += 1
                return ""
        self._line_start = False
        self._verbatim = (*self._base, DIM)
        return ""

    def _verbatim_piece(self) -> str | None:
        """A line that is not laid out: of code, or of a table."""
        end = self._end_of_line()
        if end is None:
            return None
        line = self._text[self._at : end]
        self._at = end
        out = self._coloured(line)
        if end < len(self._text) and self._text[end] == "\n":
            return out + self._new_line()
        return out

    def _coloured(self, line: str) -> str:
        codes = self._verbatim or ()
        if self._colours is None or not codes or codes[-1] != CYAN:
            return self._style(line, *codes)
        return "".join(
            self._style(text, *((*self._base, *its) if its else codes))
            for text, its in self._colours.line(line)
        )

    def _end_of_line(self) -> int | None:
        """Where the line ends, or is long enough to be printed; None when it continues."""
        limit = self._at + _LINE
        end = self._text.find("\n", self._at, limit)
        if end >= 0:
            return end
        if len(self._text) >= limit:
            return limit
        return len(self._text) if self._final else None

    def _new_line(self) -> str:
        self._at += 1
        self._verbatim = None
        self._line_start, self._codes, self._before = True, self._base, " "
        return self._wrap.end_line()

    # ── within a line ─────────────────────────────────────────────────────────────────────────

    def _inline(self) -> str | None:
        text, at = self._text, self._at
        if text[at] == "\n":
            return self._new_line()
        if not self._style.colour:
            end = text.find("\n", at)
            return self._words(len(text) if end < 0 else end)
        special = _SPECIAL.search(text, at)
        if special is None or special.start() > at:
            return self._words(len(text) if special is None else special.start())
        match special.group():
            case "\\":
                return self._escaped()
            case "[":
                return self._link()
            case "&":
                return self._entity()
            case _:
                return self._span()

    def _words(self, end: int) -> str:
        words = self._text[self._at : end]
        self._at = end
        self._before = words[-1:]
        return self._wrap.put(words, self._codes)

    def _escaped(self) -> str | None:
        at = self._at + 1
        if at == len(self._text):
            return self._words(at) if self._final else None
        if self._text[at] not in _PUNCTUATION:
            return self._words(at)
        self._at = at
        return self._words(at + 1)

    def _entity(self) -> str | None:
        entity = _ENTITY.match(self._text, self._at)
        if entity is None:
            may_come = _MAYBE_ENTITY.match(self._text, self._at) and not self._final
            return None if may_come else self._words(self._at + 1)
        meant = _ENTITIES.get(entity["name"])
        if meant is None:
            return self._words(entity.end())
        self._at = entity.end()
        self._before = meant
        return self._wrap.put(meant, self._codes)

    def _link(self) -> str | None:
        window = self._window()
        link = _LINK.match(window)
        if link is None:
            may_come = len(window) < _SPAN and "\n" not in window and not self._final
            closed = re.match(r"\[[^\[\]]*(?:\[|\](?!\(|\Z)|\]\([^()]*[(\s])", window)
            return None if may_come and not closed else self._words(self._at + 1)
        self._at += link.end()
        self._before = ")"
        out = self._wrap.put(link["text"], (*self._codes, UNDERLINE))
        if link["url"] in (link["text"], f"mailto:{link['text']}"):
            return out
        # Where it leads is always shown: the text may say anything.
        return out + self._wrap.put(f" ({link['url']})", (*self._codes, DIM))

    def _span(self) -> str | None:
        """Emphasis or code, once its end is there; the marks as they are if it never comes."""
        window = self._window()
        marks = _MARKS.match(window)
        assert marks is not None
        opener = marks.group()
        if len(opener) == len(window) and not self._is_over(window):
            return None
        if not self._opens(opener, window[len(opener) : len(opener) + 1]):
            return self._words(self._at + len(opener))
        closer = _closer(opener).search(window, len(opener))
        if closer is None:
            return self._words(self._at + len(opener)) if self._is_over(window) else None
        if closer.end() == len(window) and not self._is_over(window):
            return None  # the next character may belong to the closing marks
        inner = window[len(opener) : closer.start()]
        self._at += closer.end()
        self._before = opener[-1]
        return self._spanned(inner, opener)

    def _spanned(self, inner: str, opener: str) -> str:
        if opener[0] == "`":
            return self._wrap.put(inner, (*self._codes, CYAN))
        if opener[0] == "~":
            codes: Codes = (STRUCK,)
        else:
            codes = {1: (ITALIC,), 2: (BOLD,)}.get(len(opener), (BOLD, ITALIC))
        nested = MarkdownStream(self._style, self._width, (*self._codes, *codes))
        nested._wrap, nested._line_start, nested._final = self._wrap, False, True
        return nested.feed(inner)

    def _opens(self, opener: str, after: str) -> bool:
        if opener[0] == "`":
            return True
        if len(opener) > 3 or not after or after.isspace():
            return False
        if opener[0] == "~":
            return len(opener) == 2
        return not self._before.isalnum() or (opener[0] == "*" and not after.isalnum())

    def _window(self) -> str:
        """What is looked at to find the end of a span: a part of the line."""
        window = self._text[self._at : self._at + _SPAN]
        line, newline, _ = window.partition("\n")
        return line + newline

    def _is_over(self, window: str) -> bool:
        return self._final or len(window) >= _SPAN or window.endswith("\n")


def _closer(opener: str) -> re.Pattern[str]:
    """The same marks again, and not more of them, at the end of a word."""
    mark = re.escape(opener[0])
    if opener[0] == "`":
        return re.compile(rf"(?<!`){opener}(?!`)")
    edge = r"(?!\w)" if opener[0] == "_" else ""
    return re.compile(rf"(?<![\s{mark}]){re.escape(opener)}(?!{mark}){edge}")
