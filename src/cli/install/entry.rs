//! What is written into a client's configuration.

use serde_json::{Map, Value, json};

use super::clients::{Client, SecretReference};

/// The variable with the Exa API key.
pub(super) const KEY_VARIABLE: &str = "EXA_API_KEY";
/// The variable with the token of a team server.
pub(super) const TOKEN_VARIABLE: &str = "EXA_MCP_TOKEN";
/// VS Code's inputs for the two.
pub(super) const INPUTS: [&str; 2] = ["exa_api_key", "exa_mcp_token"];

/// How the client is to reach the server.
#[derive(Debug, Clone)]
pub(super) enum Connection {
    /// It starts this program.
    Local {
        program: String,
        /// Flags with their values.
        flags: Vec<(&'static str, Option<String>)>,
        /// The Exa API key, if it is known. The sandbox needs none.
        key: Key,
    },
    /// It connects to a team server.
    Remote { url: String, token: Option<Token> },
}

/// The Exa API key of a local program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    /// The value of the environment variable.
    Known(String),
    /// The variable is not set.
    Unknown,
    /// No key is needed: the sandbox has none, and the configuration file may have one.
    Unneeded,
}

/// The token of a team server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// The value, which is to be written.
    Literal(String),
    /// The value of `EXA_MCP_TOKEN`, which is to be referred to.
    InVariable(String),
}

/// A server in a client's configuration.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Entry {
    pub(super) value: Value,
    /// What the client asks its user.
    pub(super) inputs: Vec<Value>,
    /// The secret that the entry contains.
    pub(super) secret: Option<String>,
}

/// Keys of an entry that belong to the other way of connecting.
const LOCAL_KEYS: [&str; 6] = ["command", "args", "env", "env_vars", "cwd", "envFile"];
const REMOTE_KEYS: [&str; 7] = [
    "url",
    "serverUrl",
    "httpUrl",
    "headers",
    "http_headers",
    "env_http_headers",
    "bearer_token_env_var",
];

/// Domains with Exa's official server.
const HOSTS_OF_OTHERS: [&str; 2] = ["exa.ai", "smithery.ai"];

/// Returns the entry for a client, or nothing if the client cannot connect that way. Settings of an existing entry that
/// are not about the connection stay.
pub(super) fn build(
    client: &Client,
    connection: &Connection,
    existing: Option<&Value>,
) -> Option<Entry> {
    let existing = existing.and_then(Value::as_object).cloned();
    let mut entry = Entry {
        value: Value::Null,
        inputs: Vec::new(),
        secret: None,
    };
    let mut members = existing.unwrap_or_default();
    match connection {
        Connection::Local {
            program,
            flags,
            key,
        } => {
            remove(&mut members, &REMOTE_KEYS);
            set_type(&mut members, client.local_type, "stdio");
            let old = arguments(&members);
            let old = if starts_program(&members) {
                old
            } else {
                Vec::new()
            };
            members.insert("command".to_owned(), json!(program));
            members.insert("args".to_owned(), json!(merge_flags(old, flags)));
            set_key(&mut members, client, key, &mut entry);
        }
        Connection::Remote { url, token } => {
            let form = client.http?;
            remove(&mut members, &LOCAL_KEYS);
            let other_urls = REMOTE_KEYS.iter().filter(|key| **key != form.url_key);
            for key in other_urls.take(2) {
                members.shift_remove(*key);
            }
            set_type(&mut members, form.transport, "http");
            members.insert(form.url_key.to_owned(), json!(url));
            set_token(&mut members, client, token.as_ref(), &mut entry);
        }
    }
    entry.value = Value::Object(members);
    Some(entry)
}

/// Returns whether an entry is one of this program, and not, for example, one of Exa's official server.
pub(super) fn is_own(entry: &Value) -> bool {
    let Some(members) = entry.as_object() else {
        return false;
    };
    if members.contains_key("command") {
        return starts_program(members) || starts_package(members);
    }
    let mut urls = ["url", "serverUrl", "httpUrl"].iter();
    let url = urls
        .find_map(|key| members.get(*key))
        .and_then(Value::as_str);
    let host = url.and_then(|url| url::Url::parse(url).ok());
    let host = host.as_ref().and_then(url::Url::host_str);
    let is_at = |host: &str, domain: &str| {
        let subdomain = host.strip_suffix(domain);
        subdomain.is_some_and(|name| name.is_empty() || name.ends_with('.'))
    };
    host.is_some_and(|host| !HOSTS_OF_OTHERS.iter().any(|domain| is_at(host, domain)))
}

/// Returns the identifiers of the inputs that an entry refers to.
pub(super) fn referenced_inputs(entry: &Value) -> Vec<&'static str> {
    let text = entry.to_string();
    let ids = INPUTS.into_iter();
    ids.filter(|id| text.contains(&format!("${{input:{id}}}")))
        .collect()
}

fn remove(members: &mut Map<String, Value>, keys: &[&str]) {
    for key in keys {
        members.shift_remove(*key);
    }
}

/// Sets the transport, if the client writes it, and removes another one.
fn set_type(members: &mut Map<String, Value>, written: Option<&str>, name: &str) {
    if let Some(written) = written {
        members.insert("type".to_owned(), json!(written));
    } else if members.get("type").and_then(Value::as_str) != Some(name) {
        members.shift_remove("type");
    }
}

