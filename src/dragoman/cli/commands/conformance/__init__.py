"""`dragoman conformance`: examines an agent or a client by the specification of ACP."""

from __future__ import annotations

import argparse

from dragoman.cli.options import add_json_option, add_repeatable, add_settings_option, seconds
from dragoman.cli.parsers import Actions, run_action


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = Actions(parser, __name__)
    _add_agent(actions)
    _add_client(actions)


run = run_action


def _add_agent(actions: Actions) -> None:
    parser = actions.add(
        "agent",
        "check an agent against the specification of ACP",
        "  dragoman conformance agent -- ./my-agent --acp\n"
        "  dragoman conformance agent -- wss://agents.example/acp\n"
        "  dragoman conformance agent -a goose --only session --only cancel\n"
        "  dragoman conformance agent --report junit.xml --report badge.svg -- ./my-agent\n"
        "  dragoman conformance agent --explain rpc.unknown-method\n\n"
        "Sends some short prompts to the model. Files and commands that the agent asks\n"
        "for exist only in memory. The exit code is 1 if a check fails (see --fail-on).",
        module="agent_conformance",
    )
    parser.add_argument(
        "command", metavar="CMD ARGS", nargs="*", help="the command or address, after --"
    )
    parser.add_argument(
        "-a", "--agent", metavar="NAME", help="check an agent from the settings, or a known one"
    )
    add_repeatable(
        parser.add_argument,
        "--prompt",
        "KIND=TEXT",
        "replace one of the prompts (short, long or work), for an agent with a stand-in for a "
        "model; {cwd} is the directory of the session",
    )
    add_check_options(parser, 20.0)
    add_settings_option(parser.add_argument)


def _add_client(actions: Actions) -> None:
    parser = actions.add(
        "client",
        "check a client against the specification of ACP",
        "  dragoman conformance client -- ./my-client --agent {agent} 'say hello'\n"
        "  dragoman conformance client --answer 'cancel=kill -INT {pid}' \\\n"
        "      --answer 'allow=./my-client --yes --agent {agent} hello' -- ./my-client …\n"
        "  dragoman conformance client --list\n\n"
        "Each check starts the client, with {agent} replaced by the path of a program.\n"
        "The client must start this program as its agent and send it one prompt. The exit\n"
        "code is 1 if a check fails (see --fail-on).",
        module="client_conformance",
    )
    parser.add_argument(
        "command", metavar="CMD ARGS", nargs="*", help="the client's command, after --"
    )
    add_repeatable(
        parser.add_argument,
        "--answer",
        "ACTION=COMMAND",
        "command that does what a person would: allow, reject, cancel or load. One that contains "
        "{agent} starts the client in place of its usual command; any other runs in addition, with "
        "{pid} replaced by the client's process id",
    )
    add_check_options(parser, 10.0)


def add_check_options(parser: argparse.ArgumentParser, patience: float) -> None:
    """What both actions take."""
    add_repeatable(
        parser.add_argument,
        "--only",
        "ID",
        "run only this check, those of a subject (`session`), or those that match a pattern "
        "(`session.*`)",
    )
    add_repeatable(parser.add_argument, "--skip", "ID", "leave out a check, a subject or a pattern")
    parser.add_argument("--list", action="store_true", help="list the checks without running them")
    parser.add_argument("--explain", metavar="ID", help="say what a check does and why")
    parser.add_argument(
        "--fail-on",
        metavar="must|should|may",
        choices=("must", "should", "may"),
        default="must",
        help="exit with 1 if a check of this level or a stricter one fails (default: must)",
    )
    add_repeatable(
        parser.add_argument,
        "--report",
        "FILE",
        "also write a report: .json, .xml (JUnit), .md or .svg (a badge)",
    )
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=patience,
        help=f"time limit for each answer (default: {patience:g})",
    )
    add_json_option(parser.add_argument, "print the report as one JSON object")
