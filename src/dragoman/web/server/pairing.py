"""What a device needs to be paired: the address with the code, and the QR code of that."""

from __future__ import annotations

import socket
from collections.abc import Sequence

from dragoman.web.server.guard import in_brackets
from dragoman.web.server.http_server import ANYWHERE

_NOWHERE = ("192.0.2.1", 9)
"""An address that only documentation uses: nothing is sent there, only a route is chosen."""


def pairing_address(origin: str, code: str) -> str:
    """In the fragment, which no server and no log sees."""
    return f"{origin}/#pair={code}"


def reachable_origin(host: str, port: int, origins: Sequence[str]) -> str:
    """Where a phone can most likely reach the server: at the first HTTPS origin that was allowed,
    else at the address of this machine."""
    if secure := next((each for each in origins if each.startswith("https://")), None):
        return secure
    name = _own_address(ANYWHERE[host]) if host in ANYWHERE else host
    return f"http://{in_brackets(name)}:{port}"


def _own_address(fallback: str) -> str:
    """That of the interface through which other machines are reached."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_NOWHERE)
        except OSError:
            return fallback
        return str(probe.getsockname()[0])


def qr_rows(text: str) -> list[str]:
    """The QR code without its quiet zone, `1` for dark."""
    import segno  # few servers pair a device

    code = segno.make_qr(text, error="l", boost_error=False)
    return ["".join("1" if module else "0" for module in row) for row in code.matrix]


_HALVES = {"00": "█", "01": "▀", "10": "▄", "11": " "}


def qr_in_terminal(rows: Sequence[str], *, coloured: bool) -> str:
    """Two modules in one character. The light ones are drawn; with colours, on black whatever the
    terminal's background is."""
    edge = "0" * (len(rows[0]) + 4)
    padded = [edge, edge, *(f"00{row}00" for row in rows), edge, edge]
    if len(padded) % 2:
        padded.append(edge)
    lines = (
        "".join(_HALVES[top + bottom] for top, bottom in zip(upper, lower, strict=True))
        for upper, lower in zip(padded[::2], padded[1::2], strict=True)
    )
    return "\n".join(f"\x1b[97;40m{line}\x1b[0m" if coloured else line for line in lines)
