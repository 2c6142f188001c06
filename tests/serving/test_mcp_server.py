"""`satkgc mcp` asked by the SDK's own client: over the streams of a real process, and over a real HTTP server."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from running import CLIENT, running

from satkgc.completion import Completer
from satkgc.errors import SatkgcError
from satkgc.serving import TOOLS
from satkgc.serving.service import Service
from satkgc.serving.settings import ServiceSettings

pytest.importorskip("mcp", reason="the protocol's SDK is not installed")
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.types import CallToolResult

from satkgc.serving.mcp_server import create_mcp_app

COMMAND = [sys.executable, "-m", "satkgc", "mcp"]
ENVIRONMENT = {name: os.environ[name] for name in ("PYTHONPATH", "SATKGC_CACHE") if name in os.environ}
ENVIRONMENT |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
DOG = {"head": "dog", "relation": "hypernym"}
REFUSED = [
    ("complete", {**DOG, "k": 10**6}, "k: Input should be less than or equal to 100"),
    ("complete", {**DOG, "head": "dig"}, "unknown entity 'dig'; did you mean"),
    ("complete", {**DOG, "relation": "hyper"}, "unknown relation 'hyper'"),
    ("complete", {"head": "", "relation": ""}, "head: it is empty; give at least one character"),
    ("check", {**DOG, "tail": "x" * 1_000_000}, "tail: String should have at most 2000 characters"),
    ("forget", {}, "no tool is called 'forget'; there are search"),
]


def ask(server: Any, talk: Callable[[Client], Awaitable[None]], mode: str = "auto") -> None:
    """Talk to a server as a client does."""

    async def session() -> None:
        with anyio.fail_after(120):
            async with Client(server, mode=mode) as client:
                await talk(client)

    anyio.run(session)


def command(run: Path) -> Any:
    """The command, which the client starts."""
    return stdio_client(StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], str(run)], env=ENVIRONMENT))


def line(result: CallToolResult) -> str:
    """The one text of a result."""
    (part,) = result.content
    return part.text  # type: ignore[union-attr]


async def converse(client: Client, completer: Completer) -> None:
    """What holds over either transport."""
    tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools.keys() == TOOLS.keys()
    for name, tool in tools.items():
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint is True, name
        assert tool.annotations.destructive_hint is False, name
        assert tool.input_schema == TOOLS[name].input_schema
        assert tool.description
    questions = {
        "tail": (DOG, completer.tails("dog", "hypernym", 3)),
        "head": ({"relation": "hypernym", "tail": "canine"}, completer.heads("hypernym", "canine", 3)),
        "relation": ({"head": "dog", "tail": "wolf"}, completer.relations("dog", "wolf", 3)),
    }
    for asked, (question, answers) in questions.items():
        result = await client.call_tool("complete", {**question, "k": 3})
        assert not result.is_error
        assert result.structured_content["asked"] == asked
        assert json.loads(line(result)) == result.structured_content
        for reply, answer in zip(result.structured_content["answers"], answers, strict=True):
            assert (reply["id"], reply["known"]) == (answer.id, answer.known)
            assert reply["score"] == pytest.approx(answer.score, abs=1e-5)
    found = (await client.call_tool("search", {"text": "<img"})).structured_content
    assert found == {"entities": [asdict(entity) for entity in completer.search("<img")]}
    why = (await client.call_tool("evidence", {**DOG, "tail": "feline"})).structured_content
    assert why["query_text"] == completer.evidence("dog", "hypernym", "feline").query_text
    assert (await client.call_tool("check", {**DOG, "tail": "canine"})).structured_content["known"] is True
    for name, arguments, start in REFUSED:
        result = await client.call_tool(name, arguments)
        assert result.is_error
        assert line(result).startswith(start)
        assert "\n" not in line(result)
        assert len(line(result)) <= 1000


def test_a_client_that_starts_the_command_gets_the_completers_answers(run: Path, completer: Completer) -> None:
    ask(command(run), lambda client: converse(client, completer))


@pytest.fixture(scope="module")
def address(completer: Completer):  # type: ignore[no-untyped-def]
    """Of a protocol server over HTTP."""
    with running(create_mcp_app(Service(lambda: completer, ServiceSettings())), ready=False) as url:  # type: ignore[arg-type]
        yield f"{url}/mcp"


@pytest.mark.parametrize("mode", ["auto", "legacy"])  # the protocol with and without its older handshake
def test_a_client_gets_them_over_http(mode: str, address: str, completer: Completer) -> None:
    ask(address, lambda client: converse(client, completer), mode)


HEADERS = {"accept": "application/json, text/event-stream"}
PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.mark.parametrize(
    ("headers", "status"),
    [({}, 200), ({"host": "evil.example"}, 421), ({"origin": "http://evil.example"}, 403)],
)
def test_a_page_elsewhere_cannot_ask(headers: dict[str, str], status: int, address: str) -> None:
    assert CLIENT.post(address, json=PING, headers=HEADERS | headers).status_code == status


def test_a_body_that_is_too_large_is_refused(address: str) -> None:
    answer = CLIENT.post(address, content=b"x" * (2 << 20), headers=HEADERS)
    assert (answer.status_code, answer.json()) == (413, {"error": "the body is larger than 1048576 bytes"})


def test_a_public_address_needs_a_token_and_asks_for_it(completer: Completer) -> None:
    with pytest.raises(SatkgcError, match=r"0\.0\.0\.0 is open to others, and there is no token; set one"):
        create_mcp_app(Service(lambda: completer, ServiceSettings("0.0.0.0")))
    service = Service(lambda: completer, ServiceSettings("0.0.0.0", token="secret"))
    with running(create_mcp_app(service), ready=False) as url:  # type: ignore[arg-type]
        answers: list[httpx.Response] = [
            CLIENT.post(f"{url}/mcp", json=PING, headers=HEADERS | headers)
            for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Bearer secret"})
        ]
    assert [answer.status_code for answer in answers] == [401, 401, 200]


@contextmanager
def started(*arguments: object):  # type: ignore[no-untyped-def]
    """The command in its own process, with pipes."""
    command = [*COMMAND, *map(str, arguments)]
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, env={**os.environ, **ENVIRONMENT}, **pipes) as process:
        try:
            yield process
        finally:
            process.kill()


def test_the_command_serves_over_http_and_ends_on_sigterm(run: Path, completer: Completer) -> None:
    with started(run, "--http", "--port", "0") as process:
        address = re.search(r"http://127\.0\.0\.1:\d+/mcp", process.stdout.readline())
        assert address is not None

        async def talk(client: Client) -> None:
            result = await client.call_tool("complete", {**DOG, "k": 1})  # waits for the model
            assert result.structured_content["answers"][0]["id"] == completer.tails("dog", "hypernym", 1)[0].id

        ask(address.group(), talk)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_nothing_but_the_protocol_is_on_standard_output(unprepared: Path) -> None:
    """Not even where the entities have to be encoded first, which is said on the error stream."""
    with started(unprepared) as process:
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
        for number, (method, params) in enumerate([("initialize", hello), ("tools/list", {})]):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
            process.stdin.write(json.dumps(message) + "\n" + "no JSON at all\n" * number)
            process.stdin.flush()
        lines = [json.loads(process.stdout.readline()) for _ in range(2)]
        assert [one["id"] for one in lines] == [0, 1]
        assert lines[0]["result"]["serverInfo"]["name"] == "satkgc"
        told = process.stderr.readline()
        assert told.startswith("this run has no index yet")
        process.stdin.close()  # while it is still at work
        assert process.wait(60) == 0
        assert all(json.loads(rest)["jsonrpc"] == "2.0" for rest in process.stdout.read().splitlines())


def test_a_run_that_cannot_be_loaded_is_told_to_whoever_asks(run: Path, tmp_path: Path) -> None:
    broken = tmp_path / "run"
    shutil.copytree(run, broken)
    shutil.rmtree(broken / "model")

    async def talk(client: Client) -> None:
        result = await client.call_tool("relations", {})
        assert result.is_error
        assert re.match(r"the model could not be loaded: .*no model", line(result))

    ask(command(broken), talk)


def test_what_is_no_run_is_refused_in_one_line(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (2, "")
    assert "no run here" in err
    assert err.count("\n") == 1
