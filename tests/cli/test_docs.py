"""The pages about the command line: the reference is fresh, and every example does as it says."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support.command import COMMAND, Dragoman
from support.warm_command import warm_command

from dragoman.agents.settings.settings_file import parse_settings

ROOT = Path(__file__).parents[2]
PAGES = (
    "getting-started.md",
    "explanation/permissions.md",
    "how-to/set-up-agents.md",
    "how-to/sessions.md",
    "how-to/proxies.md",
    "how-to/scripts-and-ci.md",
    "how-to/embed-in-starlette.md",
    "how-to/record-and-replay.md",
    "how-to/test-with-a-scripted-agent.md",
)
REFERENCE = ROOT / "docs" / "reference" / "cli.md"
OF_OTHERS = {"--acp"}
_block = re.compile(
    r"^```(?P<kind>\w+)(?: file=(?P<file>\S+))?[^\n]*\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_command = re.compile(r"^\$ (?P<line>.*)\n(?P<output>(?:(?!\$ ).*\n)*)", re.MULTILINE)


@pytest.mark.parametrize(
    "script",
    ["gen_cli_docs.py", "gen_agent_docs.py", "gen_conformance_docs.py", "gen_reference.py"],
)
def test_generated_pages_are_what_the_source_says(script: str) -> None:
    done = subprocess.run(
        (sys.executable, f"scripts/{script}", "--check"),
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_stale_reference_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    stale = tmp_path / "docs" / "reference" / "cli.md"
    stale.parent.mkdir(parents=True)
    script = tmp_path / "scripts" / "gen_cli_docs.py"
    script.write_text((ROOT / "scripts" / "gen_cli_docs.py").read_text())
    stale.write_text(REFERENCE.read_text().replace("--yolo", "--solo"))
    done = subprocess.run(
        (sys.executable, script, "--check"), check=False, capture_output=True, timeout=60
    )
    assert done.returncode == 1
    assert b"docs/reference/cli.md is stale" in done.stderr


def test_a_stale_page_of_the_library_is_noticed(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    pages = shutil.copytree(ROOT / "docs" / "reference", tmp_path / "docs" / "reference")
    events = pages / "events.md"
    events.write_text(events.read_text().replace("TurnEnded", "TurnOver"))
    done = subprocess.run(
        (sys.executable, tmp_path / "scripts" / "gen_reference.py", "--check"),
        check=False,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 1
    assert b"docs/reference/events.md is stale" in done.stderr


@pytest.mark.parametrize("words", ["sessions revert", "sessions delete", "sessions answer"])
def test_the_reference_shows_what_repeats_as_the_help_does(dragoman: Dragoman, words: str) -> None:
    usage = " ".join(dragoman(*words.split(), "--help").out.partition("\n\n")[0].split())
    [shape] = re.findall(rf"^### `dragoman {words} (.*)`$", REFERENCE.read_text(), re.MULTILINE)
    repeated = re.findall(r"\[(\S+) …\]", shape)
    assert repeated
    assert repeated == re.findall(r"\[(\S+) \.\.\.\]", usage)


def test_no_row_of_the_reference_has_more_cells_than_its_table() -> None:
    rows = re.findall(r"^\|.*\|$", REFERENCE.read_text(), re.MULTILINE)
    assert [row for row in rows if len(re.findall(r"(?<!\\)\|", row)) != 3] == []


def examples(page: str) -> list[tuple[str, str]]:
    """Each command of a page with what it is said to print."""
    blocks = _block.finditer((ROOT / "docs" / page).read_text())
    consoles = [block["text"] for block in blocks if block["kind"] == "console"]
    return [(m["line"], m["output"]) for text in consoles for m in _command.finditer(text)]


@pytest.mark.parametrize("page", PAGES)
def test_every_example_prints_what_the_page_says(
    dragoman: Dragoman, page: str, tmp_path: Path
) -> None:
    for block in _block.finditer((ROOT / "docs" / page).read_text()):
        if block["file"]:
            (dragoman.workspace / block["file"]).write_text(block["text"])
    needed, variables = warm_command().put_on_path(tmp_path, COMMAND)
    assert examples(page)
    for line, expected in examples(page):
        done = subprocess.run(
            ("sh", "-c", line),
            cwd=dragoman.workspace,
            env=dragoman.env | variables,
            pass_fds=[needed],
            check=False,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=60,
        )
        assert _as_said(expected).fullmatch(done.stdout), f"{line}\n{done.stdout}"


def _as_said(expected: str) -> re.Pattern[str]:
    """Where the page has an ellipsis, what is there differs from run to run."""
    return re.compile(re.escape(expected).replace("…", ".*"))


def test_every_option_that_a_page_names_is_real() -> None:
    known = set(re.findall(r"--[a-z-]+", REFERENCE.read_text())) | OF_OTHERS
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        text = page.read_text()
        commands = re.findall(r"^(?:\$ )?dragoman .*$", text, re.MULTILINE)
        named = {option for line in commands for option in re.findall(r" (--[a-z-]+)", line)}
        ours = named | set(re.findall(r"`(--[a-z-]+)", text))
        assert ours <= known, (page, ours - known)


def test_settings_that_a_page_shows_are_sound() -> None:
    blocks = [
        block["text"]
        for page in sorted((ROOT / "docs").rglob("*.md"))
        for block in _block.finditer(page.read_text())
        if block["kind"] == "json"
        and block["file"] != "broken.json"
        and "_servers" in block["text"]
    ]
    assert len(blocks) >= 20
    for block in blocks:
        parse_settings(block.replace("…", "x"), "settings.json")


def test_the_first_run_shows_what_was_asked_for_and_what_decided_it(
    dragoman: Dragoman, tmp_path: Path
) -> None:
    """`make run`, with the command that is built: nothing of it stays."""
    thrown_away = tmp_path / "temporary"
    thrown_away.mkdir()
    done = subprocess.run(
        ("sh", "scripts/first_run.sh", str(COMMAND)),
        cwd=ROOT,
        env=dragoman.env | {"TMPDIR": str(thrown_away)},
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, "")
    asked = [line for line in done.stdout.split("\n") if line.startswith("[permission] ")]
    change, command = (re.sub(r"/\S*/", "", line) for line in asked)
    assert change == "[permission] write dragoman-demo.txt: allowed (--yolo allows it)"
    assert command == "[permission] run wc -l dragoman-demo.txt: allowed (--yolo allows it)"
    assert "[diff] +You asked: Improve @README.md a little" in done.stdout
    assert "[plan] 4/4" in done.stdout
    changed = done.stdout.partition("What the turn changed")[2]
    assert "\ndragoman-demo.txt\n  --- /dev/null\n" in changed
    undone = changed.partition("And undone (dragoman sessions revert try):\n")[2]
    assert undone.split("\n")[0].endswith("/dragoman-demo.txt")
    assert "Next: make run ARGS='agents add NAME -- COMMAND' adds your own agent" in done.stdout
    assert list(thrown_away.iterdir()) == []
    assert not dragoman.state.exists()
