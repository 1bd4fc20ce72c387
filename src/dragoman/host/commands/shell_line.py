"""Reads a shell line into the commands it runs and the files it redirects, or says why it cannot.

A small grammar of our own, and a strict one: plain commands, simple quotes, `&&`, `||`, `;`, `|`,
newlines, `cd DIR &&`, redirections. Whatever is not surely known is not read, so that every shell
runs exactly what is listed here; `test_shell_line.py` has real shells confirm it. Pure, and linear
in the line: an agent chooses it. Knows nothing of rules.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Literal, TypeAlias

import msgspec

from dragoman.host.commands.reading_cache import cached
from dragoman.lazy_pattern import lazy_pattern

Argv: TypeAlias = tuple[str, ...]
_Joint: TypeAlias = Literal["", "&&", "||", ";", "|"]

LONGEST_LINE = 16 << 10
MOST_COMMANDS = 64
MOST_LAYERS = 6
_MOST_FOLDERS = 4
UNREAD = "…"
"""Follows the words of a command that was not read to its end."""


class PlainCommand(msgspec.Struct, frozen=True):
    """A command and where it runs: `folder` is a path from where the line starts, "" for there."""

    argv: Argv
    folder: str = ""


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a line does, if it was read: `unread` says why it was not.

    Each of `runs` is one command with every way to see it: as written, and through each wrapper to
    the command itself, which is last. `reads` and `writes` are files, by paths from where the line
    starts. A command that might run in several folders is there once for each.

    Of a line that is not read, `runs` are only those that came before the doubt.

    `early` is false if a folder or a file is named after a command that might have put a link
    there: what it leads to is not known before the line runs.
    """

    unread: str | None = None
    runs: tuple[tuple[PlainCommand, ...], ...] = ()
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    early: bool = True


@cached(16)
def read_line(line: str) -> Reading:
    """What a shell would run for this line."""
    reader = _Reader()
    reader.line(line)
    return reader.reading()


@cached(16)
def read_argv(argv: Argv) -> Reading:
    """What these words run, which no shell sees unless they name one."""
    reader = _Reader()
    reader.command(argv)
    return reader.reading()


_SHELLS = frozenset(("ash", "bash", "dash", "fish", "ksh", "mksh", "sh", "zsh"))


class _Doubt(Exception):
    """Why a line is not read, as the end of a sentence that begins with what it has."""


# ── words ─────────────────────────────────────────────────────────────────────────────────────

# A tilde is only a letter after a letter; in a pattern of zsh it is not, but there is none here.
_BARE = r"(?:[A-Za-z0-9_\-./:=,+@%]|(?<=[A-Za-z0-9])~)"
# A backslash means nothing in these quotes, unless fish reads them.
_SINGLE = r"'(?:[^'\\]|\\(?![\\']))*+'"
_DOUBLE = r'"[^"$`\\!]*+"'
_PIECE = rf"(?:{_BARE}++|{_SINGLE}|{_DOUBLE})"
_ENDS = r"(?=[ \t\n;|&<>]|\Z)"
_token = lazy_pattern(
    rf"""[ \t]*+(?:
    (?P<copy>[12]?>&[12])(?![<>]){_ENDS}
    |(?P<number>[0-9]*+)(?P<redirect>>>?|<)(?![<>&|(])
    |(?P<joint>&&|\|\||\|(?!&)|;|\n)
    |(?P<word>(?![0-9]++[<>])(?:{_PIECE}++|[\[\]]){_ENDS})
    |(?P<end>\Z))
    """,
    re.VERBOSE,
)
_bare_words = lazy_pattern(r"(?:[ \t]*+[A-Za-z0-9_\-./:,+@%]++(?=[ \t\n;|&]|\Z))++")
"""Most words are of this kind. Read together, they cost a third."""
_piece = lazy_pattern(_PIECE)
_range = lazy_pattern(r"[0-9]*+-[0-9]*+")  # <1-5> is a pattern for numbers in zsh
_equals = lazy_pattern(r"""(?:''|"")*+=""")
_EQUALS = "='\""
_assignment = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*+\+?=")
_name = lazy_pattern(r"[A-Za-z0-9_./][A-Za-z0-9_./+@,:%-]*+|[:\[]")
_numbered = lazy_pattern(r"[0-9]++[<>]")
_in_doubt = lazy_pattern(rf"""{_PIECE}*+(?:"[^"$`\\!]*+(?=[^"]))?+([\s\S])""")
_doubts = {
    "$": "an expansion ($)",
    "`": "a command substitution",
    "\\": "a backslash",
    "*": "a file pattern (*)",
    "?": "a file pattern (?)",
    "[": "a file pattern ([)",
    "{": "a brace",
    "}": "a brace",
    "~": "a home directory (~)",
    "#": "a comment",
    "!": "an exclamation mark",
    "(": "a parenthesis",
    ")": "a parenthesis",
    "&": "a command in the background",
    "<": "a redirection that is not plain",
    ">": "a redirection that is not plain",
    "'": "a quote that is not plain",
    '"': "a quote that is not plain",
}


