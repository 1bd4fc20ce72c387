"""What a tool call's raw input names: commands, paths, hosts, tools, and the files of a patch.

The input has no schema: it is walked to its leaves. The key says what a value is, by the tables
below, whatever the agent; keys are compared without case or punctuation. The walk is bounded
because an agent chooses its size. Finding too much only makes a decision stricter. Knows nothing of
kinds, workspaces or rules.
"""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Any, Literal, TypeGuard
from urllib.parse import unquote, urlsplit

import msgspec

from dragoman.host.claims.doubts import Doubts
from dragoman.host.claims.idle_fields import PROSE
from dragoman.host.claims.input_keys import (
    ADDRESS_ENDINGS,
    ARGUMENT_KEYS,
    CHANGE_KEYS,
    CONTENT_KEYS,
    CWD_KEYS,
    DOCUMENT_KEYS,
    END_KEYS,
    ENV_KEYS,
    FIELDS,
    FILE_KEYS,
    FOLDER_KEYS,
    FOLLOWING_KEYS,
    INPUT_KEYS,
    LINE_LIST_KEYS,
    MAPPING_KEYS,
    NEW_NAME_KEYS,
    NEXT_KEYS,
    OUTPUT_KEYS,
    PATH_ENDINGS,
    PROGRAM_KEYS,
    ROOT_KEYS,
    TEXT_KEYS,
    TOOL_KEYS,
    USER_KEYS,
)
from dragoman.host.claims.patch_names import PatchNames
from dragoman.host.commands.plain_command import plain_words
from dragoman.host.rules.access import Command
from dragoman.host.rules.globs import LONGEST_PATH
from dragoman.lazy_pattern import lazy_pattern

_DEEPEST = 32
_MOST_VALUES = 20_000
_MOST_COMMANDS = 64
# No known key is as long, and to normalise a run of combining marks takes quadratic time.
_LONGEST_KEY = 256
# By these, a field says what something is done with.
_PLACES = (*PATH_ENDINGS, *ADDRESS_ENDINGS)
_url = lazy_pattern(r"(?:https?|wss?|ftp)://\S*\Z", re.IGNORECASE)
BRACES = r"\{(?:[^{}\n]*,)?(?:/|~|\.\./)"
"""Several paths in one, of which some are outside of where it stands."""
_path_like = lazy_pattern(
    r"/|~(?:[\w-]*/|\Z)|\.\.?/|file:|(?:.*/)?\.\.(?:/|\Z)|\$\{?\w+\}?/|.{0,256}" + BRACES,
    re.IGNORECASE,
)
# Some agents take one without its first line, or in the midst of a shell's words.
_patch = lazy_pattern(
    r"\*\*\*[ \t]*(?:Begin Patch|(?:Add|Update|Delete) File|Move to)", re.IGNORECASE
)
_patch_header = lazy_pattern(
    r"\*\*\* (?:(?:Begin Patch|End Patch|End of File)|"
    r"(?:(?:Add|Update|Delete) File|Move to): (?P<path>.+))\Z"
)
_joins_commands = lazy_pattern(r"[;&|`\n]|\$\(")
_not_alphanumeric = lazy_pattern(r"[^a-z0-9]")


