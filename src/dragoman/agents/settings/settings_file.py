"""Reads `settings.json`: its keys, and the user's agents and MCP servers.

Strict JSON. Whatever is wrong is one ConfigError that names the file, the key and what should be
there.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path, PurePath
from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from dragoman.agents.extensions import Quirks, quirks_for
from dragoman.agents.known import known_command, known_names
from dragoman.agents.settings.limit_settings import BadLimit, read_limits, read_prices
from dragoman.agents.settings.mcp_settings import McpReader, NamedServer
from dragoman.agents.settings.notice_settings import NO_NOTICES, NoticeReader, NoticeSettings
from dragoman.agents.settings.setting_keys import (
    AGENT_KEYS,
    FENCE_KEYS,
    OFFER_KEYS,
    PROVIDER_KEYS,
    PROXY_KEYS,
    QUIRKS_KEYS,
    RETENTION_KEYS,
    SNAPSHOT_KEYS,
    SYSTEM_PROMPT_KEYS,
    TOP_KEYS,
    WORKTREE_KEYS,
)
from dragoman.agents.settings.value_reader import ValueReader, kind_of, settings_text
from dragoman.data_directory import settings_file
from dragoman.errors import ConfigError, UnknownAgent
from dragoman.host.fence.fence_terms import (
    NO_FENCE,
    FenceTerms,
    NetworkTerms,
)
from dragoman.host.rules.policy_file import read_strict_json
from dragoman.host.snapshots.snapshot_limits import SnapshotLimits
from dragoman.host.workspace.regular_file import read_regular
from dragoman.lazy_pattern import lazy_pattern
from dragoman.session.facts import (
    EVERYTHING,
    FENCE_MODES,
    MOST_SYSTEM_PROMPT,
    FenceMode,
    Offer,
    OnLimit,
    SystemPrompt,
)
from dragoman.session.limits.prices import Price
from dragoman.session.limits.spending_limits import SpendingLimit, seconds_in
from dragoman.transport.stdio import AgentCommand
from dragoman.transport.target import ProxyTarget, RemoteAgent, check_proxy, is_header_value
from dragoman.transport.transport import Side


class ModelProvider(msgspec.Struct, kw_only=True, frozen=True):
    """Where an agent sends its requests to a model, and in which protocol."""

    api_type: str
    base_url: str
    headers: dict[str, str] = {}


_HEADER_NAME = lazy_pattern(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


class AgentSettings(msgspec.Struct, kw_only=True, frozen=True):
    """How to reach one agent: a command to run, or the address of a remote one."""

    name: str
    command: AgentCommand | None = None
    url: str | None = None
    headers: dict[str, str] = {}
    files: Side | None = None
    """Where the folders of its sessions are, if the settings say so."""
    quirks: Quirks | None = None
    process: Literal["shared", "per-session"] = "shared"
    protocol: Literal[1, 2] = 1
    """The newest version of ACP to speak, if the agent agrees."""
    proxies: tuple[ProxyTarget, ...] = ()
    """The proxies between us and the agent, the nearest to us first."""
    offer: Offer = EVERYTHING
    system_prompt: SystemPrompt | UnsetType | None = UNSET
    """The system prompt of its new sessions; if it is not set, the one for all agents applies."""
    providers: dict[str, ModelProvider | None] = {}
    """Its model providers, by their ids; None for one that is switched off."""
    fence: FenceTerms | None = None
    """The agent's own fence, if the settings have one."""
    on_limit: OnLimit | None = None

    @property
    def target(self) -> AgentCommand | RemoteAgent:
        """What to start or to connect to; pass it to `Client.start`."""
        if self.command is not None:
            return self.command
        return RemoteAgent(self.url or "", self.headers, self.files)


_MOST = 1e9
"""Of what is only a limit."""


class Retention(msgspec.Struct, kw_only=True, frozen=True):
    """How many days an idle session is kept; None is forever."""

    days: float | None = None
    projects: dict[str, float | None] = {}
    """By folder; also applies beneath it, unless a folder there has its own."""

    def days_in(self, cwd: str) -> float | None:
        """The days for a session in that folder."""
        for folder in (cwd, *map(str, PurePath(cwd).parents)):
            if folder in self.projects:
                return self.projects[folder]
        return self.days

    @property
    def shortest(self) -> float | None:
        """The smallest number of days; younger sessions are kept everywhere."""
        return min((each for each in (self.days, *self.projects.values()) if each), default=None)


