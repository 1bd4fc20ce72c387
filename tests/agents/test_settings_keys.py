"""The table of settings keys, from which the reference is made, is what the reader accepts."""

from __future__ import annotations

import msgspec
import pytest

from dragoman import ConfigError, Quirks, Retention
from dragoman.agents.settings import setting_keys
from dragoman.agents.settings.settings_file import parse_settings
from dragoman.host.fence.fence_terms import FenceTerms
from dragoman.session.facts import Offer


@pytest.mark.parametrize(
    ("table", "struct"),
    [
        (setting_keys.QUIRKS_KEYS, Quirks),
        (setting_keys.RETENTION_KEYS, Retention),
        (setting_keys.FENCE_KEYS, FenceTerms),
    ],
)
def test_a_table_names_every_field(table: setting_keys.Keys, struct: type[msgspec.Struct]) -> None:
    assert set(table) == set(struct.__struct_fields__)


def test_an_offer_has_every_field_but_the_fence_which_is_a_key_of_its_own() -> None:
    assert {*setting_keys.OFFER_KEYS, "fence"} == set(Offer.__struct_fields__)
    assert "fence" in setting_keys.AGENT_KEYS


@pytest.mark.parametrize("key", setting_keys.AGENT_KEYS)
def test_every_key_of_an_agent_is_read(key: str) -> None:
    """A wrong value is noticed by its key; `type` alone means nothing to us."""
    entry: dict[str, object] = {"command": "a", key: 7}
    if key == "url":
        del entry["command"]
    text = msgspec.json.encode({"agent_servers": {"it": entry}}).decode()
    if key == "type":
        assert "it" in parse_settings(text, "s.json").agents
        return
    with pytest.raises(ConfigError, match=f"agent_servers.it.{key}"):
        parse_settings(text, "s.json")


def test_a_key_that_is_not_in_the_table_is_refused() -> None:
    with pytest.raises(ConfigError, match="did you mean command"):
        parse_settings('{"agent_servers": {"it": {"comand": "a"}}}', "s.json")
