"""When a turn has ended in version 2, whatever order the agent says things in."""

from __future__ import annotations

import pytest

from dragoman.client.dialects.dialect import Finished
from dragoman.client.dialects.v2.foreground import Foreground, Prompted
from dragoman.session.content import Text
from dragoman.session.facts import BackgroundWork

DONE = Finished("end_turn")


class Play:
    """One session; `ended` has how each prompt ended, in order."""

    def __init__(self) -> None:
        self.foreground = Foreground()
        self.ended: list[str] = []

    def prompt(self, text: str = "hello") -> Prompted:
        return self.foreground.prompted(
            [Text(text)], lambda finished: self.ended.append(finished.stop_reason)
        )

    def state(
        self, state: str, finished: Finished | None = None, *, snapshot: bool = False
    ) -> None:
        self.foreground.changes(state, finished, snapshot=snapshot)

    def echo(self, message_id: str, text: str, *, whole: bool = True) -> bool:
        return self.foreground.echoes(message_id, text, whole=whole)


@pytest.fixture
def play() -> Play:
    return Play()


def test_a_turn_ends_when_the_agent_is_idle_again(play: Play) -> None:
    prompt = play.prompt()
    play.foreground.acknowledged(prompt, "u1")
    play.state("running")
    play.state("requires_action")
    play.state("running")
    assert play.ended == []
    play.state("idle", Finished("refusal"))
    play.state("idle", Finished("refusal"))
    assert play.ended == ["refusal"]


def test_an_idle_agent_that_gives_no_reason_has_ended_as_usual(play: Play) -> None:
    play.foreground.acknowledged(play.prompt(), "u1")
    play.state("running")
    play.state("idle")
    assert play.ended == ["end_turn"]


def test_the_end_of_what_ran_before_is_not_the_end_of_the_prompt(play: Play) -> None:
    play.state("running")
    prompt = play.prompt()
    play.state("idle", DONE)
    play.foreground.acknowledged(prompt, "u1")
    assert play.ended == []
    play.state("running")
    play.state("idle", Finished("max_tokens"))
    assert play.ended == ["max_tokens"]


def test_work_that_began_before_the_acknowledgement_counts(play: Play) -> None:
    prompt = play.prompt()
    play.state("running")
    play.foreground.acknowledged(prompt, "u1")
    play.state("idle", DONE)
    assert play.ended == ["end_turn"]


@pytest.mark.parametrize("message_id", ["u1", None])
def test_an_acknowledgement_behind_the_end_ends_the_turn(
    play: Play, message_id: str | None
) -> None:
    prompt = play.prompt()
    assert play.echo("u1", "hello")
    play.state("running")
    play.state("idle", Finished("cancelled"))
    assert play.ended == []
    play.foreground.acknowledged(prompt, message_id)
    assert play.ended == ["cancelled"]


def test_an_agent_that_answers_last_and_repeats_nothing_is_understood(play: Play) -> None:
    prompt = play.prompt()
    play.state("running")
    play.state("idle", DONE)
    play.foreground.acknowledged(prompt, None)
    assert play.ended == ["end_turn"]


def test_a_turn_told_before_its_prompt_ends_when_that_is_told(play: Play) -> None:
    prompt = play.prompt()
    play.state("running")
    play.state("idle", Finished("max_tokens"))
    play.state("idle", snapshot=True)
    play.foreground.acknowledged(prompt, "u1")
    assert not play.echo("u0", "something else")
    assert play.ended == []
    assert play.echo("u1", "hello")
    assert play.echo("u1", "hello")
    assert play.ended == ["max_tokens"]


def test_a_turn_told_before_its_prompt_ends_with_the_acknowledgement_behind_both(
    play: Play,
) -> None:
    prompt = play.prompt()
    play.state("running")
    play.state("idle", DONE)
    assert play.echo("u1", "hello")
    play.foreground.acknowledged(prompt, "u1")
    assert play.ended == ["end_turn"]


def test_what_begins_after_the_acknowledgement_is_the_turn(play: Play) -> None:
    prompt = play.prompt()
    play.state("running")
    play.state("idle", DONE)
    play.foreground.acknowledged(prompt, "u1")
    play.state("running")
    assert play.echo("u1", "hello")
    assert play.ended == []
    play.state("idle", Finished("refusal"))
    assert play.ended == ["refusal"]


