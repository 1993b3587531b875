//! Every kind of slip in `surface.yaml` and `prompts.yaml` is reported with its place, and the rest is generated.

use codegen::GeneratedOutput;
use serde_json::{Value, json};

use crate::support::{DesignCopy, snapshot};

/// One mistake, and the notice that it must give.
struct Slip {
    /// Where the notice is.
    place: &'static str,
    /// What the notice says.
    text: &'static str,
    make: fn(&mut Value),
}

impl Slip {
    /// Returns the entry that the slip changes, which only one slip at a time may do.
    fn owner(&self) -> &'static str {
        match self.place {
            "tool web_fetch_exa" | "tool create note" | "tool search" => "tool create_note",
            "searches" => SEARCHES,
            "entry POST /websets/v0/websets:" => WEBSETS,
            place => place,
        }
    }
}

const fn slip(place: &'static str, text: &'static str, make: fn(&mut Value)) -> Slip {
    Slip { place, text, make }
}

/// Returns the entry of an operation.
fn entry<'a>(surface: &'a mut Value, matches: &str) -> &'a mut Value {
    let entries = surface["operations"].as_array_mut().unwrap();
    let found = entries.iter_mut().find(|entry| entry["match"] == matches);
    found.unwrap_or_else(|| panic!("no entry {matches}"))
}

/// Returns a tool of a kind, such as `named`.
fn tool<'a>(surface: &'a mut Value, kind: &str, name: &str) -> &'a mut Value {
    let tools = surface["tools"][kind].as_array_mut().unwrap();
    let found = tools.iter_mut().find(|tool| tool["name"] == name);
    found.unwrap_or_else(|| panic!("no tool {name}"))
}

/// Returns an operation of a toolhost.
fn hosted<'a>(surface: &'a mut Value, host: &str, name: &str) -> &'a mut Value {
    let entries = tool(surface, "hosts", host)["operations"]
        .as_array_mut()
        .unwrap();
    let found = entries.iter_mut().find(|entry| entry["name"] == name);
    found.unwrap_or_else(|| panic!("no operation {name}"))
}

fn argument<'a>(surface: &'a mut Value, tool_name: &str, name: &str) -> &'a mut Value {
    let arguments = tool(surface, "named", tool_name)["arguments"]
        .as_array_mut()
        .unwrap();
    let found = arguments.iter_mut().find(|it| it["name"] == name);
    found.unwrap_or_else(|| panic!("no argument {name}"))
}

fn push(list: &mut Value, value: Value) {
    if list.is_null() {
        *list = json!([]);
    }
    list.as_array_mut().unwrap().push(value);
}

const SEARCHES: &str = "POST /websets/v0/websets/{webset}/searches";
const ENRICHMENTS: &str = "POST /websets/v0/websets/{webset}/enrichments";
const WEBSETS: &str = "POST /websets/v0/websets";
const IMPORTS: &str = "POST /websets/v0/imports";
const MONITORS: &str = "POST /websets/v0/monitors";
const RUNS: &str = "POST /agent/runs";

