"""`dragoman agents`: lists, checks, installs, removes, signs in to and configures agents."""

from __future__ import annotations

import argparse

from dragoman.cli.options import (
    add_json_option,
    add_optional,
    add_repeatable,
    add_settings_option,
    name,
    seconds,
)
from dragoman.cli.parsers import Actions, run_action

REGISTRY = "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = Actions(parser, __name__)
    _add_list(actions)
    _add_add(actions)
    _add_default(actions)
    _add_doctor(actions)
    _add_install(actions)
    _add_remove(actions)
    _add_providers(actions)
    _add_login(actions)
    _add_logout(actions)


run = run_action


def _add_list(actions: Actions) -> None:
    parser = actions.add(
        "list", "list the agents in your settings, then other known agents", module="agent_list"
    )
    shape = parser.add_mutually_exclusive_group()
    add_json_option(shape.add_argument)
    shape.add_argument("--names", action="store_true", help="print only the names, one per line")
    add_settings_option(parser.add_argument)


def _add_add(actions: Actions) -> None:
    parser = actions.add(
        "add",
        "add an agent to the settings",
        "  dragoman agents add mine -- ./my-agent --acp\n"
        "  dragoman agents add work --env KEY=value --default -- goose acp\n"
        "  dragoman agents add remote -- wss://agents.example/acp",
        module="entries",
    )
    parser.add_argument("name", type=name, metavar="NAME", help="name for it in the settings")
    parser.add_argument(
        "command", metavar="CMD ARGS", nargs="*", help="the command or address, after --"
    )
    add_repeatable(parser.add_argument, "--env", "NAME=VALUE", "variable for its environment")
    parser.add_argument("--default", action="store_true", help="make it the default agent")
    parser.add_argument(
        "--replace", action="store_true", help="replace the agent that has this name"
    )
    add_settings_option(parser.add_argument)


def _add_default(actions: Actions) -> None:
    parser = actions.add(
        "default", "print the default agent, or choose another one", module="entries"
    )
    text = "agent from the settings, or a known one, which is added to them"
    add_optional(parser.add_argument, "name", "NAME", text)
    add_settings_option(parser.add_argument)


def _add_doctor(actions: Actions) -> None:
    parser = actions.add(
        "doctor",
        "start an agent in a temporary directory, or connect to it, and check its ACP support",
        "  dragoman agents doctor goose\n"
        "  dragoman agents doctor --agent-command './my-agent --acp' --json\n"
        "  dragoman agents doctor --agent-command wss://agents.example/acp\n\n"
        "Sends two short prompts to the model. The exit code is 1 if a check fails.",
    )
    _add_agent(parser)
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=60.0,
        help="time limit for each check (default: 60)",
    )
    add_json_option(parser.add_argument, "print the report as one JSON object")
    add_settings_option(parser.add_argument)


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
        help="registry file or https URL (default: the public ACP registry)",
    )
    parser.add_argument(
        "--name", metavar="NAME", help="name for it in the settings (default: its id)"
    )
    parser.add_argument(
        "--allow-scripts",
        action="store_true",
        help="let npm packages run their install scripts, which some need",
    )
    add_settings_option(parser.add_argument)


def _add_remove(actions: Actions) -> None:
    parser = actions.add(
        "remove",
        "remove an agent from the settings, and its files if it was installed",
        module="install",
    )
    parser.add_argument("name", metavar="NAME", help="the agent's name in the settings")
    add_settings_option(parser.add_argument)


def _add_providers(actions: Actions) -> None:
    parser = actions.add(
        "providers",
        "list the model providers of an agent, or set them in your settings",
        "  dragoman agents providers goose\n"
        "  dragoman agents providers goose set main \\\n"
        "      --api-type openai --base-url https://llm.example/v1\n"
        "  dragoman agents providers goose disable main\n"
        "  dragoman agents providers goose reset main       as if it had never been set\n\n"
        "Dragoman sends these settings to the agent each time it starts.",
    )
    parser.add_argument("agent", metavar="NAME", help="agent from the settings, or a known one")
    parser.add_argument(
        "change",
        metavar="set|disable|reset",
        choices=("set", "disable", "reset"),
        nargs="?",
        help="what to do with a provider (default: list all)",
    )
    add_optional(parser.add_argument, "provider", "ID", "the provider's id")
    parser.add_argument(
        "--api-type", metavar="TYPE", help="protocol to speak, such as openai or anthropic"
    )
    parser.add_argument("--base-url", metavar="URL", help="address for requests to the model")
    add_repeatable(parser.add_argument, "--header", "NAME=VALUE", "additional HTTP header")
    parser.add_argument(
        "--headers-file",
        metavar="FILE",
        help="file with a JSON object of HTTP headers, so that keys do not appear in the process "
        "list; - for standard input",
    )
    add_json_option(parser.add_argument)
    add_settings_option(parser.add_argument)


def _add_login(actions: Actions) -> None:
    parser = actions.add(
        "login",
        "sign in to an agent, or list its sign-in methods",
        "  dragoman agents login gemini                    list the methods\n"
        "  dragoman agents login gemini oauth-personal     sign in with one of them",
    )
    _add_agent(parser)
    text = "sign-in method (default: list the available methods)"
    add_optional(parser.add_argument, "method", "METHOD", text)
    add_settings_option(parser.add_argument)


def _add_logout(actions: Actions) -> None:
    parser = actions.add("logout", "sign out of an agent, if it supports that", module="login")
    _add_agent(parser)
    add_settings_option(parser.add_argument)


def _add_agent(parser: argparse.ArgumentParser) -> None:
    text = "agent from the settings, or a known one (default: the default agent)"
    add_optional(parser.add_argument, "agent", "NAME", text)
    parser.add_argument(
        "--agent-command",
        metavar="'CMD ARGS'",
        help="run this command as the agent; needs no settings",
    )
