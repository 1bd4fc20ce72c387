"""What a client does for its agent: files, terminals, forms."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from dragoman.conformance.check import CheckFailed, Checks, expect, not_applicable, page
from dragoman.conformance.client_stage.stage import ClientStage, text_of, write_text
from dragoman.conformance.probing.loose_json import Wire, at, obj
from dragoman.conformance.probing.probe import error_code, error_text, is_error

checks: Checks[ClientStage] = Checks("client", page("file-system"))
_TERMINALS = page("terminals")
_FORMS = page("elicitation")
_LOOKS, _LOOK_SECONDS = 100, 0.05


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
        "Calling a method that the client does not offer is an error.",
        page=page_,
        does=f"calls `{method}`, if the client does not offer it",
        expects="the error -32601",
    )
    async def has_not_got_it(stage: ClientStage) -> None:
        await stage.prompted()
        if at(stage.offered, *path):
            not_applicable("the client offers it")
        reply = await stage.ask(method, {"sessionId": stage.session_id, **params})
        expect(
            error_code(reply) == -32601, f"the response is {error_code(reply)!r} instead of -32601"
        )


_not_offered("files", "fs/read_text_file", {"path": "/none"}, "fs", "readTextFile")
_not_offered("terminals", "terminal/create", {"command": "true"}, "terminal", page_=_TERMINALS)
_not_offered("forms", "elicitation/create", _FORM, "elicitation", page_=_FORMS)


@checks.must(
    "files.read",
    "The content of a file is returned unchanged.",
    does="reads a file with mixed line endings, and none at the end",
    expects="exactly its text",
)
async def reads_a_file(stage: ClientStage) -> None:
    await _reads(stage)
    text = "one\r\ntwo\n\nfour: Ää 🙂\rlast"
    content = await _content(stage, stage.path("read.txt", text))
    expect(content == text, f"the content is {content!r}")


@checks.must(
    "files.lines",
    "`line` starts at 1, and `limit` is the number of lines.",
    does="reads two of five lines, starting with the second",
    expects="the second and the third line",
)
async def reads_lines(stage: ClientStage) -> None:
    await _reads(stage)
    path = stage.path("lines.txt", "1\n2\n3\n4\n5\n")
    content = await _content(stage, path, line=2, limit=2)
    expect(str(content).rstrip("\n") == "2\n3", f"the content is {content!r}")


@checks.must(
    "files.missing",
    "Reading a file that does not exist is an error.",
    does="reads a file that does not exist",
    expects="an error, and the client still responds to requests",
)
async def misses_a_file(stage: ClientStage) -> None:
    await _reads(stage)
    reply = await _read(stage, stage.path("nowhere.txt"))
    expect(is_error(reply), "a file that does not exist was read")
    await stage.settle("a missing file")


@checks.should(
    "files.relative",
    "File paths must be absolute.",
    does="reads `read.txt`, which is in the working directory of the session",
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
        expect(content != "secret", "it read a file outside the working directory")


def _by_link(stage: ClientStage, secret: str) -> str:
    link = stage.path("link.txt")
    os.symlink(secret, link)
    return link


_outside(
    "outside",
    "An agent may not read files outside the working directory without permission.",
    "reads a file outside the working directory by its path",
    lambda stage, secret: secret,
)
_outside(
    "dots",
    "A path with `..` does not give access to files outside the working directory.",
    "reads a file outside the working directory by a path with `..`",
    lambda stage, secret: f"{stage.folder}/../{os.path.basename(secret)}",
)
_outside(
    "link",
    "A symbolic link does not give access to files outside the working directory.",
    "reads a file outside the working directory through a symbolic link in it",
    _by_link,
)


@checks.should(
    "files.session",
    "A request must name an existing session.",
    does="reads a file for a session that was never created",
    expects="an error",
)
async def refuses_strange_sessions(stage: ClientStage) -> None:
    await _reads(stage)
    path = stage.path("read.txt", "ready")
    params = {"sessionId": "conformance-other-session", "path": path}
    expect(is_error(await stage.ask("fs/read_text_file", params)), "the file was read")


@checks.must(
    "files.write",
    "The content of a file is written unchanged, and the file is created if necessary.",
    does="writes a new file, with `--answer allow`",
    expects="exactly this text in the file",
)
async def writes_a_file(stage: ClientStage) -> None:
    stage.needs("allow")
    await stage.prompted(hand="allow")
    if not at(stage.offered, "fs", "writeTextFile"):
        not_applicable("the client does not offer to write files")
    path, text = stage.path("written.txt"), "one\r\ntwo\nlast"
    await stage.call("fs/write_text_file", {"path": path, "content": text})
    found = text_of(path)
    expect(found == text, f"the file contains {found!r}")


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
    "A terminal runs a command, keeps its output, and reports its exit code.",
    "runs a command that prints a word and exits with code 3",
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
    "`terminal/create` responds when the command has started, not when it has ended.",
    "runs a command that takes a minute, and requests its output",
    "a response to each while it runs, without an exit status",
)
async def runs_at_once(stage: ClientStage) -> None:
    await _runs(stage)
    terminal = await _terminal(stage, "sleep 60")
    status = (await _output(stage, terminal)).get("exitStatus")
    expect(status is None, f"the exit status of a running command is {status!r}")


@_terminals(
    "folder",
    "A command runs in the working directory that the agent names.",
    "runs `pwd` in a subdirectory",
    "the path of that directory",
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
    "A command has the environment variables that the agent sets.",
    "runs a command that prints an environment variable",
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
    "Output that exceeds the limit is truncated at the beginning.",
    "prints ten thousand lines with a limit of 100 bytes",
    "the last line, at most 100 bytes, and `truncated`",
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
    "A killed command keeps its output and its exit status.",
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
    for _ in range(_LOOKS):
        if "ready" in str((await _output(stage, terminal)).get("output")):
            return
        await stage.limit.of(_LOOK_SECONDS).rest()
    raise CheckFailed("the output of the command was not kept")


@_terminals(
    "meanwhile",
    "Waiting for a command to exit does not block other requests.",
    "waits for a command to exit, and kills it meanwhile",
    "a response to both",
)
async def waits_and_listens(stage: ClientStage) -> None:
    await _runs(stage)
    terminal = await _terminal(stage, "sleep 60")
    params = {"sessionId": stage.session_id, "terminalId": terminal}
    key = stage.probe.begin("terminal/wait_for_exit", params)
    await stage.call("terminal/kill", {"terminalId": terminal})
    await stage.probe.reply_to(key, "the exit of a killed command")


@_terminals(
    "release",
    "Releasing a terminal kills its command, and invalidates its id.",
    "releases a terminal with a running command, and requests its output",
    "the process is gone, and an error",
)
async def releases(stage: ClientStage) -> None:
    await _runs(stage)
    pid_file = stage.path("pid")
    terminal = await _terminal(stage, f"echo $$ > '{pid_file}'; sleep 60")
    pid = await stage.pid_in(pid_file)
    await stage.call("terminal/release", {"terminalId": terminal})
    params = {"sessionId": stage.session_id, "terminalId": terminal}
    reply = await stage.ask("terminal/output", params)
    expect(is_error(reply), "a released terminal has output")
    await stage.gone(pid, "the command of a released terminal")


@_terminals(
    "unknown",
    "A request for an unknown terminal is an error.",
    "requests the output of a terminal that was never created",
    "an error",
)
async def misses_a_terminal(stage: ClientStage) -> None:
    await _runs(stage)
    params = {"sessionId": stage.session_id, "terminalId": "conformance-none"}
    reply = await stage.ask("terminal/output", params)
    expect(is_error(reply), "a terminal that was never created has output")


@_terminals(
    "no-command",
    "A command that cannot be started is an error, or fails.",
    "runs a program that does not exist",
    "an error, or an exit code other than 0",
)
async def misses_a_command(stage: ClientStage) -> None:
    await _runs(stage)
    params = {"sessionId": stage.session_id, "command": "/conformance/no/such/program"}
    reply = await stage.ask("terminal/create", params)
    if not is_error(reply):
        ended = await _ended(stage, str(at(reply, "result", "terminalId")))
        expect(ended.get("exitCode") != 0, "a program that does not exist exited with code 0")


@checks.must(
    "forms.answer",
    "The response to a form accepts, declines or cancels it.",
    page=_FORMS,
    does="sends a form, if the client supports forms",
    expects="`action` is `accept`, `decline` or `cancel`",
)
async def answers_forms(stage: ClientStage) -> None:
    await stage.prompted()
    if at(stage.offered, "elicitation") is None:
        not_applicable("the client does not support forms")
    reply = await stage.ask("elicitation/create", {"sessionId": stage.session_id, **_FORM})
    action = at(reply, "result", "action")
    expect(action in ("accept", "decline", "cancel"), f"the action is {action!r}")
