"""The slash commands of a chat, and whether a typed one is ours or the agent's.

`/name` is the agent's where it has a command of that name, else ours; only `/help` is ours always,
since it says so. `:name` is always ours, `//name` always goes to the agent, as `/name`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec

from dragoman.cli.commands.chat import session_commands
from dragoman.cli.commands.sessions.undo import change_lines, missing_from
from dragoman.cli.options import as_typed, assignment, choices_of, typed
from dragoman.cli.render.event_text import tool_output
from dragoman.cli.render.style import BOLD
from dragoman.cli.standard_streams import terminal_width
from dragoman.client.sessions.config_options import option_of
from dragoman.hub.cluster import commands as c
from dragoman.safe_text import columns, reveal, sanitise, single_line
from dragoman.session.content import TerminalItem, Text
from dragoman.session.facts import Command
from dragoman.session.state import SessionState, ToolCall

if TYPE_CHECKING:
    from dragoman.cli.commands.chat.conversation import Conversation

OWN = {
    "help": "list commands and keys",
    "mode": "show the modes, or switch: /mode ID",
    "model": "show the models, or switch: /model ID",
    "set": "show the options, or change one: /set OPTION=VALUE",
    "queue": "list queued prompts",
    "drop": "withdraw the last queued prompt, or one by number: /drop N",
    "output": "show all output of the last tool call or command, or the one N before: /output N",
    "changes": "show the files written in this session",
    "revert": "undo those writes; /revert FILE only those to it; /revert force includes files that "
    "have changed since",
    "attach": "send a file with the next prompt: /attach FILE; /attach clear takes all back",
    "copy": "copy the last answer, or the one N before: /copy N",
    "editor": "write the prompt in $VISUAL or $EDITOR, like Ctrl-X Ctrl-E",
    "export": "write this session to a file: Markdown, or events if it ends in .jsonl",
    "sessions": "list the sessions of this agent in this folder",
    "resume": "continue another of them: /resume SESSION",
    "new": "start a new session",
    "exit": "quit, like Ctrl-D, /quit and a plain exit",
    "quit": "the same",
}
_KEYS = {
    "Enter": "send; \\ at the end of a line starts a new line",
    "Alt-Enter, Esc Enter": "new line; while a turn runs: steer it, or queue if Enter steers",
    "Esc, Ctrl-C": "cancel the running turn",
    "Up, Ctrl-R": "history; Ctrl-R to search it",
    "Ctrl-O": "go through the tool calls, and unfold their output",
    "Ctrl-X Ctrl-E": "write the prompt in your editor",
    "@file": "mention a file; Tab completes its name, or some letters of it",
    "!command": "run it in your shell; the agent does not see it",
    "//name": "sent to the agent as /name; :name is Dragoman's",
}
_LEAVE = ("exit", "quit")
_DIFF_LINES = 200
_typed_command = re.compile(r"([/:])([\w-]+)(?:\s+(.*))?\Z", re.DOTALL)


class LineRoute(msgspec.Struct, frozen=True):
    """Where a typed line goes: to one of our commands, or to the agent."""

    to: Literal["us", "agent"]
    text: str
    name: str = ""


def route(text: str, theirs: Collection[str]) -> LineRoute:
    """`theirs` are the names of the agent's commands."""
    if text.startswith("//"):
        return LineRoute("agent", text[1:])
    if text.strip() in _LEAVE:
        return LineRoute("us", "", "quit")
    found = _typed_command.match(text.strip())
    if found is None or not is_ours(found[2], () if found[1] == ":" else theirs):
        return LineRoute("agent", text)
    return LineRoute("us", (found[3] or "").strip(), found[2])


def is_ours(name: str, theirs: Collection[str]) -> bool:
    """Whether `/name` is one of our commands, given those of the agent."""
    return name in OWN and (name == "help" or name not in theirs)


def typed_as(name: str, theirs: Collection[str]) -> str:
    """How to type one of our commands, given those of the agent."""
    return f"{'/' if is_ours(name, theirs) else ':'}{name}"


async def run_command(talk: Conversation, name: str, text: str) -> None:
    """Raises what goes wrong, as a sentence for the person who typed it."""
    await _COMMANDS[name](talk, text)


async def _help(talk: Conversation, text: str) -> None:
    theirs = {command.name: command for command in talk.session.state.commands}
    _rows(talk, "commands:", {typed_as(name, theirs): about for name, about in OWN.items()})
    if theirs:
        _rows(talk, "the agent's commands:", dict(_theirs(theirs)))
    _rows(talk, "keys:", _KEYS)


def _theirs(commands: Mapping[str, Command]) -> Iterator[tuple[str, str]]:
    for name, command in commands.items():
        hint = f" ({command.hint})" if command.hint else ""
        mark = "//" if is_ours(name, commands) else "/"
        yield f"{mark}{single_line(name, 30)}", single_line(command.description + hint, 200)


def _rows(talk: Conversation, title: str, rows: Mapping[str, str]) -> None:
    """Print names and descriptions; a long name on a narrow terminal gets a line of its own."""
    talk.say(title, BOLD)
    longest = max(11, *(columns(name) for name in rows))
    width = longest if longest <= terminal_width() // 3 else 11
    for name, about in rows.items():
        first = name if columns(name) <= width else ""
        if not first:
            talk.say(name, indent="  ")
        talk.say(about, indent=f"  {first}{' ' * (width - columns(first))} ")


