"""What all operations share: calling a tool and reading its answer."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import date, datetime, time, timezone
from typing import Any, Literal, Protocol, TypedDict, TypeVar, cast

if sys.version_info >= (3, 11):
    from typing import NotRequired
else:
    from typing_extensions import NotRequired

__all__ = [
    "CallTool",
    "ExaToolError",
    "Filters",
    "Metadata",
    "NotRequired",
    "Options",
    "PageOptions",
    "Problem",
    "call",
    "dedupe",
    "each",
    "filter_by_date",
    "filter_by_score",
    "first",
    "paginate",
    "to_csv",
    "with_query",
]


# What the server gives at most; it would otherwise cut answers to what a model can read.
_MOST_TOKENS = 1_000_000


class CallTool(Protocol):
    """Calls a tool of exa-mcp-server and gives what the client gives.

    `call_tool` of `mcp.ClientSession` and of `mcp.Client` are such functions.
    """

    def __call__(self, name: str, arguments: dict[str, Any], /) -> Awaitable[object]: ...


class Filters(TypedDict, total=False):
    """Results to leave out. What the API cannot do itself, the server does with its answer."""

    minScore: float
    # Date or time, for example `2026-01-31`.
    afterDate: str
    # Date or time, for example `2026-01-31`.
    beforeDate: str
    includeDomains: list[str]
    excludeDomains: list[str]
    titleContains: str
    maxResults: int


class PageOptions(TypedDict, total=False):
    """How the answer is given; the options that make sense for every page of a list."""

    # How much of each result; `full` unless told. Other levels leave fields out.
    content_level: Literal["summary", "standard", "full"]
    # The fields of each result to keep.
    fields: list[str]
    filters: Filters
    # Gives about this many tokens at most, up to a million; `leftOut` of the metadata tells what is
    # missing.
    max_tokens: int
    # Asks the API again, even if the server still has the answer of an equal call.
    fresh: bool


class Options(PageOptions, total=False):
    """How the answer is given; beside the arguments of the operation."""

    # Lets the server follow all pages of a list, up to its cap.
    all: bool
    # For operations that start work or look at it: waits up to this long for its end. Without it, the
    # answer comes at once. The client must not give up before.
    wait_seconds: int
    # Answers from an earlier answer, by the `cacheId` of its metadata, without calling the API.
    cache_id: str
    # Only this result.
    index: int
    # Leaves out this many results at the start.
    offset: int
    # At most this many results, where the operation has no argument of this name.
    limit: int


class Metadata(TypedDict):
    """What the server says about an answer."""

    operation: str
    # How many results the API gave.
    totalResults: int
    # How many of them are here.
    returned: int
    tokenEstimate: int
    contentLevel: str
    # For the option `cache_id`; None if the server does not keep the answer.
    cacheId: str | None
    # None where the API does not tell.
    costDollars: float | None
    requestId: str | None
    warnings: list[Any]
    # Corrections that the server made to the arguments.
    corrections: list[str]
    # Deprecated: removed in 0.3; use `corrections`.
    mended: NotRequired[list[str]]
    # The server had the answer of an equal call.
    cached: NotRequired[bool]
    # What the filters left out, and who applied them.
    filters: NotRequired[dict[str, Any]]
    # What `max_tokens` left out.
    leftOut: NotRequired[dict[str, Any]]
    # How to get it.
    more: NotRequired[str]


class Problem(TypedDict):
    """What is wrong with an argument."""

    field: str
    problem: str


class ExaToolError(Exception):
    """A call that failed; the message says why and what to do."""

    operation: str
    # As JSON-RPC counts: -32602 for unfit arguments; missing when the server gave none.
    code: int | None
    # For example `INVALID_PARAMS`.
    name: str
    message: str
    problems: list[Problem]
    # All that the server says about it: `whatToDo`, `retryable`, `retryAfter`, `hints`, `example` …
    detail: dict[str, Any]

    def __init__(self, operation: str, detail: dict[str, Any]) -> None:
        problems = detail.get("problems")
        code = detail.get("code")
        self.operation = operation
        self.code = code if isinstance(code, int) else None
        self.name = str(detail.get("name") or "ExaToolError")
        self.message = str(detail.get("message") or f"{operation} failed")
        self.problems = problems if isinstance(problems, list) else []
        self.detail = detail
        lines = [self.message]
        lines += [f"- {found['field']}: {found['problem']}" for found in self.problems]
        lines += [str(detail["whatToDo"])] if "whatToDo" in detail else []
        super().__init__("\n".join(lines))


Result = TypeVar("Result")
Page = TypeVar("Page", bound=Mapping[str, Any])


def first(results: list[Result]) -> Result:
    """The first result: of operations that give a single object, the object."""
    if not results:
        raise LookupError("the answer holds no result")
    return results[0]


Found = TypeVar("Found", bound=Mapping[str, Any])


def with_query(
    given: Mapping[str, Any] | str, more: Mapping[str, Any]
) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Takes a query and what follows it apart, into arguments and options."""
    if not isinstance(given, str):
        return given, more
    names = Options.__annotations__.keys() | PageOptions.__annotations__.keys()
    args = {name: value for name, value in more.items() if name not in names}
    options = {name: value for name, value in more.items() if name in names}
    return {**args, "query": given}, options


def _moment(found: date | str, end: bool = False) -> datetime:
    """The time of a date; the end of the day, if it tells no time and that is wanted."""
    if isinstance(found, str) and re.fullmatch(r"\d{4}-\d{2}-\d{2}", found):
        found = date.fromisoformat(found)
    if isinstance(found, str):
        found = datetime.fromisoformat(re.sub(r"[Zz]$", "+00:00", found))
    if not isinstance(found, datetime):
        found = datetime.combine(found, time.max if end else time.min)
    return found if found.tzinfo else found.replace(tzinfo=timezone.utc)


