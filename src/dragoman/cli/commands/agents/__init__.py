"""`dragoman agents`: which agents there are, whether they work, getting and removing them."""

from __future__ import annotations

import argparse
from importlib import import_module

from dragoman.cli.options import seconds
from dragoman.cli.parsers import Actions

REGISTRY = "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json"

_MODULES = {
    "list": "list",
    "doctor": "doctor",
    "install": "install",
    "remove": "install",
    "login": "sign_in",
    "logout": "sign_in",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = Actions(parser)
    _add_list(actions)
    _add_doctor(actions)
    _add_install(actions)
    _add_remove(actions)
    _add_login(actions)
    _add_logout(actions)


def run(options: argparse.Namespace) -> int:
    return import_module(f"{__name__}.{_MODULES[options.action]}").run(options)


def _add_list(actions: Actions) -> None:
    parser = actions.add("list", "list the agents of your settings, then those known by name")
    shape = parser.add_mutually_exclusive_group()
    shape.add_argument("--json", action="store_true", help="as a JSON array of objects")
    shape.add_argument("--names", action="store_true", help="the names alone, one a line")
    _add_settings(parser)


def _add_doctor(actions: Actions) -> None:
    parser = actions.add(
        "doctor",
        "start an agent in a scratch folder, or reach it, and check how well it speaks ACP",
        "  dragoman agents doctor goose\n"
        "  dragoman agents doctor --agent-command './my-agent --acp' --json\n"
        "  dragoman agents doctor --agent-command wss://agents.example/acp\n\n"
        "Two short prompts are sent to the model. The exit code is 1 when a check failed.",
    )
    _add_agent(parser)
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=60.0,
        help="how long each check may take (default: 60)",
    )
    parser.add_argument("--json", action="store_true", help="the report as one JSON object")
    _add_settings(parser)


def _add_install(actions: Actions) -> None:
    parser = actions.add(
        "install",
        "install an agent from an ACP registry and add it to the settings",
        "  dragoman agents install goose\n"
        "  dragoman agents install my-agent --registry ./registry.json --name mine",
    )
    parser.add_argument("id", metavar="ID", help="the agent's id in the registry")
    parser.add_argument(
        "--registry",
        metavar="FILE|URL",
        default=REGISTRY,
        help="a registry file, or its https address (default: the public ACP registry)",
    )
    parser.add_argument("--name", metavar="NAME", help="what to call it (default: its id)")
    parser.add_argument(
        "--allow-scripts",
        action="store_true",
        help="let npm packages run their install scripts; some need it",
    )
    _add_settings(parser)


def _add_remove(actions: Actions) -> None:
    parser = actions.add("remove", "remove an agent that was installed, and its entry")
    parser.add_argument("name", metavar="NAME", help="its name in the settings")
    _add_settings(parser)


def _add_login(actions: Actions) -> None:
    parser = actions.add(
        "login",
        "sign in to an agent, or list the ways it offers",
        "  dragoman agents login gemini                    which ways there are\n"
        "  dragoman agents login gemini oauth-personal     go one of them",
    )
    _add_agent(parser)
    parser.add_argument(
        "method", metavar="METHOD", nargs="?", help="the way (default: only list them)"
    )
    _add_settings(parser)


def _add_logout(actions: Actions) -> None:
    parser = actions.add("logout", "sign out of an agent, where it offers that")
    _add_agent(parser)
    _add_settings(parser)


def _add_agent(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "agent",
        metavar="NAME",
        nargs="?",
        help="an agent from the settings, else a known one (default: the default agent)",
    )
    parser.add_argument(
        "--agent-command",
        metavar="'CMD ARGS'",
        help="the agent that this command starts, no settings are needed",
    )


def _add_settings(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--settings", metavar="PATH", help="the settings file")
