from __future__ import annotations

from pathlib import Path

import pytest
from support.cost import calls
from support.normalising import Normalised

from dragoman.host.rules.protected import TABLE, protection


@pytest.mark.parametrize(
    "path",
    [
        "/ws/.git",
        "/ws/.git/hooks/pre-commit",
        "/ws/.git/config",
        "/ws/sub/.git/modules/x/hooks/post-checkout",
        "/ws/.GIT/Config",
        "/ws/.g\u200cit/config",
        "/ws/.git. /config",
        "/ws/.ｇｉｔ/config",
        "/ws/git~1/config",
        "/ws/GIT~1/hooks/pre-commit",
        "/ws/.git::$INDEX_ALLOCATION/config",
        "/ws/.gitmodules",
        "/ws/.husky/pre-push",
        "/ws/.pre-commit-config.yaml",
        "/ws/.github",
        "/ws/.github/workflows/ci.yml",
        "/ws/.github/workflows",
        "/ws/.gitlab-ci.yml",
        "/ws/.circleci/config.yml",
        "/ws/Jenkinsfile",
        "/ws/azure-pipelines.yml",
        "/home/me/.bashrc",
        "/home/me/.bash_profile",
        "/home/me/.profile",
        "/home/me/.zshrc",
        "/home/me/.zshenv",
        "/home/me/.config/fish/config.fish",
        "/home/me/.config/autostart/x.desktop",
        "/home/me/.config/systemd/user/x.service",
        "/Users/me/Library/LaunchAgents/x.plist",
        "/home/me/.ssh/authorized_keys",
        "/home/me/.netrc",
        "/ws/.envrc",
        "/ws/.vscode/tasks.json",
        "/ws/.VSCode/Settings.json",
        "/ws/x.code-workspace",
        "/ws/.devcontainer/devcontainer.json",
        "/ws/.mcp.json",
        "/ws/.claude/settings.json",
        "/home/me/.curlrc",
        "/home/me/.wgetrc",
        "/home/me/.R/Makevars",
        "/home/me/.nvm/nvm.sh",
        "/home/me/.mutt/muttrc",
        "/home/me/.mozilla/firefox/x/logins.json",
        "/home/me/.local/share/dbus-1/services/x.service",
        "/ws/ansible.cfg",
    ],
)
def test_a_file_that_makes_things_run_is_protected(path: str) -> None:
    assert protection(path)


@pytest.mark.parametrize(
    "path",
    [
        "/ws/src/a.py",
        "/ws/git/config",
        "/ws/.gitignore",
        "/ws/.gitattributes",
        "/ws/.github/ISSUE_TEMPLATE.md",
        "/ws/.github/dependabot",
        "/ws/profile",
        "/ws/docs/ssh/keys.md",
        "/ws/.env",
        "/ws/envrc",
        "/ws/Makefile",
        "/ws/config.yml",
        "/",
    ],
)
def test_an_ordinary_file_is_not(path: str) -> None:
    assert protection(path) is None


def test_a_name_too_long_for_any_disk_is_protected_without_a_search() -> None:
    assert protection("/a" * 1_000_000) == "its name is longer than a file system allows"
    assert calls(lambda: protection("/a" * 1_000_000)) < 20


MISSED = [
    "opencode.json",
    "opencode.jsonc",
    ".opencode/plugin/x.js",
    ".config/goose/config.yaml",
    ".goose/x",
    ".kimi/x.json",
    ".qwen/settings.json",
    ".windsurf/mcp.json",
    ".roo/mcp.json",
    ".kiro/settings/mcp.json",
    ".factory/x",
    ".amp/x",
    ".aider.conf.yml",
    ".continue/config.yaml",
    ".crush.json",
    ".copilot/x",
    ".config/opencode/opencode.json",
    ".zed/tasks.json",
    ".emacs",
    ".emacs.d/init.el",
    ".vim/plugin/x.vim",
    ".config/Code/User/tasks.json",
    ".helix/languages.toml",
    ".git-credentials",
    ".kube/config",
    ".config/gh/hosts.yml",
    ".pgpass",
    ".cargo/credentials.toml",
    "lefthook.yaml",
    "lefthook.toml",
    ".lefthook.yml",
    "lefthook-local.yml",
    ".overcommit.yml",
    "mise.toml",
    ".mise.local.toml",
    ".cirrus.yml",
    ".builds/x.yml",
    ".semaphore/semaphore.yml",
    ".tekton/x.yaml",
    "buildspec.yml",
    ".yarnrc.yml",
    ".cargo/config.toml",
    ".config/nushell/config.nu",
    ".local/bin/ls",
    ".gdbinit",
    "repo.git/hooks/post-receive",
    "repo.git/config",
    "repo.git/HEAD",
    ".docker",
    ".config",
]


@pytest.mark.parametrize("name", MISSED)
def test_what_agents_editors_and_build_servers_run_is_protected(name: str) -> None:
    assert protection(f"/ws/{name}")


def test_the_work_grows_with_the_path_and_no_faster() -> None:
    short, long = "/.config/x.git/.bash" * 20, "/.config/x.git/.bash" * 80
    assert calls(lambda: protection(long)) <= 4 * calls(lambda: protection(short)) + 50
    assert calls(lambda: protection("/.a" * 250)) < 250 * 20


def test_a_path_deeper_than_any_file_is_protected_without_a_search() -> None:
    assert protection("/a" * 256) is None
    assert protection("/a" * 257) == "its name is longer than a file system allows"
    assert calls(lambda: protection("/a" * 2_000)) < 20


def test_the_documentation_has_the_whole_table() -> None:
    """Printed as it should be, so that a new name is one paste away."""
    wanted = "\n".join(
        f"| {reason} | {', '.join(f'`{name}`' for name in sorted(names))} |"
        for reason, names in TABLE.items()
    )
    written = Path(__file__).parents[2].joinpath("docs/explanation/permissions.md").read_text()
    assert wanted in written, f"docs/explanation/permissions.md should have:\n{wanted}"


def test_marks_of_every_category_go_before_a_name_is_normalised(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    normalised = Normalised(monkeypatch)
    assert protection("/w/.g\u0301it/" + "\u302e\u0301" * 2_000 + "config") is not None
    assert normalised.longest_run == 0
