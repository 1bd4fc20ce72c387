"""What is peculiar about some agents, each with its reason. One line an agent, or no line."""

from __future__ import annotations

from typing import Literal

from dragoman.host.permissions.claims import Habits


class Quirks(Habits, frozen=True, kw_only=True):
    """Workarounds for an agent that deviates from the protocol."""

    missing_file: Literal["error", "empty"] = "error"
    """What reading a missing file returns: an error, or empty text."""


_BY_AGENT_NAME = {
    # Reads a file before it creates it and gives up on any error, whatever its code.
    "gemini-cli": Quirks(missing_file="empty"),
    "gemini": Quirks(missing_file="empty"),
    # Calls the tool by which it edits with most models `other`, and says its name in the title.
    "cline": Quirks(edit_titles=("apply_patch: ",)),
    # Asks for all pending actions at once and names none of them, with two ways to say yes once;
    # its editor takes a command as input.
    "openhands cli acp agent": Quirks(
        permission_titles=("Confirm Agent Actions",),
        edit_verbs=("view", "create", "str_replace", "insert", "undo_edit"),
    ),
}


def quirks_for(agent_name: str) -> Quirks:
    """By the name an agent gives itself, or the one it is known by here."""
    return _BY_AGENT_NAME.get(agent_name.lower(), Quirks())
