"""Rules that are kept with a project count once a person has trusted them, as they were then."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Sequence
from pathlib import Path

import pytest

from dragoman.errors import ConfigError
from dragoman.host.rules.access import file_access
from dragoman.host.rules.policy import Policy
from dragoman.host.rules.project_file import MOST_BYTES, NAME, RulesInForce, read_project_file
from dragoman.host.rules.protected import protection
from dragoman.host.rules.rule import Rule
from dragoman.host.workspace.roots import Workspace

ALLOW = '[[rules]]\neffect = "allow"\noperation = "write"\n'
DENY = '[[rules]]\neffect = "deny"\noperation = "write"\npath = "secret/**"\n'


class Stored:
    def __init__(self) -> None:
        self.rules: list[Rule] = []

    def list(self) -> Sequence[Rule]:
        return list(self.rules)

    def add(self, rule: Rule) -> None:
        self.rules.append(rule)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".dragoman").mkdir()
    (tmp_path / NAME).write_text(ALLOW + DENY)
    return tmp_path


def trusted(project: Path) -> Stored:
    stored, file = Stored(), read_project_file(str(project))
    assert file is not None
    stored.rules += file.rules()
    return stored


def effect(stored: Stored, project: Path, path: str, *, yolo: bool = False) -> str:
    access = file_access("write", str(project / path), agent="a", roots=[str(project)])
    policy = Policy(yolo=yolo, stored=stored)
    return policy.decide(access, Workspace("s", str(project))).effect


def remark(stored: Stored, project: Path) -> str:
    return Policy(stored=stored).remark(Workspace("s", str(project))) or ""


def test_nothing_in_an_untrusted_file_counts(project: Path) -> None:
    stored = Stored()
    assert effect(stored, project, "a") == "ask"
    assert effect(stored, project, "secret/a", yolo=True) == "allow"
    assert "is not trusted, so its rules do not apply" in remark(stored, project)


def test_a_trusted_file_counts_as_it_is(project: Path) -> None:
    stored = trusted(project)
    assert effect(stored, project, "a") == "allow"
    assert effect(stored, project, "secret/a", yolo=True) == "deny"
    assert remark(stored, project) == ""


@pytest.mark.parametrize("change", ["another", "a comment", "gone", "link", "unreadable"])
def test_a_changed_file_allows_nothing_and_still_denies(project: Path, change: str) -> None:
    stored, file = trusted(project), project / NAME
    match change:
        case "another":
            file.write_text(ALLOW)
        case "a comment":
            file.write_text(ALLOW + DENY + "# more\n")
        case "gone":
            file.unlink()
        case "link":
            file.rename(project / "elsewhere.toml")
            os.symlink(project / "elsewhere.toml", file)
        case _:
            file.write_bytes(b"x" * (MOST_BYTES + 1))
    assert effect(stored, project, "a") == "ask"
    assert effect(stored, project, "secret/a", yolo=True) == "deny"
    assert NAME in remark(stored, project)


def test_a_file_that_is_back_counts_again(project: Path) -> None:
    stored = trusted(project)
    (project / NAME).rename(project / "kept")
    assert effect(stored, project, "a") == "ask"
    (project / "kept").rename(project / NAME)
    assert effect(stored, project, "a") == "allow"


def test_the_same_file_in_another_project_is_not_trusted(project: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (other / ".dragoman").mkdir(parents=True)
    (other / NAME).write_text(ALLOW + DENY)
    stored = trusted(project)
    assert effect(stored, other, "a") == "ask"
    assert "is not trusted" in remark(stored, other)


def test_a_folder_that_leads_out_of_the_project_is_not_read(tmp_path: Path, project: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    os.symlink(project / ".dragoman", other / ".dragoman")
    with pytest.raises(ConfigError, match="not a link"):
        read_project_file(str(other))
    os.unlink(other / ".dragoman")
    (other / ".dragoman").mkdir()
    os.mkfifo(other / NAME)
    with pytest.raises(ConfigError, match="not a regular file"):
        read_project_file(str(other))


def test_an_agent_that_wants_to_write_the_file_is_asked_about(project: Path) -> None:
    stored = trusted(project)
    assert effect(stored, project, NAME, yolo=True) == "ask"
    assert protection(f"{project}/.Dragoman/policy.toml") == "it says what agents may do"


def test_what_is_not_trusted_is_not_parsed(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = trusted(project)

    def loads(_text: str) -> None:
        raise AssertionError("it was parsed")

    monkeypatch.setattr(tomllib, "loads", loads)
    assert remark(stored, project) == ""
    assert "is not trusted" in remark(Stored(), project)
    (project / NAME).write_text(ALLOW)
    assert "has changed" in remark(stored, project)
    (project / NAME).write_text("# nothing yet\n")
    assert remark(Stored(), project) == ""


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (f"{'.'.join('a' * 30_000)} = 1\n", "line 1"),
        (f"\n[{'.'.join('a' * 30_000)}]\n", "line 2"),
        ('[[rules]]\neffect="ask"\n' * 501, "at most 500 rules"),
    ],
)
def test_a_file_that_takes_long_to_read_is_refused(
    project: Path, content: str, problem: str
) -> None:
    (project / NAME).write_text(content)
    file = read_project_file(str(project))
    assert file is not None
    with pytest.raises(ConfigError, match=problem):
        file.rules()


def test_rules_are_looked_through_again_when_they_or_the_file_change(
    project: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = str(tmp_path_factory.mktemp("other"))
    rules, in_force = tuple(trusted(project).rules), RulesInForce()
    allow, deny = rules
    assert in_force.of(rules, str(project)) == (allow, deny)
    assert in_force.of(rules, str(project)) is in_force.of(rules, str(project))
    (project / NAME).write_text(ALLOW)
    assert in_force.of(rules, str(project)) == (deny,)
    (project / NAME).write_text(ALLOW + DENY)
    assert in_force.of(rules, other) == (deny,)
    assert in_force.of(rules, str(project)) == (allow, deny)
    assert in_force.of(rules[:1], str(project)) == (allow,)
    assert in_force.of((), str(project)) == ()
    mine = (Rule(effect="allow", source="your rule"),)
    assert in_force.of(mine, str(project)) is mine
