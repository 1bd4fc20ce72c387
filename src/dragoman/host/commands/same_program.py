"""How much of a command says what it does: `git status` of `git status --short`. Pure.

For rules that cover a program with any other words: those of a program that runs whatever it is
given would cover everything.
"""

from __future__ import annotations

from dragoman.host.commands.shell_line import Argv
from dragoman.lazy_pattern import lazy_pattern

_RUN_ANYTHING = frozenset(
    (
        *(
            "ash",
            "bash",
            "csh",
            "dash",
            "fish",
            "ksh",
            "mksh",
            "sh",
            "tcsh",
            "zsh",
            "pwsh",
            "tclsh",
        ),
        *(
            "awk",
            "busybox",
            "chroot",
            "chrt",
            "command",
            "doas",
            "ed",
            "emacs",
            "env",
            "eval",
            "ex",
        ),
        *("exec", "expect", "fd", "find", "flock", "gawk", "gdb", "ionice", "lua", "mawk", "nice"),
        *("nohup", "nsenter", "parallel", "pkexec", "run0", "runuser", "screen", "script", "sed"),
        *("setsid", "ssh", "stdbuf", "strace", "su", "sudo", "time", "timeout", "tmux", "unshare"),
        *("bwrap", "chronic", "cross-env", "direnv", "entr", "firejail", "gtimeout", "mise"),
        *(
            "cmake",
            "ctest",
            "nodemon",
            "proot",
            "systemd-run",
            "taskset",
            "tee",
            "toybox",
            "valgrind",
            "xvfb-run",
        ),
        *("vi", "vim", "nvim", "watch", "xargs", "osascript", "mysql", "psql", "sqlite3"),
        *("mongosh", "nc", "ncat", "netcat", "socat", "fzf", "wsl", "clj", "clojure", "raku"),
        # agents, which run what a prompt says
        *("dragoman", "claude", "codex", "copilot", "cursor-agent", "gemini", "goose", "kimi"),
        *("opencode", "qwen", "aider", "hermes"),
    )
)
_INTERPRETERS = lazy_pattern(
    r"i?python[0-9.]*|pypy[0-9.]*|node(?:js)?|bun|deno|tsx|ts-node|perl[0-9.]*|i?ruby|irb|php[0-9.]*"
    r"|lua[0-9.]*|julia|java|Rscript|R|ghci|scala|groovy|elixir|iex|erl|swipl|guile"
)

