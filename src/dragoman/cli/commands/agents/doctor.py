"""`dragoman agents doctor`: prints the report line by line, as the checks finish."""

from __future__ import annotations

import argparse
import asyncio
import sys

import msgspec

from dragoman.cli.exit_codes import Exit, UsageError
from dragoman.cli.render.printed_json import indented_json
from dragoman.cli.render.style import BOLD, DIM, GREEN, RED, YELLOW, Style, wants_colour
from dragoman.cli.run import agent_setup
from dragoman.conformance.doctor.check_up import examine
from dragoman.conformance.doctor.doctor_report import Finding, Grade, Report
from dragoman.safe_text import sanitise
from dragoman.transport.target import name_of

_MARKS: dict[Grade, tuple[str, str]] = {
    "pass": ("pass", GREEN),
    "warn": ("warn", YELLOW),
    "fail": ("FAIL", RED),
    "skip": ("skip", DIM),
}


def run(options: argparse.Namespace) -> int:
    if options.agent is not None and options.agent_command is not None:
        raise UsageError("name the agent or use --agent-command, not both")
    choice = agent_setup.choose_agent(options)
    printer = Printer(Style(colour=wants_colour(sys.stdout)))
    if not options.json:
        printer.begin(choice.agent.name, name_of(choice.agent.target))
    report = asyncio.run(
        examine(
            choice.agent.target,
            name=choice.agent.name,
            seconds=options.timeout,
            told=_quiet if options.json else printer.finding,
        )
    )
    if options.json:
        print(_as_json(report))
    else:
        printer.end(report)
        for line in _advice(report, choice, by_name=options.agent_command is None):
            print(sanitise(line, newlines=False))
    return Exit.FAILED if report.result == "fail" else Exit.DONE


class Printer:
    """Writes the report for people."""

    def __init__(self, style: Style) -> None:
        self._style = style

    def begin(self, name: str, command: str) -> None:
        # No arguments: they may hold secrets.
        print(self._style(sanitise(f"{name} ({command})", newlines=False), BOLD), flush=True)

    def finding(self, finding: Finding) -> None:
        mark, colour = _MARKS[finding.grade]
        took = "" if finding.grade == "skip" else _took(finding.seconds)
        text = sanitise(finding.text, newlines=False)
        print(f"  {self._style(mark, colour)}  {finding.check:<16}{took:>8}  {text}", flush=True)

    def end(self, report: Report) -> None:
        counts = [
            f"{report.count('pass')} passed",
            f"{report.count('warn')} warning{'' if report.count('warn') == 1 else 's'}",
            f"{report.count('fail')} failed",
            f"{report.count('skip')} skipped",
        ]
        print(self._style(", ".join(counts), _MARKS[report.result][1]))


def _advice(report: Report, choice: agent_setup.ChosenAgent, *, by_name: bool) -> list[str]:
    """What to do next, and what we know about it already."""
    known = choice.known
    if report.findings[-1].check in ("start", "reach"):
        return [f"to install it: {known.install}"] if known and known.install else []
    if report.wants_sign_in:
        own = [f"outside Dragoman: {known.sign_in}"] if known else []
        # Of a command not even here more than the option: its words may hold secrets.
        agent = choice.agent.name if by_name else "--agent-command …"
        return [f"to sign in: dragoman agents login {agent}", *own]
    if report.result == "pass" or known is None or not known.notes:
        return []
    return [f"known of {known.title}:", *(f"  {note}" for note in known.notes)]


def _took(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"


def _as_json(report: Report) -> str:
    counts = {grade: report.count(grade) for grade in _MARKS}
    fields = msgspec.to_builtins(report) | {"result": report.result, "counts": counts}
    return indented_json(fields)


def _quiet(finding: Finding) -> None:
    pass