def _doubt_at(line: str, at: int) -> _Doubt:
    """What begins here and cannot be read; after the pieces of a word, what is next to them."""
    while line[at] in " \t":
        at += 1
    if _numbered.match(line, at):
        return _Doubt(_doubts[">"])
    char = _in_doubt.match(line, at)
    found = char[1] if char else ""
    return _Doubt(_doubts.get(found, f"the character {found!r}"))


def _unquoted(word: str) -> str:
    if "'" not in word and '"' not in word:
        return word
    return "".join(piece[1:-1] if piece[0] in "'\"" else piece for piece in _piece.findall(word))


class _Simple:
    """A command between two joints, as far as it is read."""

    def __init__(self, before: _Joint) -> None:
        self.before: _Joint = before
        self.after: _Joint = ""
        self.words: list[str] = []
        self.variables: list[str] = []
        self.reads: list[str] = []
        self.writes: list[str] = []
        self.is_redirected = False
        self._pending: str | None = None

    def redirect(self, number: str, how: str) -> None:
        if self._pending is not None or number not in (("", "0") if how == "<" else ("", "1", "2")):
            raise _Doubt("a redirection that is not plain")
        self._pending = how
        self.is_redirected = True

    @property
    def takes_words(self) -> bool:
        """Whether the next word is one of the command, whatever it is."""
        return self._pending is None

    @property
    def is_fed(self) -> bool:
        return self.before == "|" or bool(self.reads)

    @property
    def is_empty(self) -> bool:
        return not (self.words or self.variables or self.is_redirected)

    def word(self, text: str) -> None:
        if text[0] in _EQUALS and text != "=" and _equals.match(text):
            raise _Doubt("a word that begins with =")  # zsh looks for a program of that name
        if self._pending is not None:
            self._target(text)
        elif not self.words and "=" in text and _assignment.match(text):
            self.variables.append(_unquoted(text))
        elif text == "[" and self.words:
            raise _Doubt(_doubts["["])
        else:
            self.words.append(_unquoted(text))

    def _target(self, text: str) -> None:
        path = _unquoted(text)
        if not path or _range.fullmatch(text):
            raise _Doubt("a redirection that is not plain")
        if path != "/dev/null":
            if path.startswith("/dev/"):
                raise _Doubt("a redirection to a device")  # bash opens connections by such names
            (self.reads if self._pending == "<" else self.writes).append(path)
        self._pending = None

    def end(self, joint: _Joint) -> None:
        self.after = joint
        if self._pending is not None:
            raise _Doubt("a redirection without a file")
        if not self.words:
            left = "a variable that remains set"
            raise _Doubt(left if self.variables else "no command where one belongs")


def _simples(line: str, begun: list[_Simple]) -> Iterator[_Simple]:
    """The commands of a line one after another; the one that is being read is in `begun`."""
    at, simple = 0, _Simple("")
    begun[:] = [simple]
    while at < len(line):
        if simple.takes_words and (bare := _bare_words.match(line, at)) is not None:
            at = bare.end()
            simple.words += bare[0].split()
            continue
        token = _token.match(line, at)
        if token is None:
            raise _doubt_at(line, at)
        at, kind = token.end(), token.lastgroup
        if kind == "word":
            simple.word(token["word"])
        elif kind == "copy":
            simple.is_redirected = True
        elif kind == "redirect":
            simple.redirect(token["number"], token["redirect"])
        elif token["joint"] == "\n" and simple.is_empty and simple.before:
            continue  # after an operator the line may continue, and may be empty
        elif kind == "joint":
            simple.end(_JOINTS[token["joint"]])
            yield simple
            simple = _Simple(simple.after)
            begun[:] = [simple]
    simple.end("")
    yield simple


_JOINTS: dict[str, _Joint] = {"&&": "&&", "||": "||", "|": "|", ";": ";", "\n": ";"}

# ── commands ──────────────────────────────────────────────────────────────────────────────────


