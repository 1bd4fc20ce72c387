from __future__ import annotations

import pytest

from dragoman.host.rules.access import Access, file_access, normalise, terminal_access


@pytest.mark.parametrize(
    ("path", "base", "normal"),
    [
        ("/", None, "/"),
        ("//a//b/", None, "/a/b"),
        ("/a/./b/../c", None, "/a/c"),
        ("/../..", None, "/"),
        ("a/../../b", "/ws", "/b"),
        ("", "/ws", "/ws"),
        ("/x", "/ws", "/x"),
        ("/a/...", None, "/a/..."),
    ],
)
def test_a_path_is_made_normal(path: str, base: str | None, normal: str) -> None:
    assert normalise(path, base) == normal


def test_a_relative_path_is_refused() -> None:
    with pytest.raises(ValueError, match="not an absolute path: 'a'"):
        normalise("a")
    with pytest.raises(ValueError, match="not an absolute path"):
        Access(operation="read", paths=("a",))


def test_an_access_makes_its_paths_normal() -> None:
    access = Access(operation="read", paths=("/ws/../x",), roots=("/ws/",), cwd="/ws/./")
    assert (access.paths, access.roots, access.cwd) == (("/x",), ("/ws",), "/ws")


def test_a_place_is_inside_only_when_everything_is() -> None:
    def place(*paths: str) -> str:
        return Access(operation="read", paths=paths, roots=("/ws", "/b")).place

    assert place("/ws/a", "/b/c") == "inside"
    assert place("/ws/a", "/c") == "outside"
    assert place() == "unknown"


def test_a_working_directory_has_a_place_of_its_own() -> None:
    def place(cwd: str | None) -> str:
        return Access(operation="execute", cwd=cwd, roots=("/ws",)).place_of_cwd

    assert (place("/ws/a"), place("/a"), place(None)) == ("inside", "outside", "unknown")


def test_only_writes_are_protected() -> None:
    read = file_access("read", "/ws/.envrc", agent="demo", roots=("/ws",))
    write = file_access("write", "/ws/.envrc", agent="demo", roots=("/ws",))
    assert read.protection is None
    assert write.protection == "/ws/.envrc is protected: it runs when you enter the directory"
    assert Access(operation="execute", also=("write",), paths=("/ws/.envrc",)).protection


def test_a_terminal_without_arguments_is_a_line_for_a_shell() -> None:
    bare = terminal_access("npm test", agent="demo", cwd="/ws", roots=("/ws",))
    words = terminal_access("npm", ["test"], agent="demo", cwd="/ws", roots=("/ws",), env=True)
    assert (bare.commands, bare.env) == (("npm test",), False)
    assert (words.commands, words.env) == ((("npm", "test"),), True)
