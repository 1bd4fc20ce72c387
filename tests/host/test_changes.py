from __future__ import annotations

import pytest

from dragoman.host.workspace import changes as changes_module
from dragoman.host.workspace.changes import Change, Changes


def change(path: str, before: bytes | None, after: bytes, turn: str | None = None) -> Change:
    return Change(path, before, after, existed=before is not None, turn=turn)


def recorded(*items: Change, max_kept_bytes: int = 1000) -> Changes:
    journal = Changes(max_kept_bytes=max_kept_bytes)
    for item in items:
        journal.record(item)
    return journal


def contents(found: tuple[Change, ...]) -> list[tuple[str, bytes | None, bytes]]:
    return [(item.path, item.before, item.after) for item in found]


def test_writes_of_one_file_are_listed_as_one_change() -> None:
    journal = recorded(
        change("/a", b"0", b"1", "t1"),
        change("/b", None, b"new", "t1"),
        change("/a", b"1", b"2", "t1"),
        change("/a", b"2", b"3", "t2"),
    )
    assert contents(journal.list()) == [("/a", b"0", b"3"), ("/b", None, b"new")]
    assert contents(journal.list("t1")) == [("/a", b"0", b"2"), ("/b", None, b"new")]
    assert contents(journal.list("t2")) == [("/a", b"2", b"3")]
    assert journal.list("t3") == ()


def test_a_file_that_is_as_before_is_no_change() -> None:
    journal = recorded(change("/a", b"0", b"1"), change("/a", b"1", b"0"), change("/b", b"x", b"x"))
    assert journal.list() == ()
    assert contents(recorded(change("/empty", None, b"")).list()) == [("/empty", None, b"")]


def test_someone_elses_write_in_between_is_noticed() -> None:
    undisturbed = recorded(change("/a", b"0", b"1", "t1"), change("/a", b"1", b"2", "t2"))
    in_a_turn = recorded(change("/a", b"0", b"1"), change("/a", b"user", b"2"))
    between_turns = recorded(change("/a", b"0", b"1", "t1"), change("/a", None, b"2", "t2"))
    assert [j.list()[0].is_disturbed for j in (undisturbed, in_a_turn, between_turns)] == [
        False,
        True,
        True,
    ]


def test_what_does_not_fit_is_listed_without_its_contents() -> None:
    journal = recorded(
        change("/small", b"1" * 20, b"2" * 20),
        change("/large", b"1" * 40, b"2" * 40),
        change("/also-small", b"1" * 20, b"2" * 20),
        max_kept_bytes=100,
    )
    assert [(item.path, item.is_kept) for item in journal.list()] == [
        ("/small", True),
        ("/large", False),
        ("/also-small", True),
    ]
    assert "not kept" in journal.list()[1].diff()
    assert journal.room == 20


def test_a_second_write_takes_the_room_of_the_first() -> None:
    journal = recorded(*(change("/a", b"x" * 40, b"x" * 40) for _ in range(10)), max_kept_bytes=100)
    assert journal.room == 20
    journal.record(change("/a", b"x" * 40, b"y" * 61))
    assert not journal.list()[0].is_kept
    assert journal.room == 100


def test_the_number_of_changes_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes_module, "MAX_CHANGES", 3)
    journal = recorded(*(change(f"/{number}", None, b"x") for number in range(5)))
    journal.record(change("/0", b"x", b"y"))
    assert [item.path for item in journal.list()] == ["/0", "/1", "/2"]
    assert journal.list()[0].after == b"y"
    assert journal.omitted == 2


def test_forgetting_a_change_forgets_what_came_after_it() -> None:
    journal = recorded(
        change("/a", b"0", b"1", "t1"), change("/a", b"1", b"2", "t2"), change("/b", b"0", b"1")
    )
    journal.forget(journal.list("t2"))
    assert contents(journal.list()) == [("/a", b"0", b"1"), ("/b", b"0", b"1")]
    journal.forget(journal.list("t1"))
    assert contents(journal.list()) == [("/b", b"0", b"1")]
    assert journal.room == 998


