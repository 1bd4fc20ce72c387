"""Reads what git prints about the files of a folder. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from dragoman.session.facts import FileStatus

LINK = "120000"
PROGRAM = "100755"
PLAIN = "100644"
FOLDER = "040000"
"""Of a folder that has no files; git has no entry for it, a snapshot lists it."""


class Blob(msgspec.Struct, frozen=True):
    """A file in a tree: its kind, and the id of its content."""

    mode: str
    id: str


class TreeChange(msgspec.Struct, frozen=True):
    """A file that differs between two trees; `old_path` where it was moved."""

    path: bytes
    status: FileStatus
    before: Blob | None = None
    after: Blob | None = None
    old_path: bytes | None = None


class FolderListing(msgspec.Struct):
    """What differs between the index and the folder."""

    known: dict[bytes, None] = {}
    """Files of the index that were changed, or are gone."""
    new: dict[bytes, None] = {}
    folders: list[bytes] = []
    """Those without a file that the index knows; a repository of its own is among them."""


def listed(printed: bytes) -> FolderListing:
    """Of `git ls-files -z -t -o -m -d --directory`."""
    found = FolderListing()
    for entry in printed.split(b"\0"):
        tag, path = entry[:1], entry[2:]
        if tag != b"?":
            found.known[path] = None
        elif path.endswith(b"/"):
            found.folders.append(path.rstrip(b"/"))
        else:
            found.new[path] = None
    found.known.pop(b"", None)
    return found


_STATUSES: dict[str, FileStatus] = {"A": "added", "D": "deleted", "R": "renamed"}


def tree_changes(printed: bytes) -> list[TreeChange]:
    """Of `git diff-tree -r -z --raw --no-abbrev`."""
    return list(_tree_changes(printed.split(b"\0")))


def each_tree_changes(printed: bytes) -> Iterator[list[TreeChange]]:
    """The same with `--no-renames --stdin`, for each pair of trees: a line names them."""
    at = 0
    while at < len(printed):
        start = at = printed.index(b"\n", at) + 1
        while printed[at : at + 1] == b":":  # then a path, which may hold anything but a NUL
            at = printed.index(b"\0", printed.index(b"\0", at) + 1) + 1
        yield tree_changes(printed[start:at])


def _tree_changes(fields: Sequence[bytes]) -> Iterator[TreeChange]:
    at = 0
    while at < len(fields) and fields[at].startswith(b":"):
        old_mode, new_mode, old_id, new_id, letter = fields[at][1:].decode().split(" ")
        is_move = letter[0] in "RC"
        old_path, path = fields[at + 1], fields[at + (2 if is_move else 1)]
        at += 3 if is_move else 2
        yield TreeChange(
            path,
            _STATUSES.get(letter[0], "modified"),
            before=_blob(old_mode, old_id),
            after=_blob(new_mode, new_id),
            old_path=old_path if is_move else None,
        )


def _blob(mode: str, blob_id: str) -> Blob | None:
    return None if mode == "000000" else Blob(mode, blob_id)


def tree_entries(printed: bytes) -> dict[bytes, Blob]:
    """Of `git ls-tree -z`."""
    entries: dict[bytes, Blob] = {}
    for entry in printed.split(b"\0"):
        about, _, path = entry.partition(b"\t")
        if path:
            mode, _, blob_id = about.decode().split(" ")
            entries[path] = Blob(mode, blob_id)
    return entries


def contents(printed: bytes) -> Iterator[bytes | None]:
    """Of `git cat-file --batch`, in order; None for what is missing."""
    at = 0
    while at < len(printed):
        end = printed.index(b"\n", at)
        head = printed[at:end].split(b" ")
        if head[-1] == b"missing":
            yield None
            at = end + 1
        else:
            size = int(head[2])
            yield printed[end + 1 : end + 1 + size]
            at = end + 2 + size
