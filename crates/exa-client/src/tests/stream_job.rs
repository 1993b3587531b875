#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;

fn take(
    assembler: &mut JobAssembler,
    name: &str,
    data: Value,
) -> Result<(Option<String>, bool), Box<ErrorBody>> {
    Ok(
        match assembler.take(name, data.as_object().unwrap().clone())? {
            StreamState::Complete => (None, true),
            StreamState::More(Some(StreamUpdate::Step(step))) => (Some(step), false),
            StreamState::More(_) => (None, false),
        },
    )
}

#[test]
fn assembles_a_run() {
    let mut run = JobAssembler::new(StreamKind::AgentRun);
    assert!(run.received().is_none() && run.continuing_job().is_none() && !run.may_end());
    let created =
        json!({"id": "agent_run_1", "object": "agent_run", "status": "queued", "query": "q"});
    let (step, is_complete) = take(&mut run, "agent_run.created", created).unwrap();
    assert_eq!(
        (step.as_deref(), is_complete),
        (Some("agent_run.created: q"), false)
    );
    let source = json!({"source": {"url": "https://a.example", "title": "A\u{7} page\n"}});
    let (step, _) = take(&mut run, "source.added", source).unwrap();
    assert_eq!(step.as_deref(), Some("source.added: A page"));
    let part = json!({"item": {"id": "item_1"}, "status": "completed"});
    let (_, is_complete) = take(&mut run, "agent_run.output_item.done", part).unwrap();
    assert!(!is_complete, "a part of the run is complete");
    assert_eq!(
        run.received(),
        Some(json!({"runId": "agent_run_1", "status": "queued", "events": 3}))
    );
    assert!(run.continuing_job().unwrap().contains("agent_run_1"));
    let done = json!({"id": "agent_run_1", "status": "completed", "output": {"text": "t"}});
    assert_eq!(
        take(&mut run, "agent_run.completed", done).unwrap(),
        (None, true)
    );
    assert_eq!(
        Box::new(run).into_response(0),
        json!({"id": "agent_run_1", "object": "agent_run", "status": "completed", "query": "q",
            "output": {"text": "t"}})
    );
}

#[test]
fn failed_and_cancelled_runs_are_responses() {
    for (name, status) in [
        ("agent_run.failed", "failed"),
        ("agent_run.cancelled", "cancelled"),
    ] {
        let mut run = JobAssembler::new(StreamKind::AgentRun);
        let end = json!({"id": "r", "status": status, "error": {"message": "no"}});
        assert_eq!(take(&mut run, name, end).unwrap(), (None, true));
        let response = Box::new(run).into_response(0);
        assert_eq!(response["status"], status);
        assert_eq!(response["error"]["message"], "no");
    }
}

#[test]
fn accepts_wrapped_events_and_sparse_final_events() {
    let mut run = JobAssembler::new(StreamKind::AgentRun);
    let created = json!({"id": "e1", "event": "agent_run.created", "data": {"run": {"id": "r", "status": "queued"}}});
    assert!(!take(&mut run, "message", created).unwrap().1);
    let end = json!({"id": "e2", "event": "agent_run.completed", "data": {}});
    assert!(take(&mut run, "message", end).unwrap().1);
    assert_eq!(
        Box::new(run).into_response(0),
        json!({"id": "r", "status": "completed"})
    );
}

#[test]
fn an_error_event_is_an_error() {
    let mut run = JobAssembler::new(StreamKind::AgentRun);
    let error = json!({"error": {"code": "TIMEOUT", "message": "too slow"}});
    assert!(take(&mut run, "error", error).is_err());
}

#[test]
fn a_research_task_ends_with_its_output() {
    let mut task = JobAssembler::new(StreamKind::Research);
    let event =
        |kind: &str| json!({"eventType": kind, "researchId": "r_1", "data": {"type": "search"}});
    let (step, is_complete) = take(&mut task, "plan-operation", event("plan-operation")).unwrap();
    assert_eq!(
        (step.as_deref(), is_complete),
        (Some("plan-operation: search"), false)
    );
    assert!(task.continuing_job().unwrap().contains("r_1"));
    assert!(
        take(&mut task, "message", event("research-output"))
            .unwrap()
            .1
    );
}
