"""`dragoman sessions`: what was recorded, and what can be done with it."""

from __future__ import annotations

import argparse
from importlib import import_module

from dragoman.cli.options import count, name, not_negative
from dragoman.cli.parsers import Actions

_MODULES = {
    "list": "list",
    "search": "list",
    "show": "show",
    "changes": "changes",
    "revert": "changes",
    "export": "files",
    "import": "files",
    "recover": "files",
    "fork": "manage",
    "close": "manage",
    "delete": "manage",
    "rename": "manage",
    "archive": "manage",
    "answer": "answer",
}
_STATUSES = ("idle", "running", "waiting", "interrupted", "closed")
_WHICH = "its id or the beginning of it, its name, or the agent's id for it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = Actions(parser, stored=True)
    _add_list(actions)
    _add_looking(actions)
    _add_changes(actions)
    _add_files(actions)
    _add_acts(actions)


def run(options: argparse.Namespace) -> int:
    return import_module(f"{__name__}.{_MODULES[options.action]}").run(options)


def _add_list(actions: Actions) -> None:
    parser = actions.add("list", "list the recorded sessions, the newest first")
    parser.add_argument("--cwd", metavar="DIR", help="those of this folder alone")
    parser.add_argument("-a", "--agent", metavar="NAME", help="those of this agent alone")
    parser.add_argument("--status", choices=_STATUSES, help="those that are so")
    parser.add_argument("--archived", action="store_true", help="those that were archived")
    parser.add_argument(
        "--known",
        action="store_true",
        help="instead: the sessions that the agent itself knows; `sessions import` records one",
    )
    parser.add_argument("--names", action="store_true", help="only names and ids, one per line")
    _add_limit(parser, 50)
    _add_settings(parser)
    _add_json(parser)


def _add_looking(actions: Actions) -> None:
    show = actions.add("show", "show a session from its beginning, as it was shown live")
    _add_session(show)
    show.add_argument(
        "--full", action="store_true", help="show all output of commands and tools, not its end"
    )
    _add_json(show, "its state, as one JSON object")
    search = actions.add(
        "search",
        "find words in what was asked and answered",
        "  dragoman sessions search 'parser error'\n  dragoman sessions search flaky --json",
    )
    search.add_argument("words", metavar="WORDS", help="the last may be the beginning of a word")
    _add_limit(search, 20)
    _add_json(search)


def _add_changes(actions: Actions) -> None:
    changes = actions.add("changes", "show what a session changed in its folder, as diffs")
    _add_session(changes)
    _add_settings(changes)
    _add_json(changes)
    revert = actions.add(
        "revert",
        "undo what Dragoman wrote for a session; the paths are printed",
        "  dragoman sessions revert fix                     all of it\n"
        "  dragoman sessions revert fix src/app.py          one file\n\n"
        "Nothing is undone when a file was changed by someone else since, unless --force.",
    )
    _add_session(revert)
    revert.add_argument("path", metavar="PATH", nargs="*", help="these files only (default: all)")
    revert.add_argument("--force", action="store_true", help="also what was changed since")
    _add_settings(revert)


def _add_files(actions: Actions) -> None:
    export = actions.add(
        "export",
        "write a session as JSON lines, for `import`, `replay` and other machines",
        "  dragoman sessions export s-1f3a > session.jsonl",
    )
    _add_session(export)
    export.add_argument(
        "-o", "--output", metavar="FILE", help="write here (default: standard output)"
    )
    importing = actions.add(
        "import",
        "record a session from a file, or one that an agent knows",
        "  dragoman sessions import session.jsonl\n"
        "  dragoman sessions import -a goose 20260801_1\n\n"
        "`dragoman sessions list --known -a goose` lists what there is.",
    )
    importing.add_argument(
        "what",
        type=name,
        metavar="FILE|ID",
        help="a file, - for standard input, or with -a the agent's id for it",
    )
    importing.add_argument("-a", "--agent", metavar="NAME", help="the agent that knows it")
    importing.add_argument(
        "--cwd",
        metavar="DIR",
        help="its workspace (default: with -a the current directory; for a file none, until "
        "`--resume ID --cwd DIR` gives it one)",
    )
    _add_settings(importing)
    recover = actions.add("recover", "rebuild a damaged store from the mirrors of its sessions")
    recover.add_argument("--force", action="store_true", help="also one that is in order")


def _add_agent_command(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--agent-command",
        metavar="'CMD ARGS'",
        help="how to start its agent, for a session that was begun with --agent-command",
    )


def _add_acts(actions: Actions) -> None:
    fork = actions.add("fork", "make a new session that remembers another; its id is printed")
    _add_session(fork)
    fork.add_argument("--name", metavar="NAME", help="what to call it")
    fork.add_argument(
        "--cwd", metavar="DIR", help="its workspace, where an imported session has none"
    )
    _add_settings(fork)
    _add_agent_command(fork)
    close = actions.add("close", "end a session, on the agent's side too; its record stays")
    _add_session(close)
    _add_settings(close)
    delete = actions.add("delete", "forget sessions: here, and by the agent where it can")
    delete.add_argument("session", metavar="SESSION", nargs="*", help=_WHICH)
    delete.add_argument("--local", action="store_true", help="leave the agent's side alone")
    delete.add_argument(
        "--older-than",
        metavar="DAYS",
        type=not_negative,
        help="instead: all that nothing has happened in for so long; the agent is not asked",
    )
    _add_settings(delete)
    _add_agent_command(delete)
    rename = actions.add("rename", "give a session another title")
    _add_session(rename)
    rename.add_argument("title", metavar="TITLE", help="the title")
    archive = actions.add("archive", "take a session out of the list, without deleting it")
    _add_session(archive)
    archive.add_argument("--undo", action="store_true", help="put it back")
    answer = actions.add(
        "answer",
        "list what a session waits for, or answer it",
        "  dragoman sessions answer s-1f3a                  what it asks, and the answers\n"
        "  dragoman sessions answer s-1f3a allow_once       by the option's id or kind\n"
        "  dragoman sessions answer s-1f3a accept name=Ada  fill in a form\n"
        "  dragoman sessions answer s-1f3a decline          or do not",
    )
    _add_session(answer)
    answer.add_argument(
        "option",
        metavar="OPTION",
        nargs="?",
        help="the answer: an option of a permission; accept, decline or cancel for a form",
    )
    answer.add_argument(
        "values",
        metavar="FIELD=VALUE",
        nargs="*",
        help="behind accept: what is filled in; fields that are left out have their defaults",
    )
    answer.add_argument("--request", metavar="ID", help="which request (default: the first)")
    _add_json(answer)


def _add_session(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help=_WHICH)


def _add_limit(parser: argparse.ArgumentParser, most: int) -> None:
    parser.add_argument(
        "--limit", metavar="N", type=count, default=most, help=f"at most so many (default: {most})"
    )


def _add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--settings", metavar="PATH", help="the settings file")


def _add_json(parser: argparse.ArgumentParser, text: str = "as a JSON array of objects") -> None:
    parser.add_argument("--json", action="store_true", help=text)
