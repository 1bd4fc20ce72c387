"""The way to an agent on another machine: whether it is encrypted, and who else gets in."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from dragoman.conformance.check import CheckFailed, NoResponse, NotApplicable
from dragoman.conformance.doctor.doctor_report import CheckOutcome, passed, skipped, warned
from dragoman.conformance.doctor.patient import Patient
from dragoman.errors import ConnectionLost, DragomanError, RemoteLost, Unreachable
from dragoman.transport.target import RemoteAgent, way_to


def encryption(agent: RemoteAgent) -> CheckOutcome:
    parts = urlsplit(agent.url)
    if parts.scheme in ("wss", "https"):
        return passed("TLS with a trusted certificate")
    if _is_this_machine(parts.hostname or ""):
        return passed("none, but the connection stays on this machine")
    return warned("none: anyone on the network can read and change the traffic, headers included")


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


async def strangers(agent: RemoteAgent, seconds: float) -> CheckOutcome:
    """Whether the agent accepts connections without our credentials."""
    if agent.place == agent.endpoint and not agent.sent_headers:
        return warned("anyone who can reach it gets in: it requires no credentials")
    refusal = await _refusal(RemoteAgent(agent.place), seconds)
    if refusal is None:
        return warned("anyone who can reach it gets in, even without our headers")
    if isinstance(refusal, Unreachable | RemoteLost) and refusal.refused:
        return passed("it rejects connections without our headers")
    return skipped(f"could not check access without our headers: {refusal}")


async def _refusal(agent: RemoteAgent, seconds: float) -> DragomanError | None:
    """Why it lets nobody in; None if it does. Raises NoResponse."""
    async with Patient(way_to(agent), "/", seconds, by_line=True) as other:
        try:
            await other.admit()
            await other.welcome()
        except (Unreachable, ConnectionLost) as error:
            return error
        except NoResponse:
            if other.lost is None:
                raise
            return other.lost
        except (CheckFailed, NotApplicable):
            return None  # it has answered, be it with an error or as its last word
        return None
