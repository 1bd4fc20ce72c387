"""What the doctor checks at the door of an agent that runs elsewhere: who hears, and who gets in.

That we get in ourselves has been found out already.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from dragoman.agents.patient import Patient
from dragoman.agents.report import Outcome, passed, skipped, warned
from dragoman.errors import ConnectionLost, RemoteLost, Unreachable
from dragoman.transport.remote import RemoteAgent


def encryption(agent: RemoteAgent) -> Outcome:
    parts = urlsplit(agent.url)
    if parts.scheme in ("wss", "https"):
        return passed("TLS, with a certificate that is trusted")
    if _is_this_machine(parts.hostname or ""):
        return passed("none, on the way to this machine itself")
    return warned("none: whoever is on the way can read and change what is said, headers too")


async def strangers(agent: RemoteAgent, cwd: str) -> Outcome:
    """Whoever comes without what we show at the door."""
    if agent.place == agent.endpoint and not agent.sent_headers:
        return warned("whoever reaches it is let in: it asked for no header")
    try:
        other = await Patient.admit(RemoteAgent(agent.place), cwd)
    except (Unreachable, ConnectionLost) as error:
        if isinstance(error, Unreachable | RemoteLost) and error.refused:
            return passed("whoever comes without our headers is not let in")
        return skipped(f"it was not seen who else is let in: {error}")
    await other.discharge()
    return warned("whoever reaches it is let in, without our headers too")


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
