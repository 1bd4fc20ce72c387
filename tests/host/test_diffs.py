from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.cost import calls
from support.examples import examples

from dragoman.host.workspace import diffs
from dragoman.host.workspace.diffs import MAX_LINES, unified_diff

LINES = st.sampled_from(["\n", "a\n", "b\n", "c\r\n", "\u2028\n", "d\x0c\n"])
TEXTS = st.tuples(st.lists(LINES, max_size=30), st.sampled_from(["", "end", "a"])).map(
    lambda parts: "".join(parts[0]) + parts[1]
)
HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n")


def lines_of(text: str) -> list[str]:
    return [line for line in re.split(r"(?<=\n)", text) if line]


def applied(diff: str, old: str) -> str:
    """The new text, by the book: counts in the headers and every line checked."""
    source, result, position = lines_of(old), list[str](), 0
    rest = lines_of(diff)[2:]
    while rest:
        header = HUNK.fullmatch(rest.pop(0))
        assert header, "a hunk begins with its header"
        start, count, _, new_count = (int(number or 1) for number in header.groups())
        begin = start - 1 if count else start
        result += source[position:begin]
        position, made = begin, 0
        while count or new_count > made:
            mark, line = rest[0][0], rest.pop(0)[1:]
            if rest and rest[0].startswith("\\ No newline"):
                rest.pop(0)
                line = line.removesuffix("\n")
            if mark in " -":
                assert source[position] == line
                position, count = position + 1, count - 1
            if mark in " +":
                result.append(line)
                made += 1
    return "".join(result + source[position:])


@given(TEXTS, TEXTS)
@examples(400)
def test_applying_a_diff_gives_the_new_text(old: str, new: str) -> None:
    diff = unified_diff(old, new, "a", "b")
    assert (diff == "") == (old == new)
    assert applied(diff, old) == new


@given(TEXTS, TEXTS, st.sampled_from([-1, 0, 5, 50]))
@examples(400)
def test_so_does_one_that_was_too_large_to_match(old: str, new: str, most: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(diffs, "MAX_WORK", most)
        assert applied(unified_diff(old, new, "a", "b"), old) == new


def test_it_looks_as_everyone_expects() -> None:
    old = "".join(f"{number}\n" for number in range(1, 21))
    new = old.replace("10\n", "ten\n") + "end"
    assert unified_diff(old, new, "a/x", "b/x") == (
        "--- a/x\n+++ b/x\n"
        "@@ -7,7 +7,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n"
        "@@ -18,3 +18,4 @@\n 18\n 19\n 20\n+end\n\\ No newline at end of file\n"
    )
    assert (
        unified_diff("", "x\n", "/dev/null", "b/x") == "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+x\n"
    )


def test_a_small_change_in_a_large_file_stays_small() -> None:
    old = "".join(f"{number}\n" for number in range(100_000))
    diff = unified_diff(old, old.replace("\n50000\n", "\nx\n"), "a", "b")
    assert len(diff) < 200
    assert "\n@@ -49998,7 +49998,7 @@\n" in diff


@pytest.mark.parametrize("kinds", [2, 100, 10_000])
def test_very_different_files_take_bounded_time_and_text(kinds: int) -> None:
    old = "".join(f"{number * 7919 % kinds}\n" for number in range(100_000))
    new = "".join(f"{number * 104729 % kinds + 1}\n" for number in range(100_000))
    before = time.process_time()
    diff = unified_diff(old, new, "a", "b")
    assert time.process_time() - before < 10
    assert diff.count("\n") <= MAX_LINES + 3
    assert "The rest is not shown" in diff


def alternating(count: int, other: str, times: int = 1) -> str:
    """Every second line is another; each stands there so many times."""
    return "".join(f"a{number // times}\n{other}{number // times}\n" for number in range(count))


def test_many_small_changes_are_each_found_in_linear_time() -> None:
    old, new = alternating(1_000, "x"), alternating(1_000, "y")
    diff = ""

    def work() -> None:
        nonlocal diff
        diff = unified_diff(old, new, "a", "b")

    assert calls(work) < 100_000
    assert diff.count("\n-x") == diff.count("\n+y") == 1_000
    assert applied(diff, old) == new


def test_without_lines_to_hold_on_to_the_work_is_bounded_all_the_same() -> None:
    old, new = alternating(3_000, "x", times=2), alternating(3_000, "y", times=2)
    assert calls(lambda: unified_diff(old, new, "a", "b")) < diffs.MAX_WORK
    assert applied(unified_diff(old, new, "a", "b"), old) == new


def test_a_diff_has_a_bound_of_characters_too() -> None:
    for old in ("", "y" * 3_000_000, "y\n" * 900):
        diff = unified_diff(old, "x" * 3_000_000 + "\n", "a", "b")
        assert len(diff) < diffs.MAX_CHARACTERS + 200
        assert diff.endswith("The rest is not shown: more than 1048576 characters differ\n")
    assert len(unified_diff("", "x" * 3_000_000, "a", "b", most=None)) > 3_000_000


def test_texts_of_too_many_lines_are_not_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diffs, "lines_of", lambda text: pytest.fail("it was"))  # pyright: ignore
    diff = unified_diff("a\n" * 300_000, "b\n" * 300_000, "a", "b")
    assert diff == "--- a\n+++ b\n\\ Not shown: more than 500000 lines\n"
