"""A shared HTTP server."""

import os
import re
import shlex
import subprocess
import threading
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

HERE = Path(__file__).parent
DEFAULT_COMMAND = str(HERE / "../../target/debug/exa-mcp-server")
ADMIN, ANN, BOB = "admin-of-tests", "token-of-ann", "token-of-bob"


class HttpServer:
    """A server with its address."""

    def __init__(self, address):
        self.address = address

    def connect(self, mode, tools="default", token=ANN, **options):
        """Returns a client with a token; the URL restricts the tools to a set."""
        transport = streams(f"{self.address}/mcp?tools={tools}", token)
        return Client(transport, mode=mode, read_timeout_seconds=30, **options)

    def connect_over_sse(self, token=ANN, **options):
        """Like `connect`, over the HTTP+SSE transport of 2024-11-05."""
        transport = sse_client(f"{self.address}/sse", headers=bearer_headers(token))
        return Client(transport, mode="legacy", read_timeout_seconds=30, **options)

    def page(self, path, token):
        """Requests one of the server's own pages."""
        response = httpx2.get(self.address + path, headers=bearer_headers(token))
        response.raise_for_status()
        return response.json()


def bearer_headers(token):
    return {"Authorization": f"Bearer {token}"}


@asynccontextmanager
async def streams(address, token):
    async with (
        httpx2.AsyncClient(headers=bearer_headers(token), timeout=30) as client,
        streamable_http_client(address, http_client=client) as both,
    ):
        yield both


@pytest.fixture(scope="session")
def http_server():
    command = shlex.split(os.environ.get("EXA_MCP_SERVER_COMMAND", DEFAULT_COMMAND))
    environment = {
        **os.environ,
        "EXA_API_KEYS": "client-tests",
        "EXA_MCP_STORE": "memory:",
        "MCP_AUTH_TOKEN": ADMIN,
        "USER_TOKENS": f"{ANN}:ann:never,{BOB}:bob:2999-12-31",
    }
    sets = "default,toolhost,classic,granular"
    options = ["--tools", sets, "http", "--listen", "127.0.0.1:0"]
    server = subprocess.Popen([*command, *options], env=environment, stderr=subprocess.PIPE, text=True)
    with server:
        log = []
        address = None
        while address is None:
            line = server.stderr.readline()
            assert line, f"the server did not start: {''.join(log)}"
            log.append(line)
            address = re.search(r"http://[0-9.:]+(?=/mcp)", line)
        # The pipe is drained continuously: a full pipe would block the server.
        reader = threading.Thread(target=lambda: log.extend(server.stderr), daemon=True)
        reader.start()
        try:
            yield HttpServer(address[0])
            assert server.poll() is None, f"the server exited: {''.join(log)}"
        finally:
            server.terminate()
            server.wait(timeout=30)
            reader.join(timeout=30)
    assert "panicked at" not in "".join(log), "".join(log)
