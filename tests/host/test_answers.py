from __future__ import annotations

from itertools import combinations, product
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from dragoman.host.permissions.always_rules import Tenure, always_rules, describe
from dragoman.host.rules.access import OPERATIONS, Access, file_access, terminal_access
from dragoman.host.rules.policy import PolicyDecision, decide
from dragoman.host.rules.rule import NoRule, Rule
from dragoman.session.facts import PermissionOption
from dragoman.session.permission_options import choose_option, is_question

ROOTS = ("/ws",)
ASK = PolicyDecision("ask", "no rule allows it")


def options(*kinds: str) -> list[PermissionOption]:
    return [PermissionOption(f"id-{number}", "Yes", kind) for number, kind in enumerate(kinds)]


ALL_FOUR = options("reject_always", "allow_always", "reject_once", "allow_once")


# ── choosing ──────────────────────────────────────────────────────────────────────────────────


def test_an_allow_is_for_once() -> None:
    assert choose_option(ALL_FOUR, "allow") == "id-3"
    assert choose_option(ALL_FOUR, "allow", always=True) == "id-1"
    assert choose_option(options("allow_once"), "allow", always=True) == "id-0"


def test_an_allow_that_can_only_be_for_always_is_for_a_person() -> None:
    assert choose_option(options("allow_always", "reject_once"), "allow") is None
    assert choose_option(options("reject_once"), "allow") is None
    assert choose_option([], "allow") is None


def test_an_ask_chooses_nothing() -> None:
    assert choose_option(ALL_FOUR, "ask") is None


def test_a_refusal_prefers_once_and_takes_what_there_is() -> None:
    assert choose_option(ALL_FOUR, "deny") == "id-2"
    assert choose_option(ALL_FOUR, "deny", always=True) == "id-0"
    assert choose_option(options("allow_once", "reject_always"), "deny") == "id-1"
    assert choose_option(options("allow_once", "reject_once", "reject_once"), "deny") == "id-1"
    assert choose_option(options("allow_once"), "deny") is None


@pytest.mark.parametrize(
    ("offered", "names_action"),
    [
        (options("allow_once", "allow_once", "reject_once"), False),
        (options("allow_once", "maybe", "reject_once"), True),
        (
            [
                PermissionOption("x", "Yes", "allow_once"),
                PermissionOption("x", "No", "reject_once"),
            ],
            True,
        ),
    ],
)
def test_a_question_is_never_answered_with_an_allow(
    offered: list[PermissionOption], names_action: bool
) -> None:
    assert is_question(offered, names_action=names_action)
    assert choose_option(offered, "allow", names_action=names_action) is None
    assert choose_option(offered, "allow", always=True, names_action=names_action) is None


@pytest.mark.parametrize(
    ("offered", "names_action", "narrowest"),
    [
        (options("allow_once", "allow_once", "reject_once"), True, "id-0"),
        (options("allow_always", "allow_always", "allow_once"), False, "id-2"),
        (options("allow_once", "reject_once", "allow_always", "allow_once"), True, "id-0"),
    ],
)
def test_an_allow_picks_the_narrowest_yes(
    offered: list[PermissionOption], names_action: bool, narrowest: str
) -> None:
    assert not is_question(offered, names_action=names_action)
    assert choose_option(offered, "allow", names_action=names_action) == narrowest


@pytest.mark.parametrize(
    ("wide", "plain"),
    [
        ("Auto-confirm LOW risk", "Yes, proceed"),
        ("Auto-confirm LOW/MEDIUM risk", "Yes"),
        ("Switch to Default Mode and allow once (recommended)", "Allow"),
        ("Always allow", "Allow"),
        ("Allow all edits", "Allow this edit"),
        ("Yes, and don't ask again", "Yes"),
        ("Run without sandbox", "Run"),
        ("Allow for this session", "Allow"),
        ("Accept future edits too", "Accept"),
        ("autoApprove", "approve"),
        ("AUTO-APPROVE", ""),
    ],
)
def test_a_yes_that_announces_more_is_not_the_narrowest(wide: str, plain: str) -> None:
    once = [PermissionOption(name, name, "allow_once") for name in (wide, plain)]
    no = PermissionOption("no", "No, and always ask", "reject_once")
    for offered in ([*once, no], [no, *once[::-1]]):
        assert choose_option(offered, "allow", names_action=True) == plain
        assert choose_option(offered, "deny") == "no"


