"""Whether an agent is signed in: in both spellings, and from what happens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.clients import started, until
from support.raw_agent import RawAgent, Refusal

from dragoman import AuthRequired, AuthStatus
from dragoman.agents.sign_ins import SignInNotes

CAN: dict[str, Any] = {"auth": {"status": {}, "logout": {}}}
ACCOUNTS = [{"label": "old"}, {"label": "Ada", "active": True}]
AS_ADA = {"state": "authenticated", "accounts": ACCOUNTS}
SAID: list[tuple[str, dict[str, Any], AuthStatus | None]] = [
    ("auth/status_update", AS_ADA, AuthStatus("authenticated", "Ada")),
    ("auth/status_update", {"state": "unauthenticated"}, AuthStatus("unauthenticated")),
    ("_auth/status_update", {"authStatus": {"kind": "none"}}, AuthStatus("unauthenticated")),
    (
        "_auth/status_update",
        {"authStatus": {"kind": "account", "label": "Max", "account": {"email": "a@b.example"}}},
        AuthStatus("authenticated", "Max, a@b.example"),
    ),
    (
        "_auth/status_update",
        {"authStatus": {"kind": "api_key", "label": "API key", "detail": "env"}},
        AuthStatus("authenticated", "API key, env"),
    ),
]


@pytest.mark.parametrize(("method", "params", "status"), SAID)
async def test_what_an_agent_says_of_itself(
    method: str, params: dict[str, Any], status: AuthStatus
) -> None:
    agent = RawAgent()
    async with started(agent) as client:
        noted: list[AuthStatus] = []
        client.on_auth = noted.append
        assert client.auth is None
        for _ in range(2):
            agent.send({"method": method, "params": params})
        await until(lambda: client.auth is not None)
        assert client.auth == status
    assert noted == [status]


@pytest.mark.parametrize("params", [{}, {"authStatus": 7}, {"authStatus": {"kind": None}}, []])
async def test_nonsense_says_nothing(params: Any) -> None:
    agent = RawAgent()
    async with started(agent) as client:
        agent.send({"method": "_auth/status_update", "params": params})
        agent.send({"method": "auth/status_update", "params": {"state": "unknown"}})
        await until(lambda: client.auth is not None)
        assert client.auth is not None
        assert (client.auth.state, client.auth.signed_in) == ("unknown", None)


async def test_what_happens_says_it_too(tmp_path: Path) -> None:
    def refuse(params: Any) -> Any:
        raise Refusal(-32000, "sign in first")

    agent = RawAgent(
        CAN,
        welcome={"authMethods": [{"id": "key", "name": "Key"}]},
        auth__status=AS_ADA,
        session__new=refuse,
    )
    async with started(agent) as client:
        with pytest.raises(AuthRequired):
            await client.new_session(tmp_path)
        assert client.auth == AuthStatus("unauthenticated")
        await client.authenticate("key")
        assert client.auth == AuthStatus("authenticated")
        assert await client.auth_status() == "authenticated"
        assert client.auth == AuthStatus("authenticated", "Ada")
        await client.logout()
        assert client.auth == AuthStatus("unauthenticated")


def test_it_is_kept_for_those_who_ask_later(tmp_path: Path) -> None:
    notes = SignInNotes(tmp_path / "data" / "sign_ins.json")
    assert notes.all() == {}
    notes.note("a", AuthStatus("unauthenticated"))
    notes.note("b", AuthStatus("authenticated", "Ada"))
    notes.note("a", AuthStatus("not_required"))
    found = {name: noted.status for name, noted in notes.all().items()}
    assert found == {"a": AuthStatus("not_required"), "b": AuthStatus("authenticated", "Ada")}
    assert (tmp_path / "data" / "sign_ins.json").stat().st_mode & 0o777 == 0o600
    (tmp_path / "data" / "sign_ins.json").write_text("{")
    assert notes.all() == {}