def test_directories_are_known_by_the_files_in_them() -> None:
    journal = Changes()
    journal.record(change("/r/a/b/file", None, b""), ["/r/a", "/r/a/b"])
    journal.record(change("/r/c/file", None, b""), ["/r/c"])
    assert journal.directories_above(["/r/a/b/file"]) == ("/r/a", "/r/a/b")
    assert journal.directories_above(["/r/ab"]) == ()
    journal.forget((), ["/r/a/b"])
    assert journal.directories_above(["/r/a/b/file", "/r/c/x"]) == ("/r/a", "/r/c")


def test_a_diff_names_files_from_the_root() -> None:
    journal = recorded(
        change("/project/src/a.py", b"old\n", b"new\n"),
        change("/project/new.txt", None, b"x"),
        change("/projects/b", b"1", b"2"),
    )
    assert journal.diff(root="/project/").splitlines() == [
        "--- a/src/a.py",
        "+++ b/src/a.py",
        "@@ -1 +1 @@",
        "-old",
        "+new",
        "--- /dev/null",
        "+++ b/new.txt",
        "@@ -0,0 +1 @@",
        "+x",
        "\\ No newline at end of file",
        "--- a/projects/b",
        "+++ b/projects/b",
        "@@ -1 +1 @@",
        "-1",
        "\\ No newline at end of file",
        "+2",
        "\\ No newline at end of file",
    ]


def test_a_diff_of_what_is_not_text_says_only_that() -> None:
    assert change("/a", b"\xff", b"x").diff() == "Binary files a/a and b/a differ\n"


def test_a_name_cannot_pass_for_a_line_of_the_diff() -> None:
    assert change("/a\n+++ b/evil", b"1", b"2").diff().splitlines()[0] == "--- a/'a\\n+++ b/evil'"


def test_a_journal_goes_on_behind_what_was_written_before() -> None:
    earlier = [
        change("/a", b"0", b"1", "t1"),
        change("/b", b"x", b"y"),
        change("/a", b"1", b"2", "t1"),
    ]
    journal = recorded(change("/a", b"2", b"3", "t2"), change("/b", b"y", b"z"))
    journal.follow(earlier)
    assert contents(journal.list()) == [("/a", b"0", b"3"), ("/b", b"x", b"z")]
    assert contents(journal.list("t1")) == [("/a", b"0", b"2")]
    assert contents(journal.list("t2")) == [("/a", b"2", b"3")]
    assert journal.room == 1000 - 6
    journal.record(change("/a", b"3", b"4", "t3"))
    journal.forget(journal.list("t2"))
    assert contents(journal.list()) == [("/a", b"0", b"2"), ("/b", b"x", b"z")]


def test_of_what_was_written_before_the_newest_that_fits_is_taken() -> None:
    earlier = [change(f"/{number}", b"1" * 15, b"2" * 15) for number in range(5)]
    journal = recorded(change("/now", b"1" * 20, b"2" * 20), max_kept_bytes=100)
    journal.follow(earlier)
    assert [item.path for item in journal.list()] == ["/3", "/4", "/now"]
    assert all(item.is_kept for item in journal.list())


def test_a_file_of_which_something_is_missing_is_not_taken() -> None:
    whole, part = change("/a", b"1", b"2", "t2"), change("/a", b"0", b"1", "t1")
    journal = recorded()
    journal.follow([part.without_contents(), change("/b", None, b"x", "t1"), whole])
    assert contents(journal.list()) == [("/b", None, b"x")]


def test_what_was_written_before_keeps_to_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes_module, "MAX_CHANGES", 3)
    journal = recorded(change("/now", None, b"x"))
    journal.follow([change(f"/{number}", None, b"x") for number in range(5)])
    assert [item.path for item in journal.list()] == ["/3", "/4", "/now"]
