"""Sessions that end right after an answer, as scripts and agents of the first Python SDK make them."""

import os
import re
import subprocess

import pytest
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client

SESSIONS = 100

pytestmark = pytest.mark.anyio


@pytest.fixture
def address(command):
    """The address of a server over HTTP."""
    options = ["http", "--listen", "127.0.0.1:0"]
    server = subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True)
    with server:
        try:
            found = None
            while found is None:
                line = server.stderr.readline()
                assert line, "the server did not start"
                found = re.search(r"http://[0-9.:]+/mcp", line)
            yield found[0]
        finally:
            server.terminate()


async def search_once(read, write, number):
    """Makes one session with a call that changes the list of resources."""
    async with ClientSession(read, write) as session:
        await session.initialize()
        # Otherwise the SDK lists the tools after the call, and the session does not end with an answer.
        await session.list_tools()
        query = f"solid-state batteries {number}"
        result = await session.call_tool("web_search_exa", {"query": query, "numResults": 1})
        assert not result.isError, result.content


async def test_short_sessions_over_stdio(command):
    program, *options = command
    server = StdioServerParameters(command=program, args=options, env=dict(os.environ))
    for number in range(SESSIONS):
        async with stdio_client(server) as (read, write):
            await search_once(read, write, number)


@pytest.mark.filterwarnings("ignore:Use `streamable_http_client` instead:DeprecationWarning")
async def test_short_sessions_over_http(address):
    headers = {"x-api-key": os.environ.get("EXA_API_KEY", "client-tests")}
    for number in range(SESSIONS):
        async with streamablehttp_client(address, headers=headers) as (read, write, _):
            await search_once(read, write, number)
