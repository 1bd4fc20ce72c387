"""The public names: all are there, and they are all that a program needs."""

from __future__ import annotations

import ast
import inspect
import os
import re
import subprocess
import sys
import textwrap
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dragoman
from dragoman import events, ext, testing, ui_stream

ROOT = Path(__file__).parents[1]
MODULES = (dragoman, events, ext, testing, ui_stream)
PUBLIC = {
    f"{module.__name__}.{name}": getattr(module, name)
    for module in MODULES
    for name in module.__all__
}
# ACP's own types, which a script of an agent may use, what only the client speaks to, and what only
# helper processes are told.
UNNAMED = ("dragoman.schema", "dragoman.client.dialects.dialect", "dragoman.fence")
# For types that a module imports for the type checker alone.
NAMES = {name.rpartition(".")[2]: value for name, value in PUBLIC.items()} | {"Path": Path}
"""What a module may only import for its annotations."""
GENERATED = {"api.md", "events.md", "errors.md"}
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def test_what_a_shell_completes_is_public() -> None:
    modules = {module.__name__.rpartition(".")[2] for module in MODULES[1:]} | {"errors"}
    assert set(dir(dragoman)) == {*dragoman.__all__, *modules, "__doc__"}


def test_every_name_is_found_where_the_type_checker_finds_it() -> None:
    tree = ast.parse(Path(dragoman.__file__).read_text())
    typed = {
        alias.name: f"{node.module}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and f"{node.module}".startswith("dragoman.")
        for alias in node.names
    }
    lazy = {name: f"dragoman.{home}" for name, home in vars(dragoman)["_HOMES"].items()}
    assert lazy | {"__version__": "dragoman._version"} == typed
    assert sorted(typed) == sorted(dragoman.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = dragoman.Nothing  # pyright: ignore[reportAttributeAccessIssue]


def classes_in(hint: Any) -> Iterator[type]:
    """Every class of ours that a type mentions."""
    if isinstance(hint, type) and hint.__module__.startswith("dragoman"):
        yield hint
    for part in typing.get_args(hint):
        yield from classes_in(part)


def hints_of(thing: Any) -> Iterator[tuple[str, Any]]:
    """What its public fields, properties and methods, or its parameters, are said to be."""
    if not isinstance(thing, type):
        if inspect.isfunction(thing):
            yield from typing.get_type_hints(thing, localns=NAMES).items()
        return
    yield from (
        (n, h)
        for n, h in typing.get_type_hints(thing, localns=NAMES).items()
        if not n.startswith("_")
    )
    for name, member in inspect.getmembers_static(thing):
        function: Any = getattr(member, "fget", None) or getattr(member, "__func__", member)
        if not name.startswith("_") and inspect.isfunction(function):
            yield from (
                (f"{name}({n})", h)
                for n, h in typing.get_type_hints(function, localns=NAMES).items()
            )


def test_what_a_public_name_gives_or_takes_is_public() -> None:
    known = {id(cls) for value in PUBLIC.values() for cls in (value, *typing.get_args(value))}
    missing = {
        f"{where}.{what}: {cls.__module__}.{cls.__name__}"
        for where, value in PUBLIC.items()
        for what, hint in hints_of(value)
        for cls in classes_in(hint)
        if id(cls) not in known and not cls.__module__.startswith(UNNAMED)
    }
    assert sorted(missing) == []


# ── examples and documentation ────────────────────────────────────────────────────────────────

_BLOCK = re.compile(r"^```python[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MODULES = {module.__name__: set(module.__all__) for module in MODULES}
_OPEN = ("dragoman.errors", "dragoman.testing.steps", "dragoman.testing.faults")


def written() -> Iterator[tuple[str, str]]:
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        if page.name in GENERATED:
            continue
        for number, block in enumerate(_BLOCK.findall(page.read_text()), 1):
            yield f"{page.relative_to(ROOT)} {number}", block
    for file in EXAMPLES:
        yield f"examples/{file.name}", file.read_text()


def private_names(code: str) -> list[str]:
    """What the code takes of ours that is not public."""
    wrapped = f"async def example():\n{textwrap.indent(code, '    ')}"
    return [name for node in ast.walk(ast.parse(wrapped)) for name in _private(node)]


def _private(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.Import():
            yield from (a.name for a in node.names if _ours(a.name) and not _public_module(a.name))
        case ast.ImportFrom(module=str(module)) if _ours(module):
            names = _MODULES.get(module)
            if names is None and module not in _OPEN:
                yield module
            elif names is not None:
                open_here = names | {name.rpartition(".")[2] for name in (*_MODULES, *_OPEN)}
                yield from (a.name for a in node.names if a.name not in open_here)
        case ast.Attribute(value=ast.Name(id="dragoman"), attr=name):
            if name not in dragoman.__all__ and not _public_module(f"dragoman.{name}"):
                yield name
        case _:
            pass


def _ours(module: str) -> bool:
    return module.partition(".")[0] == "dragoman"


def _public_module(name: str) -> bool:
    return name in _MODULES or name in _OPEN


@pytest.mark.parametrize(
    "code", [code for _, code in written()], ids=[name for name, _ in written()]
)
def test_examples_use_public_names_alone(code: str) -> None:
    assert private_names(code) == []


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("from dragoman.host.gate import Gate", "dragoman.host.gate"),
        ("import dragoman.rpc", "dragoman.rpc"),
        ("from dragoman import Gate", "Gate"),
        ("dragoman.rpc.Peer()", "rpc"),
        ("from dragoman.testing import Transcript", "Transcript"),
    ],
)
def test_a_private_name_is_noticed(code: str, name: str) -> None:
    assert private_names(code) == [name]


def run(name: str, folder: Path) -> str:
    """What an example prints, when it is run in a folder with a readme."""
    (folder / "README.md").write_text("# A project\n\nIt does one thing.\n")
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / name],
        cwd=folder,
        env={**os.environ, "DRAGOMAN_HOME": str(folder / "home")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_one_turn_runs(tmp_path: Path) -> None:
    assert "end_turn" in run("one_turn.py", tmp_path)


def test_permissions_are_answered_in_the_loop(tmp_path: Path) -> None:
    assert "Allow once" in run("permissions.py", tmp_path)


def test_providers_of_your_own_serve_the_agent(tmp_path: Path) -> None:
    assert "end_turn" in run("providers.py", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["README.md", "home"]


def test_every_example_is_run_by_a_test() -> None:
    elsewhere = {"chat_app.py", "record_and_replay.py", "scripted_agent.py"}
    elsewhere |= {"plan_implement_review.py", "issue_to_branch.py"}
    elsewhere |= {"evaluate_folder.py", "inspect_solver.py"}  # tests/racing
    here = set(re.findall(r'run\("(\w+\.py)"', Path(__file__).read_text()))
    assert {file.name for file in EXAMPLES} == here | elsewhere
