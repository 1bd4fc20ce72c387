"""Attempts to change what runs later, without a fence: hooks, settings, jobs, start-up files."""

from __future__ import annotations

import os
import shutil

from attempts import HOME, WS, P, checked, escape, libc, new, put, root_only, shell

# ── what runs later ───────────────────────────────────────────────────────────────────────────────


@escape
def by_hook() -> None:
    put(f"{WS}/.git/hooks/pre-commit")


@escape
def by_new_hook() -> None:
    new(f"{WS}/.git/hooks/post-checkout")


@escape
def by_settings_of_git() -> None:
    put(f"{WS}/.git/config", flags=os.O_WRONLY | os.O_APPEND)


@escape
def by_replacing_the_settings_of_git() -> None:
    shutil.copy(f"{WS}/.git/config", f"{WS}/config")
    os.rename(f"{WS}/config", f"{WS}/.git/config")


@escape
def by_git_itself() -> None:
    shell(f"git -C {WS} config core.hooksPath /tmp && git -C {WS} config --unset core.hooksPath")


@escape
def by_moving_the_repository() -> None:
    os.rename(f"{WS}/.git", f"{WS}/git")
    os.rename(f"{WS}/git", f"{WS}/.git")


@escape
def by_exchanging_the_repository() -> None:
    """In one step, so that neither name is ever free."""
    os.makedirs(f"{WS}/fake/hooks", exist_ok=True)
    exchange(f"{WS}/fake", f"{WS}/.git")
    exchange(f"{WS}/fake", f"{WS}/.git")


def exchange(one: str, other: str) -> None:
    checked(libc.renameat2(-100, one.encode(), -100, other.encode(), 2))


@escape
def by_moving_the_hooks() -> None:
    os.rename(f"{WS}/.git/hooks", f"{WS}/hooks")
    os.rename(f"{WS}/hooks", f"{WS}/.git/hooks")


@escape
def by_deleting_the_hooks() -> None:
    os.unlink(f"{WS}/.git/hooks/to-delete")


@escape
def by_another_name_of_the_hooks() -> None:
    os.symlink(f"{WS}/.git/hooks", f"{WS}/other-name")
    new(f"{WS}/other-name/pre-push")


@escape
def by_hook_of_a_submodule() -> None:
    new(f"{WS}/.git/modules/sub/hooks/pre-commit")


@escape
def by_file_of_a_worktree() -> None:
    put(f"{P}/worktree/.git", f"gitdir: {WS}/evil\n")


@escape
def by_repository_of_a_worktree() -> None:
    put(f"{P}/main/.git/config", flags=os.O_WRONLY | os.O_APPEND)


@escape
def by_hooks_of_a_worktree() -> None:
    new(f"{P}/main/.git/hooks/pre-commit")


@escape
def by_environment_file() -> None:
    put(f"{WS}/.envrc")


@escape
def by_settings_of_an_editor() -> None:
    put(f"{WS}/.vscode/settings.json")


@escape
def by_moving_the_settings_of_an_editor() -> None:
    os.rename(f"{WS}/.vscode", f"{WS}/vscode")
    os.rename(f"{WS}/vscode", f"{WS}/.vscode")


@escape
def by_settings_of_an_agent() -> None:
    put(f"{WS}/.claude/settings.json")


@escape
def by_workflow() -> None:
    put(f"{WS}/.github/workflows/ci.yml")


@escape
def by_moving_the_workflows() -> None:
    os.rename(f"{WS}/.github", f"{WS}/github")
    os.rename(f"{WS}/github", f"{WS}/.github")


@escape
def by_deeper_settings_of_an_agent() -> None:
    put(f"{WS}/packages/one/.mcp.json")


@escape
def by_start_of_the_shell() -> None:
    put(f"{HOME}/.bashrc", flags=os.O_WRONLY | os.O_APPEND)


@escape
def by_new_start_of_the_shell() -> None:
    new(f"{HOME}/.zshenv")


@escape
def by_start_of_the_desktop() -> None:
    os.makedirs(f"{HOME}/.config/autostart", exist_ok=True)
    new(f"{HOME}/.config/autostart/x.desktop")


@escape
def by_program_of_the_user() -> None:
    new(f"{HOME}/.local/bin/ls")


@root_only
def by_cron() -> None:
    folder = next(filter(os.path.isdir, ("/etc/cron.d", "/var/spool/cron", "/etc")))
    new(f"{folder}/dragoman-test-file")


@root_only
def by_start_of_the_system() -> None:
    folder = next(filter(os.path.isdir, ("/etc/systemd/system", "/etc/init.d", "/etc")))
    new(f"{folder}/dragoman-test.service")


@root_only
def by_at() -> None:
    places = ("/var/spool/cron/atjobs", "/var/spool/at", "/var/spool")
    new(f"{next(filter(os.path.isdir, places))}/a00001")
