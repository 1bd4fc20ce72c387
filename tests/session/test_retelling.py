"""What an agent repeats of a known history, and what is new: compared in order, never by time."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from support.cost import is_done_within

from dragoman.session import events as e
from dragoman.session.content import Image, Text
from dragoman.session.facts import PlanStep
from dragoman.session.reduce import fold
from dragoman.session.retelling import Retelling, Told
from dragoman.session.state import SessionState
from dragoman.session.state_limits import Limits


def user(text: str) -> e.Event:
    return e.UserMessage(Text(text))


def agent(text: str, message_id: str | None = None) -> e.Event:
    return e.AgentMessage(Text(text), message_id)


def thought(text: str) -> e.Event:
    return e.AgentThought(Text(text))


def call(call_id: str = "c", status: str = "completed") -> e.Event:
    return e.ToolCallUpdated(call_id, "Read", status=status)


def turn(turn_id: str, prompt: str, *answer: e.Event) -> list[e.Event]:
    return [e.TurnStarted(turn_id, [Text(prompt)]), *answer, e.TurnEnded(turn_id, "end_turn")]


PLAN = e.PlanUpdated([PlanStep("Look")])
TALK = [
    *turn("1", "Why?", thought("Hm."), agent("Because "), agent("so."), call(), agent("Read.")),
    *turn("2", "And now?", PLAN, agent("I wait."), agent("\n")),
]
AGAIN = [user("Why?"), agent("Because so."), call(), agent("Read."), user("And now?")]


def known(events: Iterable[e.Event] = TALK, limits: Limits | None = None) -> SessionState:
    stamped = list(events)
    for seq, event in enumerate(stamped, 1):
        event.seq = seq
    return fold(SessionState(), stamped, limits or Limits())


def words(news: Iterable[Told]) -> list[str]:
    return [event.text for event, _ in news]


def loaded(*before: e.Event, state: SessionState | None = None) -> Retelling:
    """A session that the agent has loaded; these came before its reply."""
    retelling = Retelling(state or known())
    assert hear(retelling, *before) == []
    retelling.answered("load")
    return retelling


def idle(*before: e.Event, state: SessionState | None = None) -> Retelling:
    """The same, a while later."""
    retelling = loaded(*before, state=state)
    assert retelling.settled() == []
    return retelling


def hear(retelling: Retelling, *events: e.Event) -> list[str]:
    return [word for event in events for word in words(retelling.hear(event, 1))]


# ── outside a turn, in old words ────────────────────────────────────────────────────────────


def test_a_report_in_the_words_of_an_old_message_is_new() -> None:
    for report in ([agent("Read.")], [agent("Re"), agent("ad.")], [thought("Hm.")]):
        retelling = idle()
        assert hear(retelling, *report) == []
        assert "".join(words(retelling.prompted("Next?"))) in ("Read.", "Hm.")
        assert hear(retelling, agent("Well.")) == ["Well."]


def test_a_report_in_old_words_is_new_when_something_else_follows() -> None:
    retelling = idle()
    assert hear(retelling, agent("I wait."), agent("The build failed.")) == [
        "I wait.",
        "The build failed.",
    ]
    # It did not use up what may still be repeated.
    assert hear(retelling, *AGAIN, agent("I wait.")) == []


def test_a_report_in_old_words_does_not_make_an_answer_history() -> None:
    retelling = idle()
    assert hear(retelling, agent("Because so.")) == []
    assert words(retelling.prompted("Again?")) == ["Because so."]
    assert hear(retelling, agent("Read."), call("new")) == ["Read.", "Read"]


def test_a_late_history_may_begin_with_what_the_agent_said() -> None:
    retelling = idle()
    assert hear(retelling, agent("Because so."), call(), agent("Read."), agent("I wait.")) == []
    assert retelling.prompted("Next?") == []
    assert hear(idle(), thought("Hm."), agent("Because "), agent("so."), agent("Read.")) == []


def test_a_plan_as_before_is_new_if_nothing_else_is_repeated() -> None:
    retelling = idle()
    assert retelling.hear(PLAN, 1) == []
    assert [event for event, _ in retelling.prompted("Next?")] == [PLAN]


# ── between the reply and the next prompt ───────────────────────────────────────────────────


@pytest.mark.parametrize("before", range(len(AGAIN) + 1))
def test_what_repeats_the_history_is_not_new_wherever_the_reply_comes(before: int) -> None:
    retelling = idle(*AGAIN[:before])
    assert hear(retelling, *AGAIN[before:], PLAN, agent("I wait.")) == []
    assert hear(retelling, agent("The build failed")) == ["The build failed"]


def test_what_the_agent_says_by_itself_is_new_if_it_repeats_nothing_else() -> None:
    assert hear(idle(), agent("The build "), agent("failed.")) == ["The build ", "failed."]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_where_the_pieces_are_cut_does_not_matter(size: int) -> None:
    said = "Because so.\n\nRead.I wait.\n"
    pieces = [agent(said[at : at + size]) for at in range(0, len(said), size)]
    assert hear(idle(), *pieces) == []


def test_what_begins_like_a_known_message_and_goes_on_otherwise_is_new_from_its_start() -> None:
    told = (agent("Because "), agent("of the build."))
    assert hear(idle(), *told) == ["Because ", "of the build."]


def test_what_the_agent_leaves_out_is_not_waited_for() -> None:
    retelling = idle()
    assert hear(retelling, user("And now?"), agent("I"), agent(" wait.")) == []
    assert hear(retelling, agent("Because so.")) == ["Because so."]  # that would be backwards


def test_a_known_beginning_is_on_record_when_the_session_ends() -> None:
    retelling = idle()
    assert hear(retelling, agent("Because")) == []
    assert words(retelling.ended()) == ["Because"]


def test_a_message_is_known_by_its_id() -> None:
    state = known(turn("1", "Why?", agent("One.", "m1"), call(), agent("Two.", "m2")))
    retelling = idle(state=state)
    assert hear(retelling, agent("Two.", "m2"), agent("One.", "m1")) == []
    assert hear(retelling, agent("Three.", "m2")) == ["Three."]


def test_a_call_that_was_over_is_not_new_and_the_end_of_one_that_was_not_is() -> None:
    retelling = idle(state=known([*turn("1", "go", call("a")), call("b", "in_progress")]))
    assert hear(retelling, call("a", "pending"), call("a")) == []
    assert hear(retelling, call("b", "in_progress")) == []
    assert hear(retelling, call("b"), call("c", "pending")) == ["Read", "Read"]


def test_a_plan_that_is_another_is_new() -> None:
    retelling = idle()
    assert hear(retelling, call(), PLAN) == []
    assert hear(retelling, e.PlanUpdated([PlanStep("Go")])) == ["Go"]


def test_a_picture_is_known_as_it_was() -> None:
    picture = e.UserMessage(Image("aaaa", "image/png"))
    retelling = idle(state=known([user("This:"), picture]))
    assert words(retelling.hear(picture, 1)) == []
    assert len(retelling.hear(e.UserMessage(Image("bbbb", "image/png")), 1)) == 1


def test_a_message_that_was_too_long_to_keep_is_known_by_what_was_kept() -> None:
    long = "long " * 100
    state = known([*turn("1", "go", agent(long)), *turn("2", "on", agent("short"))], LITTLE)
    assert 0 < len(state.entries[1].text) < len(long)
    assert hear(loaded(state=state), agent(long), agent("short")) == []


LITTLE = Limits(entry=200)


# ── while the reply is new, an agent may still be repeating ─────────────────────────────────


def test_what_comes_between_repeated_pieces_is_the_agents_own_account_of_them() -> None:
    retelling = loaded(user("Why?"))
    assert hear(retelling, user("[Function Response: read]"), agent("Read.")) == []
    assert retelling.settled() == []


def test_what_nothing_repeated_follows_is_new_once_the_agent_is_silent() -> None:
    retelling = loaded(*AGAIN, agent("I wait."))
    assert hear(retelling, agent("Welcome back!")) == []
    assert words(retelling.settled()) == ["Welcome back!"]


def test_what_comes_before_anything_repeated_is_new() -> None:
    assert hear(loaded(), agent("Welcome back!"), *AGAIN) == ["Welcome back!"]


def test_what_the_state_no_longer_has_is_history_if_what_it_has_follows() -> None:
    state = known(TALK, Limits(entries=4))
    assert state.entries_before
    assert hear(loaded(state=state), *AGAIN, agent("I wait.")) == []


# ── once a prompt went out ──────────────────────────────────────────────────────────────────


def test_what_is_still_repeated_while_a_prompt_is_on_its_way_is_not_the_answer() -> None:
    retelling = idle(*AGAIN[:2])
    assert retelling.prompted("Go on") == []
    assert hear(retelling, *AGAIN[2:], agent("I wait.")) == []
    assert hear(retelling, agent("Now "), agent("then.")) == ["Now ", "then."]
    assert retelling.over


def test_a_history_may_begin_after_the_prompt() -> None:
    retelling = idle()
    assert retelling.prompted("Go on") == []
    assert hear(retelling, *AGAIN, agent("I wait."), agent("Now.")) == ["Now."]


def test_all_that_the_agent_had_said_is_history_without_the_words_of_the_user() -> None:
    talk = [*turn("1", "Hi", agent("Hello.")), *turn("2", "Well?", agent("I wait."))]
    retelling = loaded(state=known(talk))
    assert retelling.prompted("Hi") == []
    assert hear(retelling, agent("Hello."), agent("I wait."), agent("And now?")) == ["And now?"]


def test_an_answer_that_begins_with_the_only_words_there_were_is_kept() -> None:
    retelling = loaded(state=known(turn("1", "Hi", agent("Hello."))))
    assert retelling.prompted("Hi") == []
    assert hear(retelling, agent("Hello."), agent(" Again?")) == ["Hello.", " Again?"]


def test_an_answer_after_a_history_that_came_in_time_is_kept_although_it_begins_like_the_rest() -> (
    None
):
    retelling = loaded(*AGAIN)
    assert retelling.prompted("Go on") == []
    assert hear(retelling, agent("I wait."), agent(" No, I go.")) == ["I wait.", " No, I go."]


def test_an_answer_may_be_in_the_words_of_an_earlier_one() -> None:
    retelling = idle()
    assert retelling.prompted("Why?") == []
    assert hear(retelling, user("Why?"), agent("Because so.")) == []
    assert words(retelling.ended()) == ["Why?", "Because so."]


def test_an_answer_may_begin_in_the_words_of_an_earlier_one() -> None:
    retelling = idle()
    assert retelling.prompted("Again") == []
    assert hear(retelling, agent("Because so."), agent(" Really.")) == ["Because so.", " Really."]


def test_a_request_in_a_turn_is_work_on_the_answer_and_elsewhere_it_is_not() -> None:
    retelling = idle()
    assert hear(retelling, agent("Because")) == []
    assert words(retelling.works()) == ["Because"]  # what explains a question is shown before it
    assert not retelling.over
    assert retelling.prompted("Again") == []
    assert hear(retelling, agent("Because"), agent(" so.")) == []
    assert words(retelling.works()) == ["Because", " so."]
    assert retelling.over


def test_a_call_whose_id_is_used_again_for_something_else_is_new() -> None:
    other = e.ToolCallUpdated("c", "Delete", status="pending")
    retelling = idle(*AGAIN[:2])
    assert hear(retelling, other) == [other.text]
    assert retelling.prompted("Go on") == []
    assert hear(retelling, e.ToolCallUpdated("c", "Delete", status="pending")) == [other.text]


def test_what_is_held_is_bounded_in_bytes() -> None:
    retelling = idle()
    assert retelling.prompted("Go on") == []
    held = agent("Because ")
    assert retelling.hear(held, 1024 * 1024) == []
    again = agent("so.")
    assert [event for event, _ in retelling.hear(again, 1)] == [held, again]


def test_the_beginning_of_a_message_is_not_lost_by_a_call_that_is_repeated() -> None:
    retelling = idle()
    assert hear(retelling, agent("Because ")) == []
    assert hear(retelling, call()) == ["Because "]


def test_after_a_resume_nothing_is_compared_once_the_agent_was_silent() -> None:
    retelling = Retelling(known())
    retelling.answered("resume")
    assert retelling.settled() == []
    assert retelling.over


@pytest.mark.parametrize("way", ["load", "resume"])
def test_nothing_is_compared_once_all_was_repeated_or_nothing_was_to_be(way: str) -> None:
    retelling = Retelling(known())
    if way == "load":
        assert hear(retelling, *AGAIN, agent("I wait.")) == []
    retelling.answered("load" if way == "load" else "resume")
    assert retelling.settled() == retelling.prompted("And now?") == []
    assert retelling.over


def test_messages_that_all_begin_alike_are_looked_through_in_little_time() -> None:
    """At each of them, the words could begin that continue in all that follow."""
    state = known(agent("a", f"m{n}") for n in range(4000))
    retelling = loaded(state=state)
    assert is_done_within(1.5, lambda: hear(retelling, agent("a" * 8000 + "b")), repeat=1)


def test_a_message_may_still_follow_others_that_begin_alike() -> None:
    state = known([*(agent("a", f"m{n}") for n in range(1000)), agent("ab", "end")])
    assert hear(loaded(state=state), agent("ab")) == []


def test_a_long_message_may_be_repeated_letter_by_letter() -> None:
    """Only words that are known nowhere end the search for others."""
    state = known([agent("ab" * 1000), thought("Hm."), agent("z")])
    retelling = loaded(state=state)
    assert hear(retelling, *(agent(letter) for letter in "ab" * 1000), agent("z")) == []
