//! The install links of the README.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::manifest::Manifest;
use crate::{GeneratedFile, PackagingError};

const START: &str = "<!-- install links: written by exa-mcp-packaging -->";
const END: &str = "<!-- end of install links -->";

/// Returns the README with current install links.
pub(crate) fn readme(manifest: &Manifest, text: &str) -> Result<GeneratedFile, PackagingError> {
    let missing = || PackagingError::Markers {
        path: "README.md".to_owned(),
        start: START.to_owned(),
        end: END.to_owned(),
    };
    let (before, rest) = text.split_once(START).ok_or_else(missing)?;
    let (_, after) = rest.split_once(END).ok_or_else(missing)?;
    let content = format!("{before}{START}\n\n{}\n{END}{after}", links(manifest));
    Ok(GeneratedFile {
        path: "README.md".into(),
        content,
    })
}

fn links(manifest: &Manifest) -> String {
    let name = &manifest.server_name;
    let arguments = json!(["-y", manifest.npm_name]);
    let server =
        json!({ "command": "npx", "args": arguments, "env": placeholder_environment(manifest) });
    let config = escape(&STANDARD.encode(server.to_string()));
    let (inputs, references) = vscode_inputs(manifest);
    let vscode = json!({ "command": "npx", "args": arguments, "env": references });
    let links = [
        (
            "Cursor",
            format!("https://cursor.com/en/install-mcp?name={name}&config={config}"),
        ),
        (
            "VS Code",
            format!(
                "https://insiders.vscode.dev/redirect/mcp/install?name={name}&inputs={}&config={}",
                escape(&inputs.to_string()),
                escape(&vscode.to_string())
            ),
        ),
        (
            "LM Studio",
            format!("https://lmstudio.ai/install-mcp?name={name}&config={config}"),
        ),
        (
            "Kiro",
            format!(
                "https://kiro.dev/launch/mcp/add?name={name}&config={}",
                escape(&server.to_string())
            ),
        ),
    ];
    links
        .iter()
        .map(|(client, url)| format!("- [Add to {client}]({url})\n"))
        .collect()
}

/// Returns the environment with a placeholder for each secret, which the user replaces in the client.
fn placeholder_environment(manifest: &Manifest) -> Value {
    let secrets = manifest.variables.iter().filter(|variable| variable.secret);
    secrets
        .map(|variable| (variable.name.clone(), json!("YOUR_KEY")))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

/// Returns VS Code's questions for the secrets, and the environment that refers to the replies.
fn vscode_inputs(manifest: &Manifest) -> (Value, Value) {
    let mut inputs = Vec::new();
    let mut environment = serde_json::Map::new();
    for variable in manifest.variables.iter().filter(|variable| variable.secret) {
        let id = variable.name.to_lowercase();
        environment.insert(variable.name.clone(), json!(format!("${{input:{id}}}")));
        inputs.push(json!({
            "type": "promptString", "id": id, "description": variable.title, "password": true,
        }));
    }
    (Value::from(inputs), Value::Object(environment))
}

fn escape(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}
