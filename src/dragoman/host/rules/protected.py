"""Protected files, which hold keys or make something run later: writing one always asks.

A table with the reason for each, matched anywhere in a path. Names are compared as the most
forgiving file system would: without case, invisible characters, or trailing dots and spaces.
Pure, and linear in the path: an agent chooses it. What a look at the disk adds is in `reach`.
"""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Iterator, Sequence

from dragoman.host.rules.globs import LONGEST_PATH, MOST_COMPONENTS

_HOOKS = "version control runs the commands in it"
_CI = "it controls what CI servers run"
_SHELL = "a shell runs it when it starts"
_LOGIN = "it runs when the user logs in"
_KEYS = "it holds or controls keys and passwords"
_EDITOR = "an editor runs the commands in it"
_AGENT = "coding agents run the commands in it"
_ENVIRONMENT = "it runs when you enter the directory"
_PACKAGES = "a package manager or build tool runs the commands in it"
_RULES = "it says what agents may do"
_TOOLS = "a debugger or an interpreter runs it when it starts"

# `name/**` is the folder and all beneath; one `*` in a name is any characters. In lower case.
# A name that another one covers is there to be looked for as a link.
TABLE: dict[str, tuple[str, ...]] = {
    _HOOKS: (
        ".git/**",
        ".git/config",
        ".git/hooks/**",
        ".gitconfig",
        ".gitmodules",
        ".config/git/**",
        ".git-hooks/**",
        ".githooks/**",
        "*.git/config",
        "*.git/head",
        "*.git/hooks/**",
        "*.git/info/**",
        ".husky/**",
        ".huskyrc*",
        ".hg/**",
        ".hgrc",
        ".svn/**",
        ".bzr/**",
        ".jj/**",
        ".config/jj/**",
        ".jjconfig.toml",
        ".lefthook/**",
        ".lefthook-local.*",
        ".lefthook.*",
        ".lintstagedrc*",
        ".overcommit.yml",
        ".pre-commit-config.yaml",
        ".pre-commit-config.yml",
        ".pre-commit-hooks.yaml",
        ".simple-git-hooks.*",
        "lefthook-local.*",
        "lefthook.*",
        "lint-staged.config.*",
    ),
    _CI: (
        ".github/workflows/**",
        ".github/actions/**",
        ".gitea/workflows/**",
        ".forgejo/workflows/**",
        ".gitlab-ci.yml",
        ".gitlab-ci.yaml",
        ".gitlab/ci/**",
        ".appveyor.yaml",
        ".appveyor.yml",
        ".azure-pipelines/**",
        ".azuredevops/**",
        ".build.yml",
        ".buildkite/**",
        ".builds/**",
        ".ci/**",
        ".circleci/**",
        ".cirrus.star",
        ".cirrus.yaml",
        ".cirrus.yml",
        ".codefresh/**",
        ".drone.*",
        ".harness/**",
        ".jenkins/**",
        ".onedev-buildspec.yml",
        ".pipelines/**",
        ".readthedocs.yaml",
        ".readthedocs.yml",
        ".semaphore/**",
        ".teamcity/**",
        ".tekton/**",
        ".travis.yaml",
        ".travis.yml",
        ".vela.yml",
        ".woodpecker.yaml",
        ".woodpecker.yml",
        ".woodpecker/**",
        ".zuul.yaml",
        "amplify.yml",
        "appveyor.yaml",
        "appveyor.yml",
        "azure-pipelines*",
        "bitbucket-pipelines.yaml",
        "bitbucket-pipelines.yml",
        "bitrise.yml",
        "buildspec.yaml",
        "buildspec.yml",
        "cloudbuild.yaml",
        "cloudbuild.yml",
        "codefresh.yml",
        "codemagic.yaml",
        "jenkinsfile*",
        "netlify.toml",
        "screwdriver.yaml",
        "wercker.yml",
    ),
    _SHELL: (
        ".bashrc",
        ".bashrc.d/**",
        ".bash_*",
        ".bash_aliases",
        ".bash_login",
        ".bash_profile",
        ".profile",
        ".zshrc",
        ".zshrc.*",
        ".zshenv",
        ".zprofile",
        ".zlogin",
        ".zlogout",
        ".zsh/**",
        ".oh-my-zsh/**",
        ".kshrc",
        ".mkshrc",
        ".cshrc",
        ".tcshrc",
        ".login",
        ".logout",
        ".inputrc",
        ".xonshrc",
        ".elvish/**",
        ".screenrc",
        ".tmux.conf",
        ".tmux/**",
        ".wezterm.lua",
        ".config/alacritty/**",
        ".config/elvish/**",
        ".config/fish/**",
        ".config/ghostty/**",
        ".config/kitty/**",
        ".config/nushell/**",
        ".config/powershell/**",
        ".config/starship.toml",
        ".config/tmux/**",
        ".config/wezterm/**",
        ".config/xonsh/**",
        ".config/zsh/**",
        ".local/bin/**",
        ".local/share/bash-completion/**",
        ".asdf/**",
        ".fzf.bash",
        ".fzf.zsh",
        ".nvm/**",
        ".pyenv/**",
        ".sdkman/**",
        "config.fish",
        "etc/bash.bashrc",
        "etc/environment",
        "etc/profile",
        "etc/profile.d/**",
        "etc/zsh/**",
    ),
    _LOGIN: (
        ".xprofile",
        ".xinitrc",
        ".xsession*",
        ".pam_environment",
        ".forward",
        ".mailcap",
        ".procmailrc",
        ".i3/**",
        ".config/autostart/**",
        ".config/environment.d/**",
        ".config/hypr/**",
        ".config/i3/**",
        ".config/openbox/**",
        ".config/plasma-workspace/**",
        ".config/sway/**",
        ".config/systemd/**",
        ".local/share/applications/**",
        ".local/share/systemd/**",
        ".local/share/dbus-1/services/**",
        ".local/share/nautilus/scripts/**",
        ".config/awesome/**",
        ".config/bspwm/**",
        ".config/polybar/**",
        ".config/qtile/**",
        ".config/sxhkd/**",
        ".config/waybar/**",
        ".mbsyncrc",
        ".msmtprc",
        ".mutt/**",
        ".muttrc",
        ".sxhkdrc",
        ".xbindkeysrc",
        ".xmonad/**",
        "library/launchagents/**",
        "library/launchdaemons/**",
        "etc/cron*/**",
        "etc/init.d/**",
        "etc/ld.so.preload",
        "etc/rc.local",
        "etc/sudoers",
        "etc/sudoers.d/**",
        "etc/systemd/**",
        "var/spool/cron/**",
    ),
    _KEYS: (
        ".ssh/**",
        ".ssh/authorized_keys",
        ".ssh/config",
        ".gnupg/**",
        ".aws/**",
        ".azure/**",
        ".boto",
        ".cargo/credentials",
        ".cargo/credentials.toml",
        ".config/containers/**",
        ".config/doctl/**",
        ".config/gcloud/**",
        ".config/gh/**",
        ".config/glab-cli/**",
        ".config/hub",
        ".config/op/**",
        ".config/rclone/**",
        ".config/sops/**",
        ".databrickscfg",
        ".docker/**",
        ".gem/credentials",
        ".git-credentials",
        ".k5login",
        ".kube/**",
        ".my.cnf",
        ".netrc",
        ".npmrc",
        ".oci/**",
        ".password-store/**",
        ".pgpass",
        ".pypirc",
        ".rhosts",
        ".s3cfg",
        ".shosts",
        ".snowflake/**",
        ".terraform.d/**",
        ".terraformrc",
        ".vault-token",
        ".local/share/keyrings/**",
        ".mozilla/**",
        "_netrc",
    ),
    _EDITOR: (
        ".vscode/**",
        ".vscode/settings.json",
        ".vscode/tasks.json",
        ".vscode-server/**",
        "*.code-workspace",
        ".idea/**",
        ".ideavimrc",
        ".fleet/**",
        ".theia/**",
        ".zed/**",
        ".vim/**",
        ".vimrc",
        ".gvimrc",
        ".lvimrc",
        ".local.vimrc",
        ".exrc",
        ".nanorc",
        ".nvim/**",
        ".nvimrc",
        ".nvim.lua",
        ".emacs",
        ".emacs.d/**",
        ".emacs.el",
        ".dir-locals.el",
        ".dir-locals-2.el",
        ".doom.d/**",
        ".spacemacs",
        ".spacemacs.d/**",
        ".helix/**",
        ".atom/**",
        ".nova/**",
        ".vimspector.json",
        ".ycm_extra_conf.py",
        "*.sublime-project",
        ".config/code/**",
        ".config/code - oss/**",
        ".config/cursor/**",
        ".config/doom/**",
        ".config/emacs/**",
        ".config/helix/**",
        ".config/jetbrains/**",
        ".config/kak/**",
        ".config/micro/**",
        ".config/nvim/**",
        ".config/sublime-text*/**",
        ".config/vscodium/**",
        ".config/windsurf/**",
        ".config/zed/**",
        "library/application support/code/**",
        "library/application support/cursor/**",
    ),
    _AGENT: (
        ".mcp.json",
        "mcp.json",
        ".agent/**",
        ".agents/**",
        ".aider*",
        ".amazonq/**",
        ".amp/**",
        ".antigravity/**",
        ".augment/**",
        ".claude/**",
        ".claude/settings.json",
        ".claude-plugin/**",
        ".claude.json",
        ".cline/**",
        ".clinerules/hooks/**",
        ".codebuddy/**",
        ".codeium/**",
        ".codex/**",
        ".codex/config.toml",
        ".continue/**",
        ".continuerc.json",
        ".copilot/**",
        ".crush.json",
        ".crush/**",
        ".cursor/**",
        ".factory/**",
        ".fast-agent/**",
        ".forge/**",
        ".gemini/**",
        ".github/agents/**",
        ".github/hooks/**",
        ".github/mcp.json",
        ".goose/**",
        ".grok/**",
        ".iflow/**",
        ".junie/**",
        ".kilocode/**",
        ".kilocodemodes",
        ".kimi/**",
        ".kiro/**",
        ".opencode.json",
        ".opencode/**",
        ".openhands/**",
        ".pi/**",
        ".qoder/**",
        ".qwen/**",
        ".roo/**",
        ".roomodes",
        ".rovodev/**",
        ".stakpak/**",
        ".tabnine/**",
        ".trae/**",
        ".vibe/**",
        ".warp/**",
        ".windsurf/**",
        ".config/amp/**",
        ".config/claude/**",
        ".config/crush/**",
        ".config/dragoman/**",
        ".config/github-copilot/**",
        ".config/goose/**",
        ".config/kimi/**",
        ".config/opencode/**",
        "crush.json",
        "fastagent.config.yaml",
        "opencode.json",
        "opencode.jsonc",
    ),
    _RULES: (".dragoman/**",),
    _ENVIRONMENT: (
        ".envrc",
        ".direnvrc",
        ".autoenv",
        ".autoenv.zsh",
        ".codesandbox/**",
        ".config/direnv/**",
        ".config/mise.toml",
        ".config/mise/**",
        ".devbox/**",
        ".devcontainer.json",
        ".devcontainer/**",
        ".devfile.yaml",
        ".gitpod.yml",
        ".idx/**",
        ".mise.*",
        ".mise/**",
        ".replit",
        ".rtx.toml",
        ".rvmrc",
        ".tool-versions",
        "devbox.json",
        "devfile.yaml",
        "mise.*",
        "mise/**",
    ),
    _PACKAGES: (
        ".asdfrc",
        ".bazelrc",
        ".bundle/**",
        ".bunfig.toml",
        ".cargo/bin/**",
        ".cargo/config",
        ".cargo/config.toml",
        ".condarc",
        ".config/composer/**",
        ".config/pip/**",
        ".config/uv/**",
        ".composer/**",
        ".gemrc",
        ".gradle/**",
        ".m2/**",
        ".mvn/**",
        ".nuget/**",
        ".pip/**",
        ".pnpmfile.cjs",
        ".sbt/**",
        ".yarn/**",
        ".yarnrc",
        ".yarnrc.yml",
        "bunfig.toml",
        "gradle/wrapper/**",
        "nuget.config",
        "pip.conf",
    ),
    _TOOLS: (
        ".config/gdb/**",
        ".gdbearlyinit",
        ".gdbinit",
        ".ghci",
        ".ipython/**",
        ".irbrc",
        ".julia/config/**",
        ".jupyter/**",
        ".lldbinit*",
        ".octaverc",
        ".pdbrc",
        ".pryrc",
        ".psqlrc",
        ".pythonrc*",
        ".rprofile",
        ".sqliterc",
        ".ackrc",
        ".ansible.cfg",
        ".config/bat/**",
        ".config/lazygit/**",
        ".config/lf/**",
        ".config/mpv/**",
        ".config/ranger/**",
        ".config/yazi/**",
        ".curlrc",
        ".irssi/**",
        ".lessfilter",
        ".lesskey",
        ".node_modules/**",
        ".perldb",
        ".r/makevars",
        ".renviron",
        ".tigrc",
        ".vagrant.d/**",
        ".weechat/**",
        ".wgetrc",
        "ansible.cfg",
        "*.pth",
        "sitecustomize.py",
        "usercustomize.py",
    ),
}


