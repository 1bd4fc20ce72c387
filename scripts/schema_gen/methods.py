"""Who may send what: the method table, and what is not stable yet."""

from __future__ import annotations

from dataclasses import dataclass

from .reading import Struct, Types
from .shapes import Node, alternatives, tag_of


@dataclass
class Method:
    name: str
    side: str
    kind: str
    params: str
    result: str | None
    stable: bool


def methods(definitions: dict[str, Node], stable: dict[str, Node]) -> list[Method]:
    """Every method, by name; `stable` holds the definitions of the stable schema."""
    found: list[Method] = []
    for params, node in definitions.items():
        name, side = node.get("x-method"), node.get("x-side")
        if name is None or side is None or params.endswith("Response"):
            continue
        kind = "notification" if params.endswith("Notification") else "request"
        result = _result(definitions, name, side) if kind == "request" else None
        found.append(Method(name, side, kind, params, result, params in stable))
    return sorted(found, key=lambda method: method.name)


def _result(definitions: dict[str, Node], method: str, side: str) -> str:
    """The definition that ends in Response and carries the same method and side."""
    (found,) = [
        name
        for name, node in definitions.items()
        if name.endswith("Response")
        and (node.get("x-method"), node.get("x-side")) == (method, side)
    ]
    return found


def update_kinds(definitions: dict[str, Node]) -> set[str]:
    tags = (tag_of(option) for option in alternatives(definitions["SessionUpdate"]))
    return {tag[1] for tag in tags if tag}


def unstable_fields(types: Types, stable: Types) -> dict[str, list[str]]:
    """The attributes that a struct of the stable schema only has in the unstable one."""
    before = {struct.name: _attributes(struct) for struct in stable.structs}
    found: dict[str, list[str]] = {}
    for struct in types.structs:
        if added := _attributes(struct) - before.get(struct.name, _attributes(struct)):
            found[struct.name] = sorted(added)
    return found


def unstable_types(types: Types, stable: Types) -> list[str]:
    return sorted({s.name for s in types.structs} - {s.name for s in stable.structs})


def _attributes(struct: Struct) -> set[str]:
    return {field.attribute for field in struct.fields}
