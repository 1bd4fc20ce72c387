"""What the doctor found: a graded line for each finding. Pure data."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

import msgspec

Grade: TypeAlias = Literal["pass", "warn", "fail", "skip"]


class CheckOutcome(msgspec.Struct, frozen=True):
    """How one finding came out, in a grade and a sentence."""

    grade: Grade
    text: str


class Finding(CheckOutcome, frozen=True, kw_only=True):
    """An outcome, with its name and how long it took."""

    check: str
    seconds: float = 0.0


class Report(msgspec.Struct, kw_only=True, rename="camel"):
    """One examination of one agent."""

    agent: str
    command: str
    agent_info: dict[str, Any] = {}
    protocol_version: int = 0
    capabilities: dict[str, Any] = {}
    auth_methods: list[str] = []
    wants_sign_in: bool = False
    """Before there can be a session; what needs one was left out."""
    findings: list[Finding] = []

    @property
    def result(self) -> Grade:
        grades = {finding.grade for finding in self.findings}
        return "fail" if "fail" in grades else "warn" if "warn" in grades else "pass"

    def count(self, grade: Grade) -> int:
        return sum(finding.grade == grade for finding in self.findings)


def passed(text: str) -> CheckOutcome:
    return CheckOutcome("pass", text)


def warned(text: str) -> CheckOutcome:
    return CheckOutcome("warn", text)


def failed(text: str) -> CheckOutcome:
    return CheckOutcome("fail", text)


def skipped(text: str) -> CheckOutcome:
    return CheckOutcome("skip", text)
