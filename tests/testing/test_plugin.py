"""The pytest plugin: agents made in a test end with it, and nobody pays who does not use it."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points

import pytest

pytest_plugins = ["pytester"]

# Where it is installed pytest loads it by itself, and would not take it twice.
PLUGIN = (
    []
    if any(e.value == "dragoman.testing.plugin" for e in entry_points(group="pytest11"))
    else ["-p", "dragoman.testing.plugin"]
)


def test_a_test_gets_agents_by_the_script(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import asyncio
        from dragoman import Client
        from dragoman.testing.steps import say

        def test_hello(acp_agent, tmp_path):
            async def main():
                one, two = acp_agent([say("one")]), acp_agent([say("two")], name="second")
                async with Client.start(one.connect()) as first:
                    async with Client.start(two.connect()) as second:
                        for client in (first, second):
                            session = await client.new_session(tmp_path)
                            await session.prompt("go")
                            yield client.agent_info.name, session.state.entries[-1].text

            async def collect():
                return [said async for said in main()]

            assert asyncio.run(collect()) == [("scripted", "one"), ("second", "two")]
        """
    )
    pytester.runpytest(*PLUGIN, "-W", "error").assert_outcomes(passed=1)


def test_agents_end_with_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import asyncio
        import pytest

        loop = asyncio.new_event_loop()

        @pytest.fixture
        def left_open():
            transports = []
            yield transports
            for transport in transports:
                ended = asyncio.wait_for(transport.receive(), 60)
                assert loop.run_until_complete(ended) == b""
            loop.close()

        def test_it(left_open, acp_agent):
            async def connect():
                left_open.append(acp_agent().connect())
                await asyncio.sleep(0)

            loop.run_until_complete(connect())
        """
    )
    pytester.runpytest(*PLUGIN).assert_outcomes(passed=1)


def test_it_imports_nothing_before_it_is_used() -> None:
    program = (
        "import sys, pytest; before = set(sys.modules); import dragoman.testing.plugin; "
        "print(sorted(m for m in set(sys.modules) - before if m != 'dragoman._version'))"
    )
    argv = [sys.executable, "-c", program]
    done = subprocess.run(argv, capture_output=True, timeout=60, check=True, text=True)
    assert done.stdout.strip() == str(["dragoman", "dragoman.testing", "dragoman.testing.plugin"])
