"""Runs the doctor: starts an agent in a scratch folder or connects to it, checks it, and ends it.

Each check stands alone: one that fails does not end the examination, unless the agent is gone.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TypeAlias

from dragoman.agents.doctor import checks
from dragoman.agents.doctor.examined_agent import (
    CheckOutcome,
    Finding,
    Patient,
    Report,
    failed,
    passed,
    skipped,
)
from dragoman.errors import DragomanError, MethodNotFound
from dragoman.schema.model import Unknown
from dragoman.transport.stdio import AgentCommand
from dragoman.transport.target import RemoteAgent, name_of

Check: TypeAlias = Callable[[Patient], Awaitable[CheckOutcome]]

_BASICS: tuple[tuple[str, Check], ...] = (
    ("handshake", checks.handshake),
    ("version", checks.version),
    ("capabilities", checks.capabilities),
    ("session", checks.new_session),
)
_TURNS: tuple[tuple[str, Check], ...] = (
    ("prompt", checks.prompt),
    ("cancel", checks.cancel),
    ("modes", checks.modes),
)
_ADVERTISED: tuple[tuple[str, Check], ...] = (
    ("list", checks.list_sessions),
    ("fork", checks.fork),
    ("close", checks.close),
)
# In a second process, as when someone comes back the next day.
_LATER: tuple[tuple[str, Check], ...] = (
    ("load", checks.load),
    ("resume", checks.resume),
    ("delete", checks.delete),
)
_MANNERS: tuple[tuple[str, Check], ...] = (
    ("unknown method", checks.unknown_method),
    ("unknown session", checks.unknown_session),
    ("broken line", checks.broken_line),
)
_AFTERMATH: tuple[tuple[str, Check], ...] = (
    ("requests", checks.requests),
    ("output", checks.clean_output),
)
_PROCESS: tuple[tuple[str, Check], ...] = (
    ("complaints", checks.complaints),
    ("exit", checks.leaving),
    ("nothing left", checks.nothing_left),
)


_ELSEWHERE = "/tmp"
"""A folder that there is on the other machine too; a scratch folder is only here."""


async def examine(
    agent: AgentCommand | RemoteAgent,
    *,
    name: str,
    seconds: float = 60.0,
    told: Callable[[Finding], None] = lambda finding: None,
) -> Report:
    """The report on an agent; `told` hears of each finding as it is made, `seconds` bounds each."""
    report = Report(agent=name, command=name_of(agent))
    doctor = _Doctor(report, agent, seconds, told)
    with tempfile.TemporaryDirectory(prefix="dragoman-doctor-") as folder:
        await doctor.examine(folder if agent.files == "here" else _ELSEWHERE)
    return report


class _Doctor:
    def __init__(
        self,
        report: Report,
        agent: AgentCommand | RemoteAgent,
        seconds: float,
        told: Callable[[Finding], None],
    ) -> None:
        self._report = report
        self._agent = agent
        self._seconds = seconds
        self._told = told

    async def examine(self, folder: str) -> None:
        patient = await self._admit(folder)
        if patient is None:
            return
        try:
            if isinstance(self._agent, RemoteAgent):
                await self._look_at_the_door(self._agent, patient)
            await self._go_through(patient)
        finally:
            await patient.discharge()
        await self._come_back(patient)

    async def _admit(self, folder: str, again: str = "") -> Patient | None:
        start, is_remote = time.monotonic(), isinstance(self._agent, RemoteAgent)
        check = f"{'reach' if is_remote else 'start'}{again}"
        try:
            async with asyncio.timeout(self._seconds):
                patient = await Patient.admit(self._agent, folder)
        except TimeoutError:
            self._note(check, failed(f"no answer within {self._seconds:g} s"), start)
            return None
        except DragomanError as error:
            self._note(check, failed(str(error)), start)
            return None
        self._note(check, passed("connected" if is_remote else "the process started"), start)
        return patient

    async def _look_at_the_door(self, agent: RemoteAgent, patient: Patient) -> None:
        self._note("encryption", checks.encryption(agent), time.monotonic())
        await self._check("strangers", partial(_strangers, agent), patient)

    async def _go_through(self, patient: Patient) -> None:
        for name, check in _BASICS:
            await self._check(name, check, patient)
        self._keep_welcome(patient)
        for name, check in _TURNS:
            await self._check(name, check, patient, needs_session=True)
        for name, check in _ADVERTISED:
            await self._check_if_advertised(name, check, patient)
        for name, check in _MANNERS:
            await self._check(name, check, patient)
        for name, check in _AFTERMATH:
            await self._check(name, check, patient, needs_connection=False)
        for name, check in _PROCESS:
            if patient.process is None:
                self._note(name, skipped("the agent is remote"), time.monotonic())
            else:
                await self._check(name, check, patient, needs_connection=False)

    async def _come_back(self, before: Patient) -> None:
        patient = before
        if before.session is not None and any(checks.offers(before, name) for name, _ in _LATER):
            again = await self._admit(before.cwd, " again")
            if again is None:
                return
            patient = again
        try:
            if patient is not before:
                await self._check("handshake again", checks.handshake, patient)
                patient.session, patient.forked = before.session, before.forked
            for name, check in _LATER:
                await self._check_if_advertised(name, check, patient)
        finally:
            await patient.discharge()

    async def _check_if_advertised(self, name: str, check: Check, patient: Patient) -> None:
        if checks.offers(patient, name):
            await self._check(name, check, patient, needs_session=True)
        else:
            self._note(name, skipped("not advertised"), time.monotonic())

    async def _check(
        self,
        name: str,
        check: Check,
        patient: Patient,
        *,
        needs_session: bool = False,
        needs_connection: bool = True,
    ) -> None:
        start = time.monotonic()
        if needs_session and patient.session is None:
            self._note(name, skipped("no session"), start)
        elif needs_connection and patient.peer.error is not None:
            self._note(name, skipped("the agent has exited"), start)
        else:
            lingered = patient.lingered
            outcome = await self._graded(check, patient)
            self._note(name, outcome, start + patient.lingered - lingered)

    async def _graded(self, check: Check, patient: Patient) -> CheckOutcome:
        try:
            async with asyncio.timeout(self._seconds):
                return await check(patient)
        except TimeoutError:
            return failed(f"no answer within {self._seconds:g} s")
        except MethodNotFound as error:
            return failed(f"advertised or required, but missing: {error}")
        except DragomanError as error:
            return failed(str(error))

    def _note(self, name: str, outcome: CheckOutcome, start: float) -> None:
        seconds = max(0.0, round(time.monotonic() - start, 3))
        finding = Finding(check=name, grade=outcome.grade, text=outcome.text, seconds=seconds)
        self._report.findings.append(finding)
        self._told(finding)

    def _keep_welcome(self, patient: Patient) -> None:
        welcome, raw = patient.welcome, patient.raw_welcome
        self._report.wants_sign_in = patient.wants_sign_in
        self._report.agent_info = raw.get("agentInfo") or {}
        self._report.protocol_version = welcome.protocol_version
        self._report.capabilities = raw.get("agentCapabilities") or {}
        self._report.auth_methods = [
            method.id for method in welcome.auth_methods if not isinstance(method, Unknown)
        ]


async def _strangers(agent: RemoteAgent, patient: Patient) -> CheckOutcome:
    return await checks.strangers(agent, patient.cwd)
