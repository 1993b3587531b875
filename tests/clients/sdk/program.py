"""A program as an agent would write it, against the generated package."""

import asyncio
import sys
from collections.abc import Awaitable
from datetime import date
from typing import Any

from exa_sdk import (
    CallTool,
    Exa,
    ExaToolError,
    dedupe,
    filter_by_date,
    filter_by_score,
    first,
    paginate,
    to_csv,
    websets,
)
from exa_sdk.websets import CreateArgs, Webset
from mcp import Client, ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def mistakes(exa: Exa) -> None:
    """Code that must not pass the type checker; it is never called."""
    await exa.search({"query": "x", "numResult": 3})  # type: ignore[call-overload]
    await exa.items.list({})  # type: ignore[typeddict-item]
    await exa.search({"query": "x", "type": "quick"})  # type: ignore[call-overload]
    await exa.websets.create({"search": {"querry": "x"}})  # type: ignore[typeddict-item,typeddict-unknown-key]
    await exa.search({"query": "x"}, {"level": "full"})  # type: ignore[call-overload]
    await exa.search("x", {"numResult": 3})  # type: ignore[call-overload]
    await exa.search("x", {"query": "y"})  # type: ignore[call-overload]
    first((await exa.websets.get({"websetId": "x"}))["results"])["id"] + 1  # type: ignore[operator]


async def failure(call: Awaitable[object]) -> ExaToolError:
    try:
        await call
    except ExaToolError as error:
        return error
    raise AssertionError("the call did not fail")


async def create(exa: Exa) -> Webset:
    args: CreateArgs = {
        "search": {"query": "makers of batteries", "count": 3, "entity": {"type": "company"}},
        "enrichments": [{"description": "number of employees", "format": "number"}],
        "import": [],
    }
    created = await exa.websets.create(args)
    assert created["metadata"]["operation"] == "websets.create"
    assert created.get("isComplete") is False, "the work goes on"
    return first(created["results"])


async def lists(exa: Exa) -> None:
    made = [(await create(exa))["id"] for _ in range(3)]
    seen = [webset["id"] async for webset in exa.websets.list_all({"limit": 1})]
    assert set(made) <= set(seen), "all pages give all websets"
    assert len(set(seen)) == len(seen), "no webset comes twice"

    async def fetch(cursor: str | None) -> websets.ListAnswer:
        return await exa.websets.list({"limit": 1, "cursor": cursor} if cursor else {"limit": 1})

    pages = [page async for page in paginate(fetch)]
    assert [len(page["results"]) for page in pages] == [1] * len(seen)


async def items(exa: Exa) -> None:
    webset = await create(exa)
    assert webset["status"] in ("running", "pending")
    page = await exa.items.list({"websetId": webset["id"]})
    for _ in range(5_000):
        if page["results"]:
            break
        page = await exa.items.list({"websetId": webset["id"]}, {"fresh": True})
    assert page["results"], "items arrive"
    for item in page["results"]:
        assert item["websetId"] == webset["id"] and item["object"] == "webset_item"
    assert page["hasMore"] is False


async def search(exa: Exa) -> None:
    found = await exa.search(
        {"query": "batteries", "numResults": 3, "type": "auto", "contents": {"text": {"maxCharacters": 500}}}
    )
    assert len(found["results"]) == 3
    assert all(result.get("url", "").startswith("http") for result in found["results"])
    short = await exa.search({"query": "batteries", "numResults": 3}, {"fields": ["url"], "limit": 2})
    assert [list(result) for result in short["results"]] == [["url"], ["url"]]


async def helpers(exa: Exa) -> None:
    found = await exa.search("batteries", {"numResults": 5, "fields": ["url", "title", "publishedDate"]})
    results = found["results"]
    assert len(results) == 5, "arguments follow the query"
    assert all("id" not in result for result in results), "options follow the query"
    answered = await exa.answer("What is a battery?")
    assert answered["metadata"]["operation"] == "answer"

    assert dedupe([*results, *results]) == results
    pages = [{"url": "https://www.a.example/"}, {"url": "http://a.example#top"}, {"title": "no address"}]
    assert len(dedupe(pages)) == 2, "one page has several addresses"

    dates = sorted(result.get("publishedDate") or "" for result in results)
    assert len(filter_by_date(results, dates[0], dates[-1])) == len(results), "the limits count"
    assert filter_by_date(results, "2999-01-01") == []
    noon: list[dict[str, str | None]] = [{"publishedDate": "2026-01-31T12:00:00.000Z"}, {"publishedDate": None}]
    assert len(filter_by_date(noon, date(2026, 1, 31), "2026-01-31")) == 1, "a day lasts until its end"

    scored: list[dict[str, float | None]] = [{"score": 0.5}, {"score": 0.2}, {"score": None}, {}]
    assert filter_by_score(scored, 0.5) == [{"score": 0.5}]

    table = to_csv([{"a": 'x "y", z', "b": [1]}, {"a": "=1+1", "c": None}])
    assert table == 'a,b,c\r\n"x ""y"", z",[1],\r\n\'=1+1,,\r\n', table
    assert len(to_csv(results, ["title"]).splitlines()) == 6


async def errors(exa: Exa, structured: bool) -> None:
    missing = await failure(exa.websets.get({"websetId": "no-such-webset"}))
    unfit: Any = {"query": "x", "numResults": "many"}
    refused = await failure(exa.search(unfit))
    assert missing.operation == "websets.get"
    assert "numResults" in str(refused)
    if structured:
        assert (missing.code, missing.name) == (-32003, "RESOURCE_NOT_FOUND")
        assert refused.code == -32602 and refused.problems[0]["field"] == "numResults"


async def use(exa: Exa, name: str, structured: bool = True) -> None:
    await lists(exa)
    await items(exa)
    await search(exa)
    await helpers(exa)
    await errors(exa, structured)
    print(f"{name}: fine")


def text_alone(client: Client) -> CallTool:
    """Passes on the text of a result, as some clients do."""

    async def call_tool(name: str, arguments: dict[str, Any], /) -> object:
        result = await client.call_tool(name, arguments)
        return {"content": [block.model_dump() for block in result.content], "isError": result.is_error}

    return call_tool


async def main() -> None:
    command, *options = sys.argv[1:]
    server = StdioServerParameters(command=command, args=options)
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        await use(Exa(session.call_tool), "session")
    async with Client(server) as client:
        await use(Exa(client.call_tool), "client")
        await use(Exa(text_alone(client)), "text alone", structured=False)


asyncio.run(main())
