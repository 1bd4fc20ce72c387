"""Fields of a raw input that change nothing of what is done, by their names as they are compared.

Any other text next to a command, a file or an address may be run too, and any other name next to a
file may be a file too: no rule can say what it is for. Pure.
"""

from __future__ import annotations

import re

from dragoman.host.claims.input_keys import END_KEYS, SELECTING

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
_SEARCHING = SELECTING | {"outputmode", "regex"}
_TEXT_ENDINGS = ("content", "string", "str", "text")
# Parts of the names of what is written, or told to a model.
_WRITTEN = (
    *("body", "code", "content", "edit", "insert", "instruction", "markdown", "new", "old"),
    *("snippet", "source", "str", "summary", "text"),
)
_LOOKED_FOR = (
    *("find", "instruction", "pattern", "prompt", "query", "question", "search", "text"),
)
_TECHNICAL = frozenset(
    ("accept", "contenttype", "encoding", "format", "language", "method", "mimetype", "type")
)
# What may be switched on next to a command without changing what it does.
_SWITCHES = frozenset(
    (
        *("async", "background", "blocking", "captureoutput", "isbackground", "isinput"),
        *("interactive", "isinteractive", "login", "loginshell", "pty", "requiresapproval"),
        *("runinbackground", "safe", "safetoautorun", "sandbox", "sandboxed", "stream"),
        *("streamoutput", "tty", "usepty", "usetty", "wait", "waitforcompletion"),
    )
)
_word = re.compile(r"[\w:./*@+-]*")
_name_alone = re.compile(r"[\w-]*")
_file_name = re.compile(r"\S*(?:/|\.\w)\S*")


def may_be_run(key: str, text: str) -> bool:
    """Whether a text next to a command might be a part of it, by its key and by what it says."""
    if not text or key in _PROSE:
        return False
    is_tag = key in _ONE_WORD or key.endswith("id") or key.startswith("timeout")
    # Most agents mean by these where a request comes from; it may lead elsewhere, too.
    word = _name_alone if key in END_KEYS else _word
    return not (is_tag and word.fullmatch(text))


def may_switch(key: str) -> bool:
    """Whether what is switched on next to a command might make it another one."""
    return bool(key) and key not in _SWITCHES and key not in IDLE


def may_be_done(key: str, text: str, *, written: bool) -> bool:
    """Whether a text next to a file or an address might say what else is done; one word cannot.
    `written`: the file is changed."""
    if len(text.split()) < 2 or key in _PROSE or key in _SEARCHING:
        return False
    if written and "\n" in text:
        return False  # of several lines: what is written
    return not any(part in key for part in (_WRITTEN if written else _LOOKED_FOR))


def may_name_a_file(key: str, text: str) -> bool:
    """Whether a text next to the name of a file might be the name of another one."""
    if key in _PROSE or key in _SEARCHING or key in _TECHNICAL:
        return False
    if key.endswith((*_TEXT_ENDINGS, "id")):
        return False
    return _file_name.fullmatch(text) is not None
