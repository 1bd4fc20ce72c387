"""Reads classes and functions from their source: signatures as written, fields with their notes."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec


class Field(msgspec.Struct, frozen=True):
    """One attribute of a class."""

    name: str
    type: str
    default: str
    note: str


class Method(msgspec.Struct, frozen=True):
    """One public method, property or constructor."""

    name: str
    signature: str
    doc: str


class Definition(msgspec.Struct, frozen=True):
    """A class, as its source has it."""

    name: str
    bases: tuple[str, ...]
    doc: str
    fields: tuple[Field, ...]
    methods: tuple[Method, ...]


@cache
def _tree(module: str) -> ast.Module:
    return ast.parse(Path(str(sys.modules[module].__file__)).read_text())


def definition_of(cls: type) -> Definition:
    """What the source says of a class, and of its bases that are private or from elsewhere."""
    nodes = _classes(cls.__module__)
    node = nodes[cls.__name__]
    # A base that is itself documented is linked to; what a private one has is shown here.
    inherited = [nodes[b] for b in _bases(node) if b in nodes and b.startswith("_")]
    shared = [
        _classes(base.__module__)[base.__name__]
        for base in cls.__bases__
        if base is not msgspec.Struct
        and issubclass(base, msgspec.Struct)
        and base.__module__ != cls.__module__
    ]
    found = [member for each in (*shared, *inherited, node) for member in _members(each)]
    members = list({member.name: member for member in found}.values())
    return Definition(
        node.name,
        _bases(node),
        prose(ast.get_docstring(node)),
        tuple(member for member in members if isinstance(member, Field)),
        tuple(member for member in members if isinstance(member, Method)),
    )


def _classes(module: str) -> dict[str, ast.ClassDef]:
    return {n.name: n for n in _tree(module).body if isinstance(n, ast.ClassDef)}


def function_of(function: Any) -> Method:
    nodes = _tree(function.__module__).body
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    found = [n for n in nodes if isinstance(n, kinds) and n.name == function.__name__]
    return _method(found[0], "")


def alias_of(module: str, name: str) -> tuple[str, str]:
    """How a type is composed, and what its note says."""
    body = _tree(module).body
    for index, node in enumerate(body):
        match node:
            case ast.AnnAssign(target=ast.Name(id=found), value=ast.expr()) if found == name:
                return _text(node.value), _note(body, index)
            case _:
                pass
    raise LookupError(f"{module} has no alias {name}")


def prose(doc: str | None) -> str:
    """A docstring as Markdown: paragraphs without line breaks."""
    paragraphs = re.split(r"\n\s*\n", inspect.cleandoc(doc or ""))
    return "\n\n".join(map(_paragraph, paragraphs)).strip()


def _paragraph(text: str) -> str:
    if text.startswith("    "):
        return f"```python\n{textwrap.dedent(text)}\n```"
    return re.sub(r"\s*\n\s*", " ", text)


def _bases(node: ast.ClassDef) -> tuple[str, ...]:
    return tuple(ast.unparse(base).rpartition(".")[2] for base in node.bases)


def _members(node: ast.ClassDef) -> Iterator[Field | Method]:
    for index, item in enumerate(node.body):
        match item:
            case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("_"):
                if "ClassVar" not in ast.unparse(item.annotation):
                    default = "" if item.value is None else _text(item.value)
                    default = "" if default.startswith("msgspec.field(name=") else default
                    yield Field(name, _text(item.annotation), default, _note(node.body, index))
            case ast.FunctionDef(name="__init__"):
                if not _is_internal(item):
                    yield _method(item, node.name)
                yield from _assigned(item)
            case ast.FunctionDef() | ast.AsyncFunctionDef() if not item.name.startswith("_"):
                if not any(_text(d).endswith(".setter") for d in item.decorator_list):
                    yield _method(item, "")
            case _:
                pass


def _is_internal(init: ast.FunctionDef) -> bool:
    """Whether the class is made for you: its parameters are not part of the interface."""
    return "Client" in ast.unparse(init.args) or "providers" in ast.unparse(init.args)


def _assigned(init: ast.FunctionDef) -> Iterator[Field]:
    """Attributes that the constructor sets with a type or a note."""
    for index, item in enumerate(init.body):
        match item:
            case ast.AnnAssign(target=ast.Attribute(attr=name)) if not name.startswith("_"):
                yield Field(name, _text(item.annotation), "", _note(init.body, index))
            case ast.Assign(targets=[ast.Attribute(attr=name)]) if not name.startswith("_"):
                if note := _note(init.body, index):
                    yield Field(name, _made(item.value), "", note)
            case _:
                pass


def _made(value: ast.expr) -> str:
    """The type of what a constructor call makes; "" for anything else."""
    return _text(value.func) if isinstance(value, ast.Call) else ""


def _method(node: ast.FunctionDef | ast.AsyncFunctionDef, owner: str) -> Method:
    names = {_text(decorator) for decorator in node.decorator_list}
    returns = "" if node.returns is None or owner else f" -> {_text(node.returns)}"
    wait = "await " if isinstance(node, ast.AsyncFunctionDef) else ""
    if "property" in names:
        signature = f"{node.name}: {_text(node.returns)}" if node.returns else node.name
    else:
        signature = f"{wait}{owner or node.name}({_arguments(node)}){returns}"
    return Method(node.name, signature, prose(ast.get_docstring(node)))


def _arguments(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    text = ast.unparse(node.args)
    return re.sub(r"(?<! )=", " = ", re.sub(r"^(self|cls)(, )?(/, )?", "", text))


def _text(node: ast.expr | None) -> str:
    return "" if node is None else ast.unparse(node).replace("'", '"')


def _note(body: list[ast.stmt], index: int) -> str:
    """The string that follows an attribute."""
    match body[index + 1 : index + 2]:
        case [ast.Expr(value=ast.Constant(value=str(note)))]:
            return prose(note)
        case _:
            return ""
