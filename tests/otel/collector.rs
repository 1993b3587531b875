//! A stand-in for a collector, and as much of Protocol Buffers as it takes to read what is sent to it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::json;

use crate::support::{DEFAULT_VERSION, McpServer, Program, RecordedRequest, Recorder, Response};

/// Collects what is exported.
pub(crate) struct Collector(Recorder);

/// A span as it was sent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) name: String,
    pub(crate) state: String,
    /// 2 is a server's, 3 a client's.
    pub(crate) kind: u64,
    /// 2 is an error.
    pub(crate) status: u64,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) resource: BTreeMap<String, String>,
}

impl Collector {
    pub(crate) fn start() -> Self {
        Self(Recorder::always(Response::new(200)))
    }

    pub(crate) fn url(&self) -> String {
        self.0.url()
    }

    /// All requests that came, whatever they hold.
    pub(crate) fn take(&self) -> Vec<RecordedRequest> {
        self.0.take()
    }
}

/// The spans in these requests.
pub(crate) fn spans(requests: &[RecordedRequest]) -> Vec<Span> {
    let traces = requests
        .iter()
        .filter(|request| request.path() == "/v1/traces");
    traces
        .flat_map(|request| fields(&request.body, 1))
        .flat_map(|group| {
            let resource = fields(group, 1)
                .into_iter()
                .flat_map(|bytes| attributes(bytes, 1));
            let resource: BTreeMap<_, _> = resource.collect();
            let scopes = fields(group, 2);
            let spans: Vec<_> = scopes.iter().flat_map(|scope| fields(scope, 2)).collect();
            spans.into_iter().map(move |bytes| Span {
                resource: resource.clone(),
                ..span(bytes)
            })
        })
        .collect()
}

/// The metrics in these requests: name, and the attributes of each of its points.
pub(crate) fn metrics(
    requests: &[RecordedRequest],
) -> Vec<(String, Vec<BTreeMap<String, String>>)> {
    let sent = requests
        .iter()
        .filter(|request| request.path() == "/v1/metrics");
    sent.flat_map(|request| fields(&request.body, 1))
        .flat_map(|group| fields(group, 2))
        .flat_map(|scope| fields(scope, 2))
        .map(|metric| {
            let sums = fields(metric, 7).into_iter();
            let sums = sums.flat_map(|sum| fields(sum, 1)).map(|point| (point, 7));
            let histograms = fields(metric, 9).into_iter();
            let histograms = histograms.flat_map(|one| fields(one, 1));
            let histograms = histograms.map(|point| (point, 9));
            let points = sums.chain(histograms);
            let points = points.map(|(point, number)| attributes(point, number).collect());
            (text(metric, 1), points.collect())
        })
        .collect()
}

/// A stdio server that exports to this collector.
pub(crate) fn stdio(exa: &Recorder, collector: &str, more: &[(&str, &str)]) -> McpServer {
    let mut program = Program::new([])
        .env("EXA_BASE_URL", &exa.url())
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
    for (name, value) in more {
        program = program.env(name, value);
    }
    McpServer::connect(program, DEFAULT_VERSION)
}

/// Exa, which always finds nothing.
pub(crate) fn exa() -> Recorder {
    let response = json!({"requestId": "r", "results": [], "costDollars": {"total": 0.007}});
    Recorder::always(Response::json(200, &response))
}

fn span(bytes: &[u8]) -> Span {
    let hex = |number| {
        fields(bytes, number)
            .concat()
            .iter()
            .fold(String::new(), |mut text, byte| {
                write!(text, "{byte:02x}").unwrap();
                text
            })
    };
    Span {
        trace: hex(1),
        id: hex(2),
        state: text(bytes, 3),
        parent: hex(4),
        name: text(bytes, 5),
        kind: number(bytes, 6),
        attributes: attributes(bytes, 9).collect(),
        status: fields(bytes, 15)
            .first()
            .map_or(0, |status| number(status, 3)),
        resource: BTreeMap::new(),
    }
}

/// The pairs under a field, their values as text.
fn attributes(bytes: &[u8], field: u64) -> impl Iterator<Item = (String, String)> + '_ {
    fields(bytes, field).into_iter().map(|pair| {
        let value = fields(pair, 2).concat();
        let value = if fields(&value, 1).is_empty() {
            number(&value, 3).to_string()
        } else {
            text(&value, 1)
        };
        (text(pair, 1), value)
    })
}

fn text(bytes: &[u8], field: u64) -> String {
    String::from_utf8(fields(bytes, field).concat()).expect("text")
}

fn number(bytes: &[u8], field: u64) -> u64 {
    let mut found = 0;
    walk(bytes, |number, value, _| {
        if number == field {
            found = value;
        }
    });
    found
}

/// What is in the fields with this number that hold bytes.
fn fields(bytes: &[u8], field: u64) -> Vec<&[u8]> {
    let mut found = Vec::new();
    walk(bytes, |number, _, bytes| {
        if let (true, Some(bytes)) = (number == field, bytes) {
            found.push(bytes);
        }
    });
    found
}

/// Tells every field of a message: its number, and its value or bytes.
fn walk<'a>(mut bytes: &'a [u8], mut visit: impl FnMut(u64, u64, Option<&'a [u8]>)) {
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let (number, kind) = (tag >> 3, tag & 7);
        let length = match kind {
            0 => {
                visit(number, varint(&mut bytes), None);
                continue;
            }
            1 => 8,
            2 => usize::try_from(varint(&mut bytes)).unwrap(),
            5 => 4,
            other => panic!("no field has the kind {other}"),
        };
        let (value, rest) = bytes.split_at(length);
        visit(number, 0, (kind == 2).then_some(value));
        bytes = rest;
    }
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first().expect("the rest of a number");
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            break;
        }
    }
    value
}
