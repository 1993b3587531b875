//! Rendering of prompts and validation of their arguments.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::template::webset_arguments;
use super::*;
use crate::operations::{self, OperationExecutor, validation};
use crate::tools::notes::NoteDraft;
use crate::tools::{ResultCache, ToolExecutor};
use exa_mcp_exa_client::{ExaConfig, ExaHttp};

fn executor(tools: &str) -> ToolExecutor {
    let http = ExaHttp::new(ExaConfig::default()).unwrap();
    ToolExecutor::new(
        tools,
        OperationExecutor::new(
            http,
            None,
            std::sync::Arc::new(crate::operations::spend::Unlimited),
        ),
        ResultCache::default(),
    )
    .unwrap()
}

fn object(value: Value) -> JsonObject {
    value.as_object().unwrap().clone()
}

async fn get(tools: &str, name: &str, arguments: Value) -> Result<Vec<Value>, ErrorData> {
    let protocol = McpVersion::new(None);
    let result = super::get(
        &executor(tools),
        &Identity::local(),
        &protocol,
        name,
        object(arguments),
    )
    .await?;
    let messages = result.messages.iter().map(|message| json!(message));
    Ok(messages.collect())
}

async fn text(tools: &str, name: &str, arguments: Value) -> String {
    let messages = get(tools, name, arguments).await.unwrap();
    messages[0]["content"]["text"].as_str().unwrap().to_owned()
}

async fn rejection(name: &str, arguments: Value) -> String {
    let error = get("default,notes", name, arguments).await.unwrap_err();
    assert_eq!(error.code.0, -32602);
    error.message.into_owned()
}

#[test]
fn lists_only_prompts_that_the_tools_support() {
    let names = |tools: &str| -> String {
        let prompts = all(&executor(tools), &McpVersion::new(None));
        let names: Vec<String> = prompts.into_iter().map(|prompt| prompt.name).collect();
        names.join(" ")
    };
    assert_eq!(
        names("default"),
        "research_topic build_webset compare_companies"
    );
    assert_eq!(
        names("toolhost"),
        "research_topic build_webset compare_companies"
    );
    assert_eq!(names("classic"), "research_topic compare_companies");
    assert_eq!(names("notes"), "summarize_notes");
    assert_eq!(names("items"), "");
}

#[tokio::test]
async fn prompts_mention_only_available_tools() {
    let topic = json!({"topic": "heat pumps", "depth": "deep"});
    let rendered = text("default", "research_topic", topic.clone()).await;
    for part in [
        "Topic: heat pumps",
        "`web_search_exa`",
        "`web_fetch_exa`",
        "`exa_api` with operation `agent.runs.create`",
        "`exa_api` with operation `agent.runs.get`",
    ] {
        assert!(rendered.contains(part), "no {part} in {rendered}");
    }
    assert!(
        !rendered.contains("create_note") && !rendered.contains("exa-sync"),
        "{rendered}"
    );
    let rendered = text("toolhost,notes", "research_topic", topic).await;
    for part in [
        "`exa-sync` with operation `search`",
        "`exa-async` with operation `start_research`",
        "`create_note`",
    ] {
        assert!(rendered.contains(part), "no {part} in {rendered}");
    }
    let companies = json!({"companies": "Exa, Acme"});
    let rendered = text("classic", "compare_companies", companies.clone()).await;
    assert!(rendered.contains("`company_research_exa`"), "{rendered}");
    let rendered = text("web_search_exa", "compare_companies", companies).await;
    assert!(
        rendered.contains("`web_search_exa`") && !rendered.contains("_fetch_"),
        "{rendered}"
    );
}

#[tokio::test]
async fn depth_determines_the_extent_of_research() {
    let rendered = async |depth| {
        text(
            "default",
            "research_topic",
            json!({"topic": "x", "depth": depth}),
        )
        .await
    };
    let (quick, usual, deep) = (
        rendered("Quick").await,
        rendered("").await,
        rendered("deep").await,
    );
    assert!(quick.contains("half a page") && usual.contains("two pages"));
    assert!(deep.contains("agent.runs.create") && !usual.contains("agent.runs"));
    assert_eq!(
        usual,
        text("default", "research_topic", json!({"topic": "x"})).await
    );
}

