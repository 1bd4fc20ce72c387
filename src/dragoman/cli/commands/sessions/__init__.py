"""`dragoman sessions`: lists recorded sessions and acts on them."""

from __future__ import annotations

import argparse

from dragoman.cli.options import (
    SESSION_HELP,
    add_json_option,
    add_optional,
    add_permission_options,
    add_settings_option,
    count,
    name,
    not_negative,
)
from dragoman.cli.parsers import Actions, run_action

_STATUSES = ("idle", "running", "waiting", "parked", "interrupted", "closed")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = Actions(parser, __name__, stored=True)
    _add_list(actions)
    _add_looking(actions)
    _add_changes(actions)
    _add_files(actions)
    _add_acts(actions)
    _add_parked(actions)


run = run_action


def _add_list(actions: Actions) -> None:
    parser = actions.add("list", "list recorded sessions, newest first", module="session_list")
    parser.add_argument("--cwd", metavar="DIR", help="only sessions in this directory")
    parser.add_argument("-a", "--agent", metavar="NAME", help="only sessions of this agent")
    parser.add_argument("--status", choices=_STATUSES, help="only sessions with this status")
    parser.add_argument("--archived", action="store_true", help="only archived sessions")
    parser.add_argument(
        "--known",
        action="store_true",
        help="list the agent's own sessions instead; `sessions import` imports one",
    )
    parser.add_argument("--names", action="store_true", help="print only names and ids")
    _add_limit(parser, 50)
    add_settings_option(parser.add_argument)
    add_json_option(parser.add_argument)


def _add_looking(actions: Actions) -> None:
    show = actions.add("show", "print a whole session as it appeared when it ran")
    _add_session(show)
    show.add_argument(
        "--full",
        action="store_true",
        help="print all output of commands and tools, not just the end",
    )
    parts = show.add_mutually_exclusive_group()
    parts.add_argument(
        "--programs",
        action="store_true",
        help="print only the programs that ran inside the fence",
    )
    parts.add_argument(
        "--refused",
        action="store_true",
        help="print only what was refused, by a rule, by a person or in the fence",
    )
    add_json_option(
        show.add_argument,
        "print the session's state as one JSON object; with --programs, an object with `programs` "
        "and `leftOut`; with --refused, a list of events",
    )
    search = actions.add(
        "search",
        "search prompts and answers",
        "  dragoman sessions search 'parser error'\n  dragoman sessions search flaky --json",
        module="session_list",
    )
    search.add_argument("words", metavar="WORDS", help="words to find; the last may be incomplete")
    _add_limit(search, 20)
    add_json_option(search.add_argument)


def _add_changes(actions: Actions) -> None:
    changes = actions.add(
        "changes",
        "show what a session changed in its folders, as diffs",
        "  dragoman sessions changes fix                    all of it\n"
        "  dragoman sessions changes fix --turn -1          the last turn",
        module="undo",
    )
    _add_session(changes)
    _add_turn(changes, "only this turn: its number (1 is the first, -1 the last) or its id")
    add_settings_option(changes.add_argument)
    add_json_option(changes.add_argument)
    _add_revert(actions)
    _add_rewind(actions)


def _add_parked(actions: Actions) -> None:
    handoff = actions.add(
        "handoff",
        "have another agent continue a session: a new one, with what was asked, done and is open",
        "  dragoman sessions handoff fix -a codex\n"
        '  dragoman sessions handoff fix -a codex --write --prompt "finish the tests"\n\n'
        "It works in the same folders and is offered no more. Both sessions say so.",
    )
    _add_session(handoff)
    handoff.add_argument(
        "--prompt", metavar="TEXT", help="what it is to do (default: continue where it stopped)"
    )
    handoff.add_argument(
        "-a", "--agent", metavar="NAME", required=True, help="the agent that continues"
    )
    add_settings_option(handoff.add_argument)
    add_permission_options(handoff, "the turn")
    going = actions.add(
        "continue",
        "send a parked prompt now, without waiting for the provider's limit to end",
        module="parked",
    )
    _add_session(going)
    going.add_argument(
        "--wait", action="store_true", help="send it when the limit is expected to end, not now"
    )
    _add_session(
        actions.add("drop", "drop a parked prompt, so that it is never sent", module="parked")
    )
    hand = actions.add(
        "hand-over",
        "hand a parked prompt over to another agent",
        "  dragoman sessions hand-over fix codex   prints the id of the new session",
        module="parked",
    )
    _add_session(hand)
    hand.add_argument("to", metavar="AGENT", help="the agent that gets the prompt")


