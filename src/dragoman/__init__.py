"""Dragoman: the Python client for every coding agent that speaks ACP, the Agent Client Protocol.

    async with dragoman.Client.start("demo") as client:
        session = await client.new_session(".")
        async for event in session.prompt("Summarise @README.md"):
            print(event.text, end="")

Everything public is here and in `dragoman.events`, `dragoman.ext`, `dragoman.testing` and
`dragoman.ui_stream`.
Names are imported on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module

from dragoman._version import __version__

# Not from `typing`, which would be most of the cost of importing this package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from dragoman.agents.agent_fence import fence_around
    from dragoman.agents.extensions import Quirks
    from dragoman.agents.settings.notice_settings import NoticeSettings, WebhookSettings
    from dragoman.agents.settings.settings_file import (
        AgentSettings,
        ModelProvider,
        Retention,
        Settings,
        WorktreeSetup,
        load_settings,
    )
    from dragoman.agents.sign_ins import AuthStatus
    from dragoman.client.capabilities import AgentCapabilities, AgentInfo, AuthMethod, SessionInfo
    from dragoman.client.client import Client
    from dragoman.client.client_options import HostCapabilities, SessionOptions, Timeouts, tracing
    from dragoman.client.mcp import HttpServer, InProcessServer, McpServer, SseServer, StdioServer
    from dragoman.client.sessions.prompts import PromptInput
    from dragoman.client.sessions.session import Session
    from dragoman.client.sessions.steering import Steer
    from dragoman.client.sessions.turn import Turn
    from dragoman.errors import (
        AgentExited,
        AmbiguousSession,
        AuthRequired,
        CallTimeout,
        CancelIgnored,
        ChainBroken,
        CommandNotFound,
        CommandRefused,
        ConfigError,
        ConnectionClosed,
        ConnectionLost,
        DownloadFailed,
        DragomanError,
        FenceError,
        FrameTooLarge,
        InstallFailed,
        InternalError,
        InvalidMessage,
        InvalidParams,
        InvalidRequest,
        LeaseLost,
        LimitUnusable,
        MergeConflict,
        MethodNotFound,
        NameTaken,
        NoProgress,
        NoResult,
        NotAnAgent,
        ParseError,
        PeerStalled,
        PromptTooLarge,
        ProtocolError,
        RaceError,
        RemoteError,
        RemoteLost,
        RequestCancelled,
        ResourceNotFound,
        RevertConflict,
        RowDuplicate,
        RowRefused,
        SequenceGap,
        SessionBusy,
        SessionElsewhere,
        SessionError,
        SessionGone,
        SessionNotContinued,
        SessionOwned,
        SignInNeeded,
        SlowConsumer,
        StartError,
        StoreAway,
        StoreCorrupt,
        StoreCrowded,
        StoreError,
        StoreFull,
        UnknownAgent,
        UnknownHost,
        UnknownQuestion,
        UnknownSession,
        UnknownToken,
        Unreachable,
        UnsafeArchive,
        Unsupported,
        UnusableRequest,
        UsageError,
        VersionMismatch,
        WorktreeError,
        WouldDeadlock,
    )
    from dragoman.host.fence.fence import Fence
    from dragoman.host.fence.fence_terms import FenceTerms
    from dragoman.host.forms.elicitation import (
        ElicitationAnswer,
        ElicitationProvider,
        ElicitationRequest,
    )
    from dragoman.host.gate import request_meta
    from dragoman.host.permissions.questions import (
        PermissionAnswer,
        PermissionRequest,
        PermissionsProvider,
    )
    from dragoman.host.rules.access import Access
    from dragoman.host.rules.policy import (
        Considered,
        Explanation,
        Policy,
        PolicyDecision,
        RuleStore,
        StoredRule,
    )
    from dragoman.host.rules.policy_file import load_policy
    from dragoman.host.rules.rule import Rule
    from dragoman.host.snapshots.folder_changes import ChangedFile, FolderChanges, FolderProblem
    from dragoman.host.snapshots.line_history import Hunk
    from dragoman.host.snapshots.snapshot_limits import SnapshotLimits
    from dragoman.host.snapshots.snapshots import Reverted
    from dragoman.host.snapshots.undo_plan import RevertOptions
    from dragoman.host.terminals.provider import (
        TerminalCommand,
        TerminalExit,
        TerminalSnapshot,
        TerminalsProvider,
        TerminalWatcher,
    )
    from dragoman.host.workspace.changes import Change
    from dragoman.host.workspace.files import FilesProvider
    from dragoman.host.workspace.roots import Root, Workspace
    from dragoman.racing.race_record import (
        CheckCounts,
        CheckRun,
        Entrant,
        JudgedFiles,
        RacePlace,
        RaceRecord,
        RaceReview,
        RaceVerdict,
        ReviewRound,
    )
    from dragoman.racing.solve import Solution, race, solve
    from dragoman.rpc import Tap
    from dragoman.session.content import (
        Audio,
        Content,
        ContentItem,
        Diff,
        Image,
        Location,
        Resource,
        ResourceLink,
        TerminalItem,
        Text,
        ToolContent,
        UnknownContent,
        UnknownItem,
    )
    from dragoman.session.events import Event
    from dragoman.session.facts import (
        BackgroundWork,
        Command,
        ConfigChoice,
        ConfigOption,
        ContextUsage,
        Cost,
        Decision,
        FileSummary,
        LeftOut,
        Mode,
        ModelTokens,
        Modes,
        Offer,
        Parking,
        PermissionOffer,
        PermissionOption,
        PlanStep,
        ProgramEnd,
        ProgramRun,
        ReachedLimit,
        RootSnapshot,
        SubagentState,
        SystemPrompt,
        TokenUsage,
        TurnTerms,
    )
    from dragoman.session.limits.prices import Price
    from dragoman.session.limits.spending import Spending, Tokens
    from dragoman.session.limits.spending_limits import SpendingLimit
    from dragoman.session.state import (
        AgentEntry,
        AnyEntry,
        CompactionEntry,
        Entry,
        ErrorEntry,
        NoticeEntry,
        PeerMessageEntry,
        Pending,
        PendingElicitation,
        PendingPermission,
        PlanEntry,
        QueuedPrompt,
        ResetEntry,
        SessionState,
        Subagent,
        Terminal,
        ThoughtEntry,
        ToolCall,
        TurnState,
        UnknownEntry,
        UserEntry,
    )
    from dragoman.stream import Stream
    from dragoman.sync_session import SyncSession, ask, run, run_prompt
    from dragoman.transport.stdio import AgentCommand
    from dragoman.transport.target import RemoteAgent
    from dragoman.transport.transport import Transport
    from dragoman.worktrees.open_worktree import worktree
    from dragoman.worktrees.worktree_record import MergeResult
    from dragoman.worktrees.worktrees import Worktree

__all__ = [
    "Access",
    "AgentCapabilities",
    "AgentCommand",
    "AgentEntry",
    "AgentExited",
    "AgentInfo",
    "AgentSettings",
    "AmbiguousSession",
    "AnyEntry",
    "Audio",
    "AuthMethod",
    "AuthRequired",
    "AuthStatus",
    "BackgroundWork",
    "CallTimeout",
    "CancelIgnored",
    "ChainBroken",
    "Change",
    "ChangedFile",
    "CheckCounts",
    "CheckRun",
    "Client",
    "Command",
    "CommandNotFound",
    "CommandRefused",
    "CompactionEntry",
    "ConfigChoice",
    "ConfigError",
    "ConfigOption",
    "ConnectionClosed",
    "ConnectionLost",
    "Considered",
    "Content",
    "ContentItem",
    "ContextUsage",
    "Cost",
    "Decision",
    "Diff",
    "DownloadFailed",
    "DragomanError",
    "ElicitationAnswer",
    "ElicitationProvider",
    "ElicitationRequest",
    "Entrant",
    "Entry",
    "ErrorEntry",
    "Event",
    "Explanation",
    "Fence",
    "FenceError",
    "FenceTerms",
    "FileSummary",
    "FilesProvider",
    "FolderChanges",
    "FolderProblem",
    "FrameTooLarge",
    "HostCapabilities",
    "HttpServer",
    "Hunk",
    "Image",
    "InProcessServer",
    "InstallFailed",
    "InternalError",
    "InvalidMessage",
    "InvalidParams",
    "InvalidRequest",
    "JudgedFiles",
    "LeaseLost",
    "LeftOut",
    "LimitUnusable",
    "Location",
    "McpServer",
    "MergeConflict",
    "MergeResult",
    "MethodNotFound",
    "Mode",
    "ModelProvider",
    "ModelTokens",
    "Modes",
    "NameTaken",
    "NoProgress",
    "NoResult",
    "NotAnAgent",
    "NoticeEntry",
    "NoticeSettings",
    "Offer",
    "Parking",
    "ParseError",
    "PeerMessageEntry",
    "PeerStalled",
    "Pending",
    "PendingElicitation",
    "PendingPermission",
    "PermissionAnswer",
    "PermissionOffer",
    "PermissionOption",
    "PermissionRequest",
    "PermissionsProvider",
    "PlanEntry",
    "PlanStep",
    "Policy",
    "PolicyDecision",
    "Price",
    "ProgramEnd",
    "ProgramRun",
    "PromptInput",
    "PromptTooLarge",
    "ProtocolError",
    "QueuedPrompt",
    "Quirks",
    "RaceError",
    "RacePlace",
    "RaceRecord",
    "RaceReview",
    "RaceVerdict",
    "ReachedLimit",
    "RemoteAgent",
    "RemoteError",
    "RemoteLost",
    "RequestCancelled",
    "ResetEntry",
    "Resource",
    "ResourceLink",
    "ResourceNotFound",
    "Retention",
    "RevertConflict",
    "RevertOptions",
    "Reverted",
    "ReviewRound",
    "Root",
    "RootSnapshot",
    "RowDuplicate",
    "RowRefused",
    "Rule",
    "RuleStore",
    "SequenceGap",
    "Session",
    "SessionBusy",
    "SessionElsewhere",
    "SessionError",
    "SessionGone",
    "SessionInfo",
    "SessionNotContinued",
    "SessionOptions",
    "SessionOwned",
    "SessionState",
    "Settings",
    "SignInNeeded",
    "SlowConsumer",
    "SnapshotLimits",
    "Solution",
    "Spending",
    "SpendingLimit",
    "SseServer",
    "StartError",
    "StdioServer",
    "Steer",
    "StoreAway",
    "StoreCorrupt",
    "StoreCrowded",
    "StoreError",
    "StoreFull",
    "StoredRule",
    "Stream",
    "Subagent",
    "SubagentState",
    "SyncSession",
    "SystemPrompt",
    "Tap",
    "Terminal",
    "TerminalCommand",
    "TerminalExit",
    "TerminalItem",
    "TerminalSnapshot",
    "TerminalWatcher",
    "TerminalsProvider",
    "Text",
    "ThoughtEntry",
    "Timeouts",
    "TokenUsage",
    "Tokens",
    "ToolCall",
    "ToolContent",
    "Transport",
    "Turn",
    "TurnState",
    "TurnTerms",
    "UnknownAgent",
    "UnknownContent",
    "UnknownEntry",
    "UnknownHost",
    "UnknownItem",
    "UnknownQuestion",
    "UnknownSession",
    "UnknownToken",
    "Unreachable",
    "UnsafeArchive",
    "Unsupported",
    "UnusableRequest",
    "UsageError",
    "UserEntry",
    "VersionMismatch",
    "WebhookSettings",
    "Workspace",
    "Worktree",
    "WorktreeError",
    "WorktreeSetup",
    "WouldDeadlock",
    "__version__",
    "ask",
    "fence_around",
    "load_policy",
    "load_settings",
    "race",
    "request_meta",
    "run",
    "run_prompt",
    "solve",
    "tracing",
    "worktree",
]

_NAMES = {
    "agents.agent_fence": "fence_around",
    "agents.extensions": "Quirks",
    "agents.settings.notice_settings": "NoticeSettings WebhookSettings",
    "agents.settings.settings_file": (
        "AgentSettings ModelProvider Retention Settings WorktreeSetup load_settings"
    ),
    "agents.sign_ins": "AuthStatus",
    "client.capabilities": "AgentCapabilities AgentInfo AuthMethod SessionInfo",
    "client.client": "Client",
    "client.client_options": "HostCapabilities SessionOptions Timeouts tracing",
    "client.mcp": "HttpServer InProcessServer McpServer SseServer StdioServer",
    "client.sessions.prompts": "PromptInput",
    "client.sessions.session": "Session",
    "client.sessions.steering": "Steer",
    "client.sessions.turn": "Turn",
    "sync_session": "SyncSession ask run run_prompt",
    "errors": (
        "AgentExited AmbiguousSession AuthRequired CallTimeout CancelIgnored ChainBroken "
        "CommandNotFound CommandRefused ConfigError ConnectionClosed ConnectionLost "
        "DownloadFailed DragomanError FenceError FrameTooLarge InstallFailed InternalError "
        "InvalidMessage InvalidParams InvalidRequest LeaseLost LimitUnusable MergeConflict "
        "MethodNotFound "
        "NameTaken NoProgress NoResult NotAnAgent ParseError PeerStalled PromptTooLarge "
        "ProtocolError RaceError "
        "RemoteError RemoteLost RequestCancelled ResourceNotFound RevertConflict RowDuplicate "
        "RowRefused SequenceGap SessionBusy SessionElsewhere SessionError SessionGone "
        "SessionNotContinued SessionOwned SignInNeeded SlowConsumer StartError StoreAway "
        "StoreCorrupt StoreCrowded StoreError StoreFull UnknownAgent UnknownHost UnknownQuestion "
        "UnknownSession UnknownToken Unreachable UnsafeArchive Unsupported UnusableRequest "
        "UsageError VersionMismatch WorktreeError WouldDeadlock"
    ),
    "host.fence.fence": "Fence",
    "host.fence.fence_terms": "FenceTerms",
    "host.forms.elicitation": "ElicitationAnswer ElicitationProvider ElicitationRequest",
    "host.gate": "request_meta",
    "host.permissions.questions": "PermissionAnswer PermissionRequest PermissionsProvider",
    "host.rules.access": "Access",
    "host.rules.policy": "Considered Explanation Policy PolicyDecision RuleStore StoredRule",
    "host.rules.policy_file": "load_policy",
    "host.rules.rule": "Rule",
    "host.terminals.provider": (
        "TerminalCommand TerminalExit TerminalSnapshot TerminalWatcher TerminalsProvider"
    ),
    "host.snapshots.folder_changes": "ChangedFile FolderChanges FolderProblem",
    "host.snapshots.line_history": "Hunk",
    "host.snapshots.snapshot_limits": "SnapshotLimits",
    "host.snapshots.snapshots": "Reverted",
    "host.snapshots.undo_plan": "RevertOptions",
    "host.workspace.changes": "Change",
    "host.workspace.files": "FilesProvider",
    "host.workspace.roots": "Root Workspace",
    "rpc": "Tap",
    "session.content": (
        "Audio Content ContentItem Diff Image Location Resource ResourceLink TerminalItem "
        "Text ToolContent UnknownContent UnknownItem"
    ),
    "session.events": "Event",
    "session.facts": (
        "BackgroundWork Command ConfigChoice ConfigOption ContextUsage Cost Decision FileSummary "
        "LeftOut Mode ModelTokens Modes Offer Parking PermissionOffer PermissionOption PlanStep "
        "ProgramEnd ProgramRun ReachedLimit RootSnapshot SubagentState SystemPrompt TokenUsage "
        "TurnTerms"
    ),
    "session.limits.prices": "Price",
    "session.limits.spending": "Spending Tokens",
    "session.limits.spending_limits": "SpendingLimit",
    "session.state": (
        "AgentEntry AnyEntry CompactionEntry Entry ErrorEntry NoticeEntry PeerMessageEntry "
        "Pending PendingElicitation PendingPermission PlanEntry QueuedPrompt ResetEntry "
        "SessionState Subagent Terminal ThoughtEntry ToolCall TurnState UnknownEntry "
        "UserEntry"
    ),
    "racing.race_record": (
        "CheckCounts CheckRun Entrant JudgedFiles RacePlace RaceRecord RaceReview RaceVerdict "
        "ReviewRound"
    ),
    "racing.solve": "Solution race solve",
    "stream": "Stream",
    "transport.transport": "Transport",
    "worktrees.worktree_record": "MergeResult",
    "worktrees.open_worktree": "worktree",
    "worktrees.worktrees": "Worktree",
    "transport.target": "RemoteAgent",
    "transport.stdio": "AgentCommand",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}
_MODULES = {"errors", "events", "ext", "testing", "ui_stream"}


def __getattr__(name: str) -> Any:
    if (home := _HOMES.get(name)) is not None:
        value = getattr(import_module(f"dragoman.{home}"), name)
    elif name in _MODULES:
        value = import_module(f"dragoman.{name}")
    else:
        raise AttributeError(f"module 'dragoman' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*_HOMES, *_MODULES, "__version__", "__doc__"})