# How many words belong to the name, after these words; the longest entry counts.
_DEPTHS: dict[Argv, int] = {
    **{
        (program,): 2
        for program in (
            *("git", "hg", "jj", "svn", "gh", "glab", "npm", "pnpm", "yarn", "bun", "deno", "npx"),
            *("pnpx", "bunx", "uv", "uvx", "pip", "pip3", "pipx", "poetry", "pdm", "hatch", "tox"),
            *("nox", "conda", "mamba", "cargo", "rustup", "go", "dotnet", "mvn", "gradle", "gem"),
            *("bundle", "rake", "rails", "composer", "mix", "stack", "cabal", "swift", "make"),
            *("just", "task", "ninja", "bazel", "docker", "podman", "kubectl", "helm", "terraform"),
            *("tofu", "pulumi", "aws", "gcloud", "az", "apt", "apt-get", "brew", "systemctl"),
            *("docker-compose", "opam", "dune", "zig", "nim", "crystal", "sbt", "lein", "meson"),
            *("conan", "vcpkg", "pre-commit", "vagrant", "multipass", "lxc", "flatpak", "snap"),
            *("nix", "turbo", "nx", "lerna", "ng", "expo", "firebase", "vercel", "fly", "heroku"),
        )
    },
    **{(program,): 3 for program in ("gh", "glab", "aws", "az")},
    ("gcloud",): 4,
    **{
        (program, group): 3
        for programs, groups in (
            ("docker podman", "builder buildx container context image manifest network"),
            ("docker podman", "plugin secret service stack swarm system volume pod machine"),
            ("npm", "access cache dist-tag hook org owner pkg profile team token version"),
            ("pnpm", "cache env store"),
            ("yarn", "cache npm plugin version workspaces"),
            ("rustup", "component override self target toolchain set"),
            ("git", "lfs maintenance notes reflog sparse-checkout"),
            ("go", "mod work"),
            ("kubectl", "auth config rollout set"),
            ("helm", "dependency plugin registry repo"),
            ("terraform tofu", "providers state workspace"),
            ("dotnet", "new nuget sln tool workload"),
            ("conda mamba", "env"),
            ("poetry pdm hatch", "cache env self source"),
            ("pip pip3", "cache"),
            ("uv", "cache python self"),
            ("nix", "flake profile store"),
            ("swift", "package"),
            ("brew", "services"),
            ("bazel", "run"),
            ("nx turbo lerna", "run"),
            ("composer", "run-script"),
        )
        for program in programs.split()
        for group in groups.split()
    },
    ("npm", "run"): 3,
    ("npm", "exec"): 3,
    ("pnpm", "run"): 3,
    ("pnpm", "exec"): 3,
    ("yarn", "run"): 3,
    ("bun", "run"): 3,
    ("deno", "task"): 3,
    ("uv", "run"): 3,
    ("uv", "pip"): 3,
    ("uv", "tool"): 3,
    ("poetry", "run"): 3,
    ("pdm", "run"): 3,
    ("hatch", "run"): 3,
    ("bundle", "exec"): 3,
    ("docker", "compose"): 3,
    ("git", "stash"): 3,
    ("git", "remote"): 3,
    ("git", "worktree"): 3,
    ("gh", "pr"): 3,
    ("gh", "issue"): 3,
    ("gh", "run"): 3,
    ("gh", "repo"): 3,
    ("aws", "s3"): 3,
    ("go", "tool"): 3,
}
# What follows these runs, or makes others run, what the words say.
_RUN_THEIR_WORDS = frozenset(
    (
        *(("git", verb) for verb in ("config", "submodule", "bisect", "filter-branch", "rebase")),
        *(("docker", verb) for verb in ("run", "exec")),
        *(("podman", verb) for verb in ("run", "exec")),
        ("kubectl", "exec"),
        ("gh", "api"),
        ("gh", "alias"),
        ("nix", "shell"),
        ("npm", "config"),
        ("npm", "explore"),
        ("go", "run"),
        ("go", "generate"),
        ("docker", "compose", "run"),
        ("docker", "compose", "exec"),
        ("uv", "tool"),
        *(("conda", verb) for verb in ("run", "init", "config")),
        *(("mamba", verb) for verb in ("run", "init", "config")),
        *(("nix", verb) for verb in ("run", "develop", "build", "eval")),
        *(("deno", verb) for verb in ("run", "eval", "install")),
        *(("bun", verb) for verb in ("x", "create", "exec")),
        *(("npm", verb) for verb in ("init", "create", "x", "exec", "set")),
        *(("pnpm", verb) for verb in ("dlx", "create", "exec", "config")),
        *(("yarn", verb) for verb in ("dlx", "create", "exec", "config", "node")),
        *(("pipx", verb) for verb in ("run", "runpip")),
        *(
            (program, group, verb)
            for program in ("docker", "podman")
            for group, verb in (("container", "run"), ("container", "exec"), ("buildx", "build"))
        ),
        *(("docker-compose", verb) for verb in ("run", "exec")),
        *((program, "exec") for program in ("opam", "dune", "multipass", "lxc")),
        *((program, "run") for program in ("zig", "crystal", "flatpak", "snap")),
        *(("vagrant", "ssh"), ("lein", "run"), ("hatch", "env", "run"), ("pre-commit", "try-repo")),
        ("rustup", "run"),
        *(("pip", "config"), ("pip3", "config"), ("poetry", "config"), ("bundle", "config")),
        *(("composer", verb) for verb in ("config", "exec", "global")),
        *(("mix", verb) for verb in ("do", "run", "eval")),
        *(("rails", verb) for verb in ("runner", "console")),
        *(("yarn", verb) for verb in ("workspace",)),
        ("npm", "pkg", "set"),
        *(("gh", "extension", verb) for verb in ("exec", "install")),
        *(("gh", "alias", verb) for verb in ("set", "import")),
        ("gh", "codespace", "ssh"),
    )
)
_SCRIPT = lazy_pattern(r"\.(?:py|js|mjs|cjs|ts|sh|rb|pl|php|lua|R|jl)\Z")
_plain = lazy_pattern(r"[A-Za-z0-9_][A-Za-z0-9_.:/@+-]*")


def program_of(argv: Argv) -> Argv | None:
    """The words that name the program and what it is to do; None if there is no such beginning."""
    name = argv[0].rpartition("/")[2]
    if name in _RUN_ANYTHING:
        return None
    depth = _depth((name, *argv[1:])) or _script_depth(name)
    named = argv[:depth]
    if len(named) < depth or not all(map(_plain.fullmatch, named[1:])):
        named = _module(argv, name)
    words = named[2:] if named[1:2] == ("-m",) else (name, *named[1:])
    if not named or any(words[:count] in _RUN_THEIR_WORDS for count in (2, 3)):
        return None
    last = named[-1].rpartition("/")[2]
    runs_anything = last in _RUN_ANYTHING or (len(named) > 1 and _INTERPRETERS.fullmatch(last))
    return None if runs_anything else named


def is_found_by_path(named: Argv) -> bool:
    """Whether these words name the same program whatever the folder is: no script among them."""
    is_script = any("/" in word or _SCRIPT.search(word) for word in named)
    return not is_script and not _INTERPRETERS.fullmatch(named[0])


def _depth(argv: Argv) -> int | None:
    known = (_DEPTHS.get(argv[:count]) for count in (3, 2, 1))
    return next((depth for depth in known if depth is not None), None)


def _script_depth(name: str) -> int:
    """A script follows an interpreter; other programs are named by their first word."""
    return 2 if _INTERPRETERS.fullmatch(name) else 1


def _module(argv: Argv, name: str) -> Argv:
    """`python -m pytest` is a program of three words, and `python -m pip install` of four."""
    if not name.startswith(("python", "pypy")) or argv[1:2] != ("-m",) or len(argv) < 3:
        return ()
    depth = _depth(argv[2:]) or 1
    named = argv[: 2 + depth]
    return named if len(named) == 2 + depth and all(map(_plain.fullmatch, named[2:])) else ()
