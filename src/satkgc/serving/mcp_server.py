"""The tools over the Model Context Protocol, to a program that starts this one (stdio) or over HTTP."""

from __future__ import annotations

import json
import logging
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from anyio.to_thread import run_sync
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.server.transport_security import TransportSecuritySettings
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp.types import Tool as ToolDescription
from starlette.applications import Starlette
from starlette.middleware import Middleware

from satkgc.errors import SatkgcError
from satkgc.serving.gate import Gate
from satkgc.serving.run import check_run, end_service, open_completer, run_server, version_of
from satkgc.serving.schemas import one_line
from satkgc.serving.service import Busy, NotReady, Service
from satkgc.serving.settings import LOAD_SECONDS, LOOPBACK, MAX_BODY, MAX_CELL, MCP_PATH, ServiceSettings
from satkgc.serving.tools import TOOLS, call_tool
from satkgc.version import __version__

_log = logging.getLogger(__name__)
_READ_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
_INSTRUCTIONS = (
    "A knowledge graph, and a model that predicts its missing statements. Statements are (head, relation, tail). "
    "Search for entities first, and give their ids to the other tools; `relations` lists the relations. Answers that "
    "are not `known` are predictions with a probability, not facts."
)


def make_server(service: Service) -> Server[Any]:
    """A protocol server over a service; a call waits a while for a model that still loads."""

    async def list_tools(context: object, page: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(
            tools=[
                ToolDescription(
                    name=tool.name,
                    title=tool.title,
                    description=tool.description,
                    input_schema=tool.input_schema,
                    output_schema=tool.output_schema,
                    annotations=_READ_ONLY,
                )
                for tool in TOOLS.values()
            ]
        )

    def answer(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        service.wait(LOAD_SECONDS)
        if service.failure is not None and service.settings.local_only:  # others are not told its paths
            raise NotReady(f"the model could not be loaded: {service.failure}")
        completer = service.completer
        return call_tool(completer, name, arguments, partial(service.ask, completer))

    async def call(context: object, request: CallToolRequestParams) -> CallToolResult:
        try:
            values = await run_sync(answer, request.name, request.arguments or {}, abandon_on_cancel=True)
        except (SatkgcError, NotReady) as error:
            return _refusal(one_line(error))
        except Busy:
            return _refusal("too many questions are waiting; ask again in a moment")
        except Exception:
            _log.exception("error in the tool %.100r", request.name)
            return _refusal("internal error; the error stream of the server says more")
        text = json.dumps(values, ensure_ascii=False)
        return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=values)

    return Server(
        "satkgc",
        version=__version__,
        title="satkgc",
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call,
    )


def _refusal(message: str) -> CallToolResult:
    line = message if len(message) <= 2 * MAX_CELL else message[: 2 * MAX_CELL - 1] + "…"
    return CallToolResult(content=[TextContent(type="text", text=line)], is_error=True)


def serve_stdio(run: Path, *, device: str = "auto") -> None:
    """Answer the program that has started this one, until it closes the stream. Nothing else is written to it."""
    service = _service(run, ServiceSettings(), device)

    async def answer() -> None:
        server = make_server(service)
        async with stdio_server() as (incoming, outgoing):  # from here on, what prints goes to the error stream
            service.start()
            await server.run(incoming, outgoing, server.create_initialization_options())

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a thread waits for the next line, and would not be interrupted
    anyio.run(answer)
    end_service(service)


def create_mcp_app(service: Service) -> Starlette:
    """The application of the protocol's HTTP, behind the same gate as the REST API."""
    settings = service.settings
    if settings.token is None and settings.host not in LOOPBACK:
        remedy = "set one with --token or SATKGC_TOKEN, or leave --host out"
        raise SatkgcError(f"{settings.host} is open to others, and there is no token", remedy=remedy)
    server = make_server(service)
    names = ["127.0.0.1", "localhost", "[::1]", *settings.allow_hosts]
    hosts = [form for name in names for form in (name, f"{name}:*")]
    security = TransportSecuritySettings(
        enable_dns_rebinding_protection=settings.local_only,  # else the gate asks for the token
        allowed_hosts=hosts,
        allowed_origins=[f"{scheme}://{host}" for scheme in ("http", "https") for host in hosts],
    )
    # Without sessions: no tool has anything to remember, and nothing is sent that was not asked for.
    inner = server.streamable_http_app(
        streamable_http_path=MCP_PATH,
        json_response=True,
        stateless_http=True,
        max_request_body_size=MAX_BODY,
        transport_security=security,
    )

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        service.start()
        async with server.session_manager.run():
            yield
        await run_sync(service.stop)

    gate = Middleware(Gate, settings=settings, metrics=service.metrics)
    return Starlette(routes=inner.routes, lifespan=lifespan, middleware=[gate])


def serve_http(run: Path, settings: ServiceSettings, *, device: str = "auto") -> None:
    """Answer over HTTP until SIGTERM or Ctrl-C, which let the requests in flight finish."""
    service = _service(run, settings, device)
    run_server(create_mcp_app(service), service, path=MCP_PATH)


def _service(run: Path, settings: ServiceSettings, device: str) -> Service:
    check_run(run)

    def report(progress: str) -> None:
        service.progress = progress

    service = Service(lambda: open_completer(run, device, report), settings, lambda: version_of(run))
    return service
