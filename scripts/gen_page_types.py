"""Writes web/src/core/generated: what the page shares with Python; `--check` only compares.

python scripts/gen_page_types.py [--check]

Types of what the server sends, defaults, limits and tables of words and characters. Behaviour is
written by hand on both sides, and golden vectors compare it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
import types
from collections.abc import Iterable, Iterator
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, UnsetType

from dragoman import safe_text
from dragoman.agents.listing import ListedAgent
from dragoman.cli.render import event_text, terminal_view
from dragoman.client.sessions.limit_watch import BoundLimit
from dragoman.conformance.doctor.doctor_report import Finding, Grade
from dragoman.host.rules.rule import RuleFields
from dragoman.host.snapshots.folder_changes import FolderProblem
from dragoman.host.snapshots.line_history import Hunk
from dragoman.hub.stored.usage_report import UsageRow
from dragoman.racing import race_record
from dragoman.session import content, events, facts, permission_options, state, state_limits
from dragoman.session.limits.spending import Spending, Tokens
from dragoman.session.limits.spending_limits import SpendingLimit
from dragoman.store.records import Status
from dragoman.web.shapes import (
    policy_shapes,
    push_shapes,
    server_shapes,
    session_shapes,
    token_shapes,
)

FOLDER = Path(__file__).parent.parent / "web" / "src" / "core" / "generated"
WIDTH = 100
Struct = type[msgspec.Struct]

MODULES = {"content": content, "facts": facts, "events": events, "state": state}
FILES = (*MODULES, "responses")
"""The files of types, each importing only from those before it."""

# What the HTTP API answers and the page reads, and the words in it.
ANSWERS: tuple[Struct, ...] = (
    *(
        session_shapes.OwnerShape,
        server_shapes.SessionHost,
        session_shapes.Summary,
        server_shapes.HostShape,
    ),
    *(
        RuleFields,
        policy_shapes.RuleShape,
        policy_shapes.RuleList,
        policy_shapes.AddedRule,
        policy_shapes.TriedRule,
        policy_shapes.Verdict,
        policy_shapes.ProjectRule,
        policy_shapes.ProjectRuleList,
        ListedAgent,
        server_shapes.AgentSessionShape,
    ),
    *(
        server_shapes.CurrentProvider,
        server_shapes.ProviderShape,
        server_shapes.ProviderList,
    ),
    *(
        server_shapes.SignIn,
        server_shapes.SignIns,
        server_shapes.Question,
        Finding,
        server_shapes.DoctorReport,
    ),
    *(
        session_shapes.Accepted,
        session_shapes.SteerAnswer,
        session_shapes.FoundFile,
        session_shapes.Subfolders,
        Hunk,
        FolderProblem,
        session_shapes.FileChange,
    ),
    *(session_shapes.FileChanges, session_shapes.RevertAnswer, session_shapes.RewindAnswer),
    *(session_shapes.FrameShape, session_shapes.Upload),
    *(SpendingLimit, BoundLimit, session_shapes.LimitList),
    *(session_shapes.HitShape, session_shapes.CostAmount),
    *(Tokens, Spending, UsageRow, session_shapes.UsageList),
    *(race_record.CheckCounts, race_record.CheckRun, race_record.JudgedFiles, race_record.Entrant),
    *(race_record.ReviewRound, race_record.RaceReview, race_record.RacePlace),
    *(race_record.RaceVerdict, race_record.RaceRecord),
    *(token_shapes.TokenShape, token_shapes.TokenList, token_shapes.Pairing, token_shapes.Paired),
    *(push_shapes.PushState, push_shapes.PushShape),
)
ANSWER_WORDS = {
    "Status": Status,
    "Grade": Grade,
    "EntrantStatus": race_record.EntrantStatus,
    "Outcome": race_record.Outcome,
}


def files() -> dict[str, str]:
    """The text of every generated file, by its name."""
    return {
        **{f"{name}.ts": _headed(f"session/{name}.py", _types(name)) for name in MODULES},
        "responses.ts": _headed("web/shapes", _types("responses")),
        "characters.ts": _headed("safe_text.py", _characters()),
        "limits.ts": _headed("session/state_limits.py and cli/render", _limits()),
        "permission_words.ts": _headed("session/permission_options.py", _permission_words()),
    }


def _headed(source: str, parts: Iterable[str]) -> str:
    head = f"// Generated from src/dragoman/{source} by `make gen`: do not edit."
    return "\n\n".join([head, *parts]) + "\n"


# ── types ─────────────────────────────────────────────────────────────────────────────────────


def _types(module: str) -> Iterator[str]:
    structs = _structs(module)
    parts = [_interface(struct, whole=module == "state") for struct in structs]
    parts += [_alias(name, union) for name, union in _aliases(module).items()]
    if module == "content":
        parts.insert(0, "export type Json = Record<string, unknown>")
    if module == "events":
        parts.append(_set("FROM_AGENT", _from_agent()))
    if module == "state":
        parts += [_new(struct) for struct in structs if _has_defaults(struct)]
        parts += [_table("NEW_ENTRIES", state.AnyEntry), _table("NEW_PENDING", state.Pending)]
        parts += [_set("OPEN_STATUSES", state.OPEN_STATUSES), _set("ENDINGS", state.OVER_TURNS)]
    if imports := _imports(module, "\n".join(parts)):
        yield imports
    yield from parts


def _from_agent() -> frozenset[str]:
    kinds = get_args(events.Event)
    return frozenset(_tag(kind)["type"] for kind in kinds if kind.from_agent)


def _structs(module: str) -> list[Struct]:
    if module == "responses":
        return list(ANSWERS)
    found = vars(MODULES[module]).values()
    return [
        item
        for item in found
        if isinstance(item, type)
        and issubclass(item, msgspec.Struct)
        and item.__module__ == MODULES[module].__name__
        and item.__struct_fields__
    ]


@cache
def _aliases(module: str) -> dict[str, Any]:
    """The unions that have a name, where it is defined and not imported."""
    if module == "responses":
        return ANSWER_WORDS
    earlier = FILES[: FILES.index(module)]
    known = {name for other in earlier for name in _aliases(other)}
    return {
        name: value
        for name, value in vars(MODULES[module]).items()
        if name not in known and len(atoms := list(_atoms(value))) > 1 and type(None) not in atoms
    }


def _name(struct: Struct) -> str:
    return struct.__name__.lstrip("_")


def _imports(module: str, text: str) -> str:
    lines: list[str] = []
    for other in FILES[: FILES.index(module)]:
        known = [*map(_name, _structs(other)), *_aliases(other)]
        if other == "content":
            known.append("Json")
        used = sorted(name for name in known if re.search(rf"\b{name}\b", text))
        if used:
            lines += _wrapped("import type { ", used, f" }} from './{other}'")
    return "\n".join(lines)


def _interface(struct: Struct, *, whole: bool) -> str:
    """`whole` has every field; else what the server leaves out may be absent."""
    base = _base(struct)
    inherited = {field.name for field in msgspec.structs.fields(base)} if base else set[str]()
    rows = [f"{key}: {_quoted(value)}" for key, value in _tag(struct).items()]
    for field in msgspec.structs.fields(struct):
        if field.name not in inherited:
            mark = "" if whole or not _may_be_absent(struct, field) else "?"
            rows.append(f"{field.encode_name}{mark}: {_typed(field.type)}")
    extends = f" extends {_extended(base)}" if base else ""
    body = "".join(f"\n  {row}" for row in rows) + ("\n" if rows else "")
    return f"export interface {_name(struct)}{extends} {{{body}}}"


def _base(struct: Struct) -> Struct | None:
    """One without fields is left out. That of another file is spelled out: what may be absent
    differs between files."""
    base = struct.__bases__[0]
    if not issubclass(base, msgspec.Struct) or not base.__struct_fields__:
        return None
    is_beside = any({base, struct} <= {*_structs(file)} for file in FILES)
    return base if is_beside else None


def _extended(base: Struct) -> str:
    """One with a tag is a kind of its own, of which another is a variety with another tag."""
    tag = "".join(_tag(base))
    return f"Omit<{_name(base)}, '{tag}'>" if tag else _name(base)


def _tag(struct: Struct) -> dict[str, str]:
    """Of one that was given none, msgspec makes the name of the class."""
    config = struct.__struct_config__
    if config.tag_field is None or config.tag == struct.__name__:
        return {}
    return {config.tag_field: str(config.tag)}


def _may_be_absent(struct: Struct, field: msgspec.structs.FieldInfo) -> bool:
    is_unset = UnsetType in get_args(field.type) or field.default is msgspec.UNSET
    return is_unset or (not field.required and struct.__struct_config__.omit_defaults)


SIMPLE = {
    str: "string",
    int: "number",
    float: "number",
    datetime: "string",
    bool: "boolean",
    type(None): "null",
    Any: "unknown",
}


def _typed(annotation: Any, *, besides: str = "") -> str:
    """An annotation as TypeScript; unions by their names, except that of `besides`."""
    atoms = list(dict.fromkeys(_atoms(annotation)))
    names: list[str] = []
    for name, members in _unions():
        if name != besides and all(member in atoms for member in members):
            atoms = [atom for atom in atoms if atom not in members]
            names.append(name)
    simple = [_atom(atom) for atom in atoms if atom is not type(None)]
    null = ["null"] if type(None) in atoms else []
    return " | ".join([*simple, *names, *null])


def _unions() -> list[tuple[str, list[Any]]]:
    named = [pair for module in FILES for pair in _aliases(module).items()]
    found = [(name, list(_atoms(union))) for name, union in named]
    return sorted(found, key=lambda each: -len(each[1]))


def _atoms(annotation: Any) -> Iterator[Any]:
    """The members of a union or a Literal, one by one; a single type is its only member."""
    if get_origin(annotation) in (Union, types.UnionType):
        for member in get_args(annotation):
            yield from _atoms(member)
    elif get_origin(annotation) is Literal:
        for word in get_args(annotation):
            yield Literal[word]
    elif annotation is not UnsetType:
        yield annotation


def _atom(annotation: Any) -> str:
    match get_origin(annotation):
        case None:
            return SIMPLE[annotation] if annotation in SIMPLE else _name(annotation)
        case origin if origin is Literal:
            return _quoted(get_args(annotation)[0])
        case origin if origin in (list, tuple):
            item = _typed(get_args(annotation)[0])
            return f"({item})[]" if " " in item else f"{item}[]"
        case _:
            value = _typed(get_args(annotation)[1])
            return "Json" if value == "unknown" else f"Record<string, {value}>"


def _alias(name: str, union: Any) -> str:
    members = _typed(union, besides=name).split(" | ")
    line = f"export type {name} = {' | '.join(members)}"
    if len(line) <= WIDTH:
        return line
    rows = textwrap.wrap(" | ".join(members), WIDTH - 4)
    return "\n".join([f"export type {name} =", *(f"  | {row.strip(' |')}" for row in rows)])


# ── defaults ──────────────────────────────────────────────────────────────────────────────────


def _has_defaults(struct: Struct) -> bool:
    return bool(struct.__struct_defaults__) and not struct.__subclasses__()


def _new(struct: Struct) -> str:
    """A function that makes one with its defaults; what has none is left to its caller."""
    fields = msgspec.structs.fields(struct)
    required = [_quoted(field.encode_name) for field in fields if field.required]
    made = f"Omit<{_name(struct)}, {' | '.join(required)}>" if required else _name(struct)
    values = [f"{key}: {_quoted(value)}" for key, value in _tag(struct).items()]
    values += [f"{f.encode_name}: {_value(_default(f))}" for f in fields if not f.required]
    rows = _filled(values, "  ")
    return "\n".join([f"export const new{_name(struct)} = (): {made} => ({{", *rows, "})"])


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default_factory() if field.default is NODEFAULT else field.default


def _table(name: str, union: Any) -> str:
    members = [(_tag(struct), _name(struct)) for struct in get_args(union)]
    rows = _filled([f"{next(iter(tag.values()))}: new{name}" for tag, name in members], "  ")
    return "\n".join([f"export const {name} = {{", *rows, "}"])


# ── tables ────────────────────────────────────────────────────────────────────────────────────

RANGES = ("HIDDEN", "JOINERS", "SELECTORS", "SPACES", "SURROGATES", "CONTROLS", "FLOWING_CONTROLS")


def _characters() -> Iterator[str]:
    yield "export type Ranges = readonly (readonly [number, number])[]"
    for name in RANGES:
        pairs = [f"[{first:#06x}, {last:#06x}]" for first, last in getattr(safe_text, name)]
        yield "\n".join([f"export const {name}: Ranges = [", *_filled(pairs, "  "), "]"])


def _limits() -> Iterator[str]:
    fields = [f"  {field.name}: number" for field in msgspec.structs.fields(state_limits.Limits)]
    yield "\n".join(["export interface Limits {", *fields, "}"])
    values = [f"{name}: {_value(value)}" for name, value in _fields(state_limits.LIMITS).items()]
    yield "\n".join(["export const LIMITS: Limits = {", *_filled(values, "  "), "}"])
    yield _constants(state_limits, "NODE", "ROW", "ID", "WORD")
    yield _constants(event_text, "EMPTY_RUN", "LONG_LINE", "LINE_START", "LINE_END")
    yield _constants(terminal_view, "OUTPUT_LINES")


def _fields(struct: msgspec.Struct) -> dict[str, Any]:
    return msgspec.structs.asdict(struct)


def _permission_words() -> Iterator[str]:
    words = permission_options
    yield _map("WORDS", words.WORDS)
    yield _map("SAME", words.SAME)
    yield _constants(words, "FOR_THE_SESSION", "UNKNOWN", "UNCLEAR")
    yield _constants(words, "LONGEST", "LABEL_START", "LABEL_END", "MOST_READ", "BLANKS")
    yield "\n\n".join(
        _set(name, getattr(words, name)) for name in ("YES", "MAYBE_YES", "NO", "NOT", "ASKING")
    )
    yield _map("LOOKALIKES", {chr(letter): chr(ours) for letter, ours in words.LOOKALIKES.items()})
    patterns = ("ONCE", "LASTING", "THE_SESSION", "FOR_A_WHILE")
    yield "\n".join(f"export const {name} = {_regex(getattr(words, name))}" for name in patterns)
    yield f"export const SEPARATORS = {_regex(words.SEPARATORS)}g"


def _constants(module: types.ModuleType, *names: str) -> str:
    return "\n".join(f"export const {name} = {_value(getattr(module, name))}" for name in names)


def _map(name: str, entries: dict[str, Any]) -> str:
    """A map and not an object: an agent may name a kind after a property that every object has."""
    rows = _filled([f"[{_value(key)}, {_value(value)}]" for key, value in entries.items()], "  ")
    return "\n".join([f"export const {name} = new Map([", *rows, "])"])


def _set(name: str, words: frozenset[str]) -> str:
    rows = _filled(map(_quoted, sorted(words)), "  ")
    return "\n".join([f"export const {name}: ReadonlySet<string> = new Set([", *rows, "])"])


def _regex(pattern: re.Pattern[str]) -> str:
    return f"/{_ascii(pattern.pattern.replace('/', chr(92) + '/'))}/"


# ── writing ───────────────────────────────────────────────────────────────────────────────────


def _value(value: Any) -> str:
    match value:
        case str():
            return _quoted(value)
        case [*items]:
            return f"[{', '.join(map(_value, items))}]"
        case int() if not isinstance(value, bool) and value >= 10_000:
            return f"{value:_}"
        case float() if value.is_integer():
            return str(int(value))
        case msgspec.Struct():
            return f"new{_name(type(value))}()"
        case _:
            return json.dumps(value)


def _quoted(text: str) -> str:
    return "'" + json.dumps(text)[1:-1].replace('\\"', '"').replace("'", "\\'") + "'"


def _ascii(text: str) -> str:
    return "".join(char if char.isascii() else f"\\u{ord(char):04x}" for char in text)


def _wrapped(start: str, names: list[str], end: str) -> list[str]:
    line = start + ", ".join(names) + end
    if len(line) <= WIDTH:
        return [line]
    return [start.rstrip(), *_filled(names, "  "), end.lstrip()]


def _filled(items: Iterable[str], indent: str) -> list[str]:
    """The items, a comma after each, in as few lines as have room for them."""
    lines: list[str] = []
    for item in items:
        piece = f"{item},"
        if lines and len(lines[-1]) + 1 + len(piece) <= WIDTH:
            lines[-1] += f" {piece}"
        else:
            lines.append(indent + piece)
    return lines


def _stale() -> list[str]:
    fresh = files()
    found = {path.name for path in FOLDER.glob("*.ts")}
    changed = [name for name in fresh if name in found and fresh[name] != _read(name)]
    return sorted([*changed, *(found ^ fresh.keys())])


def _read(name: str) -> str:
    return (FOLDER / name).read_text()


def main() -> None:
    parser = argparse.ArgumentParser(description="What the page shares with Python.")
    parser.add_argument("--check", action="store_true", help="fail when a file is stale")
    if parser.parse_args().check:
        if stale := _stale():
            sys.exit(f"web/src/core/generated is stale ({', '.join(stale)}): run make gen")
        return
    FOLDER.mkdir(exist_ok=True)
    for name in _stale():
        (FOLDER / name).unlink(missing_ok=True)
    for name, text in files().items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    main()
