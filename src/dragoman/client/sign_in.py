"""Sign-in: the methods an agent offers, and how each is carried out."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.client.capabilities import AuthMethod
from dragoman.errors import AuthRequired
from dragoman.safe_text import reveal


def explained(error: AuthRequired, methods: Sequence[AuthMethod]) -> AuthRequired:
    """The same error, with what to do about it in its sentence."""
    ways = "; ".join(_way(method) for method in methods)
    how = f"sign in first: {ways}" if ways else "it offers no sign-in method"
    found = AuthRequired(f"{error.message}: {how}", error.data)
    found.methods = tuple(methods)
    return found


def _way(method: AuthMethod) -> str:
    name = f"{method.id!r} ({method.name})"
    if method.description:
        name = f"{method.id!r} ({method.name}: {method.description})"
    if method.kind == "terminal":
        arguments = " ".join(method.args)
        return reveal(f"{name}, by running the agent's command with {arguments!r} in a terminal")
    return reveal(f"{name}, through authenticate")
