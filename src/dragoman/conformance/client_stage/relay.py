"""The program that a client starts as its agent: copies its streams to a socket, and back.

Runs without the rest of the package, with nothing but the standard library: `relay.py SOCKET`.
"""

from __future__ import annotations

import os
import socket
import sys
import threading

_AT_ONCE = 64 * 1024


def main() -> None:
    stage = socket.socket(socket.AF_UNIX)
    stage.connect(sys.argv[1])
    threading.Thread(target=_take_input, args=(stage,), daemon=True).start()
    # The first byte says how it is to exit when the stage is done.
    code = stage.recv(1)
    while data := _received(stage):
        _write_all(data)
    os._exit(code[0] if code else 1)


def _take_input(stage: socket.socket) -> None:
    while data := os.read(0, _AT_ONCE):
        stage.sendall(data)
    stage.shutdown(socket.SHUT_WR)


def _received(stage: socket.socket) -> bytes:
    try:
        return stage.recv(_AT_ONCE)
    except ConnectionError:
        return b""


def _write_all(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    main()
