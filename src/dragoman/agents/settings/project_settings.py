"""Settings that are kept with a project, in `.dragoman/settings.json`.

They apply once a person has trusted the content of the file, and until it changes. They never say
which program an agent is: that is for the settings of the person alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import msgspec

from dragoman.agents.settings.setting_keys import PROJECT_KEYS, known_keys
from dragoman.agents.settings.settings_file import Settings, parse_settings
from dragoman.data_directory import data_directory, make_private
from dragoman.errors import ConfigError
from dragoman.host.rules.policy_file import read_strict_json
from dragoman.host.workspace.regular_file import read_regular
from dragoman.session.facts import OnLimit
from dragoman.session.limits.spending_limits import SpendingLimit

NAME = ".dragoman/settings.json"
_MOST_BYTES = 64 << 10
_TRUSTED = "trusted_settings"


class ProjectSettings(msgspec.Struct, frozen=True):
    """The file of a project as it is now, not parsed yet."""

    path: str
    content: bytes

    @property
    def digest(self) -> str:
        """Of its path and content: the same file elsewhere is another one."""
        from hashlib import sha256  # few projects have such a file

        return sha256(os.fsencode(self.path) + b"\0" + self.content).hexdigest()

    @property
    def is_trusted(self) -> bool:
        return self.digest in _trusted()

    def trust(self) -> None:
        """From now on, until the content changes. Raises OSError."""
        place = _place()
        make_private(place.parent)
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(f"{self.digest}\n")

    def agent(self) -> str | None:
        """The default agent, by name. Raises ConfigError."""
        name = self._document().get("agent")
        if name is not None and not isinstance(name, str):
            raise ConfigError(self.path, "agent", "the name of an agent")
        return name

    def over(self, settings: Settings) -> Settings:
        """The person's settings, with what the project says. Raises ConfigError."""
        document = self._document()
        document.pop("agent", None)
        prompt = document.get("system_prompt")
        if isinstance(prompt, dict) and "file" in prompt:
            # Its content could change without anyone being asked.
            raise ConfigError(self.path, "system_prompt", "a text: a project names no file")
        text = msgspec.json.encode(document).decode()
        ours = parse_settings(text, self.path, called="this project's settings")
        changed: dict[str, Any] = {key: getattr(ours, key) for key in document if key != "$schema"}
        if "limits" in changed:  # none of the person's is lifted
            changed["limits"] = (*settings.limits, *ours.limits)
        return msgspec.structs.replace(settings, **changed)

    def terms(self) -> ProjectTerms:
        """Raises ConfigError."""
        said, alone = self._document(), self.over(Settings())
        return ProjectTerms(
            alone.limits, alone.on_limit if "on_limit" in said else None, alone.question_timeout
        )

    def _document(self) -> dict[str, Any]:
        try:
            text = self.content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ConfigError(self.path, f"byte {error.start}", "text in UTF-8") from error
        document = read_strict_json(text, self.path)
        if not isinstance(document, dict):
            raise ConfigError(self.path, "", "an object")
        fields = cast("dict[str, Any]", document)
        for key in fields:
            if key not in PROJECT_KEYS:
                raise ConfigError(self.path, key, known_keys(key, PROJECT_KEYS))
        return dict(fields)


class ProjectTerms(msgspec.Struct, frozen=True):
    """What a project says of the sessions in it."""

    limits: tuple[SpendingLimit, ...] = ()
    on_limit: OnLimit | None = None
    question_timeout: float | None = None


NO_TERMS = ProjectTerms()


def trusted_settings(project: str, tell: Callable[[str], None]) -> ProjectSettings | None:
    """Those of a folder, if a person has trusted them; of others `tell` says why they do not
    apply."""
    try:
        found = read_project_settings(project)
    except ConfigError as error:
        tell(f"{error}; the settings of this project do not apply")
        return None
    if found is None or found.is_trusted:
        return found
    tell(f"{found.path} is not trusted; look at it, then run `dragoman config trust`")
    return None


def read_project_settings(project: str) -> ProjectSettings | None:
    """None if there are none. Raises ConfigError for what is not a regular file in the project."""
    path = os.path.join(os.path.realpath(project), NAME)
    if os.path.realpath(path) != path:
        raise ConfigError(path, "", "a file in the project, not a link")
    try:
        return ProjectSettings(path, read_regular(path, _MOST_BYTES))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigError(path, "", f"a readable file ({error.strerror})") from error


def _place() -> Path:
    return data_directory() / _TRUSTED


def _trusted() -> set[str]:
    try:
        return set(_place().read_text("ascii", "replace").split())
    except FileNotFoundError:
        return set()
