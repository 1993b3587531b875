"""Other people's converters, from the tools of every set to the function declarations of model APIs."""

import copy
import json
import os
import shlex
from pathlib import Path

import pytest
from agents.mcp import MCPServerStdio, MCPUtil
from agents.strict_schema import ensure_strict_json_schema
from fastmcp.client.transports import StdioTransport
from google.genai import types
from google.genai._mcp_utils import mcp_to_gemini_tool
from llama_index.tools.mcp import McpToolSpec
from mcp import Client, StdioServerParameters
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.test import TestModel
from pydantic_ai.profiles.google import GoogleJsonSchemaTransformer
from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer

HERE = Path(__file__).parent
DEFAULT_COMMAND = str(HERE / "../../target/debug/exa-mcp-server")
COMMAND, *ARGUMENTS = shlex.split(os.environ.get("EXA_MCP_SERVER_COMMAND", DEFAULT_COMMAND))
SETS = json.loads((HERE / "../../codegen-snapshots/sets.json").read_text())
NAMES = {name for names in SETS.values() for name in names}
OPTIONS = [*ARGUMENTS, "--tools", ",".join(SETS)]

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture
async def client():
    server = StdioServerParameters(command=COMMAND, args=OPTIONS, env=dict(os.environ))
    async with Client(server, mode="legacy", read_timeout_seconds=30) as client:
        yield client


@pytest.fixture
async def tools(client):
    """All tools, as the server lists them."""
    listed = (await client.list_tools()).tools
    assert {tool.name for tool in listed} == NAMES
    return listed


def convert(tools, converter):
    """Converts every tool, then fails with the names of all tools that could not be converted."""
    converted, failures = {}, {}
    for tool in tools:
        try:
            converted[tool.name] = converter(tool)
        except Exception as error:  # noqa: BLE001 - whatever a converter raises
            failures[tool.name] = repr(error)
    assert not failures
    return converted


def walk(schema):
    """Yields a schema and all schemas in it."""
    yield schema
    nested = [*schema.get("properties", {}).values(), *schema.get("$defs", {}).values()]
    nested += [schema[key] for key in ("items", "additionalProperties") if key in schema]
    nested += [each for key in ("anyOf", "oneOf", "allOf") for each in schema.get(key, [])]
    for each in nested:
        if isinstance(each, dict):
            yield from walk(each)


def is_object(schema):
    kind = schema.get("type")
    return kind == "object" or (isinstance(kind, list) and "object" in kind)


def is_open(schema):
    return is_object(schema) and not schema.get("properties")


async def test_schemas_use_the_common_subset(tools):
    for tool in tools:
        schema = tool.input_schema
        assert schema["type"] == "object" and "properties" in schema, tool.name
        assert not {"anyOf", "oneOf", "allOf", "not", "enum", "$ref"} & set(schema), tool.name
        for part in walk(schema):
            assert not {"additionalProperties", "oneOf", "const"} & set(part), tool.name
            values = [*part.get("properties", {}).values(), part.get("items", {})]
            assert all(isinstance(value, dict) for value in values), tool.name
            assert "$ref" not in part or set(part) <= {"$ref", "description"}, tool.name
        filters = schema["properties"].get("filters")
        assert filters is None or filters["properties"], tool.name


async def test_google_genai(tools):
    converted = convert(tools, mcp_to_gemini_tool)
    for tool in tools:
        (declaration,) = converted[tool.name].function_declarations
        declared = declaration.parameters.properties or {}
        assert set(declared) == set(tool.input_schema["properties"]), tool.name
        assert declaration.parameters.required == (tool.input_schema.get("required") or None)
        if filters := declared.get("filters"):
            assert filters.type == types.Type.OBJECT and filters.properties, tool.name


async def test_openai_strict(tools):
    """The converter gets through, and closes every object as the strict mode wants it."""
    converted = convert(
        tools, lambda tool: ensure_strict_json_schema(copy.deepcopy(tool.input_schema))
    )
    for name, schema in converted.items():
        for part in filter(is_object, walk(schema)):
            assert part["additionalProperties"] is False, name
            assert set(part.get("required", [])) == set(part.get("properties", {})), name


@pytest.mark.parametrize("strict", [False, True])
async def test_openai_agents(strict):
    """Every tool becomes a function tool, and a strict one unless it takes objects of any form."""
    parameters = {"command": COMMAND, "args": OPTIONS, "env": dict(os.environ)}
    async with MCPServerStdio(parameters, client_session_timeout_seconds=30) as server:
        tools = await server.list_tools()
        converted = convert(tools, lambda tool: MCPUtil.to_function_tool(tool, server, strict))
    assert set(converted) == NAMES
    for tool in tools:
        has_open_object = any(map(is_open, walk(tool.input_schema)))
        assert has_open_object or converted[tool.name].strict_json_schema is strict, tool.name


@pytest.mark.parametrize(
    "transformer",
    [
        lambda schema: OpenAIJsonSchemaTransformer(schema, strict=True),
        lambda schema: OpenAIJsonSchemaTransformer(schema, strict=None),
        GoogleJsonSchemaTransformer,
    ],
    ids=["openai-strict", "openai", "google"],
)
async def test_pydantic_ai(transformer):
    model = TestModel(call_tools=[])
    toolset = MCPToolset(StdioTransport(COMMAND, OPTIONS, env=dict(os.environ)))
    agent = Agent(model, toolsets=[toolset])
    async with agent:
        await agent.run("hello")
    tools = model.last_model_request_parameters.function_tools
    assert {tool.name for tool in tools} == NAMES
    convert(tools, lambda tool: transformer(copy.deepcopy(tool.parameters_json_schema)).walk())


async def test_llama_index(client, tools):
    converted = {
        tool.metadata.name: tool.metadata for tool in await McpToolSpec(client).to_tool_list_async()
    }
    assert set(converted) == NAMES
    for tool in tools:
        function = converted[tool.name].to_openai_tool(skip_length_check=False)["function"]
        declared = set(function["parameters"]["properties"])
        assert declared == set(tool.input_schema["properties"]), tool.name
