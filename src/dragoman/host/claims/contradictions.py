"""What an agent's words say against its own claim: another command, file, address or tool.

Words allow nothing. Where they plainly name another action than the request does, the claim is not
complete: no flag and no rule allows it, and what they name is judged too. Pure.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from dragoman.host.claims.raw_input import RawInput, is_list, is_object, json_document
from dragoman.host.claims.said_actions import (
    NamedAction,
    addresses_in,
    bare,
    is_read_whole,
    is_reader,
    lines_of,
    said_in,
)
from dragoman.host.rules.access import Access, Command, Operation, Sighting, normalise
from dragoman.host.rules.globs import is_within
from dragoman.lazy_pattern import lazy_pattern

_MOST_SAID = 16
_MOST_LETTERS = 256 << 10
_LONGEST_QUOTE = 80
_tool_words = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
# Parts of the names of tools.
_WRITING_WORDS = """
    append copy create delete edit insert mkdir move overwrite patch remove rename replace rm save
    truncate update write
"""
_RUNNING_WORDS = "bash cmd command exec execute powershell run sh shell terminal"
_WRITING_TOOLS = frozenset(_WRITING_WORDS.split())
_RUNNING_TOOLS = frozenset(_RUNNING_WORDS.split())
_quoted = lazy_pattern(r"\"([^\"\n]+)\"|'([^'\n]+)'|`([^`\n]+)`|“([^”\n]+)”")
_cut_off = lazy_pattern(r"…|\.{3}")
_word_ends = r"(?<![\w./-])", r"(?![\w./-])"


class AgentWords(msgspec.Struct, frozen=True, kw_only=True):
    """All that comes with a request and claims nothing: titles, other texts that are shown, and an
    output. `uris` are those of the resources that it shows."""

    titles: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    uris: tuple[str, ...] = ()
    outputs: tuple[Any, ...] = ()
    shows_terminal: bool = False


NO_WORDS = AgentWords()


class Contradiction(msgspec.Struct, frozen=True):
    """`quote` says what contradicts the claim, as the beginning of a sentence; `said` is what the
    words name, as accesses."""

    quote: str
    said: tuple[Access, ...] = ()


_TOO_LONG = Contradiction("a text that is too long to be read")


class Claimed(msgspec.Struct, frozen=True):
    """What the words are compared with."""

    found: RawInput
    facts: Access
    files: Sequence[str]
    """Names of its files, in any way to write them."""
    places: Sequence[str]
    """The locations of the call, which the client would open."""
    written: Sequence[str]
    """What is there before and after a change."""
    kind: Operation
    """What the claim says to do, by its kind."""
    tool: str | None


def contradiction(
    words: AgentWords, claimed: Claimed, look: Callable[[str], Sighting | None]
) -> Contradiction | None:
    """What of the words contradicts the claim most, if anything does."""
    return _Comparison(claimed, look).first(words)


class _Comparison:
    def __init__(self, claimed: Claimed, look: Callable[[str], Sighting | None]) -> None:
        self._claimed = claimed
        self._facts = claimed.facts
        self._look = look
        lines = [bare(line) for line in map(_as_line, self._facts.commands)]
        self._lines = tuple(line for line in lines if line)
        self._commands = "\n".join(self._lines)
        self._changed = bare("\n".join(claimed.written))
        self._files = tuple({_bare_path(each) for each in claimed.files})
        self._quotable = frozenset(map(bare, claimed.found.texts))

    def first(self, words: AgentWords) -> Contradiction | None:
        """The first of them, with all that they name."""
        if self._claimed.kind == "other":
            return None  # it says nothing that could be contradicted
        found = [each for each in self._all(words) if each is not None]
        if not found:
            return None
        return Contradiction(found[0].quote, tuple(one for each in found for one in each.said))

    def _all(self, words: AgentWords) -> Iterator[Contradiction | None]:
        yield self._by_the_tool()
        yield self._by_a_place()
        if words.shows_terminal and self._claimed.kind in ("read", "write") and not self._lines:
            yield Contradiction("the terminal that it shows")
        texts = (*words.texts, *self._claimed.found.prose)
        all_of_them = (*words.titles, *texts)
        if sum(map(len, all_of_them)) > _MOST_LETTERS:
            yield _TOO_LONG
            return
        yield self._by_words(words, texts)
        if not all(map(is_read_whole, all_of_them)):
            yield _TOO_LONG

    def _by_words(self, words: AgentWords, texts: Sequence[str]) -> Contradiction | None:
        found: dict[NamedAction, str] = {}
        for title in words.titles:
            for line in lines_of(title):
                self._note(found, line, alone=not self._lines)
        for text in texts:
            self._note_text(found, text)
        for output in words.outputs:
            self._note_output(found, output)
        for uri in words.uris:
            if uri.startswith(("file:", "/", "~/")):
                self._keep(found, NamedAction("file", uri), uri)
        if not found:
            return None
        line = next(iter(found.values()))
        said = tuple(filter(None, map(self._access, found)))
        return Contradiction(f"“{_shortened(line)}”", said)

    # ── what is compared ──────────────────────────────────────────────────────────────────────

    def _note_text(self, found: dict[NamedAction, str], text: str) -> None:
        if (document := json_document(text)) is not None:
            self._note_output(found, document)
            return
        for line in lines_of(text):
            self._note(found, line, alone=False)

    def _note_output(self, found: dict[NamedAction, str], output: Any) -> None:
        if isinstance(output, str):
            self._note_text(found, output)
        elif is_object(output) or is_list(output):
            told = RawInput(output)
            for each in told.commands:
                line = bare(_as_line(each))
                self._keep(found, NamedAction("command", line), line)
            for path in (*told.paths, *told.patched):
                self._keep(found, NamedAction("file", path), path)
            known = {*self._claimed.found.texts, *self._claimed.found.prose}
            for text in (text for text in (*told.texts, *told.prose) if text not in known):
                for line in lines_of(text):
                    self._note(found, line, alone=False)

    def _note(self, found: dict[NamedAction, str], line: str, *, alone: bool) -> None:
        told = self._without_quotations(line)
        halves = " => " in line
        for said in said_in(told, alone=alone):
            if not (halves and bare(said.what) in self._changed):
                self._keep(found, said, line)
        if self._claimed.kind == "fetch" and self._facts.hosts:
            for address in addresses_in(told):
                self._keep(found, NamedAction("address", address), line)

    def _without_quotations(self, line: str) -> str:
        """Without what the claim says too: its commands, and quoted texts of its input."""

        def left(match: re.Match[str]) -> str:
            quoted = bare(next(filter(None, match.groups())))
            return " " if quoted in self._quotable else match[0]

        line = _quoted.sub(left, line)
        plain = bare(line)
        if plain in self._commands:
            return ""
        known = [each for each in self._lines if each in plain]
        if not known:
            return line
        for each in known:
            plain = re.sub(re.escape(each).join(_word_ends), " ", plain)
        return plain.strip()

    def _keep(self, found: dict[NamedAction, str], said: NamedAction, line: str) -> None:
        if len(found) < _MOST_SAID and self._contradicts(said):
            found.setdefault(said, line)

    # ── whether it is something else ──────────────────────────────────────────────────────────

    def _contradicts(self, said: NamedAction) -> bool:
        kind = self._claimed.kind
        match said.kind:
            case "command":
                return not self._is_known_command(said.what)
            case "address" if kind == "fetch" and not self._facts.hosts:
                return False
            case "address":
                return not self._is_known_address(said.what)
            case "write" if kind == "read":
                return True
            case _ if self._lines:
                return self._is_outside(said.what) and not self._is_in_commands(said.what)
            case _ if kind in ("read", "write"):
                return bool(self._files) and not self._is_known_file(said.what)
            case _:
                return False

    def _is_known_command(self, line: str) -> bool:
        words = line.split()
        if self._claimed.kind == "read" and is_reader(words):
            return True
        pieces = [piece.strip() for piece in _cut_off.split(line)]
        return bool(self._lines) and all(piece in self._commands for piece in pieces)

    def _is_known_address(self, url: str) -> bool:
        hosts = RawInput({"url": url}).hosts
        return all(host in self._facts.hosts for host in hosts)

    def _is_known_file(self, path: str) -> bool:
        if not _is_exact(path):
            wanted = _bare_path(path)
            ends = (file == wanted or file.endswith(f"/{wanted}") for file in self._files)
            if not wanted or any(ends):
                return True
        elif path.removeprefix("file://") in self._claimed.files:
            return True
        seen = self._sighting(path)
        return seen is not None and seen.path in (*self._facts.paths, *self._facts.aliases)

    def _is_in_commands(self, path: str) -> bool:
        name = _bare_path(path).rpartition("/")[2]
        return bool(name) and _is_word_of(name, self._commands)

    def _is_outside(self, path: str) -> bool:
        seen = self._sighting(path)
        if seen is None:
            return path.startswith(("/", "~"))
        return Access(operation="read", paths=(seen.path,), roots=self._facts.roots).place != (
            "inside"
        )

    def _sighting(self, path: str) -> Sighting | None:
        return None if _cut_off.search(path) else self._look(path)

    # ── what is judged ────────────────────────────────────────────────────────────────────────

    def _by_the_tool(self) -> Contradiction | None:
        """A tool that is called otherwise than what is said to be done."""
        name, kind = self._claimed.tool or "", self._claimed.kind
        words = {word.casefold() for word in _tool_words.findall(name.rpartition("__")[2])}
        writes, runs = bool(words & _WRITING_TOOLS), bool(words & _RUNNING_TOOLS)
        hides_a_change = writes and not runs and kind == "execute"
        hides_a_command = runs and kind == "write" and not (writes or self._lines)
        if not (hides_a_change or hides_a_command or (kind == "read" and (writes or runs))):
            return None
        paths = self._facts.paths if writes and kind == "read" else ()
        said = (self._of("write", paths=paths),) if paths else ()
        return Contradiction(f"its tool “{_shortened(name)}”", said)

    def _by_a_place(self) -> Contradiction | None:
        """A place of a command, or of a fetch, that nothing else of the claim names."""
        if self._claimed.kind not in ("execute", "fetch"):
            return None
        strange = (each for each in self._claimed.places if not self._is_named(each))
        place = next(strange, None)
        return None if place is None else Contradiction(f"the place “{_shortened(place)}”")

    def _is_named(self, place: str) -> bool:
        facts, seen = self._facts, self._sighting(place)
        if seen is None:
            return False
        if seen.path in (*facts.folders, *facts.cwd_aliases, *facts.roots):
            return True
        texts = (*self._claimed.found.texts, *self._claimed.found.paths)
        told = "\n".join((self._commands, *map(bare, texts)))
        if not self._is_outside(place):
            return _is_word_of(seen.path.rpartition("/")[2], told)
        names = _ways_to_write(seen, facts.cwd or "/", facts.roots)
        return any(_is_word_of(name, told) for name in names)

    def _access(self, said: NamedAction) -> Access | None:
        if said.kind == "command":
            return self._of("execute", commands=(said.what,), cwd=self._facts.cwd)
        if said.kind == "address":
            return self._of("fetch", hosts=tuple(RawInput({"url": said.what}).hosts))
        seen = self._sighting(said.what)
        if seen is None:
            return None
        writes = said.kind == "write" or (said.kind == "file" and self._claimed.kind != "read")
        return self._of(
            "write" if writes else "read",
            paths=(seen.path,),
            aliases=seen.aliases,
            hazard=seen.hazard,
        )

    def _of(self, operation: Operation, **fields: Any) -> Access:
        facts = self._facts
        return Access(
            operation=operation,
            agent=facts.agent,
            roots=facts.roots,
            claimed=True,
            complete=False,
            **fields,
        )


def _is_word_of(name: str, text: str) -> bool:
    return re.search(rf"(?<![\w.~-]){re.escape(name)}(?![\w.-])", text) is not None


def _ways_to_write(seen: Sighting, folder: str, roots: Sequence[str]) -> Iterator[str]:
    """Of a file outside of the workspace, or of a folder above it that the workspace is not in."""
    home = os.path.expanduser("~")
    for name in (seen.path, *seen.aliases):
        names = name.split("/")
        for at in range(len(names), 1, -1):
            path = "/".join(names[:at])
            if at < len(names) and any(is_within(root, path) for root in roots):
                break
            yield path
            yield os.path.relpath(path, folder)
            if is_within(path, home):
                yield f"~{path[len(home) :]}"


def _as_line(command: Command) -> str:
    return command if isinstance(command, str) else " ".join(command)


def _is_exact(path: str) -> bool:
    """Whether it says where it begins, and is not cut off."""
    begins = path.startswith(("/", "~", "file:")) or ".." in path.split("/")
    return begins and _cut_off.search(path) is None


def _bare_path(path: str) -> str:
    """As it ends, however it begins: agents leave out folders, or write `…` for them."""
    path = _cut_off.split(path.removeprefix("file://"))[-1]
    return normalise(f"/{path}").strip("/")


def _shortened(line: str) -> str:
    line = " ".join(line.split())
    return line if len(line) <= _LONGEST_QUOTE else f"{line[:_LONGEST_QUOTE]}…"
