"""`dragoman agents providers`: lists the model providers of an agent, or sets them.

An agent keeps its providers only while it runs. So they are in the settings, and are sent each time
it starts.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path
from typing import Any

import msgspec

from dragoman.agents.settings.settings_edits import drop_provider, set_provider
from dragoman.agents.settings.settings_file import ModelProvider
from dragoman.cli.exit_codes import UsageError
from dragoman.cli.render.printed_json import indented_json
from dragoman.cli.run import agent_setup
from dragoman.client.client import Client
from dragoman.data_directory import settings_file
from dragoman.safe_text import reveal

_MOST_HEADERS = 64 * 1024


def run(options: argparse.Namespace) -> int:
    _check(options)
    asyncio.run(_run(options))
    return 0


def _check(options: argparse.Namespace) -> None:
    change, given = options.change, options.api_type or options.base_url
    if change is not None and options.provider is None:
        raise UsageError(f"{change} needs the id of a provider: {change} ID")
    if change == "set" and not (options.api_type and options.base_url):
        raise UsageError("set needs --api-type and --base-url")
    if change != "set" and (given or options.header or options.headers_file):
        raise UsageError("--api-type, --base-url and headers belong to set")
    if change is not None and options.json:
        raise UsageError("--json is for the list")


async def _run(options: argparse.Namespace) -> None:
    options.agent_command = None
    choice = agent_setup.choose_agent(options)
    name, wanted = choice.agent.name, dict(choice.agent.providers)
    if options.change is not None and name not in choice.settings.agents:
        raise UsageError(f"{name} is not in your settings; add it to agent_servers first")
    if options.change == "reset":
        drop_provider(_file(options), name, options.provider)
        print(reveal(f"{name} starts with its own {options.provider} again"))
        return
    if options.change is not None:
        wanted.pop(options.provider, None)  # a wrong one must not keep the agent from starting
    async with Client.start(
        choice.agent.target,
        name=name,
        protocol=choice.agent.protocol,
        proxies=choice.agent.proxies,
        model_providers=wanted,
    ) as client:
        if options.change is not None:
            await _change(client, options)
        providers = await client.list_providers()
    if options.json:
        print(indented_json(providers))
    else:
        print(_table(name, providers))


async def _change(client: Client, options: argparse.Namespace) -> None:
    """First in the agent, which may refuse it, then in the settings."""
    agent, provider_id = options.agent, options.provider
    known = {each["providerId"]: each for each in await client.list_providers()}
    if provider_id not in known:
        names = ", ".join(known) or "none"
        raise UsageError(reveal(f"{agent} has no model provider {provider_id}; it has: {names}"))
    if options.change == "disable":
        await client.disable_provider(provider_id)
        set_provider(_file(options), agent, provider_id, None)
        return
    provider = _provider(options, known[provider_id])
    await client.set_provider(provider_id, provider.api_type, provider.base_url, provider.headers)
    set_provider(_file(options), agent, provider_id, msgspec.structs.asdict(provider))


def _file(options: argparse.Namespace) -> Path:
    return Path(options.settings or settings_file())


def _provider(options: argparse.Namespace, known: dict[str, Any]) -> ModelProvider:
    spoken = known["supported"]
    if spoken and options.api_type not in spoken:
        words = ", ".join(map(str, spoken))
        raise UsageError(reveal(f"--api-type {options.api_type}: it supports {words}"))
    headers = {} if options.headers_file is None else _from_file(options.headers_file)
    headers |= dict(map(_header, options.header))
    return ModelProvider(api_type=options.api_type, base_url=options.base_url, headers=headers)


def _header(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not name or not equals:
        raise UsageError(f"--header {word}: expected NAME=VALUE")
    return name, value


def _from_file(path: str) -> dict[str, str]:
    try:
        with sys.stdin.buffer if path == "-" else open(path, "rb") as file:
            return msgspec.json.decode(file.read(_MOST_HEADERS), type=dict[str, str])
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"--headers-file {path}: {reason}") from error
    except msgspec.DecodeError as error:
        expected = 'a JSON object such as {"Authorization": "Bearer …"}'
        raise UsageError(f"--headers-file {path}: expected {expected}") from error


def _table(agent: str, providers: list[dict[str, Any]]) -> str:
    if not providers:
        return reveal(f"{agent} has no model providers")
    width = max(len(each["providerId"]) for each in providers)
    return "\n".join(reveal(_row(each, width)) for each in providers)


def _row(provider: dict[str, Any], width: int) -> str:
    current = provider.get("current")
    state = "off" if current is None else f"{current['apiType']} at {current['baseUrl']}"
    spoken = ", ".join(map(str, provider["supported"]))
    notes = [f"supports {spoken}"] if spoken else []
    notes += ["required"] if provider["required"] else []
    more = f"  ({'; '.join(notes)})" if notes else ""
    return f"  {provider['providerId']:<{width}}  {state}{more}"