def _add_revert(actions: Actions) -> None:
    revert = actions.add(
        "revert",
        "undo what a session's turns changed in its folders, and print the paths",
        "  dragoman sessions revert fix                       everything\n"
        "  dragoman sessions revert fix src/app.py            one file\n"
        "  dragoman sessions revert fix --turn -1             what the last turn did\n"
        "  dragoman sessions revert fix --turn restore-1f3a   undo a revert\n\n"
        "What someone else has changed since then stays. If both changed the same lines,\n"
        "nothing is reverted unless you choose with --keep or --force.",
        module="undo",
    )
    _add_session(revert)
    revert.add_argument("path", metavar="PATH", nargs="*", help="only these files (default: all)")
    _add_turn(revert, "only this turn: its number or id; or the id of a revert to undo")
    revert.add_argument(
        "--hunk",
        metavar="ID",
        action="append",
        help="only this hunk, with the id from `sessions changes --json`; repeatable",
    )
    _add_choices(revert)


def _add_rewind(actions: Actions) -> None:
    rewind = actions.add(
        "rewind",
        "go back to the state before a turn, and print the session to continue with",
        "  dragoman sessions rewind fix -1                  go back one prompt\n"
        "  dragoman sessions rewind fix 3 --summary         with a summary for the agent\n\n"
        "Undoes what that turn and all later ones did to the files; what someone else\n"
        "has changed stays. You continue in a new session. The agent forks its\n"
        "conversation at that point if it can; otherwise it remembers nothing.",
        module="undo",
    )
    _add_session(rewind)
    rewind.add_argument(
        "turn", metavar="TURN", help="the turn: its number (1 is the first, -1 the last) or its id"
    )
    rewind.add_argument("--no-files", action="store_true", help="leave the files as they are")
    rewind.add_argument("--no-conversation", action="store_true", help="restore only the files")
    rewind.add_argument(
        "--summary",
        action="store_true",
        help="if the agent remembers nothing, give it a short summary of what was said before",
    )
    _add_choices(rewind)


def _add_turn(parser: argparse.ArgumentParser, words: str) -> None:
    parser.add_argument("--turn", metavar="TURN", help=words)


def _add_choices(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--keep",
        metavar="PATH",
        action="append",
        help="leave this file as it is if someone else has changed it since; repeatable",
    )
    parser.add_argument(
        "--force", action="store_true", help="also revert files that someone else has changed since"
    )
    add_settings_option(parser.add_argument)


def _add_files(actions: Actions) -> None:
    export = actions.add(
        "export",
        "write a session as JSON Lines, for `sessions import` and `replay`, or as Markdown or HTML "
        "to read",
        "  dragoman sessions export s-1f3a > session.jsonl\n"
        "  dragoman sessions export s-1f3a -o session.md\n"
        "  dragoman sessions export s-1f3a -o session.html      to share\n"
        "  dragoman sessions export s-1f3a --html --review      what would be removed\n\n"
        "An HTML file is complete: it shows the session as the page does, and loads\n"
        "nothing. Secrets are removed from it, and from the others with --redact:\n"
        "whatever looks like a key, token or password, and the values of variables\n"
        "and settings whose names say that they hold one.",
        module="session_files",
    )
    _add_session(export)
    export.add_argument(
        "-o", "--output", metavar="FILE", help="write to this file (default: standard output)"
    )
    export.add_argument(
        "--format",
        choices=("jsonl", "md", "html"),
        help="every event, or a document (default: by the ending of FILE, else jsonl)",
    )
    export.add_argument(
        "--html", dest="format", action="store_const", const="html", help="same as --format html"
    )
    export.add_argument(
        "--redact",
        action=argparse.BooleanOptionalAction,
        help="remove secrets (default: only from HTML)",
    )
    export.add_argument(
        "--review",
        action="store_true",
        help="write nothing; list what would be removed, a secret a line, shortened",
    )
    add_settings_option(export.add_argument)
    importing = actions.add(
        "import",
        "import a session from an exported file or from an agent",
        "  dragoman sessions import session.jsonl\n"
        "  dragoman sessions import -a goose 20260801_1\n\n"
        "`dragoman sessions list --known -a goose` lists the sessions to import.",
        module="session_files",
    )
    importing.add_argument(
        "what",
        type=name,
        metavar="FILE|ID",
        help="file to import (- for standard input); with -a, the agent's own id for the session",
    )
    importing.add_argument("-a", "--agent", metavar="NAME", help="agent that knows the session")
    importing.add_argument(
        "--cwd",
        metavar="DIR",
        help="workspace (default with -a: the current directory; a session from a file has "
        "none until `--resume ID --cwd DIR` sets one)",
    )
    add_settings_option(importing.add_argument)
    recover = actions.add(
        "recover", "rebuild a damaged store from its mirror files", module="session_files"
    )
    recover.add_argument("--force", action="store_true", help="rebuild even if the store is intact")


