"""A client of a few lines on the HTTP API of `dragoman serve`, for the checks of conformance.

python scripts/serve_client.py AGENT [allow|load]

Permission requests are rejected, after the moment that a person takes to read them, and forms are
declined. SIGINT cancels.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

DRAGOMAN = str(Path(sys.executable).with_name("dragoman"))
SESSION = "conformance-session"
THINKING_SECONDS = 1.5


class Interrupted(Exception):
    """The person wants the turn to stop."""


class Api:
    """The server's API."""

    def __init__(self, address: str) -> None:
        base, _, token = address.partition("/#token=")
        self._base = f"{base}/api"
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def post(self, path: str, body: object) -> Any:
        data = json.dumps(body).encode()
        request = urllib.request.Request(f"{self._base}{path}", data, self._headers)
        with urllib.request.urlopen(request) as response:
            return json.loads(response.read() or b"null")

    def events(self, session: str, after: int) -> Iterator[dict[str, Any]]:
        """The events of a session, as they come."""
        url = f"{self._base}/sessions/{session}/events?after={after}"
        headers = self._headers | {"Accept": "text/event-stream"}
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as response:
            for line in response:
                if line.startswith(b"data:"):
                    yield json.loads(line[5:])


def talk(api: Api, what: str) -> int:
    session = opened(api, what)
    api.post(f"/sessions/{session}/prompt", {"text": "go"})
    after = 0
    while True:
        try:
            for event in api.events(session, after):
                after = event.get("seq", after)
                if event["type"] == "turn_ended":
                    return 1 if event.get("error") or event.get("interrupted") else 0
                take(api, session, event)
        except Interrupted:
            api.post(f"/sessions/{session}/cancel", {})


def opened(api: Api, what: str) -> str:
    if what == "load":
        imported = {"sessionId": SESSION, "cwd": os.getcwd()}
        return api.post("/agents/examined/sessions", imported)["id"]
    return api.post("/sessions", {"agent": "examined", "cwd": os.getcwd()})["id"]


def take(api: Api, session: str, event: dict[str, Any]) -> None:
    match event["type"]:
        case "agent_message":
            print(event["content"].get("text", ""), end="", flush=True)
        case "permission_requested":
            time.sleep(THINKING_SECONDS)
            rejects = [each["id"] for each in event["options"] if "reject" in each["kind"]]
            choice = {"optionId": rejects[0]}
            api.post(f"/sessions/{session}/permissions/{event['requestId']}", choice)
        case "elicitation_requested":
            declined = {"action": "decline"}
            api.post(f"/sessions/{session}/elicitations/{event['requestId']}", declined)
        case _:
            pass


def interrupt(number: int, frame: object) -> None:
    raise Interrupted


def main(agent: str, what: str) -> int:
    with tempfile.TemporaryDirectory(prefix="serve-client-") as folder:
        settings = Path(folder, "settings.json")
        settings.write_text(json.dumps({"agent_servers": {"examined": {"command": agent}}}))
        command = [DRAGOMAN, "serve", "--settings", str(settings), "--cwd", os.getcwd()]
        command += ["--yolo"] if what == "allow" else []
        home = {**os.environ, "DRAGOMAN_HOME": folder}
        server = subprocess.Popen(command, env=home, stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            said = iter(server.stdout.readline, "")
            address = next(found[0] for line in said if (found := re.search(r"http://\S+", line)))
            return talk(Api(address), what)
        except urllib.error.HTTPError as error:
            print(error.read().decode(), file=sys.stderr)
            return 1
        finally:
            server.terminate()
            server.wait()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, interrupt)
    sys.exit(main(sys.argv[1], "".join(sys.argv[2:])))
