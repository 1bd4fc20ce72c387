"""The library without `async`: one prompt in one call, and a session in a thread of its own.

For scripts, and for notebooks, whose cells run inside an event loop of their own.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine, Generator, Mapping
from concurrent.futures import CancelledError
from typing import Any, TypeVar, overload

from dragoman.client.capabilities import AgentInfo
from dragoman.client.client import Client
from dragoman.client.client_options import HostCapabilities, Timeouts
from dragoman.client.sessions.prompts import PromptInput
from dragoman.client.sessions.session import Session
from dragoman.client.sessions.turn import Turn
from dragoman.errors import ConnectionClosed
from dragoman.host.forms.elicitation import ElicitationProvider
from dragoman.host.permissions.questions import PermissionsProvider
from dragoman.host.rules.policy import Policy
from dragoman.results.wanted_result import RETRIES
from dragoman.session.events import Event
from dragoman.session.state import SessionState
from dragoman.transport.stdio import AgentCommand
from dragoman.transport.target import RemoteAgent, agent_name
from dragoman.transport.transport import Transport

T = TypeVar("T")

Agent = str | AgentCommand | RemoteAgent | Transport


class SyncSession:
    """One conversation with an agent, for programs that are not asynchronous, and for notebooks.

    The agent is served by a thread of its own, so that it is answered while the program does
    something else. Use it as a context manager, or `close` it.

        with dragoman.SyncSession.start("demo") as session:
            print(session.prompt("Explain @README.md").text)
    """

    id: str
    """The agent's id for the session."""
    agent_info: AgentInfo
    """The agent's own name and version."""

    def __init__(self, thread: _LoopThread, client: Client, session: Session) -> None:
        self._thread = thread
        self._client = client
        self._session = session
        self.id = session.id
        self.agent_info = client.agent_info

    @classmethod
    def start(
        cls,
        agent: Agent = "demo",
        cwd: str | os.PathLike[str] = ".",
        *,
        session_id: str | None = None,
        policy: Policy | None = None,
        permissions: PermissionsProvider | None = None,
        elicitation: ElicitationProvider | None = None,
        timeouts: Timeouts | None = None,
        results: bool | type[Any] | Mapping[str, Any] = False,
    ) -> SyncSession:
        """Start `agent` and open a session in the folder `cwd`: a new one, or the one of this
        `session_id`. What `policy` leaves open goes to `permissions`, else it is refused; providers
        are called in the thread of the session. With `results`, the agent gets a tool for `ask`, as
        in `SessionOptions`.

        Raises what `Client.start`, `Client.new_session` and `Client.ensure_session` raise.
        """
        rules = policy or Policy()
        can_ask = permissions is not None
        can_write = rules.could_allow("write", agent=agent_name(agent), person=can_ask)

        async def opened() -> tuple[Client, Session]:
            client = Client.start(
                agent,
                policy=rules,
                capabilities=HostCapabilities(write_files=can_write),
                permissions=permissions,
                elicitation=elicitation,
                timeouts=timeouts,
                questions="refuse",
            )
            await client.__aenter__()
            try:
                return client, await client.ensure_session(session_id, cwd, results=results)
            except BaseException:
                await client.aclose()
                raise

        thread = _LoopThread()
        try:
            return cls(thread, *thread.call(opened()))
        except BaseException:
            thread.end()
            raise

    def __enter__(self) -> SyncSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<SyncSession of {self._session!r}>"

    @property
    def state(self) -> SessionState:
        """The fold of all events; it may change while it is read, as the agent works."""
        return self._session.state

    def prompt(self, prompt: PromptInput, *, timeout: float | None = None) -> Turn:
        """Send a prompt and wait for the end of its turn, which has the answer as `text`.

        `timeout` ends the turn with NoProgress if the agent makes no progress for that long. Ctrl-C
        cancels the turn. Raises what `Session.prompt` and awaiting a turn raise.
        """

        async def run() -> Turn:
            return await self._session.prompt(prompt, timeout=timeout)

        return self._thread.call(run())

    @overload
    def ask(
        self,
        prompt: PromptInput,
        *,
        output: type[T],
        retries: int = RETRIES,
        timeout: float | None = None,
    ) -> T: ...
    @overload
    def ask(
        self,
        prompt: PromptInput,
        *,
        output: Mapping[str, Any],
        retries: int = RETRIES,
        timeout: float | None = None,
    ) -> Any: ...
    @overload
    def ask(self, prompt: PromptInput, *, timeout: float | None = None) -> str: ...
    def ask(
        self,
        prompt: PromptInput,
        *,
        output: Any = None,
        retries: int = RETRIES,
        timeout: float | None = None,
    ) -> Any:
        """Send a prompt and return the answer as a value of the type `output`, as `Session.ask`
        does. Raises what that raises."""
        return self._thread.call(
            self._session.ask(prompt, output=output, retries=retries, timeout=timeout)
        )

    def stream(self, prompt: PromptInput, *, timeout: float | None = None) -> Generator[Event]:
        """Send a prompt and yield the events of its turn. Leaving the loop early cancels the turn.

        Raises what `prompt` raises.
        """

        async def begin() -> Turn:
            return self._session.prompt(prompt, timeout=timeout)

        async def following(turn: Turn) -> Event | None:
            return await anext(turn, None)

        turn = self._thread.call(begin())
        try:
            while (event := self._thread.call(following(turn))) is not None:
                yield event
        finally:
            if not turn.done:
                self._thread.call(turn.cancel())

    def cancel(self) -> None:
        """Stop the running turn, from any thread, and wait for the agent to end it."""
        self._thread.call(self._session.cancel())

    def close(self) -> None:
        """End the session and the agent. Nothing happens the second time."""
        if self._thread.is_running:
            try:
                self._thread.call(self._client.aclose())
            finally:
                self._thread.end()


