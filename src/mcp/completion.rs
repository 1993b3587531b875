//! Completion of the arguments of prompts and resource templates.

use exa_mcp_text::similar_names;
use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData, Reference};

use super::{
    prompts::{self, PromptArgumentKind},
    tools::Tools,
    version::McpVersion,
};
use crate::tools::resources::{CompletionCandidate, Resources};
use exa_mcp_model::Identity;

/// The longest text that is completed, in characters.
const MAX_TEXT: usize = 500;

/// Returns the completions of an argument.
pub(super) async fn complete<T: Tools>(
    tools: &T,
    resources: &Resources,
    owner: &Identity,
    protocol: &McpVersion,
    request: CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let argument = request.argument;
    let known = request.context.and_then(|context| context.arguments);
    let known = known.unwrap_or_default();
    if argument.value.chars().count() > MAX_TEXT {
        return Ok(result(protocol, Vec::new()));
    }
    let values = match &request.r#ref {
        Reference::Prompt(prompt) => {
            let takes = prompts::takes(tools, &prompt.name, &argument.name)?;
            for_prompt(resources, owner, takes, &argument.value).await
        }
        Reference::Resource(template) => {
            check_template(resources, &template.uri, &argument.name)?;
            let candidates = resources.complete(owner, &argument.name, &known).await;
            rank(candidates, &argument.value)
        }
        _ => return Err(ErrorData::invalid_params("Unknown kind of reference", None)),
    };
    Ok(result(protocol, values))
}

fn result(protocol: &McpVersion, mut values: Vec<String>) -> CompleteResult {
    let total = values.len();
    values.truncate(CompletionInfo::MAX_VALUES);
    let mut info = CompletionInfo::default();
    info.total = u32::try_from(total).ok();
    info.has_more = Some(total > values.len());
    info.values = values;
    let mut result = CompleteResult::new(info);
    result.meta = protocol.result_meta();
    result
}

async fn for_prompt(
    resources: &Resources,
    owner: &Identity,
    takes: &PromptArgumentKind,
    typed: &str,
) -> Vec<String> {
    match takes {
        PromptArgumentKind::Text | PromptArgumentKind::Number(_) => Vec::new(),
        PromptArgumentKind::OneOf(values) | PromptArgumentKind::Suggested(values) => {
            rank(candidates(values), typed)
        }
        PromptArgumentKind::Several { suggested, .. } => in_list(typed, candidates(suggested)),
        PromptArgumentKind::Notes => in_list(typed, resources.complete_note(owner).await),
    }
}

fn candidates(values: &[String]) -> Vec<CompletionCandidate> {
    let candidate = |value: &String| CompletionCandidate {
        value: value.clone(),
        words: String::new(),
    };
    values.iter().map(candidate).collect()
}

/// Completes the last entry of a list; does not suggest the entries before it again.
fn in_list(typed: &str, mut candidates: Vec<CompletionCandidate>) -> Vec<String> {
    let (before, last) = match typed.rfind(',') {
        Some(comma) => typed.split_at(comma + 1),
        None => ("", typed),
    };
    let used: Vec<&str> = before.split(',').map(str::trim).collect();
    candidates.retain(|candidate| !used.contains(&candidate.value.as_str()));
    let lead = match before {
        "" => String::new(),
        before => format!("{} ", before.trim_end()),
    };
    let values = rank(candidates, last.trim_start()).into_iter();
    values.map(|value| format!("{lead}{value}")).collect()
}

/// Checks that a template exists and has the argument.
fn check_template(resources: &Resources, pattern: &str, argument: &str) -> Result<(), ErrorData> {
    let templates = resources.templates();
    let template = templates
        .iter()
        .find(|template| template.pattern == pattern);
    let Some(template) = template else {
        let text = "Unknown resource template; resources/templates/list returns the available ones";
        return Err(ErrorData::invalid_params(text, None));
    };
    if template.pattern.contains(&format!("{{{argument}}}")) {
        return Ok(());
    }
    let shown: String = argument.chars().take(100).collect();
    let text = format!("{} has no argument {shown}", template.pattern);
    Err(ErrorData::invalid_params(text, None))
}

