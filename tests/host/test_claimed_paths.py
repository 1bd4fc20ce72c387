"""One text for a path that others might read as several, as a pattern or as another spelling."""

from __future__ import annotations

import pytest
from support.claiming import claim


@pytest.mark.parametrize("path", ["src/{a,b}/x.ts", "*.ts", "a?.ts", "a[!b]", "a{1..3}"])
def test_a_path_that_is_a_pattern_is_in_doubt(path: str) -> None:
    for kind in ("read", "search", "edit", "delete"):
        assert not claim(kind, {"path": path}).complete


@pytest.mark.parametrize(
    ("path", "aliases"),
    [
        ("app/[id]/page.tsx", {"app/i/page.tsx", "app/d/page.tsx"}),
        ("a[0-2]", {"a0", "a1", "a2", "a-"}),
        ("app/[b-a].tsx", {"app/b.tsx", "app/a.tsx", "app/-.tsx"}),
        ("src/a b.txt", {"src/a", "b.txt", "src/b.txt"}),
        ("a,b", {"a", "b"}),
        ("a%20b", {"a b"}),
        ("routes/$id.tsx", set[str]()),
        ("(group)/+page@v1.ts", set[str]()),
    ],
)
def test_a_path_that_others_read_otherwise_counts_for_those_that_deny(
    path: str, aliases: set[str]
) -> None:
    access = claim("edit", {"path": path, "content": "x"})
    assert access.complete
    assert access.paths == (f"/ws/{path}",)
    assert set(access.aliases) == {f"/ws/{each}" for each in aliases}


def test_a_path_in_a_folder_with_a_blank_is_one_path() -> None:
    access = claim("edit", {"path": "/my ws/a.txt"}, cwd="/my ws", roots=("/my ws",))
    assert access.complete
    assert access.aliases == ()


@pytest.mark.parametrize("path", ["a ../../x", "a,/etc/passwd", "a ~/x", "%2e%2e/%2e%2e/x"])
def test_a_path_that_others_read_as_one_outside_is_in_doubt(path: str) -> None:
    assert not claim("edit", {"path": path, "content": "x"}).complete
