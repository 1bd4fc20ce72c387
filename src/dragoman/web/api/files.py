"""Endpoints for files: folders to choose from, mentions, uploads."""

from __future__ import annotations

import asyncio
import os

from starlette.requests import Request

from dragoman.host.workspace.file_search import FileSearch
from dragoman.host.workspace.subfolders import branch_of, folders_in
from dragoman.web.context import Server
from dragoman.web.failures import RequestFailed
from dragoman.web.placement import plain
from dragoman.web.shapes.session_shapes import (
    Files,
    FilesQuery,
    FoldersQuery,
    FoundFile,
    Subfolders,
    Upload,
    UploadQuery,
)

_OCTETS = "application/octet-stream"


# ── where a session may work ──────────────────────────────────────────────────────────────────


async def list_folder(server: Server, query: FoldersQuery) -> Subfolders:
    return await asyncio.to_thread(_listing, query.path or server.cwd)


def _listing(path: str) -> Subfolders:
    found = plain(path)
    folders, complete, problem = list[str](), True, None
    try:
        folders, complete = folders_in(found)
    except OSError as error:
        problem = error.strerror or "cannot be read"
    parent = os.path.dirname(found)
    return Subfolders(
        path=found,
        parent=None if parent == found else parent,
        folders=folders,
        complete=complete,
        branch=branch_of(found) if problem is None else None,
        problem=problem,
    )


# ── for mentions ──────────────────────────────────────────────────────────────────────────────


async def complete(server: Server, session_id: str, query: FilesQuery) -> Files:
    record = await server.hub.record(session_id)
    if not server.hub.hosts.has(record):
        return Files(files=[], complete=False)  # they are on another machine
    roots = [record.cwd, *record.additional_directories] if record.cwd else []
    return await asyncio.to_thread(_complete, roots, query)


def _complete(roots: list[str], query: FilesQuery) -> Files:
    files: list[FoundFile] = []
    complete = True
    for root in roots:
        search = FileSearch(root)
        # What is beneath the session's own folder is mentioned by its short name.
        prefix = "" if root == roots[0] else f"{root.rstrip('/')}/"
        for match in search.find(query.q, query.limit):
            kind = "folder" if match.is_folder else "file"
            files.append(FoundFile(path=f"{prefix}{match.path}", kind=kind))
        complete = complete and search.complete
    return Files(files=files[: query.limit], complete=complete)


async def upload(server: Server, query: UploadQuery, body: bytes, request: Request) -> Upload:
    if not body:
        raise RequestFailed(400, "invalid", "the file is empty")
    kind = request.headers.get("content-type", _OCTETS).partition(";")[0].strip().lower()
    kept = await asyncio.to_thread(server.uploads.keep, body, query.name, kind)
    return Upload(
        uri=kept.path.as_uri(), name=kept.path.name, mime_type=kept.mime_type, size=kept.size
    )
