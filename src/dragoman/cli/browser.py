"""Opening a page in a browser with windows; one that would take over the terminal never is."""

from __future__ import annotations

import os
import sys
import webbrowser

_OF_TERMINALS = {"www-browser", "links", "links2", "elinks", "lynx", "w3m", "browsh"}


def opened(address: str) -> bool:
    """Whether there was such a browser to give it to."""
    browser = _found()
    if browser is None:
        return False
    # One in the background that has ended at once handed the page to a window that was open, and
    # `webbrowser` takes that for a failure.
    return browser.open(address) or isinstance(browser, webbrowser.BackgroundBrowser)


def _found() -> webbrowser.BaseBrowser | None:
    # Without a display even xdg-open looks for a browser of terminals.
    told = any(map(os.environ.get, ("BROWSER", "DISPLAY", "WAYLAND_DISPLAY")))
    if not told and sys.platform != "darwin":
        return None
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return None
    program = os.path.basename(browser.name.partition(" ")[0])
    return None if program in _OF_TERMINALS else browser
