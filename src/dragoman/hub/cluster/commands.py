"""The commands to a running session, from this process or, through the store, from another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from dragoman.errors import CommandRefused
from dragoman.session.content import Content
from dragoman.session.facts import Parking, TurnTerms
from dragoman.store.records import Owner

if TYPE_CHECKING:
    from dragoman.hub.cluster.sealed_box import Key


class _Command(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="command"):
    """Everything here crosses processes as JSON."""


class Prompt(_Command, frozen=True, tag="prompt"):
    """Send a prompt; it waits while a turn runs. The reply has the `turn` and whether it is
    `queued`. `trace` is the trace context of the sender. With a `sender`, a run, the turn ends when
    that process does, if the owner is what stays of another run."""

    content: str | list[Content]
    trace: dict[str, str] = {}
    sender: Owner | None = None


class RuledPrompt(_Command, frozen=True, tag="ruled_prompt"):
    """Send a prompt with rules for its turn alone. A command of its own: an owner that does not
    know it refuses it, and does not leave the rules out."""

    content: str | list[Content]
    terms: TurnTerms
    trace: dict[str, str] = {}
    sender: Owner | None = None


class SteerTurn(_Command, frozen=True, tag="steer"):
    """Say something into the running turn; it brings no rules. The reply has what became of it: the
    `outcome`, the `way` it went, the `reason`, and the `turn` that it becomes, if it may."""

    content: str | list[Content]
    trace: dict[str, str] = {}


class Cancel(_Command, frozen=True, tag="cancel"):
    """Stop the running turn. The reply says whether there was one: `cancelled`."""


class CancelToolCall(_Command, frozen=True, tag="cancel_tool_call"):
    """Stop one tool call; the turn continues. The reply says whether it still ran: `cancelled`."""

    tool_call_id: str


class CancelTerminal(_Command, frozen=True, tag="cancel_terminal"):
    """Stop what runs in a terminal of the agent's own, in the same way."""

    terminal_id: str


class CancelSubagent(_Command, frozen=True, tag="cancel_subagent"):
    """Stop a subagent and those that it started, in the same way."""

    subagent_id: str


class AnswerPermission(_Command, frozen=True, tag="answer"):
    """Settle a permission request; the first answer wins. None refuses it. To remember a dangerous
    command, the answer has to be `confirmed`."""

    request_id: str
    option_id: str | None
    confirmed: bool = False


class AnswerElicitation(_Command, frozen=True, tag="answer_elicitation"):
    """Settle a form or an address. What a person typed, the `content`, is never stored; it goes to
    another process in a sealed box."""

    request_id: str
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


class AskKey(_Command, frozen=True, tag="ask_key"):
    """Ask the process that runs the session for its key for sealed boxes. The reply has the
    `key`."""


class Sealed(_Command, frozen=True, tag="sealed"):
    """A command that only the process with that key can read; `box` is Base64."""

    box: bytes


class SetMode(_Command, frozen=True, tag="set_mode"):
    mode_id: str


class SetConfig(_Command, frozen=True, tag="set_config"):
    option_id: str
    value: str | bool


class SetModel(_Command, frozen=True, tag="set_model"):
    model_id: str


class EditQueued(_Command, frozen=True, tag="edit_queued"):
    queue_id: str
    content: str | list[Content]


class DropQueued(_Command, frozen=True, tag="drop_queued"):
    queue_id: str


class ContinueParked(_Command, frozen=True, tag="continue_parked"):
    """Send the parked prompt now, or have it wait for the end of the limit. The reply has its
    `turn`, if it is sent."""

    now: bool = True


class Note(_Command, frozen=True, tag="note"):
    """Say something in the record of the session; its agent does not learn of it."""

    text: str


class DropParked(_Command, frozen=True, tag="drop_parked"):
    """Drop the parked prompt, or leave it to the session that it was handed to."""

    handed_to: str | None = None


class TakeOver(_Command, frozen=True, tag="take_over"):
    """Send the prompt that was parked in another session, with the rules of its turn. A session
    says where its prompt comes from."""

    session: str
    parked: Parking


class Revert(_Command, frozen=True, tag="revert"):
    """Undo what happened: in one turn or in all, to some files or to all. The reply has the
    `paths`, those `kept` by choice, the `restore`, and whether it `waits` for the turn to end."""

    turn_id: str | None = None
    force: bool = False
    paths: list[str] | None = None


