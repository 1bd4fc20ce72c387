"""What we say to an agent, in the words of ACP v2."""

from __future__ import annotations

from dragoman.client.config import HostCapabilities
from dragoman.client.dialect import Place
from dragoman.client.mcp import HttpServer, InProcessServer, McpServer, StdioServer
from dragoman.client.translation import block_of
from dragoman.client.v1 import to_wire as v1_outward
from dragoman.schema import codec, v1, v2
from dragoman.session.content import Content, Text

VERSION = 2


class _EitherInitialize(v2.InitializeRequest, kw_only=True):
    """A request that an agent of version 1 understands too: it looks for these fields, and would
    take us for a client that offers nothing without them."""

    client_capabilities: v1.ClientCapabilities
    client_info: v1.Implementation


def initialize(host: HostCapabilities, name: str, version: str) -> bytes:
    request = _EitherInitialize(
        protocol_version=VERSION,
        info=v2.Implementation(name=name, title="Dragoman", version=version),
        capabilities=_capabilities(host),
        client_capabilities=v1_outward.client_capabilities(host),
        client_info=v1.Implementation(name=name, title="Dragoman", version=version),
    )
    return codec.encode(request)


def _capabilities(host: HostCapabilities) -> v2.ClientCapabilities:
    """Only what was not switched off; files and terminals are the agent's own in this version."""
    terminal = v2.TerminalAuthCapabilities() if host.terminal_sign_in else None
    form = v2.ElicitationFormCapabilities()
    url = v2.ElicitationUrlCapabilities()
    return v2.ClientCapabilities(
        auth=None if terminal is None else v2.ClientAuthCapabilities(terminal=terminal),
        elicitation=v2.ElicitationCapabilities(form=form, url=url) if host.elicitation else None,
        meta=host.meta,
    )


def content(part: Content) -> v2.ContentBlock:
    return block_of(part, v2)


def mcp_servers(place: Place) -> list[v2.McpServer]:
    """Without servers of a transport that this version does not have; they were left out with a
    note already, because no agent of this version can say that it takes them."""
    found = (_mcp_server(server) for server in place.mcp_servers)
    return [server for server in found if server is not None]


def _mcp_server(server: McpServer) -> v2.McpServer | None:
    match server:
        case StdioServer():
            return v2.McpServerStdio(
                name=server.name,
                command=server.command,
                args=list(server.args),
                env=[v2.EnvVariable(name=n, value=value) for n, value in server.env.items()],
            )
        case HttpServer():
            headers = [v2.HttpHeader(name=n, value=value) for n, value in server.headers.items()]
            return v2.McpServerHttp(name=server.name, url=server.url, headers=headers)
        case InProcessServer():
            return v2.McpServerAcp(name=server.name, server_id=server.id)
        case _:
            return None


def directories(place: Place) -> list[str]:
    return place.additional_directories if place.tell_directories else []


def system_prompt(place: Place) -> v2.SystemPrompt | None:
    if place.system_prompt is None:
        return None
    return v2.SystemPrompt(mode="append", content=[content(Text(place.system_prompt))])