fn arguments(members: &Map<String, Value>) -> Vec<String> {
    let values = members.get("args").and_then(Value::as_array);
    let texts = values.into_iter().flatten().filter_map(Value::as_str);
    texts.map(str::to_owned).collect()
}

/// Returns whether the command of an entry is this program.
fn starts_program(members: &Map<String, Value>) -> bool {
    let command = members.get("command").and_then(Value::as_str);
    let name = command.and_then(|command| command.rsplit(['/', '\\']).next());
    let stem = name.map(|name| name.split('.').next().unwrap_or_default());
    matches!(stem, Some("exa-mcp-server" | "exa-mcp-rs"))
}

/// Returns whether an entry starts the npm package of this program.
fn starts_package(members: &Map<String, Value>) -> bool {
    let mut arguments = arguments(members).into_iter();
    arguments.any(|argument| argument == "exa-mcp-rs" || argument.starts_with("exa-mcp-rs@"))
}

/// Sets flags in the arguments of an entry, and leaves the others.
fn merge_flags(
    mut arguments: Vec<String>,
    flags: &[(&'static str, Option<String>)],
) -> Vec<String> {
    for (flag, value) in flags {
        let prefix = format!("{flag}=");
        if let Some(index) = arguments.iter().position(|argument| argument == flag) {
            let end = index + 1 + usize::from(value.is_some());
            arguments.drain(index..end.min(arguments.len()));
        }
        arguments.retain(|argument| !argument.starts_with(&prefix));
        arguments.push((*flag).to_owned());
        arguments.extend(value.clone());
    }
    arguments
}

fn input(id: &str, description: &str) -> Value {
    json!({ "type": "promptString", "id": id, "description": description, "password": true })
}

fn set_key(members: &mut Map<String, Value>, client: &Client, key: &Key, entry: &mut Entry) {
    let written = members.get("env").and_then(|env| env.get(KEY_VARIABLE));
    let written = written.and_then(Value::as_str);
    let known = match key {
        Key::Known(known) => Some(known.as_str()),
        Key::Unknown => None,
        Key::Unneeded => return,
    };
    // A key that the user wrote there, and that would be lost.
    if let Some(written) = written
        && !written.contains('$')
        && Some(written) != known
        && client.secrets != SecretReference::Unsupported
    {
        entry.secret = Some(written.to_owned());
        return;
    }
    let value = match client.secrets {
        SecretReference::Expansion(before, after) => format!("{before}{KEY_VARIABLE}{after}"),
        SecretReference::Prompt => {
            let [id, _] = INPUTS;
            entry.inputs.push(input(id, "Exa API key"));
            format!("${{input:{id}}}")
        }
        SecretReference::Forwarding => {
            forward_key(members);
            return;
        }
        SecretReference::Unsupported => {
            let Some(known) = known else {
                entry.secret = written.map(str::to_owned);
                return;
            };
            entry.secret = Some(known.to_owned());
            known.to_owned()
        }
    };
    let env = members.entry("env").or_insert_with(|| json!({}));
    if let Some(env) = env.as_object_mut() {
        env.insert(KEY_VARIABLE.to_owned(), json!(value));
    }
}

/// Adds the key to the list of variables that the client passes on.
fn forward_key(members: &mut Map<String, Value>) {
    take_out(members, "env", KEY_VARIABLE);
    let variables = members.entry("env_vars").or_insert_with(|| json!([]));
    if let Some(variables) = variables.as_array_mut()
        && !variables.contains(&json!(KEY_VARIABLE))
    {
        variables.push(json!(KEY_VARIABLE));
    }
}

/// Removes a member of an object that is itself a member, and the object if nothing is left.
fn take_out(members: &mut Map<String, Value>, object: &str, key: &str) {
    if let Some(inner) = members.get_mut(object).and_then(Value::as_object_mut) {
        inner.shift_remove(key);
        if inner.is_empty() {
            members.shift_remove(object);
        }
    }
}

fn set_token(
    members: &mut Map<String, Value>,
    client: &Client,
    token: Option<&Token>,
    entry: &mut Entry,
) {
    let Some(token) = token else {
        return;
    };
    let (Token::Literal(text) | Token::InVariable(text)) = token;
    let literal = matches!(token, Token::Literal(_));
    let is_forwarding = client.secrets == SecretReference::Forwarding;
    if is_forwarding {
        members.shift_remove("bearer_token_env_var");
    }
    let value = match client.secrets {
        SecretReference::Prompt => {
            let [_, id] = INPUTS;
            entry.inputs.push(input(id, "Token of the Exa team server"));
            format!("${{input:{id}}}")
        }
        SecretReference::Forwarding if !literal => {
            members.insert("bearer_token_env_var".to_owned(), json!(TOKEN_VARIABLE));
            take_out(members, "http_headers", "Authorization");
            return;
        }
        SecretReference::Expansion(before, after) if !literal => {
            format!("{before}{TOKEN_VARIABLE}{after}")
        }
        _ => {
            entry.secret = Some(text.clone());
            text.clone()
        }
    };
    let key = if is_forwarding {
        "http_headers"
    } else {
        "headers"
    };
    let headers = members.entry(key).or_insert_with(|| json!({}));
    if let Some(headers) = headers.as_object_mut() {
        headers.insert("Authorization".to_owned(), json!(format!("Bearer {value}")));
    }
}
