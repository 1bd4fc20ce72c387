"""The examples in docs/reference/http.md run as printed, and so does the app in examples/."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import httpx
from support.ai_sdk_judge import FOLDER, node
from support.server_process import free_port

ROOT = Path(__file__).parents[2]
SECONDS = 60.0
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def _shell(blocks: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """All of them in one shell that gives up at the first thing that fails."""
    # -f: an error that the server answers with is a failure of the example.
    script = "\n".join(["set -euo pipefail", 'curl() { command curl -f "$@"; echo; }', *blocks])
    binaries = str(Path(sys.executable).parent)
    (private := folder / "private").mkdir()
    return subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env={
            "PATH": f"{binaries}:{os.environ['PATH']}",
            "HOME": str(folder),
            "DRAGOMAN_HOME": str(folder / "state"),
            "TMPDIR": str(private),
        },
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def test_the_curl_examples_run_as_printed(tmp_path: Path) -> None:
    blocks = _BLOCK.findall((ROOT / "docs" / "reference" / "http.md").read_text())
    assert sum(block.count("curl ") for block in blocks) >= 25
    done = _shell(blocks, tmp_path)
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-2000:]
    [log_file] = (tmp_path / "private").glob("*/log")
    log = log_file.read_text()
    assert "Traceback" not in log
    statuses = {line.split()[4] for line in log.strip().split("\n")}
    assert statuses <= {"200", "201", "202", "204"}
    assert '"type":"permission_requested"' in done.stdout
    assert "data: [DONE]" in done.stdout
    assert json.loads((tmp_path / "openapi.json").read_text())["openapi"] == "3.1.0"
    assert '"dragoman":2' in (tmp_path / "session.jsonl").read_text()


@contextmanager
def _app(folder: Path) -> Generator[str]:
    port = free_port()
    words = ["-m", "uvicorn", "chat_app:app", "--app-dir", str(ROOT / "examples")]
    process = subprocess.Popen(
        [sys.executable, *words, "--port", str(port), "--log-level", "warning"],
        env=os.environ | {"CHAT_FOLDER": str(folder), "DRAGOMAN_HOME": str(folder / "home")},
    )
    try:
        origin = f"http://127.0.0.1:{port}"
        _wait_for(origin)
        yield origin
    finally:
        process.terminate()
        process.wait(SECONDS)


def _wait_for(origin: str) -> None:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        try:
            httpx.get(origin, trust_env=False)
        except httpx.TransportError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the app did not start")


def test_the_app_in_the_examples_answers_an_unmodified_client(tmp_path: Path) -> None:
    program = Path(__file__).parent / "programs" / "chat.mjs"
    with _app(tmp_path) as origin:
        scenario = {
            "sdk": str(FOLDER / "node_modules"),
            "ai": 7,
            "api": f"{origin}/api/chat",
            "token": "",
            "chatId": "chat-1",
            "prompt": "Add a line to the notes",
            "answers": [{"approved": True}] * 2,
        }
        done = subprocess.run(
            [node(), program],
            input=json.dumps(scenario).encode(),
            capture_output=True,
            timeout=SECONDS,
            check=True,
        )
        ended = json.loads(done.stdout)
        assert (ended["status"], ended["error"], ended["requests"]) == ("ready", None, 3)
        assert (tmp_path / "dragoman-demo.txt").exists()
