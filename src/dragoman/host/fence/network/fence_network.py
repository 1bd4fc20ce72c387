"""The network of one fence: made before its first program, served until the last has ended."""

from __future__ import annotations

from collections.abc import Mapping

from dragoman.fence import seccomp
from dragoman.host.fence.fence_terms import NetworkTerms
from dragoman.host.fence.floor import FenceWay
from dragoman.host.fence.network.host_patterns import HostPattern, own_ports, read_patterns
from dragoman.host.fence.network.network_rules import NetworkRules
from dragoman.host.fence.network.proxy import Proxy
from dragoman.process import contained

_LEADING_OUT = ("http_proxy", "https_proxy", "all_proxy", "ftp_proxy", "ws_proxy", "wss_proxy")
_DIRECT = "localhost,127.0.0.1,::1"
"""Inside, this is the loopback of the fence."""
WITHOUT_NAMESPACES = "the network cannot be limited to hosts without namespaces"


def network_lines(terms: NetworkTerms, way: FenceWay | None) -> list[str]:
    """What is reached, a line each with its reason."""
    if terms == "all":
        return ["everything  (the settings do not limit it)"]
    own = (
        "no socket can be made"
        if way == "landlock"
        else "the fence has a network of its own, without a way out"
    )
    lines = [f"nothing else  ({own})"]
    if terms != "none":
        patterns = read_patterns(terms)
        lines = [
            *(f"{each.text}  ({_why(each)})" for each in patterns),
            "hosts that a rule allows  (dragoman policy add --allow --operation fetch --host HOST)",
            "nothing else  (the fence has a network of its own; Dragoman's proxy is the way out)",
        ]
    if way != "namespaces" and not (way == "landlock" and terms == "none"):
        lines.append(f"not limited: {WITHOUT_NAMESPACES}")
    return lines


def _why(pattern: HostPattern) -> str:
    ports = "any port" if not pattern.ports else f"port {' and '.join(map(str, pattern.ports))}"
    if pattern.own_port is not None:
        return f"the settings say so: the server of this machine on {ports}"
    return f"the settings say so: {ports}"


class FenceNetwork:
    """`terms` is `all`, `none`, or the hosts that may be reached. Raises ValueError for hosts that
    cannot be read."""

    def __init__(self, terms: NetworkTerms) -> None:
        self.terms: NetworkTerms = terms
        self.rules = NetworkRules(read_patterns(() if isinstance(terms, str) else terms))
        self.problem = ""
        """Why it is not limited, if it should be."""
        self.sockets: tuple[int, ...] = ()
        """The only kinds of sockets that a program may make; none for all of them."""
        self._own: contained.OwnNetwork | None = None
        self._proxy: Proxy | None = None

    @property
    def is_limited(self) -> bool:
        return bool(self.sockets)

    @property
    def hosts(self) -> list[str] | None:
        """What is reached; None for everything."""
        if not self.is_limited:
            return None
        return [] if isinstance(self.terms, str) else list(self.terms)

    @property
    def spaces(self) -> tuple[int, ...]:
        """The namespaces that a program has to join."""
        return () if self._own is None else self._own.spaces

    async def open(self, way: FenceWay | None) -> None:
        """Make it, if there is something to limit. If that is impossible, `problem` says why."""
        if self.terms == "all" or way is None:
            return
        if way == "landlock":
            self._close_sockets(WITHOUT_NAMESPACES)
            return
        is_open = self.terms != "none"
        ports = [0, *own_ports(self.rules.hosts)] if is_open else []
        try:
            self._own = await contained.make_network(ports)
        except (OSError, contained.ZygoteFailed) as error:
            reason = getattr(error, "strerror", None) or str(error)
            self._close_sockets(f"there is no network namespace to be had ({reason})")
            return
        self.sockets = seccomp.OF_A_NETWORK
        if is_open:
            self._proxy = Proxy(self._own.listeners, self.rules)

    def _close_sockets(self, problem: str) -> None:
        """Without a namespace, nothing is reached where no socket can be made; a list of hosts
        is a problem."""
        if self.terms == "none":
            self.sockets = seccomp.OF_NO_NETWORK
        else:
            self.problem = problem

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Of a program inside: without ways that lead nowhere, and with the one that there is."""
        if not self.is_limited:
            return dict(env)
        kept = {name: value for name, value in env.items() if name.lower() not in _LEADING_OUT}
        if self._proxy is None:
            return kept
        url = self._proxy.url
        names = (*_LEADING_OUT[:3], *map(str.upper, _LEADING_OUT[:3]))
        return {
            **kept,
            **dict.fromkeys(names, url),
            **dict.fromkeys(("no_proxy", "NO_PROXY"), _DIRECT),
            "NODE_USE_ENV_PROXY": "1",
        }

    async def aclose(self) -> None:
        proxy, self._proxy = self._proxy, None
        own, self._own = self._own, None
        if proxy is not None:
            await proxy.aclose()
        if own is not None:
            own.close()
