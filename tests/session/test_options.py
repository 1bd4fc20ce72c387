"""The answers to a permission request as they are shown: the first is for once, whoever asks."""

from __future__ import annotations

import pytest
from support.normalising import Normalised

from dragoman.session.facts import PermissionOption
from dragoman.session.permission_options import as_shown, contradiction, in_order, is_for_session


def option(name: str, kind: str) -> PermissionOption:
    return PermissionOption(f"id of {name}", name, kind)


def test_options_stand_by_kind_and_within_a_kind_as_they_came() -> None:
    kinds = ["reject_always", "later", "allow_always", "allow_once", "reject_once", "allow_once"]
    offered = [option(f"{number}", kind) for number, kind in enumerate(kinds)]
    shown = in_order(offered)
    assert [each.name for each in shown] == ["3", "5", "2", "4", "0", "1"]
    assert [each.kind for each in offered] == kinds  # what is recorded stays as it came


def shown(*options: PermissionOption) -> list[str]:
    return [each.line for each in as_shown(options)]


def test_an_answer_reads_as_its_kind_whatever_it_is_called() -> None:
    kinds = ("allow_once", "allow_always", "reject_once", "reject_always")
    ours = ["Allow once", "Always allow", "Reject", "Always reject"]
    assert shown(*(option(kind, kind) for kind in kinds)) == ours
    assert shown(*(PermissionOption(kind, "", kind) for kind in kinds)) == ours
    for name in ("Reject", "Allow", "Yes, and go on", "…", "Always reject"):
        named = [PermissionOption(kind, name, kind) for kind in kinds]
        assert [each.words for each in as_shown(named)] == ours


def test_the_agents_wording_is_a_remark_where_it_says_more() -> None:
    assert shown(option("Allow", "allow_once")) == ["Allow once"]
    assert shown(option("Deny always", "reject_always")) == [
        "Always reject (the agent calls this “Deny always”)"
    ]
    (each,) = as_shown([option("Yes, and go on", "allow_once")])
    assert (each.remark, each.warns) == ("the agent calls this “Yes, and go on”", False)


def test_a_yes_for_always_that_is_called_for_the_session_reads_so() -> None:
    assert shown(option("Allow for this session", "allow_always")) == ["Allow for this session"]
    assert shown(option("Approve for this session", "allow_always")) == [
        "Allow for this session (the agent calls this “Approve for this session”)"
    ]
    assert shown(option("Allow for this session", "allow_once")) == [
        "Allow once (the agent calls this “Allow for this session”, but it applies once)"
    ]


@pytest.mark.parametrize(
    "label",
    [
        *("Always allow (session)", "Allow in session", "Allow session", "Yes, until session ends"),
        *("Session only", "Allow this tool for rest of session", "allow_session", "allowSession"),
        *("Yes, allow all edits during this session", "Yes, for the session's duration"),
        *("Allow for session", "SESSION", "Don't ask again (session-wide)"),
        *("Always allow in this chat", "Allow for the rest of this conversation"),
        *("Allow until exit", "Always allow until restart", "Yes, until I quit Gemini"),
        *("Allow until the agent restarts", "Trust until kimi is closed"),
    ],
)
def test_a_yes_for_always_that_speaks_of_the_session_is_for_the_session(label: str) -> None:
    yes = option(label, "allow_always")
    assert is_for_session(yes)
    (each,) = as_shown([yes])
    assert (each.words, each.warns) == ("Allow for this session", False)
    assert not is_for_session(option(label, "reject_always"))


@pytest.mark.parametrize(
    "label",
    [
        *("Always allow", "Allow for all future sessions", "Always allow in all sessions"),
        *("Allow this command for all future sessions", "Yes, and don't ask again", "Obsession"),
        *("Allow in all chats", "Always allow close", "Allow every restart"),
    ],
)
def test_a_yes_for_always_that_speaks_of_more_or_of_something_else_is_for_always(
    label: str,
) -> None:
    assert shown(option(label, "allow_always"))[0].startswith("Always allow")


def test_answers_of_one_kind_are_told_apart() -> None:
    assert shown(option("PostgreSQL", "allow_once"), option("Allow", "allow_once")) == [
        "Allow once (the agent calls this “PostgreSQL”)",
        "Allow once (the agent calls this “Allow”)",
    ]
    same = [PermissionOption(each, "Yes", "allow_once") for each in "ab"]
    assert shown(*same) == [
        "Allow once (the agent calls this “Yes”, with the id “a”)",
        "Allow once (the agent calls this “Yes”, with the id “b”)",
    ]
    long = [option("y" * 300 + end, "allow_once") for end in ("yes", "no way")]
    assert len(set(shown(*long))) == 2


