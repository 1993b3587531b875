//! Completion: what someone who types an argument could mean.

use rmcp::model::{CompleteRequestParams, CompleteResult, CompletionInfo, ErrorData, Reference};

use super::{
    prompts::{self, Takes},
    tools::Tools,
    version::Era,
};
use crate::tools::resources::{CompletionCandidate, Resources};
use exa_mcp_model::Identity;

/// The longest text that is completed, in characters.
const LONGEST: usize = 500;

/// What could be meant.
pub(super) async fn complete<T: Tools>(
    tools: &T,
    resources: &Resources,
    owner: &Identity,
    era: &Era,
    request: CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let argument = request.argument;
    let earlier = request.context.and_then(|context| context.arguments);
    let earlier = earlier.unwrap_or_default();
    if argument.value.chars().count() > LONGEST {
        return Ok(result(era, Vec::new()));
    }
    let values = match &request.r#ref {
        Reference::Prompt(prompt) => {
            let takes = prompts::takes(tools, &prompt.name, &argument.name)?;
            for_prompt(resources, owner, takes, &argument.value).await
        }
        Reference::Resource(template) => {
            check_template(resources, &template.uri, &argument.name)?;
            let offers = resources.complete(owner, &argument.name, &earlier).await;
            ranked(offers, &argument.value)
        }
        _ => return Err(ErrorData::invalid_params("Unknown kind of reference", None)),
    };
    Ok(result(era, values))
}

fn result(era: &Era, mut values: Vec<String>) -> CompleteResult {
    let total = values.len();
    values.truncate(CompletionInfo::MAX_VALUES);
    let mut info = CompletionInfo::default();
    info.total = u32::try_from(total).ok();
    info.has_more = Some(total > values.len());
    info.values = values;
    let mut result = CompleteResult::new(info);
    result.meta = era.result_meta();
    result
}

async fn for_prompt(
    resources: &Resources,
    owner: &Identity,
    takes: &Takes,
    typed: &str,
) -> Vec<String> {
    match takes {
        Takes::Text | Takes::Number(_) => Vec::new(),
        Takes::OneOf(known) | Takes::Suggested(known) => ranked(words(known), typed),
        Takes::Several { suggested, .. } => in_list(typed, words(suggested)),
        Takes::Notes => in_list(typed, resources.complete_note(owner).await),
    }
}

fn words(known: &[String]) -> Vec<CompletionCandidate> {
    let offer = |word: &String| CompletionCandidate {
        value: word.clone(),
        words: String::new(),
    };
    known.iter().map(offer).collect()
}

/// Completes the last member of a list, leaving those before it as they are and not offering them again.
fn in_list(typed: &str, mut offers: Vec<CompletionCandidate>) -> Vec<String> {
    let (before, last) = match typed.rfind(',') {
        Some(comma) => typed.split_at(comma + 1),
        None => ("", typed),
    };
    let used: Vec<&str> = before.split(',').map(str::trim).collect();
    offers.retain(|offer| !used.contains(&offer.value.as_str()));
    let lead = match before {
        "" => String::new(),
        before => format!("{} ", before.trim_end()),
    };
    let values = ranked(offers, last.trim_start()).into_iter();
    values.map(|value| format!("{lead}{value}")).collect()
}

/// The pattern must be one of ours and have the argument.
fn check_template(resources: &Resources, pattern: &str, argument: &str) -> Result<(), ErrorData> {
    let templates = resources.templates();
    let template = templates
        .iter()
        .find(|template| template.pattern == pattern);
    let Some(template) = template else {
        let text = "Unknown resource template; resources/templates/list shows those there are";
        return Err(ErrorData::invalid_params(text, None));
    };
    if template.pattern.contains(&format!("{{{argument}}}")) {
        return Ok(());
    }
    let shown: String = argument.chars().take(100).collect();
    let text = format!("{} has no argument {shown}", template.pattern);
    Err(ErrorData::invalid_params(text, None))
}

/// Those that fit what was typed, the best first: it begins the value, then a word of it or of its
/// title, then stands anywhere. Equals stay in their order.
fn ranked(offers: Vec<CompletionCandidate>, typed: &str) -> Vec<String> {
    let typed = typed.to_lowercase();
    let rank = |offer: &CompletionCandidate| {
        let (value, words) = (offer.value.to_lowercase(), offer.words.to_lowercase());
        let begins_word = |text: &str| {
            let mut parts = text.split(|c: char| !c.is_alphanumeric());
            parts.any(|part| !part.is_empty() && part.starts_with(&typed))
        };
        if value.starts_with(&typed) {
            Some(0)
        } else if begins_word(&value) || begins_word(&words) || words.starts_with(&typed) {
            Some(1)
        } else if value.contains(&typed) || words.contains(&typed) {
            Some(2)
        } else {
            None
        }
    };
    let mut fitting: Vec<(u8, String)> = offers
        .into_iter()
        .filter_map(|offer| Some((rank(&offer)?, offer.value)))
        .collect();
    fitting.sort_by_key(|(rank, _)| *rank);
    fitting.into_iter().map(|(_, value)| value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offers() -> Vec<CompletionCandidate> {
        let offer = |value: &str, words: &str| CompletionCandidate {
            value: value.to_owned(),
            words: words.to_owned(),
        };
        vec![
            offer("agent.runs.list", "List agent runs"),
            offer("websets.list", "List websets"),
            offer("search", "Search the web"),
            offer("research.list", "List research tasks"),
        ]
    }

    fn found(typed: &str) -> String {
        ranked(offers(), typed).join(" ")
    }

    #[test]
    fn beginnings_go_before_words_and_words_before_parts() {
        assert_eq!(found("search"), "search research.list");
        assert_eq!(found("LIST"), "agent.runs.list websets.list research.list");
        assert_eq!(found("web"), "websets.list search");
        assert_eq!(found("earch"), "search research.list");
        assert_eq!(found("zzz"), "");
        assert_eq!(ranked(offers(), "").len(), 4);
    }

    #[test]
    fn only_the_last_member_of_a_list_is_completed() {
        let known = || words(&["pricing", "products", "funding"].map(str::to_owned));
        assert_eq!(in_list("p", known()), ["pricing", "products"]);
        assert_eq!(in_list("pricing,p", known()), ["pricing, products"]);
        assert_eq!(
            in_list("pricing, ", known()),
            ["pricing, products", "pricing, funding"]
        );
    }
}
