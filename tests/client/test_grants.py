"""What a yes covers: exactly what was shown, once; and what the host does with it."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support.clients import until
from support.fake_terminals import FakeTerminals
from support.granting import allow, diff, refused
from support.peers import soon
from support.permission_scene import question, scene, selected
from support.raw_agent import ENDED, Json

from dragoman import Policy, Rule
from dragoman.host.workspace.reach import Reach
from dragoman.session import events as e
from dragoman.session.content import ContentItem, Diff

# ── what a yes covers ─────────────────────────────────────────────────────────────────────────


async def test_an_allowed_diff_is_written_without_a_second_question(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        await allow(s, diff(tmp_path, "new text"))
        assert (await s.write("new text"))["result"] == {}
        assert (tmp_path / "a.txt").read_text() == "new text"
        assert len(s.requests) == 1
        (access,) = [event for event in s.heard if isinstance(event, e.AccessDecided)]
        assert access.decision.reason == "it was allowed when the agent asked"


async def test_a_relative_path_in_a_diff_means_the_sessions_folder(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        await allow(s, {"content": [{"type": "diff", "path": "a.txt", "newText": "new text"}]})
        assert (await s.write("new text"))["result"] == {}


async def test_an_allowed_diff_is_written_once(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        await allow(s, diff(tmp_path, "new text"))
        await s.write("new text")
        await refused(s, s.write("new text"))


@pytest.mark.parametrize(("old", "new"), [("", "new text"), (None, "new text"), ("old", "new")])
async def test_an_allowed_diff_that_the_agent_made_itself_needs_no_second_question(
    old: str | None, new: str, tmp_path: Path
) -> None:
    """OpenCode writes the file, and has the client write the same."""
    async with scene(tmp_path) as s:
        await s.begin()
        (tmp_path / "a.txt").write_text("old text" if old else "")
        await allow(s, diff(tmp_path, new, old))
        (tmp_path / "a.txt").write_text("new text")
        assert (await s.write("new text"))["result"] == {}
        assert len(s.requests) == 1
        await refused(s, s.write("new text"))


async def test_a_file_that_is_called_new_and_is_there_is_shown_with_what_it_loses(
    tmp_path: Path,
) -> None:
    old = "".join(f"line {n}\n" for n in range(50))
    (tmp_path / "a.txt").write_text(old)
    async with scene(tmp_path) as s:
        await s.begin()
        asking = s.ask_permission(question(call=diff(tmp_path, "new text")))
        waiting = await s.waiting()
        assert waiting.content == [Diff(str(tmp_path / "a.txt"), "new text", old)]
        await s.answer("once")
        await soon(asking)
        assert (await s.write("new text"))["result"] == {}
        assert len(s.requests) == 1


async def test_a_file_that_came_or_changed_after_the_question_is_asked_about_again(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.txt"
    for at_the_question in (None, "old\n"):
        path.unlink(missing_ok=True)
        if at_the_question is not None:
            path.write_text(at_the_question)
        async with scene(tmp_path) as s:
            await s.begin()
            await allow(s, diff(tmp_path, "new text"))
            path.write_text("work of somebody else\n")
            asked = await refused(s, s.write("new text"))
            assert asked.content == [Diff(str(path), "new text", "work of somebody else\n")]
            assert path.read_text() == "work of somebody else\n"


async def test_what_cannot_be_shown_is_said_and_asked_about_again(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xff\xfe\x00 no text")
    async with scene(tmp_path) as s:
        await s.begin()
        asking = s.ask_permission(question(call=diff(tmp_path, "new text")))
        (shown,) = (await s.waiting()).content
        assert isinstance(shown, Diff)
        assert shown.replaces is not None
        assert shown.replaces.startswith("what cannot be shown (")
        await s.answer("once")
        await soon(asking)
        asked = await refused(s, s.write("new text"))
        (shown,) = asked.content
        assert isinstance(shown, Diff)
        assert (shown.replaces or "").startswith("what cannot be shown (")
        assert path.read_bytes() == b"\xff\xfe\x00 no text"


async def test_a_file_that_becomes_unreadable_after_the_question_is_asked_about_again(
    tmp_path: Path,
) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        await allow(s, diff(tmp_path, "new text"))
        (tmp_path / "a.txt").write_bytes(b"\xff\xfe\x00 no text")
        await refused(s, s.write("new text"))


async def test_a_file_outside_is_not_looked_at_and_that_is_said(tmp_path: Path) -> None:
    inside = tmp_path / "work"
    inside.mkdir()
    (tmp_path / "a.txt").write_text("secret")
    (inside / "link.txt").symlink_to(tmp_path / "a.txt")
    told = {"path": str(inside / "link.txt"), "content": "new text"}
    async with scene(inside) as s:
        await s.begin()
        asking = s.ask_permission(question(kind="other", rawInput=told))
        (shown,) = (await s.waiting()).content
        assert isinstance(shown, Diff)
        assert shown.replaces == "whatever is there: this place was not checked"
        assert "secret" not in str(s.heard)
        await s.answer("no")
        await soon(asking)


async def test_so_many_files_or_so_much_text_is_not_read_for_one_question(tmp_path: Path) -> None:
    (tmp_path / "big.txt").write_text("x\n" * 600_000)
    (tmp_path / "a.txt").write_text("old")
    names = ["big.txt"] + ["a.txt"] * 40
    items = [diff(tmp_path, "new", name=name)["content"][0] for name in names]
    async with scene(tmp_path) as s:
        await s.begin()
        asking = s.ask_permission(question(call={"kind": "edit", "content": items}))
        shown = [item for item in (await s.waiting()).content if isinstance(item, Diff)]
        assert shown[0].replaces == "600000 lines, too many to be shown here"
        assert shown[0].old_text is None
        assert len([each for each in shown if each.replaces is None]) < 40
        assert shown[-1].replaces == "whatever is there: there are too many files to check"
        await s.answer("once")
        await soon(asking)
        await refused(s, s.write("new", "big.txt"))


async def test_an_allowed_diff_covers_no_other_text_and_no_other_file(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        await allow(s, diff(tmp_path, "new text"))
        await refused(s, s.write("other text"))
        await refused(s, s.write("new text", "b.txt"))
        assert (await s.write("new text"))["result"] == {}


async def test_an_allowed_change_of_a_part_covers_the_file_with_that_change(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two three")
    async with scene(tmp_path) as s:
        await s.begin()
        await allow(s, diff(tmp_path, "2", "two"))
        await refused(s, s.write("one 2 four"))
        assert (await s.write("one 2 three"))["result"] == {}


async def test_an_allowed_change_of_a_part_that_is_there_twice_is_unclear(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("two two")
    async with scene(tmp_path) as s:
        await s.begin()
        await allow(s, diff(tmp_path, "2", "two"))
        await refused(s, s.write("2 two"))
        await refused(s, s.write("2 2"))


async def test_a_yes_ends_with_the_turn(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        turn = await s.begin()
        await allow(s, diff(tmp_path, "new text"))
        s.agent.reply(s.prompt_id, ENDED)
        await soon(turn.wait())
        await s.begin()
        await refused(s, s.write("new text"))


async def test_a_no_covers_nothing(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        await allow(s, diff(tmp_path, "new text"), "no")
        await refused(s, s.write("new text"))


async def test_a_yes_covers_what_was_shown_when_it_was_asked(tmp_path: Path) -> None:
    """The tool call may change while the person reads; the question does not."""
    async with scene(tmp_path) as s:
        await s.begin()
        asking = s.ask_permission(question(call=diff(tmp_path, "harmless")))
        waiting = await s.waiting()
        s.agent.update("tool_call_update", toolCallId="t", **diff(tmp_path, "harmful"))
        await until(lambda: s.session.state.tool_calls["t"].diffs[0].new_text == "harmful")
        assert waiting.content == [Diff(str(tmp_path / "a.txt"), "harmless")]
        await s.answer("once")
        await soon(asking)
        await refused(s, s.write("harmful"))
        assert (await s.write("harmless"))["result"] == {}


async def test_a_yes_covers_the_file_that_the_path_led_to_when_it_was_asked(tmp_path: Path) -> None:
    hooks, notes = tmp_path / ".git" / "hooks", tmp_path / "notes.txt"
    hooks.mkdir(parents=True)
    async with scene(tmp_path) as s:
        await s.begin()
        asking = s.ask_permission(question(call=diff(tmp_path, "text", name="notes.txt")))
        await s.waiting()
        notes.symlink_to(hooks / "pre-commit")
        await s.answer("once")
        await soon(asking)
        await refused(s, s.write("text", ".git/hooks/pre-commit"))
        notes.unlink()
        assert (await s.write("text", "notes.txt"))["result"] == {}


async def test_paths_of_diffs_are_looked_up_off_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: set[int] = set()
    look = Reach.look

    def seen(reach: Reach, path: str) -> Any:
        threads.add(threading.get_ident())
        return look(reach, path)

    monkeypatch.setattr(Reach, "look", seen)
    async with scene(tmp_path) as s:
        await s.begin()
        await allow(s, diff(tmp_path, "new text"))
        assert threads
        assert threading.get_ident() not in threads


async def test_a_yes_between_turns_is_not_for_the_next_one(tmp_path: Path) -> None:
    async with scene(tmp_path, terminals=FakeTerminals()) as s:
        await allow(s, {"rawInput": {"command": "npm test"}})
        await s.begin()
        await refused(s, s.run("npm", "test"))


async def test_an_allowed_command_is_run_once_without_a_second_question(tmp_path: Path) -> None:
    terminals = FakeTerminals()
    async with scene(tmp_path, terminals=terminals) as s:
        await s.begin()
        await allow(s, {"rawInput": {"command": "npm test"}})
        assert "result" in await s.run("npm", "test")
        assert len(s.requests) == 1
        await refused(s, s.run("npm", "test"))
        assert len(terminals.commands) == 1


@pytest.mark.parametrize(
    ("words", "fields"),
    [
        (["npm", "run", "evil"], {}),
        (["npm test && evil"], {}),
        (["npm", "test"], {"cwd": "sub"}),
        (["npm", "test"], {"env": [{"name": "LD_PRELOAD", "value": "/tmp/evil.so"}]}),
    ],
)
async def test_an_allowed_command_covers_no_other(
    words: list[str], fields: Json, tmp_path: Path
) -> None:
    (tmp_path / "sub").mkdir()
    if "cwd" in fields:
        fields = {"cwd": str(tmp_path / fields["cwd"])}
    terminals = FakeTerminals()
    async with scene(tmp_path, terminals=terminals) as s:
        await s.begin()
        await allow(s, {"rawInput": {"command": "npm test"}})
        await refused(s, s.run(*words, **fields))
        assert terminals.commands == []
        assert "result" in await s.run("npm test")


async def test_the_folder_of_a_claimed_command_is_asked_about_and_granted(tmp_path: Path) -> None:
    hidden = tmp_path / "hiddenplace"
    hidden.mkdir()
    terminals = FakeTerminals()
    async with scene(tmp_path, terminals=terminals) as s:
        await s.begin()
        told = {"command": "make test", "cwd": "hiddenplace"}
        asking = s.ask_permission(question(kind="execute", rawInput=told))
        assert (await s.waiting()).cwd == str(hidden)
        assert s.requests[-1].cwd == str(hidden)
        await s.answer("once")
        await soon(asking)
        await refused(s, s.run("make", "test"))
        assert terminals.commands == []
        assert "result" in await s.run("make", "test", cwd=str(hidden))
        await refused(s, s.run("make", "test", cwd=str(hidden)))


async def test_a_folder_that_cannot_be_read_is_shown_as_it_was_said_and_grants_nothing(
    tmp_path: Path,
) -> None:
    terminals = FakeTerminals()
    async with scene(tmp_path, terminals=terminals) as s:
        await s.begin()
        told = {"command": "make test", "cwd": "$HOME"}
        asking = s.ask_permission(question(kind="execute", rawInput=told))
        assert (await s.waiting()).cwd == "a folder that cannot be read: $HOME"
        await s.answer("once")
        await soon(asking)
        await refused(s, s.run("make", "test"))
        assert terminals.commands == []


async def test_the_folder_is_told_by_the_name_of_the_session(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    linked = tmp_path / "linked"
    linked.symlink_to(real)
    async with scene(linked, terminals=FakeTerminals()) as s:
        await s.begin()
        asked = await refused(s, s.run("make"))
        assert asked.cwd == str(linked)
        await refused(s, s.write("new"))
        assert s.requests[-1].cwd is None


async def test_a_claimed_command_outside_the_workspace_is_refused(tmp_path: Path) -> None:
    inside = tmp_path / "work"
    inside.mkdir()
    async with scene(inside, policy=Policy(execute=True)) as s:
        await s.begin()
        told = {"command": "make test", "cwd": str(tmp_path)}
        asking = s.ask_permission(question(kind="execute", rawInput=told))
        assert (await soon(asking))["result"] == selected("no")
        assert s.requests == []


async def test_variables_that_change_nothing_are_no_other_command(tmp_path: Path) -> None:
    """Goose tells every command the session's id."""
    terminals = FakeTerminals()
    async with scene(tmp_path, terminals=terminals) as s:
        await s.begin()
        await allow(s, {"rawInput": {"command": "npm test"}})
        env = [{"name": "AGENT_SESSION_ID", "value": "20260801_1"}]
        assert "result" in await s.run("npm test", env=env)
        assert len(s.requests) == 1


