"""Fields of a raw input that change nothing of what is done, by their names as they are compared.

Any other text next to a command may be run too, and any other name next to a file may be a file
too: no rule can say what it is for. Pure.
"""

from __future__ import annotations

import re

IDLE = frozenset(
    (
        *("description", "explanation", "reason", "summary", "thought", "title"),
        *("timeout", "timeoutms", "timeoutsecs", "timeoutseconds", "maxoutputlength"),
        *("background", "isbackground", "runinbackground", "blocking", "wait"),
        *("id", "callid", "toolcallid", "limit", "offset", "line", "lines", "replaceall", "type"),
    )
)
"""A person loses nothing by not seeing them."""
_PROSE = frozenset(
    (
        *("comment", "description", "explanation", "goal", "instruction", "instructions"),
        *("intent", "justification", "label", "message", "note", "purpose", "reason"),
        *("summary", "taskprogress", "thought", "title"),
    )
)
_ONE_WORD = frozenset(
    (
        *("background", "blocking", "directories", "encoding", "format", "isbackground"),
        *("isinput", "kind", "language", "mode", "model", "name", "patterns", "prefixrule"),
        *("dest", "destination", "dst", "from", "src", "target", "to"),
        *("priority", "requiresapproval"),
        *("risk", "risklevel", "runinbackground", "sandboxpermissions", "securityrisk"),
        *("session", "source", "status", "terminal", "type", "version", "wait"),
    )
)
_SEARCHING = frozenset(
    (
        *("exclude", "excludepattern", "excludes", "filepattern", "glob", "globs", "ignore"),
        *("include", "includepattern", "includes", "outputmode", "regex"),
    )
)
_TEXT_ENDINGS = ("content", "string", "str", "text")
_word = re.compile(r"[\w:./*@+-]*")
_file_name = re.compile(r"\S*(?:/|\.\w)\S*")


def may_be_run(key: str, text: str) -> bool:
    """Whether a text next to a command might be a part of it, by its key and by what it says."""
    if not text or key in _PROSE:
        return False
    is_tag = key in _ONE_WORD or key.endswith("id") or key.startswith("timeout")
    return not (is_tag and _word.fullmatch(text))


def may_name_a_file(key: str, text: str) -> bool:
    """Whether a text next to the name of a file might be the name of another one."""
    if key in _PROSE or key in _SEARCHING or key.endswith((*_TEXT_ENDINGS, "id")):
        return False
    return _file_name.fullmatch(text) is not None
