"""A shared server with the Python SDK."""

import httpx2
import pytest
from conftest import ADMIN, ANN, BOB
from mcp import MCPError
from test_clients import anyio_backend, call, mode  # noqa: F401

pytestmark = pytest.mark.anyio


async def test_an_invalid_token_is_rejected(http_server, mode):
    refusal = pytest.RaisesExc(MCPError, match="Unauthorized")
    for token in ["wrong", ANN.upper()]:
        with pytest.RaisesGroup(refusal, flatten_subgroups=True):
            async with http_server.connect(mode, token=token) as client:
                await client.list_tools()


async def test_an_invalid_token_is_rejected_over_sse(http_server):
    with pytest.raises(httpx2.HTTPStatusError) as refused:
        async with http_server.connect_over_sse(token="wrong"):
            pass
    assert refused.value.response.status_code == 401


async def test_calls_succeed_over_sse(http_server):
    async with http_server.connect_over_sse() as client:
        assert client.server_info.name == "exa-mcp-server"
        assert (await call(client, "good")).is_error is False
        assert (await call(client, "bad")).is_error is True


async def test_progress_is_reported_while_a_call_waits(http_server, mode):
    steps = []

    async def record(progress, total, message):
        steps.append((progress, total, message))

    arguments = {"search": {"query": "banks", "count": 2}, "wait_seconds": 30}
    create = {"operation": "websets.create", "args": arguments}
    async with http_server.connect(mode) as client:
        result = await client.call_tool("manage_websets", create, progress_callback=record)
        assert result.structured_content["results"][0]["status"] == "idle"
    counts = [progress for progress, _, _ in steps]
    assert counts and counts == sorted(set(counts))
    assert all(message for _, _, message in steps)


async def test_calls_are_counted_per_user(http_server, mode):
    def counted():
        return [http_server.page("/mcp/usage", token)["usageCount"] for token in (ANN, BOB)]

    async with http_server.connect(mode, token=BOB) as client:
        await call(client, "good")
        before = counted()
        for _ in range(3):
            await call(client, "good")
        after = counted()
    assert after == [before[0], before[1] + 3]
    assert http_server.page("/admin/tokens", ADMIN)["stats"]["totalUsage"] >= sum(after)
