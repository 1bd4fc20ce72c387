"""The scripted agents of the command line's tests, run as processes by file and name."""

from __future__ import annotations

import asyncio
import os

from dragoman.errors import AuthRequired, DragomanError, RemoteError
from dragoman.schema import v1, v2
from dragoman.testing import AgentTurn, ScriptedAgent
from dragoman.testing import faults as f
from dragoman.testing.scripted_agent import EVERYTHING
from dragoman.testing.steps import fail, say, stop, tool_call, usage
from dragoman.testing.v2.turn import TurnV2

NASTY = (
    "\x1b[31mred\x1b]0;title\x07\x1b]8;;http://evil\x1b\\ \u202eevil\u2066 \x9b5m\x00\x08\x7f"
    "\u200b\ufeff\u2028 \r\nforged [tool] line"
)
"""Text that drives terminals, hides, turns around, or forges lines."""

MODES = [
    v1.SessionMode(id="code", name="Code"),
    v1.SessionMode(id="ask", name="Ask", description="answers only"),
]
OPTIONS = [
    v1.SessionConfigSelect(
        id="brain",
        name="Model",
        category="model",
        current_value="small",
        options=[
            v1.SessionConfigSelectOption(value="small", name="Small"),
            v1.SessionConfigSelectOption(value="large", name="Large"),
        ],
    ),
    v1.SessionConfigBoolean(id="loud", name="Loud", current_value=False),
]
COMMANDS = [
    v1.AvailableCommand(name="test", description="run the tests"),
    v1.AvailableCommand(
        name="explain",
        description="explain something",
        input=v1.UnstructuredCommandInput(hint="what"),
    ),
]


async def tell_everything(turn: AgentTurn) -> None:
    """What came in, as JSON: the prompt, the mode, the options, what the client offers."""
    turn.say(f"mode={turn.mode} options={turn.session.options}\n")
    for block in turn.prompt:
        turn.say(f"block {block}\n")
    turn.say(f"request {turn.session.request}\n")
    turn.say(f"offers {turn.client}\n")


telling = ScriptedAgent(
    tell_everything,
    title="The Teller",
    version="1.2",
    modes=MODES,
    config_options=OPTIONS,
    commands=COMMANDS,
    auth_methods=[v1.AuthMethodAgent(id="key", name="A key")],
)
plain_telling = ScriptedAgent(tell_everything, capabilities=v1.AgentCapabilities())


async def look_around(turn: AgentTurn) -> None:
    """What its process was given."""
    turn.say(f"folder {os.getcwd()}\nvariable {os.environ.get('SPOKEN')}")


looking = ScriptedAgent(look_around)


# ── a whole turn ──────────────────────────────────────────────────────────────────────────────


async def whole_turn(turn: AgentTurn) -> None:
    """Something of everything that has a tag, in an order that tests know."""
    turn.think("hmm\n\nlet me see")
    turn.plan(("look", "in_progress"), ("leap", "pending"))
    turn.say("Hel")
    turn.report_usage(20, 100)
    turn.say("lo.\n")
    turn.tool_call("c1", "Read notes", kind="read", status="pending")
    text = await turn.read_text_file(f"{turn.cwd}/notes.txt")
    turn.tool_call_update("c1", status="completed")
    diff = v1.Diff(path=f"{turn.cwd}/notes.txt", old_text=text, new_text=f"{text}more\n")
    turn.tool_call("c2", "Edit notes", kind="edit", status="in_progress", content=[diff])
    await turn.write_text_file(f"{turn.cwd}/notes.txt", f"{text}more\n")
    turn.tool_call_update("c2", status="completed")
    terminal = await turn.create_terminal("echo", "from the command")
    await turn.terminal("wait_for_exit", terminal)
    await turn.terminal("release", terminal)
    turn.update(v1.CurrentModeUpdate(current_mode_id="ask"))
    turn.plan(("look", "completed"), ("leap", "completed"))
    turn.say("Done.")
    turn.report_usage(30, 100, cost=0.5)
    turn.usage = v1.Usage(total_tokens=7, input_tokens=3, output_tokens=4)