def test_of_two_plain_ones_the_first_is_taken_and_of_two_that_announce_more_none() -> None:
    for names in (("Yes", "Proceed"), ("Authorize", "Allow")):
        once = [PermissionOption(name, name, "allow_once") for name in names]
        assert choose_option(once, "allow", names_action=True) == names[0]
    for names in (
        ("Allow all", "Switch mode"),
        ("Yes, run git add --all", "Yes, and accept edits"),
    ):
        once = [PermissionOption(name, name, "allow_once") for name in names]
        assert choose_option(once, "allow", names_action=True) is None


def test_yes_and_no_for_once_and_always_is_no_question() -> None:
    assert not is_question(ALL_FOUR, names_action=False)
    assert not is_question([], names_action=False)


def test_names_never_decide() -> None:
    misleading = [
        PermissionOption("a", "Reject", "allow_once"),
        PermissionOption("b", "Allow", "reject_once"),
    ]
    assert choose_option(misleading, "allow") == "a"
    assert choose_option(misleading, "deny") == "b"


# ── remembering ───────────────────────────────────────────────────────────────────────────────


def remembered(
    access: Access, answer: Any = "allow", decision: PolicyDecision = ASK, scope: Any = "project"
) -> Rule | NoRule:
    terms = Tenure(scope=scope, session="s", project="/ws", expires_at=99)
    made = always_rules(access, answer, decision, terms, new_id=lambda: "r1")
    if isinstance(made, NoRule):
        return made
    [rule] = made
    return rule


def write(*paths: str) -> Access:
    return Access(operation="write", agent="demo", paths=paths, roots=ROOTS)


def line(text: str, **more: Any) -> Access:
    return terminal_access(text, agent="demo", cwd="/ws", roots=ROOTS, **more)


def reason(result: Rule | NoRule) -> str:
    assert isinstance(result, NoRule)
    return result.reason


def test_a_command_is_remembered_word_for_word() -> None:
    expected = Rule(
        effect="allow",
        operation="execute",
        agent="demo",
        argv=("npm", "test"),
        cwd="/ws",
        id="r1",
        source="your answer",
        scope="project",
        project="/ws",
        expires_at=99,
    )
    assert remembered(line("npm test")) == expected
    argv = terminal_access("npm", ["test"], agent="demo", cwd="/ws", roots=ROOTS)
    assert remembered(argv) == expected


def make_test(cwd: str) -> Access:
    return terminal_access("make", ["test"], agent="demo", cwd=cwd, roots=ROOTS)


def effect(rule: Rule | NoRule, access: Access) -> str:
    assert isinstance(rule, Rule)
    return decide(access, [rule], now=0, session_id="s", project="/ws").effect


def test_a_yes_for_always_holds_in_the_folder_it_was_given_in() -> None:
    """What `make test` runs is what the files around it say."""
    rule = remembered(make_test("/ws/a*"))
    assert isinstance(rule, Rule)
    assert describe(rule).endswith("make test in the folder /ws/a\\* for demo in this project")
    assert effect(rule, make_test("/ws/a*")) == "allow"
    assert effect(rule, make_test("/ws/a*/sub")) == "ask"
    assert effect(rule, make_test("/ws/ab")) == "ask"
    assert effect(rule, make_test("/ws")) == "ask"


def test_a_no_for_always_holds_everywhere() -> None:
    rule = remembered(make_test("/ws/a"), "deny")
    assert effect(rule, make_test("/ws/b")) == "deny"