class _Reader:
    """Reads one line, and the lines in it that are for other shells."""

    def __init__(self) -> None:
        self._unread: str | None = None
        self._runs: list[tuple[PlainCommand, ...]] = []
        self._reads: dict[str, None] = {}
        self._writes: dict[str, None] = {}
        self._budget = LONGEST_LINE * MOST_LAYERS
        self._early = True
        self._has_changed_names = False
        self._pipes_into_files = False

    def reading(self) -> Reading:
        return Reading(
            unread=self._unread,
            runs=tuple(self._runs),
            reads=tuple(self._reads),
            writes=tuple(self._writes),
            early=self._early,
        )

    def line(self, line: str, folder: str = "", layers: tuple[PlainCommand, ...] = ()) -> None:
        self._budget -= len(line)
        begun: list[_Simple] = []
        here, ever = (folder,), {folder: None}
        try:
            _check_text(line, self._budget)
            for simple in _simples(line, begun):
                begun.clear()
                before, here = here, self._after(simple, here, layers)
                if here is not before:
                    ever.update(dict.fromkeys(here))
                if simple.after in ("||", ";"):
                    here = tuple(ever)  # a cd that failed leaves the shell where it was
                if len(ever) > _MOST_FOLDERS:
                    raise _Doubt("too many folders to run in")
        except _Doubt as doubt:
            self._unread = self._unread or str(doubt)
            for words in (simple.words for simple in begun if simple.words):
                self._runs += ((*layers, PlainCommand((*words, UNREAD), each)) for each in here)

    def _after(
        self, simple: _Simple, here: tuple[str, ...], layers: tuple[PlainCommand, ...]
    ) -> tuple[str, ...]:
        """Reads one command of several; the folders in which the next may run, if it succeeds."""
        self._note_order(simple)
        try:
            if simple.words[0] == "cd":
                return _after_cd(simple, here)
            if simple.is_fed and _runs_its_input.fullmatch(simple.words[0].rpartition("/")[2]):
                raise _Doubt(f"{simple.words[0]}, which runs what it is given")
            for each in simple.variables:
                _check_variable(each)
            if simple.variables and simple.words[0] == ":":
                raise _Doubt("a variable that remains set")
        except _Doubt as doubt:
            self._unread = self._unread or str(doubt)
        if (simple.reads or simple.writes) and not self._take_files(simple, here):
            return here
        known, argv = len(self._runs), tuple(simple.words)
        for folder in here:
            self.command(argv, folder, layers)
        if simple.is_fed:
            self._check_fed(known, len(layers))
        self._has_changed_names |= simple.words[0] not in _LEAVE_NAMES_ALONE
        return here

    def _take_files(self, simple: _Simple, here: tuple[str, ...]) -> bool:
        more = len(here) * (len(simple.reads) + len(simple.writes))
        if len(self._reads) + len(self._writes) + more > MOST_COMMANDS:
            self._unread = self._unread or "too many files"
            return False
        for folder in here:
            self._reads.update((_joined(folder, path), None) for path in simple.reads)
            self._writes.update((_joined(folder, path), None) for path in simple.writes)
        return True

    def _check_fed(self, known: int, depth: int) -> None:
        """What is given to a wrapper is given to the program behind it."""
        programs = (each.argv[0] for run in self._runs[known:] for each in run[depth + 1 :])
        for program in programs:
            if _runs_its_input.fullmatch(program.rpartition("/")[2]):
                self._unread = self._unread or f"{program}, which runs what it is given"

    def _note_order(self, simple: _Simple) -> None:
        """The commands of a pipeline run at the same time."""
        if simple.before != "|":
            self._pipes_into_files = False
        names = bool(simple.reads or simple.writes) or simple.words[0] == "cd"
        if names and self._has_changed_names:
            self._early = False
        if self._pipes_into_files and simple.words[0] not in _LEAVE_NAMES_ALONE:
            self._early = False
        self._pipes_into_files = self._pipes_into_files or names

    def command(self, argv: Argv, folder: str = "", layers: tuple[PlainCommand, ...] = ()) -> None:
        layers = (*layers, PlainCommand(argv, folder))
        inner: Argv | str = ()
        try:
            inner = self._inner(argv, len(layers))
        except _Doubt as doubt:
            self._unread = self._unread or str(doubt)
        if isinstance(inner, str):
            self.line(inner, folder, layers)
        elif inner:
            self.command(inner, folder, layers)
        elif len(self._runs) < MOST_COMMANDS:
            self._runs.append(layers)

    def _inner(self, argv: Argv, depth: int) -> Argv | str:
        """What the command runs in its place: other words, or a line. Nothing if it is itself."""
        if depth > MOST_LAYERS or len(self._runs) >= MOST_COMMANDS:
            raise _Doubt("too many commands")
        if _name.fullmatch(argv[0]) is None:
            raise _Doubt(f"a command that is not called plainly: {argv[0]!r}")
        if argv[0] in SHELL_WORDS:
            raise _Doubt(f"{argv[0]}, which the shell itself understands")
        if (check := _CHECKS.get(argv[0])) is not None and not check(argv):
            raise _Doubt(f"{argv[0]} with words that a shell might evaluate")
        wrapper = _WRAPPERS.get(_program(argv[0]))
        return () if wrapper is None else wrapper(argv)