@pytest.mark.parametrize("finished", [DONE, None])
@pytest.mark.parametrize("message_id", ["u2", None])
def test_an_idle_repeated_before_the_acknowledgement_is_no_end(
    play: Play, message_id: str | None, finished: Finished | None
) -> None:
    worked(play)
    prompt = play.prompt()
    play.state("idle", finished)
    play.foreground.acknowledged(prompt, message_id)
    play.echo("u2", "hello")
    assert play.ended == ["refusal"]
    play.state("running")
    play.state("idle", DONE)
    assert play.ended == ["refusal", "end_turn"]


def test_the_first_idle_of_a_session_is_no_end(play: Play) -> None:
    prompt = play.prompt()
    play.state("idle")
    play.foreground.acknowledged(prompt, "u1")
    assert play.echo("u1", "hello")
    assert play.ended == []


def test_a_repeated_idle_is_no_end(play: Play) -> None:
    play.foreground.acknowledged(play.prompt(), "u1")
    play.state("idle")
    play.state("idle", DONE, snapshot=True)
    assert play.ended == []
    play.foreground.works()
    play.state("idle", DONE, snapshot=True)
    assert play.ended == ["end_turn"]


def worked(play: Play) -> None:
    """A turn of an agent that says when it works; it is over."""
    play.foreground.acknowledged(play.prompt(), "u1")
    play.state("running")
    play.state("idle", Finished("refusal"))


def test_an_agent_that_says_when_it_works_has_not_ended_before_it_did(play: Play) -> None:
    worked(play)
    play.foreground.acknowledged(play.prompt(), "u2")
    play.state("idle", Finished("refusal"))
    assert play.ended == ["refusal"]
    play.foreground.works()
    play.state("idle", snapshot=True)
    play.state("idle", DONE)
    assert play.ended == ["refusal"]
    play.state("running")
    play.state("idle", DONE)
    assert play.ended == ["refusal", "end_turn"]


@pytest.mark.parametrize("taken_first", [True, False])
def test_a_prompt_can_be_stopped_before_the_agent_began(play: Play, taken_first: bool) -> None:
    worked(play)
    prompt = play.prompt()
    if taken_first:
        play.foreground.acknowledged(prompt, "u2")
    play.foreground.stops()
    if not taken_first:
        play.foreground.acknowledged(prompt, "u2")
    play.state("idle", Finished("cancelled"))
    assert play.ended == ["refusal", "cancelled"]


def test_an_agent_that_never_says_it_works_says_why_it_stopped(play: Play) -> None:
    play.foreground.acknowledged(play.prompt(), "u1")
    play.state("idle", Finished("refusal"))
    assert play.ended == ["refusal"]


def test_a_state_nobody_knows_is_work(play: Play) -> None:
    play.foreground.acknowledged(play.prompt(), "u1")
    play.state("_compiling")
    play.state("idle", DONE)
    assert play.ended == ["end_turn"]


def test_a_withdrawn_prompt_never_ends(play: Play) -> None:
    prompt = play.prompt()
    play.foreground.acknowledged(prompt, "u1")
    play.state("running")
    play.foreground.withdraw(prompt)
    play.foreground.withdraw(prompt)
    play.state("idle", DONE)
    assert play.ended == []


def test_a_prompt_told_again_is_an_echo_in_pieces_or_as_a_whole(play: Play) -> None:
    prompt = play.prompt("hello you")
    assert play.echo("u1", "hello", whole=False)
    assert play.echo("u1", " you", whole=False)
    assert play.echo("u1", "hello you")
    assert not play.echo("u2", "something else")
    play.foreground.acknowledged(prompt, "u1")
    assert play.echo("u1", "expanded by the agent")
    assert not play.echo("u3", "hello you")


def test_what_happens_outside_of_turns_is_news_once(play: Play) -> None:
    assert play.foreground.news() == {}
    play.state("running")
    assert [play.foreground.news(), play.foreground.news()] == [{"activity": "running"}, {}]
    prompt = play.prompt()
    play.state("idle", DONE)
    play.foreground.background = [BackgroundWork("terminal")]
    assert play.foreground.news() == {"background": [BackgroundWork("terminal")]}
    play.foreground.withdraw(prompt)
    assert play.foreground.news() == {"activity": "idle"}


def test_while_a_session_is_opened_its_states_are_of_before(play: Play) -> None:
    for _ in range(2):
        play.foreground.reopen()
        play.state("running")
        play.foreground.background = [BackgroundWork("terminal")]
        assert play.foreground.news() == {}
        play.foreground.opening = False
        assert play.foreground.news().keys() == {"activity", "background"}
