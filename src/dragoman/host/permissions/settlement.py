"""How a permission question ends: with an option, refused, or cancelled with its turn."""

from __future__ import annotations

import msgspec

from dragoman.host.permissions.questions import PermissionRequest, PermissionsProvider
from dragoman.host.rules.policy import NO_RULE, PolicyDecision
from dragoman.session import facts

REFUSED, CHOSEN, CANCELLED, ALLOWED = "refused", "chosen", "cancelled", "allowed"


class Settlement(msgspec.Struct, frozen=True):
    """How a question ended: with an option, refused, or cancelled with its turn."""

    how: str
    by: facts.Decider
    reason: str
    option_id: str | None = None
    follows: bool = False
    """Whether it is the answer to an equal question, which has been remembered already."""


_NOBODY_TO_ASK = "there is nobody to ask"
NOBODY = Settlement(REFUSED, "nobody", _NOBODY_TO_ASK)
BY_REFUSAL = Settlement(REFUSED, "person", "refused")
BY_A_NEW_RULE = Settlement(ALLOWED, "rule", "another answer allows it from now on")


def without_anybody(decision: PolicyDecision) -> Settlement:
    """Why a person was needed, unless it is only that no rule allows it: what another flag or rule
    would not change is said."""
    if decision.effect == "allow":
        why = f"{decision.reason}, but no answer applies only once"
        return Settlement(REFUSED, "nobody", f"{why}, and {_NOBODY_TO_ASK}")
    if decision.unruled:
        more = "" if decision.reason == NO_RULE else f": {decision.reason}"
        return Settlement(REFUSED, "default", f"{_NOBODY_TO_ASK}{more}")
    return Settlement(REFUSED, "nobody", f"{decision.reason}, and {_NOBODY_TO_ASK}")


async def asked(asker: PermissionsProvider, request: PermissionRequest) -> Settlement:
    option_id = await asker.request_permission(request)
    if option_id is None:
        return BY_REFUSAL
    if not has_option(request, option_id):
        why = f"the answer {option_id!r} is not one of the options"
        return Settlement(REFUSED, "host", why)
    try:
        return chosen_option(request, option_id)
    except ValueError as error:
        return Settlement(REFUSED, "host", str(error))


def has_option(question: facts.PermissionQuestion, option_id: str) -> bool:
    return option_id in {each.id for each in (*question.options, *question.offers)}


def chosen_option(
    question: facts.PermissionQuestion, option_id: str, *, confirmed: bool = False
) -> Settlement:
    """Raises ValueError for what has to be confirmed."""
    to_confirm = {offer.id for offer in question.offers if offer.confirm}
    if option_id in to_confirm and not confirmed:
        raise ValueError(f"{question.danger}: to allow it from now on, confirm the answer")
    return Settlement(CHOSEN, "person", "answered", option_id)
