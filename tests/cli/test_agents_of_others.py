"""The command with agents that are not of this test suite: the official SDK's, and the demo."""

from __future__ import annotations

import shlex
import sys
from typing import Any

import pytest
from support.command import AGENTS, Done, Dragoman

SDK = shlex.join([sys.executable, str(AGENTS.parent / "sdk_agent.py")])
PLAN = (
    "Before doing anything, produce a 3-step plan to add a 'Testing' section to README.md. "
    "Stream plan updates for each step as you go. Stop after presenting the plan; do not apply "
    "changes yet."
)
DIFF = (
    "Propose changes to README.md adding a 'How to Test' section. Do not apply changes; send "
    "only a diff."
)


def test_an_agent_of_the_official_sdk(dragoman: Dragoman) -> None:
    (dragoman.workspace / "notes.txt").write_text("notes\n")
    done = dragoman("--write", "--agent-command", SDK, "go")
    assert done.code == 0, done.err
    assert done.lines == [
        "[tool] Append a line (pending)",
        f"[diff] --- {dragoman.workspace}/notes.txt",
        f"[diff] +++ {dragoman.workspace}/notes.txt",
        "[diff] @@ -1 +1,2 @@",
        "[diff]  notes",
        "[diff] +more",
        f"[permission] write {dragoman.workspace}/notes.txt: allowed (--write allows it)",
        "[tool] Append a line (completed)",
        "Done.",
    ]
    assert (dragoman.workspace / "notes.txt").read_text() == "notes\nmore\n"


# ── the demo agent, and the examples this command line comes from ─────────────────────────────


@pytest.fixture
def user(dragoman: Dragoman) -> Dragoman:
    """Someone whose default agent is the demo, in a folder with a file."""
    entry = {"command": sys.executable, "args": ["-P", "-m", "dragoman.testing.demo"]}
    dragoman.write_settings({"agent_servers": {"my-agent": entry}})
    (dragoman.workspace / "README.md").write_text("# A project\n\nIt does things.\n")
    return dragoman


def updates(done: Done, kind: str) -> list[dict[str, Any]]:
    found = [f["params"]["update"] for f in done.frames if f.get("method") == "session/update"]
    return [update for update in found if update["sessionUpdate"] == kind]


def test_an_inline_prompt_and_the_default_agent(user: Dragoman) -> None:
    done = user("Summarize README.md")
    assert done.code == 0
    assert "A project" in done.out
    assert "[tool] Read README.md (completed)" in done.lines
    assert done.tagged("usage")


def test_an_agent_by_name_and_the_protocol_mirrored(user: Dragoman) -> None:
    done = user("-a", "my-agent", "-o", "jsonl", "List available commands")
    assert done.code == 0
    assert done.frames[0]["params"] == {"name": "my-agent", "command": sys.executable}
    assert updates(done, "available_commands_update")
    assert done.frames[-1]["result"]["stopReason"] == "end_turn"


def test_the_prompt_from_standard_input(user: Dragoman) -> None:
    done = user("-o", "jsonl", stdin="Refactor the following code…\n")
    assert done.code == 5  # nobody is there to allow the change
    sent = next(f["params"] for f in done.frames if f.get("method") == "session/prompt")
    assert sent["prompt"] == [{"type": "text", "text": "Refactor the following code…\n"}]


def test_commands_are_listed_without_a_prompt(user: Dragoman) -> None:
    done = user("--list-commands")
    assert done.code == 0
    assert done.lines[0] == "commands:"
    assert any(line.startswith("  /help") for line in done.lines)


def test_prompts_that_elicit_a_plan_and_a_diff(user: Dragoman) -> None:
    done = user("-j", PLAN)
    assert updates(done, "plan")
    done = user("-j", DIFF)
    content = [c for call in updates(done, "tool_call") for c in call.get("content", [])]
    assert "diff" in [item["type"] for item in content]
    assert (user.workspace / "README.md").read_text() == "# A project\n\nIt does things.\n"


def test_mentions_become_links(user: Dragoman) -> None:
    done = user("-j", "Review @lib/src/acp_client.zzz and @https://example.com/spec.txt")
    sent = next(f["params"]["prompt"] for f in done.frames if f.get("method") == "session/prompt")
    assert [block["type"] for block in sent] == ["text", "resource_link", "resource_link"]


def test_a_file_is_read_changed_and_written_back(user: Dragoman) -> None:
    file = user.workspace / "dragoman-demo.txt"
    assert user("--yolo", "Fix the failing test").code == 0
    before = file.read_text()
    done = user("--yolo", "Fix the other test")
    assert done.code == 0
    added = [line for line in done.tagged("diff") if line.startswith("[diff] +")][1:]
    assert file.read_text() == before + "".join(f"{line[8:]}\n" for line in added)
    assert added == ["[diff] +You asked: Fix the other test"]


def test_a_command_runs_and_its_output_is_seen(user: Dragoman) -> None:
    done = user("--exec", "/run echo seen")
    assert done.code == 0
    assert "[terminal] seen" in done.lines


def test_another_mode_changes_what_the_agent_does(user: Dragoman) -> None:
    done = user("--yolo", "--mode", "plan", "Fix the failing test")
    assert done.code == 0
    assert "[mode] plan" in done.lines
    assert done.tagged("plan")
    assert not done.tagged("diff")
    assert not (user.workspace / "dragoman-demo.txt").exists()
