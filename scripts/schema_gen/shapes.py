"""JSON schema nodes, without their prose: how to look into one."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

Node = dict[str, Any]

SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


class SchemaSurprise(Exception):
    """The schema has a shape this generator was not taught."""


@dataclass
class Shape:
    """An object's properties, each with every schema given for it, and which it must have."""

    properties: dict[str, list[Node]] = field(default_factory=dict[str, list[Node]])
    required: set[str] = field(default_factory=set[str])
    required_by_some: set[str] = field(default_factory=set[str])

    def add(self, other: Shape) -> None:
        for name, nodes in other.properties.items():
            self.properties.setdefault(name, []).extend(nodes)


def without_prose(node: Node) -> Node:
    """For `json.loads(object_hook=…)`; a property called `title` is a dict, so it stays."""
    return {k: v for k, v in node.items() if not (k in ("description", "title") and type(v) is str)}


def references(*nodes: Node) -> Counter[str]:
    """How often each definition is referred to."""
    return Counter(re.findall(r'"\$ref": "#/\$defs/(\w+)"', json.dumps(nodes)))


def alternatives(node: Node) -> list[Node]:
    return node.get("anyOf") or node.get("oneOf") or []


def reference(node: Node) -> str | None:
    """The definition a node is, by itself or as its only `allOf`."""
    if "allOf" in node:
        if len(node["allOf"]) != 1:
            raise SchemaSurprise(f"allOf with {len(node['allOf'])} members")
        return reference(node["allOf"][0])
    return node["$ref"].rpartition("/")[2] if "$ref" in node else None


def tag_of(node: Node) -> tuple[str, str] | None:
    """The property that is required to have one constant value, and that value."""
    for name, value in node.get("properties", {}).items():
        if "const" in value and name in node.get("required", ()):
            return name, value["const"]
    return None


def is_enum(node: Node) -> bool:
    options = alternatives(node)
    plain = all(set(option) <= {"type", "const", "format"} for option in options)
    return plain and any("const" in option for option in options)


def annotation(node: Node) -> list[str]:
    """The members of the Python union that a property's schema stands for."""
    name = reference(node)
    if name:
        return [name]
    if alternatives(node):
        return unique(part for option in alternatives(node) for part in annotation(option))
    kinds = node.get("type", "any")
    return unique(_python(kind, node) for kind in ([kinds] if isinstance(kinds, str) else kinds))


def joined(parts: Iterable[str], *, unset: bool = False) -> str:
    """One annotation from the members of a union, None last."""
    found = unique(parts)
    if "Any" in found:
        found = ["Any"]
    last = (["UnsetType"] if unset else []) + (["None"] if "None" in found else [])
    return " | ".join([part for part in found if part != "None"] + last)


def unique(parts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(parts))


def _python(kind: str, node: Node) -> str:
    match kind:
        case "any":
            return "Any"
        case "array":
            return f"list[{joined(annotation(node['items']))}]"
        case "object":
            values: Node | bool = node.get("additionalProperties", True)
            inner = joined(annotation(values)) if isinstance(values, dict) else "Any"
            return f"dict[str, {inner}]"
        case _:
            return SCALARS[kind]
