"""Which files a command writes by the names in its words. Pure.

For rules that cover a program with any other words: a file that always asks, such as a hook of git,
must not be written by `cp` either. Only programs of this table are known; none is known to be
harmless by not being here.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from dragoman.host.commands.shell_line import Argv
from dragoman.lazy_pattern import lazy_pattern


def files_written_by(argv: Argv) -> tuple[str, ...] | None:
    """The paths that the command makes, changes or removes, as far as it is known; None if it is
    known to write files, and its words do not surely say which."""
    program = argv[0].rpartition("/")[2]
    if program not in _WRITERS:
        return tuple(_outputs(program, argv))
    if program in _EDITORS and any(map(_in_place.match, argv[1:])):
        return None
    for depth in (2, 1):
        name = " ".join((program, *argv[1:depth]))
        if name in _ARCHIVERS and _only_looks(_ARCHIVERS[name], argv[depth:]):
            return ()
        if name in _UNSAID:
            return None
        if name in _TABLE:
            return _by_row(_TABLE[name], argv[depth:])
    return tuple(_outputs(program, argv))


def files_perhaps_written_by(argv: Argv) -> tuple[str, ...]:
    """The same where options are not known: each may have a value, or be one of the files."""
    program = argv[0].rpartition("/")[2]
    row = _TABLE.get(" ".join((program, *argv[1:2]))) or _TABLE.get(program)
    if row is None and files_written_by(argv) is not None:
        return ()
    operands = [word for word in argv[1:] if not word.startswith("-")]
    values = [word.partition("=")[2] or word[2:] for word in argv[1:] if word.startswith("-")]
    folders = [*filter(None, values), *operands][:_MOST_PAIRED]
    inside = (posixpath.join(f, _name(each)) for f in folders for each in operands[:_MOST_PAIRED])
    written = operands if row is None else row.written(operands)
    return tuple(dict.fromkeys((*written, *filter(None, values), *inside)))


_MOST_PAIRED = 16


def is_writer(argv: Argv) -> bool:
    """Whether it is known how the words of this program name files that it writes."""
    program = argv[0].rpartition("/")[2]
    return program in _WRITERS or program in _COMBINED


def may_name_a_file(names: Collection[str], words: Collection[str]) -> bool:
    """Whether a command with these words, of which these are the names without folders, may say
    which files it writes."""
    if not _NAMES.isdisjoint(names):
        return True
    return any(word.startswith(("-o", "--o")) for word in words if word[:1] == "-")


def makes_links(argv: Argv) -> bool:
    """Whether a path may lead elsewhere once the command has run."""
    program = argv[0].rpartition("/")[2]
    if program == "git":
        return argv[1:2] not in [(verb,) for verb in _LEAVE_FILES_ALONE]
    return program in ("ln", "mv") or files_written_by(argv) is None


class _Row(NamedTuple):
    """How to read the words of a program: its options of one letter, those of them that take the
    next word, and what it writes of the other words."""

    options: str
    valued: str
    written: Callable[[Sequence[str]], tuple[str, ...]]
    long: tuple[str, ...] = ()
    """Options that the others do not have, or that mean something else to them."""


def _each(operands: Sequence[str]) -> tuple[str, ...]:
    return tuple(operands)


def _last(operands: Sequence[str]) -> tuple[str, ...]:
    """The last is a file, or a folder for the others."""
    if not operands:
        return ()
    *sources, target = operands
    inside = (posixpath.join(target, _name(source)) for source in sources)
    return (target, *inside) if sources else (_name(target),)


def _all_and_last(operands: Sequence[str]) -> tuple[str, ...]:
    """What is moved is gone from where it was."""
    return (*operands[:-1], *_last(operands))


def _second(operands: Sequence[str]) -> tuple[str, ...]:
    """The first is read."""
    return tuple(operands[1:])


def _name(path: str) -> str:
    return posixpath.basename(path.rstrip("/"))


_TABLE = {
    "cp": _Row("finpuvT", "", _last),
    "ln": _Row("sfinrvT", "", _last),
    "install": _Row("CDpv", "mog", _last),
    "mv": _Row("finuvT", "", _all_and_last),
    "git mv": _Row("fknv", "", _all_and_last),
    "rm": _Row("dfiIv", "", _each),
    "git rm": _Row("fnq", "", _each),
    "rmdir": _Row("pv", "", _each, ("--parents",)),
    "mkdir": _Row("pv", "m", _each, ("--parents",)),
    "touch": _Row("acfhm", "dt", _each),
    "truncate": _Row("co", "s", _each),
    "tee": _Row("ai", "", _each),
    "uniq": _Row("cdDiuz", "fsw", _second),
    "xxd": _Row("abCEeiprRuv", "cglnos", _second),
}
_LONG = frozenset(
    (
        *("--force", "--verbose", "--interactive", "--no-clobber", "--update"),
        *("--append", "--symbolic", "--cached", "--quiet", "--no-create", "--preserve"),
    )
)

_UNSAID = frozenset(
    (
        *(
            "7z",
            "7za",
            "ar",
            "bunzip2",
            "bzip2",
            "cpio",
            "csplit",
            "gunzip",
            "gzip",
            "pax",
            "patch",
        ),
        *(
            "rsync",
            "scp",
            "sftp",
            "split",
            "tar",
            "bsdtar",
            "unxz",
            "unzip",
            "unzstd",
            "wget",
            "xz",
        ),
        *("zip", "zstd", "git apply", "git am", "git archive", "git bundle", "git clone"),
        *("git format-patch", "git init", "git worktree"),
    )
)
"""What they write is said in an archive, a patch or a name that they make up."""
_EDITORS = frozenset(("gawk", "gsed", "perl", "ruby", "sed", "yq"))
_in_place = lazy_pattern(r"-[A-Za-z]*i|--in-?place")
"""The option with which these write the files that they read."""
_WRITERS = frozenset(name.split()[0] for name in (*_TABLE, *_UNSAID)) | _EDITORS
"""Those of which more is known than what they call their output."""
_ARCHIVERS = {
    "tar": lazy_pattern(r"-?t[vzjJ]*f?|--list"),
    "bsdtar": lazy_pattern(r"-?t[vzjJ]*f?|--list"),
    "unzip": lazy_pattern(r"-[ltpZ]"),
    "git worktree": lazy_pattern("list"),
    "git bundle": lazy_pattern("verify|list-heads"),
}
"""These only look into one, if this word comes first and no option follows."""
_LEAVE_FILES_ALONE = frozenset(
    (
        "add",
        "blame",
        "branch",
        "commit",
        "diff",
        "fetch",
        "grep",
        "log",
        "ls-files",
        "show",
        "status",
    )
)


def _only_looks(mode: re.Pattern[str], words: Sequence[str]) -> bool:
    has_options = any(word.startswith("-") for word in words[1:])
    return not has_options and any(map(mode.fullmatch, words[:1]))


def _by_row(row: _Row, words: Sequence[str]) -> tuple[str, ...] | None:
    operands: list[str] = []
    left = list(words[::-1])
    while left:
        word = left.pop()
        if word == "--":
            operands += reversed(left)
            break
        if not word.startswith("-") or word == "-":
            operands.append(word)
        elif word.startswith("--"):
            if word not in _LONG and word not in row.long:
                return None
        elif word[1] in row.valued and len(word) == 2 and left:
            left.pop()
        elif not set(word[1:]) <= set(row.options):
            return None
    return row.written(operands)


_output = lazy_pattern(r"-{1,2}out[a-z-]*(?:=(?P<long>.*))?|-o(?P<value>.*)", re.DOTALL)
_COMBINED = {
    "curl": lazy_pattern(r"-[#0-9afgijklnpqsvBGIJLNRSVZ]++o(?P<value>.*)", re.DOTALL),
    "dd": lazy_pattern(r"of=(?P<value>.*)", re.DOTALL),
    "shuf": lazy_pattern(r"-[enrz]++o(?P<value>.*)", re.DOTALL),
    "sort": lazy_pattern(r"-[bcCdfghiMmnrRsuVz]++o(?P<value>.*)", re.DOTALL),
}
"""The same for one program alone."""
_NAMES = frozenset(name.split()[-1] for name in (*_TABLE, *_UNSAID, *_EDITORS, *_COMBINED))


def _outputs(program: str, argv: Argv) -> list[str]:
    """What programs of many kinds call their output."""
    found: list[str] = []
    own = _COMBINED.get(program)
    for at, word in enumerate(argv):
        value: str | None = None
        if word.startswith(("-o", "--o")) and (option := _output.fullmatch(word)) is not None:
            value = option["value"] or option["long"] or ""
        elif own is not None and (option := own.fullmatch(word)) is not None:
            value = option["value"]
        if value is not None:
            found.append(value or "".join(argv[at + 1 : at + 2]))
    return [each for each in found if each]
