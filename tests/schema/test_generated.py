"""The committed `v1.py` and `v2.py` against the official schemas, and their generator."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dragoman.schema import Model, v1, v2
from dragoman.schema.codec import decoder
from dragoman.schema.model import Method

ROOT = Path(__file__).parents[2]
GENERATED = ROOT / "src" / "dragoman" / "schema"
VERSIONS = {"v1": v1, "v2": v2}
TABLES = {
    ("agent", "request"): "REQUESTS_TO_AGENT",
    ("agent", "notification"): "NOTIFICATIONS_TO_AGENT",
    ("client", "request"): "REQUESTS_TO_CLIENT",
    ("client", "notification"): "NOTIFICATIONS_TO_CLIENT",
    ("proxy", "request"): "REQUESTS_TO_PROXY",
    ("proxy", "notification"): "NOTIFICATIONS_TO_PROXY",
}

Definitions = Callable[..., dict[str, Any]]
both_versions = pytest.mark.parametrize("version", VERSIONS)


def table(version: str, name: str) -> dict[str, Method]:
    return getattr(VERSIONS[version], name)


def structs(version: str) -> list[type[Model]]:
    found = vars(VERSIONS[version]).values()
    return [item for item in found if isinstance(item, type) and issubclass(item, Model)]


@both_versions
def test_every_method_of_the_schema_is_in_its_table(version: str, definitions: Definitions) -> None:
    expected: set[tuple[str, str, str]] = set()
    for name, node in definitions(version).items():
        if "x-method" in node and not name.endswith("Response"):
            kind = "notification" if name.endswith("Notification") else "request"
            sides = ("agent", "client") if node["x-side"] == "protocol" else (node["x-side"],)
            expected |= {(TABLES[side, kind], node["x-method"], name) for side in sides}
    found = {
        (constant, name, method.params.__name__)
        for constant in TABLES.values()
        for name, method in table(version, constant).items()
    }
    # Two names for one struct: a proxy is initialized as an agent is.
    expected = {(t, m, n.replace("InitializeProxy", "Initialize")) for t, m, n in expected}
    assert found == expected


@both_versions
def test_a_method_is_stable_when_the_stable_schema_has_it(
    version: str, definitions: Definitions
) -> None:
    stable = {node.get("x-method") for node in definitions(version, stable=True).values()}
    for constant in TABLES.values():
        for method in table(version, constant).values():
            assert method.stable == (method.name in stable), method.name


@both_versions
def test_every_request_has_a_result_and_no_notification_has(version: str) -> None:
    for (_, kind), constant in TABLES.items():
        for name, method in table(version, constant).items():
            assert (method.name, method.kind) == (name, kind)
            assert (method.result is None) == (kind == "notification"), name


def test_a_method_says_which_types_it_takes_and_gives() -> None:
    asked = v1.REQUESTS_TO_CLIENT["session/request_permission"]
    assert (asked.params, asked.result) == (
        v1.RequestPermissionRequest,
        v1.RequestPermissionResponse,
    )
    assert v1.REQUESTS_TO_CLIENT["mcp/message"].params is v1.MessageMcpRequest
    assert v1.NOTIFICATIONS_TO_AGENT["mcp/message"].params is v1.MessageMcpNotification


def test_stable_and_unstable_updates_and_fields_are_told_apart() -> None:
    assert {"plan", "tool_call", "usage_update"} <= v1.STABLE_UPDATES
    assert {
        "plan_removed",
        "plan_update",
        "session_message",
        "session_message_chunk",
        "subagent_update",
    } == v1.UNSTABLE_UPDATES
    assert "fork" in v1.UNSTABLE_FIELDS["SessionCapabilities"]
    assert "list" not in v1.UNSTABLE_FIELDS["SessionCapabilities"]
    assert "ForkSessionRequest" in v1.UNSTABLE_TYPES
    assert "PromptRequest" not in v1.UNSTABLE_TYPES


@both_versions
def test_every_definition_has_a_name_or_is_part_of_another(
    version: str, definitions: Definitions
) -> None:
    module = VERSIONS[version]
    merged = {
        "ElicitationAcceptAction",
        "ElicitationFormMode",
        "ElicitationRequestScope",
        "ElicitationSessionScope",
        "ElicitationUrlMode",
        "ErrorStopReason",
        "IdleStateUpdate",
        "RequiresActionStateUpdate",
        "RunningStateUpdate",
        "UnknownStateUpdate",
    }
    envelopes = {n for n, node in definitions(version).items() if node.get("x-docs-ignore")}
    missing = {name for name in definitions(version) if not hasattr(module, name)}
    assert missing == merged | envelopes


@both_versions
def test_every_struct_can_be_decoded_and_its_marks_name_its_fields(version: str) -> None:
    for struct in structs(version):
        decoder(struct)
        marks = (
            *struct.__default_on_error__,
            *struct.__default_on_null__,
            *struct.__skip_invalid_items__,
        )
        assert set(marks) <= set(struct.__struct_fields__), struct


@both_versions
def test_the_generated_text_has_no_prose_of_the_schema(
    version: str, definitions: Definitions
) -> None:
    text = (GENERATED / f"{version}.py").read_text()
    _, _, code = text.split('"""', 2)
    comments = [line for line in code.splitlines() if "#" in line]
    assert [line for line in comments if not line.startswith("# ruff: noqa")] == []
    assert '"""' not in code
    described = re.findall(r'"description": "([^"\\]{20,})', json.dumps(definitions(version)))
    assert len(described) > 1000
    assert [prose for prose in described if prose in text] == []


