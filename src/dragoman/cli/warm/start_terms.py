"""What an agent was started with, to be compared with what the next run would start it with.

A run may use an agent that stays only if it would have started the same one: the same program and
settings, with the same rules, in the same surroundings. What differs from terminal to terminal does
not count. In doubt two starts are different: then a run is slower, and nothing worse.
"""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from dragoman._version import __version__
from dragoman.cli.options import LISTS
from dragoman.cli.run.agent_setup import could_write, given_rules, on_limit_of
from dragoman.host.rules.rule import RuleFields
from dragoman.hub.cluster.held_process import wake
from dragoman.hub.cluster.warm_notes import WarmNote, keyed_hash, note_of
from dragoman.hub.running.running_session import MOST_BYTES
from dragoman.transport.stdio import AgentCommand

if TYPE_CHECKING:
    from dragoman.cli.run.job import Job
    from dragoman.hub.hub import Hub
    from dragoman.session.state import SessionState
    from dragoman.store.records import SessionRecord

OF_THE_TERMINAL = (
    "_", "SHLVL", "PWD", "OLDPWD", "COLUMNS", "LINES", "TERM", "COLORTERM", "NO_COLOR", "TMUX*",
    "STY", "WINDOW", "WINDOWID", "SSH_TTY", "SSH_CLIENT", "SSH_CONNECTION", "GPG_TTY", "TERM_*",
    "ITERM_*", "LC_TERMINAL*", "KITTY_*", "WEZTERM_*", "ALACRITTY_*", "GHOSTTY_*", "KONSOLE_*",
    "VTE_*", "GNOME_TERMINAL_*", "TILIX_ID", "TRACEPARENT", "TRACESTATE",
)  # fmt: skip
"""Variables that say from where a command was typed: a second terminal is the same environment.
`DRAGOMAN_STORE` is taken out of it before, since agents must not see it."""

_STATUS = (
    "Umask", "Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs",
    "Seccomp", "Seccomp_filters", "Cpus_allowed", "Mems_allowed",
)  # fmt: skip
"""Lines of `/proc/self/status`: who a process is, and what it may do."""
_OF_A_LOGIN = re.compile(r"(?!run-)[^/]*\.scope")
"""A control group that is made for each terminal window or login, and limits nothing. One that
`systemd-run` made for a command may well limit it."""


# ── what of a run is compared ───────────────────────────────────────────────────────────────────


def start_hash(job: Job, salt: str, *, attended: bool) -> str:
    """Of everything the agent of this run is started with: it says nothing about any of it.
    `attended` says whether someone answers what it asks. To be made when the hub is there."""
    options, agent = job.options, job.agent
    started_with = (
        __version__,
        surroundings(),
        environment(os.environ),
        _programs(job),
        job.command,
        job.proxies,
        job.mcp_servers,
        agent,
        job.fence,
        job.limits,
        job.prices,
        job.snapshots,
        on_limit_of(job),
        getattr(options, "timeout", None),
        job.question_timeout,
        _rules(job),
        options.on_ask,
        attended,
        could_write(job, attended=attended),
    )
    encoded = msgspec.json.encode(started_with, enc_hook=repr, order="deterministic")
    return keyed_hash(encoded, salt)


def environment(variables: Mapping[str, str]) -> dict[str, str]:
    """What of it counts. Bytes that are not text count as what they are."""
    return {
        name: value.encode(errors="surrogateescape").hex()
        for name, value in variables.items()
        if not any(fnmatch.fnmatchcase(name, pattern) for pattern in OF_THE_TERMINAL)
    }


def surroundings(pid: int | None = None) -> list[str]:
    """Where a process is and what it may do: its folder, its root, its namespaces, to which the
    network belongs, its user, umask, limits, priority, control group and security module. Of this
    process, unless another is named. Raises OSError."""
    pid = os.getpid() if pid is None else pid
    process = Path(f"/proc/{pid}")
    found = [os.readlink(process / "cwd"), os.readlink(process / "root")]
    found.append(str(os.getpriority(os.PRIO_PROCESS, pid)))
    found += sorted(os.readlink(each) for each in (process / "ns").iterdir())
    status = (line.partition(":") for line in _lines(process / "status"))
    found += [f"{name} {value.split()}" for name, _, value in status if name in _STATUS]
    found += _lines(process / "limits")
    found += [_OF_A_LOGIN.sub("", line) for line in _lines(process / "cgroup")]
    with suppress(OSError):  # there is no such module, or it has no name for us
        found += _lines(process / "attr" / "current")
    return found


