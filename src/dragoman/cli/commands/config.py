"""`dragoman config`: where the settings are, what they say, and an editor for them."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

from dragoman.cli.options import add_settings_option
from dragoman.safe_text import escaped_json

_SECRET = ("env", "headers")
_BLANK = "…"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from dragoman.cli.parsers import Actions

    actions = Actions(parser, "dragoman.cli.commands")
    for name, text in (
        ("path", "print the path of the settings file"),
        (
            "show",
            "print the settings, with secrets in env, headers and addresses left out",
        ),
        ("edit", "edit the settings in $VISUAL or $EDITOR; they are checked before they are saved"),
    ):
        add_settings_option(actions.add(name, text, module="config").add_argument)
    trust = actions.add(
        "trust",
        "trust the settings in .dragoman/settings.json as they are now, so that they apply",
        module="config",
    )
    trust.add_argument("--cwd", metavar="DIR", help="the project (default: the current directory)")


def run(options: argparse.Namespace) -> int:
    from dragoman.data_directory import settings_file

    if options.action == "trust":
        return _trust(options)
    path = Path(options.settings).absolute() if options.settings else settings_file()
    match options.action:
        case "path":
            print(path)
        case "show":
            _show(path, named=bool(options.settings))
        case _:
            _edit(path)
    return 0


def _trust(options: argparse.Namespace) -> int:
    """Only a person at a terminal trusts a file: no option answers in their place."""
    from dragoman.agents.settings.project_settings import NAME, read_project_settings
    from dragoman.agents.settings.settings_file import Settings
    from dragoman.cli.exit_codes import Exit, UsageError
    from dragoman.cli.run.agent_setup import folder
    from dragoman.safe_text import sanitise

    project = folder("--cwd", options.cwd or ".")
    found = read_project_settings(project)
    if found is None:
        raise UsageError(f"{project} has no {NAME}")
    found.over(Settings())  # raises for what is not sound
    found.agent()
    if found.is_trusted:
        print(f"{found.path} is trusted as it is")
        return Exit.DONE
    print(sanitise(found.content.decode("utf-8-sig").rstrip()))
    if not sys.stdin.isatty():
        raise UsageError("trusting a file needs a person at a terminal")
    if input("Apply these settings in this project? [y/N] ").strip().lower() not in ("y", "yes"):
        print("nothing changed")
        return Exit.CANCELLED
    found.trust()
    print("trusted, until the file changes")
    return Exit.DONE


def _show(path: Path, *, named: bool) -> None:
    import json

    from dragoman.agents.settings.settings_file import load_settings

    load_settings(path if named or path.exists() else None)  # raises for a file that is not sound
    text = path.read_text("utf-8") if path.exists() else "{}"
    shown = json.dumps(_without_secrets(json.loads(text)), indent=2, ensure_ascii=False)
    print(escaped_json(shown))


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key: _blanked(key, each) for key, each in fields.items()}
    if isinstance(value, list):
        return [_without_secrets(each) for each in cast("list[Any]", value)]
    return value


def _blanked(key: str, value: Any) -> Any:
    """The names of variables and headers stay; their values may be keys, in both shapes."""
    if key == "url" and isinstance(value, str):
        return _plain_address(value)
    if key in _SECRET and isinstance(value, dict):
        return dict.fromkeys(cast("dict[str, Any]", value), _BLANK)
    if key in _SECRET and isinstance(value, list):
        return [each | {"value": _BLANK} for each in cast("list[dict[str, Any]]", value)]
    return _without_secrets(value)


def _plain_address(url: str) -> str:
    """Without its user, password, query and fragment: each may hold a key."""
    from urllib.parse import urlsplit

    from dragoman.transport.target import host_of

    parts = urlsplit(url)
    return parts._replace(netloc=host_of(parts), query="", fragment="").geturl()


def _edit(path: Path) -> None:
    """On a copy: a file that is not sound does not take the place of one that is."""
    from dragoman.agents.settings.settings_edits import write_settings
    from dragoman.agents.settings.settings_file import parse_settings
    from dragoman.cli.exit_codes import UsageError
    from dragoman.errors import ConfigError

    copy = path.with_name(f"{path.name}.edited")
    version = _version(path)
    if not copy.exists() or (version is not None and copy.stat().st_mtime_ns < version):
        copy.unlink(missing_ok=True)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        before = path.read_text("utf-8") if path.exists() else '{\n  "agent_servers": {}\n}\n'
        with open(os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(before)
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    try:
        code = subprocess.run([*shlex.split(editor), str(copy)], check=False).returncode
    except (OSError, ValueError) as error:
        copy.unlink()
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"the editor {editor!r} cannot be started: {reason.lower()}") from error
    if code:
        copy.unlink()
        raise UsageError(f"the editor {editor!r} ended with code {code}; nothing was changed")
    text = copy.read_text("utf-8", "replace")
    try:
        parse_settings(text, str(path))
    except ConfigError as error:
        kept = f"your text is in {copy}: edit it again, or delete that file to start over"
        raise UsageError(f"{error}; nothing was changed, and {kept}") from error
    if _version(path) != version:
        raise UsageError(f"{path} was changed in the meantime; your text is kept in {copy}")
    write_settings(path, text)
    copy.unlink()
    print(f"{path} was saved")


def _version(path: Path) -> int | None:
    return path.stat().st_mtime_ns if path.exists() else None
