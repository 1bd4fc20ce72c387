from __future__ import annotations

import random
import time
from fnmatch import fnmatchcase

import pytest

from dragoman.host.rules.globs import (
    escape,
    is_within,
    literal_beginning,
    matches_name,
    matches_path,
)

ROOTS = ("/ws", "/more")


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("/a/b", "/a/b"),
        ("/a/*", "/a/b"),
        ("/a/*", "/a/.hidden"),
        ("/a/?", "/a/b"),
        ("/*/b", "/a/b"),
        ("/a/**", "/a"),
        ("/a/**", "/a/b"),
        ("/a/**", "/a/b/.c/d"),
        ("/**", "/"),
        ("/**", "/a/b"),
        ("/**/b", "/b"),
        ("/**/b", "/x/y/b"),
        ("/a/**/d", "/a/d"),
        ("/a/**/d", "/a/b/c/d"),
        ("/a/**/**/d", "/a/d"),
        ("/**/x/**/y", "/a/x/b/x/c/y"),
        ("/a/[bc]", "/a/c"),
        ("/a/[!bc]", "/a/d"),
        ("/a/[a-f0-9]", "/a/7"),
        ("/a/[]]", "/a/]"),
        ("/a/[!]]", "/a/x"),
        ("/a/[a-]", "/a/-"),
        ("/a/[id", "/a/[id"),
        ("/a/\\*", "/a/*"),
        ("/a/\\[id]", "/a/[id]"),
        ("/a/b\\", "/a/b\\"),
        ("/a/b*c*d", "/a/bxxcyycd"),
        ("/a\n/*", "/a\n/b\nc"),
        ("src/**", "/ws/src/a"),
        ("src/**", "/more/src/a"),
        ("./src/*", "/ws/src/a"),
        ("**", "/ws"),
        ("**/*.py", "/ws/a.py"),
        ("*", "/ws/a"),
    ],
)
def test_a_path_matches(glob: str, path: str) -> None:
    assert matches_path(glob, path, ROOTS)


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("/a/b", "/a/b/c"),
        ("/a/b", "/a"),
        ("/a/b", "/A/b"),
        ("/a/*", "/a"),
        ("/a/*", "/a/b/c"),
        ("/a/*/c", "/a/c"),
        ("/a?b", "/a/b"),
        ("/a[!x]b", "/a/b"),
        ("/a/**", "/ab"),
        ("/a/**/d", "/a/b/c"),
        ("/a/[bc]", "/a/d"),
        ("/a/[!bc]", "/a/b"),
        ("/a/[a-f]", "/a/z"),
        ("/a/\\*", "/a/b"),
        ("src/**", "/src/a"),
        ("src/**", "/ws/x/src/a"),
        ("src/**", "/elsewhere/src/a"),
        ("*", "/ws/a/b"),
        ("*", "/ws"),
        ("**/*.py", "/ws/a.pyc"),
        ("é", "/ws/e\u0301"),
    ],
)
def test_a_path_does_not_match(glob: str, path: str) -> None:
    assert not matches_path(glob, path, ROOTS)


def test_a_star_in_a_name_crosses_dots_and_slashes() -> None:
    assert matches_name("*.example.com", "a.b.example.com")
    assert matches_name("mcp__*", "mcp__x/y")
    assert matches_name("*", "")
    assert not matches_name("*.example.com", "example.com")
    assert not matches_name("", "x")


@pytest.mark.parametrize("text", ["/a/*/b", "/a/?", "/a/[b]", "/a\\b", "/a/**", "/x/{y}", "/a b"])
def test_an_escaped_text_matches_only_itself(text: str) -> None:
    assert matches_path(escape(text), text)
    assert not matches_path(escape(text), text.replace("*", "x").replace("?", "x") + "x")
    assert matches_name(escape(text), text)
    assert not matches_name(escape(text), f"{text}x")


def test_an_escaped_wildcard_is_no_wildcard() -> None:
    assert not matches_path(escape("/a/**"), "/a/b/c")
    assert not matches_path(escape("/a/[b]"), "/a/b")


@pytest.mark.parametrize(
    ("glob", "names", "rest"),
    [
        ("/home/me/keys/**", "home/me/keys", "**"),
        ("a//./b/*.py/c", "a/b", "*.py/c"),
        ("a\\*b/[c]", "a*b", "[c]"),
        ("a[b/c", "a[b/c", ""),
        ("../x", "", "../x"),
        ("a/**/b", "a", "**/b"),
        ("?", "", "?"),
        ("a\\", "a\\", ""),
        ("/", "", ""),
    ],
)
def test_the_beginning_of_a_glob_that_is_literal(glob: str, names: str, rest: str) -> None:
    assert literal_beginning(glob) == (names, rest)


def test_names_match_as_the_standard_library_says() -> None:
    rng = random.Random(11)
    for _ in range(3_000):
        glob = "".join(rng.choice("ab*?") for _ in range(rng.randrange(7)))
        name = "".join(rng.choice("abc") for _ in range(rng.randrange(9)))
        assert matches_name(glob, name) == fnmatchcase(name, glob), (glob, name)


def test_many_stars_cannot_be_made_slow() -> None:
    start = time.process_time()
    assert not matches_name("*a" * 20 + "b", "a" * 4_000)
    assert not matches_path("/**/a" * 20 + "/b", "/a" * 2_000)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("path", "root", "inside"),
    [
        ("/ws", "/ws", True),
        ("/ws/a", "/ws", True),
        ("/wsa", "/ws", False),
        ("/", "/ws", False),
        ("/a", "/", True),
        ("/", "/", True),
    ],
)
def test_is_within(path: str, root: str, inside: bool) -> None:
    assert is_within(path, root) is inside