# The generator -----------------------------------------------------------------------------------


def generate(root: Path, *arguments: str, path: str = "") -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "scripts" / "gen_schema.py"), *arguments]
    environment = {**os.environ, "PATH": path}
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=60, check=False
    )


def copy(root: Path) -> Path:
    """A repository with only the generator and its output."""
    shutil.copytree(ROOT / "scripts", root / "scripts")
    schema = root / "src" / "dragoman" / "schema"
    schema.mkdir(parents=True)
    for version in VERSIONS:
        shutil.copy(GENERATED / f"{version}.py", schema)
    return root


def cached(root: Path, definitions: Definitions) -> Path:
    definitions("v1")  # skips when there is no package
    shutil.copytree(ROOT / ".cache", root / ".cache", ignore=shutil.ignore_patterns("[!a]*"))
    return root


def test_the_committed_output_is_current(tmp_path: Path, definitions: Definitions) -> None:
    done = generate(cached(copy(tmp_path), definitions), "--check")
    assert (done.returncode, done.stdout) == (0, "")


def test_a_stale_output_fails_the_check_and_is_written_anew(
    tmp_path: Path, definitions: Definitions
) -> None:
    root = cached(copy(tmp_path), definitions)
    target = root / "src" / "dragoman" / "schema" / "v2.py"
    target.write_text(target.read_text() + "\n")
    done = generate(root, "--check")
    assert done.returncode == 1
    assert done.stdout == "src/dragoman/schema/v2.py is stale: run python scripts/gen_schema.py\n"
    assert generate(root).returncode == 0
    assert target.read_text() == (GENERATED / "v2.py").read_text()


def test_without_npm_and_cache_the_check_is_skipped_and_generation_fails(tmp_path: Path) -> None:
    root = copy(tmp_path)
    check, write = generate(root, "--check"), generate(root)
    assert (check.returncode, check.stdout) == (0, "schema check skipped: npm is not installed\n")
    assert (write.returncode, write.stdout) == (1, "cannot generate: npm is not installed\n")


def test_without_a_network_the_check_is_skipped_with_what_npm_says(tmp_path: Path) -> None:
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho 'npm error code ENOTFOUND\n more' >&2\nexit 1\n")
    npm.chmod(0o755)
    done = generate(copy(tmp_path / "root"), "--check", path=str(tmp_path))
    said = "schema check skipped: npm pack failed (npm error code ENOTFOUND)\n"
    assert (done.returncode, done.stdout) == (0, said)


def test_a_tarball_that_is_not_the_pinned_one_is_refused(tmp_path: Path) -> None:
    root = copy(tmp_path)
    (root / ".cache").mkdir()
    (root / ".cache" / "agentclientprotocol-sdk-2.4.0.tgz").write_bytes(b"else")
    done = generate(root)
    assert done.returncode == 1
    assert "does not match the pinned checksum" in done.stdout