/// The shortest text for which misspelled candidates are returned.
const MIN_FUZZY: usize = 4;

/// Returns whether a word, or its start, differs from the typed text by a typo.
fn is_almost(word: &str, typed: &str) -> bool {
    let start: String = word.chars().take(typed.chars().count()).collect();
    let candidates = [word, &start].into_iter();
    typed.len() >= MIN_FUZZY
        && similar_names::most_similar(typed, candidates, similar_names::MIN_SIMILARITY).is_some()
}

/// Returns the matching candidates, the best first: the typed text starts the value, then a word of the value or its
/// title, then occurs anywhere, then differs by a typo from the value, then from a word of it. The sort is stable.
fn rank(candidates: Vec<CompletionCandidate>, typed: &str) -> Vec<String> {
    let typed = typed.to_lowercase();
    let rank = |candidate: &CompletionCandidate| {
        let value = candidate.value.to_lowercase();
        let words = candidate.words.to_lowercase();
        let starts_word = |text: &str| {
            let mut parts = text.split(|c: char| !c.is_alphanumeric());
            parts.any(|part| !part.is_empty() && part.starts_with(&typed))
        };
        if value.starts_with(&typed) {
            Some(0)
        } else if starts_word(&value) || starts_word(&words) || words.starts_with(&typed) {
            Some(1)
        } else if value.contains(&typed) || words.contains(&typed) {
            Some(2)
        } else if is_almost(&value, &typed) {
            Some(3)
        } else {
            let mut parts = value.split(|c: char| !c.is_alphanumeric());
            parts.any(|part| is_almost(part, &typed)).then_some(4)
        }
    };
    let mut matching: Vec<(u8, String)> = candidates
        .into_iter()
        .filter_map(|candidate| Some((rank(&candidate)?, candidate.value)))
        .collect();
    matching.sort_by_key(|(rank, _)| *rank);
    // Typos are guessed only where nothing has the typed text.
    if matching.first().is_some_and(|(rank, _)| *rank < 3) {
        matching.retain(|(rank, _)| *rank < 3);
    }
    matching.into_iter().map(|(_, value)| value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operations() -> Vec<CompletionCandidate> {
        let candidate = |value: &str, words: &str| CompletionCandidate {
            value: value.to_owned(),
            words: words.to_owned(),
        };
        vec![
            candidate("agent.runs.list", "List agent runs"),
            candidate("websets.list", "List websets"),
            candidate("search", "Search the web"),
            candidate("research.list", "List research tasks"),
        ]
    }

    fn found(typed: &str) -> String {
        rank(operations(), typed).join(" ")
    }

    #[test]
    fn ranks_prefixes_before_words_before_substrings() {
        assert_eq!(found("search"), "search research.list");
        assert_eq!(found("LIST"), "agent.runs.list websets.list research.list");
        assert_eq!(found("web"), "websets.list search");
        assert_eq!(found("earch"), "search research.list");
        assert_eq!(found("wesbets"), "websets.list");
        assert_eq!(found("serach"), "search research.list");
        assert_eq!(found("zzz"), "");
        assert_eq!(rank(operations(), "").len(), 4);
    }

    #[test]
    fn ranks_values_before_words_that_differ_by_a_typo() {
        let backwards = operations().into_iter().rev().collect();
        assert_eq!(rank(backwards, "serch"), ["search", "research.list"]);
    }

    #[test]
    fn completes_only_the_last_entry_of_a_list() {
        let known = || candidates(&["pricing", "products", "funding"].map(str::to_owned));
        assert_eq!(in_list("p", known()), ["pricing", "products"]);
        assert_eq!(in_list("pricing,p", known()), ["pricing, products"]);
        assert_eq!(
            in_list("pricing, ", known()),
            ["pricing, products", "pricing, funding"]
        );
    }
}
