#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;

/// Feeds events to a gatherer and gives what was heard on the way.
fn take(
    words: &mut TextAssembler,
    events: &[(&str, Value)],
) -> Result<(String, bool), Box<ErrorBody>> {
    let mut heard = String::new();
    for (name, data) in events {
        match words.take(name, data.as_object().unwrap().clone())? {
            StreamState::Complete => return Ok((heard, true)),
            StreamState::More(Some(StreamUpdate::Text(text))) => heard.push_str(&text),
            StreamState::More(_) => {}
        }
    }
    Ok((heard, false))
}

fn unnamed(events: &[Value]) -> Vec<(&'static str, Value)> {
    let named = |event: &Value| ("message", event.clone());
    events.iter().map(named).collect()
}

fn gathered(form: StreamForm, structured: bool, events: &[Value]) -> (Value, String, bool) {
    let mut words = TextAssembler::new(form, structured);
    let (heard, over) = take(&mut words, &unnamed(events)).unwrap();
    (Box::new(words).into_response(0), heard, over)
}

fn chat(text: &str) -> Value {
    json!({"id": "c1", "object": "chat.completion.chunk", "model": "exa", "created": 1,
        "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": null}]})
}

#[test]
fn pieces_of_chat_become_an_answer() {
    let page = json!({"id": "u1", "url": "u1", "title": "One"});
    let events = [
        chat("Exa "),
        chat("was founded."),
        json!({"citations": "null", "choices": [{"delta": {"content": null}, "finish_reason": "stop"}]}),
        json!({"citations": [page]}),
        json!({"citations": [page], "costDollars": {"total": 0.005}, "requestId": "r1", "new": [1]}),
    ];
    let (answer, heard, over) = gathered(StreamForm::Answer, false, &events);
    assert_eq!(
        answer,
        json!({"answer": "Exa was founded.", "citations": [page], "costDollars": {"total": 0.005},
            "requestId": "r1", "new": [1]})
    );
    assert_eq!((heard.as_str(), over), ("Exa was founded.", false));
}