def test_a_yes_that_was_kept_without_a_folder_holds_at_the_top_of_its_project() -> None:
    rule = remembered(make_test("/ws"))
    assert isinstance(rule, Rule)
    old = msgspec.structs.replace(rule, cwd=None)
    assert "in the folder /ws" in describe(old)
    assert effect(old, make_test("/ws")) == "allow"
    assert effect(old, make_test("/ws/sub")) == "ask"


def test_a_rule_that_somebody_wrote_holds_where_it_says() -> None:
    anywhere = Rule(effect="allow", argv=("make", "test"))
    beneath = Rule(effect="allow", argv=("make", "test"), cwd="sub/**")
    assert effect(anywhere, make_test("/ws/x")) == "allow"
    assert effect(beneath, make_test("/ws/sub/x")) == "allow"
    assert effect(beneath, make_test("/ws/x")) == "ask"


def test_a_path_is_remembered_letter_for_letter() -> None:
    rule = remembered(
        file_access("read", "/etc/[x]*", agent="", roots=ROOTS), "deny", scope="session"
    )
    assert rule == Rule(
        effect="deny",
        operation="read",
        path="/etc/\\[x]\\*",
        id="r1",
        source="your answer",
        scope="session",
        session="s",
        project="/ws",
        expires_at=99,
    )


def test_a_host_and_a_tool_are_remembered() -> None:
    fetch = remembered(Access(operation="fetch", hosts=("docs.example.com",)), scope="user")
    mcp = remembered(Access(operation="mcp", tool="fs_*"))
    assert isinstance(fetch, Rule)
    assert isinstance(mcp, Rule)
    assert (fetch.host, fetch.session, fetch.project) == ("docs.example.com", None, None)
    assert mcp.tool == "fs_\\*"


def test_what_no_narrow_rule_describes_is_not_remembered() -> None:
    assert "only running the line" in reason(remembered(line("git $x; rm")))
    assert "environment" in reason(remembered(line("npm test", env=True)))
    two = msgspec.structs.replace(line("a"), commands=("a", "b"))
    assert "one command" in reason(remembered(two))
    assert "one path" in reason(remembered(write("/ws/a", "/ws/b")))
    assert "one path" in reason(remembered(write()))
    assert "precise" in reason(remembered(Access(operation="other")))
    assert "precise" in reason(remembered(Access(operation="fetch", hosts=("a", "b"))))
    assert "precise" in reason(remembered(Access(operation="mcp")))


def test_what_is_always_asked_is_not_allowed_for_always() -> None:
    assert "protected" in reason(remembered(write("/ws/.envrc")))
    assert isinstance(remembered(write("/ws/.envrc"), "deny"), Rule)
    question = msgspec.structs.replace(write("/ws/a"), question=True)
    assert "question" in reason(remembered(question, "deny"))
    unread = msgspec.structs.replace(write("/ws/a"), complete=False)
    assert "could be read" in reason(remembered(unread))


def test_an_ask_rule_goes_on_asking() -> None:
    rule = Rule(effect="ask", operation="write", id="rules[0]", source="p.json")
    asked = PolicyDecision("ask", "p.json rules[0] requires asking", rule)
    assert reason(remembered(write("/ws/a"), decision=asked)) == "p.json rules[0] asks each time"
    assert isinstance(remembered(write("/ws/a"), "deny", asked), Rule)


@examples(400)
@given(
    operation=st.sampled_from(OPERATIONS),
    path=st.text(alphabet="ab*?[]\\/. é\n", min_size=1).map(lambda text: f"/ws/{text}"),
    words=st.lists(st.text(alphabet="ab *;$'é"), min_size=1, max_size=3).map(tuple),
    claimed=st.booleans(),
)
def test_a_remembered_answer_decides_the_same_request_and_no_other(
    operation: Any, path: str, words: tuple[str, ...], claimed: bool
) -> None:
    access = Access(
        operation=operation,
        agent="demo*",
        paths=(path,),
        commands=(words,),
        cwd="/ws",
        roots=ROOTS,
        hosts=("h.example",),
        tool="t",
        claimed=claimed,
    )
    if access.place != "inside":
        return
    others = (
        msgspec.structs.replace(access, agent="demon"),
        msgspec.structs.replace(
            access, paths=(f"{path}x",), commands=((*words, ""),), hosts=("x",), tool="x"
        ),
    )
    for answer in ("allow", "deny"):
        rule = remembered(access, answer)
        if isinstance(rule, Rule):
            assert decide(access, [rule], now=0, session_id="s", project="/ws").effect == answer
            for other in others:
                got = decide(other, [rule], now=0, session_id="s", project="/ws")
                assert got.rule is None


