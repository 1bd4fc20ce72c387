"""Colours of code, line by line as it streams: comments, strings, numbers and keywords.

Not a grammar of any language: what these few marks do not explain has the colour of all code. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby

from dragoman.cli.render.style import BLUE, BOLD, DIM, GREEN, MAGENTA, RED, YELLOW, Codes

_COMMENT, _STRING, _NUMBER, _KEYWORD = (DIM,), (GREEN,), (YELLOW,), (MAGENTA,)
_HASH, _SLASHES, _DASHES = r"(?:(?<=\s)|^)\#.*", r"//.*", r"--.*"
_DOUBLE, _SINGLE = r'"(?:\\.|[^"\\])*(?:"|$)', r"'(?:\\.|[^'\\])*(?:'|$)"
_QUOTES = rf"{_DOUBLE}|{_SINGLE}"

_C_WORDS = (
    "abstract as async await bool boolean break byte case catch char class const continue "
    "default defer delete do double else enum export extends extern false final finally float "
    "fn for from func function go goto if implements import in instanceof int interface is "
    "let long map match mod module mut namespace new nil null nullptr of override package "
    "private protected public pub range readonly return self short signed sizeof static "
    "string struct super switch template this throw throws trait true try type typedef typeof "
    "undefined union unsafe unsigned use using val var virtual void when where while with "
    "yield"
)
_PYTHON_WORDS = (
    "and as assert async await break case class continue def del elif else except False "
    "finally for from global if import in is lambda match None nonlocal not or pass raise "
    "return self True try while with yield"
)
_SHELL_WORDS = (
    "case do done elif else esac export fi for function if in local read return set shift "
    "then trap unset until while"
)
_RUBY_WORDS = (
    "and begin class def do else elsif end ensure false for if in module nil not or require "
    "rescue return self super then true unless until when while yield"
)
_SQL_WORDS = (
    "add all alter and as asc begin between by case check column commit constraint create "
    "cross default delete desc distinct drop else end exists false foreign from full group "
    "having if in index inner insert into is join key left like limit not null offset on or "
    "order outer primary references returning right rollback select set table then true union "
    "unique update using values view when where with"
)
_LUA_WORDS = (
    "and break do else elseif end false for function if in local nil not or repeat return "
    "then true until while"
)


class _Language:
    """`blocks` are marks of texts over several lines, with what ends them and their colours."""

    def __init__(
        self,
        words: str,
        comment: str = "",
        quotes: str = _QUOTES,
        blocks: tuple[tuple[str, str, Codes], ...] = (),
        *,
        any_case: bool = False,
    ) -> None:
        self.words = frozenset(words.split())
        self.any_case = any_case
        self.blocks = {begin: (end, codes) for begin, end, codes in blocks}
        begins = "|".join(re.escape(begin) for begin, _, _ in blocks)
        kinds = (
            ("block", begins),
            ("comment", comment),
            ("string", quotes),
            ("number", r"(?<![\w.])\d[\w.]*"),
            ("word", r"[A-Za-z_$][\w$]*"),
        )
        self.pieces = re.compile("|".join(f"(?P<{name}>{it})" for name, it in kinds if it))


_C_BLOCK = ("/*", "*/", _COMMENT)
_C = _Language(_C_WORDS, _SLASHES, blocks=(_C_BLOCK,))
_SCRIPT = _Language(_C_WORDS, _SLASHES, blocks=(_C_BLOCK, ("`", "`", _STRING)))
_RUST = _Language(_C_WORDS + " impl dyn ref crate move", _SLASHES, _DOUBLE, (_C_BLOCK,))
_PYTHON = _Language(
    _PYTHON_WORDS, r"\#.*", blocks=(('"""', '"""', _STRING), ("'''", "'''", _STRING))
)
_SHELL = _Language(_SHELL_WORDS, _HASH)
_DATA = _Language("true false null yes no on off", _HASH)
_JSON = _Language("true false null", _SLASHES, _DOUBLE)
_RUBY = _Language(_RUBY_WORDS, _HASH)
_SQL = _Language(_SQL_WORDS, _DASHES, blocks=(_C_BLOCK,), any_case=True)
_LUA = _Language(_LUA_WORDS, _DASHES)
_STYLES = _Language("", blocks=(_C_BLOCK,))
_MARKUP = _Language("", blocks=(("<!--", "-->", _COMMENT),))
_DIFF = _Language("")

_NAMES = {
    "python py pyi python3": _PYTHON,
    "bash sh zsh shell console shell-session fish make makefile dockerfile": _SHELL,
    "yaml yml toml ini cfg conf env properties": _DATA,
    "json jsonc json5 jsonl": _JSON,
    "js javascript jsx mjs cjs ts typescript tsx mts go golang": _SCRIPT,
    "c h cpp c++ cc cxx hpp java kotlin kt kts cs csharp swift scala dart php zig proto": _C,
    "rust rs": _RUST,
    "ruby rb elixir ex perl pl r": _RUBY,
    "sql postgresql mysql sqlite": _SQL,
    "lua haskell hs": _LUA,
    "css scss less": _STYLES,
    "html xml svg vue": _MARKUP,
    "diff patch": _DIFF,
}
_LANGUAGES = {name: language for names, language in _NAMES.items() for name in names.split()}
_DIFF_CODES: dict[str, Codes] = {"+": (GREEN,), "-": (RED,), "@": (BLUE, BOLD)}


class CodeColours:
    """The lines of one block of code, in order."""

    def __init__(self, language: _Language) -> None:
        self._language = language
        self._end: tuple[str, Codes] | None = None
        """What ends the text that began in an earlier line, and its colours."""

    @classmethod
    def of(cls, info: str) -> CodeColours | None:
        """For what follows the marks of a block, such as `python title="x"`; None if unknown."""
        name = next(iter(info.lower().split()), "").strip("{}.")
        language = _LANGUAGES.get(name.partition(",")[0])
        return None if language is None else cls(language)

    def line(self, text: str) -> Iterator[tuple[str, Codes]]:
        """The line in pieces; those without codes have the colour of all code."""
        for codes, pieces in groupby(self._pieces(text), lambda piece: piece[1]):
            yield "".join(piece for piece, _ in pieces), codes

    def _pieces(self, text: str) -> Iterator[tuple[str, Codes]]:
        if self._language is _DIFF:
            yield text, _DIFF_CODES.get(text[:1], ())
            return
        at = 0
        while at < len(text):
            if self._end is not None:
                yield (piece := self._block(text, at))
                at += len(piece[0])
                continue
            found = self._language.pieces.search(text, at)
            if found is None:
                yield text[at:], ()
                return
            if found.start() > at:
                yield text[at : found.start()], ()
            if found.lastgroup == "block":
                self._end = self._language.blocks[found.group()]
                yield found.group(), self._end[1]
            else:
                yield found.group(), self._codes(found)
            at = found.end()

    def _block(self, text: str, at: int) -> tuple[str, Codes]:
        assert self._end is not None
        end, codes = self._end
        over = text.find(end, at)
        if over < 0:
            return text[at:], codes
        self._end = None
        return text[at : over + len(end)], codes

    def _codes(self, found: re.Match[str]) -> Codes:
        match found.lastgroup:
            case "comment":
                return _COMMENT
            case "string":
                return _STRING
            case "number":
                return _NUMBER
            case _:
                language = self._language
                word = found.group().lower() if language.any_case else found.group()
                return _KEYWORD if word in language.words else ()
