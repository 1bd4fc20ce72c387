"""What no fenced program can read: keys, credentials, and ways to have others do its work.

One table, with the reason for each. A covered folder is empty for the program, a covered file has
no content; what does not exist when the program starts is not covered.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping

_KEYS = "keys and passwords"
_CLOUD = "credentials of a cloud or code host"
_BROWSER = "cookies and passwords of a browser"
_MAIL = "mail, and the passwords for it"
_PACKAGES = "tokens of a package registry"
_HISTORY = "what was typed before, which may contain passwords"
_SYSTEM = "passwords and keys of the system"

# Beneath the home directory; a `*` stands for any characters of one name.
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
        ".config/google-chrome",
        ".config/google-chrome-*",
        ".config/chromium",
        ".config/BraveSoftware",
        ".config/microsoft-edge",
        ".config/opera",
        ".config/vivaldi",
        ".librewolf",
        ".zen",
        "snap/firefox",
        "snap/chromium",
        ".var/app",
    ),
    _MAIL: (".thunderbird", ".config/evolution", ".config/neomutt", ".mutt", ".fetchmailrc"),
    _PACKAGES: (
        ".cargo/credentials",
        ".cargo/credentials.toml",
        ".config/pypoetry/auth.toml",
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
        ".python_history",
        ".node_repl_history",
        ".psql_history",
        ".mysql_history",
        ".sqlite_history",
        ".rediscli_history",
    ),
}
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


def covered(homes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """What is covered of these homes and of the system, if it is there: path and reason."""
    for reason, names in HOME.items():
        for home in homes:
            yield from ((path, reason) for name in names for path in _matching(home, name))
    for reason, paths in SYSTEM.items():
        yield from ((path, reason) for name in paths for path in _matching("/", name[1:]))


def kept() -> Iterator[tuple[str, str]]:
    for reason, paths in KEPT.items():
        yield from ((path, reason) for path in paths if os.path.exists(path))


def listening_sockets(text: str) -> list[str]:
    """The paths in the kernel's list of Unix sockets (`/proc/net/unix`)."""
    rows = (line.split(maxsplit=7) for line in text.splitlines()[1:])
    return sorted({row[7] for row in rows if len(row) == 8 and row[7].startswith("/")})


def without_sockets(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name not in VARIABLES}


def _matching(folder: str, name: str) -> list[str]:
    path = os.path.join(folder, name)
    if "*" in name:
        return glob.glob(path)
    return [path] if os.path.lexists(path) else []