def protection(path: str) -> str | None:
    """Why writing this path always asks, as the end of a sentence; None for an ordinary file."""
    if len(path) > LONGEST_PATH or path.count("/") > MOST_COMPONENTS:
        return "its name is longer than a file system allows"
    return _tree().search([folded(part) for part in path.split("/") if part])


def usual_places() -> Iterator[str]:
    """Every name of the table without a `*` of its own, as it would be beneath a home."""
    names = (name.removesuffix("/**") for names in TABLE.values() for name in names)
    return (name for name in names if "*" not in name)


class _Node:
    """What may follow the names read so far, and why a path that ends or continues here asks."""

    def __init__(self) -> None:
        self.exact: str | None = None
        self.beneath: str | None = None
        self._named: dict[str, _Node] = {}
        self._starred: dict[tuple[str, str], _Node] = {}
        self._starts: tuple[str, ...] = ()
        self._ends: tuple[str, ...] = ()

    def add(self, names: Sequence[str], reason: str) -> None:
        name, *rest = names
        if rest == ["**"]:
            self._child(name).beneath = reason
        elif rest:
            # A file or a link in place of the folder decides what is in it.
            if name.startswith(".") and (child := self._child(name)).exact is None:
                child.exact = reason
            self._child(name).add(rest, reason)
        else:
            self._child(name).exact = reason

    def _child(self, name: str) -> _Node:
        if "*" not in name:
            return self._named.setdefault(name, _Node())
        start, _, end = name.partition("*")
        if start:
            self._starts += (start,)
        else:
            self._ends += (end,)
        return self._starred.setdefault((start, end), _Node())

    def search(self, parts: Sequence[str]) -> str | None:
        """A few names each: how many are looked at together is bounded by the table."""
        reached: list[_Node] = []
        for part in parts:
            reached = [found for node in (self, *reached) for found in node.following(part)]
            for node in reached:
                if node.beneath is not None:
                    return node.beneath
        return next((node.exact for node in reached if node.exact is not None), None)

    def following(self, part: str) -> Iterator[_Node]:
        if (named := self._named.get(part)) is not None:
            yield named
        if part.startswith(self._starts) or part.endswith(self._ends):
            for (start, end), node in self._starred.items():
                if part.startswith(start) and part.endswith(end):
                    yield node


@functools.cache
def _tree() -> _Node:
    tree = _Node()
    for reason, names in TABLE.items():
        for name in names:
            tree.add(name.split("/"), reason)
    return tree


def folded(component: str) -> str:
    """A name as the most forgiving file system would compare it."""
    if not component.isascii():
        component = unicodedata.normalize("NFKC", "".join(filter(_is_seen, component)))
    name = component.casefold().partition(":")[0].rstrip(". ")
    return _SHORT_NAMES.get(name, name)


_SHORT_NAMES = {"git~1": ".git"}
"""What vfat and NTFS also call a file; after a colon, NTFS has another stream of the same file."""


def _is_seen(char: str) -> bool:
    # Whatever combines goes, of any category: to normalise a run of it takes quadratic time.
    return not unicodedata.combining(char) and unicodedata.category(char) not in ("Cf", "Mn")
