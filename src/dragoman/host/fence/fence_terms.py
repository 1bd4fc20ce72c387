"""What the settings and flags say about a fence."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from dragoman.session.facts import FenceMode, stricter

NetworkTerms: TypeAlias = Literal["all", "none"] | tuple[str, ...]
"""What is reached: everything, nothing, or these hosts, such as `example.com:443`."""


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


def at_least(terms: FenceTerms, mode: FenceMode) -> FenceTerms:
    """In this mode, where they say nothing stricter."""
    return replace(terms, mode=stricter(terms.mode, mode))
