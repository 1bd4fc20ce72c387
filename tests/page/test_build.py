"""What the build leaves: small, whole, nothing inline, nothing from elsewhere."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "src" / "dragoman" / "web" / "static"
LARGEST = 450_000
built = pytest.mark.skipif(not (STATIC / "index.html").exists(), reason="the page was not built")


@built
def test_the_page_is_small() -> None:
    """The fonts apart, and the viewer, which is only put into exported files."""
    files = [path for path in STATIC.rglob("*") if path.is_file() and path.suffix != ".woff2"]
    files = [path for path in files if path.parent.name != "viewer"]
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) <= LARGEST


@built
def test_the_fonts_come_with_the_page_and_with_their_licences() -> None:
    fonts = [path.name for path in (STATIC / "assets").glob("*.woff2")]
    assert len(fonts) == 4
    assert sum((STATIC / "assets" / name).stat().st_size for name in fonts) <= 200_000
    licences = (STATIC / "font-licences.txt").read_text()
    assert licences.count("SIL OPEN FONT LICENSE Version 1.1") == 2
    assert "Inter" in licences
    assert "JetBrains Mono" in licences


@built
def test_the_page_has_no_source_maps_and_nothing_inline() -> None:
    assert not list(STATIC.rglob("*.map"))
    index = (STATIC / "index.html").read_text()
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=", index)
    assert "http" not in index.replace("http-equiv", "")


@built
def test_the_assets_have_a_hash_in_their_names() -> None:
    for path in (STATIC / "assets").iterdir():
        assert re.search(r"-[\w-]{8}\.(js|css|woff2)$", path.name), path.name


def test_the_lock_file_names_no_registry() -> None:
    assert '"resolved"' not in (ROOT / "web" / "package-lock.json").read_text()
