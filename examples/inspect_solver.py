"""A solver and a scorer for Inspect AI (pip install inspect-ai): ACP agents in its evaluations.

    inspect eval examples/inspect_solver.py -T agent=claude --model mockllm/model

Each sample has a folder and a check in its metadata. The agent works in a copy of the folder, in a
fence, and the check judges what it leaves; the patch is the answer.
"""

# Inspect AI is not installed where the examples are checked: its types are unknown there.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

import tempfile
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, scorer
from inspect_ai.solver import Generate, Solver, TaskState, solver

import dragoman


@solver
def acp_agent(agent: str | dragoman.AgentCommand) -> Solver:
    """Have an agent do the task of each sample."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        solution = await dragoman.solve(
            state.input_text,
            agent,
            state.metadata["check"],
            cwd=state.metadata["folder"],
            max_seconds=900,
            fence="on",
        )
        state.output.completion = solution.patch
        state.metadata |= {"passed": solution.passed, "reason": solution.reason}
        state.completed = True
        return state

    return solve


@scorer(metrics=[accuracy()])
def check_passed() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        value = CORRECT if state.metadata["passed"] else INCORRECT
        answer, reason = state.output.completion, state.metadata["reason"]
        return Score(value=value, answer=answer, explanation=reason)

    return score


@task
def hello(agent: str = "demo") -> Task:
    """One sample: a file has to be there in the end."""
    folder = Path(tempfile.mkdtemp(prefix="inspect-"))
    (folder / "README.md").write_text("An empty project.\n")
    sample = Sample(
        input="Write any file.",
        target="a file",
        metadata={"folder": str(folder), "check": "test $(ls | wc -l) -gt 1"},
    )
    return Task(dataset=MemoryDataset([sample]), solver=acp_agent(agent), scorer=check_passed())