def _lines(path: Path) -> list[str]:
    return path.read_text(errors="surrogateescape").splitlines()


def _rules(job: Job) -> list[RuleFields]:
    return [RuleFields.of(rule) for rule in given_rules(job.options)]


def _programs(job: Job) -> list[tuple[str, int, int]]:
    """Files that are started, or that a program is started with, as they are now: one that was
    replaced is another one."""
    commands = [each for each in (job.command, *job.proxies) if isinstance(each, AgentCommand)]
    return [*_versions(word for each in commands for word in (each.command, *each.args))]


def _versions(words: Iterable[str]) -> Iterable[tuple[str, int, int]]:
    for word in words:
        with suppress(OSError, ValueError):
            found = os.stat(shutil.which(word) or word)
            yield word, found.st_mtime_ns, found.st_size


def settled(state: SessionState) -> dict[str, str | bool]:
    """What can be chosen in a session, as it is: its mode, and its options by their ids."""
    modes = {} if state.modes is None else {_MODE: state.modes.current}
    return modes | {f"option {each.id}": each.value for each in state.config_options}


_MODE = "mode"


# ── whether it fits ─────────────────────────────────────────────────────────────────────────────


def suits(job: Job) -> bool:
    """Whether a run, or a chat, could use an agent that stays, and a run could leave one.

    Lists, frames, logs and typed results are for the process that has the agent. One that may
    wait for the end of a limit, or raise a limit, has more to do with its agent than to send a
    prompt.
    """
    options = job.options
    lists = any(getattr(options, f"list_{what}", False) for what in LISTS)
    frames = getattr(options, "output", None) in ("json", "jsonl") or options.record is not None
    if lists or frames or options.debug or job.wanted is not None:
        return False
    if on_limit_of(job) != "fail" or any(limit.then == "ask" for limit in job.limits):
        return False
    return len(msgspec.json.encode(_rules(job))) <= MOST_BYTES  # they are sent along


def fits(
    job: Job, note: WarmNote, record: SessionRecord, state: SessionState, *, attended: bool
) -> bool:
    """Whether a run with this job can be done by the agent that stays, and not notice it. `state`
    is that of the session, `attended` says whether someone answers its questions."""
    if not suits(job) or job.system_prompt not in (None, record.system_prompt):
        return False
    if not set(job.more_folders).issubset(record.additional_directories):
        return False
    if not _is_as_opened(job, note, state):
        return False
    with suppress(OSError):
        return note.start == start_hash(job, note.salt, attended=attended)
    return False  # who knows


async def met(
    hub: Hub, job: Job, record: SessionRecord, *, attended: bool
) -> tuple[bool, WarmNote | None]:
    """Whether another process runs the session after this, and its note if that only keeps an agent
    that this job may use. One whose agent it may not use has ended; it has not if it is busy."""
    if (note := note_of(await hub.store.owner(record.id))) is None:
        return True, None
    wake(note.owner)
    state = await hub.state(record.id)
    if fits(job, note, record, state, attended=attended):
        return True, note
    return not await hub.elsewhere.take_from_warm(record.id), None


def choices(job: Job) -> list[str]:
    """What a run sets in its session."""
    options = job.options
    return [f"mode {options.mode}", f"model {options.model}", *sorted(options.set)]


def _is_as_opened(job: Job, note: WarmNote, state: SessionState) -> bool:
    """Whether the session is as the agent opened it, except for what this run sets itself. An
    option may change others: what the same choices have come to before, they come to again."""
    if choices(job) == note.choices and settled(state) == note.chosen:
        return True
    return _changed(note.settled, state) <= _chosen(job, state)


def _changed(before: dict[str, str | bool], state: SessionState) -> set[str]:
    """What is not as it was when the agent opened the session: by an earlier run, by a person, or
    by the agent. One that opens it again need not choose the same."""
    now = settled(state)
    return {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}


def _chosen(job: Job, state: SessionState) -> set[str]:
    """What this run sets, whatever it is. Agents may offer their modes as an option, too."""
    named = {f"option {option}" for option, _ in job.assignments}
    if job.options.mode is not None:
        named |= {_MODE, *_of_category(state, "mode")}
    if job.options.model is not None:
        named |= _of_category(state, "model")
    if named & _of_category(state, "mode"):
        named.add(_MODE)
    return named


def _of_category(state: SessionState, category: str) -> set[str]:
    of = (each.id for each in state.config_options if category in (each.category, each.id))
    return {f"option {each}" for each in of}