async def test_an_answer_that_lasts_covers_the_command_that_the_agent_runs_with_its_variables(
    tmp_path: Path,
) -> None:
    """Goose and Kimi ask without variables, and then run the command with theirs."""
    rule = Rule(effect="allow", operation="execute", argv=("npm", "test"), source="your answer")
    own = msgspec.structs.replace(rule, cwd="**")
    env = [{"name": "AGENT_SESSION_ID", "value": "20260801_1"}]
    asked = question(call={"rawInput": {"command": "npm test"}})
    async with scene(tmp_path, policy=Policy(rules=[own]), terminals=FakeTerminals()) as s:
        await s.begin()
        for _ in range(2):
            await soon(s.ask_permission(asked))
            assert "result" in await s.run("npm test", env=env)
        assert s.requests == []
        # It is allowed once for each time that it was asked, and with nothing that counts.
        await refused(s, s.run("npm test", env=env))
        await soon(s.ask_permission(asked))
        await refused(s, s.run("npm test", env=[{"name": "PATH", "value": "/tmp"}]))
        await refused(s, s.run("npm test x", env=env))


async def test_an_argv_rule_matches_no_command_with_variables_whatever_they_are(
    tmp_path: Path,
) -> None:
    policy = Policy(rules=[Rule(effect="allow", operation="execute", argv=("npm", "test"))])
    async with scene(tmp_path, policy=policy, terminals=FakeTerminals()) as s:
        await s.begin()
        env = [{"name": "AGENT_SESSION_ID", "value": "20260801_1"}]
        await refused(s, s.run("npm", "test", env=env))


