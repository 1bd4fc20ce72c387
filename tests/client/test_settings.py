"""What can be chosen in a session: modes, options, models, old ways and new."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.clients import gathered, opened, until
from support.raw_agent import RawAgent

from dragoman.client.sessions.config_options import with_own
from dragoman.errors import SessionGone, Unsupported
from dragoman.session import events as e
from dragoman.session.facts import ConfigChoice, ConfigOption, Mode
from dragoman.session.state_limits import LIMITS, weigh_struct

MODES = {
    "currentModeId": "ask",
    "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
}
SELECT = {
    "type": "select",
    "id": "effort",
    "name": "Effort",
    "currentValue": "low",
    "options": [{"value": "low", "name": "Low"}, {"value": "high", "name": "High"}],
}
BOOLEAN = {"type": "boolean", "id": "fast", "name": "Fast", "currentValue": False}
MODEL = {
    "type": "select",
    "id": "llm",
    "name": "Model",
    "category": "model",
    "currentValue": "a",
    "options": [
        {
            "group": "g",
            "name": "Group",
            "options": [{"value": "a", "name": "A"}, {"value": "b", "name": "B"}],
        }
    ],
}


# ── modes, options, models ────────────────────────────────────────────────────────────────────


async def test_the_mode_is_set_and_recorded_once(tmp_path: Path) -> None:
    agent = RawAgent(session__new={"sessionId": "s1", "modes": MODES})
    async with opened(agent, tmp_path) as (_, session):
        events = session.events()
        await session.set_mode("code")
        assert session.state.mode == Mode("code", "Code")

        def tells(params: Any) -> Any:
            agent.update("current_mode_update", currentModeId="ask")
            return {}

        agent.answers["session/set_mode"] = tells
        await session.set_mode("ask")
        assert session.state.mode == Mode("ask", "Ask")
        await session.close()
        changes = [event for event in await gathered(events) if isinstance(event, e.ModeChanged)]
        assert [event.mode_id for event in changes] == ["code", "ask"]
    assert agent.sent("session/set_mode")[0] == {"sessionId": "s1", "modeId": "code"}


async def test_a_mode_the_agent_does_not_have_is_not_sent(tmp_path: Path) -> None:
    agent = RawAgent(session__new={"sessionId": "s1", "modes": MODES})
    async with opened(agent, tmp_path) as (_, session):
        with pytest.raises(ValueError, match="no mode 'yolo'; there are: ask, code"):
            await session.set_mode("yolo")
    assert agent.sent("session/set_mode") == []


async def test_modes_may_be_an_option(tmp_path: Path) -> None:
    option = SELECT | {"id": "m", "category": "mode"}
    agent = RawAgent(
        session__new={"sessionId": "s1", "configOptions": [option]},
        session__set_config_option={"configOptions": [option | {"currentValue": "high"}]},
    )
    async with opened(agent, tmp_path) as (_, session):
        await session.set_mode("high")
        assert session.state.config_options[0].value == "high"


@pytest.mark.parametrize(
    ("name", "arguments", "feature"),
    [
        ("set_mode", ["x"], "modes"),
        ("set_config_option", ["x", "y"], "config options"),
        ("set_model", ["x"], "choosing a model"),
    ],
)
async def test_settings_an_agent_does_not_have_are_an_error(
    name: str, arguments: list[str], feature: str, tmp_path: Path
) -> None:
    agent = RawAgent()
    async with opened(agent, tmp_path) as (_, session):
        with pytest.raises(Unsupported, match=feature):
            await getattr(session, name)(*arguments)
        await session.close()
        with pytest.raises(SessionGone):
            await getattr(session, name)(*arguments)


async def test_options_are_set_by_choice_or_switched(tmp_path: Path) -> None:
    agent = RawAgent(
        session__new={"sessionId": "s1", "configOptions": [SELECT, BOOLEAN]},
        session__set_config_option={"configOptions": [SELECT | {"currentValue": "high"}, BOOLEAN]},
    )
    async with opened(agent, tmp_path) as (_, session):
        await session.set_config_option("effort", "high")
        assert session.state.config_options[0].value == "high"
        # An agent that answers without its options has taken the value all the same.
        agent.answers["session/set_config_option"] = {}
        await session.set_config_option("fast", True)
        assert [option.value for option in session.state.config_options] == ["high", True]
    assert agent.sent("session/set_config_option") == [
        {"sessionId": "s1", "configId": "effort", "value": "high"},
        {"sessionId": "s1", "configId": "fast", "value": True, "type": "boolean"},
    ]


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        ("effort", "medium", "cannot be 'medium'; it can be: low, high"),
        ("effort", True, "cannot be True"),
        ("fast", "yes", "is on or off"),
        ("slow", "yes", "no option 'slow'; there are: effort, fast"),
    ],
)
async def test_a_value_an_option_does_not_have_is_not_sent(
    option: str, value: str | bool, why: str, tmp_path: Path
) -> None:
    agent = RawAgent(session__new={"sessionId": "s1", "configOptions": [SELECT, BOOLEAN]})
    async with opened(agent, tmp_path) as (_, session):
        with pytest.raises(ValueError, match=why):
            await session.set_config_option(option, value)
    assert agent.sent("session/set_config_option") == []


async def test_the_model_is_an_option_of_that_category(tmp_path: Path) -> None:
    agent = RawAgent(
        session__new={"sessionId": "s1", "configOptions": [SELECT, MODEL]},
        session__set_config_option={"configOptions": [SELECT, MODEL | {"currentValue": "b"}]},
    )
    async with opened(agent, tmp_path) as (_, session):
        assert session.state.config_options[1].choices == [
            ConfigChoice("a", "A", group="Group"),
            ConfigChoice("b", "B", group="Group"),
        ]
        await session.set_model("b")
    assert agent.sent("session/set_config_option")[0]["configId"] == "llm"


OLD_MODELS = {
    "currentModelId": "a",
    "availableModels": [{"modelId": "a", "name": "A"}, {"modelId": "b", "description": "big"}],
}


async def test_models_of_the_older_api_are_set_with_its_own_method(tmp_path: Path) -> None:
    agent = RawAgent(session__new={"sessionId": "s1", "models": OLD_MODELS})
    async with opened(agent, tmp_path) as (_, session):
        (option,) = session.state.config_options
        assert (option.category, option.value) == ("model", "a")
        assert option.choices == [ConfigChoice("a", "A"), ConfigChoice("b", "b", "big")]
        await session.set_model("b")
        assert session.state.config_options[0].value == "b"
        with pytest.raises(ValueError, match="cannot be 'c'"):
            await session.set_model("c")
    assert agent.sent("session/set_model") == [{"sessionId": "s1", "modelId": "b"}]


async def test_models_of_the_older_api_stay_when_the_agent_tells_its_options(
    tmp_path: Path,
) -> None:
    agent = RawAgent(
        session__new={"sessionId": "s1", "models": OLD_MODELS, "configOptions": [SELECT]},
        session__set_config_option={"configOptions": [SELECT | {"currentValue": "high"}]},
    )
    async with opened(agent, tmp_path) as (_, session):
        await session.set_config_option("effort", "high")
        agent.update("config_option_update", configOptions=[BOOLEAN])
        await until(lambda: session.state.config_options[0].id == "fast")
        await session.set_model("b")
        assert [option.value for option in session.state.config_options] == [False, "b"]


async def test_models_that_make_no_sense_are_no_models(tmp_path: Path) -> None:
    agent = RawAgent(session__new={"sessionId": "s1", "models": ["a", "b"]})
    async with opened(agent, tmp_path) as (_, session):
        assert session.state.config_options == []


def test_an_option_we_made_up_gives_way_to_the_agents_own() -> None:
    own = ConfigOption("dragoman.model", "Model", "a", category="model")
    real = ConfigOption("llm", "Model", "a", category="model")
    other = ConfigOption("x", "X", True)
    assert with_own([other], [own]) == [other, own]
    assert with_own([real], [own]) == [real]
    assert with_own([own], [own]) == [own]


async def test_an_option_of_ours_is_small_and_no_agent_can_tell_of_it(tmp_path: Path) -> None:
    models = [{"modelId": f"{number}", "name": "x" * 100} for number in range(5_000)]
    told = {"currentModelId": "1", "availableModels": models}
    agent = RawAgent(session__new={"sessionId": "s1", "models": told})
    async with opened(agent, tmp_path) as (_, session):
        [own] = session.state.config_options
        assert 0 < weigh_struct(own) < 2 * LIMITS.fact
        agent.update("config_option_update", configOptions=[{**BOOLEAN, "id": "dragoman.x"}])
        agent.update("config_option_update", configOptions=[BOOLEAN])
        await until(lambda: session.state.config_options[0].id == "fast")
        assert [option.id for option in session.state.config_options] == ["fast", own.id]
