"""`dragoman policy trust`: a person at a terminal, and nobody else."""

from __future__ import annotations

from support.command import COMMAND, Dragoman
from support.screen import needs_tmux, on_screen

RULES = '[[rules]]\neffect = "allow"\noperation = "write"\n'


def effect(dragoman: Dragoman) -> str:
    words = ("--operation", "write", "--path", "a")
    return dragoman("policy", "explain", *words).out.partition(":")[0]


@needs_tmux
def test_a_person_trusts_a_file_once(dragoman: Dragoman) -> None:
    folder = dragoman.workspace / ".dragoman"
    folder.mkdir()
    (folder / "policy.toml").write_text(RULES)
    done = dragoman("-a", "demo", "-o", "simple", "hello")
    assert done.err.count("is not trusted, so its rules do not apply") == 1
    refused = dragoman("policy", "trust")
    assert (refused.code, effect(dragoman)) == (2, "ask")
    assert "needs a person at a terminal" in refused.err
    with on_screen(
        [str(COMMAND), "policy", "trust"], env=dragoman.env, cwd=dragoman.workspace
    ) as screen:
        screen.wait_for("+ allow writing any file in this project")
        screen.wait_for("[y/N]")
        screen.enter("y")
        screen.wait_for("trusted 1 rule")
    assert effect(dragoman) == "allow"
    again = dragoman("policy", "trust")
    assert (again.code, "is trusted as it is" in again.out) == (0, True)
    (folder / "policy.toml").write_text(RULES + "# changed\n")
    assert effect(dragoman) == "ask"
    said = dragoman("-a", "demo", "-o", "simple", "hello").err
    assert said.count("has changed since you trusted it") == 1


def test_without_a_file_there_is_nothing_to_trust(dragoman: Dragoman) -> None:
    done = dragoman("policy", "trust")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "has no .dragoman/policy.toml" in done.err
