//! Sessions that move between replicas.

use super::*;
use crate::http::replicas::Replicas;

const TOKEN: (&str, &str) = ("authorization", "Bearer a-token");

#[test]
fn event_ids_resume_on_another_replica() {
    for version in VERSIONS {
        let replicas = Replicas::start(2);
        let [one, two] = replicas.servers.as_slice() else {
            panic!("two servers")
        };
        replicas.sandbox().fault("search", "delay=1500");
        let session = one.session(version, &[TOKEN]);
        let body = tool_call(7, "web_search_exa", search()).to_string();
        let mut cut = one.events("POST", "/mcp", &streaming(&session), body.as_bytes());
        let begun = read_until(&mut cut, |_| true);
        drop(cut);
        let (id, _) = begun.last().expect("an event");
        // While the request runs, after it has ended, and with each event id.
        let later = resume_to_end(two, &session, id);
        let response: Value = match messages(&later).as_slice() {
            [response] => serde_json::from_str(response).expect("JSON"),
            other => panic!("{version}: {other:?}"),
        };
        assert_eq!(response["id"], 7, "{version}: {response}");
        assert_eq!(
            response["result"]["isError"], false,
            "{version}: {response}"
        );
        assert_eq!(resume_to_end(two, &session, id), later, "{version}");
        assert_eq!(
            messages(&resume_to_end(one, &session, id)),
            messages(&later),
            "{version}"
        );
        let (last, _) = later.last().expect("an event");
        assert_eq!(
            messages(&resume_to_end(two, &session, last)),
            [""; 0],
            "{version}"
        );
        let at_two = request_events(two, &session, &request(8, "ping", json!({})));
        let at_one = request_events(one, &session, &request(9, "ping", json!({})));
        let all = [begun.clone(), later, at_two, at_one].concat();
        let ids: BTreeSet<&String> = all.iter().map(|(id, _)| id).collect();
        assert_eq!(ids.len(), all.len(), "{version}: {all:?}");
        // Another user's session, and one that is unknown to both.
        let mut other_session = two.session(version, &[("authorization", "Bearer b-token")]);
        other_session.request("resources/list", json!({}));
        for id in [id.as_str(), "00000000-1-0"] {
            let mut fresh = resume(two, &other_session, id);
            let note = tool_call(10, "create_note", note(1));
            assert_eq!(other_session.post(&note).status, 200);
            let received = read_until(&mut fresh, has_text("list_changed"));
            assert_eq!(messages(&received).len(), 1, "{version}: {received:?}");
        }
    }
}

#[test]
fn request_of_a_killed_server_ends_with_an_error() {
    let mut replicas = Replicas::start(2);
    replicas.sandbox().fault("search", "delay=600000");
    let (session, id) = {
        let one = &replicas.servers[0];
        let session = one.session("2025-11-25", &[TOKEN]);
        let body = tool_call(7, "web_search_exa", search()).to_string();
        let mut cut = one.events("POST", "/mcp", &streaming(&session), body.as_bytes());
        let begun = read_until(&mut cut, |_| true);
        let headers: Vec<(String, String)> = session
            .headers()
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        (headers, begun.last().expect("an event").0.clone())
    };
    // The server stores that the request is running.
    thread::sleep(Duration::from_secs(2));
    drop(replicas.servers.remove(0));
    let mut headers: Vec<(&str, &str)> = session
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    headers.extend([("accept", "text/event-stream"), ("last-event-id", &id)]);
    let mut resume_to_end = replicas.servers[0].events("GET", "/mcp", &headers, b"");
    let response = resume_to_end.message();
    assert_eq!(response["id"], 7, "{response}");
    assert_eq!(response["error"]["code"], -32603, "{response}");
    assert!(resume_to_end.next().is_none());
}
