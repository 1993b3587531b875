//! What prompts say, and what they refuse.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::template::webset_arguments;
use super::*;
use crate::operations::{self, Caller, validation};
use crate::tools::notes::NoteDraft;
use crate::tools::{ResultCache, ToolExecutor};
use exa_mcp_exa_client::{ExaConfig, ExaHttp};

fn executor(tools: &str) -> ToolExecutor {
    let http = ExaHttp::new(ExaConfig::default()).unwrap();
    ToolExecutor::new(
        tools,
        Caller::new(
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
    let era = Era::of(None);
    let result = super::get(
        &executor(tools),
        &Identity::local(),
        &era,
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

async fn refused(name: &str, arguments: Value) -> String {
    let error = get("default,notes", name, arguments).await.unwrap_err();
    assert_eq!(error.code.0, -32602);
    error.message.into_owned()
}

#[test]
fn a_prompt_is_offered_where_its_work_can_be_done() {
    let names = |tools: &str| -> String {
        let prompts = all(&executor(tools), &Era::of(None));
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
async fn prompts_speak_of_the_tools_that_are_there() {
    let topic = json!({"topic": "heat pumps", "depth": "deep"});
    let said = text("default", "research_topic", topic.clone()).await;
    for part in [
        "Topic: heat pumps",
        "`web_search_exa`",
        "`web_fetch_exa`",
        "`exa_api` with operation `research.create`",
        "`exa_api` with operation `research.get`",
    ] {
        assert!(said.contains(part), "no {part} in {said}");
    }
    assert!(
        !said.contains("create_note") && !said.contains("exa-sync"),
        "{said}"
    );
    let said = text("toolhost,notes", "research_topic", topic).await;
    for part in [
        "`exa-sync` with operation `search`",
        "`exa-async` with operation `start_research`",
        "`create_note`",
    ] {
        assert!(said.contains(part), "no {part} in {said}");
    }
    let companies = json!({"companies": "Exa, Acme"});
    let said = text("classic", "compare_companies", companies.clone()).await;
    assert!(said.contains("`company_research_exa`"), "{said}");
    let said = text("web_search_exa", "compare_companies", companies).await;
    assert!(
        said.contains("`web_search_exa`") && !said.contains("_fetch_"),
        "{said}"
    );
}

#[tokio::test]
async fn depth_decides_how_much_is_asked_for() {
    let said = async |depth| {
        text(
            "default",
            "research_topic",
            json!({"topic": "x", "depth": depth}),
        )
        .await
    };
    let (quick, usual, deep) = (said("Quick").await, said("").await, said("deep").await);
    assert!(quick.contains("half a page") && usual.contains("two pages"));
    assert!(deep.contains("research.create") && !usual.contains("research.create"));
    assert_eq!(
        usual,
        text("default", "research_topic", json!({"topic": "x"})).await
    );
}

/// What the prompt suggests to send must be something that Exa takes.
#[test]
fn the_suggested_webset_fits_the_operation() {
    let operation = operations::find("websets.create").unwrap();
    let subject = validation::Subject::new(operations::input_schema(operation));
    let mut prompts = PROMPTS.prompts.iter();
    let prompt = prompts.find(|it| it.name == "build_webset").unwrap();
    for entity in [
        "company",
        "person",
        "Article",
        "research_paper",
        "open-source databases",
    ] {
        let given = Given::from([
            ("description", "databases".to_owned()),
            ("count", "25".to_owned()),
            ("criteria", "written in Rust; a; b;; c; d; e; f".to_owned()),
            ("entity", entity.to_owned()),
        ]);
        let arguments = webset_arguments(prompt, &given);
        assert_eq!(arguments["search"]["count"], 25);
        assert_eq!(arguments["search"]["criteria"].as_array().unwrap().len(), 5);
        let checked = validation::check(&subject, arguments).unwrap();
        assert_eq!(checked.corrections, Vec::<String>::new(), "{entity}");
    }
    let least = Given::from([("description", "databases".to_owned())]);
    let expected = json!({"search": {"query": "databases", "count": 10}});
    assert_eq!(webset_arguments(prompt, &least), expected);
}

#[tokio::test]
async fn what_does_not_fit_is_named() {
    let said = refused("research_topic", json!({"topic": " ", "depth": "endless"})).await;
    assert!(said.contains("`topic` is required"), "{said}");
    assert!(
        said.contains("`depth` must be one of quick, standard, deep"),
        "{said}"
    );
    for count in ["0", "1001", "many", "1.5", "-1"] {
        let said = refused("build_webset", json!({"description": "x", "count": count})).await;
        assert!(
            said.contains("`count` must be a whole number"),
            "{count}: {said}"
        );
    }
    get(
        "default",
        "build_webset",
        json!({"description": "x", "count": 5}),
    )
    .await
    .unwrap();
    let said = refused("compare_companies", json!({"companies": "Exa, "})).await;
    assert!(said.contains("`companies` must name at least 2"), "{said}");
    let said = refused("research_topic", json!({"topic": "x".repeat(5_001)})).await;
    assert!(said.contains("longer") && said.len() < 200, "{said}");
    let said = refused("summarize_notes", json!({"notes": "nope"})).await;
    assert!(said.contains("no note nope"), "{said}");
    let error = get("default", "summarize_notes", json!({}))
        .await
        .unwrap_err();
    assert_eq!(error.code.0, -32602);
    let known = json!(["research_topic", "build_webset", "compare_companies"]);
    assert_eq!(error.data.unwrap()["prompts"], known);
}

#[tokio::test]
async fn notes_come_with_the_prompt_as_far_as_they_fit() {
    let tools = executor("notes");
    let era = Era::of(None);
    let summarize = async |arguments| {
        let arguments = object(arguments);
        let result = super::get(
            &tools,
            &Identity::local(),
            &era,
            "summarize_notes",
            arguments,
        )
        .await;
        json!(result.unwrap().messages)
    };
    let said = summarize(json!({})).await;
    assert!(said.to_string().contains("no notes yet"), "{said}");
    let notes = tools.resources().notes().unwrap();
    let mut ids = Vec::new();
    for (title, length) in [("small", 10), ("large", MOST_BYTES), ("late", 10)] {
        let draft = NoteDraft {
            title: title.to_owned(),
            content: "x".repeat(length),
            source_urls: Vec::new(),
        };
        let note = notes.create(&Identity::local(), draft).await.unwrap();
        ids.push(note.id);
    }
    let said = summarize(json!({"focus": "cost"})).await;
    let resources: Vec<&Value> = (1..=2).map(|n| &said[n]["content"]["resource"]).collect();
    assert_eq!(resources[0]["uri"], format!("note:///{}", ids[2]));
    assert_eq!(resources[1]["text"], "small\n\nxxxxxxxxxx");
    assert_eq!(resources[1]["mimeType"], "text/plain");
    let left_out = said[3]["content"]["text"].as_str().unwrap();
    assert!(
        left_out.contains(&format!("note:///{} (large)", ids[1])),
        "{left_out}"
    );
    assert!(
        said[4]["content"]["text"]
            .as_str()
            .unwrap()
            .contains("cost")
    );
    let one = format!(" note:///{} ", ids[0]);
    let said = summarize(json!({"notes": one})).await;
    assert_eq!(said.as_array().unwrap().len(), 3);
}