# ── a file that only the raw input tells ──────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "keys", [("path", "content"), ("filePath", "content"), ("file", "fileText")]
)
async def test_a_whole_file_in_the_raw_input_is_shown_and_written_without_a_second_question(
    keys: tuple[str, str], tmp_path: Path
) -> None:
    """Goose asks before each write with kind other, and tells the file nowhere else."""
    path, content = keys
    told = {path: str(tmp_path / "a.txt"), content: "new text"}
    async with scene(tmp_path) as s:
        await s.begin()
        asking = s.ask_permission(question(kind="other", rawInput=told))
        waiting = await s.waiting()
        assert waiting.content == [Diff(str(tmp_path / "a.txt"), "new text")]
        assert waiting.operation == "other"
        await s.answer("once")
        await soon(asking)
        assert (await s.write("new text"))["result"] == {}
        assert len(s.requests) == 1
        await refused(s, s.write("new text"))


async def test_a_whole_file_in_the_raw_input_makes_no_rule_looser(tmp_path: Path) -> None:
    told = {"path": str(tmp_path / "a.txt"), "content": "new text"}
    async with scene(tmp_path, policy=Policy(write=True)) as s:
        await s.begin()
        asking = s.ask_permission(question(kind="other", rawInput=told))
        await s.answer("no")
        assert (await soon(asking))["result"] == selected("no")


