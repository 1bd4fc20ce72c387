"""Generates `src/dragoman/schema/v1.py` and `v2.py` from the official ACP JSON schemas.

    python scripts/gen_schema.py            write them
    python scripts/gen_schema.py --check    fail when the committed files are stale

The schemas come from a pinned npm package, which is kept in `.cache/`; see `schema_gen`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from schema_gen import methods, package, reading, writing

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".cache"
OUTPUT = ROOT / "src" / "dragoman" / "schema"
VERSIONS = ("v1", "v2")


def main() -> int:
    parser = argparse.ArgumentParser(description="Generate the ACP structs.")
    parser.add_argument("--check", action="store_true", help="only say whether they are current")
    check: bool = parser.parse_args().check
    try:
        tarball = package.tarball(CACHE)
    except package.PackageUnavailable as error:
        print(f"schema check skipped: {error}" if check else f"cannot generate: {error}")
        return 0 if check else 1
    except package.PackageCorrupt as error:
        print(f"cannot generate: {error}")
        return 1
    texts = {OUTPUT / f"{version}.py": generated(tarball, version) for version in VERSIONS}
    return stale(texts) if check else write(texts)


def generated(tarball: Path, version: str) -> str:
    """The Python text for one protocol version."""
    definitions = package.definitions(tarball, version, stable=False)
    stable = package.definitions(tarball, version, stable=True)
    types = reading.Reader(version, definitions).read()
    stable_types = reading.Reader(version, stable).read()
    kinds, stable_kinds = methods.update_kinds(definitions), methods.update_kinds(stable)
    parts = [
        writing.types(types),
        writing.tables(methods.methods(definitions, stable)),
        writing.names("STABLE_UPDATES", stable_kinds),
        writing.names("UNSTABLE_UPDATES", kinds - stable_kinds),
        writing.names("UNSTABLE_TYPES", methods.unstable_types(types, stable_types)),
        writing.names_by_type("UNSTABLE_FIELDS", methods.unstable_fields(types, stable_types)),
    ]
    return writing.module(version, f"{package.NAME} {package.VERSION}", "\n\n".join(parts) + "\n")


def stale(texts: dict[Path, str]) -> int:
    different = [path for path, text in texts.items() if not _holds(path, text)]
    for path in different:
        print(f"{path.relative_to(ROOT)} is stale: run python scripts/gen_schema.py")
    return 1 if different else 0


def write(texts: dict[Path, str]) -> int:
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


def _holds(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())