class RawInput:
    """The findings of one walk. `complete` is off when something could not be read to its end.

    `paths` are under keys that name paths; `strays` only look like paths; `ends` are the two
    ends of a move, if it is one, and `new_names` is what a file is called then; `patched` are the
    files that a patch is for. `verbs` stand where a command would and are none.
    """

    def __init__(self, raw_input: Any, *, verbs: Collection[str] = ()) -> None:
        self._verbs = verbs
        self.commands: list[Command] = []
        self.paths: list[str] = []
        self.strays: list[str] = []
        self.patched: list[str] = []
        self.ends: list[str] = []
        self.outputs: list[str] = []
        """What may be written to; only for rules that deny or ask."""
        self.new_names: list[str] = []
        self.folders: list[str] = []
        self.cwds: list[str] = []
        self.hosts: list[str] = []
        self.perhaps_hosts: list[str] = []
        """Of an incomplete address; only for rules that deny or ask."""
        self.has_address = False
        """Whether one of them stands where no text does that is only written or looked for."""
        self.doubts = Doubts()
        self._in_environment = 0
        self.tools: list[str] = []
        self.prose: list[str] = []
        """What is only told to a person."""
        self.texts: list[str] = []
        """All other texts."""
        self.variables: list[str] = []
        self.complete = True
        self.patch_is_clear = True
        self._values = 0
        self._name = ""
        """Of the field that is read, as it is spelled."""
        self._walk(raw_input, "rawinput", 0)

    def in_other_folders(self) -> list[str]:
        """The files as they are called in the folders that it names: nobody says what is meant."""
        relative = [each for each in self.paths if each and each[0] not in "/~" and ":" not in each]
        return [f"{folder}/{each}" for folder in self.cwds + self.folders for each in relative]

    def _walk(self, value: Any, key: str, depth: int, *, listed: bool = False) -> None:
        if not self._may_go_on(depth):
            return
        if is_object(value):
            if key in MAPPING_KEYS:
                self.paths += _files(value, listed=listed)
            self._object(value, depth + 1)
        elif is_list(value):
            for item in value[:_MOST_VALUES]:
                self._walk(item, key, depth + 1, listed=True)
        elif isinstance(value, str):
            self._text(value.strip(), key, depth + 1)

    def _may_go_on(self, depth: int) -> bool:
        self._values += 1
        within = depth <= _DEEPEST and self._values <= _MOST_VALUES
        self.complete &= within
        return within

    def _object(self, fields: dict[Any, Any], depth: int) -> None:
        names = [str(name) for name in islice(fields, _MOST_VALUES)]
        self.complete &= len(names) == len(fields)
        self.complete &= all(len(name) <= _LONGEST_KEY for name in names)
        self.paths += [name for name in names if "/" in name]
        spelled = list(zip(map(spelling, names), fields.values(), strict=False))
        for key, value in spelled:
            if key in ENV_KEYS and value:
                self.variables += _variables(value)
        given = [value for key, value in spelled if key in ARGUMENT_KEYS and value]
        arguments = _arguments(given)
        known = len(self.commands)
        for name, (key, value) in zip(names, spelled, strict=True):
            self.doubts.note_key(key, name, value)
        has_command = any(value and _names_a_command(key) for key, value in spelled)
        has_place = any(value and key.endswith(_PLACES) for key, value in spelled)
        for name, (key, value) in zip(names, spelled, strict=True):
            self._name = name
            if _names_a_command(key):
                self._command(value, key, arguments, depth)
            elif has_command and _runs_next_to_it(key, value):
                self._command(value, key, [], depth)
            else:
                if has_place and key in FOLLOWING_KEYS and value:
                    self._follows(value, key, depth)
                self._in_environment += key in ENV_KEYS
                self._walk(value, key, depth)
                self._in_environment -= key in ENV_KEYS
        if len(self.commands) == known and any(map(_words, given)):
            self._add(tuple(arguments))
        if (sudo := _sudo(spelled)) is not None:
            self.commands[known:] = [_run_by(sudo, each) for each in self.commands[known:]]

    def _follows(self, value: Any, key: str, depth: int) -> None:
        """What is next to a file or an address, and rather happens then."""
        if _words(value):
            self._command(value, key, [], depth)
        elif not isinstance(value, bool | str):
            self.doubts.note_what_follows()

    def _add(self, *commands: Command) -> None:
        room = _MOST_COMMANDS - len(self.commands)
        self.complete &= len(commands) <= room
        self.commands += commands[: max(room, 0)]
        # A program may be given a patch as a word, or as its input.
        words = (w for each in commands for w in ((each,) if isinstance(each, str) else each))
        for patch in filter(_patch.search, words):
            self._patch(patch)

    def _command(self, value: Any, key: str, arguments: list[str], depth: int) -> None:
        if not self._may_go_on(depth):
            return
        words = _words(value)
        is_verb = key == "command" and isinstance(value, str) and value in self._verbs
        if is_verb and not arguments:
            return
        if isinstance(value, str):
            self._add(*(_with_arguments(value, arguments) if value.strip() else ()))
        elif words and key in LINE_LIST_KEYS:
            self._add(*words)
        elif words:
            self._add((*words, *arguments))
            if " " in words[0].strip():
                self._add(" ".join((*words, *arguments)))  # a line that is called an argv
        elif is_list(value):
            for item in value[:_MOST_VALUES]:
                self._command(item, key, arguments, depth + 1)
        elif is_object(value):
            self._described_command(value, depth + 1)

    def _described_command(self, description: dict[Any, Any], depth: int) -> None:
        known = len(self.commands)
        self._object(description, depth)
        if len(self.commands) == known:
            # Called a command, and not understood: no rule about words may cover it.
            self._add(f"({description})")

    def _text(self, text: str, key: str, depth: int) -> None:
        if key in TOOL_KEYS:
            self.tools.append(text)
        if _patch.search(text):
            self._patch(text)
        self._unified(text)
        if key in OUTPUT_KEYS and _may_be_a_name(text):
            self.outputs.append(text)
        may_be_document = key in DOCUMENT_KEYS or key.endswith(PATH_ENDINGS)
        if may_be_document and (document := json_document(text)) is not None:
            self._walk(document, key, depth)
            return
        (self.prose if key in PROSE else self.texts).append(text)
        if not self._in_environment:
            self.doubts.note_text(key, self._name, text, is_address=bool(_url.match(text)))
        self._place(text, key)

    def _place(self, text: str, key: str) -> None:
        is_address = bool(_url.match(text))
        if is_address or key.endswith(ADDRESS_ENDINGS):
            self._address(text, key)
            # Without a scheme it may be a path as well: of a link, for example.
            self.strays += [text] if not is_address and looks_like_a_path(text) else []
        elif key in CWD_KEYS:
            self.cwds.append(text)
        elif key in FOLDER_KEYS:
            self.folders.append(text)
        elif key.endswith(PATH_ENDINGS):
            self.paths.append(text)
        elif key in END_KEYS:
            self.ends.append(text)
        elif key in NEW_NAME_KEYS:
            self.new_names.append(text)
        elif looks_like_a_path(text):
            self.strays.append(text)

    def _patch(self, text: str) -> None:
        """Each header names a file; one that is not understood may name any."""
        lines = [line.strip() for line in text.split("\n")]
        # Where lines end is for the agent to say: each character that may end one leaves doubt.
        self.patch_is_clear &= all(len(line.splitlines()) < 2 for line in lines)
        for line in lines:
            if header := _patch_header.match(line):
                self.patched += filter(None, [header["path"]])
            elif line.startswith("***"):
                self.patch_is_clear = False

    def _unified(self, text: str) -> None:
        """The headers of any other form of a patch; a quoted name may be any."""
        named = PatchNames(text)
        self.patch_is_clear &= named.is_clear and not any(name.startswith('"') for name in named)
        self.patched += [name[2:] if name[:2] in ("a/", "b/") else name for name in named]

    def _address(self, text: str, key: str) -> None:
        if _url.match(text) is None:
            self.perhaps_hosts += _hosts_in(text)
            return
        hosts = _hosts_of(text)
        self.complete &= len(hosts) == 1
        self.hosts += hosts
        self.has_address |= key not in TEXT_KEYS