class _LoopThread:
    """A thread with an event loop; it does not keep the program from ending."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="dragoman", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        return not self._loop.is_closed()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Have it done there, and wait for it. Interrupted, it is cancelled."""
        if self._loop.is_closed():
            work.close()
            raise ConnectionClosed("the session was closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except CancelledError:
            raise ConnectionClosed("the session was closed") from None
        except KeyboardInterrupt:
            future.cancel()
            raise

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.get_loop().run_forever()


def run(
    prompt: PromptInput,
    *,
    agent: Agent = "demo",
    cwd: str | os.PathLike[str] = ".",
    policy: Policy | None = None,
    timeout: float | None = None,
) -> Turn:
    """Send one prompt in a new session, and return the finished turn; its `text` is the answer.

    What the policy leaves open is refused. `timeout` ends the turn with NoProgress if the agent
    makes no progress for that long. Works in notebooks, too; in other asynchronous code it would
    block the event loop: use `Client.start` there. Raises what `Client.start` and the turn raise.
    """
    with SyncSession.start(agent, cwd, policy=policy) as session:
        return session.prompt(prompt, timeout=timeout)


def run_prompt(
    prompt: str,
    *,
    agent: str | AgentCommand | RemoteAgent = "demo",
    cwd: str | os.PathLike[str] = ".",
    policy: Policy | None = None,
) -> str:
    """The text of the answer to one prompt; the same as `run(…).text`."""
    return run(prompt, agent=agent, cwd=cwd, policy=policy).text


@overload
def ask(
    prompt: PromptInput,
    *,
    output: type[T],
    agent: Agent = "demo",
    cwd: str | os.PathLike[str] = ".",
    policy: Policy | None = None,
    retries: int = RETRIES,
    timeout: float | None = None,
) -> T: ...
@overload
def ask(
    prompt: PromptInput,
    *,
    output: Mapping[str, Any],
    agent: Agent = "demo",
    cwd: str | os.PathLike[str] = ".",
    policy: Policy | None = None,
    retries: int = RETRIES,
    timeout: float | None = None,
) -> Any: ...
@overload
def ask(
    prompt: PromptInput,
    *,
    agent: Agent = "demo",
    cwd: str | os.PathLike[str] = ".",
    policy: Policy | None = None,
    timeout: float | None = None,
) -> str: ...
def ask(
    prompt: PromptInput,
    *,
    output: Any = None,
    agent: Agent = "demo",
    cwd: str | os.PathLike[str] = ".",
    policy: Policy | None = None,
    retries: int = RETRIES,
    timeout: float | None = None,
) -> Any:
    """Send one prompt in a new session, and return the answer as a value of the type `output`, as
    `Session.ask` does; the text of the answer without one.

    The agent gets a tool to submit the result, if it can use MCP servers of this process. What the
    policy leaves open is refused. Works where an event loop runs already, such as in notebooks, and
    blocks it meanwhile: in asynchronous programs, use `Session.ask`. Raises what `Client.start` and
    `Session.ask` raise.
    """
    if output is None:
        return run(prompt, agent=agent, cwd=cwd, policy=policy, timeout=timeout).text
    with SyncSession.start(agent, cwd, policy=policy, results=output) as session:
        return session.ask(prompt, output=output, retries=retries, timeout=timeout)
