"""Paths that must work, whatever they look like: name, where it really is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from host.trees import INSIDE, Tree

NAMES = (
    "plain.txt",
    "no-extension",
    ".hidden",
    "..two-dots-first",
    "...",
    "two..dots",
    "trailing.",
    "with space.txt",
    " leading",
    "trailing ",
    "tab\there",
    "line\nfeed",
    "bell\x07",
    "quote'\"",
    "back\\slash",
    "star*?[x]",
    "dollar$HOME",
    "percent%2e%2e",
    "semi;colon",
    "-dash",
    "~",
    "~user",
    "@mention",
    "#hash",
    "CON",
    "secret.txt",
    "outside",
    "caf\u00e9",
    "cafe\u0301",
    "\u65e5\u672c\u8a9e.txt",
    "\U0001f600",
    "\u202etxt.exe",
    "\ufeffbom",
    "x" * 255,
    "\u00e9" * 127,
)
WAYS = (
    "{root}/{name}",
    "{root}//{name}",
    "/{root}/{name}",
    "{root}/./{name}",
    "{root}/sub/../{name}",
    "{root}/sub/deeper/../../{name}",
    "{root}/link-in/../{name}",
    "{root}/../root/{name}",
    "{extra}/../root/{name}",
    "{alias}/{name}",
    "{alias}/sub/../{name}",
    "{root}/absolute/{name}",
    "{root}/relative/{name}",
    "{root}/sub/up/{name}",
    "{root}/chain/{name}",
    "{extra}/to-root/{name}",
    "{root}/through-alias/{name}",
)
LINKS = ("link.txt", "absolute-link.txt", "sub/link.txt", "chained-link.txt", "to-extra.txt")
DEEP = "/".join(f"level-{level}" for level in range(50))


def legitimate(tree: Tree) -> list[tuple[str, Path]]:
    """At least 60, made on disk; each file holds its own real path."""
    alias = tree.base / "alias"
    alias.symlink_to("root")
    ways = {"root": tree.root, "extra": tree.extra, "alias": alias}
    _make_links(tree, alias)
    found = [(f"{tree.root}/{name}", tree.root / name) for name in NAMES]
    for number, way in enumerate(WAYS):
        found.append((way.format(**ways, name=f"w{number}"), tree.root / f"w{number}"))
    found += _linked(tree)
    found += [
        (f"{tree.root}/{DEEP}/x", tree.root / DEEP / "x"),
        (f"{tree.extra}/x", tree.extra / "x"),
    ]
    found += [(f"{tree.root}/sub/hard", tree.root / "sub" / "hard")]
    for _, real in found:
        real.parent.mkdir(parents=True, exist_ok=True)
        real.write_text(INSIDE)
    os.link(tree.root / "sub" / "hard", tree.outside / "hard")
    return found


def _make_links(tree: Tree, alias: Path) -> None:
    (tree.root / "absolute").symlink_to(tree.root)
    (tree.root / "relative").symlink_to(".")
    (tree.root / "sub" / "up").symlink_to("..")
    (tree.root / "chain").symlink_to("absolute/relative/absolute")
    (tree.extra / "to-root").symlink_to("../root")
    (tree.root / "through-alias").symlink_to(alias)


def _linked(tree: Tree) -> Iterator[tuple[str, Path]]:
    goals = (
        "goal-0",
        str(tree.root / "goal-1"),
        "../goal-2",
        "link.txt",
        str(tree.extra / "goal-4"),
    )
    reals = (
        tree.root / "goal-0",
        tree.root / "goal-1",
        tree.root / "goal-2",
        tree.root / "goal-0",
        tree.extra / "goal-4",
    )
    for name, goal, real in zip(LINKS, goals, reals, strict=True):
        (tree.root / name).symlink_to(goal)
        yield f"{tree.root}/{name}", real