whole = ScriptedAgent(whole_turn, modes=MODES, commands=COMMANDS)
two_messages = ScriptedAgent(
    [say("one"), lambda turn: turn.tool_call("c", "Between"), say("two"), say(" words\n")]
)
failing_tool = ScriptedAgent(
    [
        lambda turn: turn.tool_call(
            "c",
            "Break it",
            status="failed",
            content=[v1.Content(content=v1.TextContent(text="no such thing\nreally"))],
        )
    ]
)
HEBREW = (
    "\u05e9\u05dc\u05d5\u05dd\u200f (\u200eok\u200e) \u00ad\ufeff\u200b"
    " \U0001f3f4\U000e0067\U000e0062\U000e007f"
)
"""With direction marks, a soft hyphen, zero width characters and a flag made of tags."""
hebrew = ScriptedAgent([say(HEBREW[:9]), say(HEBREW[9:])])
talkative_tool = ScriptedAgent(
    [
        lambda turn: turn.tool_call(
            "c",
            "Search",
            status="completed",
            content=[
                v1.Content(
                    content=v1.TextContent(
                        text="```console\n" + "\n".join(f"hit {at}" for at in range(50)) + "\n```"
                    )
                )
            ],
        )
    ]
)
pictures = ScriptedAgent(
    [
        lambda turn: turn.update(
            v1.AgentMessageChunk(content=v1.ImageContent(data="AAAA", mime_type="image/png"))
        ),
        lambda turn: turn.update(
            v1.AgentMessageChunk(content=v1.ResourceLink(name="x", uri="file:///x"))
        ),
    ]
)
many = ScriptedAgent([say("a line of text\n")] * 2000)
wordless = ScriptedAgent([usage(20, 100)])
only_a_tool = ScriptedAgent([tool_call("c", "Look around", status="completed")])
early_stop = ScriptedAgent([say("cut"), stop("max_tokens")])
declining = ScriptedAgent([say("I would rather not."), stop("refusal")])


async def nasty_turn(turn: AgentTurn) -> None:
    """Everything an agent can put text into, with nasty text in it."""
    turn.think(NASTY)
    turn.plan((NASTY, "pending"), (NASTY, NASTY))
    turn.say(NASTY)
    turn.tool_call("c1", NASTY, status="failed", content=[_content(NASTY)])
    diff = v1.Diff(path=f"/nasty/{NASTY}", old_text=NASTY, new_text=f"{NASTY}\n{NASTY}")
    turn.tool_call("c2", NASTY, status=NASTY, content=[diff])
    turn.update(v1.CurrentModeUpdate(current_mode_id=NASTY))
    commands = [v1.AvailableCommand(name=NASTY, description=NASTY)]
    turn.update(v1.AvailableCommandsUpdate(available_commands=commands))
    turn.update(v1.Notice(title=NASTY, severity="info"))
    await turn.request_permission("c3", title=NASTY, raw_input={"command": NASTY})
    turn.update(v1.UsageUpdate(used=1, size=2, cost=v1.Cost(amount=1, currency=NASTY)))
    turn.stop_reason = NASTY


def _content(text: str) -> v1.Content:
    return v1.Content(content=v1.TextContent(text=text))


nasty = ScriptedAgent(
    nasty_turn,
    title=NASTY,
    version=NASTY,
    modes=[v1.SessionMode(id=NASTY, name=NASTY, description=NASTY)],
    commands=[v1.AvailableCommand(name=NASTY, description=NASTY)],
    auth_methods=[v1.AuthMethodAgent(id=NASTY, name=NASTY)],
)
nasty_failing = ScriptedAgent([fail(RemoteError(NASTY, {"details": NASTY}, code=400))])


# ── permissions ───────────────────────────────────────────────────────────────────────────────


async def write_and_tell(turn: AgentTurn) -> None:
    """Write where the prompt says, without asking, and tell how it went."""
    try:
        await turn.write_text_file(os.path.join(turn.cwd, turn.text), "written\n")
        turn.say("wrote it")
    except DragomanError as error:
        turn.say(f"could not: {error}")


async def ask_and_tell(turn: AgentTurn) -> None:
    """Ask before a command, and tell which option came back."""
    chosen = await turn.request_permission(
        "c1", title="Run the tests", kind="execute", raw_input={"command": "make test"}
    )
    turn.say(f"chosen={chosen}")


FOUR_ANSWERS = [
    (kind, kind, kind) for kind in ("allow_once", "allow_always", "reject_once", "reject_always")
]


