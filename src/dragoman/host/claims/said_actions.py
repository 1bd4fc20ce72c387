"""Which actions an agent's words name plainly: a command, a file to write or to read, an address.

For titles and texts, which can contradict a claim, and never make one. So this errs on the other
side than all else that reads a request: what might be prose is prose. Pure, and bounded, because an
agent chooses how much there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from dragoman.lazy_pattern import lazy_pattern

SaidKind = Literal["command", "write", "read", "file", "address"]


class NamedAction(NamedTuple):
    """What a line names; a `file` is named without saying what is done with it."""

    kind: SaidKind
    what: str


_MOST_LETTERS = 64 << 10
_MOST_LINES = 400
_LONGEST_LINE = 4 << 10

# Programs that nobody takes for a word of English.
_PROGRAM_NAMES = """
    apt apt-get awk aws base64 bash brew bunx cargo chgrp chmod chown cmake cp crontab curl dash dd
    deno dnf docker doas dpkg dropdb egrep eval fdisk gawk gcc gcloud gem gh git gpg gradle grep
    gunzip gzip helm hg iptables kubectl killall ksh ln lua mkdir mkfifo mkfs mongosh mv mvn mysql
    nc ncat netcat ninja nohup npm npx openssl pacman parted perl pgrep php pip pip3 pipx pkexec
    pkill pnpm podman poetry psql pwsh python python3 rg rm rmdir rsync ruby runuser scp sed sftp sh
    shred shutdown sqlite3 ssh sudo svn systemctl tar telnet terraform tofu truncate umount unshare
    unzip useradd usermod uv uvx vim wget wipefs xargs yarn yum zip zsh
"""
# Programs that are words too: they are commands with an option or a path.
_WORDS_THAT_AREPROGRAMS = """
    at bun cat chroot cut cd diff echo env exec export find fish go head install kill less ls make
    more mount node patch printf reboot sort source stat su tail tee test timeout touch tr tree
    watch wc
"""
_READINGPROGRAMS = """
    ag cat cut egrep fd file find grep head less ls more nl rg sort stat tail tree uniq wc
