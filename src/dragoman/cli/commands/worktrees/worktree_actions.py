"""What `dragoman worktrees` does."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from typing import Any

import msgspec

from dragoman.cli.commands.worktrees.worktree_run import common_here
from dragoman.cli.exit_codes import Exit, tell
from dragoman.cli.render.printed_json import indented_json
from dragoman.cli.run.hub_access import opened_store
from dragoman.errors import MergeConflict, WorktreeError
from dragoman.hub.cluster.owner import is_gone
from dragoman.safe_text import sanitise, single_line
from dragoman.store.base import Store
from dragoman.worktrees.merge_back import MergeWay
from dragoman.worktrees.worktree_record import WorktreeRecord
from dragoman.worktrees.worktrees import Worktree, Worktrees

_HOUR, _DAY = 3600, 86_400


def run(options: argparse.Namespace) -> int:
    work = {
        "list": _list,
        "diff": _diff,
        "path": _path,
        "setup": _setup,
        "merge": _merge,
        "remove": _remove,
        "rm": _remove,
        "prune": _prune,
    }
    return asyncio.run(work[options.action](options))


async def _found(name: str) -> WorktreeRecord:
    return Worktrees().find(name, await common_here())


# ── looking ─────────────────────────────────────────────────────────────────────────────────────


async def _list(options: argparse.Namespace) -> int:
    worktrees = Worktrees()
    records = worktrees.all(None if options.all else await common_here())
    rows = [await worktree_fields(worktrees.opened(each)) for each in records]
    if options.json:
        sys.stdout.write(indented_json(rows))
    elif not rows:
        print("no worktrees")
    else:
        print("\n".join(_table(rows)))
    return Exit.DONE


async def worktree_fields(worktree: Worktree) -> dict[str, Any]:
    """Its record, and what was changed in it; with a `problem` if that cannot be said."""
    fields: dict[str, Any] = msgspec.to_builtins(worktree.record)
    try:
        origin = worktree.origin
        base, result = await origin.tree_of(worktree.record.base), await worktree.result()
        fields["files"] = len(await origin.changes(base, result))
        fields["added"], fields["removed"] = await origin.line_counts(base, result)
    except WorktreeError as error:
        fields["problem"] = str(error)
    return fields


def _table(rows: list[dict[str, Any]]) -> list[str]:
    width = max(len(row["name"]) for row in rows)
    lines: list[str] = []
    for row in rows:
        head = f"{row['name']:<{width}}  {_age(row['createdAt']):>8}  {_changes(row):<22}"
        title = single_line(row["title"], 60) if row["title"] else ""
        lines += [f"{head}  {title}".rstrip(), f"{'':<{width}}  {sanitise(row['path'])}"]
    return lines


def _changes(row: dict[str, Any]) -> str:
    if row["state"] != "ready" and row["state"] != "branch":
        return "left by a killed process"
    if "problem" in row:
        return "cannot be read"
    if not row["files"]:
        return "unchanged"
    files = f"{row['files']} file{'' if row['files'] == 1 else 's'}"
    where = " (branch)" if row["state"] == "branch" else ""
    return f"{files} +{row['added']} -{row['removed']}{where}"


def _age(since: float) -> str:
    seconds = max(0, time.time() - since)
    if seconds < _HOUR:
        return f"{int(seconds // 60)} min"
    return f"{int(seconds // _HOUR)} h" if seconds < 2 * _DAY else f"{int(seconds // _DAY)} days"


async def _diff(options: argparse.Namespace) -> int:
    worktree = Worktrees().opened(await _found(options.name))
    if options.json:
        origin = worktree.origin
        base = await origin.tree_of(worktree.record.base)
        found = await origin.changes(base, await worktree.result())
        rows = [
            {"path": os.fsdecode(each.path), "status": each.status}
            for each in found
            if _is_wanted(os.fsdecode(each.path), options.paths)
        ]
        sys.stdout.write(indented_json(rows))
        return Exit.DONE
    text = await worktree.diff(options.paths)
    # Into a file it goes as it is, so that it can be applied.
    sys.stdout.write(sanitise(text) if sys.stdout.isatty() else text)
    return Exit.DONE


def _is_wanted(path: str, wanted: list[str]) -> bool:
    names = [each.rstrip("/") for each in wanted]
    return not names or any(path == each or path.startswith(f"{each}/") for each in names)


async def _path(options: argparse.Namespace) -> int:
    record = await _found(options.name)
    if not os.path.isdir(record.path):  # noqa: ASYNC240 - nothing else runs
        raise WorktreeError(f"{record.name} has no files any longer; its branch is {record.branch}")
    print(record.path)
    return Exit.DONE


async def _setup(options: argparse.Namespace) -> int:
    record = await _found(options.name)
    if record.setup_code is None:
        raise WorktreeError(
            f"no setup ran in {record.name}; `worktrees.setup` in the settings is the command"
        )
    text = await asyncio.to_thread(Worktrees().folder_of(record).setup_log.read_text, "utf-8")
    tell(f"{record.setup!r} ended with {record.setup_code}")
    sys.stdout.write(sanitise(text))
    return Exit.DONE


# ── merging ─────────────────────────────────────────────────────────────────────────────────────


async def _merge(options: argparse.Namespace) -> int:
    worktrees = Worktrees()
    worktree = worktrees.opened(record := await _found(options.name))
    async with opened_store() as store:
        await check_unused(store, record)
    try:
        with worktree.folder.alone(record.name):
            way: MergeWay | None = "patch" if options.patch else None
            done = await worktree.merge(way=way, message=options.message or "")
    except MergeConflict as error:
        if options.json:
            sys.stdout.write(indented_json({"merged": False, "conflicts": error.reasons}))
        raise
    if not options.keep:
        await worktrees.remove(record, force=True)
    if options.json:
        told: dict[str, Any] = {"merged": True, **msgspec.to_builtins(done)}
        sys.stdout.write(indented_json(told))
        return Exit.DONE
    count = len(done.paths)
    files = f"{count} file{'' if count == 1 else 's'}"
    if done.way == "patch":
        print(f"changed {files} in {sanitise(record.repository)}; nothing was committed")
    else:
        print(f"merged {files} into {sanitise(record.repository)}: {(done.commit or '')[:12]}")
    return Exit.DONE


async def check_unused(store: Store, record: WorktreeRecord) -> None:
    """Raises WorktreeError while a session runs in it, in whichever process."""
    for session_id, owner in await store.owned():
        session = None if is_gone(owner) else await store.session(session_id)
        if session is not None and f"{session.cwd}/".startswith(f"{record.path}/"):
            raise WorktreeError(
                f"the session {session_id} runs in {record.name}; close it first: `dragoman "
                f"sessions close {session_id}`"
            )


# ── removing ────────────────────────────────────────────────────────────────────────────────────


async def _remove(options: argparse.Namespace) -> int:
    worktrees = Worktrees()
    records = [await _found(name) for name in options.names]
    async with opened_store() as store:
        for record in records:
            await check_unused(store, record)
    for record in records:
        await worktrees.remove(record, force=options.force)
    _tell_removed(records, options, "removed")
    return Exit.DONE


async def _prune(options: argparse.Namespace) -> int:
    worktrees = Worktrees()
    async with opened_store() as store:
        in_use = await _used(store, worktrees.all())
    gone = await worktrees.prune(days=options.older_than, dry=options.dry_run, but=in_use)
    _tell_removed(gone, options, "would remove" if options.dry_run else "removed")
    return Exit.DONE


async def _used(store: Store, records: list[WorktreeRecord]) -> list[str]:
    found: list[str] = []
    for record in records:
        try:
            await check_unused(store, record)
        except WorktreeError:
            found.append(record.id)
    return found


def _tell_removed(records: list[WorktreeRecord], options: argparse.Namespace, what: str) -> None:
    if options.json:
        sys.stdout.write(indented_json([msgspec.to_builtins(each) for each in records]))
    elif not records:
        print("nothing to remove")
    for record in () if options.json else records:
        print(f"{what} {record.name} ({sanitise(record.path)})")
