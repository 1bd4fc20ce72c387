"""What one session says to what its agent's programs do by themselves: its rules, and its people.

A start of a program is refused if a rule by the words of a command denies it; everything else may
run. A write beyond the fence needs a rule that names the file, or a person.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from dragoman.errors import RemoteError
from dragoman.host.fence.program_log import ProgramLog, ProgramStart
from dragoman.host.permissions.consent import Consent
from dragoman.host.permissions.wording import decision_words
from dragoman.host.rules.access import Access
from dragoman.host.rules.policy import Policy
from dragoman.host.workspace.jail import real_roots
from dragoman.host.workspace.roots import Workspace
from dragoman.session.events import Event
from dragoman.session.facts import Decision


class Overseer:
    """Judges for one session. Without `consent`, there is nobody to ask."""

    def __init__(
        self,
        workspace: Workspace,
        *,
        agent: str,
        policy: Policy,
        record: Callable[[Event], None],
        consent: Consent | None = None,
    ) -> None:
        self._workspace = workspace
        self._agent = agent
        self._policy = policy
        self._consent = consent
        self.record = record
        self.log = ProgramLog(record)

    def refusal(self, start: ProgramStart) -> Decision | None:
        """Why this program must not start, if a rule says so."""
        if not start.argv:
            return None
        access = Access(
            operation="execute",
            agent=self._agent,
            commands=(start.argv,),
            cwd=start.cwd if os.path.isabs(start.cwd) else None,
            roots=self._roots,
            fenced=True,
        )
        decision = self._policy.forbids(access, self._workspace)
        return None if decision is None else decision_words(decision)

    async def permits(self, path: str, asked: str) -> bool:
        """Whether this file may be written although the fence refuses it. `path` is its real name,
        `asked` the one that the program used."""
        if self._consent is None:
            return False
        access = Access(
            operation="write",
            agent=self._agent,
            paths=(path,),
            aliases=() if asked == path else (asked,),
            roots=self._roots,
            fenced=True,
        )
        try:
            await self._consent.permit(access, f"Write {path} (outside the fence)")
        except RemoteError:
            return False
        return True

    @property
    def _roots(self) -> tuple[str, ...]:
        return real_roots(self._workspace)
