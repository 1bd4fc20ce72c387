"""`dragoman policy fence`: prints the fence that would be built around an agent.

Every path that is treated specially, with its reason, then what cannot be held. Nothing is built.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile

from dragoman.agents.agent_fence import agent_floor
from dragoman.cli.exit_codes import Exit
from dragoman.cli.render.printed_json import indented_json
from dragoman.cli.run.agent_setup import choose_agent, folders, with_typed
from dragoman.host.fence.fence import Support, support
from dragoman.host.fence.floor import Floor, PlaceMode
from dragoman.host.fence.network.fence_network import network_lines
from dragoman.safe_text import reveal

_TITLES: dict[PlaceMode, str] = {
    "write": "can be written",
    "read-only": "can be read, but not written",
    "covered": "hidden: appears to be empty",
    "read": "can be read, although it is in a private or hidden folder",
}
_REST = (
    "private to the session: /tmp, /var/tmp, /dev, /dev/shm, and the processes in /proc",
    "everything else can be read, but not written",
)


def run(options: argparse.Namespace) -> int:
    choice = choose_agent(options)
    cwd, more = folders(options, choice.agent.files)
    terms = with_typed(options, choice.settings.fence_of(choice.agent))
    floor = agent_floor(terms, [cwd, *more], choice.agent.name, choice.command)
    found = asyncio.run(_support())
    network = network_lines(terms.network, found.way)
    if options.json:
        fields = {**_fields(floor, found), "network": terms.network, "reached": network}
        print(indented_json(fields))
    else:
        print("\n".join([*_lines(floor, found), "", "network", *(f"  {line}" for line in network)]))
    return Exit.DONE


async def _support() -> Support:
    with tempfile.TemporaryDirectory() as folder:
        return await support(folder)


def _fields(floor: Floor, found: Support) -> dict[str, object]:
    gaps = floor.gaps if found.way is None else floor.gaps_with(found.way)
    return {"how": found.way, "reason": found.reason, "places": floor.places, "notHeld": gaps}


def _lines(floor: Floor, found: Support) -> list[str]:
    lines = [_headline(found)]
    for mode, title in _TITLES.items():
        places = [place for place in floor.places if place.mode == mode]
        if places:
            lines += ["", title]
            lines += [f"  {reveal(place.path)}  ({place.reason})" for place in places]
    lines += ["", *_REST]
    if gaps := [] if found.way is None else floor.gaps_with(found.way):
        lines += ["", "not protected"]
        lines += [f"  {reveal(gap.path)}  ({gap.reason})" for gap in gaps]
    return lines


def _headline(found: Support) -> str:
    if found.way is None:
        return f"this system cannot build a fence: {found.reason}"
    return f"built with {found.way}" + (f" ({found.reason})" if found.reason else "")
