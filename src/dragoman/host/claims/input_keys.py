"""What the value under a key of a raw input is, whatever the agent: its keys by their role.

They are compared without case or punctuation, as `spelling` of `raw_input` has them. Pure.
"""

from __future__ import annotations

PROGRAM_KEYS = frozenset(
    (
        *("argv", "bash", "exec", "executable", "execute", "program", "run", "script", "sh"),
        *("interpreter", "shell", "stdin"),
    )
)
# What has a command run by someone else: by root, or by whom it names.
ROOT_KEYS = frozenset(
    (
        *("admin", "administrator", "asadmin", "asroot", "doas", "elevate", "elevated"),
        *("privileged", "root", "runasadmin", "runasroot", "su", "sudo", "superuser"),
        *("useroot", "usesudo"),
    )
)
USER_KEYS = frozenset(
    ("asuser", "becomeuser", "runas", "runasuser", "sudouser", "uid", "user", "userid", "username")
)
# What a command next to it reads: for a shell, that is what it runs.
INPUT_KEYS = frozenset(("heredoc", "input", "inputtext", "standardinput", "stdindata"))
# What a command next to it may be followed, preceded or started by.
NEXT_KEYS = frozenset(
    (
        *("afterwards", "always", "and", "andthen", "cleanup", "else", "ensure", "entrypoint"),
        *("finally", "launcher", "runner", "wrapper"),
        *("followedby", "followup", "hook", "hooks", "next", "onerror", "onexit", "onfailure"),
        *("onsuccess", "or", "posthook", "postrun", "prehook", "prerun", "setup", "teardown"),
        *("then", "thenrun"),
    )
)
# The same next to a file or an address, which may also be handed on.
FOLLOWING_KEYS = NEXT_KEYS | {"pipe", "pipeinto", "pipethrough", "pipeto"}
LINE_LIST_KEYS = frozenset(("commands", "cmds", "scripts"))
ARGUMENT_KEYS = frozenset(("args", "arguments"))
CWD_KEYS = frozenset(
    ("chdir", "cwd", "pwd", "workdir", "workingdir", "workingdirectory", "currentdirectory")
)
FOLDER_KEYS = frozenset(
    (
        *("base", "basedir", "dir", "directory", "folder", "projectdir", "projectroot", "root"),
        *("rootdir", "runin", "workspace"),
    )
)
ENV_KEYS = frozenset(("env", "envs", "envvars", "environment", "environmentvariables"))
PATH_ENDINGS = ("path", "paths", "pathname", "file", "files", "filename", "uri")
# Where an address may stand without its scheme, or be one that is not read to its end.
ADDRESS_ENDINGS = (
    *("address", "domain", "endpoint", "host", "hostname", "href", "link", "proxy", "redirect"),
    *("site", "url", "urls"),
)
# Paths when a file is moved; words to replace, or anything, elsewhere.
END_KEYS = frozenset(("from", "to", "source", "src", "destination", "dest", "dst", "target"))
# Where something is written to, whatever the call says that it is.
OUTPUT_KEYS = frozenset(
    (
        *("dest", "destination", "dst", "into", "out", "outdir", "outfile", "output", "saveas"),
        *("outputdir", "outputdirectory", "outputfolder", "saveto", "targetdir"),
        *("destdir", "targetdirectory", "writeto", "outputto", "downloadto", "destinationdir"),
        *("downloadpath", "outpath", "outputfile", "outputpath", "savefile", "savepath"),
    )
)
# A path wherever something is changed.
NEW_NAME_KEYS = frozenset(("newname", "rename"))
# Where agents put an object with a file's name for each key.
MAPPING_KEYS = frozenset(("changes", "edits", "files"))
# What such an object has instead where it is one change and not a change for each file.
FIELDS = frozenset(
    (
        *("add", "content", "delete", "diff", "end", "kind", "line", "lines", "location", "new"),
        *("newstring", "newtext", "old", "oldstring", "oldtext", "operation", "options", "patch"),
        *("position", "range", "replaceall", "selection", "start", "text", "type", "unifieddiff"),
        *("update", *PATH_ENDINGS),
    )
)
FILE_KEYS = frozenset(("path", "file", "filepath", "absolutepath", "filename"))
# What a command is about; by another such key, what it reads first may be meant.
PLAIN_PATH_KEYS = FILE_KEYS | {"abspath", "filenames", "filepaths", "files", "paths"}
CONTENT_KEYS = frozenset(("content", "contents", "filetext"))
NEW_TEXT_KEYS = CONTENT_KEYS | {
    *("data", "insertedtext", "newcontent", "newstr", "newstring", "newtext", "newvalue"),
    *("replacement", "replacewith", "rewrite"),
}
# Where it is only read, these bring something new too.
REPLACING_KEYS = frozenset(("insert", "new", "replace"))
VALUE_KEYS = frozenset(("value", "values"))
# What says of a call that reads that it does more: if it is set, or as what it is said to do.
CHANGING_KEYS = frozenset(("append", "delete", "fix", "inplace", "overwrite", "remove", "write"))
VERB_KEYS = frozenset(("action", "editmode", "filemode", "mode", "op", "operation", "verb"))
CHANGING_VERBS = CHANGING_KEYS | {
    *("a", "a+", "ab", "add", "copy", "create", "edit", "insert", "modify", "move", "patch", "put"),
    *("r+", "rename", "replace", "save", "truncate", "update", "w", "w+", "wb", "wt", "x", "xb"),
}
# Which files are meant, where it is not said one by one.
SELECTING = frozenset(
    (
        *("exclude", "excludepattern", "excludes", "filepattern", "glob", "globs", "ignore"),
        *("include", "includepattern", "includes"),
    )
)
# The same, or a text that is looked for in them.
PATTERNS = frozenset(("pattern", "patterns"))
# Where an address is a text that is written or looked for, or a word of a command that is named.
TEXT_KEYS = ARGUMENT_KEYS | {
    *("content", "contents", "filetext", "find", "insert", "insertedtext", "needle", "new"),
    *("newcontent", "newstr", "newstring", "newtext", "newvalue", "old", "oldcontent", "oldstr"),
    *("oldstring", "oldtext", "oldvalue", "pattern", "query", "replace", "replacement", "search"),
    *("description", "explanation", "message", "reason", "summary", "text", "thought", "title"),
}
CHANGE_KEYS = frozenset(("after", "before", "diff", "patch", "unifieddiff"))
TOOL_KEYS = frozenset(("tool", "toolname", "mcptool"))
# Read to its end where it stands next to a command; of other texts nobody knows what they do.
READ_WITH_COMMANDS = (
    *(ARGUMENT_KEYS, CWD_KEYS, FOLDER_KEYS, USER_KEYS, ROOT_KEYS, TOOL_KEYS, OUTPUT_KEYS),
)
# The same next to a file.
READ_WITH_FILES = frozenset[str]().union(
    *(*READ_WITH_COMMANDS, TEXT_KEYS, CHANGE_KEYS, NEW_TEXT_KEYS, END_KEYS, NEW_NAME_KEYS),
    *(FIELDS, MAPPING_KEYS),
)
# Where agents put a whole JSON document into a string.
DOCUMENT_KEYS = MAPPING_KEYS | {
    *("arguments", "args", "input", "params", "parameters", "payload", "rawinput")
}
