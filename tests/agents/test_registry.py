"""Registries: a sound entry is understood, an unsound one is one clear error."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.agents.install.registry import find_agent
from dragoman.errors import ConfigError, UnknownAgent


def registry(**fields: Any) -> str:
    sound = {"id": "tiny", "version": "1.0.0", "distribution": {"npx": {"package": "x"}}}
    return json.dumps({"version": "1.0.0", "agents": [sound | fields, {"id": "other"}, 7]})


def test_an_entry_is_found_whatever_stands_beside_it() -> None:
    found = find_agent(registry(name="Tiny", preview={"version": "2"}), "file", "tiny")
    assert (found.id, found.name, found.version) == ("tiny", "Tiny", "1.0.0")
    assert found.distribution.npx is not None
    assert found.distribution.npx.package == "x"


def test_an_id_that_is_not_there_names_those_that_are() -> None:
    with pytest.raises(UnknownAgent, match="known agents: tiny, other"):
        find_agent(registry(), "file", "huge")


ARCHIVE = {"archive": "https://x/y", "cmd": "./y"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "file: expected the JSON of an ACP registry"),
        ("[" * 100_000, "file: expected the JSON of an ACP registry"),
        ("[]", "file: agents: expected a list of agents"),
        (registry(version="../../x"), "tiny.version: expected a version"),
        (registry(version="1.0/0"), "tiny.version: expected a version"),
        (registry(version=""), "tiny.version: expected a version"),
        (registry(version=7), "tiny: expected an entry of the registry"),
        (registry(distribution=None), "tiny: expected an entry of the registry"),
        (registry(distribution={"npx": {}}), "tiny: expected an entry of the registry"),
        (registry(distribution={"npx": {"package": "x", "args": "y"}}), "an entry of the registry"),
        (
            registry(distribution={"binary": {"linux-x86_64": ARCHIVE | {"sha256": "12"}}}),
            "tiny.linux-x86_64.sha256: expected 64 hexadecimal digits",
        ),
    ],
)
def test_an_unsound_registry_is_one_clear_error(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        find_agent(text, "file", "tiny")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("agent_id", ["..", "a/b", "A", "-x", ".hidden", "a" * 65])
def test_an_id_that_is_no_name_for_a_folder_is_refused(agent_id: str) -> None:
    with pytest.raises(ConfigError, match="lowercase letters, digits and hyphens"):
        find_agent(registry(id=agent_id), "file", agent_id)