const SLIPS: &[Slip] = &[
    // Entries of operations.
    slip("entry GET /nowhere", "no longer exists", |s| {
        push(&mut s["operations"], json!({"match": "GET /nowhere"}));
    }),
    slip("entry POST /answer", "a second entry", |s| {
        push(&mut s["operations"], json!({"match": "POST /answer"}));
    }),
    slip("entry POST /contents", "`timeoutSeconds` is 0", |s| {
        entry(s, "POST /contents")["timeoutSeconds"] = json!(0);
    }),
    slip("entry POST /contents", "`names` calls the operation", |s| {
        entry(s, "POST /contents")["name"] = json!("contents");
    }),
    slip("entry POST /contents", "no argument `txt`", |s| {
        push(&mut entry(s, "POST /contents")["show"], json!("txt"));
    }),
    slip("entry POST /contents", "no parameter `urlz`", |s| {
        entry(s, "POST /contents")["parameters"] = json!({"urlz": "addresses"});
    }),
    slip(
        "names GET /websets/v0/websets/{other}",
        "is the same operation",
        |s| {
            s["names"]["GET /websets/v0/websets/{other}"] = json!("websets.other");
        },
    ),
    slip(
        "names POST /search",
        "`GET /unheard` has the name `search`",
        |s| {
            s["names"]["GET /unheard"] = json!("search");
        },
    ),
    slip("header x-unheard", "no operation has this header", |s| {
        s["headers"]["x-unheard"] = json!("unheard");
    }),
    slip("header x-unheard", "is called `priority`", |s| {
        s["headers"]["x-unheard"] = json!("priority");
    }),
    // What callers get wrong.
    slip("entry POST /search", "names `contentz`", |s| {
        push(
            &mut entry(s, "POST /search")["hints"],
            json!("put it into `contentz`"),
        );
    }),
    slip("entry POST /search", "names `contents.highlight`", |s| {
        push(
            &mut entry(s, "POST /search")["hints"],
            json!("see `contents.highlight`"),
        );
    }),
    slip("entry POST /search", "names `highlight`", |s| {
        let hint = r#"write {"contents": {"highlight": true}}"#;
        push(&mut entry(s, "POST /search")["hints"], json!(hint));
    }),
    slip("entry POST /search", "no argument `quary`; example", |s| {
        entry(s, "POST /search")["example"] = json!({"with": ["quary"]});
    }),
    slip("entry POST /search", "does not fit `numResults`", |s| {
        entry(s, "POST /search")["example"] = json!({"texts": {"numResults": "ten"}});
    }),
    slip(
        "entry POST /search",
        "value `no such type` is gone from `type`",
        |s| {
            entry(s, "POST /search")["example"] = json!({"texts": {"type": "no such type"}});
        },
    ),
    // Checks.
    slip(
        "entry POST /findSimilar",
        "no argument `urls`; check",
        |s| {
            entry(s, "POST /findSimilar")["checks"][0]["argument"] = json!("urls");
        },
    ),
    slip("entry POST /findSimilar", "`numResults` is no text", |s| {
        entry(s, "POST /findSimilar")["checks"][0]["argument"] = json!("numResults");
    }),
    slip(
        "entry POST /agent/monitors",
        "no number with one of the units",
        |s| {
            entry(s, "POST /agent/monitors")["checks"][0]["atLeast"] = json!("6 hours");
        },
    ),
    slip("entry POST /agent/monitors", "are no units", |s| {
        entry(s, "POST /agent/monitors")["checks"][0]["units"] = json!("xy");
    }),
    slip("entry POST /monitors", "no argument `trigger.perod`", |s| {
        entry(s, "POST /monitors")["checks"][0]["argument"] = json!("trigger.perod");
    }),
    slip("searches", "`query` is no number", |s| {
        entry(s, SEARCHES)["checks"][0]["argument"] = json!("query");
    }),
    slip(
        "entry POST /websets/v0/websets:",
        "no argument `enrichment[].format`",
        |s| {
            entry(s, WEBSETS)["checks"][0]["argument"] = json!("enrichment[]");
        },
    ),
    slip(MONITORS, "no argument `behavior.cron`", |s| {
        entry(s, MONITORS)["checks"][0]["argument"] = json!("behavior");
    }),
    // Streams, filters, uploads, health checks.
    slip(
        "GET /websets/v0/websets:",
        "no argument `stream`; streaming",
        |s| {
            entry(s, "GET /websets/v0/websets")["stream"] = json!({"form": "search"});
        },
    ),
    slip(RUNS, "`agent.runs.gets` no longer exists; polling", |s| {
        entry(s, RUNS)["stream"]["get"] = json!("agent.runs.gets");
    }),
    slip(RUNS, "`agent.runs.gets` no longer exists; resuming", |s| {
        entry(s, RUNS)["stream"]["resume"]["operation"] = json!("agent.runs.gets");
    }),
    slip(
        RUNS,
        "`agent.runs.get` has no argument `lastEventId`",
        |s| {
            entry(s, RUNS)["stream"]["resume"]["operation"] = json!("agent.runs.get");
        },
    ),
    slip(
        RUNS,
        "`agent.runs.events.list` has no argument `run`; resuming",
        |s| {
            entry(s, RUNS)["stream"]["resume"]["arguments"] = json!({"run": "id"});
        },
    ),
    slip(RUNS, "the response has no field `runIds`; resuming", |s| {
        entry(s, RUNS)["stream"]["resume"]["arguments"] = json!({"runId": "runIds"});
    }),
    slip("changes", "there is no filter `afterDates`", |s| {
        entry(s, "GET /agent/monitors/{id}/changes")["filters"] = json!({"afterDates": "since"});
    }),
    slip("changes", "no argument `sinse`", |s| {
        entry(s, "GET /agent/monitors/{id}/changes")["filters"] = json!({"afterDate": "sinse"});
    }),
    slip(IMPORTS, "`imports.remove` no longer exists; upload", |s| {
        entry(s, IMPORTS)["upload"]["delete"] = json!("imports.remove");
    }),
    slip(IMPORTS, "has no argument `fileId`; upload", |s| {
        entry(s, IMPORTS)["upload"]["id"] = json!("fileId");
    }),
    slip(
        IMPORTS,
        "no argument `sise` for `csvContent` to replace",
        |s| {
            push(&mut entry(s, IMPORTS)["own"][0]["replaces"], json!("sise"));
        },
    ),
    slip(
        IMPORTS,
        "the schema of `csvContent` is not a JSON Schema",
        |s| {
            entry(s, IMPORTS)["own"][0]["schema"]["type"] = json!("text");
        },
    ),
    slip(RUNS, "the default of `stream` does not fit", |s| {
        entry(s, RUNS)["own"][0]["schema"]["default"] = json!("no");
    }),
    slip("entry POST /answer", "POST changes something", |s| {
        entry(s, "POST /answer")["probe"] = json!(true);
    }),
    slip(
        "GET /websets/v0/monitors/{monitor}/runs/{id}",
        "requires `monitorId`; it is not used",
        |s| {
            entry(s, "GET /websets/v0/monitors/{monitor}/runs/{id}")["probe"] = json!(true);
        },
    ),
    // Long-running work.
    slip(
        SEARCHES,
        "`searches.read` no longer exists; long-running marker",
        |s| {
            entry(s, SEARCHES)["longRunning"]["get"] = json!("searches.read");
        },
    ),
    slip(
        SEARCHES,
        "`searches.stop` no longer exists; cancellation",
        |s| {
            entry(s, SEARCHES)["longRunning"]["cancel"] = json!("searches.stop");
        },
    ),
    slip(SEARCHES, "has no argument `search`; argument", |s| {
        entry(s, SEARCHES)["longRunning"]["arguments"]["search"] = json!("id");
    }),
    slip(
        SEARCHES,
        "requires `searchId`, which nothing fills; long-running",
        |s| {
            entry(s, SEARCHES)["longRunning"]["arguments"] = json!({"websetId": "$websetId"});
        },
    ),
    slip(SEARCHES, "has no argument `webset`; argument", |s| {
        entry(s, SEARCHES)["longRunning"]["arguments"]["websetId"] = json!("$webset");
    }),
    slip(ENRICHMENTS, "the response has no field `key`", |s| {
        entry(s, ENRICHMENTS)["longRunning"]["arguments"]["enrichmentId"] = json!("key");
    }),
    slip(SEARCHES, "`searches.get` has no field `state`", |s| {
        entry(s, SEARCHES)["longRunning"]["status"] = json!("state");
    }),
    slip(
        SEARCHES,
        "`done` is not among the values of `WebsetSearch.status`; final",
        |s| {
            push(
                &mut entry(s, SEARCHES)["longRunning"]["final"],
                json!("done"),
            );
        },
    ),
    slip(
        SEARCHES,
        "`busy` is not among the values of `WebsetSearch.status`; running",
        |s| {
            push(
                &mut entry(s, SEARCHES)["longRunning"]["running"],
                json!("busy"),
            );
        },
    ),
    slip(
        SEARCHES,
        "`completed` of `WebsetSearch.status` is both",
        |s| {
            push(
                &mut entry(s, SEARCHES)["longRunning"]["running"],
                json!("completed"),
            );
        },
    ),
    slip(
        SEARCHES,
        "`canceled` appeared in `WebsetSearch.status` and is neither",
        |s| {
            entry(s, SEARCHES)["longRunning"]["final"] = json!(["completed"]);
        },
    ),
    slip(SEARCHES, "no final state is left", |s| {
        entry(s, SEARCHES)["longRunning"]["final"] = json!([]);
    }),
    slip(IMPORTS, "no field `uploadAddress`; `unless`", |s| {
        entry(s, IMPORTS)["longRunning"]["unless"] = json!("uploadAddress");
    }),
    slip(WEBSETS, "`websets.all` no longer exists; recovery", |s| {
        entry(s, WEBSETS)["longRunning"]["find"]["list"] = json!("websets.all");
    }),
    slip(WEBSETS, "`websets.list` has no field `websets`", |s| {
        entry(s, WEBSETS)["longRunning"]["find"]["entries"] = json!("websets");
    }),
    slip(WEBSETS, "has no field `data[].made`", |s| {
        entry(s, WEBSETS)["longRunning"]["find"]["created"] = json!("made");
    }),
    slip(
        WEBSETS,
        "has no argument `search.question`; not compared",
        |s| {
            entry(s, WEBSETS)["longRunning"]["find"]["same"]["search.question"] = json!("id");
        },
    ),
    slip(
        WEBSETS,
        "has no field `data[].searches.0.question`; not compared",
        |s| {
            entry(s, WEBSETS)["longRunning"]["find"]["same"]["search.query"] =
                json!("searches.0.question");
        },
    ),
    slip(SEARCHES, "has no argument `webset`; recovery", |s| {
        entry(s, SEARCHES)["longRunning"]["find"]["arguments"] = json!({"webset": "$websetId"});
    }),
    slip(
        SEARCHES,
        "requires `websetId`, which nothing fills; recovery",
        |s| {
            entry(s, SEARCHES)["longRunning"]["find"]["arguments"] = json!({});
        },
    ),
    slip(RUNS, "has no field `data[].requested`; `echo`", |s| {
        entry(s, RUNS)["longRunning"]["find"]["echo"] = json!("requested");
    }),
    slip(
        RUNS,
        "has no argument `efforts`; not among `defaults`",
        |s| {
            push(
                &mut entry(s, RUNS)["longRunning"]["find"]["defaults"],
                json!("efforts"),
            );
        },
    ),
    // Resources.
    slip(
        "resources",
        "`items.all` no longer exists; `websets`",
        |s| {
            s["resources"]["websets"]["items"] = json!("items.all");
        },
    ),
    slip("resources", "has no argument `webset`; `websets`", |s| {
        s["resources"]["websets"]["argument"] = json!("webset");
    }),
    // Named tools.
    slip(
        "tool company_research_exa",
        "value `firm` is gone from `category`",
        |s| {
            tool(s, "named", "company_research_exa")["fixed"]["category"] = json!("firm");
        },
    ),
    slip(
        "tool company_research_exa",
        "`search` has no argument `categories`; fixed",
        |s| {
            tool(s, "named", "company_research_exa")["fixed"]["categories"] = json!("company");
        },
    ),
    slip("tool web_search_exa", "does not fit `numResults`", |s| {
        tool(s, "named", "web_search_exa")["defaults"]["numResults"] = json!("ten");
    }),
    slip(
        "tool web_search_exa",
        "no argument `contents.highlight`; value of level `standard`",
        |s| {
            tool(s, "named", "web_search_exa")["levels"]["standard"] =
                json!({"contents.highlight": true});
        },
    ),
    slip(
        "tool web_search_exa",
        "there is no content level `huge`",
        |s| {
            tool(s, "named", "web_search_exa")["levels"]["huge"] = json!({});
        },
    ),
    slip(
        "tool deep_researcher_check",
        "there is no content level `all`",
        |s| {
            tool(s, "named", "deep_researcher_check")["contentLevel"] = json!("all");
        },
    ),
    slip(
        "tool people_search_exa",
        "`type` is fixed; its value as a default",
        |s| {
            tool(s, "named", "people_search_exa")["defaults"]["type"] = json!("auto");
        },
    ),
    slip(
        "tool people_search_exa",
        "`type` is fixed; `type` omitted",
        |s| {
            push(
                &mut tool(s, "named", "people_search_exa")["arguments"],
                json!({"name": "type"}),
            );
        },
    ),
    slip(
        "tool answer_exa",
        "no argument `contents.text`; `pages` omitted",
        |s| {
            let pages = json!({"name": "pages", "to": "contents.text"});
            push(&mut tool(s, "named", "answer_exa")["arguments"], pages);
        },
    ),
    slip(
        "tool answer_exa",
        "a second argument is called `query`",
        |s| {
            push(
                &mut tool(s, "named", "answer_exa")["arguments"],
                json!({"name": "query"}),
            );
        },
    ),
    slip(
        "tool answer_exa",
        "an output option is called `fields`",
        |s| {
            push(
                &mut tool(s, "named", "answer_exa")["arguments"],
                json!({"name": "fields", "to": "text"}),
            );
        },
    ),
    slip(
        "tool answer_exa",
        "`answer` requires `query`, which the tool never sends",
        |s| {
            tool(s, "named", "answer_exa")["arguments"] = json!([{"name": "text"}]);
        },
    ),
    slip(
        "tool answer_exa",
        "the tool has no argument `question`; example",
        |s| {
            tool(s, "named", "answer_exa")["example"] = json!({"with": ["question"]});
        },
    ),
    slip(
        "tool find_similar_exa",
        "no argument `category`; `categoryInQuery`",
        |s| {
            tool(s, "named", "find_similar_exa")["operation"] = json!("answer");
            tool(s, "named", "find_similar_exa")["arguments"] = json!([{"name": "query"}]);
            tool(s, "named", "find_similar_exa")["defaults"] = json!({});
            tool(s, "named", "find_similar_exa")["levels"] = json!({});
            tool(s, "named", "find_similar_exa")["categoryInQuery"] = json!(true);
        },
    ),
    slip(
        "tool deep_search_exa",
        "value `deeper` is gone from `type`",
        |s| {
            push(
                &mut argument(s, "deep_search_exa", "type")["schema"]["enum"],
                json!("deeper"),
            );
        },
    ),
    slip(
        "tool web_search_advanced_exa",
        "`enableSummary` omitted",
        |s| {
            argument(s, "web_search_advanced_exa", "enableSummary")["switch"] = json!(7);
        },
    ),
    slip(
        "tool web_search_advanced_exa",
        "the schema of `subpageTarget` is not a JSON Schema",
        |s| {
            argument(s, "web_search_advanced_exa", "subpageTarget")["schema"] =
                json!({"type": "lists"});
        },
    ),
    slip(
        "tool agent_run",
        "`agent.runs.read` no longer exists",
        |s| {
            tool(s, "named", "agent_run")["instead"]["operation"] = json!("agent.runs.read");
        },
    ),
    slip(
        "tool agent_run",
        "`agent.runs.get` has no argument `run`",
        |s| {
            tool(s, "named", "agent_run")["instead"]["given"] = json!("run");
        },
    ),
    slip(
        "tool answer_exa",
        "`answers` no longer exists; tool omitted",
        |s| {
            tool(s, "named", "answer_exa")["operation"] = json!("answers");
        },
    ),
    // Toolhosts.
    slip(
        "tool websets-async",
        "there is no operation `check_searches`; `checkWith`",
        |s| {
            hosted(s, "websets-async", "start_search")["checkWith"] = json!("check_searches");
        },
    ),
    slip(
        "tool websets-async",
        "there is no operation `stop_search`; `cancelWith`",
        |s| {
            hosted(s, "websets-async", "start_search")["cancelWith"] = json!("stop_search");
        },
    ),
    slip(
        "tool websets-async",
        "`cancel_search` has another role; `checkWith`",
        |s| {
            hosted(s, "websets-async", "start_search")["checkWith"] = json!("cancel_search");
        },
    ),
    slip("tool websets-async", "has no `key` for `monitorId`", |s| {
        hosted(s, "websets-async", "start_monitor")["follow"] = json!({"monitorId": "key"});
    }),
    slip(
        "tool websets-async",
        "of `start_monitor` has an argument `monitor`",
        |s| {
            hosted(s, "websets-async", "start_monitor")["follow"]["monitor"] = json!("id");
        },
    ),
    slip(
        "tool websets-async",
        "has no argument `behavior.configs`; `searchParams`",
        |s| {
            hosted(s, "websets-async", "start_monitor")["rename"]["searchParams"] =
                json!("behavior.configs");
        },
    ),
    slip("tool websets-async", "`behavior.type`", |s| {
        hosted(s, "websets-async", "start_monitor")["defaults"]["behavior.type"] = json!("serch");
    }),
    slip(
        "tool websets-async",
        "`finished` is not among the values",
        |s| {
            push(
                &mut hosted(s, "websets-async", "check_monitor_runs")["final"],
                json!("finished"),
            );
        },
    ),
    slip(
        "tool websets-async",
        "a second operation is called `check_search`",
        |s| {
            let host = tool(s, "hosts", "websets-async");
            let entry =
                json!({"name": "check_search", "summary": "s", "operation": "searches.get"});
            push(&mut host["operations"], entry);
        },
    ),
    slip(
        "tool websets-async",
        "has neither `operation` nor `unsupported`",
        |s| {
            let host = tool(s, "hosts", "websets-async");
            push(
                &mut host["operations"],
                json!({"name": "nothing", "summary": "s"}),
            );
        },
    ),
    slip(
        "tool exa-sync",
        "`search` has an argument `contents`; `search` does not spread",
        |s| {
            hosted(s, "exa-sync", "search")["spread"] = json!(["contents"]);
        },
    ),
    slip("tool exa-async", "does not fit `stream`", |s| {
        hosted(s, "exa-async", "stream_answer")["fixed"]["stream"] = json!("yes");
    }),
    slip("tool exa-async", "its `parameters` are ignored", |s| {
        hosted(s, "exa-async", "stream_answer")["parameters"] = json!(["query"]);
    }),
    slip(
        "tool exa-sync",
        "has an argument `text`; `text` of `answer`",
        |s| {
            hosted(s, "exa-sync", "answer")["rename"]["text"] = json!("query");
        },
    ),
    // Names of tools, sets and options.
    slip("tool web_fetch_exa", "a second tool has this name", |s| {
        tool(s, "local", "create_note")["name"] = json!("web_fetch_exa");
    }),
    slip("tool create note", "tool omitted", |s| {
        tool(s, "local", "create_note")["name"] = json!("create note");
    }),
    slip("tool search", "it is called `search_2`", |s| {
        tool(s, "local", "create_note")["name"] = json!("search");
    }),
    slip("tool create_note", "not a local tool", |s| {
        tool(s, "local", "create_note")["plan"] =
            json!({"kind": "operation", "operation": "search"});
    }),
    slip(
        "tool create_note",
        "not the JSON Schema of an object",
        |s| {
            tool(s, "local", "create_note")["inputSchema"]["type"] = json!("string");
        },
    ),
    slip(
        "tool suggest_enrichments",
        "`websets.read` no longer exists",
        |s| {
            tool(s, "local", "suggest_enrichments")["plan"]["read"] = json!("websets.read");
        },
    ),
    slip("tool exa_api", "its API no longer has operations", |s| {
        tool(s, "dispatchers", "exa_api")["api"] = json!("searches");
    }),
    slip("tool answer_exa", "the set has the name of a tool", |s| {
        s["tools"]["sets"]["answer_exa"] = json!(["answer_exa"]);
    }),
    slip("tool imports", "the set has the name of a domain", |s| {
        s["tools"]["sets"]["imports"] = json!(["imports_get"]);
    }),
    slip("tool default", "the set contains `web_serch_exa`", |s| {
        push(&mut s["tools"]["sets"]["default"], json!("web_serch_exa"));
    }),
    slip("tool default", "the set contains `exa_api` twice", |s| {
        push(&mut s["tools"]["sets"]["default"], json!("exa_api"));
    }),
    slip("option output_format", "it lists \"xml\"", |s| {
        push(
            &mut tool(s, "options", "output_format")["listed"]["enum"],
            json!("xml"),
        );
    }),
    slip(
        "option filters",
        "it excepts `web_fetch`, which is not",
        |s| {
            push(
                &mut tool(s, "options", "filters")["except"],
                json!("web_fetch"),
            );
        },
    ),
    slip(SEARCHES, "`done` is not a final state; failed", |s| {
        push(
            &mut entry(s, SEARCHES)["longRunning"]["failed"],
            json!("done"),
        );
    }),
    slip(
        "entry POST /contents",
        "`texts`; omitted from `unless`",
        |s| {
            push(
                &mut entry(s, "POST /contents")["contents"]["unless"],
                json!("texts"),
            );
        },
    ),
    slip("entry POST /contents", "`4` does not fit `text`", |s| {
        entry(s, "POST /contents")["contents"]["full"]["text"] = json!(4);
    }),
    slip("option fields", "a second option", |s| {
        push(
            &mut s["tools"]["options"],
            json!({"name": "fields", "schema": {"type": "array"}}),
        );
    }),
];

