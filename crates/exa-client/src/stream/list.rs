//! Assembles a stream of stored events into the list that the same call without streaming returns.

use serde_json::{Map, Value, json};

use super::{Assembler, ErrorBody, StreamState, events::Event, failure};

/// Collects events, each with its id.
#[derive(Default)]
pub(super) struct ListAssembler {
    events: Vec<Value>,
}

impl ListAssembler {
    fn list(&self) -> Value {
        json!({"object": "list", "data": self.events, "hasMore": false, "nextCursor": null})
    }
}

impl Assembler for ListAssembler {
    fn take(
        &mut self,
        name: &str,
        data: Map<String, Value>,
    ) -> Result<StreamState, Box<ErrorBody>> {
        let event = Event {
            id: None,
            name: name.to_owned(),
            data: String::new(),
        };
        self.take_event(&event, data)
    }

    fn take_event(
        &mut self,
        event: &Event,
        data: Map<String, Value>,
    ) -> Result<StreamState, Box<ErrorBody>> {
        let is_whole = data.contains_key("event") && data.contains_key("data");
        // A stored event may be about an error; the call itself failed only if the event has no other name.
        if !is_whole
            && event.name == "error"
            && let Some(error) = failure(&event.name, &data)
        {
            return Err(error);
        }
        let mut entry = if is_whole {
            data
        } else {
            Map::from_iter([
                ("event".to_owned(), Value::from(event.name.clone())),
                ("data".to_owned(), Value::Object(data)),
            ])
        };
        if let Some(id) = &event.id {
            entry.entry("id").or_insert_with(|| id.clone().into());
        }
        self.events.push(Value::Object(entry));
        Ok(StreamState::More(None))
    }

    /// The server closes the stream after the last stored event.
    fn may_end(&self) -> bool {
        true
    }

    fn received(&self) -> Option<Value> {
        (!self.events.is_empty()).then(|| self.list())
    }

    fn continuing_job(&self) -> Option<String> {
        None
    }

    fn into_response(self: Box<Self>, _unreadable: usize) -> Value {
        self.list()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::events::EventParser;
    use super::*;

    fn assembled(stream: &str) -> Result<Value, Box<ErrorBody>> {
        let mut parser = EventParser::new(10_000);
        parser.feed(stream.as_bytes()).unwrap();
        let mut list = Box::new(ListAssembler::default());
        while let Some(event) = parser.take() {
            let data = serde_json::from_str(&event.data).unwrap();
            list.take_event(&event, data)?;
        }
        Ok(list.into_response(0))
    }

    #[test]
    fn keeps_the_id_of_each_event() {
        let stream = "id: evt_2\nevent: agent_run.started\ndata: {\"status\": \"running\"}\n\n\
                      id: evt_3\nevent: agent_run.failed\ndata: {\"id\": \"evt_3\", \"event\": \"agent_run.failed\", \
                      \"data\": {\"error\": {\"code\": \"TIMEOUT\"}}, \"createdAt\": \"2026-11-01T00:00:00Z\"}\n\n";
        let expected = json!({
            "object": "list",
            "data": [
                {"event": "agent_run.started", "data": {"status": "running"}, "id": "evt_2"},
                {"id": "evt_3", "event": "agent_run.failed", "data": {"error": {"code": "TIMEOUT"}},
                 "createdAt": "2026-11-01T00:00:00Z"},
            ],
            "hasMore": false,
            "nextCursor": null,
        });
        assert_eq!(assembled(stream).unwrap(), expected);
    }

    #[test]
    fn an_error_event_fails_the_call() {
        let stream = "event: error\ndata: {\"error\": {\"message\": \"gone\"}}\n\n";
        assert!(assembled(stream).is_err());
    }

    #[test]
    fn no_events_are_an_empty_list() {
        let data = assembled("").unwrap().get("data").cloned();
        assert_eq!(data, Some(json!([])));
    }
}
