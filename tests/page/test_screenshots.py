"""The pictures of the documentation, before they are taken."""

from __future__ import annotations

from pathlib import Path

from page.browsing import browsed, person
from page.screenshots import DOCUMENTED, HOME, WIDTHS, show, shown


async def test_no_picture_of_the_documentation_shows_a_folder_of_the_machine_it_is_taken_on(
    tmp_path: Path,
) -> None:
    async with shown(tmp_path) as site, browsed() as browser:
        for name, width in dict.fromkeys(picture[1:3] for picture in DOCUMENTED):
            async with person(browser, site, size=WIDTHS[width]) as page:
                await show(page, name)
                await page.get_by_text("Prepare release 2.1").first.wait_for(state="attached")
                if name == "inbox":
                    await page.get_by_text(f"demo in {HOME}/parser").first.wait_for()
                assert str(tmp_path) not in await page.inner_text("body")
