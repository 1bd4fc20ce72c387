"""What is protected stays so when its name is a link, and under the name that a link leads to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.permission_scene import question, scene, selected

from dragoman import Policy, Rule
from dragoman.host.claims.claim_reader import read_claim
from dragoman.host.rules.access import Sighting, file_access
from dragoman.host.rules.globs import escape
from dragoman.host.rules.policy import decide, flag_rules
from dragoman.host.workspace.reach import MOST_LISTED, Reach, being_written
from dragoman.host.workspace.roots import Workspace

# A protected name, the link in it, where that leads; the real file that is written.
LAYOUTS = [
    (".git/hooks/pre-commit", ".git", "gitmeta", "gitmeta/hooks/pre-commit"),
    (".git/config", ".git", "gitmeta", "gitmeta/config"),
    (".bashrc", ".bashrc", "dotfiles/bash/rc", "dotfiles/bash/rc"),
    (".ssh/authorized_keys", ".ssh/authorized_keys", "../keys/mine", "keys/mine"),
    (".github/workflows/ci.yml", ".github/workflows", "../ci", "ci/ci.yml"),
    (".envrc", ".envrc", "conf/envrc", "conf/envrc"),
]
by_layout = pytest.mark.parametrize(("name", "link", "target", "real"), LAYOUTS)


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    made = tmp_path / "ws"
    made.mkdir()
    return made


def lay_out(ws: Path, link: str, target: str, real: str) -> None:
    (ws / real).parent.mkdir(parents=True, exist_ok=True)
    (ws / link).parent.mkdir(parents=True, exist_ok=True)
    (ws / link).symlink_to(target)


@by_layout
async def test_writing_a_protected_name_asks_where_it_is_a_link(
    ws: Path, name: str, link: str, target: str, real: str
) -> None:
    lay_out(ws, link, target, real)
    async with scene(ws, attended=False, policy=Policy(write=True)) as s:
        assert "error" in await s.write("evil", name)
    assert not (ws / real).exists()


@by_layout
async def test_writing_where_a_protected_name_leads_asks(
    ws: Path, name: str, link: str, target: str, real: str
) -> None:
    lay_out(ws, link, target, real)
    async with scene(ws, attended=False, policy=Policy(write=True)) as s:
        assert "error" in await s.write("evil", real)
        assert "result" in await s.write("fine", "notes.txt")


@by_layout
def test_a_claim_is_judged_the_same_way(
    ws: Path, name: str, link: str, target: str, real: str
) -> None:
    lay_out(ws, link, target, real)
    look = Reach([str(ws)]).look
    options = {"agent": "a", "cwd": str(ws), "roots": [str(ws)], "home": "/nowhere", "look": look}
    access = read_claim("edit", {"path": name}, **options)  # pyright: ignore[reportArgumentType]
    assert access.paths == (str(ws / real),)
    assert access.protection
    decision = decide(access, flag_rules(write=True), now=0, session_id="s", project=str(ws))
    assert decision.effect == "ask"


def test_a_link_in_the_home_counts_as_well(tmp_path: Path, ws: Path) -> None:
    home = tmp_path / "home"
    (home / ".config").mkdir()
    (home / ".config" / "nvim").symlink_to(ws / "nvim")
    seen = Reach([str(ws), str(home)]).look(f"{ws}/nvim/init.lua")
    assert seen is not None
    assert seen.hazard == f"{ws}/nvim/init.lua is protected: {home}/.config/nvim leads to it"


@pytest.mark.parametrize("others", [0, MOST_LISTED + 1])
@by_layout
def test_a_link_counts_in_a_folder_of_any_size(
    ws: Path, name: str, link: str, target: str, real: str, others: int
) -> None:
    lay_out(ws, link, target, real)
    for at in range(others):
        (ws / link).with_name(f"{at}.txt").touch()
    told = hazard(ws, real)
    assert told is not None
    assert f"{ws}/{name}".startswith(told.removesuffix(" leads to it"))
    assert hazard(ws, "notes.txt") is None


def test_a_chain_of_links_is_judged_at_each(ws: Path) -> None:
    (ws / "a").symlink_to(".envrc")
    (ws / ".envrc").symlink_to("plain")
    access = file_access("write", seen(ws, "sub/../a"), agent="a", roots=[str(ws)])
    assert access.paths == (str(ws / "plain"),)
    assert access.aliases == (str(ws / "a"), str(ws / ".envrc"))
    assert access.protection is not None


async def test_reading_what_is_denied_by_the_name_of_a_link_is_refused(ws: Path) -> None:
    (ws / "plain").write_text("SECRET")
    (ws / "between").symlink_to("plain")
    (ws / "link").symlink_to("between")
    for name in ("link", "between", "plain"):
        async with scene(ws, policy=Policy([Rule(effect="deny", path=name)])) as s:
            params = {"sessionId": "s1", "path": str(ws / "link")}
            answer = await s.result("fs/read_text_file", params)
            assert "SECRET" not in str(answer)
            assert "error" in answer


async def test_a_command_in_a_folder_that_is_denied_by_the_name_of_a_link_is_refused(
    ws: Path,
) -> None:
    (ws / "real").mkdir()
    (ws / "between").symlink_to("real")
    (ws / "link").symlink_to("between")
    for name in ("link", "between", "real"):
        rule = Rule(effect="deny", cwd=name)
        async with scene(ws, policy=Policy([rule], execute=True)) as s:
            assert "error" in await s.run("pwd", "-P", cwd=str(ws / "link"))
            assert "result" in await s.run("pwd", "-P", cwd=str(ws))


def test_the_folder_of_a_claimed_command_is_judged_by_every_name(ws: Path) -> None:
    (ws / "real").mkdir()
    (ws / "link").symlink_to("real")
    look = Reach([str(ws)]).look

    def effect(rule: Rule, **claim: str) -> str:
        access = read_claim(
            "execute", claim, agent="a", cwd=str(ws), roots=[str(ws)], home="/nowhere", look=look
        )
        rules = (rule, *flag_rules(execute=True))
        return decide(access, rules, now=0, session_id="s", project=str(ws)).effect

    deny, ask = Rule(effect="deny", cwd="link"), Rule(effect="ask", cwd="link")
    assert effect(deny, command="pwd", cwd="link") == "deny"
    assert effect(ask, command="pwd", cwd="link") == "ask"
    assert effect(deny, command="pwd") == "allow"
    # The same words are a path for who reads or writes, and no folder.
    assert effect(Rule(effect="deny", path="link"), command="pwd", cwd="link") == "allow"


def test_the_folder_of_the_session_is_judged_by_every_name_too(tmp_path: Path, ws: Path) -> None:
    (tmp_path / "link").symlink_to(ws)
    access = read_claim(
        "execute",
        {"command": "pwd"},
        agent="a",
        cwd=str(tmp_path / "link"),
        roots=[str(ws)],
        home="/nowhere",
        look=Reach([str(ws)]).look,
    )
    rules = (Rule(effect="deny", cwd=str(tmp_path / "link")), *flag_rules(execute=True))
    assert decide(access, rules, now=0, session_id="s", project=str(ws)).effect == "deny"


LED = [
    ("{link}/secret", True),
    ("{link}/**", True),
    ("{link}/s*", True),
    ("into/secret", True),
    ("into/**", True),
    ("{link}/sub", False),
    ("elsewhere/**", False),
]


@pytest.mark.parametrize(("glob", "is_denied"), LED)
async def test_a_rule_that_denies_counts_for_where_its_path_leads(
    tmp_path: Path, ws: Path, glob: str, is_denied: bool
) -> None:
    (ws / "secret").write_text("SECRET")
    (ws / "into").symlink_to(".")
    (ws / "loop").symlink_to("loop")
    link = tmp_path / "link[1]*"
    link.symlink_to(ws)
    rules = [
        Rule(effect="deny", path=glob.format(link=escape(str(link)))),
        Rule(effect="deny", path="loop/**"),
    ]
    async with scene(ws, attended=False, policy=Policy(rules, yolo=True)) as s:
        for name in ("secret", "into/secret"):
            params = {"sessionId": "s1", "path": str(ws / name)}
            answer = await s.result("fs/read_text_file", params)
            assert ("error" in answer) == is_denied
        assert ("error" in await s.write("evil", "secret")) == is_denied
        claim = question(kind="edit", rawInput={"path": "secret"})
        answered = await s.result("session/request_permission", claim)
        assert (answered["result"] == selected("no")) == is_denied


@pytest.mark.parametrize(
    ("glob", "is_denied"), [("link/sub", True), ("link/**", True), ("x", False)]
)
async def test_a_rule_that_denies_a_folder_counts_for_where_that_leads(
    tmp_path: Path, ws: Path, glob: str, is_denied: bool
) -> None:
    (ws / "sub").mkdir()
    (tmp_path / "link").symlink_to(ws)
    policy = Policy([Rule(effect="deny", cwd=f"{tmp_path}/{glob}")], execute=True)
    async with scene(ws, policy=policy) as s:
        assert ("error" in await s.run("true", cwd=str(ws / "sub"))) == is_denied


def test_a_rule_that_allows_counts_by_its_letters_alone(tmp_path: Path, ws: Path) -> None:
    (tmp_path / "link").symlink_to(ws)
    access = file_access("write", seen(ws, "plain"), agent="a", roots=[str(ws)])
    policy = Policy([Rule(effect="allow", path=f"{tmp_path}/link/**")])
    assert policy.decide(access, Workspace("s", str(ws))).effect == "ask"


def test_a_rule_that_denies_counts_for_every_name_and_one_that_allows_for_the_real_one(
    ws: Path,
) -> None:
    (ws / "secret").symlink_to("plain")
    access = file_access("write", seen(ws, "secret"), agent="a", roots=[str(ws)])
    deny, allow = Rule(effect="deny", path="secret"), Rule(effect="allow", path="secret")
    for rules, effect in (((deny,), "deny"), ((allow,), "ask")):
        assert decide(access, rules, now=0, session_id="s", project=str(ws)).effect == effect


def seen(ws: Path, name: str) -> Sighting:
    (ws / "sub").mkdir(exist_ok=True)
    found = Reach([str(ws)]).look(f"{ws}/{name}")
    assert found is not None
    return found


# ── repositories ──────────────────────────────────────────────────────────────────────────────


def bare(folder: Path, *, but: str = "") -> None:
    for name in ("objects", "refs"):
        if name != but:
            (folder / name).mkdir(parents=True)
    if but != "HEAD":
        (folder / "HEAD").write_text("ref: refs/heads/main\n")


@pytest.mark.parametrize(
    "name", ["HEAD", "config", "config.worktree", "hooks/pre-commit", "info/attributes", "CONFIG"]
)
def test_what_git_reads_in_a_repository_of_any_name_is_protected(ws: Path, name: str) -> None:
    bare(ws / "docs")
    assert hazard(ws, f"docs/{name}") == f"git reads {ws}/docs as a repository"
    assert hazard(ws, "docs/notes.md") is None
    assert hazard(ws, name) is None


@pytest.mark.parametrize(
    ("missing", "last"),
    [("HEAD", "HEAD"), ("objects", "objects/x"), ("refs", "refs/heads/x")],
)
def test_the_file_that_makes_a_folder_a_repository_is_protected(
    ws: Path, missing: str, last: str
) -> None:
    bare(ws / "docs", but=missing)
    assert hazard(ws, f"docs/{last}")


def test_a_worktree_has_its_repository_elsewhere(ws: Path) -> None:
    (ws / "meta").mkdir()
    (ws / "meta" / "HEAD").write_text("ref: refs/heads/main\n")
    assert hazard(ws, "meta/commondir")
    (ws / "meta" / "commondir").write_text("../common\n")
    assert hazard(ws, "meta/hooks/post-checkout")


def test_what_is_being_written_is_there_for_whoever_looks(ws: Path) -> None:
    """In another session, or in the same one: a repository is not made by writes at once."""
    bare(ws / "docs", but="HEAD")
    (ws / "docs" / "objects").rmdir()
    assert hazard(ws, "docs/HEAD") is None
    with being_written(f"{ws}/docs/objects/x"), being_written(f"{ws}/docs/objects/y"):
        assert hazard(ws, "docs/HEAD")
        assert hazard(ws, "docs/Head")
        assert hazard(ws, "HEAD") is None
    assert hazard(ws, "docs/HEAD") is None


def hazard(ws: Path, name: str) -> str | None:
    path = f"{ws}/{name}"
    found = Reach([str(ws)]).look(path)
    assert found is not None
    told = found.hazard
    return None if told is None else told.removeprefix(f"{path} is protected: ")


def test_a_path_that_leads_round_and_round_is_in_doubt(ws: Path) -> None:
    os.symlink("loop", ws / "loop")
    os.symlink("/".join(["."] * 2_000), ws / "long")
    reach = Reach([str(ws)])
    assert reach.look(f"{ws}/loop/x") is None
    assert reach.look(f"{ws}" + "/long" * 10) is None
