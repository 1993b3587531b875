#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;

/// Feeds events to an assembler; returns the updates, and whether the response is complete.
fn take(
    assembler: &mut TextAssembler,
    events: &[(&str, Value)],
) -> Result<(String, bool), Box<ErrorBody>> {
    let mut updates = String::new();
    for (name, data) in events {
        match assembler.take(name, data.as_object().unwrap().clone())? {
            StreamState::Complete => return Ok((updates, true)),
            StreamState::More(Some(StreamUpdate::Text(text))) => updates.push_str(&text),
            StreamState::More(_) => {}
        }
    }
    Ok((updates, false))
}

fn unnamed(events: &[Value]) -> Vec<(&'static str, Value)> {
    let named = |event: &Value| ("message", event.clone());
    events.iter().map(named).collect()
}

fn assemble(kind: StreamKind, structured: bool, events: &[Value]) -> (Value, String, bool) {
    let mut assembler = TextAssembler::new(kind, structured);
    let (updates, is_complete) = take(&mut assembler, &unnamed(events)).unwrap();
    (Box::new(assembler).into_response(0), updates, is_complete)
}

fn chat(text: &str) -> Value {
    json!({"id": "c1", "object": "chat.completion.chunk", "model": "exa", "created": 1,
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": null}]})
}

#[test]
fn assembles_chat_completion_chunks() {
    let page = json!({"id": "u1", "url": "u1", "title": "One"});
    let events = [
        chat("Exa "),
        chat("was founded."),
        json!({"citations": "null", "choices": [{"delta": {"content": null}, "finish_reason": "stop"}]}),
        json!({"citations": [page]}),
        json!({"citations": [page], "costDollars": {"total": 0.005}, "requestId": "r1", "new": [1]}),
    ];
    let (response, updates, is_complete) = assemble(StreamKind::Answer, false, &events);
    assert_eq!(
        response,
        json!({"answer": "Exa was founded.", "citations": [page], "costDollars": {"total": 0.005},
            "requestId": "r1", "new": [1]})
    );
    assert_eq!((updates.as_str(), is_complete), ("Exa was founded.", false));
}

#[test]
fn assembles_typed_events() {
    let events = [
        json!({"type": "results", "requestId": "r1", "results": [{"url": "u1"}]}),
        // The same piece in both formats counts once.
        json!({"type": "text-delta", "delta": "Wrong",
            "choices": [{"index": 0, "delta": {"content": "Wrong"}, "finish_reason": null}]}),
        json!({"type": "stream-reset", "streamReset": true}),
        json!({"type": "text-delta", "delta": "Right"}),
        json!({"type": "text-delta", "text": "."}),
        json!({"type": "grounding", "grounding": [{"field": "content", "citations": []}],
            "citations": [{"url": "u1", "title": "One"}]}),
        json!({"type": "something-new", "note": 7}),
        json!({"type": "done", "searchTime": 12.5, "costDollars": {"total": 0.01}}),
        json!({"type": "text-delta", "delta": " never read"}),
    ];
    let (response, updates, is_complete) = assemble(StreamKind::Search, false, &events);
    assert_eq!(
        response,
        json!({"requestId": "r1", "results": [{"url": "u1"}], "note": 7, "searchTime": 12.5,
            "costDollars": {"total": 0.01}, "citations": [{"url": "u1", "title": "One"}],
            "output": {"content": "Right.", "grounding": [{"field": "content", "citations": []}]}})
    );
    assert_eq!((updates.as_str(), is_complete), ("WrongRight.", true));
}

#[test]
fn uses_the_event_name_as_type() {
    let mut assembler = TextAssembler::new(StreamKind::Search, false);
    let events = [
        ("text-delta", json!({"text": "a"})),
        ("stream-reset", json!({})),
        ("text-delta", json!({"delta": "b"})),
        ("done", json!({})),
    ];
    assert_eq!(
        take(&mut assembler, &events).unwrap(),
        ("ab".to_owned(), true)
    );
    assert_eq!(
        Box::new(assembler).into_response(0),
        json!({"results": [], "output": {"content": "b"}})
    );
}

#[test]
fn prefers_the_output_of_the_last_event() {
    let done = json!({"type": "done", "output": {"content": {"a": 1}, "grounding": []}});
    let events = [json!({"type": "text-delta", "delta": "{\"a\":"}), done];
    let (response, _, _) = assemble(StreamKind::Search, true, &events);
    assert_eq!(
        response["output"],
        json!({"content": {"a": 1}, "grounding": []})
    );
}

#[test]
fn parses_structured_text() {
    let events = [chat("{\"year\":"), chat(" 2021}")];
    let (response, _, _) = assemble(StreamKind::Answer, true, &events);
    assert_eq!(response["answer"], json!({"year": 2021}));
    let (response, _, _) = assemble(StreamKind::Answer, false, &events);
    assert_eq!(response["answer"], "{\"year\": 2021}");
    let (response, _, _) = assemble(StreamKind::Answer, true, &[chat("2021")]);
    assert_eq!(response["answer"], "2021");
    let whole = json!({"answer": {"year": 2021}, "citations": []});
    let (response, _, _) = assemble(StreamKind::Answer, true, &[whole]);
    assert_eq!(response["answer"], json!({"year": 2021}));
}

#[test]
fn accepts_growing_and_partial_answers() {
    for events in [["Exa", "Exa is", "Exa is new"], ["Exa", " is", " new"]] {
        let events = events.map(|text| json!({"answer": text}));
        let (response, updates, _) = assemble(StreamKind::Answer, false, &events);
        assert_eq!(
            (response["answer"].as_str(), updates.as_str()),
            (Some("Exa is new"), "Exa is new")
        );
    }
}

#[test]
fn recognizes_errors_in_every_format() {
    let events = [
        json!({"error": "out of luck", "tag": "INTERNAL_ERROR", "statusCode": 500}),
        json!({"type": "error", "error": {"message": "out of luck", "code": "INTERNAL_ERROR", "statusCode": 500}}),
        json!({"tag": "ERROR", "payload": {"error": {"message": "out of luck", "code": "INTERNAL_ERROR"}, "statusCode": 500}}),
        json!({"type": "error", "message": "out of luck", "tag": "INTERNAL_ERROR", "status": 500}),
    ];
    let key = crate::ApiKey::new("secret-key-1").unwrap();
    for event in events {
        let mut assembler = TextAssembler::new(StreamKind::Answer, false);
        let error = take(&mut assembler, &unnamed(&[event])).unwrap_err();
        let error = error.into_stream_error(&key);
        assert_eq!(error.status, Some(500));
        assert_eq!(error.tag.as_deref(), Some("INTERNAL_ERROR"));
        assert_eq!(
            error.message,
            "The Exa API reported a failure during the stream: out of luck"
        );
    }
    let mut assembler = TextAssembler::new(StreamKind::Answer, false);
    assert!(take(&mut assembler, &[("error", json!({"message": "x"}))]).is_err());
    assert!(take(&mut assembler, &unnamed(&[json!({"error": null})])).is_ok());
}

#[test]
fn only_answers_may_end_without_a_final_event() {
    let ends = |kind, events: &[Value]| {
        let mut assembler = TextAssembler::new(kind, false);
        take(&mut assembler, &unnamed(events)).unwrap();
        assembler.may_end()
    };
    let finish = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
    assert!(!ends(StreamKind::Search, &[chat("a")]));
    assert!(ends(StreamKind::Search, &[chat("a"), finish]));
    assert!(ends(StreamKind::Answer, &[chat("a")]));
    assert!(!ends(StreamKind::Answer, &[]));
}

#[test]
fn limits_the_received_part_in_errors() {
    let mut assembler = TextAssembler::new(StreamKind::Answer, false);
    assert_eq!(assembler.received(), None);
    let long = format!("a\u{1b}[31m\n{}", "x".repeat(9_000));
    let pages: Vec<Value> = (0..30)
        .map(|n| json!({"url": format!("u{n}"), "text": "long"}))
        .collect();
    take(
        &mut assembler,
        &unnamed(&[chat(&long), json!({"citations": pages})]),
    )
    .unwrap();
    let received = assembler.received().unwrap();
    let text = received["partialText"].as_str().unwrap();
    assert!(text.starts_with("a\nxxx") && text.ends_with('…'), "{text}");
    assert_eq!(text.chars().count(), MAX_PARTIAL_TEXT);
    assert_eq!(received["characters"], 9_007);
    assert_eq!(received["pages"].as_array().unwrap().len(), MAX_PAGES);
    assert_eq!(received["pages"][3], json!({"title": null, "url": "u3"}));
}

#[test]
fn warns_about_unreadable_events() {
    let mut assembler = TextAssembler::new(StreamKind::Answer, false);
    let warned = json!({"warnings": [{"code": "A"}], "choices": [{"delta": {"content": "a"}}]});
    take(
        &mut assembler,
        &unnamed(&[warned, json!({"warnings": [{"code": "B"}]})]),
    )
    .unwrap();
    let response = Box::new(assembler).into_response(2);
    let codes: Vec<&str> = response["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| warning["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["A", "B", "UNREADABLE_EVENTS"]);
}
