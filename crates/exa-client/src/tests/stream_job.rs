#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;

fn take(
    work: &mut JobAssembler,
    name: &str,
    data: Value,
) -> Result<(Option<String>, bool), Box<ErrorBody>> {
    Ok(match work.take(name, data.as_object().unwrap().clone())? {
        StreamState::Complete => (None, true),
        StreamState::More(Some(StreamUpdate::Step(step))) => (Some(step), false),
        StreamState::More(_) => (None, false),
    })
}

#[test]
fn a_run_is_followed_to_its_end() {
    let mut run = JobAssembler::new(StreamForm::AgentRun);
    assert!(run.so_far().is_none() && run.goes_on().is_none() && !run.may_end());
    let created =
        json!({"id": "agent_run_1", "object": "agent_run", "status": "queued", "query": "q"});
    let (step, over) = take(&mut run, "agent_run.created", created).unwrap();
    assert_eq!(
        (step.as_deref(), over),
        (Some("agent_run.created: q"), false)
    );
    let source = json!({"source": {"url": "https://a.example", "title": "A\u{7} page\n"}});
    let (step, _) = take(&mut run, "source.added", source).unwrap();
    assert_eq!(step.as_deref(), Some("source.added: A page"));
    assert_eq!(
        run.so_far(),
        Some(json!({"runId": "agent_run_1", "status": "queued", "events": 2}))
    );
    assert!(run.goes_on().unwrap().contains("agent_run_1"));
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
fn a_failed_or_cancelled_run_is_an_answer() {
    for (name, status) in [
        ("agent_run.failed", "failed"),
        ("agent_run.cancelled", "cancelled"),
    ] {
        let mut run = JobAssembler::new(StreamForm::AgentRun);
        let end = json!({"id": "r", "status": status, "error": {"message": "no"}});
        assert_eq!(take(&mut run, name, end).unwrap(), (None, true));
        let answer = Box::new(run).into_response(0);
        assert_eq!(answer["status"], status);
        assert_eq!(answer["error"]["message"], "no");
    }
}

#[test]
fn wrapped_events_and_sparse_ends_are_understood() {
    let mut run = JobAssembler::new(StreamForm::AgentRun);
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
fn an_error_between_the_events_is_one() {
    let mut run = JobAssembler::new(StreamForm::AgentRun);
    let error = json!({"error": {"code": "TIMEOUT", "message": "too slow"}});
    assert!(take(&mut run, "error", error).is_err());
}

#[test]
fn a_research_task_ends_with_its_output() {
    let mut task = JobAssembler::new(StreamForm::Research);
    let event =
        |kind: &str| json!({"eventType": kind, "researchId": "r_1", "data": {"type": "search"}});
    let (step, over) = take(&mut task, "plan-operation", event("plan-operation")).unwrap();
    assert_eq!(
        (step.as_deref(), over),
        (Some("plan-operation: search"), false)
    );
    assert!(task.goes_on().unwrap().contains("r_1"));
    assert!(
        take(&mut task, "message", event("research-output"))
            .unwrap()
            .1
    );
}
