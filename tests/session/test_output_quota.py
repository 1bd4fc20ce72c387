"""What terminals print beyond the limit is not recorded; the record says so, and has its end."""

from __future__ import annotations

from support.cost import Memory

from dragoman.session import events as e
from dragoman.session.limits.output_quota import OutputLimits, OutputQuota
from dragoman.session.reduce import fold
from dragoman.session.state import SessionState

MIB = 1024 * 1024
LIMITS = OutputLimits(terminal=2 * MIB, session=3 * MIB)


def printed(quota: OutputQuota, terminal_id: str, count: int, piece: str) -> list[e.Event]:
    kept: list[e.Event] = []
    for _ in range(count):
        kept += quota.within([e.TerminalOutput(terminal_id, piece)])
    return kept


def test_what_fits_is_passed_on_as_it_is() -> None:
    quota = OutputQuota(LIMITS)
    events: list[e.Event] = [e.TerminalOutput("t", "x"), e.Notice("y"), e.TerminalExited("t", 0)]
    assert quota.within(events) == events
    others: list[e.Event] = [e.Notice("y")]
    assert quota.within(others) is others


def test_beyond_the_limit_of_a_terminal_there_is_a_note_and_then_its_end() -> None:
    quota = OutputQuota(LIMITS)
    kept = printed(quota, "t", 300, "x" * 65536)
    texts = [event.text for event in kept]
    assert texts[:32] == ["x" * 65536] * 32
    assert texts[32:] == [
        "\r\n[more output is not recorded: the limit is 2 MiB for a terminal, "
        "3 MiB for a session]\r\n"
    ]
    assert quota.within([e.TerminalOutput("t", "the end")]) == []
    gap, exited = quota.within([e.TerminalExited("t", 3)])
    assert isinstance(gap, e.TerminalOutput)
    assert gap.text.startswith("\r\n[16.7 MiB of output not recorded]\r\nxxx")
    assert gap.text.endswith("xthe end")
    assert len(gap.text) < 70_000
    assert exited == e.TerminalExited("t", 3)


def test_all_terminals_of_a_session_have_one_limit_too() -> None:
    quota = OutputQuota(LIMITS)
    size = 0
    for number in range(100):
        name = f"t{number}"
        kept = printed(quota, name, 32, "é" * 16384) + quota.within([e.TerminalExited(name)])
        size += sum(len(event.text.encode()) for event in kept)
    assert 3 * MIB < size < 3.2 * MIB


def test_the_end_of_what_came_in_small_pieces_is_whole() -> None:
    quota = OutputQuota(OutputLimits(terminal=0))
    for number in range(30_000):
        quota.within([e.TerminalOutput("t", f"{number:08}")])
    [gap, _] = quota.within([e.TerminalExited("t")])
    assert gap.text.endswith("0002999800029999")


def test_an_output_that_replaces_all_before_it_replaces_the_end_too() -> None:
    quota = OutputQuota(OutputLimits(terminal=0))
    quota.within([e.TerminalOutput("t", "old")])
    quota.within([e.TerminalOutput("t", "new", replaces=True)])
    [gap, _] = quota.within([e.TerminalExited("t")])
    assert gap.text.endswith("\r\nnew")


def test_the_state_is_what_is_on_record() -> None:
    quota, state = OutputQuota(OutputLimits(terminal=10)), SessionState()
    told = [
        e.TerminalStarted("t", ["x"]),
        *(e.TerminalOutput("t", "12345") for _ in range(3)),
        e.TerminalExited("t", 0),
    ]
    fold(state, [kept for event in told for kept in quota.within([event])])
    output = state.terminals["t"].output
    assert output.startswith("1234512345\r\n[more output is not recorded")
    assert output.endswith("[0.0 MiB of output not recorded]\r\n12345")
    assert not state.terminals["t"].running


def test_little_is_held_however_many_terminals_an_agent_makes_up() -> None:
    quota = OutputQuota(OutputLimits(terminal=2**20, session=2**20))
    printed(quota, "first", 1, "x" * 2**20)
    with Memory() as memory:
        for number in range(2_000):
            printed(quota, f"{number}", 1, f"{number}" + "x" * 20_000)
            printed(quota, f"{number}{'y' * 20_000}", 1, "x")
    assert memory.left < 2**20


def test_of_those_that_print_too_much_a_few_have_their_end_kept() -> None:
    quota = OutputQuota(OutputLimits(terminal=1_000, session=2**30))
    with Memory() as memory:
        for number in range(600):
            printed(quota, f"{number}", 1, f"{number}" + "x" * 20_000)
    assert memory.left < 300 * 20_000
