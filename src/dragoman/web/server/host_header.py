"""Which names this server answers to.

A page of an attacker can have its own name point to 127.0.0.1 and then read what we answer, since
for the browser it is the same site. The Host header still has the attacker's name: only our own
names count, with our own port. A bare address cannot be made to point elsewhere by a name server,
so a server that listens everywhere answers to every address.
"""

from __future__ import annotations

import ipaddress
import socket

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_EVERYWHERE = ("0.0.0.0", "::")


class AllowedHosts:
    def __init__(self, bound: str, port: int) -> None:
        self._port = port
        self._everywhere = bound in _EVERYWHERE
        names = [*LOOPBACK, in_brackets(bound)]
        if self._everywhere:
            names.append(socket.gethostname())
        self._names = frozenset(name.lower() for name in names)

    def has(self, header: str) -> bool:
        """Whether a Host header means us."""
        name, port = _split(header.lower())
        if port != str(self._port) and not (port == "" and self._port == 80):
            return False
        return name in self._names or (self._everywhere and _is_address(name))


def in_brackets(host: str) -> str:
    """A host as it stands in an address."""
    return f"[{host}]" if ":" in host else host


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server that listens there."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return all(ipaddress.ip_address(str(address[4][0])).is_loopback for address in found)


def _split(header: str) -> tuple[str, str]:
    name, colon, port = header.rpartition(":")
    if not colon or header.endswith("]"):
        return header, ""
    return name, port


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True