def _runs_next_to_it(key: str, value: Any) -> bool:
    """Whether what is next to a command is for a shell, or for the program, to run."""
    if key in INPUT_KEYS:
        return _is_nojson_document(value)
    return key in NEXT_KEYS and bool(_words(value))


def _is_nojson_document(value: Any) -> TypeGuard[str]:
    return isinstance(value, str) and json_document(value) is None


def _may_be_a_name(text: str) -> bool:
    return 0 < len(text) <= LONGEST_PATH and "\n" not in text and _url.match(text) is None


def whole_file(raw_input: Any) -> tuple[str, str] | None:
    """A path and all that is to be there, where the input is nothing but these two."""
    if not is_object(raw_input) or len(raw_input) != 2:
        return None
    texts = {spelling(str(key)): text for key, text in raw_input.items() if isinstance(text, str)}
    path = next((text for key, text in texts.items() if key in FILE_KEYS), None)
    content = next((text for key, text in texts.items() if key in CONTENT_KEYS), None)
    return None if path is None or content is None else (path, content)


def names_address(raw_input: Any) -> bool:
    """Whether it says under `url` what is to be fetched, in full."""
    url: Any = raw_input.get("url") if is_object(raw_input) else None
    return isinstance(url, str) and bool(_url.match(url.strip()))


def looks_like_a_path(text: str) -> bool:
    """Whether a text alone, whatever its key, is better taken for a path."""
    return len(text) <= LONGEST_PATH and "\n" not in text and bool(_path_like.match(text))


def field_role(name: str) -> Literal["command", "path", "text", ""]:
    """What a field of this name is read as; a text is something to write or to look for."""
    key = spelling(name)
    if _names_a_command(key) or key in ARGUMENT_KEYS or key in ENV_KEYS:
        return "command"
    if key in CWD_KEYS or key in FOLDER_KEYS or key.endswith(PATH_ENDINGS):
        return "path"
    return "text" if key in TEXT_KEYS or key in CHANGE_KEYS else ""


def spelling(name: str) -> str:
    """A key without case and punctuation, as all the tables here have it."""
    if len(name) > _LONGEST_KEY:
        return ""
    return _not_alphanumeric.sub("", unicodedata.normalize("NFKC", name).casefold())


