//! The files of MCPB, the MCP registry, plugins, extensions and the Debian package.

use serde_json::{Map, Value, json};

use crate::GeneratedFile;
use crate::manifest::{Manifest, Target};

const SERVER_SCHEMA: &str =
    "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json";
const PLUGIN_SCHEMA: &str = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json";
const PLUGIN_MCP_SCHEMA: &str = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json";

pub(crate) fn files(manifest: &Manifest) -> Vec<GeneratedFile> {
    let mut files = vec![
        crate::json("server.json", &registry_entry(manifest)),
        crate::json("plugin.json", &agent_plugin(manifest)),
        crate::json("mcp.json", &agent_plugin_servers(manifest)),
        crate::json(".claude-plugin/plugin.json", &claude_plugin(manifest)),
        crate::json(
            ".claude-plugin/marketplace.json",
            &claude_marketplace(manifest),
        ),
        crate::json("gemini-extension.json", &gemini_extension(manifest)),
        crate::json("packaging/targets.json", &targets(manifest)),
        GeneratedFile {
            path: "packaging/deb/control".into(),
            content: debian_control(manifest),
        },
    ];
    let bundles = manifest
        .targets
        .iter()
        .filter(|target| target.libc.as_deref() != Some("musl"));
    files.extend(bundles.map(|target| {
        let path = format!("packaging/mcpb/{}/manifest.json", target.npm_suffix());
        crate::json(path, &bundle(manifest, target))
    }));
    files
}

/// Returns the command with which clients start the npm package.
fn npx(manifest: &Manifest) -> (&'static str, Vec<String>) {
    (
        "npx",
        vec![
            "-y".to_owned(),
            format!("{}@{}", manifest.npm_name, manifest.version),
        ],
    )
}

/// Returns the secrets, each as a reference to the variable of the same name.
fn secrets(manifest: &Manifest) -> Map<String, Value> {
    let secrets = manifest.variables.iter().filter(|variable| variable.secret);
    secrets
        .map(|variable| {
            (
                variable.name.clone(),
                json!(format!("${{{}}}", variable.name)),
            )
        })
        .collect()
}

fn author(manifest: &Manifest) -> Value {
    json!({ "name": manifest.author, "url": manifest.repository })
}

fn registry_entry(manifest: &Manifest) -> Value {
    let variables: Vec<Value> = manifest
        .variables
        .iter()
        .map(|variable| {
            let mut entry = json!({
                "name": variable.name,
                "description": variable.description,
                "isRequired": variable.required,
                "isSecret": variable.secret,
            });
            if let (Some(default), Some(entry)) = (&variable.default, entry.as_object_mut()) {
                entry.insert("default".to_owned(), json!(default));
            }
            entry
        })
        .collect();
    json!({
        "$schema": SERVER_SCHEMA,
        "name": manifest.registry_name,
        "title": manifest.title,
        "description": manifest.description,
        "version": manifest.version,
        "repository": { "url": manifest.repository, "source": "github" },
        "websiteUrl": manifest.repository,
        "packages": [{
            "registryType": "npm",
            "identifier": manifest.npm_name,
            "version": manifest.version,
            "runtimeHint": "npx",
            "transport": { "type": "stdio" },
            "environmentVariables": variables,
        }],
    })
}

fn bundle(manifest: &Manifest, target: &Target) -> Value {
    let program = format!("server/{}", target.program(&manifest.name));
    let mut environment = Map::new();
    let mut settings = Map::new();
    for variable in &manifest.variables {
        let key = variable.name.to_lowercase();
        environment.insert(
            variable.name.clone(),
            json!(format!("${{user_config.{key}}}")),
        );
        settings.insert(
            key,
            json!({
                "type": "string",
                "title": variable.title,
                "description": variable.description,
                "sensitive": variable.secret,
                "required": variable.required,
                "default": variable.default.as_deref().unwrap_or_default(),
            }),
        );
    }
    json!({
        "manifest_version": "0.3",
        "name": manifest.name,
        "display_name": manifest.title,
        "version": manifest.version,
        "description": manifest.description,
        "author": author(manifest),
        "repository": { "type": "git", "url": manifest.repository },
        "license": manifest.license,
        "keywords": manifest.keywords,
        "server": {
            "type": "binary",
            "entry_point": program,
            "mcp_config": { "command": format!("${{__dirname}}/{program}"), "args": [], "env": environment },
        },
        "tools_generated": true,
        "prompts_generated": true,
        "user_config": settings,
        "compatibility": { "platforms": [target.os] },
    })
}

/// Returns what both kinds of plugins say about the program, and a field of their own.
fn plugin(manifest: &Manifest, own: (&str, Value)) -> Value {
    let (key, value) = own;
    json!({
        key: value,
        "name": manifest.name,
        "version": manifest.version,
        "description": manifest.description,
        "author": author(manifest),
        "repository": manifest.repository,
        "license": manifest.license,
        "keywords": manifest.keywords,
    })
}

fn agent_plugin(manifest: &Manifest) -> Value {
    plugin(manifest, ("$schema", json!(PLUGIN_SCHEMA)))
}

fn agent_plugin_servers(manifest: &Manifest) -> Value {
    let (command, arguments) = npx(manifest);
    let server =
        json!({ "type": "stdio", "command": command, "args": arguments, "env": secrets(manifest) });
    json!({ "$schema": PLUGIN_MCP_SCHEMA, "mcpServers": { &manifest.server_name: server } })
}

fn claude_plugin(manifest: &Manifest) -> Value {
    let (command, arguments) = npx(manifest);
    let server = json!({ "command": command, "args": arguments, "env": secrets(manifest) });
    plugin(
        manifest,
        ("mcpServers", json!({ &manifest.server_name: server })),
    )
}

fn claude_marketplace(manifest: &Manifest) -> Value {
    json!({
        "name": manifest.name,
        "owner": { "name": manifest.author },
        "metadata": { "description": manifest.description, "version": manifest.version },
        "plugins": [{
            "name": manifest.name,
            "source": "./",
            "description": manifest.description,
            "version": manifest.version,
        }],
    })
}

fn gemini_extension(manifest: &Manifest) -> Value {
    let (command, arguments) = npx(manifest);
    let settings: Vec<Value> = manifest
        .variables
        .iter()
        .filter(|variable| variable.secret)
        .map(|variable| {
            json!({
                "name": variable.title,
                "description": variable.description,
                "envVar": variable.name,
                "sensitive": true,
            })
        })
        .collect();
    json!({
        "name": manifest.name,
        "version": manifest.version,
        "description": manifest.description,
        "mcpServers": { &manifest.server_name: { "command": command, "args": arguments } },
        "settings": settings,
    })
}

/// Returns the targets in the form of a build matrix.
fn targets(manifest: &Manifest) -> Value {
    let targets = manifest.targets.iter().map(|target| {
        json!({
            "target": target.triple,
            "runner": target.runner,
            "npm": target.npm_suffix(),
            "program": target.program(&manifest.name),
        })
    });
    json!({ "include": targets.collect::<Vec<_>>() })
}

/// Returns the control file; the build script fills in the architecture.
fn debian_control(manifest: &Manifest) -> String {
    format!(
        "Package: {}\nVersion: {}\nArchitecture: @ARCHITECTURE@\nMaintainer: {} <noreply@users.noreply.github.com>\n\
         Section: net\nPriority: optional\nDepends: libc6 (>= 2.34), ca-certificates\nHomepage: {}\n\
         Description: MCP server for the Exa API\n {}\n",
        manifest.name, manifest.version, manifest.author, manifest.repository, manifest.description
    )
}
