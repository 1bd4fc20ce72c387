"""Commands that do what cannot be taken back, or what others notice, each with its reason.

A help for the person who is asked, never a defence: a command can be hidden from it. It errs
towards a false alarm, which costs a mark on the question and one more answer. Pure, and linear in
the command, which an agent chooses.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from dragoman.host.commands.carriers import SHELLS, carried, program_name
from dragoman.host.commands.reading_cache import cached
from dragoman.host.commands.shell_line import Argv, Reading, read_argv, read_line
from dragoman.host.rules.access import MOST_OF_COMMAND, Access, Command
from dragoman.lazy_pattern import lazy_pattern


class _Danger(NamedTuple):
    """A command is one of these if it is one of the programs, its words after the options begin
    with one of the verbs, and one of its words is like `having`; what is empty is not asked."""

    reason: str
    programs: str
    verbs: str = ""
    having: str = ""


# Not any number of options: each `git` in a line of them would be looked through to its end.
_GIT = r"git\s++(?:-[Cc]\s++\S++\s++|-\S++\s++){0,4}+"
_DELETES = "deletes folders and everything in them"
_DISCARDS = "discards work that is not committed"
_REWRITES = "rewrites the history of the repository"
_PUBLISHES = "publishes something that others can fetch"
_DEPLOYS = "changes systems outside this machine"
_DATABASE = "deletes a database or its data"
_SECRETS = "reads credentials"
_SIGNS_IN = "signs in or out, or changes whose credentials are used"
_RULES = "changes what agents may do, which is for a person to say"
_ANSWERS = "answers a question that was put to a person"
_UNASKED = "starts an agent that asks nobody"
_OUR_RULES = ("policy add", "policy remove", "policy revoke", "policy trust")

_TO_PUBLISH = r"(?:publish|release|upload)(?:[-:.].*)?"
_TO_DEPLOY = r"deploy(?:[-:.].*)?"

_TABLE = (
    _Danger(_DELETES, "rm", having=r"-[a-qs-zA-QS-Z]*+[rR][a-zA-Z]*+|--r.*"),
    _Danger("deletes folders and everything in them", "rimraf del-cli"),
    _Danger("deletes what is missing on the other side", "rsync", having=r"--del.*"),
    _Danger("cuts off what files hold", "truncate"),
    _Danger("deletes everything it finds", "find fd", having=r"-delete|rm|shred|-x|--exec.*"),
    _Danger("deletes everything it is given", "xargs parallel", having="rm|shred"),
    _Danger("erases files or disks for good", "shred wipefs mkfs.* fdisk parted diskutil"),
    _Danger("writes over a file or a disk", "dd", having=r"of=.*"),
    _Danger(
        "changes the rights of a whole tree", "chmod chown chgrp", having=r"-[a-z]*R.*|--rec.*"
    ),
    _Danger(
        "rewrites or deletes what others have", "git", "push", r"-[a-ceg-z]*+[df][a-z]*+|\+.*|:.+"
    ),
    _Danger("rewrites or deletes what others have", "git", "push", r"--(?:f|m|d|prune).*"),
    _Danger(_DISCARDS, "git", "reset", "--h.*|--merge|--keep"),
    _Danger(_DISCARDS, "git", "clean", r"-[a-eg-z]*+f.*|--f.*"),
    _Danger(_DISCARDS, "git", "checkout|switch", r"-f|--force|--discard-changes|--|\."),
    _Danger(_DISCARDS, "git", "restore|stash drop|stash clear|worktree remove"),
    _Danger("deletes a tag", "git", "tag", r"-d|--de.*"),
    _Danger(_DISCARDS, "git", "branch", r"-[a-zA-CE-Z]*+D.*|--delete"),
    _Danger(_REWRITES, "git", "rebase|filter-branch|filter-repo|reflog expire|update-ref|replace"),
    _Danger(_REWRITES, "git", "commit", "--am.*"),
    _Danger(_REWRITES, "git", "gc", "--prune=.*"),
    _Danger(
        _PUBLISHES, "npm pnpm yarn bun cargo uv poetry flit hatch pdm deno", "publish|npm publish"
    ),
    _Danger(_PUBLISHES, "npm pnpm yarn", "unpublish|deprecate|undeprecate|dist-tag|owner|access"),
    # A script of a project may be called anything: these are what such scripts are called.
    _Danger(_PUBLISHES, "npm pnpm yarn bun", "run|run-script|rum|urn", _TO_PUBLISH),
    _Danger(_DEPLOYS, "npm pnpm yarn bun", "run|run-script|rum|urn", _TO_DEPLOY),
    _Danger(_PUBLISHES, "pnpm yarn bun", "release|recursive publish"),
    _Danger(_DEPLOYS, "pnpm yarn bun", "deploy"),
    _Danger(_PUBLISHES, "make gmake just task invoke inv rake rails", having=_TO_PUBLISH),
    _Danger(_DEPLOYS, "make gmake just task invoke inv rake rails", having=_TO_DEPLOY),
    _Danger(_PUBLISHES, "cargo gem", "yank|owner"),
    _Danger(_PUBLISHES, "vsce ovsx jsr", "publish|unpublish"),
    _Danger(_PUBLISHES, "pod", "trunk push"),
    _Danger(_PUBLISHES, "conda anaconda", "upload"),
    _Danger(_PUBLISHES, "snapcraft charmcraft", "upload|release|push"),
    _Danger(_PUBLISHES, "oras skopeo crane", "push|copy|cp"),
    _Danger(_PUBLISHES, "docker podman", "build|buildx", having="--push(?:=.*)?"),
    _Danger(_PUBLISHES, "twine", "upload"),
    _Danger(_PUBLISHES, "semantic-release np release-it gh-pages"),
    _Danger(_PUBLISHES, "lerna changeset", "publish"),
    _Danger(_PUBLISHES, "cargo goreleaser", "release"),
    _Danger(_PUBLISHES, "mvn mvnw", "release:perform"),
    _Danger(_PUBLISHES, "python[0-9.]*", "twine upload"),
    _Danger(_PUBLISHES, "gem docker podman helm dotnet", "push|nuget push|image push"),
    _Danger(_PUBLISHES, "mvn gradle gradlew", "deploy|publish"),
    _Danger(_PUBLISHES, "gh", "release create|release upload|repo create|gist create"),
    _Danger(_DEPLOYS, "gh", "repo delete|release delete|pr merge|secret|api"),
    _Danger(_DEPLOYS, "terraform tofu pulumi", "apply|destroy|up|import|state"),
    _Danger(_DEPLOYS, "kubectl oc", "apply|delete|replace|patch|scale|drain|exec|rollout"),
    _Danger(_DEPLOYS, "helm", "install|upgrade|uninstall|delete|rollback"),
    _Danger(
        _DEPLOYS,
        "aws gcloud az",
        having=r"(?:delete|remove|terminate|destroy|rm|rb|deploy|create).*",
    ),
    _Danger(_DEPLOYS, "fly flyctl vercel netlify heroku wrangler serverless cdk firebase"),
    _Danger(_DEPLOYS, "ansible ansible-playbook"),
    _Danger("runs a command on another machine", "ssh mosh rsh"),
    _Danger("deletes data of containers", "docker podman", "system prune|volume rm|volume prune"),
    _Danger("deletes data of containers", "docker podman", "compose down", "-v|--vol.*"),
    _Danger("deletes data of containers", "docker-compose", "down", "-v|--vol.*"),
    _Danger(_DATABASE, "dropdb dropuser"),
    _Danger(_DATABASE, "mysqladmin", "drop"),
    _Danger(_DATABASE, "redis-cli", having="(?i:flushall|flushdb)"),
    _Danger(_DATABASE, "rails rake bin/rails", "db:drop|db:reset|db:schema:load"),
    _Danger(_DATABASE, "prisma", "migrate reset|db push"),
    _Danger(_DATABASE, "supabase", "db reset"),
    _Danger(_DATABASE, "flyway", "clean"),
    _Danger(_DATABASE, "alembic", "downgrade"),
    _Danger(_DATABASE, "python[0-9.]* manage.py django-admin", "flush|manage.py flush|sqlflush"),
    _Danger(_DATABASE, "python[0-9.]* manage.py django-admin", "reset_db|manage.py reset_db"),
    _Danger(_RULES, "dragoman", "|".join(_OUR_RULES)),
    _Danger(
        _RULES,
        "python[0-9.]* uv uvx pipx",
        "|".join(f"{start}dragoman {verb}" for start in ("", "run ") for verb in _OUR_RULES),
    ),
    _Danger(_ANSWERS, "dragoman", "sessions answer"),
    _Danger(_UNASKED, "dragoman", having="--yolo"),
    _Danger(_UNASKED, "python[0-9.]* uv uvx pipx", "dragoman|run dragoman", having="--yolo"),
    _Danger(
        _UNASKED,
        "claude codex copilot cursor-agent gemini goose kimi opencode qwen",
        having="--yolo|--dangerously.*|--allow-all.*",
    ),
    _Danger("runs as another user", "sudo doas su pkexec runuser run0"),
    _Danger(_SECRETS, "gh", "auth token"),
    _Danger(_SECRETS, "aws", "configure|sts"),
    _Danger(_SECRETS, "kubectl oc", "get secret|get secrets"),
    _Danger(_SECRETS, "npm pnpm", "token"),
    _Danger(_SIGNS_IN, "npm pnpm yarn", "login|logout|adduser|add-user|npm login|npm logout"),
    _Danger(_SIGNS_IN, "docker podman buildah skopeo oras", "login|logout"),
    _Danger(_SIGNS_IN, "helm crane", "registry login|registry logout|auth login|auth logout"),
    _Danger(_SIGNS_IN, "cargo az oc argocd terraform tofu pulumi snyk", "login|logout"),
    _Danger(_SIGNS_IN, "gh glab", "auth login|auth logout|auth refresh|auth setup-git|auth switch"),
    _Danger(_SIGNS_IN, "gem", "signin|signout"),
    _Danger(_SIGNS_IN, "aws", "sso|ecr get-login|ecr get-login-password|codeartifact"),
    _Danger(_SIGNS_IN, "poetry", "config", r"(?:http-basic|pypi-token)\..*"),
    _Danger(_SIGNS_IN, "npm pnpm yarn", "config set", r".*_(?:auth|password).*"),
    _Danger(_SIGNS_IN, "git", "config", r"credential\..*"),
    _Danger(_SIGNS_IN, "ssh-add ssh-copy-id"),
    _Danger(_SECRETS, "gpg gpg2", having=r"--export-secret.*"),
    _Danger(_SECRETS, "gcloud", "auth"),
    _Danger(_SECRETS, "git", "credential"),
    _Danger(_SECRETS, "pass gopass op vault secret-tool keyring"),
    _Danger(_SECRETS, "security", "find-generic-password|find-internet-password|dump-keychain"),
    _Danger("shows the environment, which may hold secrets", "printenv"),
    _Danger("ends processes by name", "killall pkill"),
    _Danger("ends every process", "kill", having="-1"),
    _Danger("stops the machine", "shutdown reboot halt poweroff"),
    _Danger(
        "changes what runs on this machine", "systemctl launchctl", having="(?!status|show|list).*"
    ),
    _Danger("changes what runs on this machine", "crontab at iptables nft ufw"),
    _Danger("changes the system for all its users", "useradd usermod userdel passwd visudo"),
    _Danger("changes the system for all its users", "mount umount insmod modprobe rmmod"),
    _Danger("changes the system for all its users", "sysctl", having="-w|--write"),
)

_CREDENTIALS = lazy_pattern(
    r"(?:^|[/@=<])(?:\.ssh/(?!known_hosts|config)|\.aws/credentials|\.netrc$|\.pgpass$|\.git-credentials$"
    r"|\.gnupg(?:/|$)|\.kube/config$|\.docker/config\.json$|id_(?:rsa|dsa|ecdsa|ed25519)$"
    r"|\.config/gh/hosts\.yml$|\.npmrc$|\.pypirc$|\.env(?:\.[a-z.]+)?$)"
)
_SQL = lazy_pattern(
    r"\b(?:drop\s+(?:table|database|schema|view|index|user|role)|truncate\s+(?:table\s+)?\w"
    r"|delete\s+from\s+\S+\s*(?:;|$))|\bdropDatabase\(",
    re.IGNORECASE,
)
_DATABASES = frozenset(
    ("psql", "mysql", "mariadb", "sqlite3", "duckdb", "clickhouse-client", "mongosh")
)

_shell = r"(?:ba|da|z|k|fi)?sh"
_runners = "sudo|doas|env|nice|ionice|nohup|timeout|time|stdbuf|setsid"
_PIPED = "runs what another command prints"
_piped = lazy_pattern(
    rf"\|\s*+(?:(?:{_runners})\s++(?:(?:-|\w++=|\d)\S*+\s++)*+)*+(?:[\w.-]*+/)*+"
    rf"(?:{_shell}|python[0-9.]*+|perl|ruby|node(?:js)?|php)(?=[\s;&|)\"'`]|$)"
    rf"|\b{_shell}\s++(?:-\w++\s++)?[\"']?(?:\$\(|`|<\()|\beval\b"
    r"|\b(?:python[0-9.]*+|perl|ruby|node|php)\s++-\w++\s++[\"']?(?:\$\(|`)"
    r"|(?:^|[\s;&|])(?:source|\.)\s++<\("
)
_parts = lazy_pattern(r"[;&|\n]")


class _Wording(NamedTuple):
    """Like `_Danger`, for what is not read word by word: a part of a line that has the beginning,
    and after it one of the words."""

    reason: str
    beginning: str
    then: str = ""


_WORDINGS = (
    _Wording(_DELETES, r"rm\s", r"\s-[a-zA-Z]*[rR]|\s--recursive"),
    _Wording(
        "rewrites or deletes what others have",
        _GIT + "push",
        r"\s(?:-f|--force|--mirror|--delete|\+)",
    ),
    _Wording(_DISCARDS, _GIT + "(?:reset|clean)", r"\s(?:--hard|-[a-z]*f)"),
    _Wording(_REWRITES, _GIT + "(?:rebase|filter-branch|filter-repo)"),
    _Wording(_PUBLISHES, r"(?:npm|pnpm|yarn|cargo|uv|poetry)\s+publish|twine\s+upload"),
    _Wording(_SIGNS_IN, r"(?:docker|podman|npm|pnpm|helm|az|cargo)\s+log(?:in|out)\b"),
    _Wording(_PUBLISHES, r"(?:npm|pnpm|yarn|bun)\s+run\s+(?:publish|release|deploy)\b"),
    _Wording("runs as another user", r"(?:sudo|doas|pkexec)\s"),
    _Wording(_DEPLOYS, r"(?:terraform|tofu|pulumi)\s+(?:apply|destroy|up)|kubectl\s+delete"),
    _Wording("deletes everything it finds", r"(?:find|xargs)\s", r"\s(?:-delete|rm)\b"),
    _Wording("writes over a file or a disk", r"mkfs|dd\s", r"\bof=|\."),
    _Wording("runs a command on another machine", r"ssh\s"),
    _Wording(_RULES, r"dragoman\s+policy\s+(?:add|remove|revoke|trust)"),
    _Wording(_ANSWERS, r"dragoman\s+sessions\s+answer"),
)


def danger_of(access: Access) -> str | None:
    """The same for all that an access names: its commands, and files that it reads."""
    found = next(filter(None, map(danger, access.commands)), None)
    if found is None and "read" in access.operations:
        named = (*access.paths, *access.aliases)
        found = _SECRETS if any(map(_CREDENTIALS.search, named)) else None
    return found


_FURTHER = lazy_pattern(
    r"--(?:output|open-files|upload-pack|receive-pack|exec|pre|checkpoint-action|to-command"
    r"|use-compress|compress-program|rsh|toolexec|plugin|config)[a-z-]*(?:=.*)?"
    r"|-(?:toolexec|exec)(?:=.*)?|-O.+",
    re.DOTALL,
)


_ABBREVIATED = (
    *("output", "open-files-in-pager", "upload-pack", "receive-pack", "exec", "ext-diff"),
    *("extcmd", "checkpoint-action", "to-command", "use-compress-program", "compress-program"),
    *("rsh", "toolexec", "textconv", "basetemp", "cookie-jar", "dump-header", "remote-name"),
    *("trace", "stderr", "libcurl", "etag-save", "eval", "split-string", "pager", "script-shell"),
)
"""Long options of that kind, which may be written by their first letters."""
_SHORT = {
    "curl": lazy_pattern(r"-[#0-9afgijklnpqsvBGIJLNRSVZ]*+[oOKcD].*", re.DOTALL),
    "sort": lazy_pattern(r"-[bcCdfghiMmnrRsuVz]*+[oT].*", re.DOTALL),
    "git": lazy_pattern(r"-[a-zA-Z]*?O.*", re.DOTALL),
    "wget": lazy_pattern(r"-[a-zA-Z]*?O.*", re.DOTALL),
    "rsync": lazy_pattern(r"-[a-zA-Z]*?e.*", re.DOTALL),
    "go": lazy_pattern(r"--?vettool.*", re.DOTALL),
    "mypy": lazy_pattern(r"--python-e.*", re.DOTALL),
    "rg": lazy_pattern(r"--hostname-b.*", re.DOTALL),
    "svn": lazy_pattern(r"--(?:diff3?|editor)-cmd.*", re.DOTALL),
    "man": lazy_pattern(r"-[a-zA-Z]*?[PH].*", re.DOTALL),
    "pandoc": lazy_pattern(r"-[FL].*|--(?:fi|lu|pdf-e).*", re.DOTALL),
    **dict.fromkeys(
        ("cc", "c++", "gcc", "g++", "clang", "clang++"),
        lazy_pattern(r"-wrapper|-fplugin.*|-fpass-plugin.*|-B.*|-specs.*|@.*", re.DOTALL),
    ),
    **dict.fromkeys(("make", "gmake"), lazy_pattern(r"-[a-zA-Z]*?[fCEI].*|--(?:fi|ma|di|inc).*")),
}
"""The same as one letter, alone or after others."""
_OF_TARGETS = frozenset(
    (
        *("make", "gmake", "ninja", "rake", "gradle", "gradlew", "mvn", "mvnw", "ant", "just"),
        *("task", "invoke", "inv", "doit", "scons", "waf"),
    )
)
"""Programs that do each of the words that follow, and take settings among them."""


def reaches_further(command: Command, named: int = 1) -> str | None:
    """Why words of a command may have its program run or write something else than what the
    `named` first words say."""
    words = command if not isinstance(command, str) else tuple(command.split())
    program = program_name(words[0]) if words else ""
    others = words[named:] if program in _OF_TARGETS else ()
    found = next(filter(_leads_elsewhere(_SHORT.get(program)), words[1:]), None)
    if found is None:
        found = next((word for word in others if not word.startswith("-") or "=" in word), None)
    return None if found is None else f"{found} may run or write something else"


def _leads_elsewhere(short: re.Pattern[str] | None) -> Callable[[str], bool]:
    def leads(word: str) -> bool:
        if _FURTHER.fullmatch(word) or (short is not None and short.fullmatch(word)):
            return True
        name = word[2:].partition("=")[0] if word.startswith("--") else ""
        return bool(name) and any(each.startswith(name) for each in _ABBREVIATED)

    return leads


@cached(64)
def danger(command: Command) -> str | None:
    """Why to think twice about this command, as a sentence without a subject; None if nothing is
    known against it."""
    if isinstance(command, str):
        return _in_line(command, read_line(command))
    return _in_reading(read_argv(command)) or _in_line_of(command)


def _in_line(line: str, reading: Reading) -> str | None:
    if (found := _in_reading(reading)) is not None or reading.unread is None:
        return found
    return _in_text(line[:MOST_OF_COMMAND])


def _in_text(text: str) -> str | None:
    if _piped.search(text):
        return _PIPED
    if any(map(_CREDENTIALS.search, text.split())):
        return _SECRETS
    if _SQL.search(text):
        return _DATABASE
    parts = _parts.split(text)
    return next((each.reason for each in _WORDINGS if any(map(_has(each), parts))), None)


def _has(wording: _Wording) -> Callable[[str], bool]:
    beginning = _compiled(rf"(?<![-\w])(?:{wording.beginning})")
    then = _compiled(wording.then)

    def has(part: str) -> bool:
        found = beginning.search(part)
        # The blank before what follows may belong to the beginning.
        return found is not None and then.search(part, found.end() - 1) is not None

    return has


def _in_line_of(argv: Argv) -> str | None:
    """Words for a shell that are not read are a line to look through."""
    return _in_line(" ".join(argv), Reading(unread="words")) if read_argv(argv).unread else None


def _in_reading(reading: Reading) -> str | None:
    look = _Look()
    layers = (each.argv for run in reading.runs for each in run)
    found = (next(filter(None, map(look.at, _carried(argv))), None) for argv in layers)
    reasons = dict.fromkeys(filter(None, found))
    return "; ".join(islice(reasons, _MOST_REASONS)) or None


_MOST_REASONS = 3


class _Look:
    """At what a command runs, which may be its own words again, with each of many wrappers: it
    becomes a short one in the end."""

    def __init__(self) -> None:
        self._left = _MOST_WORDS

    def at(self, argv: Argv) -> str | None:
        seen = argv if len(argv) <= self._left else argv[:_FEW_WORDS]
        self._left -= len(seen)
        return _of_words(seen)


_MOST_WORDS = 100_000
_FEW_WORDS = 16


def _carried(argv: Argv) -> Iterator[Argv]:
    """What a program runs that runs others; of a shell, also the commands of its lines."""
    for words in (argv, *carried(argv)):
        yield words
        if program_name(words[0]) in SHELLS:
            for line in words[2:_MOST_LINES]:
                if len(line) <= _LONGEST_LINE:
                    yield from (each.argv for run in read_line(line).runs for each in run)


_MOST_LINES = 12
_LONGEST_LINE = 2048


def _of_words(argv: Argv) -> str | None:
    program = argv[0].rpartition("/")[2]
    for each in _rows(program):
        if _is_one(each, argv):
            return f"{program} {each.reason}" if not each.verbs else _with_verb(argv, each.reason)
    if any(map(_CREDENTIALS.search, argv[1:])):
        return _SECRETS
    if program in _DATABASES and any(map(_SQL.search, argv[1:])):
        return _DATABASE
    return None


def _with_verb(argv: Argv, reason: str) -> str:
    program, words = argv[0].rpartition("/")[2], _plain(argv)
    return f"{program} {words[0] if words else ''} {reason}"


def _is_one(row: _Danger, argv: Argv) -> bool:
    if row.verbs:
        words = " ".join((*_plain(argv)[:4], ""))
        if not any(words.startswith(f"{verb} ") for verb in row.verbs.split("|")):
            return False
    if not row.having:
        return True
    having = _compiled(row.having)
    return any(having.fullmatch(word) for word in argv[1:])


_WITH_VALUES = ("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path")


def _plain(argv: Argv) -> list[str]:
    """The words that are not options, nor the values of options that may come before a verb."""
    words = enumerate(argv[1:])
    return [word for at, word in words if not word.startswith("-") and argv[at] not in _WITH_VALUES]


@functools.lru_cache(maxsize=256)
def _rows(program: str) -> tuple[_Danger, ...]:
    named = (each for each in _TABLE if any(map(_names(program), each.programs.split())))
    return tuple(named)


def _names(program: str) -> Callable[[str], bool]:
    return lambda pattern: _compiled(pattern).fullmatch(program) is not None


@functools.cache  # as many as the table has
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