class Restore(_Command, frozen=True, tag="restore"):
    """The same with what only snapshots can do: some hunks, a choice for each file that someone
    changed since, or a turn and all `since`. A command of its own: an owner that does not know it
    refuses it, and does not undo more than it should."""

    turn_id: str | None = None
    force: bool = False
    paths: list[str] | None = None
    hunks: list[str] | None = None
    choices: dict[str, Literal["keep", "restore"]] = {}
    since: bool = False


class Rename(_Command, frozen=True, tag="rename"):
    title: str


class Close(_Command, frozen=True, tag="close"):
    """Close the session, in the agent too; its record is kept."""


class Kill(_Command, frozen=True, tag="kill"):
    """End the agent's work on the session: only the session if the agent can close it, else its
    process. If other sessions of that process would lose their turns, or could not continue, the
    reply names them as `others`, and nothing is done unless `force`."""

    force: bool = False


class Open(_Command, frozen=True, tag="open"):
    """Run the session on a host, in a folder there if one is named."""

    host: str
    cwd: str | None = None
    on_reset: Literal["fail", "new"] = "fail"


class Leave(_Command, frozen=True, tag="leave"):
    """Release the session so that another host can run it; refused while it is busy."""


class GiveUp(_Command, frozen=True, tag="give_up"):
    """End, with the agent, if the process only keeps the session's agent warm; refused while it is
    busy, and by any other owner."""


class Stay(_Command, frozen=True, tag="stay"):
    """Keep the agent warm for so many seconds after it was last used, if that is what the process
    does."""

    seconds: float


class Delete(_Command, frozen=True, tag="delete"):
    """Delete a session that is not running, and the agent's copy unless `local`."""

    local: bool = False


Command: TypeAlias = (
    Prompt
    | RuledPrompt
    | SteerTurn
    | Cancel
    | CancelToolCall
    | CancelTerminal
    | CancelSubagent
    | AnswerPermission
    | AnswerElicitation
    | AskKey
    | Sealed
    | SetMode
    | SetConfig
    | SetModel
    | EditQueued
    | DropQueued
    | ContinueParked
    | DropParked
    | Note
    | TakeOver
    | Revert
    | Restore
    | Rename
    | Close
    | Kill
    | Open
    | Leave
    | GiveUp
    | Stay
    | Delete
)

Reply: TypeAlias = dict[str, Any]


class Refusal(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a command was not carried out."""

    code: str
    sentence: str
    detail: dict[str, Any] = {}


class _Result(msgspec.Struct, frozen=True, omit_defaults=True):
    reply: Reply = {}
    refusal: Refusal | None = None


_encoder = msgspec.json.Encoder()


def encode_command(command: Command) -> bytes:
    """For the store. Raises ValueError for what was typed into a form: that is sealed first."""
    if isinstance(command, AnswerElicitation) and command.content is not None:
        raise ValueError("what was typed into a form must be sealed before it is stored")
    return _encoder.encode(command)


def sealed(command: Command, key: str) -> Sealed:
    """Raises ValueError for an invalid key."""
    from dragoman.hub.cluster.sealed_box import sealed as box  # hashing is needed for nothing else

    return Sealed(box(_encoder.encode(command), key))


def opened(command: Sealed, key: Key) -> Command:
    """Raises ValueError for what was sealed to another key."""
    return decode_command(key.opened(command.box))


def decode_command(body: bytes) -> Command:
    """Raises msgspec.DecodeError for what another version of us may have sent."""
    return msgspec.json.decode(body, type=Command)


def encode_result(result: Reply | Refusal) -> bytes:
    if isinstance(result, Refusal):
        return _encoder.encode(_Result(refusal=result))
    return _encoder.encode(_Result(reply=result))


def decode_result(session_id: str, body: bytes) -> Reply:
    """Raises CommandRefused where that is the result."""
    result = msgspec.json.decode(body, type=_Result)
    if result.refusal is not None:
        refusal = result.refusal
        raise CommandRefused(session_id, refusal.code, refusal.sentence, refusal.detail)
    return result.reply


_STOPS = (Cancel, CancelToolCall, CancelTerminal, CancelSubagent)
NEED_A_LIVE_ONE = (*_STOPS, AnswerPermission, AnswerElicitation, Kill)
"""What a session that no process runs is not opened for."""


def nothing_runs(session_id: str, command: Command) -> Reply:
    """What these come to there. Raises CommandRefused."""
    if isinstance(command, _STOPS):
        return {"cancelled": False}
    if isinstance(command, Kill):
        return {}
    raise CommandRefused(session_id, "settled", "the session is not running; nothing is pending")
