"""What a session says, in a file to share: without secrets, and without a server."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from support.command import Dragoman, refused

TOKEN = "ghp_" + "aB3dE6gH9j" * 4
PASSWORD = "correct-horse-battery"


@pytest.fixture
def fix(user: Dragoman) -> Dragoman:
    """A user with a session in which secrets were said."""
    said = f"push with {TOKEN}, the rest is {PASSWORD} <script>alert(1)</script>"
    assert user("--session", "fix", said).code == 0
    return user


def export(user: Dragoman, *words: str, **variables: str) -> str:
    done = user("sessions", "export", "fix", *words, env=variables)
    assert done.code == 0, done
    return done.out


@pytest.mark.parametrize("form", ["html", "md", "jsonl"])
def test_secrets_are_removed_from_every_form(fix: Dragoman, form: str) -> None:
    out = export(fix, "--format", form, "--redact", DEPLOY_PASSWORD=PASSWORD)
    assert TOKEN not in out
    assert PASSWORD not in out
    assert "[removed: GitHub token]" in out
    assert "[removed: value of DEPLOY_PASSWORD]" in out


def test_only_html_is_redacted_unless_someone_says_so(fix: Dragoman) -> None:
    assert TOKEN in export(fix)
    assert TOKEN in export(fix, "--format", "md")
    assert TOKEN not in export(fix, "--html")
    assert TOKEN in export(fix, "--html", "--no-redact")


def test_values_in_the_settings_are_removed(fix: Dragoman) -> None:
    settings = {"agent_servers": {"a": {"command": "x", "env": {"A_TOKEN": PASSWORD}}}}
    path = fix.home / "other.json"
    path.write_text(json.dumps(settings))
    assert "[removed: value of A_TOKEN]" in export(fix, "--html", "--settings", str(path))


def test_the_person_is_told_what_was_removed(fix: Dragoman, tmp_path: Path) -> None:
    file = tmp_path / "fix.html"
    done = fix("sessions", "export", "fix", "-o", str(file))
    assert done.code == 0
    assert "removed: GitHub token (" in done.err
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert TOKEN not in file.read_text()


def test_a_review_lists_what_would_be_removed_and_writes_nothing(
    fix: Dragoman, tmp_path: Path
) -> None:
    file = tmp_path / "fix.html"
    done = fix("sessions", "export", "fix", "-o", str(file), "--review")
    assert (done.code, done.out) == (0, "GitHub token: ghp_… (44 characters)\n")
    assert "would be removed" in done.err
    assert not file.exists()


def test_an_imported_redacted_session_is_a_session(fix: Dragoman) -> None:
    other = {"DRAGOMAN_HOME": str(fix.home / "other")}
    done = fix("sessions", "import", "-", stdin=export(fix, "--redact"), env=other)
    assert done.code == 0, done
    shown = fix("sessions", "show", done.out.strip(), env=other).out
    assert "[removed: GitHub token]" in shown


def test_nothing_that_was_said_ends_the_element_it_is_in(fix: Dragoman) -> None:
    out = export(fix, "--html")
    assert out.count("</script>") == 2  # the data, and the viewer
    assert "<script>alert" not in out


def test_a_file_that_cannot_be_written_is_refused(fix: Dragoman) -> None:
    path = str(fix.home / "none" / "fix.html")
    refused(fix("sessions", "export", "fix", "-o", path), path)
