"""What a fence holds, as data: from folders and tables to paths with reasons."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from dragoman.errors import ConfigError
from dragoman.host.fence.covered_paths import listening_sockets, without_sockets
from dragoman.host.fence.floor import FencePlace, Floor, Own, PlaceMode, floor_for, landlock_gaps
from dragoman.host.fence.mount_table import Mount, names_elsewhere, parsed


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a home, a data directory and a workspace next to each other."""
    for name in ("home", "data", "ws"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("DRAGOMAN_SETTINGS", str(tmp_path / "home/settings.json"))
    return tmp_path


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def below(floor: Floor, mode: PlaceMode, folder: Path) -> list[str]:
    """The paths of a mode, relative to the folder that they are in."""
    paths = (Path(path) for path in floor.paths(mode))
    return sorted(str(path.relative_to(folder)) for path in paths if path.is_relative_to(folder))


def test_settings_are_covered_with_their_folder_if_it_is_ours(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(place / "home/dragoman/settings.json", "{}")
    for name, covered in {
        "home/settings.json": ["home/settings.json"],
        "home/dragoman/settings.json": ["home/dragoman", "home/dragoman/settings.json"],
    }.items():
        monkeypatch.setenv("DRAGOMAN_SETTINGS", str(place / name))
        found = below(floor_for([str(place / "ws")]), "covered", place)
        assert [path for path in found if path != "data"] == covered


def test_the_workspace_is_writable_and_what_runs_later_in_it_is_not(place: Path) -> None:
    ws = place / "ws"
    for name in (".envrc", ".vscode/tasks.json", ".github/workflows/ci.yml", ".github/README.md"):
        write(ws / name)
    write(ws / "deep/er/.mcp.json")
    write(ws / "src/app.py")
    floor = floor_for([str(ws)])
    assert below(floor, "write", place) == ["ws"]
    held = [".envrc", ".github/workflows", ".vscode", "deep/er/.mcp.json"]
    assert below(floor, "read-only", ws) == held
    pinned = {os.fsdecode(path) for path in _planned(floor).pinned}
    assert pinned == {str(ws / name) for name in (".github", "deep", "deep/er")}


def test_nothing_above_what_is_hidden_or_writable_in_a_writable_folder_can_be_moved(
    place: Path,
) -> None:
    home = place / "home"
    write(home / ".config/git/credentials")
    write(home / ".ssh/id")
    write(home / "a/b/own/.vscode/tasks.json")
    floor = floor_for([str(place / "ws")], write=[str(home), str(home / "a/b/own")])
    pinned = {os.fsdecode(path) for path in _planned(floor).pinned}
    assert pinned == {str(home / name) for name in (".config", ".config/git", "a", "a/b")}
    assert _planned(floor_for([str(place / "ws")])).pinned == ()


def test_what_is_hidden_has_nothing_in_it_that_could_be_moved(place: Path) -> None:
    own = place / "home/.ssh/deep/er"
    write(own / "x/.vscode/tasks.json")
    floor = floor_for([str(own)], write=[str(place / "home")])
    assert _planned(floor).pinned == (os.fsencode(own / "x"),)


def _planned(floor: Floor):
    import msgspec

    return msgspec.structs.replace(floor, temporary="/somewhere").plan("namespaces")


def test_of_a_repository_only_what_git_runs_is_held(place: Path) -> None:
    ws = place / "ws"
    subprocess.run(["git", "init", "-q", str(ws)], check=True)
    write(ws / ".git/modules/sub/config")
    write(ws / ".git/modules/sub/HEAD")
    held = below(floor_for([str(ws)]), "read-only", ws)
    assert {".git/config", ".git/hooks", ".git/modules/sub/config"} <= set(held)
    assert not {".git", ".git/objects", ".git/HEAD"} & set(held)


def test_what_cannot_be_held_is_said(place: Path) -> None:
    ws = place / "ws"
    (ws / ".envrc").symlink_to("elsewhere")
    write(ws / ".gradle/x")
    gaps = {Path(gap.path).name: gap.reason for gap in floor_for([str(ws)]).gaps}
    assert "a link" in gaps[".envrc"]
    assert "build tools" in gaps[".gradle"]


def test_landlock_says_that_it_neither_covers_nor_protects(place: Path) -> None:
    write(place / "home/.ssh/id")
    write(place / "ws/.envrc")
    floor = floor_for([str(place / "ws")])
    gaps = {Path(gap.path).name: gap.reason for gap in floor.gaps_with("landlock")}
    assert "can be read" in gaps[".ssh"]
    assert "can be written" in gaps[".envrc"]
    assert floor.gaps_with("namespaces") == []


def test_what_landlock_of_an_old_kernel_leaves_open_is_said() -> None:
    cut, signals = "truncate(2)", "signals"
    both = {cut, signals}
    for version, said in ((1, both), (2, both), (3, {signals}), (6, both - both)):
        gaps = {gap.path for gap in landlock_gaps(version)}
        assert gaps & {cut, signals} == said
        assert "modes, times and attributes" in gaps


def test_a_protected_file_with_another_name_is_held_and_said(place: Path) -> None:
    ws = place / "ws"
    write(ws / ".envrc")
    write(ws / ".vscode/tasks.json")
    os.link(ws / ".envrc", place / "other")
    floor = floor_for([str(ws)])
    assert below(floor, "read-only", ws) == [".envrc", ".vscode"]
    assert [Path(gap.path).name for gap in floor.gaps] == [".envrc"]
    assert "another name" in floor.gaps[0].reason


def test_keys_data_and_other_agents_are_covered_and_the_agents_own_is_not(place: Path) -> None:
    home = place / "home"
    for name in (".ssh/id", ".netrc", ".config/google-chrome/x", ".codex/auth", ".goose/auth"):
        write(home / name)
    write(home / "settings.json", "{}")
    floor = floor_for(
        [str(place / "ws")],
        own=Own((str(home / ".codex"),), "its own"),
        others=[(str(home / ".goose"), "of another")],
    )
    covered = [".config/google-chrome", ".goose", ".netrc", ".ssh", "settings.json"]
    assert below(floor, "covered", home) == covered
    assert below(floor, "covered", place / "data") == ["."]
    assert below(floor, "write", home) == [".codex"]
    assert all(each.reason for each in floor.places)


@pytest.mark.parametrize(
    ("root", "problem"),
    [
        ("/", "a folder other than /"),
        (".", "apart from Dragoman's data"),
        ("data/inner", "apart from Dragoman's data"),
        ("nowhere", "a folder that exists"),
        ("/proc", "does not belong to the system, not '/proc'"),
    ],
)
def test_a_folder_that_cannot_be_fenced_is_refused(place: Path, root: str, problem: str) -> None:
    (place / "data/inner").mkdir()
    with pytest.raises(ConfigError, match=problem):
        floor_for([str(place / root)])
    with pytest.raises(ConfigError, match=problem):
        floor_for([str(place / "ws")], write=[str(place / root)])


def test_a_worktree_can_be_committed_in_and_its_hooks_are_held(place: Path) -> None:
    main = place / "main"
    subprocess.run(["git", "init", "-q", str(main)], check=True)
    settings = ["-c", "user.name=x", "-c", "user.email=x@example.com"]
    commit = ["git", "-C", str(main), *settings, "commit", "-q", "--allow-empty", "-m", "x"]
    subprocess.run(commit, check=True)
    add = ["git", "-C", str(main), "worktree", "add", "-q", str(place / "tree")]
    subprocess.run(add, check=True, stderr=subprocess.DEVNULL)
    floor = floor_for([str(place / "tree")])
    assert below(floor, "write", place) == ["main/.git", "tree"]
    held = below(floor, "read-only", place)
    assert {"main/.git/config", "main/.git/hooks", "tree/.git"} <= set(held)


def test_what_the_kernel_would_refuse_is_known_with_its_reason(place: Path) -> None:
    write(place / "home/.ssh/id")
    write(place / "ws/.envrc")
    floor = floor_for([str(place / "ws")])
    elsewhere = "/usr/x"  # the home may be in a private folder
    refused = {
        (name, way): floor.refusal(str(place / name), write=way == "write") or ""
        for name in ("ws/x", "ws/.envrc", elsewhere, "home/.ssh/id")
        for way in ("read", "write")
    }
    assert {each for each, reason in refused.items() if not reason} == {
        ("ws/x", "read"),
        ("ws/x", "write"),
        ("ws/.envrc", "read"),
        (elsewhere, "read"),
    }
    assert refused[elsewhere, "write"] == "it is outside the workspace"
    assert "hidden: keys" in refused["home/.ssh/id", "read"]
    assert "read-only: it runs" in refused["ws/.envrc", "write"]


@pytest.mark.parametrize(
    ("path", "reads", "writes"),
    [
        ("/tmp", False, True),
        ("/tmp/x", False, True),
        ("/var/tmp/x/y", False, True),
        ("/dev/shm/x", False, True),
        ("/dev/null", True, True),
        ("/dev/sda", False, False),
        ("/proc/cpuinfo", True, False),
        ("/proc/self/status", True, True),
        ("/proc/1/environ", False, False),
    ],
)
def test_what_is_private_to_a_session_is_not_what_is_there_outside(
    path: str, reads: bool, writes: bool
) -> None:
    floor = Floor(places=())
    for write, is_through in ((False, reads), (True, writes)):
        reason = floor.refusal(path, write=write)
        assert (reason is None) is is_through
        assert is_through or "is private to the session" in str(reason)
    assert "is private to the session" in str(floor.privacy(path))


def test_a_place_of_its_own_in_a_private_folder_is_not_private() -> None:
    write, covered = FencePlace("/tmp/ws", "write", "its"), FencePlace("/tmp/h", "covered", "keys")
    floor = Floor(places=(write, covered))
    assert floor.privacy("/tmp/ws/x") is None
    assert [floor.refusal("/tmp/ws/x", write=way) for way in (True, False)] == [None, None]
    assert floor.refusal("/tmp/h/x", write=True) == "/tmp/h is hidden: keys"
    assert floor.refusal("/tmp/wsx", write=False) == floor.privacy("/tmp/wsx")
    assert floor.privacy("/tmpx") is None


@pytest.mark.parametrize(
    "name",
    [
        ".config/mozilla/firefox/x/logins.json",
        ".config/github-copilot/apps.json",
        ".cache/huggingface/token",
        ".config/JetBrains/IdeaIC2026.1/c.kdbx",
        ".local/share/uv/credentials/credentials.toml",
        ".local/share/gnupg/private-keys-v1.d/x.key",
    ],
)
def test_credentials_that_newer_programs_keep_elsewhere_are_covered(place: Path, name: str) -> None:
    secret = write(place / "home" / name)
    reason = floor_for([str(place / "ws")]).refusal(str(secret), write=False)
    assert "is hidden" in str(reason)


def test_a_file_that_claims_to_be_a_worktrees_opens_nothing(place: Path) -> None:
    write(place / "home/precious/commondir", ".")
    write(place / "home/precious/gitdir", str(place / "elsewhere/.git"))
    write(place / "ws/.git", f"gitdir: {place / 'home/precious'}\n")
    assert below(floor_for([str(place / "ws")]), "write", place) == ["ws"]


def test_a_folder_made_in_the_workspace_cannot_claim_that_another_is_its_repository(
    place: Path,
) -> None:
    """What an agent leaves there must not open more for the next one."""
    for made in ("ws/made", "ws/worktrees/made"):
        write(place / made / "commondir", str(place / "home"))
        write(place / made / "gitdir", str(place / "ws/.git"))
        write(place / "ws/.git", f"gitdir: {place / made}\n")
        assert below(floor_for([str(place / "ws")]), "write", place) == ["ws"]


def test_a_link_in_the_workspace_opens_no_folder_that_the_settings_name(place: Path) -> None:
    """An agent may have put it there for the next one."""
    (place / "ws/cache").symlink_to(place / "home")
    for name in ("ws/cache", "ws/cache/."):
        with pytest.raises(ConfigError, match="not a link in the workspace"):
            floor_for([str(place / "ws")], write=[str(place / name)])
    floor = floor_for([str(place / "ws")], write=[str(place / "home")])
    assert below(floor, "write", place) == ["home", "ws"]


def test_other_names_of_a_folder_are_found_in_the_table_of_mounts(place: Path) -> None:
    """Links stand for the mounts, which only root could make."""
    write(place / "home/.ssh/keys/id")
    whole = str(place / "a whole")
    rows = [
        f"1 0 8:1 / {place} rw - ext4 /dev/x rw",
        f"2 1 8:1 /home {whole.replace(' ', chr(92) + '040')} rw - ext4 /dev/x rw",
        f"3 1 8:1 /home/.ssh/keys {place / 'keys'} rw - ext4 /dev/x rw",
        f"4 1 8:2 /home {place / 'other'} rw - ext4 /dev/y rw",
        f"5 1 8:1 /home {place / 'hidden'} rw - ext4 /dev/x rw",
    ]
    found = parsed("\n".join(rows))
    assert found[1] == Mount("8:1", "/home", whole)
    for name, target in (("a whole", "home"), ("other", "home"), ("keys", "home/.ssh/keys")):
        (place / name).symlink_to(place / target)
    names = list(names_elsewhere(str(place / "home/.ssh"), found))
    assert names == [f"{whole}/.ssh", str(place / "keys")]


def test_sockets_are_found_by_their_full_names_and_variables_that_name_some_go() -> None:
    text = (
        "Num       RefCount Protocol Flags    Type St Inode Path\n"
        "0000: 00000002 00000000 00010000 0001 01 1 /home/u/a b.sock\n"
        "0000: 00000002 00000000 00010000 0001 01 2 @abstract\n"
        "0000: 00000002 00000000 00010000 0001 01 3\n"
    )
    assert listening_sockets(text) == ["/home/u/a b.sock"]
    assert without_sockets({"SSH_AUTH_SOCK": "x", "PATH": "y"}) == {"PATH": "y"}


def test_the_repository_of_a_worktree_of_ours_cannot_be_written(place: Path) -> None:
    main, tree = place / "main", place / "data-worktrees" / "fix" / "main"
    subprocess.run(["git", "init", "-q", str(main)], check=True)
    identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    commit = ["git", "-C", str(main), *identity, "commit", "-q", "--allow-empty", "-m", "first"]
    subprocess.run(commit, check=True)
    subprocess.run(["git", "-C", str(main), "worktree", "add", "-q", str(tree)], check=True)
    assert below(floor_for([str(tree)]), "write", place) == ["data-worktrees/fix/main"]