/// The suggested arguments must be valid.
#[test]
fn suggested_webset_arguments_are_valid() {
    let operation = operations::find("websets.create").unwrap();
    let spec = validation::ArgumentSpec::new(operations::input_schema(operation));
    let mut prompts = PROMPTS.prompts.iter();
    let prompt = prompts.find(|it| it.name == "build_webset").unwrap();
    for entity in [
        "company",
        "person",
        "Article",
        "research_paper",
        "open-source databases",
    ] {
        let given = ArgumentValues::from([
            ("description", "databases".to_owned()),
            ("count", "25".to_owned()),
            ("criteria", "written in Rust; a; b;; c; d; e; f".to_owned()),
            ("entity", entity.to_owned()),
        ]);
        let arguments = webset_arguments(prompt, &given);
        assert_eq!(arguments["search"]["count"], 25);
        assert_eq!(arguments["search"]["criteria"].as_array().unwrap().len(), 5);
        let checked = validation::validate(&spec, arguments).unwrap();
        assert_eq!(checked.corrections, Vec::<String>::new(), "{entity}");
    }
    let least = ArgumentValues::from([("description", "databases".to_owned())]);
    let expected = json!({"search": {"query": "databases", "count": 10}});
    assert_eq!(webset_arguments(prompt, &least), expected);
}

#[tokio::test]
async fn reports_invalid_arguments() {
    let rendered = rejection("research_topic", json!({"topic": " ", "depth": "endless"})).await;
    assert!(rendered.contains("`topic` is required"), "{rendered}");
    assert!(
        rendered.contains("`depth` must be one of quick, standard, deep"),
        "{rendered}"
    );
    for count in ["0", "1001", "many", "1.5", "-1"] {
        let rendered = rejection("build_webset", json!({"description": "x", "count": count})).await;
        assert!(
            rendered.contains("`count` must be a whole number"),
            "{count}: {rendered}"
        );
    }
    get(
        "default",
        "build_webset",
        json!({"description": "x", "count": 5}),
    )
    .await
    .unwrap();
    let rendered = rejection("compare_companies", json!({"companies": "Exa, "})).await;
    assert!(
        rendered.contains("`companies` must name at least 2"),
        "{rendered}"
    );
    let rendered = rejection("research_topic", json!({"topic": "x".repeat(5_001)})).await;
    assert!(
        rendered.contains("longer") && rendered.len() < 200,
        "{rendered}"
    );
    let rendered = rejection("summarize_notes", json!({"notes": "nope"})).await;
    assert!(rendered.contains("no note nope"), "{rendered}");
    let error = get("default", "summarize_notes", json!({}))
        .await
        .unwrap_err();
    assert_eq!(error.code.0, -32602);
    let known = json!(["research_topic", "build_webset", "compare_companies"]);
    assert_eq!(error.data.unwrap()["prompts"], known);
}

#[tokio::test]
async fn includes_notes_up_to_the_size_limit() {
    let tools = executor("notes");
    let protocol = McpVersion::new(None);
    let summarize = async |arguments| {
        let arguments = object(arguments);
        let result = super::get(
            &tools,
            &Identity::local(),
            &protocol,
            "summarize_notes",
            arguments,
        )
        .await;
        json!(result.unwrap().messages)
    };
    let rendered = summarize(json!({})).await;
    assert!(rendered.to_string().contains("no notes yet"), "{rendered}");
    let notes = tools.resources().notes().unwrap();
    let mut ids = Vec::new();
    for (title, length) in [("small", 10), ("large", MAX_NOTE_BYTES), ("late", 10)] {
        let draft = NoteDraft {
            title: title.to_owned(),
            content: "x".repeat(length),
            source_urls: Vec::new(),
        };
        let note = notes.create(&Identity::local(), draft).await.unwrap();
        ids.push(note.id);
    }
    let rendered = summarize(json!({"focus": "cost"})).await;
    let resources: Vec<&Value> = (1..=2)
        .map(|n| &rendered[n]["content"]["resource"])
        .collect();
    assert_eq!(resources[0]["uri"], format!("note:///{}", ids[2]));
    assert_eq!(resources[1]["text"], "small\n\nxxxxxxxxxx");
    assert_eq!(resources[1]["mimeType"], "text/plain");
    let left_out = rendered[3]["content"]["text"].as_str().unwrap();
    assert!(
        left_out.contains(&format!("note:///{} (large)", ids[1])),
        "{left_out}"
    );
    assert!(
        rendered[4]["content"]["text"]
            .as_str()
            .unwrap()
            .contains("cost")
    );
    let one = format!(" note:///{} ", ids[0]);
    let rendered = summarize(json!({"notes": one})).await;
    assert_eq!(rendered.as_array().unwrap().len(), 3);
}