# ── describing ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (Rule(effect="allow"), "allow everything"),
        (
            Rule(effect="deny", operation="write", path="/ws/x/**"),
            "refuse writing files /ws/x/**",
        ),
        (
            Rule(effect="allow", operation="execute", argv=("a", "b c"), scope="project"),
            "allow running exactly a 'b c' in this project",
        ),
        (
            Rule(effect="ask", operation="execute", argv_prefix=("git",), agent="demo"),
            "ask before running commands that begin with git for demo",
        ),
        (
            Rule(effect="allow", operation="fetch", host="*.x.org", scope="session"),
            "allow fetching from *.x.org in this session",
        ),
        (
            Rule(effect="allow", operation="mcp", tool="t\u202e", scope="once"),
            "allow calling the tool t⟨U+202E⟩ once",
        ),
        (Rule(effect="allow", operation="other"), "allow other requests"),
        (Rule(effect="ask", operation="read"), "ask before reading any file"),
        (Rule(effect="allow", operation="write"), "allow writing any file"),
        (Rule(effect="allow", operation="execute"), "allow running any command"),
        (
            Rule(effect="allow", operation="execute", cwd="/ws/**", scope="project"),
            "allow running any command in /ws and below in this project",
        ),
        (
            Rule(effect="deny", operation="execute", cwd="/**"),
            "refuse running any command in / and below",
        ),
        (Rule(effect="deny", cwd="sub"), "refuse running any command in the folder sub"),
        (
            Rule(effect="allow", argv=("ls",), cwd="."),
            "allow running exactly ls in the workspace folder itself",
        ),
        (Rule(effect="deny", argv_prefix=("git",)), "refuse running commands that begin with git"),
        (Rule(effect="deny", path="keys/**"), "refuse reading or writing files keys/**"),
        (Rule(effect="allow", operation="fetch"), "allow fetching from any host"),
        (Rule(effect="ask", operation="mcp"), "ask before calling any tool"),
        (Rule(effect="ask", tool="t*"), "ask before calling the tool t*"),
        (
            Rule(effect="ask", operation="mcp", tool="t", host="h"),
            "ask before calling the tool t from h",
        ),
        (Rule(effect="deny", host="*.x.org"), "refuse everything from *.x.org"),
        (
            Rule(effect="deny", operation="other", path="a", host="h"),
            "refuse other requests naming files a and h",
        ),
        (
            Rule(effect="deny", operation="execute", path="a"),
            "refuse running any command naming files a",
        ),
        (
            Rule(effect="deny", operation="write", argv=("ls",)),
            "refuse writing any file naming exactly ls",
        ),
    ],
)
def test_a_rule_is_described_in_words(rule: Rule, words: str) -> None:
    assert describe(rule) == words


def test_every_rule_says_what_it_is_about_and_names_each_condition() -> None:
    conditions = {"path": "p", "argv": ("a",), "host": "h", "tool": "t", "cwd": "c"}
    chosen = [each for n in range(4) for each in combinations(conditions, n)]
    for operation, names in product((None, *OPERATIONS), chosen):
        some: dict[str, Any] = {name: conditions[name] for name in names}
        words = describe(Rule(effect="allow", operation=operation, **some)).split()
        assert words[0] == "allow"
        assert words[1] in ("reading", "writing", "running", "fetching", "calling", "other") or (
            words[1] == "everything"
        )
        assert words[2:3] != ["in"], words
        assert {name[0] for name in names} <= set(words), words
