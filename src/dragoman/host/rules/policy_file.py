"""Permission rules from a file, JSON or TOML, read strictly: anything unknown is an error.

Each error is one line: the file, the place in it, what was expected there. `~` in a path is the
home passed in; nothing else of the environment is looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeGuard, get_args

from dragoman.errors import ConfigError
from dragoman.host.rules.access import OPERATIONS
from dragoman.host.rules.globs import escape
from dragoman.host.rules.rule import Effect, Rule, covered
from dragoman.host.workspace.regular_file import read_regular

if TYPE_CHECKING:
    from pathlib import Path

_EFFECTS: tuple[str, ...] = get_args(Effect)
_MAX_BYTES = 4 * 1024 * 1024
_KEYS = ("effect", "operation", "agent", "path", "argv", "argv_prefix", "cwd", "host", "tool")


def load_policy(path: Path, *, home: str) -> tuple[Rule, ...]:
    """Read a file of rules, JSON or TOML; `home` replaces `~` in paths. Raises ConfigError."""
    return parse_policy(_read(path), str(path), home=home, with_limits=True)


def policy_limits(path: Path) -> Any:
    """The `limits` of a file of rules as they are there, not checked. Raises ConfigError."""
    policy = read_document(path)
    return policy.get("limits", []) if _is_object(policy) else []


def read_document(path: Path) -> Any:
    """What is in a JSON or TOML file about rules. Raises ConfigError."""
    return _document(_read(path), str(path))


def _read(path: Path) -> str:
    try:
        return read_regular(path, _MAX_BYTES, links=True).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(str(path), f"byte {error.start}", "text in UTF-8") from error
    except OSError as error:
        raise ConfigError(str(path), "", f"a readable file ({error.strerror})") from error


def _document(text: str, file: str) -> Any:
    """JSON or TOML by the name of the file, else by how it begins."""
    is_json = file.endswith(".json") or (
        not file.endswith(".toml") and text.lstrip().startswith("{")
    )
    return read_strict_json(text, file) if is_json else _toml(text, file)


def parse_policy(text: str, file: str, *, home: str, with_limits: bool = False) -> tuple[Rule, ...]:
    """The rules of a file's text, JSON or TOML, which may have `limits`, too."""
    policy = _document(text, file)
    if not _is_object(policy):
        raise ConfigError(file, "", 'an object with "rules"')
    keys = ("rules", "limits") if with_limits else ("rules",)
    _reject_unknown(policy, keys, _Place(file, ""))
    rules: Any = policy.get("rules", [] if with_limits and "limits" in policy else None)
    if not _is_list(rules):
        raise ConfigError(file, "rules", "a list of rules")
    return tuple(
        _rule(fields, _Place(file, f"rules[{index}]"), home) for index, fields in enumerate(rules)
    )


def parse_rule(fields: dict[str, Any], source: str, *, home: str) -> Rule:
    """One rule that is not in a file, by the same keys. Raises ConfigError, which names the
    `source` instead of a file."""
    return _rule(fields, _Place(source, ""), home)


class _Place:
    """Where in a file we are, to say so when it is wrong."""

    def __init__(self, file: str, name: str) -> None:
        self.file = file
        self.name = name

    def __getitem__(self, key: str) -> _Place:
        return _Place(self.file, f"{self.name}.{key}" if self.name else key)

    def expected(self, what: str) -> ConfigError:
        return ConfigError(self.file, self.name, what)


def _toml(text: str, file: str) -> Any:
    import tomllib  # most runs have no TOML

    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(file, "", f"TOML ({error})") from error


def _rule(fields: Any, place: _Place, home: str) -> Rule:
    if not _is_object(fields):
        raise place.expected("an object, with at least an effect")
    _reject_unknown(fields, _KEYS, place)
    _reject_other(fields, "effect", _EFFECTS, place)
    _reject_other(fields, "operation", (None, *OPERATIONS), place)
    rule = Rule(
        effect=fields["effect"],
        operation=fields.get("operation"),
        agent=_text(fields, "agent", place),
        path=_path(fields, "path", place, home),
        argv=_words(fields, "argv", place),
        argv_prefix=_words(fields, "argv_prefix", place),
        cwd=_path(fields, "cwd", place, home),
        host=_text(fields, "host", place),
        tool=_text(fields, "tool", place),
        id=place.name,
        source=place.file,
    )
    if not covered(rule):
        # It would never match, and a deny that never matches is worse than an error.
        raise place.expected(
            "conditions that fit together: path is for read, write and other, argv and cwd for "
            "execute, host for fetch, mcp and other, tool for mcp and other"
        )
    return rule


def _reject_unknown(fields: dict[str, Any], known: Sequence[str], place: _Place) -> None:
    for key in fields:
        if key not in known:
            raise place[key].expected(f"only {_listed(known)}; unknown key")


def _reject_other(
    fields: dict[str, Any], key: str, values: Sequence[str | None], place: _Place
) -> None:
    given = fields.get(key)
    if given not in values or (given is None and key in fields):
        raise place[key].expected(_listed([value for value in values if value is not None]))


def _text(fields: dict[str, Any], key: str, place: _Place) -> str | None:
    if key not in fields:
        return None
    text = fields[key]
    if not isinstance(text, str) or not text:
        raise place[key].expected("a non-empty string")
    return text


def _words(fields: dict[str, Any], key: str, place: _Place) -> tuple[str, ...] | None:
    if key not in fields:
        return None
    given: Any = fields[key]
    words = [word for word in given if isinstance(word, str)] if _is_list(given) else []
    if not words or len(words) != len(given):
        raise place[key].expected('a list of strings, such as ["git", "status"]')
    return tuple(words)


def _path(fields: dict[str, Any], key: str, place: _Place, home: str) -> str | None:
    glob = _text(fields, key, place)
    if glob is None:
        return None
    if glob == "~" or glob.startswith("~/"):
        glob = escape(home) + glob[1:]
    components = glob.split("/")
    if components[0].startswith("~"):
        raise place[key].expected("~/ for your own home; write other homes as full paths")
    if ".." in components:
        raise place[key].expected("a path without ..")
    if components[-1] == "":
        raise place[key].expected("no / at the end; folder/** is a directory and all below it")
    if any("**" in part and part != "**" for part in components):
        raise place[key].expected("** alone between slashes")
    return glob


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + f" or {words[-1]}" if len(words) > 1 else words[0]


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def read_strict_json(text: str, file: str) -> Any:
    """The document in `text`; no key stands twice in an object. Raises ConfigError."""
    import json  # msgspec would not say where a key stands twice

    def refuse(constant: str) -> Any:
        raise ConfigError(file, "", f"strict JSON, which has no {constant}")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise ConfigError(file, twice, "each key only once in an object")
        return fields

    try:
        return json.loads(text, parse_constant=refuse, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise ConfigError(file, place, f"strict JSON ({error.msg.lower()})") from error
    except RecursionError as error:
        raise ConfigError(file, "", "strict JSON, nested less deeply") from error