def filter_by_date(
    results: Iterable[Found], after: date | str, before: date | str | None = None
) -> list[Found]:
    """The results that were published from one date to another; those without a date are left out."""
    start = _moment(after)
    end = None if before is None else _moment(before, end=True)

    def fits(result: Found) -> bool:
        published = result.get("publishedDate")
        if not isinstance(published, str):
            return False
        try:
            moment = _moment(published)
        except ValueError:
            return False
        return start <= moment and (end is None or moment <= end)

    return [result for result in results if fits(result)]


def filter_by_score(results: Iterable[Found], min_score: float) -> list[Found]:
    """The results with at least this score; those without a score are left out."""
    scores = ((result, result.get("score")) for result in results)
    return [result for result, score in scores if isinstance(score, (int, float)) and score >= min_score]


def dedupe(results: Iterable[Found]) -> list[Found]:
    """The results without repetitions of the same address or, without one, of the same `id`."""
    seen: set[str] = set()
    kept: list[Found] = []
    for result in results:
        key = result.get("url") or result.get("id")
        if isinstance(key, str):
            address = re.sub(r"^https?://(www\.)?", "", key.split("#")[0]).removesuffix("/")
            if address in seen:
                continue
            seen.add(address)
        kept.append(result)
    return kept


def to_csv(results: Iterable[Mapping[str, Any]], fields: Sequence[str] | None = None) -> str:
    """A table with a line for each result; nested values are JSON.

    Without a list of fields, it has all that occur. A text that a spreadsheet would take for a formula gets an
    apostrophe in front of it.
    """
    rows = list(results)
    columns = list(dict.fromkeys(name for row in rows for name in row)) if fields is None else list(fields)
    out = io.StringIO()
    table = csv.writer(out)
    table.writerow([_cell(name) for name in columns])
    table.writerows([_cell(row.get(name)) for name in columns] for row in rows)
    return out.getvalue()


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return re.sub(r"^(?=[=+\-@\t\r])", "'", value)
    return json.dumps(value, ensure_ascii=False)


async def paginate(fetch: Callable[[str | None], Awaitable[Page]]) -> AsyncIterator[Page]:
    """All pages, each fetched when it is wanted; `fetch` takes the cursor, at first None."""
    cursor: str | None = None
    while True:
        page = await fetch(cursor)
        yield page
        following = _next_cursor(page)
        if following is None:
            return
        if following == cursor:
            raise RuntimeError(f"the cursor {cursor} leads back to itself")
        cursor = following


def _next_cursor(page: Mapping[str, Any]) -> str | None:
    following = page.get("nextCursor") or page["metadata"].get("nextCursor")
    more = page.get("hasMore") is not False
    return following if more and isinstance(following, str) else None


async def call(
    call_tool: CallTool,
    tool: str,
    operation: str,
    args: Mapping[str, Any],
    options: Mapping[str, Any],
) -> Any:
    """Calls an operation through its tool."""
    usual = {"content_level": "full", "max_tokens": _MOST_TOKENS}
    view = {**usual, **options, "output_format": "json"}
    result = await call_tool(tool, {"operation": operation, "args": dict(args), **view})
    return _answer(operation, result)


async def each(
    call_tool: CallTool,
    tool: str,
    operation: str,
    args: Mapping[str, Any],
    options: Mapping[str, Any],
) -> AsyncIterator[Any]:
    """Calls a list operation until there are no more pages, and gives its results one by one."""

    async def fetch(cursor: str | None) -> Mapping[str, Any]:
        given = args if cursor is None else {**args, "cursor": cursor}
        return cast("Mapping[str, Any]", await call(call_tool, tool, operation, given, options))

    async for page in paginate(fetch):
        for result in page["results"]:
            yield result


def _answer(operation: str, result: object) -> dict[str, Any]:
    """Takes the answer out of what the client gives, or raises what the server says went wrong."""
    text = result if isinstance(result, str) else _text(_read(result, "content"))
    structured = _read(result, "structuredContent", "structured_content")
    # Some clients hand on only the text, others only the structured content itself.
    found = [part for part in (structured, _parsed(text), result) if isinstance(part, dict)]
    answer: dict[str, Any] = found[0] if found else {}
    error = answer.get("error")
    failed = _read(result, "isError", "is_error") is True
    if failed or (isinstance(error, dict) and "results" not in answer):
        raise ExaToolError(operation, error if isinstance(error, dict) else {"message": text})
    if not isinstance(answer.get("metadata"), dict) or not isinstance(answer.get("results"), list):
        message = (
            f"{operation} gave an answer without metadata and results; the server is older than this code: "
            "bring both to the same version with `exa-mcp-server sdk`"
        )
        raise ExaToolError(operation, {"name": "UNKNOWN_ANSWER", "message": message, "answer": result})
    return answer


def _read(value: object, *names: str) -> object:
    """A field of a dictionary, or of an object that a client makes of it."""
    if isinstance(value, Mapping):
        found = (value[name] for name in names if name in value)
    else:
        found = (getattr(value, name) for name in names if hasattr(value, name))
    return next(found, None)


def _text(content: object) -> str | None:
    blocks = content if isinstance(content, list) else []
    texts = (_read(block, "text") for block in blocks)
    return next((text for text in texts if isinstance(text, str)), None)


def _parsed(text: str | None) -> object:
    try:
        return json.loads(text) if text is not None else None
    except ValueError:
        return None
