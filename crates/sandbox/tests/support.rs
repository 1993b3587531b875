//! A sandbox on a port of its own, and a client small enough to hide nothing.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use exa_mcp_model::{Argument, ArgumentLocation};
use exa_mcp_sandbox::{MARKER, OperationSpec, Options, Sandbox};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;

/// The operations as the project's own snapshots describe them.
pub(crate) fn specs() -> &'static [OperationSpec] {
    static SPECS: OnceLock<Vec<OperationSpec>> = OnceLock::new();
    SPECS.get_or_init(|| {
        let folder =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../codegen-snapshots/operations");
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        files
            .iter()
            .map(|file| read(&serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()))
            .collect()
    })
}

fn read(snapshot: &Value) -> OperationSpec {
    let text = |name: &str| snapshot[name].as_str().unwrap().to_owned();
    let arguments = snapshot["arguments"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(name, argument)| {
            let wire = argument["wire"].as_str().unwrap().to_owned().leak();
            let (name, required) = (name.clone().leak(), argument["required"] == true);
            match argument["in"].as_str().unwrap() {
                "path" => Argument::path(name, wire, &[]),
                "query" => Argument::query(name, wire, required),
                "header" => Argument::header(name, wire, required, &[]),
                _ => Argument::body(name, required),
            }
        });
    OperationSpec {
        name: text("name"),
        method: text("method"),
        path: text("path"),
        arguments: arguments.collect(),
        input_schema: snapshot["inputSchema"].clone(),
        output_schema: snapshot["outputSchema"].clone(),
    }
}

/// Problems of an answer with the output schema of its operation.
fn problems(spec: &OperationSpec, answer: &Value) -> Vec<String> {
    type Validators = Mutex<HashMap<String, Arc<jsonschema::Validator>>>;
    static VALIDATORS: OnceLock<Validators> = OnceLock::new();
    let mut all = VALIDATORS.get_or_init(Validators::default).lock().unwrap();
    let validator = all
        .entry(spec.name.clone())
        .or_insert_with(|| {
            Arc::new(
                jsonschema::options()
                    .should_validate_formats(true)
                    .build(&spec.output_schema)
                    .unwrap(),
            )
        })
        .clone();
    drop(all);
    validator
        .iter_errors(answer)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

/// A running sandbox; it stops when this goes.
pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
}

impl Server {
    /// With a clock that only moves when told to.
    pub(crate) async fn start() -> Server {
        let server = Server::with(Options::default()).await;
        let stop = Some(json!({ "freeze": true }));
        server.client().send("POST", "/sandbox/clock", stop).await;
        server
    }

    /// With a running clock.
    pub(crate) async fn with(options: Options) -> Server {
        Server::of(specs().to_vec(), options).await
    }

    pub(crate) async fn of(specs: Vec<OperationSpec>, options: Options) -> Server {
        let sandbox = Sandbox::new(specs, options).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel::<()>();
        tokio::spawn(sandbox.serve(listener, async move {
            let _ = stopped.await;
        }));
        Server {
            addr,
            stop: Some(stop),
        }
    }

    pub(crate) fn client(&self) -> Client {
        self.client_with("test-key")
    }

    pub(crate) fn client_with(&self, key: &str) -> Client {
        Client {
            addr: self.addr,
            key: Some(key.to_owned()),
            headers: Vec::new(),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }
}

#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) addr: SocketAddr,
    pub(crate) key: Option<String>,
    pub(crate) headers: Vec<(String, String)>,
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
    /// Whether the body came to its announced end.
    pub(crate) whole: bool,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The flat error's tag or the envelope's code.
    pub(crate) fn tag(&self) -> String {
        let body = self.json();
        body["tag"]
            .as_str()
            .or(body["error"]["code"].as_str())
            .unwrap_or_default()
            .to_owned()
    }
}

impl Client {
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(crate) fn without_key(mut self) -> Self {
        self.key = None;
        self
    }