fn notices(output: &GeneratedOutput) -> Vec<String> {
    output.notices.iter().map(ToString::to_string).collect()
}

#[test]
fn every_slip_in_the_surface_is_reported_with_its_place() {
    assert!(SLIPS.len() > 100, "{}", SLIPS.len());
    let clean = notices(&DesignCopy::new().generate().unwrap());
    // Slips of the same place are made one after another, others together.
    let mut rounds: Vec<Vec<&Slip>> = Vec::new();
    for slip in SLIPS {
        let is_free = |round: &&mut Vec<&Slip>| !round.iter().any(|it| it.owner() == slip.owner());
        match rounds.iter_mut().find(is_free) {
            Some(round) => round.push(slip),
            None => rounds.push(vec![slip]),
        }
    }
    let mut failures = Vec::new();
    for round in rounds {
        let copy = DesignCopy::new();
        copy.edit("surface.yaml", |surface| {
            round.iter().for_each(|slip| (slip.make)(surface));
        });
        let design = codegen::read(&copy.root().join("data-design")).unwrap();
        let all = design.findings.notices.iter().map(ToString::to_string);
        let new: Vec<String> = all.filter(|notice| !clean.contains(notice)).collect();
        for slip in round {
            let is_meant = |notice: &&String| {
                notice.starts_with("surface.yaml ")
                    && notice.contains(slip.place)
                    && notice.contains(slip.text)
            };
            if !new.iter().any(|notice| is_meant(&notice)) {
                failures.push(format!("{}: {}: not in {new:#?}", slip.place, slip.text));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

#[test]
fn slips_fail_a_strict_build() {
    let copy = DesignCopy::new();
    copy.edit("surface.yaml", |surface| {
        tool(surface, "named", "company_research_exa")["fixed"]["category"] = json!("firm");
    });
    let output = copy.generate().unwrap();
    let error = copy
        .generate()
        .unwrap()
        .into_strict()
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(
            "surface.yaml tool company_research_exa: value `firm` is gone from `category`"
        ),
        "{error}"
    );
    // The rest of the tool is generated without the value.
    let tool = &output.files["generated/tools/company_research_exa.json"];
    let tool: Value = serde_json::from_str(tool).unwrap();
    assert_eq!(tool["plan"]["fixed"], json!({"type": "auto"}));
}

#[test]
fn a_new_state_of_followed_work_is_reported() {
    let copy = DesignCopy::new();
    copy.edit("exa-websets-spec.yaml", |spec| {
        let status = &mut spec["components"]["schemas"]["WebsetSearch"]["properties"]["status"];
        push(&mut status["enum"], json!("stalled"));
    });
    let output = copy.generate().unwrap();
    let expected = "`stalled` appeared in `WebsetSearch.status` and is neither final nor running";
    let notices = notices(&output);
    assert!(
        notices.iter().any(|it| it.contains(expected)),
        "{notices:?}"
    );
    assert!(
        snapshot(&output, "searches.create")
            .get("longRunning")
            .is_some()
    );
}

#[test]
fn slips_in_prompts_are_reported() {
    let copy = DesignCopy::new();
    copy.edit("prompts.yaml", |file| {
        let prompt = &mut file["prompts"][0];
        prompt["values"]["questions"]["choice"]["cases"]["shallow"] = json!("one");
        prompt["values"]["sources"]["choice"]["argument"] = json!("deepness");
        push(
            &mut prompt["steps"],
            json!({"when": {"depth": "deepest"}, "text": "t"}),
        );
        push(
            &mut prompt["steps"],
            json!({"when": {"length": "long"}, "text": "t"}),
        );
        push(
            &mut prompt["steps"],
            json!({"prefer": "no_tool", "operation": "search", "text": "t"}),
        );
        let again = prompt.clone();
        push(&mut file["prompts"], again);
    });
    let output = copy.generate().unwrap();
    let notices = notices(&output).join("\n");
    for expected in [
        "`depth` is never `shallow`; case omitted",
        "the prompt has no argument `deepness`",
        "`depth` is never `deepest`; step omitted",
        "the prompt has no argument `length`; step omitted",
        "`no_tool` no longer exists; not preferred",
        "a second prompt has this name",
    ] {
        let expected = format!("prompts.yaml prompt research_topic: {expected}");
        assert!(notices.contains(&expected), "{expected}: {notices}");
    }
}
