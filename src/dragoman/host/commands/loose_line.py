"""Reads any shell line loosely: every command it might run, every file it might redirect.

The counterpart of `shell_line`, for rules that deny or ask: it never gives up, and finds too much
rather than too little. What only running the line shows is in the words as a mark: `ANY` for any
text, `MANY` for any number of words. What might not be a command at all is found as not `sure`.
Pure, and linear in the line, which an agent chooses.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from itertools import chain, pairwise
from typing import NamedTuple

import msgspec

from dragoman.host.commands.carriers import (
    SHELLS,
    Argv,
    Running,
    program_name,
    program_places,
    runs_its_words,
)
from dragoman.host.commands.file_operands import may_name_a_file
from dragoman.host.commands.reading_cache import cached
from dragoman.host.commands.shell_line import Reading, read_argv, read_line
from dragoman.lazy_pattern import lazy_pattern

ANY, MANY = "\ue000", "\ue001"
_MARKS = lazy_pattern(f"[{ANY}{MANY}]")
LONGEST = 32 << 10
_DEEPEST = 12
_MOST_FOUND = 512
_MOST_FILES = 64
_EVERYTHING: Argv = (MANY,)


class Suspect(msgspec.Struct, frozen=True):
    """Words that may be run as a command; `runs` says whether words after the first may be, too."""

    words: Argv
    sure: bool = True
    runs: Running = "never"
    folder: str | None = None
    """From where the line starts; None for all that the line goes to."""


class LooseFile(NamedTuple):
    path: str
    writes: bool


class LooseLine(msgspec.Struct, frozen=True):
    """What a line comes to at most. `folders` are those it may go to, as they are written."""

    suspects: tuple[Suspect, ...]
    files: tuple[LooseFile, ...]
    folders: tuple[str, ...]


class LineOutline(msgspec.Struct, frozen=True):
    """By which rules are found: `programs` are the names, in lower case, of what may be run, unless
    it may be `any_program`; `words` are all that may follow, None if they may be any. `layers`
    are the commands that are read for sure, with those around them, and `gone_to` their
    folders."""

    programs: frozenset[str]
    words: frozenset[str] | None
    any_program: bool
    layers: frozenset[Argv]
    gone_to: frozenset[str]
    writes: bool
    """Whether its words may name files that it writes."""


@cached(16)
def outline(command: Argv | str) -> LineOutline:
    """What this line, or these words, may come to, in little time."""
    reading = read_line(command) if isinstance(command, str) else read_argv(command)
    layers = frozenset([each.argv for run in reading.runs for each in run])
    gone_to = frozenset([each.folder for run in reading.runs for each in run if each.folder])
    words = frozenset(chain.from_iterable(layers))
    # Together, since one by one they cost several times as much.
    folded = "\0".join(words).casefold().split("\0")
    names = frozenset([word[word.rfind("/") + 1 :] if "/" in word else word for word in folded])
    is_simple = reading.unread is None and names.isdisjoint(_TELL_MORE)
    if is_simple and not _is_line.search("\0".join(words)):
        writes = may_name_a_file(names, words)
        return LineOutline(names, words, False, layers, gone_to, writes)
    suspects = loosely(command).suspects
    words = frozenset(word for each in suspects for word in each.words)
    return LineOutline(
        programs=frozenset(
            program_name(word).casefold() for each in suspects for word in _programs(each)
        ),
        words=None if any(map(has_marks, words)) else words,
        any_program=any(map(_may_be_any, suspects)),
        layers=layers,
        gone_to=gone_to,
        writes=True,
    )


@cached(16)
def loosely(command: Argv | str) -> LooseLine:
    """All that this line, or these words, might come to."""
    reading = read_line(command) if isinstance(command, str) else read_argv(command)
    found = _Found()
    if reading.unread is None:
        text = command if isinstance(command, str) else " ".join(command)
        found.take(reading, fed="|" in text or "<" in text)
    elif isinstance(command, str):
        found.scan(command)
    else:
        found.command(command)
    return LooseLine(tuple(found.suspects), tuple(found.files), tuple(found.folders))


def _programs(suspect: Suspect) -> Argv:
    return suspect.words[:1] if suspect.runs == "never" else suspect.words


def _may_be_any(suspect: Suspect) -> bool:
    """Whether a program is named by what only running the line shows."""
    words = suspect.words
    if has_marks(words[0]):
        return True
    places = program_places(words) if suspect.runs == "surely" else ()
    return any(has_marks(words[at]) for at in places)


def has_marks(text: str) -> bool:
    return _MARKS.search(text) is not None


def shown(words: Argv) -> str:
    """For people."""
    return " ".join(_MARKS.sub("…", e) if has_marks(e) else shlex.quote(e) for e in words)


class _Found:
    """Collects, in bounds: beyond them it might be anything."""

    def __init__(self) -> None:
        self.suspects: dict[Suspect, None] = {}
        self.files: dict[LooseFile, None] = {}
        self.folders: dict[str, None] = {}
        self._left = 8 * LONGEST
        self._depth = 0

    def take(self, reading: Reading, *, fed: bool) -> None:
        """From a line that is read for sure."""
        self.files.update((LooseFile(path, writes=False), None) for path in reading.reads)
        self.files.update((LooseFile(path, writes=True), None) for path in reading.writes)
        for each in chain.from_iterable(reading.runs):
            self.command(each.argv, each.folder, fed=fed)

    def scan(self, text: str) -> None:
        """A text that a shell surely takes for a line: what is any text in it may be many words."""
        if self._has_room(text):
            self._depth += 1
            _Scan(self, text.replace(ANY, MANY)).run(0, "")
            self._depth -= 1

    def mention(self, text: str) -> None:
        """A text that something may take for a line, in whatever language: its words count."""
        if self._has_room(text) and (words := tuple(_word.findall(text))):
            self.suspects[Suspect(words, sure=False, runs="perhaps")] = None

    def document(self, text: str) -> None:
        """A text in which a shell replaces what it expands, and nothing else."""
        if self._has_room(text):
            _Scan(self, text).expand()

    def _has_room(self, text: str) -> bool:
        self._left -= len(text)
        has_room = self._left >= 0 and self._depth < _DEEPEST and len(text) <= LONGEST
        if not has_room:
            self.anything()
        return has_room

    def file(self, path: str, *, writes: bool) -> None:
        path = path if len(self.files) < _MOST_FILES else MANY
        self.files[LooseFile(path, writes)] = None

    def anything(self) -> None:
        """A command that nothing is known of."""
        self.suspects[Suspect(_EVERYTHING, sure=False)] = None

    def command(self, argv: Argv, folder: str | None = None, *, fed: bool = False) -> None:
        if len(self.suspects) >= _MOST_FOUND:
            return self.anything()
        runs = runs_its_words(argv)
        if runs == "surely" and any(program_name(word) in _ADD_WORDS for word in argv):
            argv = (*argv, MANY)
        if runs == "surely" and any(program_name(word) in _TAKE_A_LINE for word in argv):
            argv = tuple(word.replace(ANY, MANY) for word in argv)
        suspect = Suspect(argv, runs=runs, folder=folder)
        if suspect in self.suspects:
            return None
        self.suspects[suspect] = None
        if len(argv) == 1 and " " in argv[0]:
            self.scan(argv[0])
        if runs != "never":
            self._lines_in(argv[1:], self.scan if runs == "surely" else self.mention)
        if fed or argv[0] in (".", "source"):
            self._input_of(argv, fed=fed)
        return None

    def _lines_in(self, words: Sequence[str], read: Callable[[str], None]) -> None:
        """Words that a program may take for a line."""
        for before, word in pairwise(("", *words)):
            if _is_line.search(word):
                more = word[2:] if word.startswith("-") else ""
                given = _assigned.match(word)
                for line in filter(None, (word, more, word[given.end() :] if given else "")):
                    read(line)
            elif _takes_a_line.fullmatch(before):
                read(word)

    def _input_of(self, argv: Argv, *, fed: bool) -> None:
        """A shell that is given its commands runs any."""
        shells = [at for at, word in enumerate(argv) if program_name(word) in SHELLS]
        if fed and any(_reads_input(argv[at + 1 :]) for at in shells):
            self.anything()
        if argv[0] in (".", "source") and any(map(_from_elsewhere, argv[1:2])):
            self.anything()


_ADD_WORDS = ("xargs", "parallel")
_TAKE_A_LINE = ("eval", "trap", "watch")
_TELL_MORE = SHELLS | {*_ADD_WORDS, ".", "source"}
_is_line = lazy_pattern(r"[\s;&|`$()<>]")
_assigned = lazy_pattern(r"[\w-]++=")
_takes_a_line = lazy_pattern(r"-[a-z]*c")
_word = lazy_pattern(r"[\w@%=:./-]+")


def _reads_input(words: Sequence[str]) -> bool:
    """Whether a shell is given no script to run."""
    return "-s" in words or all(word.startswith(("-", "+")) for word in words) or "-" in words


def _from_elsewhere(path: str) -> bool:
    return has_marks(path) or path.startswith("/dev/")


# ── the scanner ───────────────────────────────────────────────────────────────────────────────

_blank = lazy_pattern(r"[ \t\r\f\v]+|\\\n")
_bare = lazy_pattern(r"[^\s;&|()<>'\"\\$`*?\[{}#!]+")
_inside_quotes = lazy_pattern(r'[^"$`\\]+')
_redirect = lazy_pattern(r"<<<|<<-?|<\(|>\(|<>|[<>]&[0-9-]+|<&|>&|>>|>\||<|>")
_delimiter = lazy_pattern(r"""[ \t]*(?:'([^'\n]*)'|"([^"\n]*)"|\\?([^\s;&|()<>'"]+))""")
_variable = lazy_pattern(r"\$(?:\w+|[@*#?$!-])")
_brace = lazy_pattern(r"\{[^{}\s]*\}")
_class = lazy_pattern(r"\[[^\]\s]{1,64}+\]")
_ansi = lazy_pattern(r"\$'((?:[^'\\]|\\.)*)'", re.DOTALL)
_joint = lazy_pattern(r"\|\||&&|\|&|&>>?|[;&|()\n]")
_assignment = lazy_pattern(r"[A-Za-z_]\w*(?:\[[^\]]*\])?\+?=")
_RESERVED = frozenset(("!", "do", "done", "elif", "else", "fi", "if", "then", "until", "while"))
_GOES = frozenset(("cd", "chdir", "pushd"))


