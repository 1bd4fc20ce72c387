"""From a job to its client, and to a session set as asked."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.cli.guard import UsageError
from dragoman.cli.values import typed
from dragoman.client.client import Client
from dragoman.client.options import HostCapabilities, Timeouts
from dragoman.errors import Unsupported

if TYPE_CHECKING:
    from dragoman.cli.in_order import InOrder
    from dragoman.cli.job import Job
    from dragoman.client.session import Session
    from dragoman.rpc import Tap
    from dragoman.session.facts import Offer


def client_for(
    job: Job,
    asker: InOrder | None,
    offer: Offer,
    *,
    timeout: float | None = None,
    tap: Tap | None = None,
) -> Client:
    """The client of the job's agent, not started yet, which offers at most this; without an asker
    nobody is asked.

    Raises UsageError for a recording that cannot be written.
    """
    offer = job.agent.offer.within(offer)
    could_write = job.policy.could_allow("write", agent=job.agent.name, person=asker is not None)
    return Client.start(
        job.command,
        name=job.agent.name,
        policy=job.policy,
        capabilities=HostCapabilities(
            read_files=offer.files,
            write_files=offer.files and could_write,
            terminals=offer.terminals,
            elicitation=asker is not None,
            terminal_sign_in=True,
        ),
        timeouts=_timeouts(timeout),
        tap=job.record.beside(tap),
        permissions=asker,
        elicitation=asker,
        quirks=job.agent.quirks,
        protocol=job.agent.protocol,
        proxies=job.proxies,
    )


def _timeouts(seconds: float | None) -> Timeouts:
    """No progress is no progress, when the agent starts too."""
    if seconds is None:
        return Timeouts()
    return Timeouts(initialize=seconds, control=seconds, progress=seconds)


async def configure(session: Session, job: Job) -> None:
    """Mode, model and options. Raises UsageError for what is not there."""
    options = job.options
    try:
        if options.mode is not None:
            await session.set_mode(options.mode)
        if options.model is not None:
            await session.set_model(options.model)
        for option, value in job.assignments:
            await session.set_config_option(option, typed(session.state, option, value))
    except (ValueError, Unsupported) as error:
        raise UsageError(str(error)) from error
