"""`dragoman sessions handoff`: another agent continues, in a turn that is shown like any other."""

from __future__ import annotations

import json

from support.command import Dragoman


def test_another_agent_continues_in_the_same_folder(user: Dragoman) -> None:
    assert user("-a", "memo", "--session", "fix", "--keep-warm", "0", "hello").code == 0
    done = user("sessions", "handoff", "fix", "-a", "lethe", "--prompt", "finish it")
    assert done.code == 0, done.err
    listed = json.loads(user("sessions", "list", "--json").out)
    ids = {session["agent"]: session["id"] for session in listed}
    assert {session["cwd"] for session in listed} == {listed[0]["cwd"]}
    assert f"handed off to session {ids['lethe']} of lethe" in user("sessions", "show", "fix").out
    shown = user("sessions", "show", ids["lethe"]).out
    assert f"continues session {ids['memo']} of memo" in shown
    assert "> hello" in shown


def test_what_cannot_be_handed_off_is_said_in_a_line(user: Dragoman) -> None:
    missing = user("sessions", "handoff", "none", "-a", "lethe")
    assert (missing.code, missing.err.count("\n")) == (4, 1)
    assert user("-a", "memo", "--session", "fix", "--keep-warm", "0", "hello").code == 0
    unknown = user("sessions", "handoff", "fix", "-a", "nobody")
    assert (unknown.code, unknown.out) == (2, "")
    assert len(json.loads(user("sessions", "list", "--json").out)) == 1
    assert user("sessions", "handoff", "fix").code == 2
