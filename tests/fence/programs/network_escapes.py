"""Attempts to reach servers of the host from a fence whose network is limited.

Called like the others, and prints the same; `$SERVERS` has the ports of the servers. Where there
is a proxy, attempts that are about it go through it, and otherwise straight to the server.
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
import sys
from urllib.parse import urlsplit

sys.path.insert(0, os.path.dirname(__file__))

import attempts
from attempts import HOST, Held, Impossible, escape, root_only, user_only

TCP, UDP, LISTED = map(int, os.environ["SERVERS"].split()[:3])
ADDRESS = os.environ["SERVERS"].split()[3]
"""One of this machine's, other than the loopback, if it has any."""
PROXY = os.environ.get("http_proxy", "")
SECONDS = 20
IS_LIMITED = os.environ["NETWORK"] != "all"


def said_by(connection: socket.socket, request: bytes = b"hello?\r\n\r\n") -> bytes:
    connection.settimeout(SECONDS)
    connection.sendall(request)
    got = b""
    while data := connection.recv(4096):
        got += data
    return got


def must_be_the_server(got: bytes) -> None:
    if b"the server of the host" not in got:
        raise Held(got.decode(errors="replace").replace("\r\n", " ")[:200] or "nothing was said")


def straight(host: str, port: int = TCP) -> None:
    with socket.create_connection((host, port), SECONDS) as connection:
        must_be_the_server(said_by(connection))


def to_proxy() -> socket.socket:
    address = urlsplit(PROXY)
    return socket.create_connection((address.hostname or "", address.port or 0), SECONDS)


def by_way_of_the_proxy(host: str, port: int = TCP) -> None:
    """A tunnel, or a connection where there is no proxy."""
    if not PROXY:
        straight(host.strip("[]"), port)
        return
    with to_proxy() as connection:
        connection.sendall(f"CONNECT {host}:{port} HTTP/1.1\r\n\r\n".encode())
        must_be_the_server(said_by(connection))


def datagram(family: socket.AddressFamily, address: tuple[str, int], data: bytes) -> None:
    with socket.socket(family, socket.SOCK_DGRAM) as connection:
        connection.settimeout(SECONDS)
        connection.connect(address)
        connection.send(data)
        must_be_the_server(connection.recv(4096))


# ── without asking ────────────────────────────────────────────────────────────────────────────


@escape
def by_tcp() -> None:
    straight("127.0.0.1")


@escape
def by_tcp_to_another_address_of_the_machine() -> None:
    if ADDRESS == "-":
        raise Impossible("this machine has no other address")
    straight(ADDRESS)


@escape
def by_another_address_of_the_loopback() -> None:
    straight("127.0.0.2")


@escape
def by_the_address_of_nobody() -> None:
    straight("0.0.0.0")


@escape
def by_udp() -> None:
    datagram(socket.AF_INET, ("127.0.0.1", UDP), b"hello?")


@escape
def by_dns() -> None:
    query = struct.pack(">6H", 7, 0x100, 1, 0, 0, 0) + b"\6secret\4evil\0" + b"\0\1\0\1"
    datagram(socket.AF_INET, ("127.0.0.1", UDP), query)


@root_only
def by_raw_packet() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as connection:
        connection.sendto(struct.pack(">BBHHH", 8, 0, 0xF7FF, 0, 0), ("127.0.0.1", 0))


@root_only
def by_packet_on_the_wire() -> None:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800)) as connection:
        connection.bind(("lo", 0))
        connection.send(bytes(64))


@escape
def by_socket_to_the_machine_below() -> None:
    """From a virtual machine to its host; no network namespace governs that."""
    try:
        socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()
    except OSError as error:
        if not IS_LIMITED:
            raise Impossible(str(error)) from error
        raise


@escape
def by_socket_of_a_ring() -> None:
    """`io_uring` makes sockets without the system call that filters see."""
    try:
        os.close(attempts.call(425, 4, ctypes.create_string_buffer(120)))
    except OSError as error:
        if not IS_LIMITED:
            raise Impossible(str(error)) from error
        raise


@escape
def by_abstract_socket() -> None:
    attempts.reach(f"\0dragoman-test-{HOST}")


@root_only
def by_network_of_the_host() -> None:
    """Entering it again."""
    space = os.open(f"/proc/{HOST}/ns/net", os.O_RDONLY)
    attempts.checked(attempts.libc.setns(space, 0x40000000))
    straight("127.0.0.1")


@user_only
def by_nested_namespaces() -> None:
    """With every right again over namespaces of its own."""
    attempts.nested()
    straight("127.0.0.1")


# ── through the proxy ─────────────────────────────────────────────────────────────────────────


@escape
def by_tunnel_to_a_number() -> None:
    by_way_of_the_proxy("127.0.0.1")


@escape
def by_tunnel_to_a_long_number() -> None:
    by_way_of_the_proxy("2130706433")


@escape
def by_tunnel_to_a_short_number() -> None:
    by_way_of_the_proxy("127.1")


@escape
def by_tunnel_to_a_hexadecimal_number() -> None:
    by_way_of_the_proxy("0x7f.0.0.1")


@escape
def by_tunnel_to_a_mapped_number() -> None:
    by_way_of_the_proxy("[::ffff:127.0.0.1]")


@escape
def by_tunnel_to_a_name_of_the_machine() -> None:
    by_way_of_the_proxy("localhost")


@escape
def by_request() -> None:
    if not PROXY:
        straight("127.0.0.1")
        return
    with to_proxy() as connection:
        request = f"GET http://127.0.0.1:{TCP}/ HTTP/1.1\r\n\r\n"
        must_be_the_server(said_by(connection, request.encode()))


@escape
def by_second_request_on_a_connection() -> None:
    if not PROXY:
        straight("127.0.0.1")
        return
    with to_proxy() as connection:
        first = f"GET http://127.0.0.1:{LISTED}/ HTTP/1.1\r\n\r\n"
        second = f"GET http://127.0.0.1:{TCP}/ HTTP/1.1\r\n\r\n"
        must_be_the_server(said_by(connection, (first + second).encode()))


@escape
def by_redirection() -> None:
    """A listed server sends the program to one that is not."""
    with socket.create_connection(("127.0.0.1", LISTED), SECONDS) as connection:
        got = said_by(connection)
    if b"Location" not in got:
        raise Held(f"no redirection but {got!r}")
    target = urlsplit(got.split(b"Location: ")[1].split(b"\r\n")[0].decode())
    by_way_of_the_proxy(target.hostname or "", target.port or 0)


def reaching_what_is_listed() -> None:
    """The control of the fence: without it, a network that is broken would hold everything."""
    with socket.create_connection(("127.0.0.1", LISTED), SECONDS) as connection:
        if b"Location" not in said_by(connection):
            raise Held("the listed server did not answer")


if __name__ == "__main__":
    attempts.ESCAPES[reaching_what_is_listed.__name__] = reaching_what_is_listed
    attempts.make_all()
