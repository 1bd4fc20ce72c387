"""What `dragoman proxy` passes on, frame by frame: word for word, whoever conducts the chain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.chains import relay
from support.peers import Wire

WELCOME = {"protocolVersion": 1, "agentInfo": {"name": "it", "version": "1"}, "odd": [1.50, "é"]}
NAMES = [("proxy/initialize", "proxy/successor"), ("_proxy/initialize", "_proxy/successor")]


def frame(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode()


async def greeted(wire: Wire, initialize: str = "proxy/initialize") -> dict[str, Any]:
    """What reaches the successor of the greeting, once it is answered."""
    params = {"protocolVersion": 1, "clientCapabilities": {"odd": {"a": [1]}}}
    wire.write(frame(id="greeting", method=initialize, params=params))
    asked = await wire.read_json()
    wire.write(frame(id=asked["id"], result=WELCOME))
    assert await wire.read_json() == {"jsonrpc": "2.0", "id": "greeting", "result": WELCOME}
    return asked


@pytest.mark.parametrize(("initialize", "successor"), NAMES)
async def test_it_is_greeted_and_greets_its_successor(
    tmp_path: Path, initialize: str, successor: str
) -> None:
    async with relay(tmp_path) as here, here.conductor() as wire:
        asked = await greeted(wire, initialize)
        assert asked["method"] == successor
        assert asked["params"]["method"] == "initialize"
        assert asked["params"]["params"]["clientCapabilities"] == {"odd": {"a": [1]}}


async def test_params_pass_byte_for_byte_in_both_directions(tmp_path: Path) -> None:
    odd = b'{"b":1.50,"a":"\\u00e9","sessionId":"none","n":12345678901234567890}'
    async with relay(tmp_path) as here, here.conductor() as wire:
        await greeted(wire)
        wire.write(b'{"jsonrpc":"2.0","method":"_odd/note","params":%b}' % odd)
        said = await wire.read()
        assert said.endswith(
            b'"method":"proxy/successor","params":{"method":"_odd/note","params":%b}}' % odd
        )
        wire.write(
            b'{"jsonrpc":"2.0","method":"proxy/successor",'
            b'"params":{"method":"session/update","params":%b}}' % odd
        )
        assert (await wire.read()).endswith(b'"method":"session/update","params":%b}' % odd)


@pytest.mark.parametrize("key", ["7", '"seven"', "7.0", "null", "12345678901234567890123"])
async def test_a_request_of_either_side_is_answered_under_its_own_id(
    tmp_path: Path, key: str
) -> None:
    async with relay(tmp_path) as here, here.conductor() as wire:
        await greeted(wire)
        for wrapped in (False, True):
            inner = '"method":"_odd/call","params":{"x":1}'
            outer = f'"method":"proxy/successor","params":{{{inner}}}'
            wire.write(f'{{"jsonrpc":"2.0","id":{key},{outer if wrapped else inner}}}'.encode())
            asked = await wire.read_json()
            assert asked["method"] == ("_odd/call" if wrapped else "proxy/successor")
            wire.write(frame(id=asked["id"], result={"y": [1]}))
            assert (await wire.read()).startswith(f'{{"jsonrpc":"2.0","id":{key},'.encode())


async def test_an_error_passes_with_its_code_and_its_data(tmp_path: Path) -> None:
    error = {"code": -32042, "message": "odd", "data": {"why": ["x"]}}
    async with relay(tmp_path) as here, here.conductor() as wire:
        await greeted(wire)
        wire.write(frame(id=1, method="session/new", params={"cwd": "/", "mcpServers": []}))
        asked = await wire.read_json()
        wire.write(frame(id=asked["id"], error=error))
        assert await wire.read_json() == {"jsonrpc": "2.0", "id": 1, "error": error}


async def test_a_request_that_is_given_up_is_given_up_on_the_other_side(tmp_path: Path) -> None:
    async with relay(tmp_path) as here, here.conductor() as wire:
        await greeted(wire)
        wire.write(frame(id="mine", method="_slow", params={}))
        asked = await wire.read_json()
        wire.write(frame(method="$/cancel_request", params={"requestId": "mine"}))
        given_up = await wire.read_json()
        assert given_up["method"] == "$/cancel_request"
        assert given_up["params"] == {"requestId": asked["id"]}
        wire.write(frame(id=asked["id"], error={"code": -32800, "message": "cancelled"}))
        assert (await wire.read_json())["error"]["code"] == -32800


async def test_a_server_of_the_client_over_acp_passes_untouched(tmp_path: Path) -> None:
    server = {"type": "acp", "name": "tools", "id": "server-1"}
    async with relay(tmp_path) as here, here.conductor() as wire:
        await greeted(wire)
        params = {"cwd": str(tmp_path), "mcpServers": [server]}
        wire.write(frame(id=1, method="session/new", params=params))
        asked = await wire.read_json()
        assert asked["params"]["params"] == params
        wire.write(frame(id=asked["id"], result={"sessionId": "s1"}))
        assert (await wire.read_json())["result"] == {"sessionId": "s1"}
        message = {"serverId": "server-1", "method": "tools/list"}
        inner = {"method": "mcp/message", "params": message}
        wire.write(frame(id=2, method="proxy/successor", params=inner))
        told = await wire.read_json()
        assert (told["method"], told["params"]) == ("mcp/message", message)


async def test_one_that_is_started_as_an_agent_says_that_it_is_none(tmp_path: Path) -> None:
    async with relay(tmp_path) as here, here.conductor() as wire:
        wire.write(frame(id=1, method="initialize", params={"protocolVersion": 1}))
        error = (await wire.read_json())["error"]
        assert error["code"] == -32600
        assert "proxy/initialize" in error["message"]


@pytest.mark.parametrize(
    "line", [b"[]", b"42", b"{", b'{"jsonrpc":"2.0","method":"proxy/successor","params":{}}']
)
async def test_what_it_cannot_read_it_survives(tmp_path: Path, line: bytes) -> None:
    async with relay(tmp_path) as here, here.conductor() as wire:
        await greeted(wire)
        wire.write(line)
        wire.write(frame(method="_after", params={}))
        assert (await wire.read_json())["params"]["method"] == "_after"


async def test_what_it_cannot_understand_passes_all_the_same(tmp_path: Path) -> None:
    """Only the record lacks it."""
    async with relay(tmp_path) as here, here.conductor() as wire:
        await greeted(wire)
        for method in ("session/update", "session/request_permission", "fs/write_text_file"):
            inner = {"method": method, "params": {"sessionId": 7}}
            wire.write(frame(id=method, method="proxy/successor", params=inner))
            told = await wire.read_json()
            assert (told["method"], told["params"]) == (method, {"sessionId": 7})
            wire.write(frame(id=told["id"], result={}))
            assert (await wire.read_json())["id"] == method
