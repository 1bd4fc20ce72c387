"""Fields of a raw input that change nothing of what is done, by their names as they are compared.

Any other text next to a command, a file or an address may be run too, and any other name next to a
file may be a file too: no rule can say what it is for. Pure.
"""

from __future__ import annotations

from dragoman.host.claims.input_keys import (
    CHANGE_KEYS,
    DOCUMENT_KEYS,
    END_KEYS,
    NEW_TEXT_KEYS,
    READ_WITH_FILES,
    REPLACING_KEYS,
    ROOT_KEYS,
    SELECTING,
    USER_KEYS,
    VERB_KEYS,
)
from dragoman.host.claims.said_actions import PROGRAMS
from dragoman.lazy_pattern import lazy_pattern

IDLE = frozenset(
    (
        *("description", "explanation", "reason", "summary", "thought", "title"),
        *("timeout", "timeoutms", "timeoutsecs", "timeoutseconds", "maxoutputlength"),
        *("background", "isbackground", "runinbackground", "blocking", "wait"),
        *("id", "callid", "toolcallid", "limit", "offset", "line", "lines", "replaceall", "type"),
    )
)
"""A person loses nothing by not seeing them."""
PROSE = frozenset(
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
# Read to its end next to a file, whatever it is; a person, or a verb, is judged for itself.
_WORDY = (READ_WITH_FILES | PROSE | _SEARCHING | (NEW_TEXT_KEYS | REPLACING_KEYS | CHANGE_KEYS)) - (
    USER_KEYS | ROOT_KEYS | DOCUMENT_KEYS
)
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
# What the last part of a name may be that only sorts what it names.
_SORTING_ENDINGS = (
    *("category", "encoding", "format", "id", "kind", "language", "level", "mode", "risk"),
    *("order", "orderby", "sort", "sortby", "status", "style", "type", "version"),
)
# Parts of the names of numbers that say which part of a file is meant.
_MEASURES = frozenset(
    (
        *("bytes", "chars", "columns", "context", "count", "depth", "end", "head", "height"),
        *("index", "length", "limit", "line", "lines", "max", "min", "number", "offset", "page"),
        *("pages", "position", "range", "results", "row", "rows", "size", "start", "tail"),
        *("timeout", "width"),
    )
)
# Parts of the names of switches that have something run next to a file, or with more rights.
_STARTING_PARTS = frozenset(
    (
        *("admin", "chmod", "chown", "commit", "deploy", "elevated", "eval", "exec", "executable"),
        *("execute", "hook", "hooks", "install", "launch", "publish", "push", "restart", "root"),
        *("run", "runas", "send", "setuid", "shell", "spawn", "sudo", "upload"),
    )
)
# The same for those that change it.
_CHANGING_PARTS = frozenset(
    (
        *("append", "apply", "clear", "create", "delete", "edit", "erase", "fix", "insert"),
        *("modify", "move", "overwrite", "patch", "prune", "purge", "remove", "rename"),
        *("replace", "reset", "save", "set", "touch", "trim", "truncate", "unlink", "update"),
        *("value", "values", "wipe", "write"),
    )
)
# What a call that only reads may say that it does.
_READING_VERBS = frozenset(
    (
        *("", "all", "auto", "binary", "cat", "content", "count", "default", "dir", "directory"),
        *("exact", "fast", "file", "files", "files_with_matches", "find", "full", "fuzzy", "get"),
        *("glob", "grep", "head", "indentation", "line", "lines", "list", "literal", "ls", "open"),
        *("r", "range", "raw", "rb", "read", "read_file", "readonly", "read-only", "recursive"),
        *("regex", "rt", "search", "show", "slice", "stat", "tail", "text", "tree", "view"),
    )
)
# Of programs that are languages too, such words say how something is shown.
_LANGUAGES = frozenset(
    (
        *("bash", "dash", "deno", "fish", "gawk", "awk", "git", "ksh", "lua", "perl", "php"),
        *("powershell", "pwsh", "python", "python3", "ruby", "sed", "sh", "terraform", "zsh"),
    )
)
_CALLED_BY = (PROGRAMS | {"screen", "setsid", "tmux", "reboot", "poweroff", "halt"}) - _LANGUAGES
_parts = lazy_pattern(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_duration = lazy_pattern(r"\d+(?:\.\d+)?\s*(?:m?s|sec|secs|seconds|m|min|minutes|h)?")
_measure = lazy_pattern(r"[\d\s,:;.-]+")
_word = lazy_pattern(r"[\w:./*@+-]*")
_name_alone = lazy_pattern(r"[\w-]*")
_file_name = lazy_pattern(r"\S*(?:/|\.\w)\S*")


def may_be_run(key: str, text: str) -> bool:
    """Whether a text next to a command might be a part of it, by its key and by what it says."""
    if not text or key in PROSE:
        return False
    if key.startswith("timeout"):
        return not _duration.fullmatch(text)
    is_tag = (key in _ONE_WORD or key.endswith("id")) and text.casefold() not in _CALLED_BY
    # Most agents mean by these where a request comes from; it may lead elsewhere, too.
    word = _name_alone if key in END_KEYS else _word
    return not (is_tag and word.fullmatch(text))


def may_switch(key: str) -> bool:
    """Whether what is switched on next to a command might make it another one."""
    return bool(key) and key not in _SWITCHES and key not in IDLE


def may_be_done(key: str, text: str, *, written: bool) -> bool:
    """Whether a text next to a file or an address might say what else is done; one word cannot.
    `written`: the file is changed."""
    if len(text.split()) < 2 or key in PROSE or key in _SEARCHING:
        return False
    if written and "\n" in text:
        return False  # of several lines: what is written
    return not any(part in key for part in (_WRITTEN if written else _LOOKED_FOR))


def may_be_a_program(key: str, name: str, text: str, *, written: bool) -> bool:
    """Whether one word next to a file or an address might say what else is run, or what is done
    with it. `written`: the file is changed."""
    word = text.casefold()
    if " " in text or not word:
        return False
    if key in _ONE_WORD or key in _TECHNICAL or key in IDLE or key.endswith(_SORTING_ENDINGS):
        return word in _CALLED_BY
    if key in _WORDY or key.endswith(_TEXT_ENDINGS):
        return False
    if not _MEASURES.isdisjoint(parts_of(name)) and _measure.fullmatch(word):
        return False
    told = _WRITTEN if written else _LOOKED_FOR
    return not any(part in key for part in told)


def may_do_more(name: str, *, written: bool) -> bool:
    """Whether what is switched on, or counted, next to a file might say what else is done."""
    parts = parts_of(name)
    return not (
        _STARTING_PARTS.isdisjoint(parts) and (written or _CHANGING_PARTS.isdisjoint(parts))
    )


def may_change(key: str, text: str) -> bool:
    """Whether a call that is said to read says with a verb that it does something else."""
    if key == "method":
        return text.casefold() not in ("", "get", "head")
    return key in VERB_KEYS and text.strip().casefold() not in _READING_VERBS


def parts_of(name: str) -> frozenset[str]:
    """The words that a name of a field is made of."""
    return frozenset(part.casefold() for part in _parts.findall(name[:_LONGEST_NAME]))


_LONGEST_NAME = 256


def may_name_a_file(key: str, text: str) -> bool:
    """Whether a text next to the name of a file might be the name of another one."""
    if key in PROSE or key in _SEARCHING or key in _TECHNICAL:
        return False
    if key.endswith((*_TEXT_ENDINGS, "id")):
        return False
    return _file_name.fullmatch(text) is not None
