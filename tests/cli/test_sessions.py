"""Sessions on the command line: recorded, continued, listed, searched, moved and deleted."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from support.command import COMMAND, MIDDAY, Done, Dragoman
from support.screen import needs_tmux, on_screen

FIELDS = (
    "id",
    "name",
    "title",
    "agent",
    "agentSessionId",
    "cwd",
    "status",
    "createdAt",
    "updatedAt",
)


def sessions(user: Dragoman, *words: str) -> list[dict[str, Any]]:
    done = user("sessions", "list", "--json", *words)
    assert (done.code, done.err) == (0, "")
    return json.loads(done.out)


def said(user: Dragoman, *words: str) -> str:
    """The answer alone, of a run that ended well."""
    done = user("-o", "simple", *words)
    assert (done.code, done.err) == (0, "")
    return done.out


def only(user: Dragoman) -> dict[str, Any]:
    [found] = sessions(user)
    return found


def one_line(done: Done, code: int, *words: str) -> None:
    """It failed with that code and said why in one line with these words."""
    assert (done.code, done.out, done.err.count("\n")) == (code, "", 1), done
    assert done.err.startswith("dragoman: ")
    for word in words:
        assert word in done.err


# ── recorded, and continued ───────────────────────────────────────────────────────────────────


def test_a_session_is_shown_with_its_notices(dragoman: Dragoman) -> None:
    """Only they say, for example, that a turn was stopped because a server ended."""
    dragoman("-a", "demo", "--session", "s", "/notice")
    shown = dragoman("sessions", "show", "s").lines
    assert [line for line in shown if line.startswith("agent note: ")] != []


def test_a_run_is_recorded_by_default_and_listed(user: Dragoman) -> None:
    assert said(user, "hello") == "1. hello\n"
    listed = only(user)
    assert set(FIELDS) <= set(listed)
    assert re.fullmatch(r"s-[0-9a-f]{16}", listed["id"])
    assert listed["agentSessionId"].startswith("m-")
    assert (listed["name"], listed["title"]) == (None, "hello")
    assert (listed["agent"], listed["cwd"]) == ("memo", str(user.workspace))
    assert listed["status"] == "idle"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+\+00:00", listed["createdAt"])
    assert listed["createdAt"] <= listed["updatedAt"]
    header, row = user("sessions", "list").lines
    assert header.split() == ["SESSION", "STATUS", "AGE", "AGENT", "FOLDER", "[NAME]", "TITLE"]
    assert row.split() == [listed["id"], "idle", "now", "memo", "~/workspace", "hello"]


def test_a_run_without_a_record_leaves_none(user: Dragoman, tmp_path: Path) -> None:
    saved = tmp_path / "id"
    assert said(user, "--no-store", "--save-session", str(saved), "hello") == "1. hello\n"
    assert not user.state.exists()
    # What is saved is then the agent's own name for it.
    known = saved.read_text().strip()
    assert known.startswith("m-")
    assert said(user, "--no-store", "--resume", known, "again") == "2. again\n"
    assert not user.state.exists()
    assert user("sessions", "list").out == "no sessions\n"


def test_a_name_needs_a_record(user: Dragoman) -> None:
    one_line(user("--no-store", "--session", "fix", "x"), 2, "--session needs the store")


def test_a_session_in_which_nothing_was_asked_is_not_kept(user: Dragoman) -> None:
    assert user("--list-modes", "--list-commands").code == 0
    one_line(user("--mode", "nonsense", "hello"), 2, "modes")
    assert sessions(user) == []
    assert user("--session", "fix", "--list-modes").code == 0
    assert only(user)["name"] == "fix"


def test_a_named_session_is_made_on_first_use_and_then_continued(user: Dragoman) -> None:
    assert said(user, "--session", "fix", "one") == "1. one\n"
    assert said(user, "--session", "fix", "two") == "2. two\n"
    assert said(user, "--session", "other", "three") == "1. three\n"
    assert only_named(user, "fix")["title"] == "one"
    # A name counts in its folder.
    elsewhere = user.home / "elsewhere"
    elsewhere.mkdir()
    assert said(user, "--cwd", str(elsewhere), "--session", "fix", "four") == "1. four\n"
    assert len(sessions(user)) == 3
    assert len(sessions(user, "--cwd", str(elsewhere))) == 1


def only_named(user: Dragoman, name: str) -> dict[str, Any]:
    [found] = [each for each in sessions(user) if each["name"] == name]
    return found


def test_a_session_is_resumed_by_any_of_its_names(user: Dragoman, tmp_path: Path) -> None:
    saved = tmp_path / "id"
    said(user, "--session", "fix", "--save-session", str(saved), "one")
    session = only(user)
    assert saved.read_text() == f"{session['id']}\n"
    names = (session["id"], session["id"][:8], session["agentSessionId"], "fix")
    for count, name in enumerate(names, 2):
        assert said(user, "--resume", name, "more") == f"{count}. more\n"
    assert len(sessions(user)) == 1


def test_a_session_is_resumed_in_its_own_folder(user: Dragoman) -> None:
    said(user, "--session", "fix", "one")
    elsewhere = user.home / "elsewhere"
    elsewhere.mkdir()
    done = user("--resume", only(user)["id"], "-o", "simple", "two", cwd=elsewhere)
    assert (done.code, done.out) == (0, "2. two\n")
    assert only(user)["cwd"] == str(user.workspace)
    user.workspace.rename(user.home / "moved")
    gone = user("--resume", "fix", "three", cwd=elsewhere)
    one_line(gone, 4, f"its directory {user.workspace} no longer exists")


def test_a_session_that_only_the_agent_knows_is_resumed_and_recorded(user: Dragoman) -> None:
    said(user, "--save-session", str(user.home / "id"), "--no-store", "one")
    known = (user.home / "id").read_text().strip()
    assert said(user, "--resume", known, "two") == "2. two\n"
    assert only(user)["agentSessionId"] == known
    shown = user("sessions", "show", known).out
    assert shown.endswith("\n› one\n1. one\n\n› two\n2. two\n")


def test_a_fork_goes_its_own_way(user: Dragoman) -> None:
    said(user, "--session", "fix", "one")
    assert said(user, "--fork", "fix", "two") == "2. two\n"
    assert said(user, "--session", "fix", "three") == "2. three\n"
    forked = user("sessions", "fork", "fix", "--name", "aside").out.strip()
    assert said(user, "--session", "aside", "four") == "3. four\n"
    by_id = {each["id"]: each for each in sessions(user)}
    assert by_id[forked]["parent"] == only_named(user, "fix")["id"]
    assert by_id[forked]["agentSessionId"] != only_named(user, "fix")["agentSessionId"]
    assert len(by_id) == 3


def test_the_agent_of_a_session_is_found_without_naming_it(user: Dragoman) -> None:
    said(user, "--session", "fix", "one")
    settings = json.loads(user.settings.read_text())
    settings["agent_servers"] = dict(reversed(settings["agent_servers"].items()))
    user.write_settings(settings)  # another one is the default now
    assert said(user, "--session", "fix", "two") == "2. two\n"
    other = user("--session", "fix", "-a", "lethe", "three")
    one_line(other, 2, f"session {only(user)['id']} belongs to memo, not to lethe")
    del settings["agent_servers"]["memo"]
    user.write_settings(settings)
    one_line(user("--session", "fix", "x"), 2, "belongs to memo, which is not in the settings")


def test_a_session_that_was_recorded_by_the_name_of_its_program_is_resumed(
    user: Dragoman,
) -> None:
    script = user.workspace / "an-agent.sh"
    script.write_text(f"exec {user.agent('remembering', 'memory.py')}\n")
    user.write_settings({"agent_servers": {"sh": {"command": "sh", "args": [str(script)]}}})
    assert said(user, "one") == "1. one\n"
    user.write_settings({"agent_servers": {}})
    session = only(user)["id"]
    command = ("--agent-command", f"sh {script}")
    assert said(user, "--resume", session, *command, "two") == "2. two\n"
    assert said(user, *command, "other") == "1. other\n"
    assert [each["agent"] for each in sessions(user)] == ["an-agent.sh", "sh"]
    another = user("--resume", session, "--agent-command", f"bash {script}", "x")
    one_line(another, 2, f"session {session} belongs to sh, not to an-agent.sh")
    assert user("sessions", "fork", session, *command).code == 0
    assert user("sessions", "delete", session, *command).code == 0
    assert [each["agent"] for each in sessions(user)] == ["sh", "an-agent.sh"]


# ── what cannot be continued ──────────────────────────────────────────────────────────────────


def test_an_agent_that_forgets_is_not_started_empty(user: Dragoman) -> None:
    said(user, "-a", "lethe", "--session", "fix", "one")
    before = only(user)
    failed = user("--session", "fix", "two")
    one_line(failed, 4, "session fix cannot be continued: ")
    assert "neither load nor resume" in failed.err
    after = only(user)
    assert (after["lastSeq"], after["status"]) == (before["lastSeq"], "idle")


def test_starting_empty_is_possible_and_leaves_a_mark(user: Dragoman) -> None:
    said(user, "-a", "lethe", "--session", "fix", "one")
    done = user("--session", "fix", "--on-reset", "new", "-o", "simple", "two")
    assert (done.code, done.out) == (0, "1. two\n")
    assert done.err == (
        "dragoman: the agent has forgotten this session and starts with an empty one\n"
    )
    shown = user("sessions", "show", "fix").out
    mark = "the agent had forgotten the session"
    assert f"1. one\n\n{mark}\n" in shown
    assert shown.index(mark) < shown.index("› two")


@pytest.mark.parametrize("agent", ["memo", "lethe"])
def test_a_session_that_nobody_knows_is_four(user: Dragoman, agent: str) -> None:
    for option in ("--resume", "--fork"):
        failed = user("-a", agent, option, "nothing", "hello")
        assert (failed.code, failed.err.count("\n")) == (4, 1), failed
        assert "nothing" in failed.err
    assert user("sessions", "list").out == "no sessions\n"
    assert [*(user.state / "sessions").glob("*")] == []


@pytest.mark.parametrize(
    "words",
    [
        ("sessions", "show", "nothing"),
        ("sessions", "export", "nothing"),
        ("sessions", "fork", "nothing"),
        ("sessions", "close", "nothing"),
        ("sessions", "delete", "nothing"),
        ("sessions", "rename", "nothing", "x"),
        ("sessions", "archive", "nothing"),
        ("sessions", "answer", "nothing"),
        ("watch", "nothing"),
        ("cancel", "nothing"),
    ],
)
def test_every_command_says_when_there_is_no_such_session(
    user: Dragoman, words: tuple[str, ...]
) -> None:
    one_line(user(*words), 4, "no such session: nothing")


def test_a_name_that_fits_several_says_which(user: Dragoman) -> None:
    for folder in (user.workspace, user.home):
        said(user, "--cwd", str(folder), "--session", "fix", "one")
    newest, oldest = (each["id"] for each in sessions(user))
    unclear = user("sessions", "show", "fix", cwd=Path("/"))
    one_line(unclear, 4, f"fix matches 2 sessions: {newest}, {oldest}")
    assert oldest in user("sessions", "show", "fix").out


@pytest.mark.parametrize("words", [("--resume", "{}", "hello"), ("sessions", "show", "{}")])
def test_the_beginning_of_an_id_that_is_too_short_says_so(
    user: Dragoman, words: tuple[str, ...]
) -> None:
    said(user, "one")
    said(user, "two")
    told = "s- is ambiguous: 2 sessions begin with it"
    one_line(user(*(word.format("s-") for word in words)), 4, told)
    one_line(user("--resume", "x-", "hello"), 4, "no such session: x-")


# ── killed ────────────────────────────────────────────────────────────────────────────────────


def test_a_run_that_was_killed_is_interrupted_and_can_go_on(user: Dragoman) -> None:
    with user.started("--session", "fix", "--", "wait") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"started\n"
        assert only(user)["status"] == "running"
        process.kill()
        process.wait(120)
        # Nothing else runs that would put it right: whoever looks does.
        assert only(user)["status"] == "interrupted"
    shown = user("sessions", "show", "fix").out
    failed = "the turn failed: interrupted: the process that ran the session ended"
    assert shown.endswith(f"started\n\n{failed}\n")
    assert said(user, "--session", "fix", "two") == "2. two\n"
    assert only(user)["status"] == "idle"


# ── looking ───────────────────────────────────────────────────────────────────────────────────


def test_a_session_is_shown_as_it_was_shown_live(user: Dragoman) -> None:
    live = user("--session", "fix", "one")
    session = only(user)
    shown = user("sessions", "show", "fix")
    assert (shown.code, shown.err) == (0, "")
    assert shown.lines[:2] == [f"{session['id']}  [fix] one", f"memo in {user.workspace}"]
    assert shown.out.endswith(f"\n› one\n{live.out}")
    state = json.loads(user("sessions", "show", "fix", "--json").out)
    assert [entry["type"] for entry in state["entries"]] == ["user", "agent"]


def test_a_session_is_watched_as_events_for_programs(user: Dragoman) -> None:
    said(user, "--session", "fix", "one")
    watched = user("watch", "fix", "--json", "--all", "--until-idle")
    assert (watched.code, watched.err) == (0, "")
    assert [event["seq"] for event in watched.frames] == [*range(1, only(user)["lastSeq"] + 1)]
    # The folder is read again after the turn.
    types = [event["type"] for event in watched.frames if event["type"] != "workspace_snapshot"]
    assert types[-1] == "turn_ended"
    # Nothing runs, so there is nothing to wait for.
    assert user("watch", "fix", "--json", "--until-idle").out == ""
    idle = user("watch", "fix", "--until-idle")
    assert (idle.code, idle.out) == (0, "")
    whole = user("watch", "fix", "--all", "--until-idle").out
    assert whole.endswith("\n› one\n1. one\n")


def test_what_was_said_is_found(user: Dragoman) -> None:
    said(user, "--session", "fix", "mend the parser")
    said(user, "bake a cake")
    session = only_named(user, "fix")
    found = user("sessions", "search", "pars")
    assert found.lines[0] == f"{session['id']}  [fix] mend the parser"
    assert "  user: mend the parser" in found.lines
    assert "  agent: 1. mend the parser" in found.lines
    hits = json.loads(user("sessions", "search", "parser", "--json").out)
    assert {hit["session"] for hit in hits} == {session["id"]}
    assert user("sessions", "search", "nowhere").out == "nothing found\n"
    assert json.loads(user("sessions", "search", "nowhere", "--json").out) == []


def test_the_list_can_be_narrowed(user: Dragoman) -> None:
    said(user, "one")
    said(user, "-a", "lethe", "two")
    assert [each["agent"] for each in sessions(user)] == ["lethe", "memo"]
    assert [each["title"] for each in sessions(user, "-a", "memo")] == ["one"]
    assert [each["title"] for each in sessions(user, "--limit", "1")] == ["two"]
    assert sessions(user, "--status", "running") == []
    assert len(sessions(user, "--status", "idle")) == 2


# ── acts ──────────────────────────────────────────────────────────────────────────────────────


def test_a_session_is_renamed_archived_and_closed(user: Dragoman) -> None:
    said(user, "--session", "fix", "one")
    assert user("sessions", "rename", "fix", "A better title").code == 0
    said(user, "--session", "fix", "two")
    assert only(user)["title"] == "A better title"
    last_used = only(user)["updatedAt"]
    assert user("sessions", "archive", "fix").code == 0
    assert sessions(user) == []
    assert [each["updatedAt"] for each in sessions(user, "--archived")] == [last_used]
    assert user("sessions", "archive", "fix", "--undo").code == 0
    assert only(user)["updatedAt"] > last_used  # not pruned at once for its age
    assert user("sessions", "close", "fix").code == 0
    assert only(user)["status"] == "closed"
    assert said(user, "--session", "fix", "three") == "3. three\n"
    assert only(user)["status"] == "idle"


def test_deleting_has_the_agent_forget_it_too(user: Dragoman) -> None:
    for name in ("here", "both"):
        said(user, "--session", name, name)
    ids = {name: only_named(user, name)["agentSessionId"] for name in ("here", "both")}
    assert user("sessions", "delete", "here", "--local").code == 0
    assert user("sessions", "delete", "both").code == 0
    assert sessions(user) == []
    assert [*(user.state / "sessions").glob("*")] == []
    assert user("sessions", "search", "both").out == "nothing found\n"
    assert said(user, "--no-store", "--resume", ids["here"], "again") == "2. again\n"
    assert user("--no-store", "--resume", ids["both"], "again").code == 4


def test_deleting_several_is_all_or_nothing(user: Dragoman) -> None:
    said(user, "--session", "one", "one")
    one_line(user("sessions", "delete", "one", "nothing"), 4, "no such session: nothing")
    one_line(user("sessions", "delete"), 2, "name the sessions to delete")
    assert len(sessions(user)) == 1


def test_a_session_of_an_agent_that_is_gone_is_deleted_here(user: Dragoman) -> None:
    said(user, "--session", "fix", "one")
    user.write_settings({"agent_servers": {}})
    one_line(user("sessions", "delete", "fix"), 2, "use --local to delete it only here")
    assert user("sessions", "delete", "fix", "--local").code == 0
    assert sessions(user) == []


def test_old_sessions_are_deleted_together(user: Dragoman) -> None:
    said(user, "one")
    said(user, "two")
    assert user("sessions", "delete", "--older-than", "1").out == "deleted 0 sessions\n"
    assert user("sessions", "delete", "--older-than", "0").out == "deleted 2 sessions\n"
    assert sessions(user) == []


# ── what the agent knows ──────────────────────────────────────────────────────────────────────


def test_a_session_the_agent_knows_is_listed_and_imported(user: Dragoman) -> None:
    saved = user.home / "id"
    said(user, "--no-store", "--save-session", str(saved), "one")
    known = saved.read_text().strip()
    listed = json.loads(user("sessions", "list", "--known", "-a", "memo", "--json").out)
    [info] = [each for each in listed if each["agentSessionId"] == known]
    assert (info["agent"], info["cwd"]) == ("memo", str(user.workspace))
    assert known in user("sessions", "list", "--known", "-a", "memo").out
    one_line(user("sessions", "list", "--known"), 2, "--known needs an agent")
    imported = user("sessions", "import", "-a", "memo", known).out.strip()
    session = only(user)
    assert (session["id"], session["agentSessionId"]) == (imported, known)
    assert "› one\n1. one\n" in user("sessions", "show", imported).out
    assert said(user, "--resume", imported, "two") == "2. two\n"
    again = user("sessions", "import", "-a", "memo", known)
    one_line(again, 2, f"{known} is already recorded as {imported}")


def test_an_imported_session_has_the_title_of_the_agents_list(user: Dragoman) -> None:
    saved = user.home / "id"
    said(user, "--no-store", "--save-session", str(saved), "title: The parser")
    known = saved.read_text().strip()
    listed = json.loads(user("sessions", "list", "--known", "-a", "memo", "--json").out)
    assert "The parser" in [each["title"] for each in listed if each["agentSessionId"] == known]
    imported = user("sessions", "import", "-a", "memo", known)
    assert (imported.code, imported.err) == (0, "")
    assert only(user)["title"] == "The parser"
    assert "title: The parser" in user("sessions", "search", "parser").out
    # It stays when the session is gone on with, and is the agent's still: not a name given here.
    said(user, "--resume", known, "title: The printer")
    assert only(user)["title"] == "The parser"
    said(user, "--resume", known, "tell title")
    assert only(user)["title"] == "The printer"


# ── files ─────────────────────────────────────────────────────────────────────────────────────


def test_an_export_is_imported_by_another_machine(user: Dragoman, tmp_path: Path) -> None:
    said(user, "--session", "fix", "mend the parser")
    file = tmp_path / "session.jsonl"
    assert user("sessions", "export", "fix", "-o", str(file)).code == 0
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert user("sessions", "export", "fix").out == file.read_text()
    other = {"DRAGOMAN_HOME": str(user.home / "other")}
    new_id = user("sessions", "import", str(file), env=other).out.strip()
    [there] = json.loads(user("sessions", "list", "--json", env=other).out)
    here = only(user)
    assert there["id"] == new_id != here["id"]
    # That it came in is the last thing that happened in it.
    assert there["updatedAt"] > here["updatedAt"]
    same = {**here, "updatedAt": there["updatedAt"]}
    # What it had used was used elsewhere.
    assert (here["spent"]["turns"], there["spent"]["turns"]) == (1, 0)
    elsewhere = {"cwd": "", "importedFrom": here["cwd"], "spent": there["spent"]}
    assert there == {**same, "id": new_id, **elsewhere}
    assert "user: mend" in user("sessions", "search", "mend", env=other).out
    shown = user("sessions", "show", "fix", env=other).out
    assert shown.partition("\n")[2] == user("sessions", "show", "fix").out.partition("\n")[2]
    # The agent is the same one here, so it goes on, in the folder that a person names.
    go_on = ("--resume", new_id, "--cwd", str(user.workspace), "-o", "simple", "on")
    assert user(*go_on, env=other).out == "2. on\n"
    assert user("--session", "fix", "-o", "simple", "more", env=other).out == "3. more\n"


def test_an_export_goes_through_a_pipe(user: Dragoman) -> None:
    said(user, "--session", "fix", "one")
    exported = user("sessions", "export", "fix").out
    imported = user("sessions", "import", "-", stdin=exported)
    assert (imported.code, imported.err) == (0, "")
    assert imported.out.startswith("s-")
    # Where the name is taken it stays with the one that has it.
    new_id = imported.out.strip()
    go_on = ("--resume", new_id, "--cwd", ".", "-o", "simple", "two")
    # So does the conversation with the agent: a file has none that is somebody else's.
    one_line(user(*go_on), 4, "belongs to another session here")
    assert user("--on-reset", "new", *go_on).out == "1. two\n"
    assert sorted(each["name"] or "" for each in sessions(user)) == ["", "fix"]


def test_an_export_is_replayed_and_nothing_is_executed(user: Dragoman, tmp_path: Path) -> None:
    said(user, "--session", "fix", "one")
    said(user, "--session", "fix", "two")
    file = tmp_path / "session.jsonl"
    user("sessions", "export", "fix", "-o", str(file))
    replayed = user("replay", str(file), env={"DRAGOMAN_HOME": str(user.home / "other")})
    assert (replayed.code, replayed.out) == (0, user("sessions", "show", "fix").out)
    assert not (user.home / "other").exists()
    one_line(user("replay", str(file), "--serve"), 2, "an exported session has no frames")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("", "line 1: expected the header of a session"),
        ("nonsense\n", "line 1: expected the header of a session"),
        ('{"dragoman": 2, "session": {}}\n', "line 1: expected"),
    ],
)
def test_a_file_that_is_no_export_is_refused(
    user: Dragoman, tmp_path: Path, content: str, complaint: str
) -> None:
    file = tmp_path / "session.jsonl"
    file.write_text(content)
    one_line(user("sessions", "import", str(file)), 2, str(file), complaint)
    assert user("sessions", "list").out == "no sessions\n"


def test_a_file_that_is_not_there_is_told(user: Dragoman, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    one_line(user("sessions", "import", str(missing)), 2, f"{missing} cannot be read")
    said(user, "one")
    out = tmp_path / "no" / "such" / "folder"
    one_line(user("sessions", "export", only(user)["id"], "-o", str(out)), 2, str(out))
    one_line(user("--save-session", str(out), "x"), 2, f"--save-session {out}: ")


# ── damage ────────────────────────────────────────────────────────────────────────────────────


def test_a_damaged_database_is_told_and_rebuilt(user: Dragoman) -> None:
    said(user, "--session", "fix", "mend the parser")
    assert user("sessions", "recover").out == (
        "the store is intact; use --force to rebuild it anyway\n"
    )
    database = user.state / "dragoman.db"
    database.write_bytes(b"this is no database" * 1000)
    for words in (("sessions", "list"), ("--session", "fix", "x")):
        one_line(user(*words), 1, str(database), "`dragoman sessions recover` rebuilds it")
    assert "--no-store" not in user("--session", "fix", "x").err  # the rules are in there too
    rebuilt = user("sessions", "recover")
    assert (rebuilt.code, rebuilt.err) == (0, "")
    assert "rebuilt 1 session, " in rebuilt.out
    assert only(user)["name"] == "fix"
    assert "user: mend the parser" in user("sessions", "search", "parser").out
    assert said(user, "--session", "fix", "two") == "2. two\n"


@pytest.mark.parametrize("how", ["gone", "of no bytes"])
def test_a_lost_database_is_told_and_rebuilt(user: Dragoman, how: str) -> None:
    for name in ("fix", "more"):
        said(user, "--session", name, f"mend {name}")
    database = user.state / "dragoman.db"
    for file in user.state.glob("dragoman.db*"):
        file.unlink()
    if how == "of no bytes":
        database.touch()
    told = f"{database}: the database is missing or empty, and there are mirrors of 2 sessions"
    checked = user("store", "check")
    assert (checked.code, checked.err) == (1, "")
    assert "missing or empty" in checked.out
    for words in (("sessions", "list"), ("--session", "fix", "x"), ("policy", "list")):
        one_line(user(*words), 1, told, "`dragoman sessions recover` rebuilds it")
    rebuilt = user("sessions", "recover")
    assert (rebuilt.code, rebuilt.err) == (0, "")
    assert "rebuilt 2 sessions, " in rebuilt.out
    assert {each["name"] for each in sessions(user)} == {"fix", "more"}
    assert said(user, "--session", "fix", "two") == "2. two\n"


# ── at a terminal ─────────────────────────────────────────────────────────────────────────────


@needs_tmux
def test_the_list_fits_a_narrow_terminal_and_its_ids_are_good_for_use(user: Dragoman) -> None:
    deep = user.workspace / "a-folder-with-a-long-name" / "and-another-one-in-it"
    deep.mkdir(parents=True)
    said(user, "--cwd", str(deep), "--session", "fix", "mend the parser, and then the tests")
    command = [str(COMMAND), "sessions", "list"]
    with on_screen(command, env=user.env | MIDDAY, cwd=user.workspace, width=80) as screen:
        header, row, today, _ = screen.wait_for("exit code 0").rstrip().split("\n")
    assert today.startswith("all sessions today: 1 turn, ")
    assert header.split()[:3] == ["SESSION", "STATUS", "AGE"]
    assert header.index("[NAME] TITLE") == row.index("[fix] mend the parser")
    assert "…" in row.split()[4]
    assert only(user)["id"].startswith(row.split()[0])
    assert "› mend the parser" in user("sessions", "show", row.split()[0]).out
