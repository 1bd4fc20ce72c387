"""`dragoman completion`: a script for a shell, generated from the parsers themselves."""

from __future__ import annotations

import argparse

_EXAMPLES = """\
examples:
  dragoman completion bash > ~/.local/share/bash-completion/completions/dragoman
  dragoman completion zsh > ~/.zfunc/_dragoman       with ~/.zfunc in your fpath
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