@pytest.mark.parametrize(
    "told",
    [
        {"path": "a.txt", "content": "new text", "append": True},
        {"path": "a.txt", "content": ["new text"]},
        {"path": "a.txt", "text": "new text"},
        {"content": "new text"},
        ["a.txt", "new text"],
    ],
)
async def test_what_is_not_clearly_a_whole_file_is_not_shown_as_one(
    told: Any, tmp_path: Path
) -> None:
    async with scene(tmp_path) as s:
        await s.begin()
        asking = s.ask_permission(question(rawInput=told))
        [shown] = (await s.waiting()).content
        assert isinstance(shown, ContentItem)
        assert "new text" in shown.text
        await s.answer("once")
        await soon(asking)
        await refused(s, s.write("new text"))


async def test_a_diff_is_shown_as_it_is_whatever_the_raw_input_tells(tmp_path: Path) -> None:
    told = {"path": str(tmp_path / "a.txt"), "content": "harmless"}
    async with scene(tmp_path) as s:
        await s.begin()
        asking = s.ask_permission(question(call=diff(tmp_path, "new text"), rawInput=told))
        assert (await s.waiting()).content == [Diff(str(tmp_path / "a.txt"), "new text")]
        await s.answer("once")
        await soon(asking)
        await refused(s, s.write("harmless"))


