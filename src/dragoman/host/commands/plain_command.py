"""Whether a shell line is only a command and its arguments, and which.

Errs on one side only: a line it splits means exactly these words to every POSIX shell; a line it
does not understand at a glance is not split. Knows nothing of rules.
"""

from __future__ import annotations

from dragoman.host.commands.reading_cache import cached
from dragoman.lazy_pattern import lazy_pattern

# Not in quotes either: what a person reads as a metacharacter is one, whatever its quoting.
_BARE = r"[A-Za-z0-9_\-./:=,+@%]"
_QUOTABLE = r"[A-Za-z0-9_\-./:=,+@% *?\[\]{}~#^]"
_PIECE = rf"(?:{_BARE}++|'(?:{_QUOTABLE}|[!\"])*+'|\"(?:{_QUOTABLE}|')*+\")"
_word = lazy_pattern(rf"[ \t]*+({_PIECE}++)")
_piece = lazy_pattern(_PIECE)
_never_plain = lazy_pattern(r"[;&|<>()$`\\\r\n]")
"""Found in none of the pieces: most lines need no closer look."""
_assignment = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_harmless = lazy_pattern(rf"(?:{_BARE}| )*+\Z")

_quotable = lazy_pattern(rf"(?:{_QUOTABLE}|[!\"'])*+\Z")

_SHELLS = frozenset({"sh", "ash", "bash", "dash", "fish", "ksh", "mksh", "zsh", "csh", "tcsh"})
_shell_option = lazy_pattern(r"-[A-Za-z]*c[A-Za-z]*\Z|--command")


@cached(16)  # each rule about commands asks for the same ones
def plain_words(line: str) -> tuple[str, ...] | None:
    """The words of a line that holds no metacharacter, substitution, redirect or assignment."""
    if _never_plain.search(line):
        return None
    words: list[str] = []
    at, end = 0, len(line.rstrip(" \t"))
    while at < end:
        word = _word.match(line, at)
        if word is None:
            return None
        words.append(_unquoted(word.group(1)))
        at = word.end()
    if not words or _assignment.match(words[0]):
        return None
    return tuple(words)


def is_harmless(word: str) -> bool:
    """Whether a word could lose its quotes on its way through a shell and still start nothing."""
    return _harmless.match(word) is not None


def are_quotable(words: tuple[str, ...]) -> bool:
    """Whether the words of a line hold nothing that a person reads as a metacharacter."""
    return _quotable.match(" ".join(words)) is not None  # a blank is none


def is_shell(argv: tuple[str, ...]) -> bool:
    return argv[0].rpartition("/")[2] in _SHELLS


def hands_a_line_to_a_shell(argv: tuple[str, ...]) -> bool:
    """Whether this argv has a shell run a line with a metacharacter, as `bash -c 'a; b'` does.

    Wrappers (`env`, `sudo`, `timeout`) may come first; a false alarm only costs a question.
    """
    for at, word in enumerate(argv):
        if word.rpartition("/")[2] in _SHELLS and _runs_line(argv[at + 1 :]):
            return True
    return False


def _runs_line(words: tuple[str, ...]) -> bool:
    options = [at for at, word in enumerate(words) if _shell_option.match(word)]
    return bool(options) and any(plain_words(word) is None for word in words[options[0] :])


def _unquoted(word: str) -> str:
    return "".join(piece[1:-1] if piece[0] in "'\"" else piece for piece in _piece.findall(word))
