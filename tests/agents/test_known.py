"""The table of known agents: whole, and the same as what the page about agents says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from dragoman.agents.extensions import Quirks, quirks_for
from dragoman.agents.known import KnownAgent, known_agents, known_as, known_command, known_names
from dragoman.agents.listing import list_agents
from dragoman.agents.settings.settings_file import AgentSettings, Settings
from dragoman.transport.stdio import AgentCommand

ROOT = Path(__file__).parents[2]
OTHERS = [agent for agent in known_agents() if not agent.built_in]


def test_the_page_about_agents_is_made_from_the_table() -> None:
    script = ROOT / "scripts" / "gen_agent_docs.py"
    done = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("agent", OTHERS, ids=[agent.name for agent in OTHERS])
def test_of_every_agent_is_known_how_to_get_it_and_how_to_sign_in(agent: KnownAgent) -> None:
    assert agent.command
    assert agent.homepage.startswith("https://")
    assert agent.sign_in
    assert agent.variable in agent.sign_in
    assert not (agent.tried and agent.seen)
    assert not agent.sign_in.endswith(".")  # it goes into sentences
    assert all(note.endswith(".") for note in agent.notes)


_RECORDED = {"kimicode": "kimi"}
"""Recordings that have another name than their agent."""


@pytest.mark.parametrize(
    "file", sorted((ROOT / "tests" / "recordings").glob("*.jsonl")), ids=lambda file: file.stem
)
def test_what_an_agent_reports_is_what_was_recorded(file: Path) -> None:
    text = file.read_text()
    signs = {"cost": ('"cost":{"amount":',), "tokens": ('"totalTokens":', '"input_tokens":')}
    seen = {what for what, some in signs.items() if any(sign in text for sign in some)}
    known = known_as(_RECORDED.get(file.stem, file.stem), None)
    assert known is not None
    assert set(known.tells or ()) == seen


def test_names_are_names_and_there_once() -> None:
    assert len(set(known_names())) == len(known_names())
    assert all(name.isalnum() and name.islower() for name in known_names())
    assert known_command("goose").args == ("acp",)


@pytest.mark.parametrize(
    ("name", "command", "found"),
    [
        ("goose", "/somewhere/else", "goose"),
        ("mine", "/usr/bin/gemini", "gemini"),
        ("mine", "python3", None),
        ("mine", None, None),
    ],
)
def test_an_agent_of_the_settings_is_known_by_its_name_or_its_program(
    name: str, command: str | None, found: str | None
) -> None:
    known = known_as(name, command)
    assert (None if known is None else known.name) == found


def test_an_agent_of_the_settings_is_listed_with_what_is_known_of_it() -> None:
    mine = AgentSettings(name="mine", command=AgentCommand("/opt/gemini", ("--acp",)))
    other = AgentSettings(name="other", command=AgentCommand("/opt/other"))
    listed = list_agents(Settings(agents={"mine": mine, "other": other}))
    assert [agent.variable for agent in listed[:2]] == ["GEMINI_API_KEY", ""]
    assert listed[0].homepage == "https://geminicli.com"


def test_quirks_are_those_of_agents_that_are_known() -> None:
    gemini = Quirks(missing_file="empty", command_titles=True)
    assert quirks_for("gemini-cli") == quirks_for("Gemini") == gemini
    assert quirks_for("anything else") == Quirks()
