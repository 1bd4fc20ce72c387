"""`python mcp_stdio.py SOCKET GREETING`: an MCP server that is in another process, as a program.

An agent starts it like any MCP server on standard input and output. It connects to the socket,
sends the greeting, which says what server is meant, and copies both ways until one side ends. It
runs alone and knows nothing of Dragoman, so that it starts quickly with any Python.
"""

from __future__ import annotations

import os
import socket
import sys
from threading import Thread

_SIZE = 65536


def main() -> None:
    address, greeting = sys.argv[1:]
    with socket.socket(socket.AF_UNIX) as there:
        try:
            there.connect(address)
            there.sendall(greeting.encode() + b"\n")
        except OSError as error:
            sys.exit(f"the program that has this MCP server has ended: {error.strerror}")
        Thread(target=_send_input, args=(there,), daemon=True).start()
        while data := _received(there):
            _print(data)
    os._exit(0)  # the thread may still wait for input


def _send_input(there: socket.socket) -> None:
    while data := os.read(0, _SIZE):
        try:
            there.sendall(data)
        except OSError:
            return
    there.shutdown(socket.SHUT_WR)


def _received(there: socket.socket) -> bytes:
    try:
        return there.recv(_SIZE)
    except OSError:
        return b""


def _print(data: bytes) -> None:
    while data:
        try:
            data = data[os.write(1, data) :]
        except OSError:  # the agent no longer reads
            os._exit(0)


if __name__ == "__main__":
    main()
