"""Both ways of opening: what the kernel offers, and the walk that stands in for it."""

from __future__ import annotations

import pytest

from dragoman.host.workspace import held_directory


@pytest.fixture(params=["openat2", "walk"])
def opener(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run the test once with each; the name of the one in use."""
    if request.param == "walk":
        monkeypatch.setattr(held_directory, "has_openat2", lambda: False)
    elif not held_directory.has_openat2():
        pytest.skip("this kernel has no openat2")
    return request.param
