"""The examples in the documentation run as they are printed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
GENERATED = {"api.md", "events.md", "errors.md"}
# A block with anything behind `python` is a file of another example, or cannot run anywhere.
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _examples() -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for page in PAGES:
        if page.name in GENERATED:
            continue
        blocks = _BLOCK.findall(page.read_text())
        name = page.relative_to(ROOT).as_posix()
        found += [(f"{name} {number}", block) for number, block in enumerate(blocks, 1)]
    return found


def test_there_are_examples() -> None:
    assert len(_examples()) >= 10


@pytest.mark.parametrize("code", [code for _, code in _examples()], ids=[i for i, _ in _examples()])
def test_an_example_runs_as_printed(code: str, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# A project\n\nIt does one thing.\n")
    if "import dragoman" not in code:
        code = f"import dragoman\n{code}"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "DRAGOMAN_HOME": str(tmp_path / "home")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""


# ── links ─────────────────────────────────────────────────────────────────────────────────────

_LINK = re.compile(
    r"\[[^\]]*\]\((?P<target>[^)#\s]*)(?:#(?P<anchor>[^)\s]*))?\)|\b(?:src|srcset)=\"(?P<image>[^\"]+)\""
)
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_OUTSIDE = ("http://", "https://", "mailto:")
LINKED = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def _text(page: Path) -> str:
    return _FENCE.sub("", page.read_text())


def _anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = (re.sub(r"[^\w\- ]", "", h.lower()) for h in _HEADING.findall(_text(page)))
    return {heading.replace(" ", "-") for heading in headings}


def _broken(page: Path) -> list[str]:
    return [
        link[0]
        for link in _LINK.finditer(_text(page))
        if not (link["target"] or "").startswith(_OUTSIDE) and not _leads_somewhere(page, link)
    ]


def _leads_somewhere(page: Path, link: re.Match[str]) -> bool:
    name = link["target"] or link["image"]
    target = (page.parent / name).resolve() if name else page
    return target.exists() and (not link["anchor"] or link["anchor"] in _anchors(target))


@pytest.mark.parametrize("page", LINKED, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_somewhere(page: Path) -> None:
    assert _broken(page) == []


@pytest.mark.parametrize("link", ["[a](nowhere.md)", "[a](#nowhere)", "[a](b.md#nowhere)"])
def test_a_link_that_leads_nowhere_is_noticed(tmp_path: Path, link: str) -> None:
    (tmp_path / "b.md").write_text("# Somewhere\n")
    (page := tmp_path / "a.md").write_text(f"# A\n\n{link} [fine](b.md#somewhere) [a](#a)\n")
    assert _broken(page) == [link]


# ── the front door ────────────────────────────────────────────────────────────────────────────


def test_the_readme_is_short_and_says_first_how_to_install() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 120
    assert any("pip install dragoman" in line for line in lines[:10])


def test_every_page_can_be_reached_from_the_index() -> None:
    index = ROOT / "docs" / "index.md"
    reached: set[Path] = set()
    waiting = [index]
    while waiting:
        page = waiting.pop()
        if page.is_dir():
            waiting += page.glob("*.md")
        elif page.suffix == ".md" and page not in reached:
            reached.add(page)
            targets = (m["target"] for m in _LINK.finditer(_text(page)) if m["target"])
            waiting += [(page.parent / t).resolve() for t in targets if not t.startswith(_OUTSIDE)]
    assert set((ROOT / "docs").rglob("*.md")) <= reached


# ── the map of the code ───────────────────────────────────────────────────────────────────────


def test_every_decision_has_its_own_number() -> None:
    records = sorted((ROOT / "docs" / "explanation" / "adr").glob("*.md"))
    numbers = [int(record.name[:4]) for record in records]
    assert numbers == list(range(1, len(records) + 1))
    titles = [int(_text(record).removeprefix("# ").partition(".")[0]) for record in records]
    assert titles == numbers


_MAP = ROOT / "ARCHITECTURE.md"
_PATH = re.compile(r"`([\w./-]+(?:/|\.(?:py|ts|tsx|md)))`")
_FILE = re.compile(r"`([\w./-]+\.(?:py|ts|tsx|css))`")
_NAMES_IN = re.compile(r"`([\w./-]+\.(?:py|ts|tsx|css))` \(([^()]+)\)")
_NAME = re.compile(r"`\.?([\w.]+)`")
_HEAD_OF_ROWS = "| … | start here | and |"
_START = re.compile(r"`[\w./-]+`(?: \([^()]+\))?")
_INNER = (
    "host",
    "agents",
    "store",
    "web",
    "cli",
    "client",
    "hub",
    "testing",
    "conformance",
    "client/dialects/v1",
)
_PLACES = (
    ROOT,
    ROOT / "src" / "dragoman",
    ROOT / "web" / "src",
    *(ROOT / "src" / "dragoman" / folder for folder in _INNER),
)


def test_the_map_of_the_code_names_files_that_are_there() -> None:
    named = _PATH.findall(_text(_MAP))
    assert len(named) > 100
    assert [name for name in named if not any((place / name).exists() for place in _PLACES)] == []


def _missing_from(name: str, words: str) -> list[str]:
    """Of what the map says to be in a file."""
    return _missing(_words_of(name), words)


def _words_of(name: str) -> set[str]:
    file = next(found for place in _PLACES if (found := place / name).is_file())
    return set(re.findall(r"\w+", file.read_text()))


def _missing(there: set[str], words: str) -> list[str]:
    return [each for each in _NAME.findall(words) if not there.issuperset(each.split("."))]


def test_the_map_of_the_code_names_what_is_in_its_files() -> None:
    named = _NAMES_IN.findall(_text(_MAP))
    assert len(named) > 200
    missing = {name: _missing_from(name, words) for name, words in named}
    assert {name: each for name, each in missing.items() if each} == {}


def _rows_of_the_map() -> list[str]:
    places = _text(_MAP).partition("## Where do I change")[2].partition("## Glossary")[0]
    rows = [row for row in re.findall(r"^\| .+", places, re.MULTILINE) if row != _HEAD_OF_ROWS]
    assert len(rows) > 100
    return rows


def test_a_row_of_the_map_names_one_place_to_start() -> None:
    rows = _rows_of_the_map()
    assert [row for row in rows if not _START.fullmatch(row.split(" | ")[1])] == []
    questions = [row.split(" | ")[0] for row in rows]
    assert len(set(questions)) == len(questions)


def test_a_row_of_the_map_names_what_is_in_one_of_its_files() -> None:
    missing: list[str] = []
    for row in _rows_of_the_map():
        if files := _FILE.findall(row):
            there = set[str]().union(*map(_words_of, files))
            missing += _missing(there, _FILE.sub("", row.partition(" | ")[2]))
    assert missing == []
