"""The scripted agent behind a WebSocket: the scenes `updates` and `roundtrips` of `agent.c`.

In Python, with blocking calls and nothing made safe: the handshake and frames for our client alone.
Updates are framed before the clock runs, so that a run measures the client. Prints its port.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import socket
import sys
import time

_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_WARM_UP = 500
_CHUNK = (
    b'{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"bench","update":'
    b'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":'
    b'"%08d and so the answer goes on a bit"}}}}'
)
_REQUEST = (
    b'{"jsonrpc":"2.0","id":%d,"method":"fs/read_text_file",'
    b'"params":{"sessionId":"bench","path":"/src/main.py"}}'
)
_REPLIES = {
    b"initialize": b'{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}',
    b"session/new": b'{"sessionId":"bench"}',
    b"session/prompt": b'{"stopReason":"end_turn"}',
}


def framed(payload: bytes) -> bytes:
    size = len(payload)
    head = bytes((0x81, size)) if size < 126 else b"\x81\x7e" + size.to_bytes(2)
    return head + payload


class Connection:
    """Messages of less than 64 KiB, each in a frame."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._sock = sock
        self._data = b""

    def shake_hands(self) -> None:
        while b"\r\n\r\n" not in self._data:
            self._data += self._sock.recv(65536)
        head, _, self._data = self._data.partition(b"\r\n\r\n")
        key = re.findall(rb"(?i)sec-websocket-key: (\S+)", head)[0]
        accept = base64.b64encode(hashlib.sha1(key + _GUID).digest())
        lines = (b"HTTP/1.1 101 Switching Protocols", b"Upgrade: websocket", b"Connection: Upgrade")
        self.write(b"\r\n".join((*lines, b"Sec-WebSocket-Accept: " + accept, b"", b"")))

    def write(self, data: bytes) -> None:
        self._sock.sendall(data)

    def wait(self) -> None:
        """Until something is there; the client sends nothing else meanwhile."""
        self._data += self._sock.recv(65536)

    def read(self) -> bytes:
        """The next text; b"" when the client has left."""
        while True:
            size = self._data[1] & 0x7F if len(self._data) > 1 else 1 << 30
            start = 2
            if size == 126 and len(self._data) > 3:
                size, start = int.from_bytes(self._data[2:4]), 4
            if len(self._data) >= start + 4 + size:
                break
            more = self._sock.recv(65536)
            if not more:
                return b""
            self._data += more
        mask, payload = self._data[start : start + 4], self._data[start + 4 : start + 4 + size]
        is_text = self._data[0] == 0x81
        self._data = self._data[start + 4 + size :]
        return _unmasked(payload, mask) if is_text else b""


def _unmasked(payload: bytes, mask: bytes) -> bytes:
    size = len(payload)
    whole = (mask * (size // 4 + 1))[:size]
    return (int.from_bytes(payload) ^ int.from_bytes(whole)).to_bytes(size)


def round_trips(connection: Connection, count: int, path: str) -> None:
    times: list[float] = []
    for number in range(_WARM_UP + count):
        request = framed(_REQUEST % number)
        started = time.perf_counter()
        connection.write(request)
        connection.wait()
        times.append((time.perf_counter() - started) * 1e6)
        answer = connection.read()
        assert answer.startswith(b'{"jsonrpc":"2.0","id":%d,"result"' % number), answer
    times = sorted(times[_WARM_UP:])
    figures = {"median_us": times[count // 2], "p99_us": times[count * 99 // 100]}
    with open(path, "w") as file:
        json.dump(figures, file)


def main(scene: str, count: int, path: str = "") -> None:
    updates = [framed(_CHUNK % number) for number in range(count)] if scene == "updates" else []
    blob = b"".join(updates)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        sock, _ = listener.accept()
    with sock:
        connection = Connection(sock)
        connection.shake_hands()
        while message := connection.read():
            key, method = re.findall(rb'"id":(\d+),"method":"([^"]+)"', message)[0]
            if method == b"session/prompt" and scene == "updates":
                connection.write(blob)
            elif method == b"session/prompt":
                round_trips(connection, count, path)
            reply = b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (key, _REPLIES[method])
            connection.write(framed(reply))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
