"""What no fenced program can read: keys, credentials, and ways to have others do its work.

One table, with the reason for each. A covered folder is empty for the program, a covered file has
no content; what does not exist when the program starts is not covered.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

_KEYS = "keys and passwords"
_CLOUD = "credentials of a cloud or code host"
_BROWSER = "cookies and passwords of a browser"
_MAIL = "mail, and the passwords for it"
_PACKAGES = "tokens of a package registry"
_HISTORY = "what was typed before, which may contain passwords"
_SYSTEM = "passwords and keys of the system"

# Beneath the home directory, and beneath what `MOVED` names instead of a folder of it; a `*` stands
# for any characters of one name.
HOME: dict[str, tuple[str, ...]] = {
    _KEYS: (
        ".ssh",
        ".gnupg",
        ".pki",
        ".password-store",
        ".netrc",
        "_netrc",
        ".authinfo",
        ".authinfo.gpg",
        ".pgpass",
        ".my.cnf",
        ".mylogin.cnf",
        ".git-credentials",
        ".config/git/credentials",
        ".vault-token",
        ".config/op",
        ".config/1Password",
        ".config/Bitwarden",
        ".config/Bitwarden CLI",
        ".config/KeePassXC",
        ".config/keepassxc",
        ".config/sops",
        ".config/age",
        ".age",
        ".local/share/keyrings",
        ".local/share/kwalletd",
        ".local/share/pass",
        ".local/share/gnupg",
        ".local/share/password-store",
        ".config/keybase",
        ".config/rbw",
        ".cache/rbw",
        ".config/JetBrains/*/c.kdbx",
        ".config/JetBrains/*/c.pwd",
        ".step",
        ".Xauthority",
        ".ICEauthority",
        ".electrum",
        ".bitcoin",
        ".ethereum",
        ".config/solana",
        "Library/Keychains",
    ),
    _CLOUD: (
        ".aws",
        ".azure",
        ".boto",
        ".config/gcloud",
        ".config/doctl",
        ".config/gh",
        ".config/glab-cli",
        ".config/hub",
        ".config/tea",
        ".config/github-copilot",
        ".config/configstore/firebase-tools.json",
        ".config/argocd",
        ".config/helm/registry",
        ".config/kaggle",
        ".config/ngrok",
        ".config/openstack",
        ".config/stripe",
        ".cache/huggingface/token",
        ".cache/huggingface/stored_tokens",
        ".huggingface/token",
        ".config/hcloud",
        ".config/linode-cli",
        ".config/rclone",
        ".config/scw",
        ".config/containers",
        ".config/heroku",
        ".config/netlify",
        ".config/wrangler",
        ".config/.wrangler",
        ".local/share/com.vercel.cli",
        ".databrickscfg",
        ".docker",
        ".fly",
        ".kaggle",
        ".cloudflared",
        ".railway",
        ".sentryclirc",
        ".supabase",
        ".kube",
        ".minikube",
        ".oci",
        ".pulumi",
        ".s3cfg",
        ".snowflake",
        ".terraform.d/credentials.tfrc.json",
        ".terraformrc",
        ".wrangler",
    ),
    _BROWSER: (
        ".mozilla",
        ".config/mozilla",
        ".config/google-chrome",
        ".config/google-chrome-*",
        ".config/chromium",
        ".config/BraveSoftware",
        ".config/microsoft-edge",
        ".config/microsoft-edge-*",
        ".config/opera",
        ".config/opera-*",
        ".config/vivaldi",
        ".config/vivaldi-*",
        ".config/yandex-browser*",
        ".config/librewolf",
        ".config/zen",
        ".config/falkon",
        ".floorp",
        ".waterfox",
        ".local/share/epiphany",
        ".local/share/falkon",
        ".local/share/qutebrowser",
        ".librewolf",
        ".zen",
        "snap/firefox",
        "snap/chromium",
        ".var/app",
    ),
    _MAIL: (
        ".thunderbird",
        ".config/aerc",
        ".config/evolution",
        ".config/himalaya",
        ".config/isyncrc",
        ".config/msmtp",
        ".config/mutt",
        ".config/neomutt",
        ".local/share/evolution",
        ".local/share/geary",
        ".fetchmailrc",
        ".mbsyncrc",
        ".msmtprc",
        ".mutt",
        ".offlineimaprc",
    ),
    _PACKAGES: (
        ".cargo/credentials",
        ".cargo/credentials.toml",
        ".config/pypoetry/auth.toml",
        ".config/composer/auth.json",
        ".composer/auth.json",
        ".local/share/uv/credentials",
        ".gem/credentials",
        ".m2/settings.xml",
        ".m2/settings-security.xml",
        ".npmrc",
        ".nuget/NuGet/NuGet.Config",
        ".pypirc",
        ".yarnrc.yml",
    ),
    _HISTORY: (
        ".bash_history",
        ".zsh_history",
        ".local/share/fish/fish_history",
        ".local/share/atuin",
        ".local/state/bash/history",
        ".local/state/zsh/history",
        ".local/state/python_history",
        ".config/nushell/history.txt",
        ".config/nushell/history.sqlite3",
        ".python_history",
        ".node_repl_history",
        ".psql_history",
        ".mysql_history",
        ".sqlite_history",
        ".rediscli_history",
    ),
}

MOVED = {
    ".config/": "XDG_CONFIG_HOME",
    ".local/share/": "XDG_DATA_HOME",
    ".local/state/": "XDG_STATE_HOME",
    ".cache/": "XDG_CACHE_HOME",
    ".cache/huggingface/": "HF_HOME",
    ".cargo/": "CARGO_HOME",
    ".config/pypoetry/": "POETRY_CONFIG_DIR",
    ".composer/": "COMPOSER_HOME",
}
"""Folders of the home directory, and the variables that name another place for each. Both are
looked at: programs that ignore the variable use the first."""

# Each names a file or a folder, and some a list of them (see `_LISTS`).
NAMED: dict[str, tuple[str, ...]] = {
    _KEYS: (
        "GNUPGHOME",
        "NETRC",
        "PASSWORD_STORE_DIR",
        "PGPASSFILE",
        "MYSQL_TEST_LOGIN_FILE",
        "SOPS_AGE_KEY_FILE",
        "OP_CONFIG_DIR",
        "BITWARDENCLI_APPDATA_DIR",
        "STEPPATH",
        "XAUTHORITY",
        "ICEAUTHORITY",
    ),
    _CLOUD: (
        "AWS_SHARED_CREDENTIALS_FILE",
        "AWS_CONFIG_FILE",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AZURE_CONFIG_DIR",
        "BOTO_CONFIG",
        "CLOUDSDK_CONFIG",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "DATABRICKS_CONFIG_FILE",
        "DOCKER_CONFIG",
        "REGISTRY_AUTH_FILE",
        "HELM_REGISTRY_CONFIG",
        "GH_CONFIG_DIR",
        "GLAB_CONFIG_DIR",
        "HCLOUD_CONFIG",
        "HF_TOKEN_PATH",
        "KAGGLE_CONFIG_DIR",
        "KUBECONFIG",
        "MINIKUBE_HOME",
        "OCI_CLI_CONFIG_FILE",
        "OS_CLIENT_CONFIG_FILE",
        "PULUMI_HOME",
        "RCLONE_CONFIG",
        "SCW_CONFIG_PATH",
        "SNOWFLAKE_HOME",
        "TF_CLI_CONFIG_FILE",
    ),
    _PACKAGES: ("NPM_CONFIG_USERCONFIG", "npm_config_userconfig", "UV_CREDENTIALS_DIR"),
    _HISTORY: (
        "HISTFILE",
        "PYTHON_HISTORY",
        "NODE_REPL_HISTORY",
        "PSQL_HISTORY",
        "MYSQL_HISTFILE",
        "SQLITE_HISTORY",
        "REDISCLI_HISTFILE",
    ),
}
_LISTS = frozenset(("KUBECONFIG",))
SYSTEM: dict[str, tuple[str, ...]] = {
    _SYSTEM: (
        "/etc/shadow",
        "/etc/shadow-",
        "/etc/gshadow",
        "/etc/gshadow-",
        "/etc/sudoers",
        "/etc/sudoers.d",
        "/etc/ssh/ssh_host_*_key",
        "/etc/ssl/private",
        "/etc/krb5.keytab",
        "/etc/NetworkManager/system-connections",
        "/etc/wireguard",
    ),
    "sockets of other programs: D-Bus, systemd, docker, agents for keys": ("/run", "/var/run"),
    "jobs of the system": ("/var/spool/cron", "/var/spool/at", "/var/spool/atjobs"),
}

KEPT = {
    "names of hosts are looked up by it": (
        "/run/systemd/resolve/stub-resolv.conf",
        "/run/systemd/resolve/resolv.conf",
        "/run/resolvconf/resolv.conf",
        "/run/NetworkManager/resolv.conf",
        "/run/connman/resolv.conf",
    ),
    "the programs of the system are in it": (
        "/run/current-system",
        "/run/booted-system",
        "/run/opengl-driver",
    ),
}
"""Inside what is covered, and still to be read."""

# How a program finds a socket that it must not use, or the folder of such sockets.
VARIABLES = (
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "GNOME_KEYRING_CONTROL",
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "DOCKER_HOST",
    "CONTAINER_HOST",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "PULSE_SERVER",
    "TMUX",
    "STY",
    "VSCODE_IPC_HOOK_CLI",
    "NVIM",
    "XDG_RUNTIME_DIR",
)
"""Taken out of the environment of a fenced program."""


def covered(
    homes: Sequence[str], environments: Sequence[Mapping[str, str]] = ()
) -> Iterator[tuple[str, str]]:
    """What is covered of these homes, of what these variables name, and of the system, if it is
    there: path and reason."""
    for reason, names in HOME.items():
        for name in names:
            for folder, inner in _places(name, homes, environments):
                yield from ((path, reason) for path in _matching(folder, inner))
    for reason, path in named(environments):
        if os.path.lexists(path) and not holds(path, homes):
            yield path, reason
    for reason, paths in SYSTEM.items():
        yield from ((path, reason) for name in paths for path in _matching("/", name[1:]))


def places_of(
    name: str, homes: Sequence[str], environments: Sequence[Mapping[str, str]]
) -> list[str]:
    """Every place where a path of the home directory may be."""
    found = (os.path.join(*place) for place in _places(name, homes, environments))
    return list(dict.fromkeys(found))


def moved(name: str, env: Mapping[str, str]) -> str | None:
    """Where it is for a program with these variables, if one names another place for it."""
    return next((os.path.join(*place) for place in _moved(name, env)), None)


def named(environments: Iterable[Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    """The places of credentials that variables name: reason and path."""
    for env in environments:
        for reason, variables in NAMED.items():
            for variable in variables:
                for path in _values(variable, env):
                    yield f"{reason}: {variable} names it", path


def holds(path: str, homes: Iterable[str]) -> bool:
    """Whether this is `/`, or a home directory or above one: too much to be hidden, or to be
    given to an agent, only because a variable names it."""
    real = os.path.realpath(path).rstrip("/")
    return any(f"{os.path.realpath(home)}/".startswith(f"{real}/") for home in homes)


def kept() -> Iterator[tuple[str, str]]:
    for reason, paths in KEPT.items():
        yield from ((path, reason) for path in paths if os.path.exists(path))


def listening_sockets(text: str) -> list[str]:
    """The paths in the kernel's list of Unix sockets (`/proc/net/unix`)."""
    rows = (line.split(maxsplit=7) for line in text.splitlines()[1:])
    return sorted({row[7] for row in rows if len(row) == 8 and row[7].startswith("/")})


def without_sockets(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name not in VARIABLES}


def _places(
    name: str, homes: Iterable[str], environments: Iterable[Mapping[str, str]]
) -> Iterator[tuple[str, str]]:
    """Folders, and the name in each."""
    yield from ((home, name) for home in homes)
    for env in environments:
        yield from _moved(name, env)


def _moved(name: str, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for start, variable in MOVED.items():
        if name.startswith(start) and (folder := env.get(variable, "")).startswith("/"):
            yield folder, name.removeprefix(start)


def _values(variable: str, env: Mapping[str, str]) -> list[str]:
    """A relative path means another place in each folder, so it is left out."""
    value = env.get(variable, "")
    paths = value.split(os.pathsep) if variable in _LISTS else [value]
    return [path for path in map(os.path.expanduser, paths) if path.startswith("/")]


def _matching(folder: str, name: str) -> list[str]:
    path = os.path.join(folder, name)
    if "*" in name:
        return glob.glob(os.path.join(glob.escape(folder), name))
    return [path] if os.path.lexists(path) else []
