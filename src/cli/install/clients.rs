//! The clients: where each keeps its configuration, and how it writes a server.

use super::json_tree::Dialect;
use super::platform::{Base, Place};

/// The format of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json(Dialect),
    Toml,
}

/// How a client fills in a secret that is not in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SecretReference {
    /// It replaces a variable's name between these two texts.
    Expansion(&'static str, &'static str),
    /// It asks the user and stores the reply.
    Prompt,
    /// It passes on the variables that a list names.
    Forwarding,
    /// It cannot.
    Unsupported,
}

/// How a client writes a server that it reaches over HTTP.
#[derive(Debug, Clone, Copy)]
pub(super) struct HttpForm {
    pub(super) url_key: &'static str,
    pub(super) transport: Option<&'static str>,
}

/// A client that can be configured.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) file: Place,
    pub(super) format: Format,
    /// The key of the object with the servers.
    pub(super) servers: &'static str,
    /// The value of `type` for a local program, if the client writes one.
    pub(super) local_type: Option<&'static str>,
    pub(super) secrets: SecretReference,
    pub(super) http: Option<HttpForm>,
    /// Folders and files that exist where the client was used.
    pub(super) traces: &'static [Place],
    pub(super) commands: &'static [&'static str],
}

const fn place(base: Base, path: &'static str) -> Place {
    Place { base, path }
}

const CLAUDE_HOME: Base = Base::Variable("CLAUDE_CONFIG_DIR", "");
const CODEX_HOME: Base = Base::Variable("CODEX_HOME", ".codex");
const GEMINI_HOME: Base = Base::Variable("GEMINI_CLI_HOME", "");

/// All clients, in the order of the help.
pub(super) const CLIENTS: [Client; 9] = [
    Client {
        id: "claude-code",
        title: "Claude Code",
        file: place(CLAUDE_HOME, ".claude.json"),
        format: Format::Json(Dialect::Strict),
        servers: "mcpServers",
        local_type: Some("stdio"),
        secrets: SecretReference::Expansion("${", "}"),
        http: Some(HttpForm {
            url_key: "url",
            transport: Some("http"),
        }),
        traces: &[
            place(CLAUDE_HOME, ".claude.json"),
            place(Base::Home, ".claude"),
        ],
        commands: &["claude"],
    },
    Client {
        id: "claude-desktop",
        title: "Claude Desktop",
        file: place(Base::ClaudeDesktop, "claude_desktop_config.json"),
        format: Format::Json(Dialect::Strict),
        servers: "mcpServers",
        local_type: None,
        secrets: SecretReference::Unsupported,
        http: None,
        traces: &[place(Base::ClaudeDesktop, "")],
        commands: &["claude-desktop"],
    },
    Client {
        id: "cursor",
        title: "Cursor",
        file: place(Base::Home, ".cursor/mcp.json"),
        format: Format::Json(Dialect::Lenient),
        servers: "mcpServers",
        local_type: Some("stdio"),
        secrets: SecretReference::Expansion("${env:", "}"),
        http: Some(HttpForm {
            url_key: "url",
            transport: None,
        }),
        traces: &[
            place(Base::Home, ".cursor"),
            place(Base::Applications, "Cursor"),
        ],
        commands: &["cursor"],
    },
    Client {
        id: "vscode",
        title: "VS Code",
        file: place(Base::Applications, "Code/User/mcp.json"),
        format: Format::Json(Dialect::Lenient),
        servers: "servers",
        local_type: Some("stdio"),
        secrets: SecretReference::Prompt,
        http: Some(HttpForm {
            url_key: "url",
            transport: Some("http"),
        }),
        traces: &[place(Base::Applications, "Code")],
        commands: &["code"],
    },
    Client {
        id: "codex",
        title: "Codex",
        file: place(CODEX_HOME, "config.toml"),
        format: Format::Toml,
        servers: "mcp_servers",
        local_type: None,
        secrets: SecretReference::Forwarding,
        http: Some(HttpForm {
            url_key: "url",
            transport: None,
        }),
        traces: &[place(CODEX_HOME, "")],
        commands: &["codex"],
    },
    Client {
        id: "gemini",
        title: "Gemini CLI",
        file: place(GEMINI_HOME, ".gemini/settings.json"),
        format: Format::Json(Dialect::Comments),
        servers: "mcpServers",
        local_type: None,
        secrets: SecretReference::Expansion("$", ""),
        http: Some(HttpForm {
            url_key: "url",
            transport: Some("http"),
        }),
        traces: &[place(GEMINI_HOME, ".gemini")],
        commands: &["gemini"],
    },
    Client {
        id: "zed",
        title: "Zed",
        file: place(Base::Zed, "settings.json"),
        format: Format::Json(Dialect::Lenient),
        servers: "context_servers",
        local_type: None,
        secrets: SecretReference::Unsupported,
        http: Some(HttpForm {
            url_key: "url",
            transport: None,
        }),
        traces: &[place(Base::Zed, "")],
        commands: &["zed", "zeditor"],
    },
    Client {
        id: "windsurf",
        title: "Windsurf",
        file: place(Base::Home, ".codeium/windsurf/mcp_config.json"),
        format: Format::Json(Dialect::Lenient),
        servers: "mcpServers",
        local_type: None,
        secrets: SecretReference::Expansion("${env:", "}"),
        http: Some(HttpForm {
            url_key: "serverUrl",
            transport: None,
        }),
        traces: &[place(Base::Home, ".codeium/windsurf")],
        commands: &["windsurf"],
    },
    Client {
        id: "lmstudio",
        title: "LM Studio",
        file: place(Base::LmStudio, "mcp.json"),
        format: Format::Json(Dialect::Lenient),
        servers: "mcpServers",
        local_type: None,
        secrets: SecretReference::Unsupported,
        http: Some(HttpForm {
            url_key: "url",
            transport: None,
        }),
        traces: &[place(Base::LmStudio, "")],
        commands: &["lms"],
    },
];

/// Returns the names of all clients on the command line.
pub(super) fn ids() -> [&'static str; CLIENTS.len()] {
    CLIENTS.each_ref().map(|client| client.id)
}
