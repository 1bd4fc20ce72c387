"""Runs the doctor: starts an agent in a scratch folder or connects to it, checks it, and ends it.

Each finding stands alone: one that fails does not end the examination, unless the agent is gone.
"""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial

from dragoman.conformance.catalogue import find
from dragoman.conformance.check import CheckFailed, NoResponse, NotApplicable
from dragoman.conformance.doctor import front_door
from dragoman.conformance.doctor.doctor_report import (
    CheckOutcome,
    Finding,
    Report,
    failed,
    passed,
    skipped,
    warned,
)
from dragoman.conformance.doctor.patient import Patient
from dragoman.conformance.doctor.selection import (
    BASICS,
    ENDS,
    GREETING,
    LATER,
    Selected,
    count,
    is_offered_later,
)
from dragoman.conformance.examination.agent_examination import goes_by_line, way_in
from dragoman.conformance.probing.loose_json import obj, objects
from dragoman.errors import DragomanError
from dragoman.safe_text import single_line
from dragoman.transport.stdio import AgentCommand
from dragoman.transport.target import RemoteAgent, name_of

_ELSEWHERE = "/tmp"
"""A folder that there is on the other machine too; a scratch folder is only here."""
_WORDS = 160


async def examine(
    agent: AgentCommand | RemoteAgent,
    *,
    name: str,
    seconds: float = 60.0,
    told: Callable[[Finding], None] = lambda finding: None,
) -> Report:
    """The report on an agent; `told` hears of each finding as it is made, and `seconds` bounds
    each wait for the agent."""
    report = Report(agent=name, command=name_of(agent))
    with tempfile.TemporaryDirectory(prefix="dragoman-doctor-") as folder:
        cwd = folder if agent.files == "here" else _ELSEWHERE
        line = goes_by_line(agent)
        async with Patient(way_in(agent), cwd, seconds, by_line=line) as patient:
            await _Doctor(report, agent, patient, told).examine()
    return report


class _Doctor:
    def __init__(
        self,
        report: Report,
        agent: AgentCommand | RemoteAgent,
        patient: Patient,
        told: Callable[[Finding], None],
    ) -> None:
        self._report = report
        self._agent = agent
        self._patient = patient
        self._told = told

    async def examine(self) -> None:
        if not await self._admitted():
            return
        if isinstance(self._agent, RemoteAgent):
            await self._note("encryption", self._encryption)
            await self._note("strangers", self._strangers)
        for row in BASICS:
            await self._note(row.name, partial(self._graded, row))
            await self._keep_welcome()
        await self._note("complaints", self._complaints)
        for row in ENDS:
            await self._note(row.name, partial(self._graded, row))
        await self._come_back()

    async def _come_back(self) -> None:
        offered, has_session = is_offered_later(await self._welcome()), self._patient.has_session
        if offered and has_session:
            if not await self._admitted(" again"):
                return
            await self._note(GREETING.name, partial(self._graded, GREETING))
        for row in LATER:
            look = partial(self._graded, row) if has_session or not offered else self._no_session
            await self._note(row.name, look)
        await self._patient.tidy()

    async def _no_session(self) -> CheckOutcome:
        return skipped("no session")

    # ── findings ──────────────────────────────────────────────────────────────────────────────

    async def _note(self, name: str, look: Callable[[], Awaitable[CheckOutcome]]) -> CheckOutcome:
        start = time.monotonic()
        outcome = await look()
        seconds = max(0.0, round(time.monotonic() - start, 3))
        finding = Finding(check=name, grade=outcome.grade, text=outcome.text, seconds=seconds)
        self._report.findings.append(finding)
        self._told(finding)
        return outcome

    async def _admitted(self, again: str = "") -> bool:
        is_remote = isinstance(self._agent, RemoteAgent)
        name = f"{'reach' if is_remote else 'start'}{again}"
        outcome = await self._note(name, partial(self._admit, is_remote))
        return outcome.grade == "pass"

    async def _admit(self, is_remote: bool) -> CheckOutcome:
        try:
            await self._patient.admit()
            if is_remote:
                # Over HTTP only the first message tells whether we are let in.
                await self._patient.welcome()
        except DragomanError as error:
            return failed(str(error))
        except CheckFailed as error:
            if self._patient.lost is not None or isinstance(error, NoResponse):
                return failed(str(self._patient.lost or error))
        return passed("connected" if is_remote else "the process started")

    async def _graded(self, row: Selected) -> CheckOutcome:
        skips: list[str] = []
        wrong: list[tuple[bool, str]] = []
        wanted = (*row.vital, *row.checks)
        for key in wanted:
            try:
                await find(key, "agent").examine(self._patient)
            except NotApplicable as why:
                skips.append(str(why))
            except CheckFailed as error:
                grave = key in row.vital or isinstance(error, NoResponse)
                wrong.append((grave, single_line(str(error), _WORDS)))
        if wrong:
            texts = dict.fromkeys(text for _, text in wrong)
            grade = failed if any(grave for grave, _ in wrong) else warned
            return grade("; ".join(texts))
        if len(skips) == len(wanted) or (skips and self._patient.sign_in):
            return self._left_out(row, skips[0])
        return passed(await row.well(self._patient))

    def _left_out(self, row: Selected, why: str) -> CheckOutcome:
        if row.name == "session" and self._patient.sign_in:
            return warned(single_line(f"{why}; it offers {self._ways()}", _WORDS))
        return skipped(single_line(why, _WORDS))

    def _ways(self) -> str:
        return ", ".join(self._report.auth_methods) or "no method a client can use"

    async def _complaints(self) -> CheckOutcome:
        said = self._patient.stderr
        if said is None:
            return skipped("the agent is remote")
        if not said.strip():
            return passed("nothing on standard error")
        lines = said.strip().split("\n")
        # The last that is a sentence: the end of a trace or a dump says nothing.
        sentences = [line for line in lines if re.match(r"\S.*\w{3}", line)]
        last = single_line((sentences or lines)[-1].strip(), 80)
        return passed(f"{count(len(lines), 'line')} on standard error, ending with: {last}")

    async def _encryption(self) -> CheckOutcome:
        assert isinstance(self._agent, RemoteAgent)
        return front_door.encryption(self._agent)

    async def _strangers(self) -> CheckOutcome:
        assert isinstance(self._agent, RemoteAgent)
        try:
            return await front_door.strangers(self._agent, self._patient.patience)
        except CheckFailed as error:
            return failed(str(error))

    # ── what it says of itself ────────────────────────────────────────────────────────────────

    async def _welcome(self) -> dict[str, object]:
        try:
            return await self._patient.welcome()
        except (CheckFailed, NotApplicable):
            return {}

    async def _keep_welcome(self) -> None:
        welcome = await self._welcome()
        version = welcome.get("protocolVersion")
        self._report.wants_sign_in = bool(self._patient.sign_in)
        self._report.agent_info = obj(welcome.get("agentInfo"))
        self._report.protocol_version = version if isinstance(version, int) else 0
        self._report.capabilities = obj(welcome.get("agentCapabilities"))
        self._report.auth_methods = [
            str(method.get("id")) for method in objects(welcome.get("authMethods"))
        ]
