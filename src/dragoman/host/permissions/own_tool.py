"""The permission to submit a result to the program that asked for it: nobody else need be asked.

An agent can misstate this, like any other request. So the permission covers only a request that
names the tool and nothing that a person would have to weigh: no command, file or address.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dragoman.host.rules.decision import PolicyDecision
from dragoman.session.facts import PermissionOption
from dragoman.session.permission_options import choose_option

if TYPE_CHECKING:
    from dragoman.host.claims.claim_reader import Claim

SUBMITS = PolicyDecision("allow", "it submits the result that this program asked for")


def submits(
    tool: str, claim: Claim, decision: PolicyDecision, options: Sequence[PermissionOption]
) -> bool:
    """Whether the claim is a call of this tool and, as far as it tells, of nothing else, and no
    rule speaks of it, and one of the options is a plain yes."""
    access = claim.access
    if decision.effect != "ask" or decision.rule is not None:
        return False
    named = (claim.title, access.tool or "", *access.names)
    return (
        any(tool in name for name in named)
        and access.operation == "other"
        and set(access.also) <= {"mcp"}
        and not (access.commands or access.paths or access.hosts or access.parts or access.said)
        and access.contradiction is None
        and choose_option(options, "allow", names_action=True) is not None
    )
