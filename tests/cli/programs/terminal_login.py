"""An agent one signs in to by running it with --login in a terminal; a file remembers that."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from dragoman.errors import AuthRequired
from dragoman.schema import v1
from dragoman.testing import AgentSession, ScriptedAgent
from dragoman.testing.steps import say

TOKEN = Path(os.environ["HOME"], "token")
signed_in = TOKEN.exists()  # like many, it looks when it starts and never again


class Guarded(ScriptedAgent):
    def new_session(self, cwd: str, additional_directories: list[str]) -> AgentSession:
        if not signed_in:
            raise AuthRequired("not signed in")
        return super().new_session(cwd, additional_directories)


def log_in() -> int:
    if input(f"code for {os.environ['WHO']}? ") != "1234":
        return 3
    TOKEN.touch()
    return 0


method = v1.AuthMethodTerminal(id="term", name="Log in here", args=["--login"], env={"WHO": "Ada"})
agent = Guarded([say("it knows you")], auth_methods=[method])

if __name__ == "__main__":
    sys.exit(log_in() if "--login" in sys.argv else agent.serve_stdio())