def test_what_is_not_known_or_not_clear_says_so() -> None:
    (each,) = as_shown([option("Reject", "constructor")])
    assert (each.words, each.warns) == ("Unknown answer", True)
    assert "its kind “constructor” is unknown" in each.remark
    both = [PermissionOption("x", "Reject", kind) for kind in ("allow_once", "reject_once")]
    for each in as_shown(both):
        assert (each.words, each.warns) == ("Unclear answer", True)
        assert "uses its id for another answer too" in each.remark


def test_a_label_cannot_draw_or_quote_itself() -> None:
    (each,) = as_shown([option("Yes” 2. Reject\n\x1b[31m\u202e", "allow_once")])
    assert each.remark.count("”") == 1
    assert each.remark.isprintable()


_ALLOWS, _REJECTS = "it allows", "it rejects"
_ONCE, _ALWAYS = "it applies once", "it applies always"
LABELS: list[tuple[str, str, str | None]] = [
    # The opposite.
    *(
        (label, "allow_once", _ALLOWS)
        for label in (
            *("Reject", "REJECT", "reject_once", "rejectOnce", "ReJect", "R e j e c t", "No"),
            *("Do not allow this", "Don't allow", "Don’t allow", "Never", "Deny", "Cancel"),
            *("Not now", "Do nothing", "Disallow", "Block it", "Stop", "Don't run it", "Abort!"),
            *("✗ No", "Skip", "Allow? No."),
        )
    ),
    *(
        (label, "reject_once", _REJECTS)
        for label in (
            *("Allow", "allow_once", "Yes", "OK", "Approve", "Accept edit", "Proceed", "Run it"),
            *("Don't reject", "Go", "Yes, go on", "Confirm"),
        )
    ),
    ("Reject", "allow_always", _ALLOWS),
    ("Always allow", "reject_always", _REJECTS),
    # Letters that look alike, are marked, or are not seen at all.
    ("R\u200bej\u00adect", "allow_once", _ALLOWS),
    ("Rej\u0435ct", "allow_once", _ALLOWS),
    ("\uff32\uff25\uff2a\uff25\uff23\uff34", "allow_once", _ALLOWS),
    ("R\u00e9ject", "allow_once", _ALLOWS),
    ("Allow\u2060", "reject_once", _REJECTS),
    # Another length of time.
    ("once", "allow_always", _ALWAYS),
    ("Approve once", "allow_always", _ALWAYS),
    ("Reject for this session", "reject_always", _ALWAYS),
    ("Allow for this turn", "allow_always", _ALWAYS),
    ("Allow once in this session", "allow_always", "it applies to the session"),
    ("Reject this time", "reject_always", _ALWAYS),
    ("Always allow", "allow_once", _ONCE),
    ("allowAlways", "allow_once", _ONCE),
    ("Yes, and don't ask again", "allow_once", _ONCE),
    ("Run without asking", "allow_once", _ONCE),
    ("Never", "reject_once", _ONCE),
    ("Allow for this session", "allow_once", _ONCE),
    # What agents really say.
    *(
        (label, "allow_once", None)
        for label in (
            *("Allow", "Allow once", "Approve once", "Allow edit", "Yes", "Yes, run it", "once"),
            *("Yes, and manually approve edits", "Run without sandbox", "PostgreSQL", "", "Ja"),
            *("Allow once in this session", "Proceed", "Ablehnen"),
        )
    ),
    *(
        (label, "allow_always", None)
        for label in (
            *("Always allow", "Allow always", "Never ask again", "Stop asking", "Allow all edits"),
            *("Allow for this session", "Allow for session", "Approve for this session"),
            "Yes, and don't ask again this session",
            *("Yes, and don't ask again for npm test commands", "Yes, and auto-accept edits"),
            "Always allow npm run once",
        )
    ),
    *(
        (label, "reject_once", None)
        for label in (
            *("Reject", "Deny", "No", "No, keep planning", "Cancel", "Skip"),
            *("No, and tell the model what to do differently", "Reject, and continue without it"),
        )
    ),
    ("Deny always", "reject_always", None),
    ("Never allow", "reject_always", None),
    ("Reject", "a kind of its own", None),
]


@pytest.mark.parametrize(("label", "kind", "meaning"), LABELS)
def test_a_label_that_contradicts_its_kind_is_found(
    label: str, kind: str, meaning: str | None
) -> None:
    assert contradiction(label, kind) == meaning


@pytest.mark.parametrize("marks", ["\u0345\u0301\u0316", "\u0f73\u0301", "\uff9e\u0301"])
def test_labels_of_marks_are_read_once_each_and_never_sorted(
    marks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    normalised = Normalised(monkeypatch)
    names = [f"Reject {at}{marks * 2_000}" for at in range(32)]
    shown = as_shown([option(name, "allow_always") for name in names])
    assert all(each.warns for each in shown)
    assert normalised.longest_run <= 2
    assert normalised.chars <= len(names) * 2_000
