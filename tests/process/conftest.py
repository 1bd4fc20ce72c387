"""Runs a test over both kinds of process."""

from __future__ import annotations

import pytest

from dragoman.process import launch
from dragoman.process.base import Process
from dragoman.process.contained import ContainedProcess
from dragoman.process.portable import PortableProcess


@pytest.fixture(params=["contained", "portable"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type[Process]:
    if request.param == "contained":
        return ContainedProcess
    monkeypatch.setattr(launch, "available", lambda: False)
    return PortableProcess
