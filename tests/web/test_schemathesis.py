"""The OpenAPI document against the running server, by a tool that makes requests of it.

The tool lives in an environment of its own in the cache, made on first use: nothing else needs it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.server_process import SECONDS, ServerProcess, server_process

VERSION = "4.32.5"
CACHE = Path(__file__).parents[2] / ".cache" / f"schemathesis-{VERSION}"
SEED = "20250611"
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "missing_required_header",
)
"""Without those that a document cannot promise: which folders and agents there are, and that what
is unknown is refused, where it is left alone. Tokens are tested with the guard."""
LEFT_OUT = (
    "get_api_events",  # does not end
    "post_api_agents_name_doctor",  # takes half a minute
    "delete_api_sessions_session_id",  # would leave nothing to ask for
)


def _tool() -> Path:
    tool = CACHE / "bin" / "schemathesis"
    if tool.exists():
        return tool
    make = [sys.executable, "-m", "venv", "--clear", str(CACHE)]
    pip = [str(CACHE / "bin" / "pip"), "install", "--quiet", "--retries", "1"]
    for command in (make, [*pip, f"schemathesis=={VERSION}"]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            why = done.stderr.strip()[-300:]
            pytest.skip(f"schemathesis {VERSION} could not be installed, without a network? {why}")
    return tool


def _session(http: httpx.Client, agent: str, text: str, status: str) -> str:
    session_id = http.post("/api/sessions", json={"agent": agent}).json()["id"]
    http.post(f"/api/sessions/{session_id}/prompt", json={"text": text})
    until = time.monotonic() + SECONDS
    while http.get(f"/api/sessions/{session_id}").json()["status"] != status:
        assert time.monotonic() < until, status
        time.sleep(0.1)
    return session_id


def _document(http: httpx.Client) -> dict[str, Any]:
    """What the server says of itself, with names of what is really there in its paths."""
    names = {
        "session_id": [
            _session(http, "demo", "What is this?", "idle"),
            _session(http, "demo", "Add a line", "waiting"),
        ],
        "chat_id": [_session(http, "steady", "10 100", "idle")],
        "name": ["demo", "steady"],
    }
    found = http.get("/api/openapi.json").json()
    for operations in found["paths"].values():
        for operation in operations.values():
            for parameter in operation["parameters"]:
                if parameter["in"] == "path" and parameter["name"] in names:
                    parameter["schema"] = {"type": "string", "enum": names[parameter["name"]]}
    return found


def _examined(server: ServerProcess, document: Path, examples: int) -> str:
    """What the tool has to say; empty when it found nothing."""
    words = [
        *(str(_tool()), "run", str(document), "--url", server.origin, "--seed", SEED),
        *("--header", f"Authorization: Bearer {server.token}", "--checks", ",".join(CHECKS)),
        *("--max-examples", str(examples), "--request-timeout", "30", "--no-color"),
        *("--phases", "coverage,fuzzing", "--continue-on-failure"),
        *("--generation-database", "none", "--warnings", "off"),
        *(word for name in LEFT_OUT for word in ("--exclude-operation-id", name)),
    ]
    (server.home / "schemathesis.toml").touch()  # else it looks for one in the folders above
    done = subprocess.run(
        words, cwd=server.home, capture_output=True, text=True, timeout=1500, check=False
    )
    assert "Test cases:" in done.stdout, done.stdout + done.stderr
    return done.stdout if done.returncode else ""


@pytest.mark.soak
def test_the_server_does_what_its_document_says(tmp_path: Path) -> None:
    _tool()
    with server_process(tmp_path) as server:
        document = tmp_path / "openapi.json"
        with server.http as http:
            document.write_text(json.dumps(_document(http)))
        if faults := _examined(server, document, 30):
            pytest.fail(faults, pytrace=False)
        assert " 500 " not in server.errors.read_text()