class _Here(NamedTuple):
    """A here-document that begins with the next line."""

    delimiter: str
    indented: bool
    expanded: bool
    command: _Command


class _Command:
    """A command that is being read."""

    def __init__(self, found: _Found) -> None:
        self.words: list[str] = []
        self._found = found
        self._word: list[str] | None = None
        self._pending = ""
        self._looked_at = 0
        self._has_shell = False

    @property
    def in_word(self) -> bool:
        return self._word is not None

    @property
    def names_a_shell(self) -> bool:
        """So far. Each word is looked at once: each of many here-documents asks."""
        while self._looked_at < len(self.words):
            self._has_shell |= program_name(self.words[self._looked_at]) in SHELLS
            self._looked_at += 1
        return self._has_shell

    def add(self, text: str) -> None:
        if self._word is None:
            self._word = []
        self._word.append(text)

    def redirect(self, how: str) -> None:
        """A number right before it belongs to it."""
        if self._word is not None and "".join(self._word).isdigit():
            self._word = None
        self.end_word()
        self._pending = how

    def end_word(self) -> None:
        if self._word is None:
            return
        text, self._word = "".join(self._word), None
        if not self._pending:
            self.words.append(text)
        elif self._pending == "<<<":
            (self._found.scan if self.names_a_shell else self._found.mention)(text)
        elif text != "/dev/null":
            self._found.file(text, writes=self._pending == ">")
        self._pending = ""

    def argv(self) -> Argv:
        """Without assignments and words of the shell at its beginning."""
        at = 0
        for word in self.words:
            if word not in _RESERVED and _assignment.match(word) is None:
                break
            at += 1
        return tuple(self.words[at:])


