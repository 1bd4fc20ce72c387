"""Writes the generated pages of docs/reference; `--check` only compares.

python scripts/gen_reference.py [--check]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from reference.library import api_page, errors_page, events_page
from reference.routes import routes_page
from reference.settings import settings_page

FOLDER = Path(__file__).parent.parent / "docs" / "reference"
PAGES: dict[str, Callable[[], str]] = {
    "api.md": api_page,
    "events.md": events_page,
    "errors.md": errors_page,
    "settings.md": settings_page,
    "http-routes.md": routes_page,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="The generated pages of the reference.")
    parser.add_argument("--check", action="store_true", help="fail when a page is stale")
    check = parser.parse_args().check
    for name, make in PAGES.items():
        page, fresh = FOLDER / name, make()
        if not check:
            page.write_text(fresh)
        elif not page.exists() or page.read_text() != fresh:
            sys.exit(f"docs/reference/{name} is stale: run scripts/gen_reference.py")


if __name__ == "__main__":
    main()
