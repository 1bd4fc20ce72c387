"""Endpoints for agents: list, sessions, model providers, sign-in and doctor."""

from __future__ import annotations

import msgspec

from dragoman.agents.listing import list_agents
from dragoman.agents.settings.settings_file import ModelProvider
from dragoman.agents.sign_ins import SignInNotes
from dragoman.client.capabilities import AuthMethod
from dragoman.conformance.doctor.check_up import examine
from dragoman.errors import UnknownAgent, Unsupported
from dragoman.host.forms.elicitation import ElicitationAnswer
from dragoman.hub.running.agent_pool import known_sessions
from dragoman.store.records import SessionFilter
from dragoman.transport.stdio import AgentCommand
from dragoman.web.api.sessions import summary, summary_of
from dragoman.web.context import Server
from dragoman.web.failures import RequestFailed
from dragoman.web.placement import folder
from dragoman.web.shapes.server_shapes import (
    AgentList,
    AgentSessions,
    AgentSessionShape,
    AgentSessionsQuery,
    AuthBody,
    DoctorReport,
    ImportBody,
    ProviderBody,
    ProviderList,
    ProviderShape,
    Question,
    QuestionList,
    SignIn,
    SignIns,
)
from dragoman.web.shapes.session_shapes import ElicitationBody, Summary

_DOCTOR_SECONDS = 30.0
_MANY = 10_000


async def list_all(server: Server) -> AgentList:
    return AgentList(agents=list_agents(server.launcher.settings(), SignInNotes()))


# ── what an agent knows ───────────────────────────────────────────────────────────────────────


async def sessions(server: Server, name: str, query: AgentSessionsQuery) -> AgentSessions:
    ours = await server.hub.store.sessions(SessionFilter(agent=name, limit=_MANY))
    known = {record.agent_session_id: record.id for record in ours}
    async with server.hub.using(name, server.cwd) as client:
        told = await known_sessions(client, query.cwd, archived=query.archived, limit=query.limit)
    return AgentSessions(
        sessions=[
            AgentSessionShape(
                id=each.info.id,
                cwd=each.info.cwd,
                title=each.info.title,
                updated_at=each.info.updated_at,
                known_as=known.get(each.info.id),
                archived=each.info.archived,
                status=each.status,
            )
            for each in told
        ]
    )


async def import_session(server: Server, name: str, body: ImportBody) -> Summary:
    """One that is here already is not taken a second time."""
    async with server.hub.running.adopting(name, body.session_id) as known:
        if known is not None:
            return await summary(server, known.id)
        cwd = await _cwd(server, name, body.session_id) if body.cwd is None else body.cwd
        if body.cwd is None and not await _is_known(server, cwd):
            sentence = f"the agent ran it in {cwd}; name the directory to continue in as `cwd`"
            raise RequestFailed(409, "no_workspace", sentence, {"cwd": cwd})
        live = await server.hub.adopt(name, body.session_id, folder(cwd))
        await live.take_title()
        return await summary_of(server, live)


async def _is_known(server: Server, cwd: str) -> bool:
    """Whether a person has chosen this folder before: an agent's word alone opens none."""
    recorded = await server.hub.store.sessions(SessionFilter(cwd=cwd, limit=1))
    return bool(cwd) and (cwd == server.cwd or bool(recorded))


async def _cwd(server: Server, name: str, session_id: str) -> str:
    """The folder of a session that only the agent knows."""
    async with server.hub.using(name, server.cwd) as client:
        async for info in client.list_sessions():
            if info.id == session_id:
                return info.cwd
    raise RequestFailed(404, "unknown_session", f"the agent has no session {session_id}")


# ── providers of models ───────────────────────────────────────────────────────────────────────


async def providers(server: Server, name: str) -> ProviderList:
    async with server.hub.using(name, server.cwd) as client:
        told = await client.list_providers()
    return ProviderList(providers=msgspec.convert(told, list[ProviderShape]))


async def set_provider(server: Server, name: str, provider_id: str, body: ProviderBody) -> None:
    provider = ModelProvider(api_type=body.api_type, base_url=body.base_url, headers=body.headers)
    await _provide(server, name, provider_id, provider)


async def disable_provider(server: Server, name: str, provider_id: str) -> None:
    await _provide(server, name, provider_id, None)


async def _provide(
    server: Server, name: str, provider_id: str, provider: ModelProvider | None
) -> None:
    """In each process of the agent that runs here, and in those started later."""
    async with server.hub.using(name, server.cwd) as used:
        others = [client for client in server.hub.clients(name) if client is not used]
        for client in (used, *others):
            if provider is None:
                await client.disable_provider(provider_id)
            else:
                await client.set_provider(
                    provider_id, provider.api_type, provider.base_url, provider.headers
                )
    server.launcher.model_providers.setdefault(name, {})[provider_id] = provider


# ── signing in, and health ────────────────────────────────────────────────────────────────────


async def auth(server: Server, name: str, body: AuthBody) -> SignIns:
    async with server.hub.using(name, server.cwd) as client:
        if body.method_id is not None:
            await client.authenticate(body.method_id)
        says_so = client.auth is not None and client.auth.signed_in is True
        return SignIns(
            methods=[_way(server, name, method) for method in client.auth_methods],
            signed_in=body.method_id is not None or says_so,
            can_logout=client.capabilities.logout,
        )


def _way(server: Server, name: str, method: AuthMethod) -> SignIn:
    """With what a person runs where only a terminal helps; the values of variables are not told."""
    way = SignIn(id=method.id, name=method.name, kind=method.kind, description=method.description)
    if method.kind == "terminal" and (command := _command(server, name)) is not None:
        way.command = [command.command, *command.args, *method.args]
        way.env = sorted({*command.env, *method.env})
    return way


def _command(server: Server, name: str) -> AgentCommand | None:
    """None for an agent that does not run here."""
    try:
        return server.launcher.command(name)
    except (UnknownAgent, Unsupported):
        return None


async def sign_out(server: Server, name: str) -> None:
    async with server.hub.using(name, server.cwd) as client:
        await client.logout()


async def questions(server: Server, name: str) -> QuestionList:
    """Nobody is started for this: only an agent that runs can ask."""
    asked = (await all_questions(server)).questions
    return QuestionList(questions=[each for each in asked if each.agent == name])


async def all_questions(server: Server) -> QuestionList:
    return QuestionList(
        questions=[
            Question(
                agent=agent,
                id=each.request_id,
                message=each.message,
                mode=each.mode,
                schema=each.schema,
                url=each.url,
            )
            for agent, each in server.questions_outside()
        ]
    )


async def answer(server: Server, name: str, request_id: str, body: ElicitationBody) -> None:
    for client in server.hub.clients(name):
        if any(each.request_id == request_id for each in client.pending):
            answered = ElicitationAnswer(body.action, body.content)
            return await client.answer_elicitation(request_id, answered)
    raise RequestFailed(404, "unknown_request", f"the agent has no pending question {request_id}")


async def doctor(server: Server, name: str) -> DoctorReport:
    agent = server.launcher.target(name)
    report = await examine(agent, name=name, seconds=_DOCTOR_SECONDS)
    grades = ("pass", "warn", "fail", "skip")
    return DoctorReport(
        **msgspec.structs.asdict(report),
        outcome=report.result,
        counts={grade: report.count(grade) for grade in grades},
    )
