"""An agent that has its modes as a config option, as OpenCode has."""

from __future__ import annotations

from dragoman.schema import v1
from dragoman.testing import ScriptedAgent
from dragoman.testing.steps import say

OPTION = v1.SessionConfigSelect(
    id="agent",
    name="Agent",
    category="mode",
    current_value="build",
    options=[
        v1.SessionConfigSelectOption(value="build", name="Build"),
        v1.SessionConfigSelectOption(value="plan", name="Plan", description="changes nothing"),
    ],
)
agent = ScriptedAgent([say("hello")], config_options=[OPTION])