    /// A raw request; an error when the connection ends before any answer.
    pub(crate) async fn try_send(
        &self,
        method: &str,
        target: &str,
        body: Option<&[u8]>,
    ) -> Result<Answer, String> {
        let mut stream = TcpStream::connect(self.addr).await.unwrap();
        let mut head = format!(
            "{method} {target} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n",
            self.addr
        );
        if let Some(key) = &self.key {
            head.push_str(&format!("x-api-key: {key}\r\n"));
        }
        let typed = self
            .headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        if let Some(body) = body {
            let json = if typed {
                ""
            } else {
                "content-type: application/json\r\n"
            };
            head.push_str(&format!("{json}content-length: {}\r\n", body.len()));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend(body.unwrap_or_default());
        // A refused upload may close the connection before all is written.
        let _ = stream.write_all(&bytes).await;
        let mut received = Vec::new();
        let ended = stream.read_to_end(&mut received).await;
        parse(&received).ok_or_else(|| format!("no answer ({ended:?})"))
    }

    pub(crate) async fn send(&self, method: &str, target: &str, body: Option<Value>) -> Answer {
        let bytes = body.map(|body| body.to_string().into_bytes());
        let answer = self
            .try_send(method, target, bytes.as_deref())
            .await
            .unwrap();
        assert_eq!(
            answer.headers.get("x-sandbox").map(String::as_str),
            Some("synthetic"),
            "{method} {target}"
        );
        assert_eq!(
            answer.headers.get("x-request-id").map(String::len),
            Some(32),
            "{method} {target}"
        );
        answer
    }

    /// Calls an operation with flat arguments and holds a successful JSON answer against its schema.
    pub(crate) async fn call(&self, name: &str, args: Value) -> Answer {
        let spec = specs()
            .iter()
            .find(|spec| spec.name == name)
            .unwrap_or_else(|| panic!("no operation {name}"));
        let (client, target, body) = self.request(spec, args.as_object().unwrap());
        let answer = client.send(&spec.method, &target, body).await;
        let is_json = answer
            .headers
            .get("content-type")
            .is_some_and(|kind| kind.starts_with("application/json"));
        if is_json {
            assert_eq!(answer.json()["sandbox"], MARKER, "{name}");
        }
        if answer.status < 300 && is_json {
            let found = problems(spec, &answer.json());
            assert!(found.is_empty(), "{name}: {found:#?}\n{}", answer.text());
        }
        answer
    }

    /// The JSON of a call that must succeed.
    pub(crate) async fn ok(&self, name: &str, args: Value) -> Value {
        let answer = self.call(name, args).await;
        assert!(
            answer.status < 300,
            "{name}: {} {}",
            answer.status,
            answer.text()
        );
        answer.json()
    }

    /// Status and tag of a call that must fail.
    pub(crate) async fn fails(&self, name: &str, args: Value) -> (u16, String) {
        let answer = self.call(name, args).await;
        assert!(
            answer.status >= 400,
            "{name}: {} {}",
            answer.status,
            answer.text()
        );
        (answer.status, answer.tag())
    }

    fn request(
        &self,
        spec: &OperationSpec,
        args: &Map<String, Value>,
    ) -> (Client, String, Option<Value>) {
        let (mut client, mut target) = (self.clone(), spec.path.clone());
        let (mut query, mut body) = (Vec::new(), Map::new());
        for (name, value) in args {
            let argument = spec
                .arguments
                .iter()
                .find(|argument| argument.name == *name);
            let argument =
                argument.unwrap_or_else(|| panic!("{} has no argument {name}", spec.name));
            let many: Vec<String> = value.as_array().map_or_else(
                || vec![plain(value)],
                |list| list.iter().map(plain).collect(),
            );
            match argument.location {
                ArgumentLocation::Path => {
                    target =
                        target.replace(&format!("{{{}}}", argument.wire), &encode(&plain(value)))
                }
                ArgumentLocation::Query => query.extend(
                    many.iter()
                        .map(|one| format!("{}={}", argument.wire, encode(one))),
                ),
                ArgumentLocation::Header => client = client.header(argument.wire, &many.join(",")),
                ArgumentLocation::Body | ArgumentLocation::Server => {
                    body.insert(argument.wire.to_owned(), value.clone());
                }
            }
        }
        if !query.is_empty() {
            target = format!("{target}?{}", query.join("&"));
        }
        let has_body = spec
            .arguments
            .iter()
            .any(|argument| argument.location == ArgumentLocation::Body);
        (client, target, has_body.then_some(Value::Object(body)))
    }

    /// Moves the sandbox clock.
    pub(crate) async fn advance(&self, ms: u64) {
        let answer = self
            .send("POST", "/sandbox/clock", Some(json!({ "advanceMs": ms })))
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }

    /// Adds a fault rule.
    pub(crate) async fn fault(&self, rule: Value) {
        let answer = self.send("POST", "/sandbox/faults", Some(rule)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn parse(bytes: &[u8]) -> Option<Answer> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let rest = &bytes[end + 4..];
    let (body, whole) = if headers
        .get("transfer-encoding")
        .is_some_and(|coding| coding == "chunked")
    {
        chunks(rest)
    } else {
        let announced = headers
            .get("content-length")
            .and_then(|length| length.parse().ok());
        (
            rest.to_vec(),
            announced.is_none_or(|length: usize| rest.len() == length),
        )
    };
    Some(Answer {
        status,
        headers,
        body,
        whole,
    })
}

fn chunks(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(at) = rest.windows(2).position(|window| window == b"\r\n") else {
            return (body, false);
        };
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..at]).unwrap_or("x"), 16)
            .unwrap_or(usize::MAX);
        if size == 0 {
            return (body, true);
        }
        let Some(chunk) = rest.get(at + 2..at.saturating_add(2).saturating_add(size)) else {
            body.extend(&rest[at + 2..]);
            return (body, false);
        };
        body.extend(chunk);
        rest = rest.get(at + 4 + size..).unwrap_or_default();
    }
}
