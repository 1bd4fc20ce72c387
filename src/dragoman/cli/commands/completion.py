"""`dragoman completion`: prints a shell completion script, generated from the parsers."""

from __future__ import annotations

import argparse

_EXAMPLES = """\
examples:
  dragoman completion bash > ~/.local/share/bash-completion/completions/dragoman
  dragoman completion zsh > ~/.zfunc/_dragoman     if ~/.zfunc is in your fpath
  dragoman completion fish > ~/.config/fish/completions/dragoman.fish"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = _EXAMPLES
    parser.add_argument(
        "shell", metavar="SHELL", choices=("bash", "zsh", "fish"), help="bash, zsh or fish"
    )


def run(options: argparse.Namespace) -> int:
    from dragoman.cli.commands.completion_scripts import SCRIPTS

    print(SCRIPTS[options.shell](), end="")
    return 0
