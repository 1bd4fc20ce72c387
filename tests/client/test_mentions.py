"""Mentions: what in a prompt is a path or an address, and what only looks like one."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import EXAMPLES

from dragoman.client.capabilities import AgentCapabilities
from dragoman.client.sessions import prompts
from dragoman.client.sessions.prompts import MAX_LINKS, MAX_LOOKED_UP, find_mentions, prepare
from dragoman.session.content import ResourceLink, Text

CWD = "/project"


def names(text: str) -> list[str]:
    return [link.name for link in find_mentions(text, CWD).links]


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
    links = find_mentions("@Makefile and @alice", str(tmp_path)).links
    assert [link.name for link in links] == ["Makefile"]


def test_punctuation_that_is_part_of_a_file_s_name_stays(tmp_path: Path) -> None:
    (tmp_path / "what?.md!").touch()
    links = find_mentions("@what?.md! and @what.md!", str(tmp_path)).links
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
    (link,) = find_mentions(f"@{url}", CWD).links
    assert (link.uri, link.mime_type) == (url, mime_type)


def test_a_path_becomes_an_absolute_address_with_a_type() -> None:
    assert find_mentions("@docs/../a b.md @x/y.unknown", CWD).links == [
        ResourceLink("file:///project/a", "docs/../a"),
        ResourceLink("file:///project/x/y.unknown", "x/y.unknown"),
    ]
    (link,) = find_mentions('@"docs/../a b.py"', CWD).links
    assert link == ResourceLink("file:///project/a%20b.py", "docs/../a b.py", "text/x-python")


def test_the_home_directory_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    (link,) = find_mentions("@~/x.json", CWD).links
    assert (link.uri, link.name) == ("file:///home/me/x.json", "~/x.json")
    assert link.mime_type == "application/json"


def test_an_address_stays_as_it_is() -> None:
    (link,) = find_mentions("look at @https://example.com/a.png)", CWD).links
    assert (link.uri, link.mime_type) == ("https://example.com/a.png", "image/png")


@EXAMPLES
@given(st.text() | st.text(alphabet="@\"'~/.:a b\\\0\n\u2028,[]{}"))
def test_any_text_can_be_searched(text: str) -> None:
    for link in find_mentions(text, CWD).links:
        assert link.uri.startswith(("file:///", "http"))
        assert "@" in text


# ── very many ─────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths that the file system was asked about."""
    asked: list[str] = []
    exists = prompts.os.path.exists

    def counted(path: Path) -> bool:
        asked.append(str(path))
        return exists(path)

    monkeypatch.setattr(prompts.os.path, "exists", counted)
    return asked


def test_a_name_is_looked_up_once_however_often_it_is_mentioned(
    tmp_path: Path, looks: list[str]
) -> None:
    (tmp_path / "a").touch()
    found = find_mentions("@a " * MAX_LOOKED_UP, str(tmp_path))
    assert [link.name for link in found.links] == ["a"]
    assert found.is_whole
    assert len(looks) == 1


@pytest.mark.parametrize(
    ("text", "links", "most"),
    [
        ("@a " * 100_000, 1, 1),
        (" ".join(f"@n{n}" for n in range(20_000)), 0, MAX_LOOKED_UP),
        (" ".join(f"@./{n}" for n in range(20_000)), MAX_LINKS, 0),
    ],
    ids=["one", "people", "paths"],
)
def test_of_very_many_mentions_the_first_are_looked_up_and_a_notice_says_so(
    tmp_path: Path, looks: list[str], text: str, links: int, most: int
) -> None:
    (tmp_path / "a").touch()
    content, warnings = prepare(text, AgentCapabilities(), str(tmp_path))
    assert content[0] == Text(text)
    assert len(content) == 1 + links
    assert warnings[-1].startswith("further mentions were not looked up")
    assert len(looks) <= most + links  # once more for each link: is it there?


def test_as_many_as_there_is_room_for_are_all_sent(tmp_path: Path) -> None:
    text = " ".join(f"@./{n}" for n in range(MAX_LINKS))
    found = find_mentions(f"{text} {text}", str(tmp_path))
    assert (len(found.links), found.is_whole) == (MAX_LINKS, True)
    assert find_mentions("@" + "a/" * 10_000, str(tmp_path)).links == []
