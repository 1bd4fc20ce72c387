"""From an agent, its settings and the variables to what its fence hides and lets it write."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.agents.agent_fence import agent_floor
from dragoman.agents.known import known_agents
from dragoman.host.fence.covered_paths import MOVED, NAMED
from dragoman.host.fence.fence_terms import FenceTerms
from dragoman.host.fence.floor import Floor
from dragoman.transport.stdio import AgentCommand

_STATE = [path for agent in known_agents() for path in agent.state if path.startswith("$")]
_VARIABLES = [
    *MOVED.values(),
    *(name for names in NAMED.values() for name in names),
    *(path[1:].partition("/")[0] for path in _STATE),
]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a home and a workspace next to each other, and no variable that names anything else."""
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name in ("home", "data", "ws"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("DRAGOMAN_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("DRAGOMAN_SETTINGS", str(tmp_path / "settings.json"))
    return tmp_path


def made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("secret")
    return path


def floor_of(place: Path, agent: str = "", *, makes: bool = False, **env: str) -> Floor:
    command = AgentCommand("some-agent", env=env)
    return agent_floor(FenceTerms(), [str(place / "ws")], agent, command, makes=makes)


def hidden(floor: Floor, *paths: Path) -> list[bool]:
    """By its places: whatever is not in one may be in a private folder, as these tests may be."""
    covered = [Path(path) for path in floor.paths("covered")]
    return [any(path.is_relative_to(each) for each in covered) for path in paths]


MOVED_NAMES = [
    ("XDG_CONFIG_HOME", ".config", "gh/hosts.yml"),
    ("XDG_CONFIG_HOME", ".config", "google-chrome-beta/Cookies"),
    ("XDG_DATA_HOME", ".local/share", "keyrings/login.keyring"),
    ("XDG_STATE_HOME", ".local/state", "bash/history"),
    ("XDG_CACHE_HOME", ".cache", "huggingface/token"),
    ("HF_HOME", ".cache/huggingface", "token"),
    ("CARGO_HOME", ".cargo", "credentials.toml"),
]


@pytest.mark.parametrize(("variable", "usual", "name"), MOVED_NAMES)
def test_keys_are_hidden_where_a_variable_moves_them_and_where_they_usually_are(
    place: Path, monkeypatch: pytest.MonkeyPatch, variable: str, usual: str, name: str
) -> None:
    both = [made(place / "moved" / name), made(place / "home" / usual / name)]
    monkeypatch.setenv(variable, str(place / "moved"))
    assert hidden(floor_of(place), *both) == [True, True]


def test_what_the_agents_own_variables_move_does_not_uncover_what_yours_do(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = [made(place / "yours/gh/hosts.yml"), made(place / "agents/gh/hosts.yml")]
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place / "yours"))
    assert hidden(floor_of(place, XDG_CONFIG_HOME=str(place / "agents")), *both) == [True, True]


@pytest.mark.parametrize("variable", sorted(name for names in NAMED.values() for name in names))
def test_what_a_variable_names_as_a_place_of_credentials_is_hidden(
    place: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    secret = made(place / "named/secret")
    assert hidden(floor_of(place), secret) == [False]
    monkeypatch.setenv(variable, str(secret))
    floor = floor_of(place)
    assert hidden(floor, secret) == [True]
    reason = next(each.reason for each in floor.places if each.path == str(secret))
    assert reason.endswith(f": {variable} names it")


def test_each_file_of_a_list_is_hidden_and_a_tilde_is_your_home(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = [made(place / "one.yaml"), made(place / "home/two.yaml")]
    monkeypatch.setenv("KUBECONFIG", f"{both[0]}:~/two.yaml:relative.yaml:")
    assert hidden(floor_of(place), *both) == [True, True]


def test_a_variable_cannot_hide_the_home_directory_and_that_is_said(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (place / "home", place, Path("/")):
        monkeypatch.setenv("DOCKER_CONFIG", str(name))
        floor = floor_of(place)
        assert str(name) not in floor.paths("covered")
        assert "your home directory is in it" in {g.path: g.reason for g in floor.gaps}[str(name)]


@pytest.mark.parametrize(
    ("name", "variable", "inner"),
    [("codex", "CODEX_HOME", ""), ("claude", "CLAUDE_CONFIG_DIR", ""),
     ("gemini", "GEMINI_CLI_HOME", "/.gemini")],
)  # fmt: skip
def test_an_agents_folder_is_where_its_variable_says_its_own_and_hidden_from_others(
    place: Path, monkeypatch: pytest.MonkeyPatch, name: str, variable: str, inner: str
) -> None:
    folder = f"{place / 'mo.ved'}{inner}"
    monkeypatch.setenv(variable, str(place / "mo.ved"))
    assert folder in floor_of(place, name, makes=True).paths("write")
    assert Path(folder).is_dir()
    assert folder in floor_of(place, "goose").paths("covered")


def test_an_agents_usual_folder_is_hidden_from_others_even_if_a_variable_moves_it(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = [made(place / "moved/goose/x"), made(place / "home/.config/goose/x")]
    monkeypatch.setenv("XDG_CONFIG_HOME", str(place / "moved"))
    assert hidden(floor_of(place, "codex"), *both) == [True, True]
    own = floor_of(place, "goose").paths("write")
    assert str(place / "moved/goose") in own


def test_a_variable_gives_no_agent_the_home_directory_or_what_a_link_in_the_workspace_names(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "elsewhere").mkdir()
    (place / "ws/link").symlink_to(place / "elsewhere")
    for name in ("home", "ws/link", "ws/link/inner"):
        monkeypatch.setenv("CODEX_HOME", str(place / name))
        paths = floor_of(place, "codex", makes=True).paths("write")
        assert paths == [str(place / "ws"), str(place / "home/.codex")]
    assert list((place / "elsewhere").iterdir()) == []


def test_the_folders_that_a_start_would_make_are_listed_and_not_made(place: Path) -> None:
    folder = str(place / "home/.codex")
    floor = floor_of(place, "codex")
    assert not Path(folder).exists()
    reason = next(each.reason for each in floor.places if each.path == folder)
    assert reason == "Codex keeps its own data here; it is made when the agent starts"
    assert floor.refusal(f"{folder}/x", write=True) is None
    made_by_start = floor_of(place, "codex", makes=True)
    assert made_by_start.paths("write") == floor.paths("write")
    assert "when the agent starts" not in str(made_by_start.places)


def test_a_file_that_only_the_agent_makes_is_not_listed_before(place: Path) -> None:
    paths = floor_of(place, "claude").paths("write")
    assert paths == [str(place / "ws"), str(place / "home/.claude")]