def _check_text(line: str, budget: int) -> None:
    if len(line) > LONGEST_LINE or budget < 0:
        raise _Doubt("too many characters")
    if not line.replace("\n", "").replace("\t", "").isprintable():
        raise _Doubt("a character that cannot be seen")


def _after_cd(simple: _Simple, here: tuple[str, ...]) -> tuple[str, ...]:
    """Only where it is followed by `&&` is it sure that what comes next runs there. What `..` leads
    to depends on how the shell got where it is."""
    plain = simple.before in ("", ";", "&&") and simple.after == "&&"
    if not plain or simple.is_redirected or simple.variables or len(simple.words) != 2:
        raise _Doubt("a cd that is not followed by &&, or not plain")
    folder = simple.words[1]
    if not folder or folder[0] in "-+" or ".." in folder.split("/"):
        raise _Doubt("a cd whose folder is not plain")
    if any(here) and folder[0] not in "/.":
        raise _Doubt("a second cd")  # of which it could not be said whether CDPATH leads elsewhere
    return tuple(_joined(each, folder) for each in here)


def _joined(folder: str, path: str) -> str:
    if folder.count("/") + path.count("/") > _DEEPEST:
        raise _Doubt("a path with too many parts")
    return path if path.startswith("/") or not folder else f"{folder}/{path}"


_DEEPEST = 64
_LEAVE_NAMES_ALONE = frozenset(
    (
        *("cd", ":", "[", "cat", "echo", "false", "grep", "head", "ls", "printf", "pwd", "tail"),
        *("test", "true", "wc"),
    )
)
"""Commands that make no file, so what a path leads to is the same after them."""
_runs_its_input = lazy_pattern(
    "|".join((*_SHELLS, "csh", "tcsh", "mysql", "psql", "sqlite3"))
    + r"|(?:node|nodejs|deno|bun|perl|php|pypy|python|ruby|irb|lua|tclsh|Rscript)[\d.]*"
)


# ── what is not a program of that name ────────────────────────────────────────────────────────

# reserved words; `time` is looked through
_RESERVED = """
    if then else elif fi case esac for select while until do done in function coproc foreach
    end repeat nocorrect { } ! [[ ]] always begin switch and or not
"""
# what changes the shell, or has it run or evaluate something
_BUILTINS = """
    . - alias autoload bg bind bindkey break builtin bye caller cd chdir command compadd
    comparguments compcall compctl compdescribe compfiles compgen compgroups complete compopt
    compound compquote compset comptags comptry compvalues continue declare dirs disable disown
    echotc echoti emulate enable enum eval exec exit export fc fg float functions getln getopts
    global hash help hist history integer jobs let limit local log logout mapfile nameref
    noglob popd print private pushd pushln r read readarray readonly redirect rehash return
    sched set setopt shift shopt source suspend times trap ttyctl typeset ulimit umask unalias
    unfunction unhash unlimit unset unsetopt vared wait whence where zcompile zformat zle
    zmodload zparseopts zregexparse zstyle
"""
# fish
_FISH = """
    abbr argparse block breakpoint commandline contains count emit math path random set_color
    status string _
"""
SHELL_WORDS = frozenset((_RESERVED + _BUILTINS + _FISH).split())
"""Names that a shell does not look for in PATH, for the shells that agents use."""

_OPERATORS = frozenset(
    ("!", "=", "!=", "-a", "-d", "-e", "-f", "-h", "-L", "-n", "-r", "-s", "-w", "-x", "-z")
)
_safe_format = lazy_pattern(r"(?!-)(?:[^%]|%[bs%])*+")


