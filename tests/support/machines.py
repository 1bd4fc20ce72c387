"""Machines on one network, each a network and process namespace of this one: they can be cut off
from each other and die, and cannot see each other's processes. Needs Linux and root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest


class Machine:
    """One of them; `address` is where the others, and this test, reach it."""

    def __init__(self, name: str, link: str, address: str) -> None:
        self.name = name
        self.address = address
        self._link = link

    def run(
        self, words: Sequence[str], *, cwd: Path, env: Mapping[str, str], errors: IO[bytes]
    ) -> subprocess.Popen[bytes]:
        """As the first process there: when it is killed, all that it started ends with it."""
        inside = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child=SIGKILL"]
        return subprocess.Popen(
            ["ip", "netns", "exec", self.name, *inside, *words],
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
        )

    def cut_off(self) -> None:
        """Nothing that is sent arrives, and nobody is told."""
        _ip("link", "set", self._link, "down", check=True)

    def join(self) -> None:
        _ip("link", "set", self._link, "up", check=True)


@contextmanager
def network(count: int) -> Generator[tuple[str, list[Machine]]]:
    """The address of this side, and the machines; the test is skipped where there can be none."""
    _check()
    number = os.getpid() % 250
    bridge, own = f"dgm{number}", f"10.213.{number}.1"
    machines: list[Machine] = []
    try:
        _ip("link", "add", bridge, "type", "bridge")
        _ip("address", "add", f"{own}/24", "dev", bridge)
        _ip("link", "set", bridge, "up")
        machines += (_machine(bridge, n, f"10.213.{number}.{n + 11}") for n in range(count))
        yield own, machines
    finally:
        for machine in machines:
            subprocess.run(["ip", "netns", "delete", machine.name], check=False)
        subprocess.run(["ip", "link", "delete", bridge], check=False)


def _check() -> None:
    if sys.platform != "linux" or os.getuid() != 0:
        pytest.skip("network namespaces need Linux and root")
    if shutil.which("ip") is None or shutil.which("unshare") is None:
        pytest.skip("network namespaces need ip and unshare (Debian: iproute2, util-linux)")


def _machine(bridge: str, place: int, address: str) -> Machine:
    name, link = f"{bridge}-{place}", f"{bridge}v{place}"
    _ip("netns", "add", name)
    _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
    _ip("link", "set", link, "master", bridge, "up")
    for words in (
        ["address", "add", f"{address}/24", "dev", "eth0"],
        ["link", "set", "eth0", "up"],
        ["link", "set", "lo", "up"],
    ):
        _ip("-n", name, *words)
    return Machine(name, link, address)


def _ip(*words: str, check: bool = False) -> None:
    """Where it must work, since the test is under way, it is no reason to skip it."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=check)
    if done.returncode:
        pytest.skip(f"ip {' '.join(words)}: {done.stderr.strip()}")
