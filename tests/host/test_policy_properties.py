"""What holds for every rule and every access: more is never allowed than should be."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec
import pytest
from host.test_policy import WS, YOLO, effect
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dragoman.host.commands.loose_line import loosely
from dragoman.host.commands.plain_command import plain_words
from dragoman.host.commands.shell_line import read_argv, read_line
from dragoman.host.commands.word_match import Named, matched
from dragoman.host.rules.access import Access
from dragoman.host.rules.policy import (
    OPERATIONS,
    explain,
)
from dragoman.host.rules.rule import Effect, Rule

STRICTNESS: dict[Effect, int] = {"allow": 0, "ask": 1, "deny": 2}

# Hypothesis chooses among these: building each from its parts would take most of the time.
SEED = 8_118
PATHS = (
    "/ws/src/a",
    "/ws/secret/b",
    "/ws/.git/config",
    "/ws",
    "/etc/passwd",
    "/wsx/a",
    "/ws/src/.envrc",
)
GLOBS = ("src/**", "**", "/ws/**", "/**", "secret/*", "/etc/passwd", "*", "/ws/src/a")
LINES = (
    "npm test",
    "git status",
    "rm -rf x",
    "git; rm x",
    "a && b",
    "x=1 git",
    "echo $(id)",
    "'npm' test",
    "npm test && git status",
    "bash -lc 'npm test | git status'",
    "timeout 5 rm -rf x",
    "cd src && npm test; git status",
    "npm test > src/a",
    "git $(id)",
)
ARGVS = (
    ("npm", "test"),
    ("git", "status"),
    ("rm", "-rf", "x"),
    ("bash", "-c", "git; rm"),
    ("git", "$x"),
)
PREFIXES = (*ARGVS, ("npm",), ("git",), ("rm",), ("bash", "-c"))


def some_access(rng: random.Random) -> Access:
    return Access(
        operation=rng.choice(OPERATIONS),
        agent=rng.choice(("demo", "claude")),
        also=tuple(rng.sample(OPERATIONS, rng.choice((0, 0, 1, 2)))),
        paths=tuple(rng.sample(PATHS, rng.choice((0, 1, 1, 2)))),
        commands=tuple(rng.sample((*LINES, *ARGVS), rng.choice((0, 1, 1, 2)))),
        env=rng.random() < 0.2,
        cwd=rng.choice((None, WS, *PATHS)),
        roots=rng.choice(((), (WS,), (WS,), (WS, "/etc"))),
        hosts=tuple(rng.sample(("docs.example.com", "evil.com"), rng.randrange(3))),
        tool=rng.choice((None, "fs_read", "shell")),
        claimed=rng.random() < 0.5,
        question=rng.random() < 0.1,
        complete=rng.random() < 0.9,
    )


def some_rule(rng: random.Random) -> Rule:
    few = rng.random() < 0.6
    return Rule(
        effect=rng.choice(("allow", "allow", "ask", "deny")),
        operation=rng.choice((None, *OPERATIONS)),
        agent=rng.choice((None, None, None, "demo", "cl*")),
        path=None if few else rng.choice((None, *GLOBS)),
        argv=None if few else rng.choice((None, *ARGVS)),
        argv_prefix=rng.choice((None, None, None, *PREFIXES)),
        host=None if few else rng.choice((None, None, "*.example.com", "*")),
        tool=None if few else rng.choice((None, None, "fs_*", "*")),
        anywhere=rng.random() < 0.2,
        scope=rng.choice(("once", "session", "project", "user", "user", "user")),
        session=rng.choice((None, "s", "t")),
        project=rng.choice((None, WS)),
        expires_at=rng.choice((None, None, None, -1.0, 1.0)),
    )


_rng = random.Random(SEED)
ANY_ACCESS = st.sampled_from([some_access(_rng) for _ in range(4_000)])
ANY_RULE = st.sampled_from([some_rule(_rng) for _ in range(4_000)])


def strictness(access: Access, some: list[Rule]) -> int:
    return STRICTNESS[effect(access, *some)]


def adding_a_deny_or_an_ask_never_loosens(access: Access, some: list[Rule], rule: Rule) -> None:
    for added in ("ask", "deny"):
        more = [*some, msgspec.structs.replace(rule, effect=added)]
        assert strictness(access, more) >= strictness(access, some)


def adding_an_allow_never_tightens(access: Access, some: list[Rule], rule: Rule) -> None:
    more = [*some, msgspec.structs.replace(rule, effect="allow")]
    assert strictness(access, more) <= strictness(access, some)


def the_order_of_rules_does_not_matter(access: Access, some: list[Rule], rule: Rule) -> None:
    assert strictness(access, [rule, *some]) == strictness(access, [*reversed(some), rule])


def a_claim_is_never_looser_than_the_deed(access: Access, some: list[Rule], rule: Rule) -> None:
    deed = msgspec.structs.replace(access, claimed=False, also=())
    said = msgspec.structs.replace(access, claimed=True)
    assert strictness(said, [*some, rule]) >= strictness(deed, [*some, rule])


def claiming_more_never_loosens(access: Access, some: list[Rule], rule: Rule) -> None:
    for added in OPERATIONS:
        more = msgspec.structs.replace(access, also=(*access.also, added))
        assert strictness(more, [*some, rule]) >= strictness(access, [*some, rule])


def doubt_never_loosens(access: Access, some: list[Rule], rule: Rule) -> None:
    unread = msgspec.structs.replace(access, complete=False)
    question = msgspec.structs.replace(access, question=True)
    for unsure in (unread, question):
        assert strictness(unsure, [*some, rule]) >= strictness(access, [*some, rule])


def words_match_only_what_a_line_is_known_to_run(
    access: Access, some: list[Rule], rule: Rule
) -> None:
    found = explain(access, [*some, rule], now=0, session_id="s", project=WS)
    read = [read_line(c) if isinstance(c, str) else read_argv(c) for c in access.commands]
    known = [command.argv for each in read for layers in each.runs for command in layers]
    lines = [c for c in access.commands if isinstance(c, str) and plain_words(c) is None]
    for each in found.considered:
        words = each.rule.argv or each.rule.argv_prefix
        if words and each.matched:
            assert not access.env
            named = Named(words, exact=each.rule.argv is not None)
            may_run = (one for command in access.commands for one in loosely(command).suspects)
            if each.rule.effect == "allow":
                assert any(argv[: len(words)] == words for argv in known)
            else:
                assert any(match.sure for one in may_run if (match := matched(one, named)))
            # What is not read is never allowed, and of several only all by one.
            unread = [line for line in lines if read_line(line).unread]
            assert each.rule.effect != "allow" or not (unread or (lines and len(read) > 1))


def a_line_is_never_looser_than_its_parts(access: Access, some: list[Rule], rule: Rule) -> None:
    rules = [*some, rule]
    if access.operation == "execute" and effect(access, *rules) == "allow":
        for command in access.commands:
            read = read_line(command) if isinstance(command, str) else read_argv(command)
            for layers in read.runs:
                alone = (
                    msgspec.structs.replace(access, commands=(each.argv,))
                    for each in layers
                    if not each.folder
                )
                effects = {effect(each, *rules) for each in alone}
                assert "deny" not in effects
                assert not effects or "allow" in effects


def a_write_outside_and_a_protected_one_are_never_allowed(
    access: Access, some: list[Rule], rule: Rule
) -> None:
    got = effect(access, *some, rule, *YOLO)
    if access.operation == "write":
        assert got == "deny" or all(is_inside(path, access) for path in access.paths)
        protected = any(".git" in path or ".envrc" in path for path in access.paths)
        assert got != "allow" or not protected


def nothing_is_allowed_without_a_rule_but_reads_inside(
    access: Access, some: list[Rule], rule: Rule
) -> None:
    strict = [each for each in (*some, rule) if each.effect != "allow"]
    if effect(access, *strict) == "allow":
        assert access.operation == "read"
        assert access.paths
        assert all(is_inside(path, access) for path in access.paths)


def is_inside(path: str, access: Access) -> bool:
    return any(f"{path}/".startswith(f"{root}/") for root in access.roots)


PROPERTIES: list[Callable[[Access, list[Rule], Rule], None]] = [
    adding_a_deny_or_an_ask_never_loosens,
    adding_an_allow_never_tightens,
    the_order_of_rules_does_not_matter,
    a_claim_is_never_looser_than_the_deed,
    claiming_more_never_loosens,
    doubt_never_loosens,
    words_match_only_what_a_line_is_known_to_run,
    a_line_is_never_looser_than_its_parts,
    a_write_outside_and_a_protected_one_are_never_allowed,
    nothing_is_allowed_without_a_rule_but_reads_inside,
]


def check_property(holds: Callable[[Access, list[Rule], Rule], None], cases: int) -> int:
    """Run the property on that many cases, the same ones each time."""
    count = 0

    @settings(
        max_examples=cases,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow],
    )
    @given(ANY_ACCESS, st.lists(ANY_RULE, max_size=5), ANY_RULE)
    def check(access: Access, some: list[Rule], rule: Rule) -> None:
        nonlocal count
        count += 1
        holds(access, some, rule)

    check()
    return count


@pytest.mark.parametrize("holds", PROPERTIES)
def test_property(holds: Callable[[Access, list[Rule], Rule], None]) -> None:
    assert check_property(holds, 120) >= 100


@pytest.mark.soak
@pytest.mark.parametrize("holds", PROPERTIES)
def test_property_many_times(holds: Callable[[Access, list[Rule], Rule], None]) -> None:
    assert check_property(holds, 1_200) >= 1_150