class WorktreeSetup(msgspec.Struct, kw_only=True, frozen=True):
    """The commands that prepare new worktrees; none if it is empty."""

    setup: str = ""
    projects: dict[str, str] = {}
    """By folder; also applies beneath it, unless a folder there has its own."""

    def setup_in(self, folder: str) -> str:
        """The command for a worktree of that folder."""
        above = (folder, *map(str, PurePath(folder).parents))
        return next((self.projects[each] for each in above if each in self.projects), self.setup)


class Settings(msgspec.Struct, kw_only=True, frozen=True):
    """The content of `settings.json`: agents by name, the first one is the default."""

    agents: dict[str, AgentSettings] = {}
    mcp_servers: tuple[NamedServer, ...] = ()
    retention: Retention = Retention()
    system_prompt: SystemPrompt | None = None
    """The system prompt of new sessions, for agents that have none of their own."""
    enter: Literal["queue", "steer"] = "queue"
    notify: Literal["off", "bell", "osc9", "osc777"] = "off"
    fence: FenceTerms = NO_FENCE
    """The fence of agents that have none of their own."""
    snapshots: SnapshotLimits = SnapshotLimits()
    limits: tuple[SpendingLimit, ...] = ()
    on_limit: OnLimit = "fail"
    """What happens to a prompt at a limit of the agent's provider, for agents without a setting of
    their own."""
    prices: dict[str, Price] = {}
    """By the name of the model, in lower case."""
    question_timeout: float | None = None
    """How many seconds a question may wait before it is refused."""
    notices: NoticeSettings = NO_NOTICES
    """How `serve` tells people who are not looking."""
    keep_warm: float | None = None
    """How many seconds the agent of a named or continued session stays after a run."""
    worktrees: WorktreeSetup = WorktreeSetup()

    def fence_of(self, agent: AgentSettings) -> FenceTerms:
        return self.fence if agent.fence is None else agent.fence


def load_settings(path: str | os.PathLike[str] | None = None) -> Settings:
    """Read `path`, else the file that `$DRAGOMAN_SETTINGS` names, else the user's settings file.

    Without a path, a missing file counts as empty. Raises ConfigError.
    """
    file = settings_file() if path is None else Path(path)
    optional = path is None and not os.environ.get("DRAGOMAN_SETTINGS")
    try:
        text = settings_text(file)
    except FileNotFoundError:
        if optional:
            return Settings()
        raise ConfigError(str(file), "", "a settings file, but there is none") from None
    return parse_settings(text, str(file))


def parse_settings(text: str, file: str, *, called: str = "the settings") -> Settings:
    """The settings in `text`; `file` is what to call it in errors, `called` where a limit is
    reached. Raises ConfigError."""
    reader = _Reader(file)
    reader.called = called
    return reader.settings(read_strict_json(text, file))


