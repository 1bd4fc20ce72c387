"""Runs a test over both kinds of process."""

from __future__ import annotations

import pytest

from dragoman.process import zygote_client
from dragoman.process.child import Process
from dragoman.process.contained import ContainedProcess
from dragoman.process.spawn import PortableProcess


@pytest.fixture(params=["contained", "portable"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type[Process]:
    if request.param == "contained":
        return ContainedProcess
    monkeypatch.setattr(zygote_client, "available", lambda: False)
    return PortableProcess
