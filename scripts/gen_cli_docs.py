"""Writes docs/cli.md from the parsers of the command line; `--check` only compares.

python scripts/gen_cli_docs.py [--check]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from dragoman.cli.commands.command_tree import Command, Option, commands

PAGE = Path(__file__).parent.parent / "docs" / "cli.md"
HEAD = """\
# The command line

Made from the command's own help by `scripts/gen_cli_docs.py`; `dragoman COMMAND --help` says the
same. How permissions work is in [permissions.md](permissions.md), how agents are set up in
[agents-setup.md](agents-setup.md), what scripts can rely on in [scripting.md](scripting.md).
"""


def page() -> str:
    sections = [section for command in commands() for section in _sections(command)]
    return "\n".join([HEAD, *sections])


def _sections(command: Command) -> Iterator[str]:
    for each in command.all():
        yield _section(each)


def _section(command: Command) -> str:
    level = "#" * max(2, len(command.words) + 1)
    title = " ".join(("dragoman", *command.words, *_shape(command)))
    parts = [f"{level} `{title}`", f"{command.about}."]
    if command.arguments:
        rows = [(f"`{_cell(a.name)}`", _cell(a.help)) for a in command.arguments]
        parts.append(_table("argument", rows))
    if not command.actions:
        rows = [(_flags(option), _cell(_help(option))) for option in command.options]
        parts.append(_table("option", rows))
    if command.notes:
        parts.append(f"```text\n{command.notes.strip()}\n```")
    return "\n\n".join(parts) + "\n"


def _shape(command: Command) -> list[str]:
    if not command.words:
        return ["[OPTIONS]", "[--]", "[PROMPT]"]
    if command.actions:
        return ["|".join(action.words[-1] for action in command.actions), "…"]
    names = [
        (argument, "|".join(argument.choices) or argument.name) for argument in command.arguments
    ]
    return ["[OPTIONS]", *(f"[{name}]" if a.optional else name for a, name in names)]


def _flags(option: Option) -> str:
    value = _cell(option.value)
    return ", ".join(f"`{flag}`" for flag in option.flags) + (f" `{value}`" if value else "")


def _help(option: Option) -> str:
    choices = f" ({', '.join(option.choices)})" if option.choices else ""
    return f"{option.help}{choices}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _table(heading: str, rows: list[tuple[str, str]]) -> str:
    lines = [f"| {heading} | meaning |", "|---|---|"]
    return "\n".join([*lines, *(f"| {name} | {text} |" for name, text in rows)])


def main() -> None:
    parser = argparse.ArgumentParser(description="The reference of the command line.")
    parser.add_argument("--check", action="store_true", help="fail when docs/cli.md is stale")
    fresh = page()
    if not parser.parse_args().check:
        PAGE.write_text(fresh)
    elif not PAGE.exists() or PAGE.read_text() != fresh:
        sys.exit("docs/cli.md is stale: run scripts/gen_cli_docs.py")


if __name__ == "__main__":
    main()
