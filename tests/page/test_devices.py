"""A device is paired from the page, shows what is pushed to it, and is out when it is revoked."""

from __future__ import annotations

from pathlib import Path

from page.browsing import browsed, new_session, nobody_after, person, prompt
from page.site import Site, served
from playwright.async_api import Browser, Page, expect


async def paired(browser: Browser, site: Site, page: Page) -> Page:
    """A page in another profile that got its token from the code shown on this one."""
    await page.evaluate("location.hash = '#/devices'")
    await page.get_by_label("Name of the device").fill("my phone")
    await page.get_by_role("button", name="Pair a device").click()
    code = page.locator(".pairing")
    await expect(code.get_by_role("img", name="QR code")).to_be_visible()
    address = await code.locator("code").inner_text()
    assert address.startswith(f"{site.url}#pair=dgm_")
    profile = await browser.new_context(viewport={"width": 390, "height": 844})
    phone = await profile.new_page()
    await phone.goto(address)
    await expect(phone.get_by_role("banner")).to_be_visible()
    assert "pair=" not in phone.url
    return phone


async def test_a_phone_is_paired_by_a_code_and_signed_out_when_it_is_revoked(
    tmp_path: Path,
) -> None:
    async with (
        served(tmp_path) as site,
        browsed() as browser,
        person(browser, site, refused=401) as page,
    ):
        phone = await paired(browser, site, page)
        await expect(page.get_by_role("status").filter(has_text="Paired.")).to_be_visible()
        mine = page.locator(".devicelist li")
        await expect(mine).to_have_count(1)
        await mine.get_by_role("button", name="Revoke my phone").click()
        await mine.get_by_role("button", name="Revoke", exact=True).click()
        await expect(phone.get_by_role("main", name="Signed out")).to_be_visible()
        await expect(mine).to_contain_text("revoked now")
        await phone.context.close()


async def test_a_code_that_was_used_says_so(tmp_path: Path) -> None:
    async with (
        served(tmp_path) as site,
        browsed() as browser,
        person(browser, site, refused=401) as page,
    ):
        phone = await paired(browser, site, page)
        await phone.context.close()
        address = await page.evaluate("location.origin") + "/#pair=dgm_000000000000_" + "x" * 43
        profile = await browser.new_context()
        late = await profile.new_page()
        await late.goto(address)
        await expect(late.get_by_role("alert")).to_contain_text("This code was used")
        await profile.close()


async def test_the_address_of_a_notification_leads_to_its_question(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        session = await new_session(page)
        await prompt(page, "Write something down")
        card = page.locator(".card.permission")
        request = await card.get_attribute("data-request")
        await page.evaluate("location.hash = '#/usage'")
        await expect(card).to_have_count(0)
        place = f"#/s/{session}/q/{request}"
        await page.evaluate("place => { location.hash = place }", place)
        await expect(card).to_be_focused()


async def test_the_page_s_policies_let_its_worker_in(tmp_path: Path) -> None:
    """What it shows is tested without a browser: the one of these tests shows no notifications."""
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        nobody_after(page)
        await page.evaluate(
            """async () => {
                const policy = trustedTypes.createPolicy('test', { createScriptURL: (url) => url })
                await navigator.serviceWorker.register(policy.createScriptURL('/sw.js'))
                await navigator.serviceWorker.ready
            }"""
        )
        await page.wait_for_function("navigator.serviceWorker.controller !== null")


async def test_the_page_can_be_installed_and_its_worker_keeps_nothing(tmp_path: Path) -> None:
    async with served(tmp_path) as site, browsed() as browser, person(browser, site) as page:
        told = await page.evaluate(
            """fetch('/manifest.webmanifest').then(
                async (it) => [it.headers.get('content-type'), await it.json()])"""
        )
        kind, manifest = told
        assert kind == "application/manifest+json"
        assert (manifest["display"], manifest["start_url"]) == ("standalone", "/")
        sizes = await page.evaluate(
            """async (icons) => {
                const found = []
                for (const { src, sizes, type } of icons) {
                    const reply = await fetch(src)
                    const fits = reply.headers.get('content-type') === type
                    const blob = await reply.blob()
                    const drawn = type === 'image/png' ? await createImageBitmap(blob) : null
                    const real = drawn === null ? 'any' : `${drawn.width}x${drawn.height}`
                    found.push([sizes, fits, real])
                }
                return found
            }""",
            manifest["icons"],
        )
        assert sizes
        assert all(wanted == real and fits for wanted, fits, real in sizes)
        worker = await page.evaluate("fetch('/sw.js').then((it) => it.text())")
        assert "caches." not in worker
        assert "addEventListener('fetch'" not in worker
