"""Runs a test over both kinds of process."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from process import running

from dragoman.fence.plan import FencePlan
from dragoman.fence.seccomp_listener import let_all_through
from dragoman.host.fence.fence import support
from dragoman.process import zygote_client
from dragoman.process.child import Process
from dragoman.process.contained import ContainedProcess
from dragoman.process.spawn import PortableProcess


@pytest.fixture(params=["contained", "portable", "fenced"])
def kind(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> type[Process]:
    if request.param == "fenced":
        enclose(monkeypatch, tmp_path)
    if request.param != "portable":
        return ContainedProcess
    monkeypatch.setattr(zygote_client, "available", lambda: False)
    return PortableProcess


@pytest.fixture(params=["open", "fenced"])
def both_ways(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What is run in the test has a fence around it, or none."""
    if request.param == "fenced":
        enclose(monkeypatch, tmp_path)


def enclose(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    if (plan := plan_for(folder)) is None:
        pytest.skip("this system cannot build a fence of namespaces")
    monkeypatch.setattr(running, "FENCED", [plan])


def plan_for(folder: Path) -> FencePlan | None:
    """One in which these sources and this folder are as they are outside."""
    if sys.platform != "linux" or asyncio.run(support(str(folder))).way != "namespaces":
        return None
    kept = {os.fsencode(Path(path).resolve()) for path in (sys.prefix, Path(__file__).parents[2])}
    place = os.fsencode(folder.resolve())
    return FencePlan(
        "namespaces",
        temporary=place,
        writable=(place,),
        kept=tuple(sorted(kept - {place})),
        gate="write",
        listen=let_all_through,
    )
