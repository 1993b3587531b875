//! A prompt that was written for the official server works unchanged.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::Fixture;
use crate::support::{McpServer, assert_no_problems};

/// The arguments of each tool of the official server 3.4.1; `!` marks the required ones.
const ARGUMENTS: &str = "
web_search_exa: query! numResults
web_search_advanced_exa: query! numResults type category includeDomains excludeDomains \
    startPublishedDate endPublishedDate startCrawlDate endCrawlDate includeText excludeText \
    userLocation moderation additionalQueries textMaxCharacters contextMaxCharacters enableSummary \
    summaryQuery enableHighlights highlightsMaxCharacters highlightsNumSentences highlightsPerUrl \
    highlightsQuery maxAgeHours livecrawlTimeout subpages subpageTarget
company_research_exa: companyName! numResults
web_fetch_exa: urls! maxCharacters
crawling_exa: urls! maxCharacters
people_search_exa: query! numResults
linkedin_search_exa: query! numResults
deep_researcher_start: instructions! model outputSchema
deep_researcher_check: researchId!
get_code_context_exa: query! numResults
deep_search_exa: objective! search_queries type numResults highlightMaxCharacters outputSchema \
    systemPrompt structuredOutput
agent_run: query runId systemPrompt outputSchema input dataSources previousRunId effort";

/// The enum values of its arguments.
const VALUES: [(&str, &str, &str); 5] = [
    ("web_search_advanced_exa", "type", "auto|fast|instant"),
    (
        "web_search_advanced_exa",
        "category",
        "company|publication|news|pdf|github|personal site|people|financial report",
    ),
    (
        "deep_researcher_start",
        "model",
        "exa-research-fast|exa-research|exa-research-pro",
    ),
    ("deep_search_exa", "type", "deep|deep-reasoning"),
    ("agent_run", "effort", "minimal|low|medium|high|xhigh|auto"),
];

/// Returns our input schemas by tool.
fn schemas() -> BTreeMap<String, Value> {
    let tools = McpServer::sandboxed(&["--tools", "classic"]).tools();
    let named = |tool: Value| {
        let name = tool["name"].as_str().expect("a name").to_owned();
        (name, tool["inputSchema"].clone())
    };
    tools.into_iter().map(named).collect()
}

#[test]
fn official_arguments_are_supported() {
    let schemas = schemas();
    let mut problems = Vec::new();
    let mut count = 0;
    for line in ARGUMENTS.trim().lines() {
        let (tool, arguments) = line.split_once(": ").expect("a tool and its arguments");
        let schema = &schemas[tool];
        let mut required = Vec::new();
        for argument in arguments.split_whitespace() {
            let name = argument.trim_end_matches('!');
            if name != argument {
                required.push(name);
            }
            count += 1;
            if schema["properties"].get(name).is_none() {
                problems.push(format!("{tool} has no argument {name}"));
            }
        }
        let ours = schema.get("required").cloned().unwrap_or(json!([]));
        if ours != json!(required) {
            problems.push(format!("{tool} requires {ours}, not {required:?}"));
        }
    }
    assert_no_problems(&problems);
    assert_eq!(count, 62, "arguments of 12 tools");
}

#[test]
fn official_argument_values_are_supported() {
    let schemas = schemas();
    for (tool, argument, values) in VALUES {
        let allowed = schemas[tool]["properties"][argument]["enum"].as_array();
        let Some(allowed) = allowed else {
            // Without a list, any value is accepted.
            let validator = jsonschema::validator_for(&schemas[tool]["properties"][argument]);
            let validator = validator.expect("a schema");
            assert!(
                values
                    .split('|')
                    .all(|value| validator.is_valid(&json!(value)))
            );
            continue;
        };
        for value in values.split('|') {
            assert!(
                allowed.contains(&json!(value)),
                "{tool}.{argument}: {value}"
            );
        }
    }
}

/// A model that reads "default 10" and wants ten results omits the argument.
#[test]
fn schema_default_is_sent() {
    let mut fixture = Fixture::start();
    let mut problems = Vec::new();
    let schemas = schemas();
    for (tool, given) in [
        ("web_search_exa", "query"),
        ("web_search_advanced_exa", "query"),
        ("get_code_context_exa", "query"),
        ("company_research_exa", "companyName"),
        ("people_search_exa", "query"),
        ("linkedin_search_exa", "query"),
        ("deep_search_exa", "objective"),
        ("find_similar_exa", "url"),
    ] {
        let (_, body, _) = fixture.request(tool, json!({given: "https://a.example"}));
        let body = body.expect("a body");
        for name in ["numResults", "type"] {
            let documented = schemas[tool]["properties"][name].get("default");
            let sent = body.get(name);
            if documented.is_some() && documented != sent {
                problems.push(format!(
                    "{tool}.{name}: {documented:?} is documented, {sent:?} is sent"
                ));
            }
        }
    }
    assert_no_problems(&problems);
}
