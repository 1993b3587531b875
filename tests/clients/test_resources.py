"""Resources, prompts, completion and notes with the Python SDK, in each of its modes."""

import json
import os
import uuid

import anyio
import pytest
from mcp import MCPError
from mcp.client.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp.types import PromptReference, ResourceTemplateReference
from test_clients import MODES, anyio_backend, connect, mode  # noqa: F401

pytestmark = pytest.mark.anyio

TOOLS = ("--tools", "default,notes")
NOTE = {"title": "Heat pumps", "content": "They work.", "sourceUrls": ["https://example.com/"]}


def websets(client, operation, args):
    return client.call_tool("manage_websets", {"operation": operation, "args": args})


async def webset(client):
    """Creates a webset and returns its name and its URI."""
    name = f"py-{uuid.uuid4()}"
    result = await websets(client, "websets.create", {"search": {"query": "x"}, "externalId": name})
    assert result.is_error is False
    return name, f"exa://websets/{name}"


async def test_resources_are_listed_and_read(mode):
    async with connect(mode, *TOOLS) as client:
        uris, cursor = [], None
        while True:
            page = await client.list_resources(cursor=cursor)
            uris += [str(resource.uri) for resource in page.resources]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert len([uri for uri in uris if uri.startswith("exa://operations/")]) == 76
        read = await client.read_resource("exa://operations/search")
        assert json.loads(read.contents[0].text)["inputSchema"]["type"] == "object"
        templates = (await client.list_resource_templates()).resource_templates
        assert "exa://websets/{websetId}/items" in [one.uri_template for one in templates]
        with pytest.raises(MCPError) as unknown:
            await client.read_resource("exa://operations/no.such")
        assert unknown.value.code == (-32602 if MODES[mode] == "2026-07-28" else -32002)


async def test_cached_results_are_resources(mode):
    async with connect(mode, *TOOLS) as client:
        search = {"query": "heat pumps", "numResults": 2}
        answer = await client.call_tool("web_search_exa", search)
        cache_id = answer.structured_content["metadata"]["cacheId"]
        whole = await client.read_resource(f"exa://results/{cache_id}")
        part = await client.read_resource(f"exa://results/{cache_id}/1")
        assert whole.contents[0].mime_type == "text/markdown"
        assert len(part.contents[0].text) < len(whole.contents[0].text)


async def test_a_note_is_created_and_summarized(mode):
    async with connect(mode, *TOOLS) as client:
        result = await client.call_tool("create_note", NOTE)
        assert result.is_error is False
        link = result.content[1]
        assert link.type == "resource_link"
        read = await client.read_resource(str(link.uri))
        assert read.contents[0].text == "They work."
        prompt = await client.get_prompt("summarize_notes", {})
        texts = [m.content.resource.text for m in prompt.messages if m.content.type == "resource"]
        assert len(texts) == 1
        assert "They work." in texts[0] and "https://example.com/" in texts[0]


async def test_a_note_survives_in_a_file(mode, tmp_path, monkeypatch):
    monkeypatch.setitem(os.environ, "EXA_MCP_STORE", f"sqlite:{tmp_path}/notes.db")
    async with connect(mode, *TOOLS) as client:
        link = (await client.call_tool("create_note", NOTE)).content[1]
    async with connect(mode, *TOOLS) as client:
        read = await client.read_resource(str(link.uri))
        assert read.contents[0].text == "They work."


@pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
async def test_changes_are_reported_to_older_clients():
    changed, updated = anyio.Event(), anyio.Event()

    async def hear(message):
        method = getattr(getattr(message, "root", message), "method", None)
        if method == "notifications/resources/list_changed":
            changed.set()
        if method == "notifications/resources/updated":
            updated.set()

    client = connect("legacy", *TOOLS)
    client.message_handler = hear
    async with client:
        name, uri = await webset(client)
        await client.subscribe_resource(uri)
        await client.call_tool("create_note", NOTE)
        await websets(client, "websets.cancel", {"websetId": name})
        with anyio.fail_after(10):
            await changed.wait()
            await updated.wait()


@pytest.mark.parametrize("listener", ["auto", "2026-07-28"])
async def test_changes_are_reported_to_subscribers(listener):
    async with connect(listener, *TOOLS) as client:
        name, uri = await webset(client)
        wanted = {"resources_list_changed": True, "resource_subscriptions": [uri]}
        async with client.listen(**wanted) as subscription:
            assert subscription.honored.resource_subscriptions == [uri]
            await client.call_tool("create_note", NOTE)
            await websets(client, "websets.cancel", {"websetId": name})
            heard = []
            with anyio.fail_after(10):
                async for event in subscription:
                    heard.append(event)
                    if {type(event) for event in heard} == {ResourcesListChanged, ResourceUpdated}:
                        break
        assert [event.uri for event in heard if isinstance(event, ResourceUpdated)] == [uri]
        # A closed subscription does not disturb what follows.
        assert (await client.list_tools()).tools


async def test_prompts_are_filled_in(mode):
    async with connect(mode, *TOOLS) as client:
        names = [prompt.name for prompt in (await client.list_prompts()).prompts]
        assert names == ["research_topic", "build_webset", "compare_companies", "summarize_notes"]
        filled = await client.get_prompt("build_webset", {"description": "databases", "count": "5"})
        text = filled.messages[0].content.text
        assert "`manage_websets` with operation `websets.create`" in text and '"count":5' in text
        with pytest.raises(MCPError) as missing:
            await client.get_prompt("compare_companies", {})
        assert missing.value.code == -32602 and "`companies` is required" in str(missing.value)


async def test_arguments_are_completed(mode):
    async with connect(mode, *TOOLS) as client:
        prompt = PromptReference(name="research_topic")
        found = await client.complete(prompt, {"name": "depth", "value": "q"})
        assert found.completion.values == ["quick"]
        template = ResourceTemplateReference(uri="exa://websets/{websetId}")
        name, _ = await webset(client)
        found = await client.complete(template, {"name": "websetId", "value": name})
        assert len(found.completion.values) == 1 and found.completion.has_more is False
