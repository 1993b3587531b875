//! `/search` and `/findSimilar`.

use serde_json::{Map, Value, json};

use super::contents::Contents;
use super::cost::Cost;
use super::output::{grounding, prose, structured};
use crate::call::{Call, Outcome, Reply, whole};
use crate::corpus::page::score;
use crate::corpus::{Find, Page, host_of};
use crate::failure::Failure;
use crate::http::stream;
use crate::random::Dice;
use crate::state::Account;

const USUAL_COUNT: u64 = 10;

/// `POST /search`.
pub(crate) fn search(account: &mut Account, call: &Call) -> Outcome {
    let seed = account.data_seed();
    let query = call.text("query");
    let contents = Contents::new(call.get("contents").and_then(Value::as_object), query, seed);
    contents.check(call)?;
    let pages = find(call, query)?.run(seed);
    let kind = resolved(call.opt_text("type").unwrap_or("auto"));
    let output = output(call, query, seed, kind, &pages)?;
    if call.flag("stream") {
        let cost = cost(call, &contents, &pages);
        return Ok(Reply::Events(chunks(call, query, &output, &pages, &cost)));
    }
    let mut body = answer(call, &contents, &pages);
    if let Value::Object(fields) = &mut body {
        fields.insert("resolvedSearchType".into(), kind.into());
        fields.insert("searchType".into(), kind.into());
        fields.insert(
            "searchTime".into(),
            Dice::new(seed, &["time", query]).between(180, 1_900).into(),
        );
        let warnings = warnings(call, kind);
        if !warnings.is_empty() {
            fields.insert("warnings".into(), warnings.into());
        }
        if let Some(content) = output {
            fields.insert(
                "output".into(),
                json!({ "grounding": grounding(&content, &pages), "content": content }),
            );
        }
        if contents.any() {
            let each = pages.iter().map(
                |page| json!({ "id": page.url, "status": "success", "source": contents.source() }),
            );
            fields.insert("statuses".into(), each.collect());
        }
    }
    Reply::ok(body)
}

/// `POST /findSimilar`.
pub(crate) fn find_similar(account: &mut Account, call: &Call) -> Outcome {
    let seed = account.data_seed();
    let url = call.text("url");
    if !host_of(url).contains('.') || url.contains(char::is_whitespace) {
        let message = format!("'{url}' is not an address");
        return Err(Failure::new(400, "INVALID_URLS", message));
    }
    let topic = Page::at(seed, url).title;
    let contents = Contents::new(
        call.get("contents").and_then(Value::as_object),
        &topic,
        seed,
    );
    contents.check(call)?;
    let mut find = find(call, &topic)?;
    if call.flag("excludeSourceDomain") {
        find.exclude_domains.push(host_of(url).to_owned());
    }
    let pages = find.run(seed);
    Reply::ok(answer(call, &contents, &pages))
}

/// What both have in common.
fn answer(call: &Call, contents: &Contents, pages: &[Page]) -> Value {
    let category = call.opt_text("category");
    let cost = cost(call, contents, pages);
    let mut body = json!({
        "requestId": call.request_id,
        "results": results(contents, pages, category),
        "costDollars": cost.to_json(),
    });
    if let (Value::Object(fields), Some(context)) =
        (&mut body, contents.context(call.get("context"), pages))
    {
        fields.insert("context".into(), context.into());
    }
    body
}

/// What it costs; similar pages cost as much as a search.
fn cost(call: &Call, contents: &Contents, pages: &[Page]) -> Cost {
    let kind = call.opt_text("type").unwrap_or("auto");
    Cost::search(kind, pages.len()).with_results(contents, pages.len())
}

/// Pages as results, best first.
pub(crate) fn results(contents: &Contents, pages: &[Page], category: Option<&str>) -> Vec<Value> {
    let each = pages.iter().enumerate().map(|(place, page)| {
        let mut result = contents.result(page);
        if let Value::Object(fields) = &mut result {
            fields.insert("score".into(), score(place).into());
            if let Some(entity) = entity(page, category) {
                fields.insert("entities".into(), json!([entity]));
            }
        }
        result
    });
    each.collect()
}

/// The record that comes with a company's or a person's page.
fn entity(page: &Page, category: Option<&str>) -> Option<Value> {
    let id = format!(
        "https://entities.example/{}",
        page.title.to_lowercase().replace(' ', "-")
    );
    match category? {
        "company" => Some(json!({
            "id": id, "type": "company", "version": 1,
            "properties": { "name": page.title, "description": page.sentences().into_iter().nth(1), "foundedYear": 2019 },
        })),
        "people" => Some(json!({
            "id": id, "type": "person", "version": 1,
            "properties": { "name": page.title, "location": null, "workHistory": [] },
        })),
        _ => None,
    }
}

