"""LangChain's adapters, which use the first generation of the Python SDK."""

import os

import pytest
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_mcp_adapters.tools import load_mcp_tools
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

pytestmark = pytest.mark.anyio


@pytest.fixture
async def tools(command, sets):
    program, *options = command
    options += ["--tools", ",".join(sets)]
    server = StdioServerParameters(command=program, args=options, env=dict(os.environ))
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield await load_mcp_tools(session)


async def test_every_tool_is_converted(tools, sets):
    assert {tool.name for tool in tools} == {name for names in sets.values() for name in names}
    for tool in tools:
        for strict in (None, True):
            function = convert_to_openai_tool(tool, strict=strict)["function"]
            declared = set(function["parameters"]["properties"])
            assert declared == set(tool.args_schema["properties"]), tool.name


async def test_a_converted_tool_is_called(tools):
    (search,) = [tool for tool in tools if tool.name == "web_search_exa"]
    answer = await search.ainvoke({"query": "solid-state batteries", "numResults": 2})
    assert "solid" in str(answer)