def _add_agent_command(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--agent-command",
        metavar="'CMD ARGS'",
        help="command that starts its agent, for a session that was started with --agent-command",
    )


def _add_acts(actions: Actions) -> None:
    fork = actions.add(
        "fork", "start a new session with the history of another, and print its id", module="manage"
    )
    _add_session(fork)
    fork.add_argument("--name", metavar="NAME", help="name for the new session")
    fork.add_argument(
        "--cwd", metavar="DIR", help="workspace, if the session was imported without one"
    )
    add_settings_option(fork.add_argument)
    _add_agent_command(fork)
    close = actions.add(
        "close", "close a session, here and in the agent, but keep its record", module="manage"
    )
    _add_session(close)
    add_settings_option(close.add_argument)
    delete = actions.add(
        "delete",
        "delete recorded sessions, and the agent's copies if it supports that",
        module="manage",
    )
    delete.add_argument("session", metavar="SESSION", nargs="*", help=SESSION_HELP)
    delete.add_argument("--local", action="store_true", help="keep the agent's copies")
    delete.add_argument(
        "--older-than",
        metavar="DAYS",
        type=not_negative,
        help="delete all sessions idle for more than DAYS (locally only)",
    )
    add_settings_option(delete.add_argument)
    _add_agent_command(delete)
    rename = actions.add(
        "rename",
        "change a session's title, or its name",
        '  dragoman sessions rename s-1f3a "Fix the parser"\n'
        "  dragoman sessions rename s-1f3a --name fix     for --session fix",
        module="manage",
    )
    _add_session(rename)
    add_optional(rename.add_argument, "title", "TITLE", "the new title")
    rename.add_argument(
        "--name",
        type=name,
        metavar="NAME",
        help="the new name, as used with --session in its folder",
    )
    archive = actions.add(
        "archive", "hide a session from the list without deleting it", module="manage"
    )
    _add_session(archive)
    archive.add_argument("--undo", action="store_true", help="restore it to the list")
    _add_answer(actions)


def _add_answer(actions: Actions) -> None:
    answer = actions.add(
        "answer",
        "list a session's pending questions, or answer one",
        "  dragoman sessions answer s-1f3a                  list its questions\n"
        "  dragoman sessions answer s-1f3a allow_once       by the option's id or kind\n"
        "  dragoman sessions answer s-1f3a remember:program:project\n"
        "                                                   this program in this project\n"
        "  dragoman sessions answer s-1f3a accept name=Ada  fill in a form\n"
        "  dragoman sessions answer s-1f3a decline          decline to fill it in",
    )
    _add_session(answer)
    text = "the answer: a permission option, or accept, decline or cancel for a form"
    add_optional(answer.add_argument, "option", "OPTION", text)
    answer.add_argument(
        "values",
        metavar="FIELD=VALUE",
        nargs="*",
        help="form fields, after accept; omitted fields use their defaults",
    )
    answer.add_argument("--request", metavar="ID", help="question to answer (default: the first)")
    answer.add_argument(
        "--confirm",
        action="store_true",
        help="confirm an answer that allows a dangerous command from now on",
    )
    add_json_option(answer.add_argument)


def _add_session(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION", help=SESSION_HELP)


def _add_limit(parser: argparse.ArgumentParser, most: int) -> None:
    parser.add_argument(
        "--limit",
        metavar="N",
        type=count,
        default=most,
        help=f"maximum number of results (default: {most})",
    )