async def ask_at_length(turn: AgentTurn) -> None:
    """Ask about a dangerous command three times at once, with the command as the title, and then
    about a large change."""
    line = "git push --force origin " + " ".join(f"feature/{n}:release/{n}" for n in range(40))
    call = {"title": line, "kind": "execute", "raw_input": {"command": line}}
    asked = (turn.request_permission(key, FOUR_ANSWERS, **call) for key in "abc")
    chosen = await asyncio.gather(*asked)
    lines = "".join(f"line {n}\n" for n in range(200))
    change = v1.Diff(path=f"{turn.cwd}/new.txt", new_text=lines)
    chosen.append(await turn.request_permission("d", FOUR_ANSWERS, kind="edit", content=[change]))
    turn.say(f"chosen={chosen}")


async def run_and_tell(turn: AgentTurn) -> None:
    try:
        terminal = await turn.create_terminal("sh", "-c", turn.text)
        ended = await turn.terminal("wait_for_exit", terminal)
        output = await turn.terminal("output", terminal)
        turn.say(f"exit={ended['exitCode']} output={output['output'].strip()}")
    except DragomanError as error:
        turn.say(f"could not: {error}")


async def both(turn: AgentTurn) -> None:
    await write_and_tell(turn)
    await run_and_tell(turn)


async def which(turn: AgentTurn) -> None:
    """A question dressed as a permission: two ways to say yes."""
    options = [
        ("a", "Apples", "allow_once"),
        ("b", "Pears", "allow_once"),
        ("n", "No", "reject_once"),
    ]
    turn.say(f"chosen={await turn.request_permission('q', options, title='Which fruit?')}")


async def no_way_to_refuse(turn: AgentTurn) -> None:
    options = [("yes", "Yes", "allow_once")]
    turn.say(f"chosen={await turn.request_permission('q', options, kind='execute')}")


async def fill_in(turn: AgentTurn) -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "title": "Your name"},
            "age": {"type": "integer"},
            "fruit": {"type": "string", "enum": ["apple", "pear"]},
        },
        "required": ["name"],
    }
    turn.say(f"answer={await turn.elicit('Who are you?', schema)}")


async def diff_and_ask(turn: AgentTurn) -> None:
    """The usual way to edit: show the change, ask, write, report."""
    path = f"{turn.cwd}/notes.txt"
    diff = v1.Diff(path=path, old_text="old\n", new_text="new\n")
    turn.say("I will change **one** file.\n")
    turn.tool_call("c1", "Edit notes", kind="edit", status="pending", content=[diff])
    chosen = await turn.request_permission("c1")
    if chosen == "reject":
        turn.tool_call_update("c1", status="failed")
    else:
        await turn.write_text_file(path, "new\n")
        turn.tool_call_update("c1", status="completed")
    turn.say(f"chosen={chosen}")


writing = ScriptedAgent(write_and_tell)
writing_or_failing = ScriptedAgent(lambda turn: turn.write_text_file(f"{turn.cwd}/x", "x"))
asking = ScriptedAgent(ask_and_tell)
demanding = ScriptedAgent(ask_at_length)
running = ScriptedAgent(run_and_tell)
writing_and_running = ScriptedAgent(both)
questioning = ScriptedAgent(which)
insisting = ScriptedAgent(no_way_to_refuse)
eliciting = ScriptedAgent(fill_in)
editing = ScriptedAgent(diff_and_ask)
quiet = ScriptedAgent([say("nothing needed permission")])


# ── saying what it uses ───────────────────────────────────────────────────────────────────────


def count_tokens(turn: AgentTurn) -> None:
    turn.say("counted")
    turn.usage = v1.Usage(total_tokens=1100, input_tokens=1000, output_tokens=100)


_TINY = v1.SessionConfigSelect(
    id="model",
    name="Model",
    category="model",
    current_value="shop/tiny-2026-01-01",
    options=[v1.SessionConfigSelectOption(value="shop/tiny-2026-01-01", name="Tiny")],
)
priced = ScriptedAgent([count_tokens], config_options=[_TINY])


# ── being slow, being interrupted ─────────────────────────────────────────────────────────────


async def wait_until_cancelled(turn: AgentTurn) -> None:
    turn.say("started\n")
    await turn.cancelled.wait()
    turn.say("stopped in order\n")


