"""Sampling, elicitation, roots and logging with the Python SDK, in each of its modes."""

import json
import os
import re
import shlex
import urllib.parse
import urllib.request
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters, types

HERE = Path(__file__).parent
DEFAULT_COMMAND = str(HERE / "../../target/debug/exa-mcp-server")
COMMAND, *ARGUMENTS = shlex.split(os.environ.get("EXA_MCP_SERVER_COMMAND", DEFAULT_COMMAND))
CALLS = json.loads(os.environ.get("EXA_MCP_TEST_CALLS") or (HERE / "calls.json").read_text())

SUGGEST = ("suggest_enrichments", {"description": "AI startups"})
GET_WEBSET = ("manage_websets", {"operation": "websets.get"})

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(params=["legacy", "auto", "2026-07-28"])
def mode(request):
    return request.param


def connect(mode, env=None, **options):
    arguments = [*ARGUMENTS, "--tools", "default,assist"]
    environment = {**os.environ, **(env or {})}
    server = StdioServerParameters(command=COMMAND, args=arguments, env=environment)
    return Client(server, mode=mode, read_timeout_seconds=30, **options)


def tool_calling_model(requests):
    """Returns the callback of a model that calls the given tool."""

    async def answer(_context, params):
        requests.append(params)
        suggestions = [{"description": "CEO", "format": "text", "why": "Whom to write to"}]
        call = types.ToolUseContent(
            type="tool_use",
            id="call-1",
            name=params.tools[0].name,
            input={"suggestions": suggestions},
        )
        return types.CreateMessageResultWithTools(
            role="assistant", model="test-model", stop_reason="toolUse", content=[call]
        )

    return answer


def eliciting_user(requests, *results):
    """Returns the callback of a user who gives these results in order."""
    results = list(results)

    async def answer(_context, params):
        requests.append(params)
        return results.pop(0)

    return answer


async def test_the_model_calls_the_tool(mode):
    requests = []
    with_tools = types.SamplingCapability(tools=types.SamplingToolsCapability())
    options = {"sampling_callback": tool_calling_model(requests), "sampling_capabilities": with_tools}
    async with connect(mode, **options) as client:
        result = await client.call_tool(*SUGGEST)
    assert result.structured_content["source"] == "client_model_with_tool"
    assert result.structured_content["results"][0]["description"] == "CEO"
    assert [params.tool_choice.mode for params in requests] == ["required"]


async def test_a_model_without_tools_writes_text(mode):
    async def write(_context, params):
        assert params.tools is None
        text = types.TextContent(type="text", text='[{"description": "CTO", "format": "text"}]')
        return types.CreateMessageResult(role="assistant", model="test-model", content=text)

    async with connect(mode, sampling_callback=write) as client:
        result = await client.call_tool(*SUGGEST)
    assert result.structured_content["source"] == "client_model"


async def test_a_missing_argument_is_filled_in(mode):
    requests = []
    given = types.ElicitResult(action="accept", content={"websetId": "ws_of_nobody"})
    async with connect(mode, elicitation_callback=eliciting_user(requests, given)) as client:
        result = await client.call_tool(*GET_WEBSET)
    assert "ws_of_nobody" in result.content[0].text
    assert requests[0].requested_schema["required"] == ["websetId"]


@pytest.mark.parametrize("action", ["decline", "cancel"])
async def test_a_declined_elicitation_ends_the_call(mode, action):
    callback = eliciting_user([], types.ElicitResult(action=action))
    async with connect(mode, elicitation_callback=callback) as client:
        result = await client.call_tool(*GET_WEBSET)
    assert result.is_error is True
    assert result.structured_content["error"]["reason"] == "input_required"
    assert result.structured_content["error"]["retryWith"]


async def test_deletions_are_confirmed(mode):
    requests = []
    answers = [
        types.ElicitResult(action="accept", content={"confirm": choice})
        for choice in (False, True)
    ]
    call = {"operation": "websets.delete", "args": {"websetId": "ws_of_nobody"}}
    env = {"EXA_MCP_CONFIRM_DELETES": "true"}
    async with connect(mode, env, elicitation_callback=eliciting_user(requests, *answers)) as client:
        names = [
            (await client.call_tool("manage_websets", call)).structured_content["error"]["name"]
            for _ in range(2)
        ]
    assert names == ["OPERATION_CANCELLED", "RESOURCE_NOT_FOUND"]
    assert len(requests) == 2


def enter(url, key):
    """Enters a key on the page, as a browser would."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    page = opener.open(url).read().decode()
    token = re.search('name="token" value="([^"]+)"', page).group(1)
    body = urllib.parse.urlencode({"token": token, "key": key}).encode()
    assert opener.open(url, body).status == 200


async def test_a_missing_key_is_entered_on_a_page(mode):
    requests = []

    async def visit(_context, params):
        requests.append(params)
        enter(params.url, "any-key-will-do")
        return types.ElicitResult(action="accept")

    env = {"EXA_API_KEY": "", "EXA_API_KEYS": ""}
    async with connect(mode, env, elicitation_callback=visit) as client:
        result = await client.call_tool(CALLS["good"]["name"], CALLS["good"].get("arguments"))
    assert result.is_error is False, result.content
    assert [params.mode for params in requests] == ["url"]


async def test_a_file_inside_a_root_is_imported(mode, tmp_path):
    folder = tmp_path / "with space"
    folder.mkdir()
    (folder / "list.csv").write_text("name,url\nAcme,https://acme.example\n")

    async def roots(_context):
        return types.ListRootsResult(roots=[types.Root(uri=folder.as_uri())])

    def call(path):
        arguments = {"title": "Companies", "filePath": str(path), "entity": {"type": "company"}}
        return {"operation": "imports.create", "args": arguments}

    (tmp_path / "list.csv").write_text("name\nAcme\n")
    async with connect(mode, list_roots_callback=roots) as client:
        inside = await client.call_tool("manage_websets", call(folder / "list.csv"))
        outside = await client.call_tool("manage_websets", call(tmp_path / "list.csv"))
    assert inside.is_error is False, inside.content
    assert outside.is_error is True


async def test_messages_are_sent_once_a_level_is_set(mode):
    messages = []

    async def record(params):
        messages.append(params)

    call = (CALLS["good"]["name"], {**CALLS["good"].get("arguments", {}), "fresh": True})
    async with connect(mode, logging_callback=record) as client:
        await client.call_tool(*call)
    assert messages == []
    async with connect(mode, logging_callback=record, log_level="debug") as client:
        if mode == "legacy":
            await client.set_logging_level("debug")
        await client.call_tool(*call)
        await client.list_tools()
    assert "answered" in [message.data["message"] for message in messages]
