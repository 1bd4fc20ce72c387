"""Which files are tests, or say how tests are run: the judge takes these from the base. Pure.

A file that has more than one purpose, such as `pyproject.toml` or `package.json`, counts only if
the part of it that is about tests was changed.
"""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, cast

import msgspec

from dragoman.racing.race_record import JudgedFiles

_FOLDERS = frozenset(("test", "tests", "spec", "specs", "__tests__", "__snapshots__", "testdata"))
_TEST_NAME = re.compile(
    r"test_.*\.py|.*_test\.(?:py|go|rb|exs|c|cc|cpp)|.*(?:\.|_)(?:test|spec)\.[cm]?[jt]sx?|"
    r".*_spec\.rb|.*Tests?\.(?:java|kt|cs|swift|scala)|Test.*\.java|.*\.(?:t|bats)|.*\.snap"
)
_CONFIGURATION = re.compile(
    r"conftest\.py|pytest\.ini|\.pytest\.ini|pytest\.toml|tox\.ini|noxfile\.py|\.coveragerc|sitecustomize\.py|"
    r"usercustomize\.py|.*\.pth|(?:jest|vitest|playwright|karma|cypress|ava|wdio)\.(?:config|conf)\..*|"
    r"\.mocharc\..*|\.taprc|karma\.conf\.js|[Mm]akefile|GNUmakefile|[Jj]ustfile|\.rspec|phpunit\.xml.*|"
    r"\.npmrc|nose2?\.cfg|unittest\.cfg|CTestTestfile\.cmake"
)


def is_test(path: str) -> bool:
    """By its name, or a folder that it is in."""
    *folders, name = path.split("/")
    return any(each.lower() in _FOLDERS for each in folders) or bool(_TEST_NAME.fullmatch(name))


def configures_tests(path: str, before: bytes | None, after: bytes | None) -> bool:
    """Whether a change of this file changes how tests are run."""
    name = path.rpartition("/")[2]
    if _CONFIGURATION.fullmatch(name):
        return True
    part = _PARTS.get(name)
    return part is not None and _part(part, before) != _part(part, after)


def has_parts(path: str) -> bool:
    """Whether its content has to be looked at."""
    return path.rpartition("/")[2] in _PARTS


def judged_files(
    changes: Mapping[str, tuple[bytes | None, bytes | None]], command: str
) -> JudgedFiles:
    """Of what an entrant changed: by path, the content before and after, None for no file; an empty
    one stands for content that nobody has to look at. A script that the check's `command` runs is a
    part of how the tests are run."""
    found: dict[str, list[str]] = {
        each: [] for each in ("edited", "deleted", "added", "configuration")
    }
    for path, (before, after) in sorted(changes.items()):
        if configures_tests(path, before, after) or (
            before is not None and _is_named(path, command)
        ):
            found["configuration"].append(path)
        elif is_test(path):
            kind = "added" if before is None else "deleted" if after is None else "edited"
            found[kind].append(path)
    return JudgedFiles(**found)


_SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "source", "."))


def _is_named(path: str, command: str) -> bool:
    """Whether the command runs this file as a script, as in `sh check.sh` or `./check`."""
    words = re.split(r"[\s;&|()<>\"'=]+", command)
    for before, word in pairwise(["", *words]):
        is_run = before in _SHELLS or word.startswith("./") or word.endswith((".sh", ".bash"))
        if is_run and word.removeprefix("./") == path:
            return not is_test(path)
    return False


def _part(read: Callable[[str], Any], content: bytes | None) -> Any:
    if content is None:
        return None
    try:
        return read(content.decode())
    except (ValueError, msgspec.MsgspecError, configparser.Error):
        return content


def _pyproject(text: str) -> Any:
    tools = cast("dict[str, Any]", tomllib.loads(text).get("tool", {}))
    return {
        name: tools[name] for name in ("pytest", "tox", "nox", "coverage", "hatch") if name in tools
    }


def _package(text: str) -> Any:
    document = cast("dict[str, Any]", msgspec.json.decode(text))
    if not isinstance(document, dict):  # pyright: ignore[reportUnnecessaryIsInstance]
        return text
    kept = ("scripts", "jest", "ava", "mocha", "tap", "vitest", "type", "imports", "c8", "nyc")
    return {name: document[name] for name in kept if name in document}


def _sections(text: str) -> Any:
    parser = configparser.RawConfigParser(strict=False)
    parser.read_string(text)
    about = ("pytest", "tool:pytest", "tox", "coverage", "nosetests", "unittest")
    wanted = (
        each for each in parser.sections() if each.partition(":")[0] in about or each in about
    )
    return {name: dict(parser.items(name)) for name in wanted}


def _cargo(text: str) -> Any:
    document = tomllib.loads(text)
    return {
        name: document[name] for name in ("test", "profile", "lib", "bench") if name in document
    }


_PARTS: dict[str, Callable[[str], Any]] = {
    "pyproject.toml": _pyproject,
    "package.json": _package,
    "setup.cfg": _sections,
    "Cargo.toml": _cargo,
}
