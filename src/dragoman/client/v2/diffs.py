"""A change of several files, as version 2 tells it, as one `Diff` for each file. Pure.

The list of changes says what is done; the patch, in Git's form, is cut into the part of each file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dragoman.host.permissions.patch_names import PatchNames
from dragoman.schema import codec, v2
from dragoman.schema.base import Unknown
from dragoman.session.content import Diff, ToolContent, UnknownItem

GIT = "git_patch"
# Every line of a hunk begins with a sign, so this stands at the beginning of headers alone.
_header = re.compile(r"^(?=diff --git )", re.MULTILINE)
_escape = re.compile(r"\\([0-7]{3}|.)")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}


def diffs(wire: v2.Diff) -> list[ToolContent]:
    """An item for each change. A patch that belongs to none of them is shown with the first, and
    is an item more, so that no rule allows what nobody announced.

    There is always one: a diff that does not say what is changed is something nobody understands.
    """
    if not wire.changes:
        return [UnknownItem("diff", codec.encode(wire).decode())]
    sections = _sections(wire.patch)
    items: list[ToolContent] = []
    for change in wire.changes:
        if isinstance(change, Unknown):
            items.append(UnknownItem(f"diff/{change.kind}", change.raw.decode()))
        else:
            items.append(_diff(change, sections))
    _keep_rest(items, sections)
    for item in items[:1]:
        if isinstance(item, Diff):
            item.meta = wire.meta
    return items


def _diff(
    change: v2.DiffAdd | v2.DiffDelete | v2.DiffModify | v2.DiffMove | v2.DiffCopy,
    sections: list[str],
) -> Diff:
    diff = Diff(change.path, "", operation=str(change.__struct_config__.tag))
    if isinstance(change, v2.DiffMove | v2.DiffCopy):
        diff.old_path = change.old_path
    diff.file_type, diff.mime_type = change.file_type, change.mime_type
    mine = next((section for section in sections if _is_about(section, diff.paths)), None)
    if mine is not None:
        sections.remove(mine)
        diff.patch = mine
    return diff


def _keep_rest(items: list[ToolContent], sections: list[str]) -> None:
    rest = "".join(sections)
    first = next((item for item in items if isinstance(item, Diff)), None)
    if rest:
        items.append(UnknownItem("patch", rest))
    if rest and first is not None:
        first.patch = (first.patch or "") + rest


def _sections(patch: v2.DiffPatch | None) -> list[str]:
    if patch is None or not patch.text:
        return []
    if patch.format != GIT:
        return [patch.text]
    return [section for section in _header.split(patch.text) if section]


def _is_about(section: str, paths: Sequence[str]) -> bool:
    """Whether it names these files and no other: what else it named would be neither judged nor
    shown."""
    names = PatchNames(section)
    found = [_unquoted(name) for name in names]
    return bool(found) and names.is_clear and all(_is_one_of(name, paths) for name in found)


def _is_one_of(name: str, paths: Sequence[str]) -> bool:
    # Git names files from the top of the repository, most often with a letter before each.
    short = [name[2:]] if name.startswith(("a/", "b/")) else []
    ends = [f"/{each}" for each in (name, *short) if each and not each.startswith("/")]
    return name in paths or any(path.endswith(end) for path in paths for end in ends)


def _unquoted(name: str) -> str:
    """Git quotes what is not plain: in double quotes, other bytes in octal."""
    if not (len(name) > 1 and name.startswith('"') and name.endswith('"')):
        return name
    plain = _escape.sub(_unescaped, name[1:-1])
    return plain.encode("latin-1", "replace").decode("utf-8", "replace")


def _unescaped(found: re.Match[str]) -> str:
    code = found[1]
    return chr(int(code, 8) & 255) if len(code) == 3 else _ESCAPES.get(code, code)
