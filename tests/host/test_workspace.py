from __future__ import annotations

import pytest

from dragoman.host.workspace.roots import Workspace


def test_roots_are_the_working_directory_and_then_the_added_ones() -> None:
    assert Workspace("s", "/a", ("/b", "/c")).roots == ("/a", "/b", "/c")


@pytest.mark.parametrize("path", ["", ".", "a/b", "~/x", "/a\0b"])
def test_a_path_that_is_not_absolute_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="absolute"):
        Workspace("s", path)
    with pytest.raises(ValueError, match="absolute"):
        Workspace("s", "/a", (path,))


def test_equal_workspaces_are_interchangeable() -> None:
    assert {Workspace("s", "/a"): 1}[Workspace("s", "/a")] == 1
