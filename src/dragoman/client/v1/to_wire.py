"""What we say to an agent, in the words of ACP v1."""

from __future__ import annotations

from dragoman.client.config import HostCapabilities
from dragoman.client.mcp import HttpServer, InProcessServer, McpServer, SseServer, StdioServer
from dragoman.client.translation import block_of
from dragoman.schema import v1
from dragoman.session.content import Content


def content(part: Content) -> v1.ContentBlock:
    return block_of(part, v1)


def mcp_server(server: McpServer) -> v1.McpServer:
    match server:
        case StdioServer():
            return v1.McpServerStdio(
                name=server.name,
                command=server.command,
                args=list(server.args),
                env=[v1.EnvVariable(name=n, value=value) for n, value in server.env.items()],
            )
        case HttpServer():
            return v1.McpServerHttp(
                name=server.name, url=server.url, headers=_headers(server.headers)
            )
        case SseServer():
            return v1.McpServerSse(
                name=server.name, url=server.url, headers=_headers(server.headers)
            )
        case InProcessServer():
            return v1.McpServerAcp(name=server.name, server_id=server.id)


def _headers(headers: dict[str, str]) -> list[v1.HttpHeader]:
    return [v1.HttpHeader(name=name, value=value) for name, value in headers.items()]


def client_capabilities(host: HostCapabilities) -> v1.ClientCapabilities:
    """Only what was not switched off, and only what we really handle."""
    form = v1.ElicitationFormCapabilities() if host.elicitation else None
    url = v1.ElicitationUrlCapabilities() if host.elicitation else None
    return v1.ClientCapabilities(
        fs=v1.FileSystemCapabilities(
            read_text_file=host.read_files, write_text_file=host.write_files
        ),
        terminal=host.terminals,
        session=v1.ClientSessionCapabilities(
            compaction=v1.CompactionCapabilities(),
            notices=v1.NoticeCapabilities(),
            config_options=v1.SessionConfigOptionsCapabilities(
                boolean=v1.BooleanConfigOptionCapabilities()
            ),
        ),
        plan=v1.PlanCapabilities(),
        auth=v1.AuthCapabilities(terminal=host.terminal_sign_in),
        elicitation=v1.ElicitationCapabilities(form=form, url=url) if host.elicitation else None,
        meta=host.meta,
    )
