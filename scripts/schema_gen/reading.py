"""Turns the definitions of one protocol version into descriptions of Python types.

Knows which shapes the ACP schema uses; nothing of how the Python text looks.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field

from .rules import MERGED, PATCHES, RAW_RESULTS, VARIANT_NAMES, attribute_name, wire_name
from .shapes import (
    Node,
    SchemaSurprise,
    Shape,
    alternatives,
    annotation,
    is_enum,
    joined,
    reference,
    references,
    tag_of,
    unique,
)


@dataclass
class Field:
    attribute: str
    annotation: str
    default: str | None
    default_on_error: bool
    default_on_null: bool
    skip_invalid_items: bool

    @property
    def lenient(self) -> bool:
        return self.default_on_error or self.default_on_null or self.skip_invalid_items


@dataclass
class Struct:
    name: str
    base: str
    fields: list[Field]
    tag: tuple[str, str] | None = None


@dataclass
class Alias:
    """A name for a simpler type; with `values`, an enum that stays open."""

    name: str
    annotation: str
    values: tuple[str | int, ...] = ()


@dataclass
class Union:
    name: str
    wrapper: str
    variants: list[str]
    as_list: bool = False


@dataclass
class Types:
    aliases: list[Alias] = field(default_factory=list[Alias])
    structs: list[Struct] = field(default_factory=list[Struct])
    unions: list[Union] = field(default_factory=list[Union])


class Reader:
    """Reads all definitions of one version; `read()` is the way in."""

    def __init__(self, version: str, definitions: dict[str, Node]) -> None:
        # The JSON-RPC envelopes are marked x-docs-ignore; messages are the wire layer's business.
        self.definitions = {n: d for n, d in definitions.items() if not d.get("x-docs-ignore")}
        self.patches = PATCHES[version]
        self.uses = references(*self.definitions.values())
        self.types = Types()
        self._absorbed: Counter[str] = Counter()
        self._done: set[str] = set()

    def read(self) -> Types:
        merged = [name for name in self.definitions if name in MERGED]
        for name in merged:
            self._plain(name)
        others = [n for n in self.definitions if n not in MERGED and not self._is_absorbed(n)]
        for name in [n for n in others if not self._alias(n) and not self._union(n)]:
            self._plain(name)
        return self.types

    def _is_absorbed(self, name: str) -> bool:
        """Whether a definition is only ever a part of merged ones."""
        return 0 < self.uses[name] == self._absorbed[name]

    def _add(self, struct: Struct) -> None:
        if struct.name in self._done:
            raise SchemaSurprise(f"two structs are called {struct.name}: add a name to the rules")
        self._done.add(struct.name)
        self.types.structs.append(struct)

    def _plain(self, name: str) -> None:
        if name not in self._done:
            shape = self._collect(self.definitions[name])
            self._add(Struct(name, self._base(name), self._fields(name, shape)))

    def _alias(self, name: str) -> bool:
        """Handles a definition that is another name for a scalar, an enum or another type."""
        node = self.definitions[name]
        options = alternatives(node)
        rest = {k: v for k, v in node.items() if not k.startswith("x-")}
        values: tuple[str | int, ...] = ()
        if name in RAW_RESULTS:
            target = "msgspec.Raw"
        elif not rest or {} in options:
            target = "Any"
        elif is_enum(node):
            target = joined(annotation(node))
            values = tuple(option["const"] for option in options if "const" in option)
        elif node.get("type") in ("string", "integer") or reference(rest):
            target = joined(annotation(rest))
        elif len(options) == 1 and reference(options[0]) and not tag_of(options[0]):
            target = joined(annotation(options[0]))
        elif options and not any(reference(o) or "properties" in o or _list(o) for o in options):
            target = joined(annotation(node))
        else:
            return False
        self.types.aliases.append(Alias(name, target, values))
        return True

    def _union(self, name: str) -> bool:
        """Handles a definition whose alternatives are structs, or lists of structs."""
        node = self.definitions[name]
        options = [option for option in alternatives(node) if "not" not in option]
        lists = [target for option in options if (target := _list(option))]
        if lists and len(lists) == len(options):
            self.types.unions.append(Union(name, "Untagged", lists, as_list=True))
            return True
        if not options:
            return False
        own = Shape({n: [p] for n, p in node.get("properties", {}).items()})
        own.required.update(node.get("required", ()))
        variants = [self._variant(name, own, option) for option in options]
        tags = [tag_of(option) for option in options]
        wrapper = "Tagged" if all(tags) else "PartlyTagged" if any(tags) else "Untagged"
        self.types.unions.append(Union(name, wrapper, variants))
        return True

    def _variant(self, union: str, own: Shape, option: Node) -> str:
        """Adds the struct of one alternative, if it needs one of its own, and names it."""
        tag, target = tag_of(option), reference(option)
        if tag is None:
            if target is None:
                raise SchemaSurprise(f"a variant of {union} has neither a tag nor a name")
            return target
        fields = self._fields(union, own)
        parts = self._fields(target, self._collect(self.definitions[target])) if target else []
        if target and self.uses[target] == 1 and target not in MERGED:
            self._add(Struct(target, self._base(target), fields + parts, tag))
            return target
        name = VARIANT_NAMES.get((union, tag[1]), _pascal(tag[1]))
        if any(f.lenient for f in fields) and any(f.lenient for f in parts):
            raise SchemaSurprise(f"the marks of {name} would hide those of {target}")
        self._add(Struct(name, target or "Record", fields, tag))
        return name

    def _collect(self, node: Node) -> Shape:
        """All properties of an object, those of its `allOf` and of its alternatives included."""
        shape = Shape({n: [p] for n, p in node.get("properties", {}).items()})
        shape.required.update(node.get("required", ()))
        target = reference(node)
        if target:
            self._absorbed[target] += 1
            part = self._collect(self.definitions[target])
            shape.add(part)
            shape.required |= part.required
            shape.required_by_some |= part.required_by_some
        parts = [self._collect(option) for option in alternatives(node)]
        if parts:
            some = {name for part in parts for name in part.required}
            shape.required |= {n for n in some if all(n in part.required for part in parts)}
            some |= {name for part in parts for name in part.required_by_some}
            shape.required_by_some |= some - set(shape.properties)
            for part in parts:
                shape.add(part)
        return shape

    def _base(self, name: str) -> str:
        return "Patch" if self.patches.get(name, name) is None else "Record"

    def _fields(self, owner: str, shape: Shape) -> list[Field]:
        found = [self._field(owner, wire, shape) for wire in shape.properties if wire != "_meta"]
        return sorted(found, key=lambda f: f.default is not None)

    def _field(self, owner: str, wire: str, shape: Shape) -> Field:
        nodes, attribute = shape.properties[wire], attribute_name(wire)
        if wire_name(attribute) != wire:
            raise SchemaSurprise(f"{owner}.{wire} does not come back from {attribute}")
        parts = unique(part for node in nodes for part in annotation(node))
        default = None if wire in shape.required else self._default(owner, wire, shape, parts)
        if default == "None":
            parts.append("None")
        text = joined(parts, unset=default == "UNSET")
        found = Field(attribute, text, default, *(_marked(nodes, mark) for mark in _MARKS))
        if default is None and found.lenient and not text.startswith("list["):
            raise SchemaSurprise(f"{owner}.{wire} is required, lenient, and not a list")
        return found

    def _default(self, owner: str, wire: str, shape: Shape, parts: list[str]) -> str:
        patched = self.patches.get(owner, frozenset())
        if patched is None or wire in patched:
            return "UNSET"
        # Null is a value here, so only UNSET can say that another variant was meant.
        if wire in shape.required_by_some and self._admits_null(parts):
            return "UNSET"
        for node in shape.properties[wire]:
            if "default" in node:
                return _literal(node["default"], parts[0])
        if len(parts) == 1 and parts[0].startswith(("list[", "dict[")):
            return "[]" if parts[0].startswith("list[") else "{}"
        return "None"

    def _admits_null(self, parts: list[str]) -> bool:
        inner = [annotation(self.definitions[p]) for p in parts if p in self.definitions]
        return any("None" in found or "Any" in found for found in (parts, *inner))


_MARKS = (
    "x-deserialize-default-on-error",
    "x-deserialize-default-on-null",
    "x-deserialize-skip-invalid-items",
)


def _marked(nodes: list[Node], mark: str) -> bool:
    return any(node.get(mark) for node in nodes)


def _list(option: Node) -> str | None:
    """The struct that an alternative is a list of."""
    return reference(option["items"]) if option.get("type") == "array" else None


def _pascal(tag: str) -> str:
    return "".join(word.capitalize() for word in tag.split("_"))


def _literal(value: object, target: str) -> str:
    """A default as Python; a struct's must be what the struct has by itself: nothing."""
    if isinstance(value, dict):
        if re.search(r": (true|[\"1-9])", json.dumps(value)):
            raise SchemaSurprise(f"the default of a {target} is not empty")
        return "{}" if target.startswith("dict[") else f"field(default_factory={target})"
    return f'"{value}"' if isinstance(value, str) else repr(value)