async def _mode(talk: Conversation, text: str) -> None:
    state = talk.session.state
    if text:
        await talk.session.send(c.SetMode(text))
        if state.modes is None:  # else an event of the session tells it
            talk.say(f"mode: {single_line(text, 60)}")
    elif state.modes is not None:
        _choices(talk, [(m.id, m.name) for m in state.modes.available], state.modes.current)
    else:
        _option(talk, "mode")


async def _model(talk: Conversation, text: str) -> None:
    if text:
        await talk.session.send(c.SetModel(text))
        talk.say(f"model: {single_line(text, 60)}")
    else:
        _option(talk, "model")


def _option(talk: Conversation, category: str) -> None:
    option = option_of(talk.session.state.config_options, category)
    if option is None:
        talk.say(f"the agent offers no choice of {category}")
    else:
        _choices(talk, [(c.value, c.name) for c in option.choices or ()], str(option.value))


def _choices(talk: Conversation, choices: list[tuple[str, str]], current: str) -> None:
    width = max((len(choice) for choice, _ in choices), default=0)
    for choice, name in choices:
        mark = "*" if choice == current else " "
        indent = f"  {mark} {single_line(choice, 40):<{min(width, 40)}}  "
        talk.say(single_line(name, 60), indent=indent)


async def _set(talk: Conversation, text: str) -> None:
    if text:
        option, value = assignment(text)
        await talk.session.send(c.SetConfig(option, typed(talk.session.state, option, value)))
        talk.say(f"{single_line(option, 60)}: {single_line(value, 60)}")
        return
    options = talk.session.state.config_options
    if not options:
        talk.say("the agent has no options")
    for option in options:
        now, can_be = reveal(as_typed(option.value)), reveal(", ".join(choices_of(option)))
        talk.say(f"{reveal(option.id)} = {now}  ({can_be})", indent="  ")


async def _queue(talk: Conversation, text: str) -> None:
    queue = talk.session.state.queue
    if not queue:
        talk.say("nothing is queued")
    for number, prompt in enumerate(queue, 1):
        words = "".join(part.text for part in prompt.content if isinstance(part, Text))
        talk.say(single_line(words, 80), indent=f"  {number}. ")


async def _drop(talk: Conversation, text: str) -> None:
    queue = talk.session.state.queue
    number = int(text) if text.isdecimal() else len(queue)
    if (text and not text.isdecimal()) or not 0 < number <= len(queue):
        raise ValueError("no such prompt in the queue")
    left = len(queue) - 1
    await talk.session.send(c.DropQueued(queue[number - 1].id))
    talk.say(f"dropped; {left} left in the queue")


async def _output(talk: Conversation, text: str) -> None:
    if text and not text.isdecimal():
        raise ValueError("usage: /output [N]")
    back = int(text or 0)
    found = next(islice(_outputs(talk.session.state), back, None), None)
    if found is None:
        raise ValueError("no such output")
    title, output = found
    talk.say(single_line(title, 200), BOLD)
    talk.say(sanitise(output).strip("\n"), indent="  ")


def _outputs(state: SessionState) -> Iterator[tuple[str, str]]:
    """What tool calls brought back, the newest first, each with its title."""
    for call in reversed(state.entries):
        if isinstance(call, ToolCall):
            shown = [item.terminal_id for item in call.content if isinstance(item, TerminalItem)]
            printed = [state.terminals[each].output for each in shown if each in state.terminals]
            if text := "\n".join(filter(None, (tool_output(call), *printed))):
                yield call.title or call.name or call.id, text


async def _changes(talk: Conversation, text: str) -> None:
    found = await talk.hub.folders.changes(talk.session.id)
    width, most = terminal_width(), _DIFF_LINES
    for line in change_lines(found, talk.session.cwd, talk.style, width, most):
        talk.show(line)
    for line in missing_from(found, talk.session.cwd):
        talk.say(line)


async def _revert(talk: Conversation, text: str) -> None:
    words = shlex.split(text)  # raises ValueError for a quote without its end
    force = words[:1] == ["force"]
    paths = [str(session_commands.place(talk, word)) for word in words[force:]]
    # The session's events report what was reverted.
    reply = await talk.session.send(c.Revert(force=force, paths=paths or None))
    if reply.get("waits"):
        talk.say("the revert waits for the end of the turn")
    elif not reply["paths"]:
        talk.say("nothing to revert")


async def _new(talk: Conversation, text: str) -> None:
    await talk.begin_anew()


async def _quit(talk: Conversation, text: str) -> None:
    talk.leave()


Act: TypeAlias = Callable[["Conversation", str], Awaitable[None]]
_COMMANDS: dict[str, Act] = {
    "help": _help,
    "mode": _mode,
    "model": _model,
    "set": _set,
    "queue": _queue,
    "drop": _drop,
    "output": _output,
    "changes": _changes,
    "revert": _revert,
    "attach": session_commands.attach,
    "copy": session_commands.copy,
    "editor": session_commands.editor,
    "export": session_commands.export,
    "sessions": session_commands.list_sessions,
    "resume": session_commands.resume,
    "new": _new,
    "quit": _quit,
    "exit": _quit,
}
