"""`dragoman proxy` as a process in a chain."""

from __future__ import annotations

import json
import shlex

from support.command import COMMAND, Dragoman

AS_PROXY = shlex.join([str(COMMAND), "proxy", "-a", "demo"])


def test_a_chain_with_it_leaves_a_session(dragoman: Dragoman) -> None:
    done = dragoman("--no-store", "--yolo", "--proxy", AS_PROXY, "do something")
    assert done.code == 0, done.err
    assert "[plan] 4/4" in done.out
    [session] = json.loads(dragoman("sessions", "list", "--json").out)
    assert (session["agent"], session["status"]) == ("demo", "idle")
    assert "What I did" in dragoman("sessions", "show", session["id"]).out


def test_a_rule_of_its_own_counts_more_than_a_yes_of_the_client(dragoman: Dragoman) -> None:
    rules = dragoman.workspace / "rules.json"
    rules.write_text('{"rules": [{"effect": "deny", "operation": "write"}]}')
    proxy = f"{AS_PROXY} --policy {shlex.quote(str(rules))}"
    dragoman("--no-store", "--yolo", "--proxy", proxy, "do something")
    assert not (dragoman.workspace / "dragoman-demo.txt").exists()


def test_a_file_of_rules_that_cannot_be_read_is_a_usage_error(dragoman: Dragoman) -> None:
    done = dragoman("proxy", "--policy", "missing.json")
    assert done.code == 2
    assert "missing.json" in done.err