#[test]
fn events_with_types_become_a_search() {
    let events = [
        json!({"type": "results", "requestId": "r1", "results": [{"url": "u1"}]}),
        // The same piece in both forms counts once.
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
    let (answer, heard, over) = gathered(StreamForm::Search, false, &events);
    assert_eq!(
        answer,
        json!({"requestId": "r1", "results": [{"url": "u1"}], "note": 7, "searchTime": 12.5,
            "costDollars": {"total": 0.01}, "citations": [{"url": "u1", "title": "One"}],
            "output": {"content": "Right.", "grounding": [{"field": "content", "citations": []}]}})
    );
    assert_eq!((heard.as_str(), over), ("WrongRight.", true));
}

#[test]
fn the_kind_of_an_event_may_be_its_name() {
    let mut words = TextAssembler::new(StreamForm::Search, false);
    let events = [
        ("text-delta", json!({"text": "a"})),
        ("stream-reset", json!({})),
        ("text-delta", json!({"delta": "b"})),
        ("done", json!({})),
    ];
    assert_eq!(take(&mut words, &events).unwrap(), ("ab".to_owned(), true));
    assert_eq!(
        Box::new(words).into_response(0),
        json!({"results": [], "output": {"content": "b"}})
    );
}

#[test]
fn the_output_of_the_last_event_counts() {
    let done = json!({"type": "done", "output": {"content": {"a": 1}, "grounding": []}});
    let events = [json!({"type": "text-delta", "delta": "{\"a\":"}), done];
    let (answer, _, _) = gathered(StreamForm::Search, true, &events);
    assert_eq!(
        answer["output"],
        json!({"content": {"a": 1}, "grounding": []})
    );
}

#[test]
fn text_that_was_asked_for_as_data_becomes_data() {
    let events = [chat("{\"year\":"), chat(" 2021}")];
    let (answer, _, _) = gathered(StreamForm::Answer, true, &events);
    assert_eq!(answer["answer"], json!({"year": 2021}));
    let (answer, _, _) = gathered(StreamForm::Answer, false, &events);
    assert_eq!(answer["answer"], "{\"year\": 2021}");
    let (answer, _, _) = gathered(StreamForm::Answer, true, &[chat("2021")]);
    assert_eq!(answer["answer"], "2021");
    let whole = json!({"answer": {"year": 2021}, "citations": []});
    let (answer, _, _) = gathered(StreamForm::Answer, true, &[whole]);
    assert_eq!(answer["answer"], json!({"year": 2021}));
}

#[test]
fn answers_in_events_may_grow_or_come_in_pieces() {
    for events in [["Exa", "Exa is", "Exa is new"], ["Exa", " is", " new"]] {
        let events = events.map(|text| json!({"answer": text}));
        let (answer, heard, _) = gathered(StreamForm::Answer, false, &events);
        assert_eq!(
            (answer["answer"].as_str(), heard.as_str()),
            (Some("Exa is new"), "Exa is new")
        );
    }
}

#[test]
fn failures_are_recognised_in_every_form() {
    let told = [
        json!({"error": "out of luck", "tag": "INTERNAL_ERROR", "statusCode": 500}),
        json!({"type": "error", "error": {"message": "out of luck", "code": "INTERNAL_ERROR", "statusCode": 500}}),
        json!({"tag": "ERROR", "payload": {"error": {"message": "out of luck", "code": "INTERNAL_ERROR"}, "statusCode": 500}}),
        json!({"type": "error", "message": "out of luck", "tag": "INTERNAL_ERROR", "status": 500}),
    ];
    let key = crate::ApiKey::new("secret-key-1").unwrap();
    for event in told {
        let mut words = TextAssembler::new(StreamForm::Answer, false);
        let error = take(&mut words, &unnamed(&[event])).unwrap_err();
        let error = error.into_stream_error(&key);
        assert_eq!(error.status, Some(500));
        assert_eq!(error.tag.as_deref(), Some("INTERNAL_ERROR"));
        assert_eq!(
            error.message,
            "The Exa API reported a failure in the middle of its stream: out of luck"
        );
    }
    let mut words = TextAssembler::new(StreamForm::Answer, false);
    assert!(take(&mut words, &[("error", json!({"message": "x"}))]).is_err());
    assert!(take(&mut words, &unnamed(&[json!({"error": null})])).is_ok());
}

#[test]
fn an_end_in_good_order_is_one_only_where_nothing_else_tells() {
    let ends = |form, events: &[Value]| {
        let mut words = TextAssembler::new(form, false);
        take(&mut words, &unnamed(events)).unwrap();
        words.may_end()
    };
    let finish = json!({"choices": [{"delta": {}, "finish_reason": "stop"}]});
    assert!(!ends(StreamForm::Search, &[chat("a")]));
    assert!(ends(StreamForm::Search, &[chat("a"), finish]));
    assert!(ends(StreamForm::Answer, &[chat("a")]));
    assert!(!ends(StreamForm::Answer, &[]));
}

#[test]
fn what_came_before_a_failure_is_told_within_bounds() {
    let mut words = TextAssembler::new(StreamForm::Answer, false);
    assert_eq!(words.so_far(), None);
    let long = format!("a\u{1b}[31m\n{}", "x".repeat(9_000));
    let pages: Vec<Value> = (0..30)
        .map(|n| json!({"url": format!("u{n}"), "text": "long"}))
        .collect();
    take(
        &mut words,
        &unnamed(&[chat(&long), json!({"citations": pages})]),
    )
    .unwrap();
    let told = words.so_far().unwrap();
    let text = told["partialText"].as_str().unwrap();
    assert!(text.starts_with("a\nxxx") && text.ends_with('…'), "{text}");
    assert_eq!(text.chars().count(), MOST_CHARACTERS);
    assert_eq!(told["characters"], 9_007);
    assert_eq!(told["pages"].as_array().unwrap().len(), MOST_PAGES);
    assert_eq!(told["pages"][3], json!({"title": null, "url": "u3"}));
}

#[test]
fn events_that_could_not_be_read_are_told() {
    let mut words = TextAssembler::new(StreamForm::Answer, false);
    let warned = json!({"warnings": [{"code": "A"}], "choices": [{"delta": {"content": "a"}}]});
    take(
        &mut words,
        &unnamed(&[warned, json!({"warnings": [{"code": "B"}]})]),
    )
    .unwrap();
    let answer = Box::new(words).into_response(2);
    let codes: Vec<&str> = answer["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| warning["code"].as_str().unwrap())
        .collect();
    assert_eq!(codes, ["A", "B", "UNREADABLE_EVENTS"]);
}