/// The filters of a request.
fn find(call: &Call, query: &str) -> Result<Find, Failure> {
    let texts = |name: &str| -> Vec<String> {
        call.list(name)
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    let find = Find {
        query: query.to_owned(),
        count: usize::try_from(
            call.get("numResults")
                .and_then(whole)
                .unwrap_or(USUAL_COUNT),
        )
        .unwrap_or(0),
        category: call.opt_text("category").map(str::to_owned),
        include_domains: texts("includeDomains"),
        exclude_domains: texts("excludeDomains"),
        start: call.time("startPublishedDate")?,
        end: call.time("endPublishedDate")?,
        include_text: texts("includeText"),
        exclude_text: texts("excludeText"),
    };
    for (name, list) in [
        ("includeText", &find.include_text),
        ("excludeText", &find.exclude_text),
    ] {
        if let Some(long) = list.iter().find(|text| text.split_whitespace().count() > 5) {
            return Err(Failure::invalid(format!(
                "{name}: '{long}' has more than 5 words"
            )));
        }
    }
    let mut domains = find.include_domains.iter().chain(&find.exclude_domains);
    if let Some(wrong) =
        domains.find(|name| name.trim().is_empty() || name.contains(char::is_whitespace))
    {
        return Err(Failure::invalid(format!("'{wrong}' is not a domain")));
    }
    Ok(find)
}

/// What `auto` and the older names stand for.
fn resolved(kind: &str) -> &str {
    match kind {
        "auto" | "hybrid" => "neural",
        "lite" => "fast",
        other => other,
    }
}

/// The synthesized content: with the deep types, and wherever a schema asks for it.
fn output(
    call: &Call,
    query: &str,
    seed: u64,
    kind: &str,
    pages: &[Page],
) -> Result<Option<Value>, Failure> {
    let schema = call.get("outputSchema");
    if let Some(object) = structured(schema, seed, query)? {
        return Ok(Some(object));
    }
    let wanted = kind.starts_with("deep") || schema.is_some() || call.flag("stream");
    Ok(wanted.then(|| prose(query, pages).into()))
}

fn warnings(call: &Call, kind: &str) -> Vec<Value> {
    let mut warnings = Vec::new();
    if call.get("additionalQueries").is_some() && !kind.starts_with("deep") {
        warnings.push(json!({
            "code": "IGNORED_PARAMETER",
            "path": "additionalQueries",
            "message": "additionalQueries has an effect with the deep types only",
        }));
    }
    for name in ["startCrawlDate", "endCrawlDate", "useAutoprompt"] {
        if call.get(name).is_some() {
            warnings.push(json!({ "code": "DEPRECATED_PARAMETER", "path": name, "message": format!("{name} has no effect") }));
        }
    }
    warnings
}

/// The stream of a search: OpenAI-style pieces of the output, then the pages.
fn chunks(
    call: &Call,
    query: &str,
    output: &Option<Value>,
    pages: &[Page],
    cost: &Cost,
) -> Vec<String> {
    let text = match output {
        Some(Value::String(text)) => text.clone(),
        Some(object) => object.to_string(),
        None => query.to_owned(),
    };
    let citations: Vec<Value> = pages.iter().map(Page::to_json).collect();
    pieces(call, &text, citations, cost)
}

/// Text in pieces, then citations, then the end.
pub(super) fn pieces(call: &Call, text: &str, citations: Vec<Value>, cost: &Cost) -> Vec<String> {
    let chunk = |delta: Value, finish: Value| {
        json!({
            "id": call.request_id,
            "object": "chat.completion.chunk",
            "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }],
        })
    };
    let mut events: Vec<String> = text
        .split_inclusive(' ')
        .collect::<Vec<_>>()
        .chunks(6)
        .map(|words| {
            stream::data(chunk(
                json!({ "role": "assistant", "content": words.concat() }),
                Value::Null,
            ))
        })
        .collect();
    let mut last = chunk(Value::Object(Map::new()), "stop".into());
    if let Value::Object(fields) = &mut last {
        fields.insert("citations".into(), citations.into());
        fields.insert("costDollars".into(), cost.to_json());
    }
    events.push(stream::data(last));
    events.push(stream::done());
    events
}