class _Scan:
    """Reads one text; what is nested in it, in turn."""

    def __init__(self, found: _Found, text: str) -> None:
        self._found = found
        self._text = text
        self._here: list[_Here] = []
        self._nested = 0
        self._feeds = False
        """Whether a command of the text may be given what another prints, or a file has."""

    def expand(self) -> None:
        """Only what is expanded between double quotes."""
        at = 0
        while at < len(self._text):
            at = self._quoted(at, _Command(self._found))

    def run(self, at: int, closer: str) -> int:
        """Up to the closing parenthesis, if there is to be one; returns where that was."""
        text, command = self._text, _Command(self._found)
        while at < len(text):
            if blank := _blank.match(text, at):
                if blank[0] != "\\\n":
                    command.end_word()
                at = blank.end()
            elif bare := _bare.match(text, at):
                command.add(bare[0])
                at = bare.end()
            elif joint := _joint.match(text, at):
                at = joint.end()
                if joint[0].startswith("&>"):
                    command.redirect(">")
                    continue
                self._end(command)
                if joint[0] == closer:
                    return at
                command = _Command(self._found)
                self._feeds |= joint[0] in ("|", "|&")
                at = self._documents(at) if joint[0] == "\n" else at
            elif text[at] in "<>":
                at = self._redirected(at, command)
            elif text[at] == "#" and not command.in_word:
                at = _line_end(text, at)
            elif text[at] in "{}" and self._is_group(at, command):
                self._end(command)
                command = _Command(self._found)
                at += 1
            else:
                at = self._piece(at, command, quoted=False)
        self._end(command)
        self._documents(at)
        return at

    def _end(self, command: _Command) -> None:
        command.end_word()
        if argv := command.argv():
            if argv[0] in _GOES:
                self._found.folders.update(dict.fromkeys(argv[1:]))
            self._found.command(argv, fed=self._feeds)

    def _redirected(self, at: int, command: _Command) -> int:
        found = _redirect.match(self._text, at)
        assert found is not None
        sign, at = found[0], found.end()
        self._feeds |= sign.startswith("<")
        if sign in ("<(", ">("):
            at = self._substituted(at)
            command.add(ANY)
        elif sign in ("<<", "<<-"):
            command.redirect("")
            if named := _delimiter.match(self._text, at):
                name = next(part for part in named.groups() if part is not None)
                expanded = named[3] is not None and "\\" not in named[0]
                self._here.append(_Here(name, sign == "<<-", expanded, command))
                at = named.end()
        elif sign[-1].isdigit() or sign[-1] == "-":
            command.redirect("")
        elif sign == "<<<":
            command.redirect("<<<")
        else:
            command.redirect("<" if sign in ("<", "<&") else ">")
        return at

    def _documents(self, at: int) -> int:
        """Reads the here-documents that begin here. Whether they are, is a guess."""
        for here in self._here:
            start = at
            while at < len(self._text):
                end = _line_end(self._text, at)
                line, after = self._text[at:end], min(end + 1, len(self._text))
                at = after
                if (line.lstrip("\t") if here.indented else line) == here.delimiter:
                    break
            body = self._text[start:at]
            if here.command.names_a_shell:
                self._found.scan(body)
            self._found.mention(body)
            if here.expanded:
                self._found.document(body)
        self._here.clear()
        return at

    def _is_group(self, at: int, command: _Command) -> bool:
        return not command.in_word and self._text[at + 1 : at + 2] in ("", " ", "\t", "\n", ";")

    def _piece(self, at: int, command: _Command, *, quoted: bool) -> int:
        """One character that means something, and what belongs to it."""
        text, char = self._text, self._text[at]
        if char == "\\":
            command.add(text[at + 1 : at + 2])
            return at + 2
        if char == "$":
            return self._expansion(at, command, quoted=quoted)
        if char == "`":
            end = _closing_backtick(text, at + 1)
            self._found.scan(text[at + 1 : end].replace("\\`", "`"))
            command.add(ANY if quoted else MANY)
            return end + 1
        if quoted:
            command.add(char)
            return at + 1
        if char == "'":
            end = text.find("'", at + 1)
            end = self._unclosed() if end < 0 else end
            command.add(text[at + 1 : end])
            return end + 1
        if char == '"':
            return self._quoted(at + 1, command)
        return self._pattern(at, command)

    def _pattern(self, at: int, command: _Command) -> int:
        text, char = self._text, self._text[at]
        if char == "{" and (brace := _brace.match(text, at)):
            many = "," in brace[0] or ".." in brace[0]
            command.add(MANY if many else ANY if brace[0] == "{}" else brace[0])
            return brace.end()
        if char == "[" and (one := _class.match(text, at)) and not text.startswith("[[", at):
            command.add(ANY)
            return one.end()
        command.add({"*": MANY, "?": ANY, "{": MANY}.get(char, char))
        return at + 1

    def _quoted(self, at: int, command: _Command) -> int:
        text = self._text
        command.add("")
        while at < len(text):
            if plain := _inside_quotes.match(text, at):
                command.add(plain[0])
                at = plain.end()
            elif text[at] == '"':
                return at + 1
            elif text[at] == "\\" and text[at + 1 : at + 2] == "\n":
                at += 2
            elif text[at] == "\\" and text[at + 1 : at + 2] not in ("$", "`", '"', "\\"):
                command.add("\\")
                at += 1
            else:
                at = self._piece(at, command, quoted=True)
        return self._unclosed()

    def _unclosed(self) -> int:
        """A quote that does not end: the shell may see others than are seen here."""
        self._found.mention(self._text)
        return len(self._text)

    def _expansion(self, at: int, command: _Command, *, quoted: bool) -> int:
        text, mark = self._text, ANY if quoted else MANY
        if text.startswith("$(", at):
            at = self._substituted(at + 2)
            command.add(mark)
        elif text.startswith("${", at):
            end = _closing_brace(text, at + 2)
            inner = text[at + 2 : end]
            if "$" in inner or "`" in inner:
                self._found.scan(inner)
            command.add(MANY if "@" in inner else mark)
            at = end + 1
        elif not quoted and (coded := _ansi.match(text, at)):
            command.add(ANY if "\\" in coded[1] else coded[1])
            at = coded.end()
        elif not quoted and text.startswith('$"', at):
            at = self._quoted(at + 2, command)
        elif named := _variable.match(text, at):
            number = named[0] in ("$$", "$?", "$#", "$!")
            command.add("0" if number else MANY if named[0] == "$@" else mark)
            at = named.end()
        else:
            command.add("$")
            at += 1
        return at

    def _substituted(self, at: int) -> int:
        """The commands in parentheses, which are read where they are."""
        if self._nested >= _DEEPEST:
            self._found.anything()
            return len(self._text)
        self._nested += 1
        at = self.run(at, ")")
        self._nested -= 1
        return at


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _closing_backtick(text: str, at: int) -> int:
    while at < len(text) and text[at] != "`":
        at += 2 if text[at] == "\\" else 1
    return min(at, len(text))


def _closing_brace(text: str, at: int) -> int:
    depth = 1
    while at < len(text):
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        if not depth:
            return at
        at += 2 if text[at] == "\\" else 1
    return len(text)
