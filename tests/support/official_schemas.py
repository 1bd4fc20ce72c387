"""The official JSON schemas, when `scripts/gen_schema.py` has left their package in `.cache/`."""

from __future__ import annotations

import json
import tarfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@cache
def definitions(version: str, stable: bool = False) -> dict[str, Any]:
    """The `$defs` of a version of the protocol; the test is skipped where they are not there."""
    tarballs = sorted((ROOT / ".cache").glob("agentclientprotocol-sdk-*.tgz"))
    if not tarballs:
        pytest.skip("the official schemas are not cached: run python scripts/gen_schema.py")
    name = "schema.json" if stable else "schema.unstable.json"
    with tarfile.open(tarballs[-1]) as archive:
        member = archive.extractfile(f"package/schema/{version}/{name}")
        assert member is not None
        return json.load(member)["$defs"]
