//! A sandbox on its own port, and a minimal HTTP client.

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

/// Reads the operations from the project's snapshots.
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
            .map(|file| parse_spec(&serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap()))
            .collect()
    })
}

fn parse_spec(snapshot: &Value) -> OperationSpec {
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
    // The snapshot refers to definitions that it shares with others; these schemas are complete.
    let schema = |kind: &str| {
        let file = format!("../../generated/schemas/{}.{kind}.json", text("name"));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    OperationSpec {
        name: text("name"),
        method: text("method"),
        path: text("path"),
        arguments: arguments.collect(),
        input_schema: schema("input"),
        output_schema: schema("output"),
    }
}

/// Returns a schema that allows unknown fields: the marker is one, and responses may always have more of
/// them than the spec says. Alternatives may then overlap.
pub(crate) fn open(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => {
            let is_closed = |name: &str, value: &Value| {
                *value == Value::Bool(false)
                    && ["additionalProperties", "unevaluatedProperties"].contains(&name)
            };
            let allowed = fields
                .iter()
                .filter(|(name, value)| !is_closed(name, value));
            let fields = allowed.map(|(name, value)| {
                let is_choice = name == "oneOf" && value.is_array();
                let name = if is_choice { "anyOf" } else { name };
                (name.to_owned(), open(value))
            });
            Value::Object(fields.collect())
        }
        Value::Array(items) => items.iter().map(open).collect(),
        other => other.clone(),
    }
}

/// Validates a response by the output schema of its operation.
fn schema_errors(spec: &OperationSpec, response: &Value) -> Vec<String> {
    type Validators = Mutex<HashMap<String, Arc<jsonschema::Validator>>>;
    static VALIDATORS: OnceLock<Validators> = OnceLock::new();
    let mut all = VALIDATORS.get_or_init(Validators::default).lock().unwrap();
    let validator = all
        .entry(spec.name.clone())
        .or_insert_with(|| {
            Arc::new(
                jsonschema::options()
                    .should_validate_formats(true)
                    .build(&open(&spec.output_schema))
                    .unwrap(),
            )
        })
        .clone();
    drop(all);
    validator
        .iter_errors(response)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect()
}

/// A running sandbox, which stops when this is dropped.
pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
}

impl Server {
    /// Starts a sandbox with a frozen clock.
    pub(crate) async fn start() -> Server {
        Server::frozen(Options::default()).await
    }

    /// Starts a sandbox that serves the retired research API, with a frozen clock.
    pub(crate) async fn with_research() -> Server {
        let options = Options {
            with_research: true,
            ..Options::default()
        };
        Server::frozen(options).await
    }

    async fn frozen(options: Options) -> Server {
        let server = Server::with(options).await;
        let freeze = Some(json!({ "freeze": true }));
        server.client().send("POST", "/sandbox/clock", freeze).await;
        server
    }

    /// Starts a sandbox with a running clock.
    pub(crate) async fn with(options: Options) -> Server {
        Server::of(specs().to_vec(), options).await
    }

    pub(crate) async fn of(specs: Vec<OperationSpec>, options: Options) -> Server {
        Server::serve(Sandbox::new(specs, options).unwrap()).await
    }

    /// Starts a sandbox with a running clock that continues with the requests of a file.
    pub(crate) async fn with_journal(path: &Path) -> Server {
        let sandbox = Sandbox::new(specs().to_vec(), Options::default()).unwrap();
        sandbox.with_journal(path).await.unwrap();
        Server::serve(sandbox).await
    }

