"""The server with the Python SDK, in each of its modes."""

import json
import os
import shlex
import time
from pathlib import Path

import anyio
import pytest
from mcp import Client, MCPError, StdioServerParameters

HERE = Path(__file__).parent
DEFAULT_COMMAND = str(HERE / "../../target/debug/exa-mcp-server")
COMMAND, *ARGUMENTS = shlex.split(os.environ.get("EXA_MCP_SERVER_COMMAND", DEFAULT_COMMAND))
CALLS = json.loads(os.environ.get("EXA_MCP_TEST_CALLS") or (HERE / "calls.json").read_text())
MODES = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}

needs_slow_call = pytest.mark.skipif(not CALLS["slow"], reason="calls.json names no slow call")
pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(params=MODES)
def mode(request):
    return request.param


@pytest.fixture(params=["stdio", "http"])
def reach(request):
    """Connects, over standard input and output or to a shared server, to the tools of a set."""
    if request.param == "stdio":
        return lambda mode, tools="default": connect(mode, "--tools", tools)
    server = request.getfixturevalue("http_server")
    return lambda mode, tools="default": server.connect(mode, tools)


def connect(mode, *options):
    arguments = [*ARGUMENTS, *options]
    server = StdioServerParameters(command=COMMAND, args=arguments, env=dict(os.environ))
    return Client(server, mode=mode, read_timeout_seconds=30)


def call(client, kind):
    return client.call_tool(CALLS[kind]["name"], CALLS[kind].get("arguments"))


async def test_initialize_returns_name_version_and_capabilities(reach, mode):
    async with reach(mode) as client:
        assert client.protocol_version == MODES[mode]
        if mode == "2026-07-28":
            return  # This mode asks the server for nothing before its first request.
        assert client.server_info.name == "exa-mcp-server"
        assert client.instructions
        assert client.server_capabilities.tools.list_changed is False
        assert client.server_capabilities.resources.subscribe is True
        assert client.server_capabilities.prompts is not None
        assert client.server_capabilities.completions is not None


async def test_all_tools_are_listed(reach, mode):
    async with reach(mode) as client:
        listed = await client.list_tools()
        assert CALLS["good"]["name"] in [tool.name for tool in listed.tools]
        assert listed.next_cursor is None
        for tool in listed.tools:
            assert tool.title and tool.description, tool.name
            assert tool.input_schema["type"] == "object", tool.name
            assert tool.annotations.read_only_hint is not None, tool.name
        if MODES[mode] == "2026-07-28":
            assert listed.ttl_ms > 0 and listed.cache_scope == "private"


async def test_a_call_returns_text_and_structured_content(reach, mode):
    async with reach(mode) as client:
        result = await call(client, "good")
        assert result.is_error is False
        assert result.content[0].type == "text"
        assert isinstance(result.structured_content, dict)


@pytest.mark.parametrize("tool_set", CALLS.get("sets", {}))
async def test_tools_of_every_set_succeed(reach, mode, tool_set):
    async with reach(mode, tool_set) as client:
        for example in CALLS["sets"][tool_set]:
            result = await client.call_tool(example["name"], example.get("arguments"))
            assert result.is_error is False, (example["name"], result.content)


async def test_a_failed_call_is_a_result_with_is_error(reach, mode):
    async with reach(mode) as client:
        result = await call(client, "bad")
        assert result.is_error is True
        assert result.content[0].text


async def test_unknown_names_are_errors_with_the_right_code(reach, mode):
    async with reach(mode) as client:
        with pytest.raises(MCPError) as unknown_tool:
            await client.call_tool(CALLS["good"]["name"] + "x", {})
        assert unknown_tool.value.code == -32602
        assert CALLS["good"]["name"] in unknown_tool.value.error.data["nearest"]
        with pytest.raises(MCPError) as unknown_cursor:
            await client.list_tools(cursor="nowhere")
        assert unknown_cursor.value.code == -32602
        with pytest.raises(MCPError) as unknown_prompt:
            await client.get_prompt("no_such_prompt")
        assert unknown_prompt.value.code == -32602


async def test_many_calls_run_concurrently(reach, mode):
    results = []

    async def one(client):
        results.append(await call(client, "good"))

    async with reach(mode) as client, anyio.create_task_group() as tasks:
        for _ in range(64):
            tasks.start_soon(one, client)
    assert [result.is_error for result in results] == [False] * 64


@needs_slow_call
async def test_a_cancelled_call_leaves_the_connection_usable(reach, mode):
    async with reach(mode) as client:
        with anyio.move_on_after(0.2) as scope:
            await call(client, "slow")
        assert scope.cancelled_caught
        result = await call(client, "good")
        assert result.is_error is False


@needs_slow_call
async def test_a_slow_call_times_out(reach, mode):
    async with reach(mode) as client:
        slow = CALLS["slow"]
        with pytest.raises(MCPError):
            await client.call_tool(slow["name"], slow.get("arguments"), read_timeout_seconds=0.2)
        assert (await call(client, "good")).is_error is False


async def test_the_server_exits_when_its_input_is_closed(mode):
    async with connect(mode) as client:
        await call(client, "good")
        start = time.monotonic()
    # The SDK would send a signal after two seconds.
    assert time.monotonic() - start < 1.5
