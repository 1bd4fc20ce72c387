"""`dragoman worktrees`: lists, compares, merges and removes worktrees."""

from __future__ import annotations

import argparse

from dragoman.cli.options import add_json_option, duration
from dragoman.cli.parsers import Actions, run_action

_MODULE = "worktree_actions"
_NAME_HELP = "its name, its id, or a path in it"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = Actions(parser, __name__, stored=True)
    _add_list(actions)
    _add_looking(actions)
    _add_merge(actions)
    _add_removing(actions)


run = run_action


def _add_list(actions: Actions) -> None:
    parser = actions.add(
        "list", "list the worktrees of this repository, the newest first", module=_MODULE
    )
    parser.add_argument(
        "--all", action="store_true", help="those of all repositories; the default outside of one"
    )
    add_json_option(parser.add_argument)


def _add_looking(actions: Actions) -> None:
    diff = actions.add("diff", "print what was changed in a worktree, as a patch", module=_MODULE)
    _add_name(diff)
    diff.add_argument("paths", metavar="PATH", nargs="*", help="only these files and folders")
    add_json_option(diff.add_argument, "print a JSON array of the changed files")
    path = actions.add(
        "path",
        "print where a worktree is",
        '  cd "$(dragoman worktrees path fix)"',
        module=_MODULE,
    )
    _add_name(path)
    setup = actions.add("setup", "print what the setup of a worktree printed", module=_MODULE)
    _add_name(setup)


def _add_merge(actions: Actions) -> None:
    merge = actions.add(
        "merge",
        "merge a worktree into the checkout that it was made of",
        "  dragoman worktrees merge fix             replay its commits, move your branch\n"
        "  dragoman worktrees merge fix --patch     change your files, commit nothing",
        module=_MODULE,
    )
    _add_name(merge)
    merge.add_argument(
        "--patch",
        action="store_true",
        help="change the files of the checkout and commit nothing; default if the worktree began "
        "with uncommitted changes",
    )
    merge.add_argument(
        "-m",
        "--message",
        metavar="TEXT",
        help="message of the commit for what is not committed in the worktree (default: the first "
        "line of its prompt)",
    )
    merge.add_argument("--keep", action="store_true", help="keep the worktree and its branch")
    add_json_option(merge.add_argument, "print a JSON object: what was changed, or the conflicts")


def _add_removing(actions: Actions) -> None:
    remove = actions.add(
        "remove", "remove worktrees, with their branches", module=_MODULE, alias="rm"
    )
    remove.add_argument("names", metavar="NAME", nargs="+", help=_NAME_HELP)
    remove.add_argument("--force", action="store_true", help="also what was changed in them")
    add_json_option(remove.add_argument, "print a JSON array of what was removed")
    prune = actions.add(
        "prune",
        "remove what killed processes left, and worktrees in which nothing was changed",
        "  dragoman worktrees prune --older-than 30d --dry-run",
        module=_MODULE,
    )
    prune.add_argument(
        "--older-than",
        metavar="TIME",
        type=_age,
        help="also those that were not used for so long, such as 30d or 12h, with their changes "
        "and branches",
    )
    prune.add_argument("--dry-run", action="store_true", help="only list what would be removed")
    add_json_option(prune.add_argument, "print a JSON array of what was removed")


def _add_name(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help=_NAME_HELP)


def _age(text: str) -> float:
    """In days."""
    if text.endswith("d") and text[:-1].replace(".", "", 1).isdigit():
        return float(text[:-1])
    if text == "0":
        return 0.0
    try:
        return duration(text) / 86_400
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a time such as 30d, 12h or 90m"
        ) from None
