"""What a module may know: the layers, kept true by reading every import."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from importlib.util import resolve_name
from pathlib import Path

import pytest

import dragoman

SOURCES = Path(dragoman.__file__).parent

# Each imports only from those before it, and from itself.
LAYERS = [
    "_version",
    "lazy_pattern",
    "public_face",
    "errors",
    "data_directory",
    "schema",
    "wire",
    "fence",
    "process",
    "transport",
    "stream",
    "rpc",
    "safe_text",
    "redactor",
    "review",
    "session",
    "briefing",
    "results",
    "host",
    "worktrees",
    "agents",
    "client",
    "sync_session",
    "store",
    "access",
    "hub",
    "racing",
    "notices",
    "ui_stream",
    "testing",
    "editor",
    "mcp",
    "proxy",
    "conformance",
    "web",
    "bridge",
    "cli",
]
# The face of it all: may import anything, is imported by nothing.
PUBLIC = {"__init__", "__main__", "events", "ext"}
STRANGERS = [{"store", "client"}]
WITHOUT_ACP = {"wire", "transport", "rpc"}
PURE = {
    "schema",
    "wire",
    "session",
    "ui_stream",
    "safe_text",
    "redactor",
    "review",
    "briefing",
    "results",
    "lazy_pattern",
}
IMPURE = {"asyncio", "os", "time", "datetime", "uuid", "sqlite3", "apsw", "subprocess"}
IN_CAMEL_CASE = {"schema", "ui_stream"}
_camel_case = re.compile(r"_*[a-z][a-z0-9]*[A-Z]")


def faults(module: str, source: str) -> list[str]:
    """What the module at this path may not hold, and does."""
    layer, tree = layer_of(module), ast.parse(source)
    package = ".".join(("dragoman", *Path(module).parts[:-1]))
    found = [f"imports {name}" for name in imports(tree, package) if not may_import(layer, name)]
    if layer not in IN_CAMEL_CASE:
        found += [f"names {name}" for name in bound_names(tree) if _camel_case.match(name)]
    return found


def layer_of(module: str) -> str:
    return Path(module).parts[0].removesuffix(".py")


def may_import(layer: str, name: str) -> bool:
    root, _, inner = name.partition(".")
    if root != "dragoman":
        return not (layer in PURE and root in IMPURE)
    other = inner.partition(".")[0]
    if layer in PUBLIC or other == layer:
        return True
    if {layer, other} in STRANGERS or (layer in WITHOUT_ACP and other == "schema"):
        return False
    return layer in LAYERS and other in LAYERS[: LAYERS.index(layer)]


def imports(tree: ast.Module, package: str) -> Iterator[str]:
    """The full name of everything imported, wherever the import stands."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module, names, level):
                source = resolve_name("." * level + (module or ""), package)
                yield from (f"{source}.{alias.name}" for alias in names)
            case _:
                pass


def bound_names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name) | ast.AsyncFunctionDef(name):
                yield name
            case ast.Name(name, ast.Store()) | ast.Attribute(_, name, ast.Store()):
                yield name
            case ast.arg(name) | ast.keyword(str(name)):
                yield name
            case _:
                pass


def modules() -> list[str]:
    return sorted(str(path.relative_to(SOURCES)) for path in SOURCES.rglob("*.py"))


@pytest.mark.parametrize("module", modules())
def test_a_module_knows_only_what_it_may(module: str) -> None:
    assert faults(module, (SOURCES / module).read_text()) == []