"""
PROGRAMS = frozenset(_PROGRAM_NAMES.split())
_WORDS_TOO = frozenset(_WORDS_THAT_AREPROGRAMS.split())
_READERS = frozenset(_READINGPROGRAMS.split())
_writing_option = lazy_pattern(r"-(?:delete|exec|execdir|ok|okdir|f?print0?f|fls|o|-output)\b.*")
_option = lazy_pattern(r"--?[A-Za-z][\w-]*(?:=.*)?\Z|-\d\Z")
_path_like = lazy_pattern(r"(?:~|\.{1,2})?/|\.\.?\Z|~\Z|[\w.-]+/|[\w-]+\.[A-Za-z]\w{0,7}\Z")
_redirects = lazy_pattern(r"\d*>{1,2}\Z|\d*>{1,2}[^=>&\s]")
_joins = lazy_pattern(r"&&|\|\||[;|\n]|(?<!\S)&(?!\S)")
_program = lazy_pattern(r"[a-z][a-z0-9_.+-]*\Z")
_local_program = lazy_pattern(r"(?:\.{1,2}/|~/|/)[\w./+-]+\Z")
_substitution = lazy_pattern(r"\$\([^)]")
_quotes = lazy_pattern(r"[\"'`\\]")
_in_ticks = lazy_pattern(r"`([^`\n]+)`")
_in_brackets = lazy_pattern(r"\(([^()\n]+)\)")
_label = lazy_pattern(r"[^\n:·$]{0,60}?(?: · |: |\$ )")
_introduction = lazy_pattern(
    r"(?:requesting(?: approval)?(?: to| for)?|please|approve|allow|preparing(?: to)?|"
    r"running|runs?|execut(?:e|es|ing)|exec|command|shell|bash|terminal)\b[\s:]+(?=\S)",
    re.IGNORECASE,
)
_WRITES = (
    r"(?:over)?writ(?:e|es|ing)|edit(?:s|ing)?|creat(?:e|es|ing)|delet(?:e|es|ing)|"
    r"remov(?:e|es|ing)|mov(?:e|es|ing)|renam(?:e|es|ing)|updat(?:e|es|ing)|modif(?:y|ies|ying)|"
    r"patch(?:es|ing)?|append(?:s|ing)?|sav(?:e|es|ing)|replac(?:e|es|ing)|insert(?:s|ing)?|"
    r"truncat(?:e|es|ing)|chang(?:e|es|ing)"
)
_READS = r"read(?:s|ing)?|view(?:s|ing)?|open(?:s|ing)?|list(?:s|ing)?|show(?:s|ing)?"
_FETCHES = r"fetch(?:es|ing)?|download(?:s|ing)?|brows(?:e|es|ing)|visit(?:s|ing)?|get|post|put"
_done_to = lazy_pattern(
    rf"(?:(?P<write>{_WRITES})|(?P<read>{_READS}))\b(?:\s+\(\w+\))?"
    r"(?:\s+(?:to|the|a|an|new|file|files|folder|directory|into|in|from|edit))*[\s:·]+(?P<path>\S+)",
    re.IGNORECASE,
)
_fetched = lazy_pattern(rf"(?:{_FETCHES})\b.{{0,60}}?((?:https?|wss?|ftp)://\S+)", re.IGNORECASE)
_address = lazy_pattern(r"(?:https?|wss?|ftp)://[^\s\"'`)>\]]+", re.IGNORECASE)
_file = lazy_pattern(
    r"(?:~|\.{1,2}|…|\.\.\.)?/?(?:[^\s/:*?\"<>|]+/)+[^\s/:]*\Z|/[^\s/:]+\Z|~\Z|"
    r"\.?[\w-][\w.-]*\.[A-Za-z]\w{0,7}\Z"
)
_more_of_it = lazy_pattern(r"\s*(?:\Z|\(|:|=>|->)")


def lines_of(text: str) -> list[str]:
    """Those that are read."""
    lines = text[:_MOST_LETTERS].splitlines()[:_MOST_LINES]
    return [line.strip()[:_LONGEST_LINE] for line in lines if line.strip()]


def is_read_whole(text: str) -> bool:
    return len(text) <= _MOST_LETTERS and text.count("\n") < _MOST_LINES


def bare(text: str) -> str:
    """Without quotes and with single blanks, as commands are compared here."""
    return " ".join(_quotes.sub("", text).split())


def said_in(line: str, *, alone: bool) -> Iterator[NamedAction]:
    """What a line names. `alone` if it is a title of a request that names no command: then a
    program with any other word after it is one, and a file needs nothing that is done with it."""
    for each in _readings(line):
        yield from _commands(each, alone)
        yield from _files(each, alone)
        if fetched := _fetched.match(each):
            yield NamedAction("address", fetched[1])


def addresses_in(line: str) -> list[str]:
    return _address.findall(line)


def _readings(line: str) -> Iterator[str]:
    """The line, and what is behind a label, in backticks or in brackets."""
    told = [line, *_in_ticks.findall(line)[:8], *_in_brackets.findall(line)[:8]]
    rest = line
    for _ in range(4):
        if (label := _label.match(rest)) is None:
            break
        rest = rest[label.end() :]
        told.append(rest)
    seen: dict[str, None] = {}
    for each in told:
        for half in each.split(" => "):
            seen[half.strip()] = None
            seen[_introduction.sub("", half.strip(), count=1)] = None
    yield from filter(None, seen)


def _commands(line: str, alone: bool) -> Iterator[NamedAction]:
    for part in _joins.split(line):
        words = _quotes.sub("", part.strip(" \t()")).split()
        if words and _is_command(words, alone):
            if is_reader(words):
                yield from (
                    NamedAction("read", each) for each in words[1:] if _path_like.match(each)
                )
            yield NamedAction("command", bare(part.strip(" \t()")))


def is_reader(words: list[str]) -> bool:
    """Whether these words only read."""
    options = (word for word in words if word.startswith("-"))
    is_one = bool(words) and words[0] in _READERS and not any(map(_writing_option.match, options))
    return is_one and not any(map(_redirects.match, words))


def _is_command(words: list[str], alone: bool) -> bool:
    name, more = words[0], words[1:]
    if not more:
        return False
    has_option = any(map(_option.match, more))
    is_told = has_option or any(map(_redirects.match, more)) or _substitution.search(" ".join(more))
    if _local_program.match(name):
        return has_option or (name.startswith("./") and alone)
    if _program.match(name) is None:
        return False
    if name in PROGRAMS:
        return bool(alone or is_told or any(map(_path_like.match, more)))
    if name in _WORDS_TOO:
        return bool(is_told or _path_like.match(more[-1]))
    return _option.match(more[0]) is not None


def _files(line: str, alone: bool) -> Iterator[NamedAction]:
    done = _done_to.match(line)
    if done is not None:
        path = _trimmed(done["path"])
        if _file.match(path) and not _address.match(path):
            yield NamedAction("write" if done["write"] else "read", path)
        return
    first = line.split()[0]
    path = _trimmed(first)
    is_file = alone and _file.match(path) and not _address.match(path)
    if is_file and (_more_of_it.match(line[len(first) :]) or first.endswith(":")):
        yield NamedAction("file", path)


def _trimmed(word: str) -> str:
    """Without what surrounds it; a cut-off end stays."""
    word = word.strip("`\"'(),;:")
    return word.removesuffix(".") if not word.endswith(("..", "…")) else word