    async fn serve(sandbox: Sandbox) -> Server {
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

    /// A client for team management.
    pub(crate) fn team_client(&self) -> Client {
        self.client_with("my-service-key")
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
pub(crate) struct HttpResponse {
    pub(crate) status: u16,
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
    /// Whether the whole body was received.
    pub(crate) is_complete: bool,
}

impl HttpResponse {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Returns the tag of a flat error, or the code of an error envelope.
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

    /// Sends a raw request; fails if the connection ends without a response.
    pub(crate) async fn try_send(
        &self,
        method: &str,
        target: &str,
        body: Option<&[u8]>,
    ) -> Result<HttpResponse, String> {
        let mut stream = TcpStream::connect(self.addr).await.unwrap();
        let mut head = format!(
            "{method} {target} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n",
            self.addr
        );
        if let Some(key) = &self.key {
            head.push_str(&format!("x-api-key: {key}\r\n"));
        }
        let has_content_type = self
            .headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        if let Some(body) = body {
            let content_type = if has_content_type {
                ""
            } else {
                "content-type: application/json\r\n"
            };
            head.push_str(&format!("{content_type}content-length: {}\r\n", body.len()));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        let mut bytes = head.into_bytes();
        bytes.extend(body.unwrap_or_default());
        // A rejected upload may close the connection before everything is written.
        let _ = stream.write_all(&bytes).await;
        let mut received = Vec::new();
        let ended = stream.read_to_end(&mut received).await;
        parse(&received).ok_or_else(|| format!("no response ({ended:?})"))
    }

    pub(crate) async fn send(
        &self,
        method: &str,
        target: &str,
        body: Option<Value>,
    ) -> HttpResponse {
        let bytes = body.map(|body| body.to_string().into_bytes());
        let response = self
            .try_send(method, target, bytes.as_deref())
            .await
            .unwrap();
        assert_eq!(
            response.headers.get("x-sandbox").map(String::as_str),
            Some("synthetic"),
            "{method} {target}"
        );
        assert_eq!(
            response.headers.get("x-request-id").map(String::len),
            Some(32),
            "{method} {target}"
        );
        response
    }

    /// Calls an operation with flat arguments and validates a successful JSON response by its schema.
    pub(crate) async fn call(&self, name: &str, args: Value) -> HttpResponse {
        let spec = specs()
            .iter()
            .find(|spec| spec.name == name)
            .unwrap_or_else(|| panic!("no operation {name}"));
        let (client, target, body) = self.request(spec, args.as_object().unwrap());
        let response = client.send(&spec.method, &target, body).await;
        let is_json = response
            .headers
            .get("content-type")
            .is_some_and(|kind| kind.starts_with("application/json"));
        if is_json {
            assert_eq!(response.json()["sandbox"], MARKER, "{name}");
        }
        if response.status < 300 && is_json {
            let errors = schema_errors(spec, &response.json());
            assert!(
                errors.is_empty(),
                "{name}: {errors:#?}\n{}",
                response.text()
            );
        }
        response
    }

    /// Returns the JSON of a call that must succeed.
    pub(crate) async fn ok(&self, name: &str, args: Value) -> Value {
        let response = self.call(name, args).await;
        assert!(
            response.status < 300,
            "{name}: {} {}",
            response.status,
            response.text()
        );
        response.json()
    }

    /// Returns status and tag of a call that must fail.
    pub(crate) async fn fails(&self, name: &str, args: Value) -> (u16, String) {
        let response = self.call(name, args).await;
        assert!(
            response.status >= 400,
            "{name}: {} {}",
            response.status,
            response.text()
        );
        (response.status, response.tag())
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
            let values: Vec<String> = value.as_array().map_or_else(
                || vec![to_text(value)],
                |list| list.iter().map(to_text).collect(),
            );
            match argument.location {
                ArgumentLocation::Path => {
                    target =
                        target.replace(&format!("{{{}}}", argument.wire), &encode(&to_text(value)))
                }
                ArgumentLocation::Query if value.is_object() => {
                    let fields = value.as_object().unwrap().iter();
                    query.extend(fields.map(|(key, value)| {
                        let key = encode(&format!("{}[{key}]", argument.wire));
                        format!("{key}={}", encode(&to_text(value)))
                    }));
                }
                ArgumentLocation::Query => query.extend(
                    values
                        .iter()
                        .map(|value| format!("{}={}", argument.wire, encode(value))),
                ),
                ArgumentLocation::Header => {
                    client = client.header(argument.wire, &values.join(","))
                }
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

    /// Advances the sandbox clock.
    pub(crate) async fn advance(&self, ms: u64) {
        let response = self
            .send("POST", "/sandbox/clock", Some(json!({ "advanceMs": ms })))
            .await;
        assert_eq!(response.status, 200, "{}", response.text());
    }

    /// Adds a fault rule.
    pub(crate) async fn fault(&self, rule: Value) {
        let response = self.send("POST", "/sandbox/faults", Some(rule)).await;
        assert_eq!(response.status, 200, "{}", response.text());
    }
}

/// Returns arguments with some of them added or replaced.
pub(crate) fn merged(mut args: Value, more: &Value) -> Value {
    let fields = more.as_object().unwrap().clone();
    args.as_object_mut().unwrap().extend(fields);
    args
}

fn to_text(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

fn encode(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

fn parse(bytes: &[u8]) -> Option<HttpResponse> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers: HashMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim().to_owned()))
        .collect();
    let rest = &bytes[end + 4..];
    let (body, is_complete) = if headers
        .get("transfer-encoding")
        .is_some_and(|coding| coding == "chunked")
    {
        decode_chunked(rest)
    } else {
        let announced = headers
            .get("content-length")
            .and_then(|length| length.parse().ok());
        (
            rest.to_vec(),
            announced.is_none_or(|length: usize| rest.len() == length),
        )
    };
    Some(HttpResponse {
        status,
        headers,
        body,
        is_complete,
    })
}

fn decode_chunked(mut rest: &[u8]) -> (Vec<u8>, bool) {
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