def _files(changes: dict[Any, Any], *, listed: bool) -> Iterator[str]:
    """The keys that are files. In a list each object is rather one change, and its keys are fields
    unless they do not look it."""
    for key, change in islice(changes.items(), _MOST_VALUES):
        name = str(key)
        is_file = not listed or "." in name or is_object(change)
        if is_file and spelling(name) not in FIELDS:
            yield name


def _names_a_command(key: str) -> bool:
    if key in PROGRAM_KEYS or key in LINE_LIST_KEYS:
        return True
    return "command" in key or key.startswith("cmd") or key.endswith("cmd")


def _words(value: Any) -> list[str]:
    """A text that says something, or a list of nothing but texts; else nothing."""
    if isinstance(value, str):
        return [value] if value.strip() and json_document(value) is None else []
    if not is_list(value) or len(value) > _MOST_VALUES:
        return []
    words = [item for item in value if isinstance(item, str)]
    return words if len(words) == len(value) else []


class _Text(str):
    """Arguments that are given as one text, which may be several words."""

    __slots__ = ()


def _is_text(argument: str) -> bool:
    return isinstance(argument, _Text) and " " in argument.strip()


def _arguments(given: list[Any]) -> list[str]:
    """The arguments of a command; what is not a word becomes one that no rule can match."""
    given = [_Text(value) if isinstance(value, str) else value for value in given]
    listed = [value[:_MOST_VALUES] if is_list(value) else [value] for value in given]
    items = [item for values in listed for item in values]
    return [item if isinstance(item, str) else f"({item})" for item in items]


def _with_arguments(command: str, arguments: list[str]) -> Iterator[Command]:
    """One plain word is a program; anything else an agent can only mean for a shell. Which of both
    is not known where a shell would find more commands in the arguments."""
    line = " ".join((command, *arguments))
    is_program = bool(arguments) and plain_words(command) == (command,)
    if is_program:
        yield command, *arguments
    in_doubt = any(_joins_commands.search(e) or _is_text(e) for e in arguments)
    if not is_program or in_doubt:
        yield line


def _sudo(fields: Sequence[tuple[str, Any]]) -> tuple[str, ...] | None:
    """The words that say who runs a command, if that is not the agent's user."""
    users = [value for key, value in fields if key in USER_KEYS and value]
    if users:
        return ("sudo", "-u", users[0] if isinstance(users[0], str) else f"({users[0]})")
    return ("sudo",) if any(key in ROOT_KEYS and value for key, value in fields) else None


def _run_by(sudo: tuple[str, ...], command: Command) -> Command:
    if not isinstance(command, str):
        return (*sudo, *command)
    if plain_words(command) is None:
        return shlex.join((*sudo, "sh", "-c", command))
    return f"{shlex.join(sudo)} {command}"


def json_document(text: str) -> Any:
    """The object or the list that a text is; None for any other text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None


def _variables(value: Any) -> list[str]:
    """The names of the variables that are set; there is one for whatever is not understood."""
    if is_object(value):
        return [str(name) for name in islice(value, _MOST_VALUES)]
    items = value[:_MOST_VALUES] if is_list(value) else [value]
    return [_variable(item) for item in items]


def _variable(item: Any) -> str:
    if is_object(item) and isinstance(name := item.get("name"), str):
        return name
    return item.partition("=")[0] if isinstance(item, str) else f"({item})"


def _hosts_of(url: str) -> list[str]:
    """The host; none where it cannot be said, and each that it may be. Browsers end it at a
    backslash, this parser does not."""
    hosts: dict[str, None] = {}
    for spelled in dict.fromkeys((url, url.replace("\\", "/"))):
        try:
            host = urlsplit(spelled).hostname
        except ValueError:
            return []
        if not host:
            return []
        hosts[host.rstrip(".")] = None
    return list(hosts)


def _hosts_in(text: str) -> list[str]:
    """The hosts of what may be addresses, though it does not say so."""
    words = text.split()[:_MOST_COMMANDS]
    addresses = (each if "://" in each else f"https://{each.lstrip('/')}" for each in words)
    return [host for each in addresses for host in _hosts_of(each)]


def is_object(value: Any) -> TypeGuard[dict[Any, Any]]:
    return isinstance(value, dict)


def is_list(value: Any) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    return isinstance(value, list | tuple)


def path_of_address(text: str) -> str | None:
    """The path of a `file:` address, None for what is not on this disk."""
    try:
        uri = urlsplit(text)
    except ValueError:
        return None
    local = uri.scheme == "file" and uri.netloc in ("", "localhost")
    return unquote(uri.path) if local and uri.path.startswith("/") else None
