"""From a GitHub issue to a branch with a commit, written by an agent.

    python issue_to_branch.py 42 --agent claude             # asks `gh` for the issue
    python issue_to_branch.py 42 --issue issue.json         # or takes it from a file

It works in a git repository without changes, and pushes nothing.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

import msgspec

import dragoman


class Issue(msgspec.Struct):
    title: str
    body: str = ""


class Change(msgspec.Struct):
    """`fixed` is false if the issue cannot be solved by a change here. The message is that of the
    commit: a short subject, an empty line, and why."""

    fixed: bool
    message: str


def run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def issue_of(number: int, file: str | None) -> Issue:
    if file is not None:
        text = Path(file).read_text()
    else:
        text = run("gh", "issue", "view", str(number), "--json", "title,body")
    return msgspec.json.decode(text, type=Issue)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("number", type=int)
    parser.add_argument("--issue", metavar="FILE", help="the issue as JSON: title and body")
    parser.add_argument("--agent", default="claude")
    options = parser.parse_args()

    if run("git", "status", "--porcelain"):
        sys.exit("there are changes that are not committed")
    issue = issue_of(options.number, options.issue)
    slug = re.sub(r"[^a-z0-9]+", "-", issue.title.lower()).strip("-")[:40]
    branch = f"issue-{options.number}-{slug}"
    run("git", "switch", "--create", branch)

    # What someone wrote into an issue is not to be obeyed: only files in this folder are writable.
    agents = dragoman.load_settings().agents
    known = agents[options.agent].command if options.agent in agents else None
    change = dragoman.ask(
        f"Solve this issue in the current folder. Title: {issue.title}\n\n{issue.body}",
        output=Change,
        agent=known or options.agent,
        policy=dragoman.Policy([dragoman.Rule(effect="allow", operation="write")]),
    )
    if not change.fixed or not run("git", "status", "--porcelain"):
        run("git", "switch", "-")
        run("git", "branch", "--delete", branch)
        sys.exit(f"nothing was changed: {change.message}")
    run("git", "add", "--all")
    run("git", "commit", "--message", change.message)
    print(f"{branch}: {run('git', 'log', '-1', '--format=%s')}")


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(error.cmd)}: {error.stderr}")