def test_every_module_belongs_to_a_layer() -> None:
    assert {layer_of(module) for module in modules()} <= {*LAYERS, *PUBLIC}


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        ("wire/x.py", "import dragoman.rpc", ["imports dragoman.rpc"]),
        ("wire/x.py", "from dragoman import rpc", ["imports dragoman.rpc"]),
        ("wire/x.py", "from .. import rpc", ["imports dragoman.rpc"]),
        ("wire/x.py", "def f():\n  from ..rpc import Peer", ["imports dragoman.rpc.Peer"]),
        ("rpc.py", "from dragoman.schema import v1", ["imports dragoman.schema.v1"]),
        ("rpc.py", "from . import schema", ["imports dragoman.schema"]),
        ("store/x.py", "import dragoman.client", ["imports dragoman.client"]),
        ("web/x.py", "import dragoman.cli", ["imports dragoman.cli"]),
        ("bridge/x.py", "import dragoman.cli", ["imports dragoman.cli"]),
        ("host/x.py", "import dragoman", ["imports dragoman"]),
        ("errors.py", "import dragoman.surprise", ["imports dragoman.surprise"]),
        ("session/x.py", "import asyncio.tasks", ["imports asyncio.tasks"]),
        ("schema/x.py", "from os import path", ["imports os.path"]),
        ("safe_text.py", "if x:\n  from time import time", ["imports time.time"]),
        ("host/x.py", "def readFile(): ...", ["names readFile"]),
        ("host/x.py", "def f(toolCall): ...", ["names toolCall"]),
        ("host/x.py", "self.toolCall = f(_rawInput=1)", ["names toolCall", "names _rawInput"]),
    ],
)
def test_a_module_that_knows_too_much_is_reported(
    module: str, source: str, expected: list[str]
) -> None:
    assert faults(module, source) == expected


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("wire/x.py", "from dragoman.errors import FrameTooLarge"),
        ("wire/x.py", "from dragoman.wire.json_text import depth\nfrom .text import outline"),
        ("client/dialects/v1/x.py", "from ..inbound import Inbound\nfrom ....rpc import Peer"),
        ("host/x.py", "import asyncio, os"),
        ("session/x.py", "import osmium"),
        ("ui_stream/x.py", "def textDelta(messageId): ..."),
        ("host/x.py", "logging.getLogger(x)\nclass CamelCase: ...\nMAX_Size = 1"),
        ("__init__.py", "from dragoman.web import app"),
    ],
)
def test_a_module_that_knows_what_it_may_is_not_reported(module: str, source: str) -> None:
    assert faults(module, source) == []


MIRRORED = {
    "client/dialects/v1": "client/dialects",
    "client/dialects/v2": "client/dialects",
    "testing/v2": "testing/v2",
    "store/sqlite": "store",
    "store/postgres": "store",
}
"""Folders whose modules answer each other one by one, and so use the same names: with the group in
which classes may share a name."""
NAMED_AFTER_OTHERS = {"cli/commands", "web/api"}
"""Folders whose modules have the name of the command or resource they serve."""


def _places() -> Iterator[tuple[Path, str, str]]:
    """Every module, with its folder and its path as text."""
    for path in SOURCES.rglob("*.py"):
        module = path.relative_to(SOURCES).as_posix()
        yield path, module.rpartition("/")[0], module


def repeated_base_names(modules: Iterable[str]) -> dict[str, list[str]]:
    """Modules that share a base name, which a reader cannot tell apart in a list of open files."""
    found: dict[str, list[str]] = {}
    for module in modules:
        folder, _, name = module.rpartition("/")
        is_free = folder in MIRRORED or folder in NAMED_AFTER_OTHERS
        is_face = name.startswith("__") or (not folder and name.removesuffix(".py") in PUBLIC)
        if not (is_free or is_face):
            found.setdefault(name, []).append(module)
    return {name: sorted(places) for name, places in found.items() if len(places) > 1}


def _classes() -> dict[str, set[str]]:
    """The modules with a public class of each name; mirrored folders count once."""
    found: dict[str, set[str]] = {}
    for path, folder, module in _places():
        if folder == "schema":  # the names are the protocol's
            continue
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found.setdefault(node.name, set()).add(MIRRORED.get(folder, module))
    return found


def crowded_folders(modules: Iterable[str]) -> dict[str, int]:
    """Folders that show more than a dozen things; a folder with a module for each command has as
    many as there are commands."""
    shown: dict[str, set[str]] = {}
    for module in modules:
        parts = module.split("/")
        for depth in range(1, len(parts)):
            shown.setdefault("/".join(parts[:depth]), set()).add(parts[depth])
    counts = {folder: len(names - {"__init__.py"}) for folder, names in shown.items()}
    return {
        folder: count
        for folder, count in counts.items()
        if count > 12 and folder not in NAMED_AFTER_OTHERS
    }


def test_a_folder_shows_at_most_a_dozen_things() -> None:
    assert crowded_folders(modules()) == {}


def test_a_crowded_folder_is_reported() -> None:
    files = [f"hub/part_{number}.py" for number in range(11)]
    assert crowded_folders([*files, "hub/room/x.py", "hub/room/y.py", "hub/__init__.py"]) == {}
    assert crowded_folders([*files, "hub/room/x.py", "hub/z.py"]) == {"hub": 13}


def test_no_two_modules_have_one_base_name() -> None:
    assert repeated_base_names(modules()) == {}


def test_modules_with_one_base_name_are_reported() -> None:
    shared = [
        "client/sessions/turn.py",
        "hub/turn.py",
        "client/dialects/v1/turn.py",
        "cli/commands/turn.py",
    ]
    faces = ["events.py", "session/events.py", "hub/__init__.py", "web/__init__.py"]
    assert repeated_base_names(shared + faces) == {
        "turn.py": ["client/sessions/turn.py", "hub/turn.py"]
    }


def test_no_two_public_classes_have_one_name() -> None:
    assert {name: at for name, at in _classes().items() if len(at) > 1} == {}
