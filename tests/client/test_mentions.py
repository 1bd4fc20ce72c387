"""Mentions: what in a prompt is a path or an address, and what only looks like one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import EXAMPLES

from dragoman.client.mentions import find_mentions
from dragoman.session.content import ResourceLink

CWD = "/project"


def names(text: str) -> list[str]:
    return [link.name for link in find_mentions(text, CWD)]


PATHS = [
    ("Summarise @README.md", ["README.md"]),
    ("@src/main.py first", ["src/main.py"]),
    ("(see @a.py)", ["a.py"]),
    ("Is it @a.py? Or @b.py!", ["a.py", "b.py"]),
    ("@a.py, @b.py; @c.py: done.", ["a.py", "b.py", "c.py"]),
    ("@a.py,@b.py;@c.py", ["a.py", "b.py", "c.py"]),
    ("'@a.py' and `@b.py` and <@c.py>", ["a.py", "b.py", "c.py"]),
    ("@a.py's first line", ["a.py"]),
    ("@.env", [".env"]),
    ("@./x", ["./x"]),
    ("@../up.txt", ["../up.txt"]),
    ("@/etc/hosts", ["/etc/hosts"]),
    ("@~/notes.txt", ["~/notes.txt"]),
    ("@node_modules/@types/node.d.ts", ["node_modules/@types/node.d.ts"]),
    ('@"a file.txt" here', ["a file.txt"]),
    ('@"anything"', ["anything"]),
    ("line one\n@a.py\nline three", ["a.py"]),
    ("@naïve.py", ["naïve.py"]),
    ("@a.py twice: @a.py", ["a.py"]),
    ("@https://example.com/x?y=1.", ["https://example.com/x?y=1"]),
    ("@HTTP://example.com", ["HTTP://example.com"]),
    ("**@a.py** and *@b.py*", ["a.py", "b.py"]),
    ("@a.py\u2026 @b.py\u2014next @c.py\u3002", ["a.py", "b.py", "c.py"]),
    ("\u201c@a.py\u201d \u00ab@b.py\u00bb @c.py\u2019s first line", ["a.py", "b.py", "c.py"]),
    ("@a.py|", ["a.py"]),
    ("Look at @/tmp/. Or @/tmp/..", ["/tmp/"]),
    ("@https://en.wikipedia.org/wiki/A_(b)", ["https://en.wikipedia.org/wiki/A_(b)"]),
    ("(@https://en.wikipedia.org/wiki/A_(b)).", ["https://en.wikipedia.org/wiki/A_(b)"]),
    ("[@a[0].py]", ["a[0].py"]),
    ("@a.py" + ")" * 10_000, ["a.py"]),
]
NOT_MENTIONS = [
    "",
    "no mention",
    "mail bob@example.com today",
    "first.last+tag@example.com",
    "@alice, what do you think?",
    "a @ b",
    "@ README.md",
    "@@README.md",
    "foo/@bar.py",
    "@...",
    '@""',
    "@" + "x" * 10_000,
    "@\0",
]


@pytest.mark.parametrize(("text", "found"), PATHS)
def test_a_mention_is_found(text: str, found: list[str]) -> None:
    assert names(text) == found


@pytest.mark.parametrize("text", NOT_MENTIONS)
def test_what_is_no_mention_is_left_alone(text: str) -> None:
    assert names(text) == []


def test_a_name_alone_is_a_mention_when_there_is_such_a_file(tmp_path: Path) -> None:
    (tmp_path / "Makefile").touch()
    links = find_mentions("@Makefile and @alice", str(tmp_path))
    assert [link.name for link in links] == ["Makefile"]


def test_punctuation_that_is_part_of_a_file_s_name_stays(tmp_path: Path) -> None:
    (tmp_path / "what?.md!").touch()
    links = find_mentions("@what?.md! and @what.md!", str(tmp_path))
    assert [link.name for link in links] == ["what?.md!", "what.md"]


@pytest.mark.parametrize(
    ("url", "mime_type"),
    [
        ("https://example.com", None),
        ("https://a.zip", None),
        ("https://example.com/", None),
        ("https://example.com/a.png?size=1", "image/png"),
        ("https://[/a.png", None),
    ],
)
def test_the_type_of_an_address_is_that_of_its_path(url: str, mime_type: str | None) -> None:
    (link,) = find_mentions(f"@{url}", CWD)
    assert (link.uri, link.mime_type) == (url, mime_type)


def test_a_path_becomes_an_absolute_address_with_a_type() -> None:
    assert find_mentions("@docs/../a b.md @x/y.unknown", CWD) == [
        ResourceLink("file:///project/a", "docs/../a"),
        ResourceLink("file:///project/x/y.unknown", "x/y.unknown"),
    ]
    (link,) = find_mentions('@"docs/../a b.py"', CWD)
    assert link == ResourceLink("file:///project/a%20b.py", "docs/../a b.py", "text/x-python")


def test_the_home_directory_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    (link,) = find_mentions("@~/x.json", CWD)
    assert (link.uri, link.name) == ("file:///home/me/x.json", "~/x.json")
    assert link.mime_type == "application/json"


def test_an_address_stays_as_it_is() -> None:
    (link,) = find_mentions("look at @https://example.com/a.png)", CWD)
    assert (link.uri, link.mime_type) == ("https://example.com/a.png", "image/png")


@EXAMPLES
@given(st.text() | st.text(alphabet="@\"'~/.:a b\\\0\n\u2028,[]{}"))
def test_any_text_can_be_searched(text: str) -> None:
    for link in find_mentions(text, CWD):
        assert link.uri.startswith(("file:///", "http"))
        assert "@" in text