# ── what we are asked to do ourselves ─────────────────────────────────────────────────────────


async def test_a_write_that_asks_shows_what_it_would_change(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    async with scene(tmp_path) as s:
        await s.begin()
        asked = await refused(s, s.write("new"))
        assert (asked.operation, asked.paths) == ("write", [str(path)])
        assert asked.title == f"Write {path}"
        assert asked.content == [Diff(str(path), "new", "old")]
        assert [option.kind for option in asked.options] == [
            "allow_once",
            "allow_always",
            "reject_once",
            "reject_always",
        ]
        assert path.read_text() == "old"


async def test_a_command_that_asks_shows_all_that_would_run(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    async with scene(tmp_path, terminals=FakeTerminals()) as s:
        await s.begin()
        plain = await refused(s, s.run("git", "commit", "-m", "a b"))
        assert plain.title == "Run git commit -m 'a b'"
        assert (plain.operation, plain.argv) == ("execute", ["git", "commit", "-m", "a b"])
        fields = {"cwd": str(tmp_path / "sub"), "env": [{"name": "PATH", "value": "s3cret"}]}
        asked = await refused(s, s.run("make all", **fields))
        assert asked.title == f"Run make all in {tmp_path}/sub with PATH set"
        assert "s3cret" not in str(s.heard)


async def test_what_a_rule_allows_is_done_and_recorded(tmp_path: Path) -> None:
    async with scene(tmp_path, policy=Policy(write=True)) as s:
        (tmp_path / "a.txt").write_text("old")
        assert "result" in await s.write("new")
        access, written = s.heard[-2:]
        assert isinstance(access, e.AccessDecided)
        assert (access.operation, access.decision.effect) == ("write", "allow")
        assert isinstance(written, e.FileWritten)
        assert (written.before, written.after) == ("old", "new")
        assert s.requests == []


async def test_reading_inside_needs_no_record(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("inside")
    async with scene(tmp_path) as s:
        params = {"sessionId": "s1", "path": str(tmp_path / "a.txt")}
        assert (await s.result("fs/read_text_file", params))["result"] == {"content": "inside"}
        assert [type(event) for event in s.heard] == [e.SessionOpened]


async def test_reading_outside_asks(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("far away")
    inside = tmp_path / "work"
    inside.mkdir()
    params = {"sessionId": "s1", "path": str(outside)}
    async with scene(inside) as s:
        await s.begin()
        refusal = await refused(s, s.result("fs/read_text_file", params))
        assert (refusal.operation, refusal.paths) == ("read", [str(outside)])
        reading = s.ask("fs/read_text_file", params)
        await s.answer("allow")
        assert (await soon(reading))["result"] == {"content": "far away"}


async def test_writing_outside_is_refused_whatever_is_allowed(tmp_path: Path) -> None:
    inside = tmp_path / "work"
    inside.mkdir()
    params = {"sessionId": "s1", "path": str(tmp_path / "out.txt"), "content": "x"}
    async with scene(inside, policy=Policy(yolo=True)) as s:
        told = await s.result("fs/write_text_file", params)
        assert told["error"]["code"] == -32602
        assert "outside the workspace" in told["error"]["message"]
        assert not (tmp_path / "out.txt").exists()
        assert s.requests == []


async def test_a_path_that_is_not_absolute_is_refused(tmp_path: Path) -> None:
    async with scene(tmp_path) as s:
        for path in ("a.txt", "", "/a\0b"):
            told = await s.result("fs/read_text_file", {"sessionId": "s1", "path": path})
            assert told["error"]["code"] == -32602


async def test_a_command_outside_the_workspace_needs_yolo(tmp_path: Path) -> None:
    terminals = FakeTerminals()
    inside = tmp_path / "work"
    inside.mkdir()
    async with scene(inside, policy=Policy(execute=True), terminals=terminals) as s:
        told = await s.run("ls", cwd=str(tmp_path))
        assert told["error"]["code"] == -32602
        assert terminals.commands == []
    async with scene(inside, policy=Policy(yolo=True), terminals=terminals) as s:
        assert "result" in await s.run("ls", cwd=str(tmp_path))
        assert terminals.commands[0].cwd == str(tmp_path)
        assert str(tmp_path) in terminals.workspaces[0].roots
