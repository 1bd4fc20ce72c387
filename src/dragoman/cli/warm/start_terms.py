"""What an agent was started with, to be compared with what the next run would start it with.

A run may use an agent that stays only if it would have started the same one: the same program and
settings, in the same environment. What differs from terminal to terminal does not count.
"""

from __future__ import annotations

import fnmatch
import os
import shutil
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman._version import __version__
from dragoman.cli.options import LISTS
from dragoman.cli.run.agent_setup import on_limit_of
from dragoman.transport.stdio import AgentCommand

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dragoman.cli.run.job import Job
    from dragoman.hub.cluster.warm_notes import WarmNote
    from dragoman.store.records import SessionRecord

OF_THE_TERMINAL = (
    "_", "SHLVL", "PWD", "OLDPWD", "COLUMNS", "LINES", "TERM", "COLORTERM", "NO_COLOR", "TMUX*",
    "STY", "WINDOW", "WINDOWID", "SSH_TTY", "SSH_CLIENT", "SSH_CONNECTION", "GPG_TTY", "TERM_*",
    "ITERM_*", "LC_TERMINAL*", "KITTY_*", "WEZTERM_*", "ALACRITTY_*", "GHOSTTY_*", "KONSOLE_*",
    "VTE_*", "GNOME_TERMINAL_*", "TILIX_ID", "TRACEPARENT", "TRACESTATE",
)  # fmt: skip
"""Variables that say from where a command was typed: a second terminal is the same environment.
`DRAGOMAN_STORE` is taken out of it before, since agents must not see it."""


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """What of it counts."""
    return {
        name: value
        for name, value in variables.items()
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in OF_THE_TERMINAL)
    }


def start_hash(job: Job, salt: str) -> str:
    """Of everything the agent of this run is started with: it says nothing about any of it."""
    from _blake2 import blake2b  # hashlib would load OpenSSL for it

    agent = job.agent
    started_with = (
        __version__,
        environment(os.environ),
        _umask(),
        _programs(job),
        job.command,
        job.proxies,
        job.mcp_servers,
        agent.quirks,
        agent.protocol,
        agent.providers,
        agent.offer,
        job.fence,
        job.limits,
        job.snapshots,
        on_limit_of(job),
        job.options.timeout,
        job.question_timeout,
    )
    encoded = msgspec.json.encode(started_with, enc_hook=repr, order="deterministic")
    return blake2b(encoded, key=salt.encode(), digest_size=16).hexdigest()


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _programs(job: Job) -> list[tuple[int, int] | None]:
    """Which they are now: one that was replaced is another one."""
    return [_version_of(each) for each in (job.command, *job.proxies)]


def _version_of(target: Any) -> tuple[int, int] | None:
    if not isinstance(target, AgentCommand):
        return None
    try:
        found = os.stat(shutil.which(target.command) or target.command)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def fits(job: Job, note: WarmNote, record: SessionRecord, *, attended: bool) -> bool:
    """Whether a run with this job can be done by the agent that stays, and not notice it.
    `attended` says whether someone answers its questions."""
    options = job.options
    lists = any(getattr(options, f"list_{what}") for what in LISTS)
    if lists or options.record is not None or options.output in ("json", "jsonl"):
        return False  # lists and frames are for the process that has the agent
    if job.system_prompt not in (None, record.system_prompt):
        return False
    if not set(job.more_folders).issubset(record.additional_directories):
        return False
    if attended and not note.person:
        return False
    if could_write(job, attended=attended) and not note.writes:
        return False
    return note.start == start_hash(job, note.salt)


def could_write(job: Job, *, attended: bool) -> bool:
    """Whether the agent of this run is to be offered to write through us."""
    return job.policy.could_allow("write", agent=job.agent.name, person=attended)
