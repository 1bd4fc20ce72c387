"""Changes `settings.json`: adds an agent or its model providers, or takes them out.

The order of what is there stays. A file that is not sound is left alone, with the usual error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from dragoman.agents.settings.settings_file import parse_settings
from dragoman.agents.settings.value_reader import MAX_SETTINGS_BYTES
from dragoman.host.workspace.regular_file import read_regular
from dragoman.lazy_pattern import lazy_pattern

_INDENT = lazy_pattern(r"\n([ \t]+)\S")


def set_agent(path: Path, name: str, entry: Mapping[str, Any]) -> None:
    """Add an agent behind the others, or replace it in its place. Raises ConfigError, OSError."""
    text = _text(path)
    document = _document(text, path)
    document.setdefault("agent_servers", {})[name] = dict(entry)
    edited = _rendered(document, text)
    parse_settings(edited, str(path))  # what was typed may not be a sound name, for example
    write_settings(path, edited)


def put_agent_first(path: Path, name: str) -> None:
    """Make an agent that is there the default. Raises ConfigError, OSError."""
    text = _text(path)
    document = _document(text, path)
    agents = document["agent_servers"]
    document["agent_servers"] = {name: agents.pop(name), **agents}
    write_settings(path, _rendered(document, text))


def drop_agent(path: Path, name: str) -> None:
    """Take an agent out, if it is there. Raises ConfigError, OSError."""
    text = _text(path)
    document = _document(text, path)
    document.get("agent_servers", {}).pop(name, None)
    write_settings(path, _rendered(document, text))


def set_provider(path: Path, agent: str, provider_id: str, entry: Mapping[str, Any] | None) -> None:
    """Set a model provider of an agent that is there; None switches it off. Raises ConfigError,
    OSError."""
    _edit_providers(path, agent, lambda providers: providers.update({provider_id: entry}))


def drop_provider(path: Path, agent: str, provider_id: str) -> None:
    """Take a model provider out, if it is there. Raises ConfigError, OSError."""
    _edit_providers(path, agent, lambda providers: providers.pop(provider_id, None))


def _edit_providers(path: Path, agent: str, edit: Callable[[dict[str, Any]], object]) -> None:
    text = _text(path)
    document = _document(text, path)
    found = document["agent_servers"][agent]
    edit(providers := found.pop("providers", {}))
    if providers:
        found["providers"] = providers
    edited = _rendered(document, text)
    parse_settings(edited, str(path))  # what was typed may not be a valid header, for example
    write_settings(path, edited)


def _text(path: Path) -> str:
    try:
        return read_regular(path, MAX_SETTINGS_BYTES, links=True).decode()
    except FileNotFoundError:
        return "{}"


def _document(text: str, path: Path) -> dict[str, Any]:
    parse_settings(text, str(path))
    return json.loads(text)


def _rendered(document: dict[str, Any], before: str) -> str:
    """With the indentation the file had."""
    found = _INDENT.search(before)
    indent = found[1] if found else "  "
    return json.dumps(document, indent=indent, ensure_ascii=False) + "\n"


def write_settings(path: Path, text: str) -> None:
    """In one step; a link stays a link, and the file keeps its mode. It may hold keys: 0600."""
    real = Path(os.path.realpath(path))
    real.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = real.stat().st_mode & 0o777 if real.exists() else 0o600
    temporary = real.with_name(f".{real.name}.{os.getpid()}.new")
    try:
        with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        temporary.replace(real)
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()
