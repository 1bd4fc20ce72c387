"""Mentions in a prompt, as they go to the agent."""

from __future__ import annotations

from typing import Any

from support.command import Dragoman


def prompt_sent(dragoman: Dragoman, text: str) -> list[dict[str, Any]]:
    done = dragoman("-j", text, agent="quiet")
    return next(f["params"]["prompt"] for f in done.frames if f.get("method") == "session/prompt")


def test_mentions_become_links_and_the_text_stays_as_typed(dragoman: Dragoman) -> None:
    text = (
        'Review @lib/client.zzz, @"my notes.txt" and @https://example.com/spec.txt '
        "for me@example.com (see @~/plan.md)."
    )
    workspace, home = dragoman.workspace, dragoman.home
    assert prompt_sent(dragoman, text) == [
        {"type": "text", "text": text},
        {
            "type": "resource_link",
            "name": "lib/client.zzz",
            "uri": f"file://{workspace}/lib/client.zzz",
        },
        {
            "type": "resource_link",
            "name": "my notes.txt",
            "uri": f"file://{workspace}/my%20notes.txt",
            "mimeType": "text/plain",
        },
        {
            "type": "resource_link",
            "name": "https://example.com/spec.txt",
            "uri": "https://example.com/spec.txt",
            "mimeType": "text/plain",
        },
        {
            "type": "resource_link",
            "name": "~/plan.md",
            "uri": f"file://{home}/plan.md",
            "mimeType": "text/markdown",
        },
    ]


def test_an_address_and_a_nickname_are_no_mentions(dragoman: Dragoman) -> None:
    text = "ask @alice or bob@example.com"
    assert prompt_sent(dragoman, text) == [{"type": "text", "text": text}]


def test_a_file_that_is_not_there_is_warned_of_and_the_prompt_sent_as_typed(
    dragoman: Dragoman,
) -> None:
    (dragoman.workspace / "there.txt").touch()
    done = dragoman("-o", "simple", "explain @nofile.txt and @there.txt", agent="quiet")
    assert done.code == 0
    assert done.err == "dragoman: @nofile.txt: no such file; sent as a link anyway\n"


def test_of_files_on_another_machine_none_is_said_to_be_missing(dragoman: Dragoman) -> None:
    done = dragoman("--files", "there", "-o", "simple", "explain @nofile.txt", agent="quiet")
    assert (done.code, done.err) == (0, "")