async def pause(turn: AgentTurn) -> None:
    turn.say("Hello wor")
    await turn.until_cancelled(asyncio.sleep(1.5))
    turn.say("ld, all is said.")


async def speak_for_ever(turn: AgentTurn) -> None:
    while not turn.cancelled.is_set():
        turn.say("and on\n")
        await asyncio.sleep(0.01)


async def wait_until_its_call_is_stopped(turn: AgentTurn) -> None:
    assert isinstance(turn, TurnV2)
    can = v2.ToolCallCapabilities(cancel=v2.ToolCallCancelCapabilities())
    turn.update(v2.SessionToolCallUpdate(tool_call_id="c", title="Wait", capabilities=can))
    turn.say("started\n")
    await turn.stopping("c").wait()
    turn.tool_call_update("c", status="cancelled")
    turn.say("went on\n")


cancellable = ScriptedAgent(wait_until_cancelled)
stoppable = ScriptedAgent(wait_until_its_call_is_stopped)
stubborn = ScriptedAgent([f.ignore_term(), f.linger(), say("started\n"), f.never_answer()])
silent = ScriptedAgent([say("started\n"), f.never_answer()])
deaf = ScriptedAgent(answers={"initialize": f.NEVER})
pausing = ScriptedAgent(pause)
endless = ScriptedAgent(speak_for_ever)


# ── going wrong ───────────────────────────────────────────────────────────────────────────────

crashing = ScriptedAgent([say("last words"), f.crash(7)])
refusing = ScriptedAgent([fail(RemoteError("quota used up", code=429))])
signed_out = ScriptedAgent(
    answers={"session/new": AuthRequired("not signed in")},
    auth_methods=[
        v1.AuthMethodAgent(id="oauth", name="Log in", description="opens a browser"),
        v1.AuthMethodTerminal(id="term", name="Log in here", args=["--login"], env={"A": "b c"}),
    ],
)
signed_out_without_ways = ScriptedAgent(answers={"session/new": AuthRequired("not signed in")})
signed_out_later = ScriptedAgent(
    [fail(AuthRequired("not signed in"))], auth_methods=[v1.AuthMethodAgent(id="k", name="Key")]
)
without_mcp = ScriptedAgent(
    [say("hello")],
    capabilities=v1.AgentCapabilities(session_capabilities=EVERYTHING.session_capabilities),
)
modeless = ScriptedAgent([say("hello")])


def opening_in_time() -> ScriptedAgent:
    """Signs in on the second try."""
    agent = ScriptedAgent(
        [say("signed in")], auth_methods=[v1.AuthMethodAgent(id="oauth", name="Log in")]
    )

    def authenticate(params: object) -> object:
        del agent.answers["session/new"]
        return {}

    agent.answers |= {
        "session/new": AuthRequired("not signed in"),
        "authenticate": authenticate,
    }
    return agent


bannered = ScriptedAgent([say("hello"), f.lines(b"[INFO] ready")], banner=b"Welcome!\n")


async def ask_and_speak(turn: AgentTurn) -> None:
    """Go on talking while a question is open; a file `said` tells when the client has heard it."""
    asked = asyncio.ensure_future(ask_and_tell(turn))
    while not os.path.exists(f"{turn.cwd}/go"):  # noqa: ASYNC110, ASYNC240 (nobody can tell us)
        await asyncio.sleep(0.02)
    turn.say("meanwhile\n")
    await turn.read_text_file(f"{turn.cwd}/go")
    open(f"{turn.cwd}/said", "x").close()  # noqa: ASYNC230
    await asked


speaking_while_asking = ScriptedAgent(ask_and_speak)


async def ask_late(turn: AgentTurn) -> None:
    """Ask once the workspace has a file `go`."""
    turn.say("not yet\n")
    while not os.path.exists(f"{turn.cwd}/go"):  # noqa: ASYNC110, ASYNC240 (nobody can tell us)
        await asyncio.sleep(0.02)
    await ask_and_tell(turn)


late_asking = ScriptedAgent(ask_late)


def _limited_once() -> ScriptedAgent:
    prompts: list[str] = []

    async def script(turn: AgentTurn) -> None:
        prompts.append(turn.text)
        if len(prompts) == 1:
            raise RemoteError("Rate limit exceeded: retry after 0.2s")
        turn.say("done")

    return ScriptedAgent(script)


limited_once = _limited_once()
