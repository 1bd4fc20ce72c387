"""What the options of `dragoman acp` mean for a session that another process runs.

A process that only keeps an agent warm gives the session up. Any other owner gets the rules with
each prompt, and what only the process that runs the agent can do, such as a fence, is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from dragoman.errors import CommandRefused, SessionOwned
from dragoman.host.rules.rule import Rule
from dragoman.hub.cluster import commands as c
from dragoman.hub.cluster.owner import is_gone
from dragoman.hub.cluster.sent_terms import sent_terms
from dragoman.hub.hub import Hub
from dragoman.session.content import Content


class OwnTerms(msgspec.Struct, kw_only=True, frozen=True):
    """`typed` are the options that stand for the `rules`; `alone` are those that only the process
    that runs the agent can carry out."""

    rules: Sequence[Rule] = ()
    typed: Sequence[str] = ()
    alone: Sequence[str] = ()

    async def prompt(self, hub: Hub, session_id: str, content: list[Content]) -> c.Command:
        """The command that sends a prompt under these terms. Raises CommandRefused where they
        cannot hold, and what `Hub.open` raises."""
        if not (self.rules or self.alone) or session_id in hub.live:
            return c.Prompt(content)
        owner = await hub.store.owner(session_id)
        runs_elsewhere = owner is not None and not is_gone(owner)
        if runs_elsewhere and not await hub.elsewhere.take_from_warm(session_id):
            if self.alone:
                raise self._refusal(session_id)
            sent = sent_terms(hub.owner, self.rules, self.typed, home=hub.hosts.home)
            return c.RuledPrompt(content, sent)
        if self.alone:
            try:
                await hub.open(session_id)
            except SessionOwned as error:
                raise self._refusal(session_id) from error
        return c.Prompt(content)

    def _refusal(self, session_id: str) -> CommandRefused:
        sentence = (
            f"another process is running session {session_id}, without {' '.join(self.alone)} of "
            "this `dragoman acp`: end it there, or start `dragoman acp` without that option"
        )
        return CommandRefused(session_id, "unsupported", sentence)


NO_TERMS = OwnTerms()
