"""Requests of real agents that people answered with "always", and what such an answer covers."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from support.permission_requests import ALWAYS, RECORDED, RecordedRequest, recorded_claim

from dragoman.client.dialects.translation import permission_option
from dragoman.host.permissions.offers import Offers
from dragoman.host.rules.access import Access
from dragoman.host.rules.policy import Policy
from dragoman.host.rules.rule import Rule
from dragoman.host.workspace.roots import Workspace
from dragoman.schema import codec, v1

# The same program with other arguments, by the name of the request.
REPEATED = {
    "goose-pytest": ("pytest -q", "pytest -q tests/x.py"),
    "opencode-cd": ("cd src && ls", "cd src && ls -la"),
    "opencode-and": ("git status --short && echo done", "git status && echo over"),
    "opencode-status": ("git status --short", "git status src"),
    "gemini-line": ("ls -la && wc -l README.md", "ls src && wc -c README.md"),
    "kimicode-bash": ("echo one && wc -l README.md", "echo two && wc README.md"),
}
UNRELATED = ("make", "rm -rf .", "git push", "cat a && curl example.com")


async def access(request: RecordedRequest, cwd: Path) -> Access:
    return (await recorded_claim(request, cwd)).access


def said_otherwise(request: RecordedRequest, words: str, other: str) -> RecordedRequest:
    """The same request with another command in every place that has it."""
    text = msgspec.json.encode(request).decode()
    assert words in text
    return msgspec.json.decode(text.replace(words, other), type=RecordedRequest)


def offers(of: Access, cwd: Path) -> Offers:
    policy, workspace = Policy(), Workspace("s", str(cwd))
    return Offers(of, policy.decide(of, workspace), policy, workspace)


def effect(rules: tuple[Rule, ...], of: Access, cwd: Path) -> str:
    return Policy(rules).decide(of, Workspace("s", str(cwd))).effect


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    return tmp_path


@pytest.mark.parametrize("name", ALWAYS)
async def test_always_makes_rules_that_allow_the_same_and_nothing_of_the_others(
    name: str, cwd: Path
) -> None:
    asked = await access(RECORDED[name], cwd)
    rules = offers(asked, cwd).rules("allow", "project")
    assert isinstance(rules, tuple)
    assert effect(rules, await access(RECORDED[name], cwd), cwd) == "allow"
    for other in (each for each in ALWAYS if each.split("-")[0] != name.split("-")[0]):
        assert effect(rules, await access(RECORDED[other], cwd), cwd) == "ask", other


@pytest.mark.parametrize("name", REPEATED)
async def test_the_same_program_covers_its_obvious_repetition_and_no_other_command(
    name: str, cwd: Path
) -> None:
    words, repeated = REPEATED[name]
    offered = offers(await access(RECORDED[name], cwd), cwd)
    request = codec.decode(msgspec.json.encode(RECORDED[name].request), v1.RequestPermissionRequest)
    offered.offer([permission_option(option) for option in request.options])
    chosen = offered.chosen("remember:program:project")
    assert chosen is not None
    _, rules = chosen
    again = await access(said_otherwise(RECORDED[name], words, repeated), cwd)
    assert effect(rules, again, cwd) == "allow"
    for other in UNRELATED:
        of = await access(said_otherwise(RECORDED[name], words, other), cwd)
        assert effect(rules, of, cwd) == "ask"
