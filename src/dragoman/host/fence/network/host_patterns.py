"""The hosts that a fence lets through: names, `*.` patterns and addresses, each with a port.

Names and addresses have one spelling each here, so that none is taken for another: `0x7f.1` is
127.0.0.1. Pure.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TypeAlias

import msgspec

Address: TypeAlias = IPv4Address | IPv6Address

WEB_PORTS = (80, 443)
"""What a host without a port means."""
LOCALHOST: tuple[Address, ...] = (ip_address("127.0.0.1"), ip_address("::1"))

_LONGEST_NAME = 253
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_PARTS = re.compile(r"(?P<host>\[[^\]]*\](?:/\d+)?|[^:]*)(?::(?P<port>[^:]*))?")
# Addresses that stand for one of the older kind, which a gateway may connect to instead.
_TRANSLATED = (IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))


class HostPattern(msgspec.Struct, frozen=True):
    """A host as the settings name it: a name, one that begins with `*.`, `*`, or addresses."""

    text: str
    name: str = ""
    addresses: tuple[str, ...] = ()
    """As networks, such as `127.0.0.1/32`."""
    ports: tuple[int, ...] = WEB_PORTS
    """None at all means any."""

    def has_name(self, name: str, port: int) -> bool:
        return self._has_port(port) and (
            self.name in ("*", name)
            or (self.name.startswith("*.") and name.endswith(self.name[1:]))
        )

    def has_address(self, address: Address, port: int) -> bool:
        return self._has_port(port) and any(
            address in ip_network(network) for network in self.addresses
        )

    @property
    def own_port(self) -> int | None:
        """The port of a server on this machine's loopback, if that is what it names."""
        is_loopback = any(ip_network(each).is_loopback for each in self.addresses)
        return self.ports[0] if is_loopback and self.ports else None

    def _has_port(self, port: int) -> bool:
        return not self.ports or port in self.ports


MOST_HOSTS = 200
MOST_OWN_PORTS = 32


def read_patterns(texts: Sequence[str]) -> tuple[HostPattern, ...]:
    """Raises ValueError that says what is wrong with the first bad one."""
    if len(texts) > MOST_HOSTS:
        raise ValueError(f"at most {MOST_HOSTS} hosts, not {len(texts)}")
    found = tuple(map(read_pattern, texts))
    if len(own_ports(found)) > MOST_OWN_PORTS:
        raise ValueError(f"at most {MOST_OWN_PORTS} ports of this machine")
    return found


def own_ports(patterns: Sequence[HostPattern]) -> list[int]:
    """The ports of servers on this machine's loopback that may be reached."""
    return sorted({port for each in patterns if (port := each.own_port) is not None})


def read_pattern(text: str) -> HostPattern:
    """Raises ValueError."""
    if "://" in text or "@" in text:
        raise ValueError(f"a host such as example.com:443, not the address {text!r}")
    bare = text.strip().lower()
    is_bare_address = bare.count(":") > 1 and not bare.startswith("[")
    found = _PARTS.fullmatch(f"[{bare}]" if is_bare_address else bare)
    if found is None or not found["host"]:
        raise ValueError(f"a host, as in example.com:443 or *.example.com, not {text!r}")
    host, ports = found["host"].rstrip("."), _ports(found["port"], text)
    networks = ("127.0.0.1/32", "::1/128") if host == "localhost" else _networks(host)
    if any(ip_network(each).is_loopback for each in networks) and (
        found["port"] is None or not ports
    ):
        raise ValueError(f"a port after this machine's own address: {host}:8080, not {text!r}")
    if networks:
        return HostPattern(text, addresses=networks, ports=ports)
    name = host.removeprefix("*.")
    if host != "*" and not _is_name(name):
        raise ValueError(f"a host, as in example.com:443 or *.example.com, not {text!r}")
    return HostPattern(text, name=host, ports=ports)


def _ports(text: str | None, whole: str) -> tuple[int, ...]:
    if text is None:
        return WEB_PORTS
    if text == "*":
        return ()
    if text.isascii() and text.isdecimal() and 0 < int(text) < 65536:
        return (int(text),)
    raise ValueError(f"a port from 1 to 65535, or *, after the colon in {whole!r}")


def _networks(host: str) -> tuple[str, ...]:
    try:
        return (str(ip_network(host.replace("[", "").replace("]", ""))),)
    except ValueError:
        return ()


def _is_name(text: str) -> bool:
    is_number = _NUMBER.fullmatch(text.rpartition(".")[2]) is not None
    return len(text) <= _LONGEST_NAME and _NAME.fullmatch(text) is not None and not is_number


def read_host(text: str) -> str | Address:
    """What a program names: a name in its one spelling, or an address. Raises ValueError."""
    host = text.lower().removesuffix(".").replace("%", "/")  # no interface of ours
    if host.startswith("[") and host.endswith("]"):
        return _plain(IPv6Address(host[1:-1]))
    if _is_name(host):
        return host
    try:
        return _plain(ip_address(host))
    except ValueError:
        pass
    if _NUMBER.fullmatch(host.rpartition(".")[2]):
        try:
            return IPv4Address(socket.inet_aton(host))  # 127.1, 0x7f.1, 2130706433
        except OSError:
            pass
    raise ValueError("it is neither the name of a host nor an address")


def _plain(address: Address) -> Address:
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped


def read_address(text: str) -> Address:
    """One that the system found for a name."""
    return _plain(ip_address(text.partition("%")[0]))


def is_public(address: Address) -> bool:
    """Whether it is on the internet: not this machine, nor the network that it is in."""
    if isinstance(address, IPv6Address):
        inner = address.sixtofour or (address.teredo or (None, None))[1]
        if any(address in network for network in _TRANSLATED):
            inner = IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None and not is_public(inner):
            return False
        if address.is_site_local:
            return False
    return address.is_global and not address.is_multicast and not address.is_reserved
