"""Which kind of fence this system can build, found out by building one around a program that ends.

Asked once for each user, before the first fence: a start that needs one must not try in vain.
"""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from dragoman.errors import StartError
from dragoman.fence.listener import let_all_through
from dragoman.fence.plan import FencePlan
from dragoman.host.fence.floor import FenceWay
from dragoman.process.spawn import spawn

_WAYS: tuple[FenceWay, ...] = ("namespaces", "landlock")


class Support(NamedTuple):
    """The best way there is, or None and why there is none."""

    way: FenceWay | None
    reason: str = ""
    no_gate: str = ""
    """Why the kernel cannot ask us about what programs inside do, if it cannot."""


_found: dict[int, Support] = {}


async def support(temporary: str) -> Support:
    """`temporary` is a folder that the trial may use."""
    if sys.platform != "linux":
        return Support(None, "a fence needs Linux")
    if (user := os.geteuid()) not in _found:
        _found[user] = await _tried(temporary)
    return _found[user]


async def _tried(temporary: str) -> Support:
    reasons: list[str] = []
    for way in _WAYS:
        place = os.fsencode(temporary)
        no_gate = ""
        try:
            try:
                await _build(FencePlan(way, temporary=place, gate="exec", listen=let_all_through))
            except StartError as error:
                no_gate = error.reason
                await _build(FencePlan(way, temporary=place))
        except StartError as error:
            reasons.append(f"{way}: {error.reason}")
        else:
            return Support(way, "; ".join(reasons), no_gate)
    return Support(None, "; ".join(reasons))


async def _build(plan: FencePlan) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        process = await spawn(
            ["/bin/sh", "-c", ":"],
            env={},
            cwd="/",
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            fence=plan,
        )
        await process.wait()
        await process.stop(exit_within=0, term_within=0)
    finally:
        os.close(nothing)
