"""Providers of your own: files in memory, no commands, form answers from a dict."""

import asyncio
import io

import dragoman
from dragoman import (
    ElicitationAnswer,
    ElicitationRequest,
    InternalError,
    PermissionRequest,
    ResourceNotFound,
    TerminalCommand,
    TerminalExit,
    TerminalSnapshot,
    TerminalWatcher,
    Workspace,
)


class MemoryFiles:
    """Nothing the agent writes through us touches the disk."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    async def read_text_file(
        self, workspace: Workspace, path: str, *, line: int | None = None, limit: int | None = None
    ) -> str:
        if path not in self.files:
            raise ResourceNotFound(f"{path}: no such file", {"path": path})
        # Only a line feed ends a line; splitlines() would split at nine other characters.
        lines = io.StringIO(self.files[path], newline="\n").readlines()[(line or 1) - 1 :]
        return "".join(lines if limit is None else lines[:limit])

    async def write_text_file(self, workspace: Workspace, path: str, content: str) -> None:
        self.files[path] = content


class NoTerminals:
    """Refuses every command, with a reason."""

    async def create(
        self, workspace: Workspace, command: TerminalCommand, watcher: TerminalWatcher
    ) -> str:
        raise InternalError(f"{command.command}: no commands here")

    async def output(self, workspace: Workspace, terminal_id: str) -> TerminalSnapshot:
        raise ResourceNotFound(f"there is no terminal {terminal_id}")

    async def wait_for_exit(self, workspace: Workspace, terminal_id: str) -> TerminalExit:
        raise ResourceNotFound(f"there is no terminal {terminal_id}")

    async def kill(self, workspace: Workspace, terminal_id: str) -> None:
        raise ResourceNotFound(f"there is no terminal {terminal_id}")

    async def release(self, workspace: Workspace, terminal_id: str) -> None:
        pass

    async def release_all(self, workspace: Workspace) -> None:
        pass


class AllowOnce:
    """Allows everything, once."""

    async def request_permission(self, request: PermissionRequest) -> str | None:
        return next((o.id for o in request.options if o.kind == "allow_once"), None)


class AnswerFrom:
    """Fills every form from a dict."""

    def __init__(self, answers: dict[str, str]) -> None:
        self.answers = answers

    async def create_elicitation(self, request: ElicitationRequest) -> ElicitationAnswer:
        return ElicitationAnswer("accept", dict(self.answers))


async def main() -> None:
    files = MemoryFiles()
    client = dragoman.Client.start(
        "demo",
        files=files,
        terminals=NoTerminals(),
        permissions=AllowOnce(),
        elicitation=AnswerFrom({"name": "Ada"}),
    )
    async with client:
        session = await client.new_session(".")
        turn = await session.prompt("Improve this folder")
        print(turn.stop_reason, sorted(files.files))


asyncio.run(main())
