from __future__ import annotations

import time

import pytest

from dragoman.host.protected import protection


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
    start = time.perf_counter()
    assert protection("/a" * 1_000_000) == "its name is longer than a file system allows"
    assert time.perf_counter() - start < 1
