"""What the settings and flags say about a fence."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace

NetworkTerms: TypeAlias = Literal["all", "none"] | tuple[str, ...]
"""What is reached: everything, nothing, or these hosts, such as `example.com:443`."""
FenceMode: TypeAlias = Literal["off", "on", "ask", "require"]
"""`on`: fenced if the system can do it; `ask`: the same, and a write outside becomes a question;
`require`: nothing is started without."""
FENCE_MODES: tuple[FenceMode, ...] = ("off", "on", "ask", "require")


class FenceTerms(msgspec.Struct, frozen=True, kw_only=True):
    """Whether there is to be a fence, and what it leaves open in addition."""

    mode: FenceMode = "off"
    write: tuple[str, ...] = ()
    """Additional folders that the agent may write to."""
    read: tuple[str, ...] = ()
    """Paths that can be read although they are in a private or hidden folder."""
    network: NetworkTerms = "all"


NO_FENCE = FenceTerms()


def changed_terms(
    terms: FenceTerms, mode: FenceMode | None, network: NetworkTerms | None
) -> FenceTerms:
    """With another mode, and another network; one that is limited needs a fence."""
    if network is not None:
        is_wanted = network != "all" and terms.mode == "off"
        terms = replace(terms, network=network, mode="on" if is_wanted else terms.mode)
    return terms if mode is None else replace(terms, mode=mode)