class _Reader(ValueReader):
    called: str

    def settings(self, document: Any) -> Settings:
        top = self._object(document, "", TOP_KEYS)
        servers = self._object(top.get("agent_servers", {}), "agent_servers")
        return Settings(
            agents={
                name: self._agent(name, value, f"agent_servers.{name}")
                for name, value in servers.items()
            },
            mcp_servers=McpReader(self._file).settings(top),
            retention=self._retention(top.get("retention", {})),
            system_prompt=self._system_prompt(top.get("system_prompt"), "system_prompt"),
            enter=self._enter(top.get("enter", "queue")),
            notify=self._notify(top.get("notify", "off")),
            fence=self._fence(top.get("fence", "off"), "fence"),
            snapshots=self._snapshots(top.get("snapshots", {})),
            on_limit=self._on_limit(top.get("on_limit", "fail"), "on_limit"),
            prices=self._prices(top.get("prices", {})),
            limits=self._limits(top.get("limits", []), servers),
            question_timeout=self._duration(top.get("question_timeout"), "question_timeout"),
            notices=NoticeReader(self._file).notices(top),
            keep_warm=self._stay(top.get("keep_warm"), "keep_warm"),
            worktrees=self._worktrees(top.get("worktrees", {})),
        )

    def _stay(self, value: Any, place: str) -> float | None:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if value is None or (is_number and 0 <= value <= _MOST):
            return value
        if isinstance(value, str) and (seconds := seconds_in(value)) is not None:
            return seconds
        return self._fail(place, f'a number of seconds, or a time such as "10m", not {value!r}')

    def _duration(self, value: Any, place: str) -> float | None:
        seconds = seconds_in(value) if isinstance(value, str) else None
        if value is not None and seconds is None:
            self._fail(place, f'a time such as "90s", "10m" or "2h", not {value!r}')
        return seconds

    def _on_limit(self, value: Any, place: str) -> OnLimit:
        if value not in ("park", "ask", "fail"):
            self._fail(place, f'"park", "ask" or "fail", not {value!r}')
        return value

    def _prices(self, value: Any) -> dict[str, Price]:
        try:
            return read_prices(self._object(value, "prices"), self._object)
        except BadLimit as error:
            return self._fail(error.place, error.expected)

    def _limits(self, value: Any, servers: Collection[str]) -> tuple[SpendingLimit, ...]:
        try:
            return read_limits(value, {*servers, *known_names()}, self.called)
        except BadLimit as error:
            return self._fail(error.place, error.expected)

    def _system_prompt(self, value: Any, place: str) -> SystemPrompt | None:
        if value is None:
            return None
        entry, where = {"text": value}, place
        if not isinstance(value, str):
            entry = self._object(value, place, SYSTEM_PROMPT_KEYS)
            where = f"{place}.{'file' if 'file' in entry else 'text'}"
        if ("text" in entry) == ("file" in entry):
            self._fail(place, "either a text (a string) or a file (a string)")
        if (mode := entry.get("mode", "append")) not in ("append", "override"):
            self._fail(f"{place}.mode", 'either "append" or "override"')
        text = self._content(entry["file"], where) if "file" in entry else entry["text"]
        try:
            return SystemPrompt(self._string(text, where), mode)
        except ValueError as error:
            return self._fail(where, f"a text, but {error}")

    def _content(self, value: Any, place: str) -> str:
        """Of a file that the settings name."""
        path = Path(self._file).parent / os.path.expanduser(self._word(value, place))
        try:
            return read_regular(path, MOST_SYSTEM_PROMPT, links=True).decode()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or "not UTF-8 text"
            return self._fail(place, f"a readable file, not {path} ({reason})")

    def _fence(self, value: Any, place: str) -> FenceTerms:
        if isinstance(value, str):
            return FenceTerms(mode=self._fence_mode(value, place))
        entry = self._object(value, place, FENCE_KEYS)
        return FenceTerms(
            mode=self._fence_mode(entry.get("mode", "on"), f"{place}.mode"),
            write=self._folders(entry.get("write", []), f"{place}.write"),
            read=self._folders(entry.get("read", []), f"{place}.read"),
            network=self._network(entry.get("network", "all"), f"{place}.network"),
        )

    def _network(self, value: Any, place: str) -> NetworkTerms:
        if value in ("all", "none"):
            return value
        if not isinstance(value, list):
            self._fail(place, f'"all", "none" or a list of hosts, not {value!r}')
        from dragoman.host.fence.network.host_patterns import read_patterns  # few settings have it

        hosts = tuple(self._strings(value, place))
        try:
            read_patterns(hosts)
        except ValueError as error:
            self._fail(place, str(error))
        return hosts

    def _fence_mode(self, value: Any, place: str) -> FenceMode:
        if value in FENCE_MODES:
            return value
        return self._fail(place, f"one of {', '.join(FENCE_MODES)}, not {value!r}")

    def _folders(self, value: Any, place: str) -> tuple[str, ...]:
        paths = tuple(map(os.path.expanduser, self._strings(value, place)))
        for index, path in enumerate(paths):
            if not os.path.isabs(path):
                self._fail(f"{place}[{index}]", f"an absolute path, not {path!r}")
        return paths

    def _enter(self, value: Any) -> Literal["queue", "steer"]:
        match value:
            case "queue" | "steer":
                return value
            case _:
                return self._fail("enter", f'"queue" or "steer", not {kind_of(value)}')

    def _notify(self, value: Any) -> Literal["off", "bell", "osc9", "osc777"]:
        match value:
            case "off" | "bell" | "osc9" | "osc777":
                return value
            case _:
                expected = f'"off", "bell", "osc9" or "osc777", not {kind_of(value)}'
                return self._fail("notify", expected)

    def _retention(self, value: Any) -> Retention:
        entry = self._object(value, "retention", RETENTION_KEYS)
        projects = self._object(entry.get("projects", {}), "retention.projects")
        for folder in projects:
            if not os.path.isabs(folder):
                self._fail(f"retention.projects.{folder}", "the absolute path of a directory")
        return Retention(
            days=self._days(entry.get("days"), "retention.days"),
            projects={
                os.path.normpath(folder): self._days(days, f"retention.projects.{folder}")
                for folder, days in projects.items()
            },
        )

    def _worktrees(self, value: Any) -> WorktreeSetup:
        entry = self._object(value, "worktrees", WORKTREE_KEYS)
        projects = self._mapping(
            self._object(entry.get("projects", {}), "worktrees.projects"), "worktrees.projects"
        )
        for folder in projects:
            if not os.path.isabs(folder):
                self._fail(f"worktrees.projects.{folder}", "the absolute path of a directory")
        return WorktreeSetup(
            setup=self._string(entry.get("setup", ""), "worktrees.setup"),
            projects={os.path.normpath(folder): text for folder, text in projects.items()},
        )

    def _snapshots(self, value: Any) -> SnapshotLimits:
        entry = self._object(value, "snapshots", SNAPSHOT_KEYS)
        usual = SnapshotLimits()
        mib = self._above_0(entry.get("file_mib", usual.file_bytes >> 20), "snapshots.file_mib")
        files = self._above_0(entry.get("files", usual.files), "snapshots.files")
        days = self._days(entry.get("days", usual.days), "snapshots.days")
        enabled = entry.get("enabled", usual.enabled)
        if not isinstance(enabled, bool):
            self._fail("snapshots.enabled", f"true or false, not {kind_of(enabled)}")
        most = int(min(mib, _MOST) * (1 << 20))
        files = int(min(files, _MOST))
        return SnapshotLimits(enabled=enabled, file_bytes=most, files=files, days=days)

    def _days(self, value: Any, place: str) -> float | None:
        return None if value is None else self._above_0(value, place, "of days", ", or null")

    def _above_0(self, value: Any, place: str, of: str = "", otherwise: str = "") -> float:
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if is_number and value > 0:
            return float(value)
        what = f"a number {of}".rstrip()
        return self._fail(place, f"{what} above 0{otherwise}, not {kind_of(value)}")

    def _agent(self, name: str, value: Any, place: str) -> AgentSettings:
        entry = self._object(value, place, AGENT_KEYS)
        files, target = self._target(entry, place)
        return AgentSettings(
            name=name,
            command=target if isinstance(target, AgentCommand) else None,
            url=target.url if isinstance(target, RemoteAgent) else None,
            headers=self._headers(entry.get("headers", {}), f"{place}.headers"),
            files=files,
            quirks=self._quirks(entry.get("quirks"), f"{place}.quirks"),
            process=self._process(entry.get("process", "shared"), f"{place}.process"),
            protocol=self._protocol(entry.get("protocol", 1), f"{place}.protocol"),
            offer=self._offer(entry.get("offer", {}), f"{place}.offer"),
            system_prompt=self._system_prompt(entry["system_prompt"], f"{place}.system_prompt")
            if "system_prompt" in entry
            else UNSET,
            fence=self._fence(entry["fence"], f"{place}.fence") if "fence" in entry else None,
            on_limit=self._on_limit(entry["on_limit"], f"{place}.on_limit")
            if "on_limit" in entry
            else None,
            providers=self._providers(entry.get("providers", {}), f"{place}.providers"),
            proxies=tuple(
                self._proxy(value, f"{place}.proxies[{index}]")
                for index, value in enumerate(
                    self._list(entry.get("proxies", []), f"{place}.proxies")
                )
            ),
        )

    def _target(
        self, entry: dict[str, Any], place: str
    ) -> tuple[Side | None, AgentCommand | RemoteAgent]:
        """What to start or to reach, and where the folders are, if it was said."""
        if ("command" in entry) == ("url" in entry):
            self._fail(place, "either a command (a string) or a url (a string)")
        files = self._side(entry.get("files"), f"{place}.files")
        if "url" in entry:
            url = self._url(entry["url"], f"{place}.url")
            headers = self._headers(entry.get("headers", {}), f"{place}.headers")
            return files, RemoteAgent(url, headers, files)
        command = AgentCommand(
            os.path.expanduser(self._word(entry["command"], f"{place}.command")),
            self._strings(entry.get("args", []), f"{place}.args"),
            self._variables(self._object(entry.get("env", {}), f"{place}.env"), f"{place}.env"),
            files=files or "here",
        )
        return files, command

    def _proxy(self, value: Any, place: str) -> ProxyTarget:
        _, proxy = self._target(self._object(value, place, PROXY_KEYS), place)
        try:
            check_proxy(proxy)
        except ValueError:
            self._fail(f"{place}.url", "a ws:// or wss:// address, which a remote proxy needs")
        return proxy

    def _url(self, value: Any, place: str) -> str:
        url = self._word(value, place)
        try:
            RemoteAgent(url)
        except ValueError as error:
            self._fail(place, f"the address of an agent: {error}")
        return url

    def _headers(self, value: Any, place: str) -> dict[str, str]:
        headers = self._mapping(self._object(value, place), place)
        for name, text in headers.items():
            if not _HEADER_NAME.fullmatch(name):
                self._fail(f"{place}.{name}", "a valid header name")
            if not is_header_value(text):
                self._fail(f"{place}.{name}", "a value of printable ASCII characters")
        return headers

    def _side(self, value: Any, place: str) -> Side | None:
        match value:
            case None | "here" | "there":
                return value
            case _:
                return self._fail(place, 'either "here" or "there"')

    def _providers(self, value: Any, place: str) -> dict[str, ModelProvider | None]:
        return {
            name: None if entry is None else self._provider(entry, f"{place}.{name}")
            for name, entry in self._object(value, place).items()
        }

    def _provider(self, value: Any, place: str) -> ModelProvider:
        entry = self._object(value, place, PROVIDER_KEYS)
        return ModelProvider(
            api_type=self._word(entry.get("api_type"), f"{place}.api_type"),
            base_url=self._word(entry.get("base_url"), f"{place}.base_url"),
            headers=self._headers(entry.get("headers", {}), f"{place}.headers"),
        )

    def _quirks(self, value: Any, place: str) -> Quirks | None:
        if value is None:
            return None
        try:
            return msgspec.convert(self._object(value, place, QUIRKS_KEYS), Quirks)
        except msgspec.ValidationError as error:
            raise ConfigError(self._file, place, f"known quirks ({error})") from error

    def _offer(self, value: Any, place: str) -> Offer:
        entry = self._object(value, place, OFFER_KEYS)
        for name, switch in entry.items():
            if not isinstance(switch, bool):
                self._fail(f"{place}.{name}", f"true or false, not {kind_of(switch)}")
        return Offer(**entry)

    def _process(self, value: Any, place: str) -> Literal["shared", "per-session"]:
        if value == "shared":
            return "shared"
        if value == "per-session":
            return "per-session"
        return self._fail(place, 'either "shared" or "per-session"')

    def _protocol(self, value: Any, place: str) -> Literal[1, 2]:
        if isinstance(value, int) and not isinstance(value, bool) and value in (1, 2):
            return 2 if value == 2 else 1
        return self._fail(place, "either 1 or 2")


def agent_named(name: str, settings: Settings, file: str = "") -> AgentSettings:
    """That of the settings, else the known one. Raises UnknownAgent, with the settings `file`."""
    if name in settings.agents:
        return settings.agents[name]
    if name not in known_names():
        names = dict.fromkeys((*settings.agents, *known_names()))
        raise UnknownAgent(name, tuple(names), file)
    return AgentSettings(name=name, command=known_command(name))


def quirks_of(settings: Settings, agent: str) -> Quirks:
    """Those that the settings have for it, else the known ones."""
    own = settings.agents.get(agent)
    return quirks_for(agent) if own is None or own.quirks is None else own.quirks


def system_prompt_of(settings: Settings, agent: str | None) -> SystemPrompt | None:
    """The one for new sessions of an agent, by the settings; with None, the one for all agents."""
    own = UNSET if agent not in settings.agents else settings.agents[agent].system_prompt
    return settings.system_prompt if own is UNSET else own