def _is_plain_test(argv: Argv) -> bool:
    # Some shells evaluate what is compared as numbers, or is looked up as a variable.
    words = argv[1:-1] if argv[0] == "[" else argv[1:]
    closed = argv[0] != "[" or argv[-1] == "]"
    return closed and all(word in _OPERATORS or not word.startswith("-") for word in words)


def _is_plain_printf(argv: Argv) -> bool:
    # -v sets a variable, and some shells evaluate what is printed as a number.
    return len(argv) > 1 and _safe_format.fullmatch(argv[1]) is not None


_CHECKS: dict[str, Callable[[Argv], bool]] = {
    "[": _is_plain_test,
    "test": _is_plain_test,
    "printf": _is_plain_printf,
}

HARMLESS = frozenset(
    (
        *("AGENT_SESSION_ID", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "FORCE_COLOR"),
        *("GIT_TERMINAL_PROMPT", "LANG", "LC_ALL", "LINES", "NO_COLOR", "PYTHONUNBUFFERED"),
        *("PYTHONDONTWRITEBYTECODE", "RUST_BACKTRACE", "TERM"),
    )
)
"""Variables that change how a program talks, and not what it does nor which program it is."""
_digits = lazy_pattern(r"[0-9]+")
_harmless_value = lazy_pattern(r"[A-Za-z0-9_][A-Za-z0-9_.:-]*+|")


def _check_variable(assignment: str) -> None:
    name, _, value = assignment.partition("=")
    # zsh evaluates what these two are set to.
    form = _digits if name in ("COLUMNS", "LINES") else _harmless_value
    if name not in HARMLESS or form.fullmatch(value) is None:
        raise _Doubt(f"the variable {name.removesuffix('+')} for a command")


# ── wrappers ──────────────────────────────────────────────────────────────────────────────────

_duration = lazy_pattern(r"[0-9]+(?:\.[0-9]+)?[smhd]?")
_nothing = lazy_pattern(r"(?!)")
_TAKES = {"-k": _duration, "-s": lazy_pattern(r"[A-Z0-9]+")}
_niceness = lazy_pattern(r"-n?[0-9]+")
_number = lazy_pattern(r"-?[0-9]+")


def _program(name: str) -> str:
    """A wrapper by its name or in its usual place; one elsewhere may be anything."""
    folder, slash, program = name.rpartition("/")
    return program if not slash or folder in ("/bin", "/usr/bin") else ""


def _rest(argv: Argv, at: int) -> Argv:
    """What it runs, which has to be there."""
    if at >= len(argv):
        raise _Doubt(f"{argv[0]} with options that are not plain")
    return argv[at:]


def _through_env(argv: Argv) -> Argv:
    at = 1
    while at < len(argv) and "=" in argv[at]:
        _check_variable(argv[at])
        at += 1
    return argv[at:]  # without a command it shows the variables


def _through_timeout(argv: Argv) -> Argv:
    at = 1
    while at < len(argv) and argv[at].startswith("-"):
        if argv[at] in ("--foreground", "--preserve-status"):
            at += 1
        elif _TAKES.get(argv[at], _nothing).fullmatch(_rest(argv, at + 1)[0]):
            at += 2
        else:
            raise _Doubt("timeout with options that are not plain")
    if _duration.fullmatch(_rest(argv, at)[0]) is None:
        raise _Doubt("timeout with options that are not plain")
    return _rest(argv, at + 1)


def _through_nice(argv: Argv) -> Argv:
    if len(argv) == 1:
        return ()
    if argv[1] == "-n" and _number.fullmatch(_rest(argv, 2)[0]):
        return _rest(argv, 3)
    return _rest(argv, 2 if _niceness.fullmatch(argv[1]) else 1)


def _through_time(argv: Argv) -> Argv:
    # A word of the shell or a program, which differ in all other options.
    return _rest(argv, 2 if argv[1:2] == ("-p",) else 1)


def _through_shell(argv: Argv) -> Argv | str:
    match argv[1:]:
        case ("-c" | "-lc", line) | ("-l", "-c", line):
            return line
        case (first, *_) if first[:1] in ("-", "+"):
            raise _Doubt(f"{argv[0]} with options that are not plain")
        case _:
            return ()  # a script, or what it is given to read


_WRAPPERS: dict[str, Callable[[Argv], Argv | str]] = {
    "env": _through_env,
    "timeout": _through_timeout,
    "nice": _through_nice,
    "time": _through_time,
    "bash": _through_shell,
    "dash": _through_shell,
    "sh": _through_shell,
}
