"""Files that make something run later, out of the agent's sight: writing one always asks.

A table with the reason for each; matched anywhere in a path. Names are compared as the most
forgiving file system would: without case, invisible characters, or trailing dots and spaces.
"""

from __future__ import annotations

import unicodedata

from dragoman.host.globs import matches_path

_HOOKS = "git runs the hooks and settings in it"
_CI = "it decides what the build servers run"
_SHELL = "a shell runs it when it starts"
_LOGIN = "it is run when the user logs in"
_KEYS = "it holds or controls keys and passwords"
_EDITOR = "an editor runs the commands in it"
_AGENT = "coding agents run the commands in it"
_ENVIRONMENT = "it is run on entering the folder"

_TABLE: dict[str, tuple[str, ...]] = {
    _HOOKS: (
        ".git/**",
        ".gitconfig",
        ".gitmodules",
        ".config/git/**",
        ".githooks/**",
        ".husky/**",
        ".hg/**",
        ".hgrc",
        ".pre-commit-config.yaml",
        "lefthook.yml",
    ),
    _CI: (
        ".github",
        ".github/workflows/**",
        ".github/actions/**",
        ".gitea/workflows/**",
        ".forgejo/workflows/**",
        ".gitlab-ci.yml",
        ".gitlab-ci.yaml",
        ".gitlab/ci/**",
        ".circleci/**",
        ".buildkite/**",
        ".woodpecker/**",
        ".woodpecker.yml",
        ".teamcity/**",
        ".ci/**",
        ".travis.yml",
        ".drone.yml",
        ".appveyor.yml",
        "appveyor.yml",
        "azure-pipelines.yml",
        "bitbucket-pipelines.yml",
        "cloudbuild.yaml",
        "jenkinsfile",
    ),
    _SHELL: (
        ".bashrc",
        ".bash_*",
        ".profile",
        ".zshrc",
        ".zshenv",
        ".zprofile",
        ".zlogin",
        ".zlogout",
        ".kshrc",
        ".mkshrc",
        ".cshrc",
        ".tcshrc",
        ".login",
        ".logout",
        ".inputrc",
        "config.fish",
        ".config/fish/**",
        "etc/profile",
        "etc/profile.d/**",
    ),
    _LOGIN: (
        ".xprofile",
        ".xinitrc",
        ".xsession*",
        ".pam_environment",
        ".config/autostart/**",
        ".config/environment.d/**",
        ".config/systemd/**",
        "library/launchagents/**",
        "etc/cron*/**",
    ),
    _KEYS: (
        ".ssh/**",
        ".gnupg/**",
        ".aws/**",
        ".netrc",
        ".npmrc",
        ".pypirc",
        ".docker/config.json",
    ),
    _EDITOR: (
        ".vscode/**",
        "*.code-workspace",
        ".idea/**",
        ".devcontainer/**",
        ".devcontainer.json",
        ".vimrc",
        ".exrc",
        ".nvimrc",
        ".nvim.lua",
        ".dir-locals.el",
        ".config/nvim/**",
    ),
    _AGENT: (
        ".mcp.json",
        ".claude/**",
        ".claude.json",
        ".codex/**",
        ".cursor/**",
        ".gemini/**",
        ".config/dragoman/**",
    ),
    _ENVIRONMENT: (".envrc", ".direnvrc", ".mise.toml", ".autoenv", ".autoenv.zsh"),
}
_LONGEST = 4096
_REASONS = tuple((f"/**/{glob}", reason) for reason, globs in _TABLE.items() for glob in globs)


def protection(path: str) -> str | None:
    """Why writing this path always asks, as the end of a sentence; None for an ordinary file."""
    if len(path) > _LONGEST:
        return "its name is longer than a file system allows"
    folded = "/".join(map(_folded, path.split("/")))
    return next((reason for glob, reason in _REASONS if matches_path(glob, folded)), None)


def _folded(component: str) -> str:
    visible = "".join(char for char in component if unicodedata.category(char) not in ("Cf", "Mn"))
    return unicodedata.normalize("NFKC", visible).casefold().rstrip(". ")
