//! Combinations of arguments that a search rejects, and what it ignores.

use serde_json::{Value, json};

use super::contents::ContentsOptions;
use crate::api_error::ApiError;
use crate::call::Call;
use crate::json::is_given;

/// Arguments of searches of type `lite`.
const LITE: [&str; 12] = [
    "query",
    "type",
    "numResults",
    "contents",
    "category",
    "includeDomains",
    "excludeDomains",
    "startPublishedDate",
    "endPublishedDate",
    "userLocation",
    "moderation",
    "betas",
];

/// Arguments that the categories `company` and `people` reject.
const NOT_FOR_ENTITIES: [&str; 3] = ["startPublishedDate", "endPublishedDate", "excludeDomains"];

/// Rejects combinations that the input schema cannot express.
pub(super) fn validate(call: &Call, contents: &ContentsOptions) -> Result<(), ApiError> {
    contents.validate(call)?;
    let search_type = call.opt_text("type").unwrap_or("auto");
    if search_type == "lite" {
        validate_lite(call, contents)?;
    }
    validate_category(call)?;
    validate_compliance(call, contents, &["instant", "fast"])?;
    if contents.snapshot().is_none() {
        return Ok(());
    }
    if search_type.starts_with("deep") || is_given(call.get("category")) {
        let message = "contents.snapshotAsOf takes neither a category nor a deep type";
        return Err(ApiError::invalid(message));
    }
    Ok(())
}

/// Rejects filters that the category does not support.
pub(super) fn validate_category(call: &Call) -> Result<(), ApiError> {
    let Some(category @ ("company" | "people")) = call.opt_text("category") else {
        return Ok(());
    };
    let mut filters = NOT_FOR_ENTITIES.iter();
    match filters.find(|name| is_given(call.get(name))) {
        Some(name) => Err(ApiError::invalid(format!(
            "{name} cannot be used together with the category {category}"
        ))),
        None => Ok(()),
    }
}

fn validate_lite(call: &Call, contents: &ContentsOptions) -> Result<(), ApiError> {
    let mut given = call.args.iter().filter(|(_, value)| is_given(Some(value)));
    let other = given.find(|(name, _)| !LITE.contains(&name.as_str()));
    let option = contents.find_other(&["text", "highlights"]);
    let field = other.map(|(name, _)| name.clone());
    match field.or_else(|| option.map(|name| format!("contents.{name}"))) {
        Some(field) => Err(ApiError::invalid(format!(
            "{field} cannot be used together with the type lite"
        ))),
        None => Ok(()),
    }
}

/// Rejects a compliance mode that the rest of the request does not allow. An empty list of types allows
/// all.
pub(super) fn validate_compliance(
    call: &Call,
    contents: &ContentsOptions,
    types: &[&str],
) -> Result<(), ApiError> {
    let Some(mode) = call.opt_text("compliance") else {
        return Ok(());
    };
    let search_type = call.opt_text("type").unwrap_or("auto");
    if !types.is_empty() && !types.contains(&search_type) {
        let types = types.join(" or ");
        return Err(ApiError::invalid(format!(
            "compliance {mode} needs the type {types}"
        )));
    }
    if !contents.has_text() && !contents.has_highlights() {
        let message = format!("compliance {mode} needs text or highlights");
        return Err(ApiError::invalid(message));
    }
    if contents.source() != "cached" {
        let message = format!("compliance {mode} reads stored pages only");
        return Err(ApiError::invalid(message));
    }
    Ok(())
}

/// Returns a warning for every argument without effect.
pub(super) fn warnings(call: &Call) -> Vec<Value> {
    let is_deep = call.text("type").starts_with("deep");
    let names = [
        "additionalQueries",
        "startCrawlDate",
        "endCrawlDate",
        "useAutoprompt",
    ];
    let ignored = names.iter().filter(|name| {
        let has_effect = is_deep && **name == "additionalQueries";
        is_given(call.get(name)) && !has_effect
    });
    let pointer = "/contents/highlights/highlightsPerUrl";
    let in_contents = call
        .get("contents")
        .is_some_and(|contents| is_given(contents.pointer("/highlights/highlightsPerUrl")));
    let pointers = ignored.map(|name| format!("/{name}"));
    let pointers = pointers.chain(in_contents.then(|| pointer.to_owned()));
    let message = "This field has no effect here";
    pointers
        .map(|path| json!({ "code": "IGNORED_FIELD", "path": path, "message": message }))
        .collect()
}

/// Returns what the reader of the results should know about them.
pub(super) fn notices(call: &Call) -> Vec<Value> {
    let is_relaxed = call.text("query").contains("sandbox-relax");
    let notice = json!({
        "code": "RESTRICTIONS_RELAXED",
        "path": "/query",
        "message": "Too few pages match all restrictions, so some of them were relaxed",
        "details": { "relaxed": ["sandbox-relax"] },
    });
    is_relaxed.then_some(notice).into_iter().collect()
}
