"""Which hosts the programs of a fence reach: those of its list, and those that rules allow.

A rule that denies counts more than the list. What is refused becomes an event of the session,
once for each host; a name that is refused is never looked up, since a lookup can carry data out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from dragoman.host.fence.network.host_patterns import (
    LOCALHOST,
    Address,
    HostPattern,
    is_public,
    read_host,
)
from dragoman.host.fence.refusal_count import MOST_TOLD, RefusalCount, times
from dragoman.host.rules.decision import Explanation
from dragoman.host.rules.rule import Rule
from dragoman.session import events as e
from dragoman.session.facts import Decision


class HostRefused(Exception):
    """A program may not reach this host. `remedy` is for the people who can change that."""

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason)
        self.remedy = remedy


class FencedSession(Protocol):
    """A session whose agent is in the fence."""

    def about_host(self, host: str) -> Explanation:
        """What its rules say of fetching from there."""
        ...

    def note(self, event: e.Event) -> None:
        """Put it on record."""
        ...


def _none() -> Sequence[FencedSession]:
    return ()


class NetworkRules:
    """Decides for one fence, with a list of hosts and the rules of its sessions."""

    def __init__(self, hosts: Sequence[HostPattern]) -> None:
        self.hosts = tuple(hosts)
        self.sessions: Callable[[], Sequence[FencedSession]] = _none
        """Those that are open now."""
        self._refused = RefusalCount()
        self._untold: list[e.Event] = []

    def candidates(self, host: str, port: int) -> tuple[Address, ...] | None:
        """The addresses of a host that need not be looked up; None for a name that is allowed and
        has to be. Raises HostRefused, and ValueError for what is not a host."""
        named = read_host(host)
        allowing = self._by_rules(str(named))
        is_here = named == "localhost"
        if is_here or not isinstance(named, str):
            wanted = LOCALHOST if is_here else (named,)
            if is_here:
                self._deny(wanted)
            found = tuple(each for each in wanted if self._is_open(each, port, allowing=allowing))
            if not found:
                raise _unlisted(str(named), port, wanted)
            return found
        if not allowing and not any(each.has_name(named, port) for each in self.hosts):
            raise _unlisted(named, port, ())
        return None

    def reachable(self, found: Iterable[Address], port: int) -> list[Address]:
        """Of the addresses that a name has, those that it may lead to. Raises HostRefused."""
        addresses = list(found)
        self._deny(addresses)
        allowed = [each for each in addresses if self._is_open(each, port, allowing=True)]
        if not allowed and addresses:
            raise _inward(addresses[0], port)
        return allowed

    def _is_open(self, address: Address, port: int, *, allowing: bool) -> bool:
        """What is not public has to be in the list, with its port."""
        listed = any(each.has_address(address, port) for each in self.hosts)
        return listed or (allowing and is_public(address))

    def _deny(self, addresses: Iterable[Address]) -> None:
        """Raises HostRefused where a rule speaks of one of them."""
        for address in addresses:
            self._by_rules(str(address))

    def _by_rules(self, host: str) -> bool:
        """Whether a rule that names hosts allows it. Raises HostRefused if one denies or asks."""
        allowed = False
        for session in self.sessions():
            told = session.about_host(host)
            decision = told.decision
            if decision.rule is not None and decision.effect != "allow":
                raise HostRefused(decision.reason)
            allowed |= any(each.matched and _opens(each.rule) for each in told.considered)
        return allowed

    # ── events ──────────────────────────────────────────────────────────────────────────────────

    def refused(self, host: str, port: int, refusal: HostRefused) -> None:
        """Tell the sessions, now or when there is one."""
        reason = "; ".join(filter(None, (str(refusal), refusal.remedy)))
        count = self._refused.add((host, port))
        if count is None:
            return
        if count == 0:
            host, reason = "", f"more than {MOST_TOLD} hosts were refused; the rest is not listed"
        event = e.AccessDecided(
            "fetch",
            Decision("deny", reason, by="fence"),
            title=f"{host}:{port}{times(count)}" if host else "further hosts",
            host=host or None,
        )
        self._untold.append(event)
        self.tell()

    def tell(self) -> None:
        """Put on record what happened while no session was open."""
        if sessions := self.sessions():
            untold, self._untold = self._untold, []
            for event in untold:
                sessions[-1].note(event)


def _opens(rule: Rule) -> bool:
    """A flag such as --yolo, or a rule about everything, does not open a fence."""
    return rule.effect == "allow" and rule.host is not None


def _unlisted(host: str, port: int, addresses: Sequence[Address]) -> HostRefused:
    remedy = f"dragoman policy add --allow --operation fetch --host {host}"
    if addresses and not all(map(is_public, addresses)):
        remedy = f"add {_listed(addresses[0], port)} there"
    return HostRefused("it is not in the fence's list of hosts", f"to allow it: {remedy}")


def _inward(address: Address, port: int) -> HostRefused:
    reason = f"it leads to {address}, which is not on the internet"
    return HostRefused(reason, f"to allow that, list {_listed(address, port)}")


def _listed(address: Address, port: int) -> str:
    return f"[{address}]:{port}" if address.version == 6 else f"{address}:{port}"
