"""What a client does for its agent: files, terminals, forms."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any

from dragoman.conformance.check import CheckFailed, Checks, expect, not_applicable, page
from dragoman.conformance.client_stage.stage import ClientStage, text_of, write_text
from dragoman.conformance.loose_json import Wire, at, obj
from dragoman.conformance.probe import error_code, error_text, is_error

checks: Checks[ClientStage] = Checks("client", page("file-system"))
_TERMINALS = page("terminals")
_FORMS = page("elicitation")


# ── files ─────────────────────────────────────────────────────────────────────────────────────


async def _reads(stage: ClientStage) -> None:
    await stage.prompted()
    if not at(stage.offered, "fs", "readTextFile"):
        not_applicable("the client does not offer to read files")


async def _read(stage: ClientStage, path: str, **more: int) -> Wire:
    return await stage.ask(
        "fs/read_text_file", {"sessionId": stage.session_id, "path": path, **more}
    )


async def _content(stage: ClientStage, path: str, **more: int) -> Any:
    reply = await _read(stage, path, **more)
    expect(not is_error(reply), f"the file was not read: {error_text(reply)}")
    return at(reply, "result", "content")


_FORM: Wire = {
    "mode": "form",
    "message": "Which colour?",
    "requestedSchema": {"type": "object", "properties": {"colour": {"type": "string"}}},
}


def _not_offered(key: str, method: str, params: Wire, *path: str, page_: str = "") -> None:
    @checks.must(
        f"{key}.not-offered",
        "A method that a client does not offer is one it does not have.",
        page=page_,
        does=f"calls `{method}`, if the client does not offer it",
        expects="the error −32601",
    )
    async def has_not_got_it(stage: ClientStage) -> None:
        await stage.prompted()
        if at(stage.offered, *path):
            not_applicable("the client offers it")
        reply = await stage.ask(method, {"sessionId": stage.session_id, **params})
        expect(error_code(reply) == -32601, f"it was answered with {error_code(reply)!r}")


_not_offered("files", "fs/read_text_file", {"path": "/none"}, "fs", "readTextFile")
_not_offered("terminals", "terminal/create", {"command": "true"}, "terminal", page_=_TERMINALS)
_not_offered("forms", "elicitation/create", _FORM, "elicitation", page_=_FORMS)


@checks.must(
    "files.read",
    "A file is read as it is.",
    does="reads a file with several kinds of line ends, and none at its end",
    expects="exactly its text",
)
async def reads_a_file(stage: ClientStage) -> None:
    await _reads(stage)
    text = "one\r\ntwo\n\nfour: Ää 🙂\rlast"
    content = await _content(stage, stage.path("read.txt", text))
    expect(content == text, f"the content is {content!r}")


@checks.must(
    "files.lines",
    "`line` counts from 1, and `limit` is a number of lines.",
    does="reads two lines of five, from the second on",
    expects="the second and the third",
)
async def reads_lines(stage: ClientStage) -> None:
    await _reads(stage)
    path = stage.path("lines.txt", "1\n2\n3\n4\n5\n")
    content = await _content(stage, path, line=2, limit=2)
    expect(str(content).rstrip("\n") == "2\n3", f"the content is {content!r}")


@checks.must(
    "files.missing",
    "A file that is not there is an error.",
    does="reads a file that is not there",
    expects="an error, and a client that continues",
)
async def misses_a_file(stage: ClientStage) -> None:
    await _reads(stage)
    reply = await _read(stage, stage.path("nowhere.txt"))
    expect(is_error(reply), "a file that is not there was read")
    await stage.settle("a missing file")


@checks.should(
    "files.relative",
    "Paths are absolute; one that is not is an error.",
    does="reads `read.txt`, which is in the folder of the session",
    expects="an error",
)
async def refuses_relative_paths(stage: ClientStage) -> None:
    await _reads(stage)
    stage.path("read.txt", "ready")
    reply = await _read(stage, "read.txt")
    expect(is_error(reply), "a relative path was read")


def _outside(key: str, says: str, does: str, make: Callable[[ClientStage, str], str]) -> None:
    @checks.should(f"files.{key}", says, does=does, expects="an error")
    async def stays_inside(stage: ClientStage) -> None:
        await _reads(stage)
        secret = f"{stage.folder}-secret.txt"
        write_text(secret, "secret")
        content = at(await _read(stage, make(stage, secret)), "result", "content")
        expect(content != "secret", "it read a file outside the session's folder")


def _by_link(stage: ClientStage, secret: str) -> str:
    link = stage.path("link.txt")
    os.symlink(secret, link)
    return link


_outside(
    "outside",
    "Nobody has allowed an agent to read what is outside the folders of its session.",
    "reads a file next to the session's folder, by its own path",
    lambda stage, secret: secret,
)
_outside(
    "dots",
    "A path that leaves the folder of the session is outside, however it begins.",
    "reads a file next to the session's folder, by a path with `..`",
    lambda stage, secret: f"{stage.folder}/../{os.path.basename(secret)}",
)
_outside(
    "link",
    "A link that leads out of the folder of the session leads outside.",
    "reads a file next to the session's folder, by a link in it",
    _by_link,
)


@checks.should(
    "files.session",
    "A request names an existing session.",
    does="reads a file in the name of a session that was never made",
    expects="an error",
)
async def refuses_strange_sessions(stage: ClientStage) -> None:
    await _reads(stage)
    path = stage.path("read.txt", "ready")
    params = {"sessionId": "conformance-other-session", "path": path}
    expect(is_error(await stage.ask("fs/read_text_file", params)), "the file was read")


@checks.must(
    "files.write",
    "A file is written as it is, and made if it is not there.",
    does="writes a file in a new folder, with `--answer allow`",
    expects="exactly this text on the disk",
)
async def writes_a_file(stage: ClientStage) -> None:
    stage.needs("allow")
    await stage.prompted(hand="allow")
    if not at(stage.offered, "fs", "writeTextFile"):
        not_applicable("the client does not offer to write files")
    path, text = stage.path("written.txt"), "one\r\ntwo\nlast"
    await stage.call("fs/write_text_file", {"path": path, "content": text})
    found = text_of(path)
    expect(found == text, f"the file has {found!r}")


# ── terminals ─────────────────────────────────────────────────────────────────────────────────


async def _runs(stage: ClientStage) -> None:
    stage.needs("allow")
    await stage.prompted(hand="allow")
    if not at(stage.offered, "terminal"):
        not_applicable("the client does not offer terminals")


async def _terminal(stage: ClientStage, line: str, more: Wire | None = None) -> str:
    """The id of a terminal that runs a line of a shell."""
    made = await stage.call(
        "terminal/create", {"command": "sh", "args": ["-c", line], **(more or {})}
    )
    return str(made.get("terminalId"))


async def _ended(stage: ClientStage, terminal: str) -> Wire:
    return await stage.call("terminal/wait_for_exit", {"terminalId": terminal})


async def _output(stage: ClientStage, terminal: str) -> Wire:
    return await stage.call("terminal/output", {"terminalId": terminal})


def _terminals(key: str, says: str, does: str, expects: str) -> Any:
    return checks.must(
        f"terminals.{key}",
        says,
        page=_TERMINALS,
        does=f"{does}, with `--answer allow`",
        expects=expects,
    )


@_terminals(
    "run",
    "A command is run, its output kept, and its exit code reported.",
    "runs a command that prints a word and exits with 3",
    "the word, and `exitCode` 3",
)
async def runs_a_command(stage: ClientStage) -> None:
    await _runs(stage)
    terminal = await _terminal(stage, "echo ready; exit 3")
    code = (await _ended(stage, terminal)).get("exitCode")
    expect(code == 3, f"the exit code is {code!r}")
    output = (await _output(stage, terminal)).get("output")
    expect("ready" in str(output), f"the output is {output!r}")


@_terminals(
    "at-once",
    "A terminal is made as soon as its command has started, not when it has ended.",
    "runs a command that waits, and asks for its output",
    "an answer to each while it runs, and no exit status",
)
async def runs_at_once(stage: ClientStage) -> None:
    await _runs(stage)
    terminal = await _terminal(stage, "sleep 60")
    status = (await _output(stage, terminal)).get("exitStatus")
    expect(status is None, f"the exit status of a running command is {status!r}")


@_terminals(
    "folder",
    "A command runs in the folder that its agent names.",
    "runs `pwd` in a folder of the session",
    "the path of that folder",
)
async def runs_in_a_folder(stage: ClientStage) -> None:
    await _runs(stage)
    folder = stage.path("inner")
    os.mkdir(folder)
    terminal = await _terminal(stage, "pwd", {"cwd": folder})
    await _ended(stage, terminal)
    output = str((await _output(stage, terminal)).get("output"))
    expect(output.strip().endswith("/inner"), f"the output is {output!r}")


@_terminals(
    "environment",
    "A command has the variables that its agent sets.",
    "runs a command that prints a variable",
    "its value",
)
async def runs_with_variables(stage: ClientStage) -> None:
    await _runs(stage)
    env = [{"name": "CONFORMANCE_WORD", "value": "ready"}]
    terminal = await _terminal(stage, 'echo "<$CONFORMANCE_WORD>"', {"env": env})
    await _ended(stage, terminal)
    output = (await _output(stage, terminal)).get("output")
    expect("<ready>" in str(output), f"the output is {output!r}")


@_terminals(
    "limit",
    "Of output that is too long, the end is kept.",
    "prints ten thousand lines with a limit of 100 bytes",
    "the last line, no more than 100 bytes, and `truncated`",
)
async def keeps_the_end(stage: ClientStage) -> None:
    await _runs(stage)
    terminal = await _terminal(stage, "seq 1 10000", {"outputByteLimit": 100})
    await _ended(stage, terminal)
    kept = await _output(stage, terminal)
    output = str(kept.get("output"))
    expect("10000" in output, f"the output is {output[:80]!r}")
    expect(len(output.encode()) <= 100, f"{len(output.encode())} bytes were kept")
    expect(kept.get("truncated") is True, "truncated is not true")


@_terminals(
    "kill",
    "A terminal whose command was killed still has its output and its status.",
    "kills a command that has printed a word",
    "the word, and an exit status",
)
async def keeps_what_was_killed(stage: ClientStage) -> None:
    await _runs(stage)
    terminal = await _terminal(stage, "echo ready; sleep 60")
    await _until_printed(stage, terminal)
    await stage.call("terminal/kill", {"terminalId": terminal})
    await _ended(stage, terminal)
    kept = await _output(stage, terminal)
    expect("ready" in str(kept.get("output")), f"the output is {kept.get('output')!r}")
    expect(obj(kept.get("exitStatus")) != {}, "there is no exit status")


async def _until_printed(stage: ClientStage, terminal: str) -> None:
    for _ in range(100):
        if "ready" in str((await _output(stage, terminal)).get("output")):
            return
        await asyncio.sleep(0.05)
    raise CheckFailed("what the command printed was not kept")


@_terminals(
    "meanwhile",
    "Waiting for the end of a command holds up nothing else.",
    "waits for a command, and kills it meanwhile",
    "an answer to both",
)
async def waits_and_listens(stage: ClientStage) -> None:
    await _runs(stage)
    terminal = await _terminal(stage, "sleep 60")
    params = {"sessionId": stage.session_id, "terminalId": terminal}
    key = stage.probe.begin("terminal/wait_for_exit", params)
    await stage.call("terminal/kill", {"terminalId": terminal})
    await stage.probe.reply_to(key, "the end of a command that was killed")


@_terminals(
    "release",
    "A terminal that is released ends its command, and its id is no longer valid.",
    "releases a terminal whose command runs, and asks for its output",
    "the end of the process, and an error",
)
async def releases(stage: ClientStage) -> None:
    await _runs(stage)
    pid_file = stage.path("pid")
    terminal = await _terminal(stage, f"echo $$ > '{pid_file}'; sleep 60")
    pid = await stage.pid_in(pid_file)
    await stage.call("terminal/release", {"terminalId": terminal})
    params = {"sessionId": stage.session_id, "terminalId": terminal}
    reply = await stage.ask("terminal/output", params)
    expect(is_error(reply), "a terminal that was released has output")
    await stage.gone(pid, "the command of a terminal that was released")


@_terminals(
    "unknown",
    "A terminal that there is not is an error.",
    "asks for the output of a terminal that was never made",
    "an error",
)
async def misses_a_terminal(stage: ClientStage) -> None:
    await _runs(stage)
    params = {"sessionId": stage.session_id, "terminalId": "conformance-none"}
    reply = await stage.ask("terminal/output", params)
    expect(is_error(reply), "a terminal that was never made has output")


@_terminals(
    "no-command",
    "A command that cannot be run is an error, or one that fails.",
    "runs a program that is not there",
    "an error, or an exit code other than 0",
)
async def misses_a_command(stage: ClientStage) -> None:
    await _runs(stage)
    params = {"sessionId": stage.session_id, "command": "/conformance/no/such/program"}
    reply = await stage.ask("terminal/create", params)
    if not is_error(reply):
        ended = await _ended(stage, str(at(reply, "result", "terminalId")))
        expect(ended.get("exitCode") != 0, "a program that is not there exited with 0")


@checks.must(
    "forms.answer",
    "A form is accepted, declined or cancelled.",
    page=_FORMS,
    does="asks with a form, if the client offers them",
    expects="an `action`, one of the three",
)
async def answers_forms(stage: ClientStage) -> None:
    await stage.prompted()
    if at(stage.offered, "elicitation") is None:
        not_applicable("the client does not offer forms")
    reply = await stage.ask("elicitation/create", {"sessionId": stage.session_id, **_FORM})
    action = at(reply, "result", "action")
    expect(action in ("accept", "decline", "cancel"), f"the action is {action!r}")
