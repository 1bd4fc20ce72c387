"""What an import brings with it; what that costs is measured by `make bench`, and, with a wide
margin, by `make soak`."""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys

import pytest

from dragoman.lazy_pattern import lazy_pattern

# What only the command line, the web page, a store or a test may need.
HEAVY = {
    *("acp", "apsw", "argparse", "httpx", "prompt_toolkit", "psycopg", "pydantic", "pytest"),
    *("rich", "sqlite3", "starlette", "uvicorn", "websockets"),
    *("dragoman.cli", "dragoman.store", "dragoman.testing", "dragoman.web"),
    *("dragoman.bridge", "dragoman.transport.http", "dragoman.transport.websocket", "h2"),
}

# What it does need, beside what these import themselves.
KNOWN = (
    *("asyncio", "bisect", "concurrent.futures.thread", "fnmatch", "msgspec", "queue", "shlex"),
    *("termios", "unicodedata"),
)

# Of ours: what reads a request of the agent, a form, a limit, an address, a setting or a chain of
# proxies comes with the first of them.
LATER = {
    *("dragoman.agents.settings.limit_settings", "dragoman.agents.settings.settings_file"),
    *("dragoman.client.sessions.limit_watch", "dragoman.host.claims.claim_reader"),
    *("dragoman.host.commands.loose_line", "dragoman.host.commands.same_program"),
    *("dragoman.host.forms.bounded_pattern", "dragoman.host.permissions.always_rules"),
    *("dragoman.host.permissions.offers", "dragoman.host.rules.line_steps"),
    *("dragoman.host.snapshots.shadow", "dragoman.transport.proxy_chain"),
}
MOST_MODULES = 155
"""Of ours, with the library: each costs about a quarter of a millisecond at every start."""


def modules_of(code: str) -> set[str]:
    """Everything that is imported when a fresh interpreter has run this."""
    show = "import json, sys; print(json.dumps(list(sys.modules)))"
    command = [sys.executable, "-I", "-c", f"{code}\n{show}"]
    return set(json.loads(subprocess.check_output(command, timeout=600)))


def cpu_seconds_of(code: str) -> float:
    """The least of a few runs of a fresh interpreter."""
    return min(_cpu_seconds(code) for _ in range(3))


def _cpu_seconds(code: str) -> float:
    before = _children()
    subprocess.run([sys.executable, "-I", "-c", code], check=True, timeout=600)
    return _children() - before


def _children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def test_the_package_alone_imports_neither_asyncio_nor_msgspec() -> None:
    assert not modules_of("import dragoman") & {"asyncio", "msgspec", "logging"}


def test_the_library_imports_nothing_that_only_a_program_needs() -> None:
    assert not modules_of("from dragoman import Client") & HEAVY


def test_control_what_is_heavy_is_noticed() -> None:
    assert modules_of("import dragoman.testing, acp") & HEAVY >= {"acp", "dragoman.testing"}


def test_the_package_alone_imports_nothing_else_of_its_own() -> None:
    found = modules_of("import dragoman")
    assert {name for name in found if name.startswith("dragoman")} == {
        "dragoman",
        "dragoman._version",
    }


def test_the_library_imports_little_of_others() -> None:
    """Each module costs something at every start: another one is added here on purpose."""
    known = modules_of(f"import {', '.join(KNOWN)}")
    others = {name for name in modules_of("from dragoman import Client") if name not in known}
    assert not {name for name in others if name.partition(".")[0] != "dragoman"}


def test_what_only_some_sessions_need_is_not_imported_with_the_library() -> None:
    found = modules_of("from dragoman import Client")
    assert not found & LATER
    assert len({name for name in found if name.startswith("dragoman.")}) <= MOST_MODULES


def test_control_what_only_some_sessions_need_is_there() -> None:
    assert modules_of(f"import {', '.join(LATER)}") >= LATER


def test_the_library_compiles_few_patterns_at_import() -> None:
    """Where a table of patterns is read at import, it is made with `lazy_pattern`."""
    code = """
import asyncio, json, re
compiled, real = [], re.compile
re.compile = lambda pattern, flags=0: compiled.append(pattern) or real(pattern, flags)
from dragoman import Client
assert len(compiled) <= 40, compiled
"""
    modules_of(code)


def test_a_lazy_pattern_is_a_pattern() -> None:
    greeting = lazy_pattern("(hello) there", re.IGNORECASE)
    found = greeting.search("Oh, Hello there")
    assert found is not None
    assert found[1] == "Hello"
    assert greeting.fullmatch("hello") is None
    assert greeting.sub("bye", "HELLO THERE") == "bye"
    assert greeting.pattern == "(hello) there"
    with pytest.raises(re.error):
        lazy_pattern("(").match("")
    with pytest.raises(AttributeError):
        _ = lazy_pattern("").groupindex


@pytest.mark.soak  # it measures
@pytest.mark.parametrize(
    ("code", "share"), [("import dragoman", 1 / 4), ("from dragoman import Client", 1 / 2)]
)
def test_importing_takes_a_fraction_of_what_the_official_sdk_takes(code: str, share: float) -> None:
    assert cpu_seconds_of(code) < share * cpu_seconds_of("import acp")
