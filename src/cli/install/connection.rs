//! Turns the arguments into what is written: the program with its flags, or the address of a team server.

use std::path::{Component, Path, PathBuf};

use url::{Host, Url};

use super::entry::{Connection, KEY_VARIABLE, Key, TOKEN_VARIABLE, Token};
use super::platform::Machine;
use super::{CommonFlags, InstallArguments, InstallError};
use crate::config::SettingsSource;
use crate::tools::ToolRegistry;

/// A connection, and what the user should know about it.
pub(super) struct ResolvedConnection {
    pub(super) connection: Connection,
    pub(super) warnings: Vec<String>,
}

/// Returns the connection that the arguments ask for.
pub(super) fn connect(
    machine: &Machine,
    arguments: &InstallArguments,
    common: &CommonFlags,
) -> Result<ResolvedConnection, InstallError> {
    match &arguments.url {
        Some(url) => remote(machine, url, arguments.token.as_deref(), common),
        None => local(machine, common),
    }
}

fn local(machine: &Machine, common: &CommonFlags) -> Result<ResolvedConnection, InstallError> {
    let program = program_path(machine).map_err(InstallError::Program)?;
    let warnings = warning(&program).into_iter().collect();
    let mut flags = Vec::new();
    if let Some(config) = &common.config {
        let config = std::path::absolute(config).map_err(InstallError::Program)?;
        flags.push(("--config", Some(config.display().to_string())));
    }
    if common.sandbox {
        flags.push(("--sandbox", None));
    }
    if let Some(tools) = &common.tools {
        check_tools(tools)?;
        flags.push(("--tools", Some(tools.clone())));
    }
    let key = if common.sandbox {
        Key::Unneeded
    } else {
        key(machine, common)
    };
    let connection = Connection::Local {
        program: program.display().to_string(),
        flags,
        key,
    };
    Ok(ResolvedConnection {
        connection,
        warnings,
    })
}

/// Returns the key of the environment. A key in the configuration file is found by the program itself.
fn key(machine: &Machine, common: &CommonFlags) -> Key {
    if let Some(key) = machine.variable(KEY_VARIABLE) {
        return Key::Known(key.to_owned());
    }
    let source = SettingsSource::find(common.config.as_deref()).ok();
    let names = [KEY_VARIABLE, "EXA_API_KEYS"];
    let file = source.as_ref().and_then(SettingsSource::file);
    let keys = file.map(|file| names.iter().any(|name| file.text(name).is_some()));
    if keys == Some(true) {
        Key::Unneeded
    } else {
        Key::Unknown
    }
}

/// Rejects names that the server would not know.
fn check_tools(tools: &str) -> Result<(), InstallError> {
    let registry = ToolRegistry::new(tools);
    registry
        .map(|_| ())
        .map_err(|error| InstallError::Tools(error.to_string()))
}

fn remote(
    machine: &Machine,
    address: &str,
    token: Option<&str>,
    common: &CommonFlags,
) -> Result<ResolvedConnection, InstallError> {
    let invalid = || InstallError::Url(address.to_owned());
    let mut url = Url::parse(address).map_err(|_| invalid())?;
    if !matches!(url.scheme(), "http" | "https") || url.host().is_none() {
        return Err(invalid());
    }
    url.set_fragment(None);
    if url.path() == "/" {
        url.set_path("/mcp");
    }
    if let Some(tools) = &common.tools {
        url.query_pairs_mut().append_pair("tools", tools);
    }
    let in_variable = machine.variable(TOKEN_VARIABLE);
    let token = match token.map(str::trim).or(in_variable) {
        Some(token) if !token.chars().all(|c| c.is_ascii_graphic()) => {
            return Err(InstallError::Token);
        }
        Some(token) if Some(token) == in_variable => Some(Token::InVariable(token.to_owned())),
        Some(token) => Some(Token::Literal(token.to_owned())),
        None => None,
    };
    let mut warnings = Vec::new();
    if token.is_none() {
        warnings
            .push("warning: no token was given; add --token if the server asks for one".to_owned());
    }
    if token.is_some() && url.scheme() == "http" && !is_loopback(&url) {
        warnings.push(format!(
            "warning: {url} is not encrypted, so others on the network can read the token; use https"
        ));
    }
    let url = url.to_string();
    Ok(ResolvedConnection {
        connection: Connection::Remote { url, token },
        warnings,
    })
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

/// Returns the path by which this program is to be started. A path that leads here through symbolic links is preferred,
/// because package managers keep it when they replace the program.
fn program_path(machine: &Machine) -> std::io::Result<PathBuf> {
    let program = std::env::current_exe()?;
    let real = program.canonicalize()?;
    let name = std::env::args_os().next().map(PathBuf::from);
    let mut candidates: Vec<PathBuf> = Vec::new();
    if let Some(name) = name {
        if name.components().count() > 1 {
            candidates.extend(std::path::absolute(&name));
        }
        let path = machine.variable("PATH").unwrap_or_default();
        candidates.extend(std::env::split_paths(path).map(|folder| folder.join(&name)));
    }
    let leads_here = |candidate: &PathBuf| {
        candidate.is_absolute() && candidate.canonicalize().is_ok_and(|path| path == real)
    };
    Ok(candidates.into_iter().find(leads_here).unwrap_or(program))
}

/// Returns what the user should know about the place of the program.
fn warning(program: &Path) -> Option<String> {
    let parts = program.components().filter_map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    let parts: Vec<&str> = parts.collect();
    // The folders into which npx, pnpm and yarn dlx, and bunx put packages for one use.
    let is_temporary = |part: &&str| {
        ["_npx", "dlx"].contains(part) || part.starts_with("dlx-") || part.starts_with("bunx-")
    };
    let is_versioned = |part: &&str| *part == ".pnpm" || part.contains(env!("CARGO_PKG_VERSION"));
    let path = program.display();
    if parts.iter().any(is_temporary) {
        Some(format!(
            "warning: {path} is in a cache, which may be cleared; install the package first: npm install -g exa-mcp-rs"
        ))
    } else if parts.iter().any(is_versioned) {
        Some(format!(
            "warning: {path} is the place of this version only; run this again after an update"
        ))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_that_do_not_last_are_reported() {
        for (path, part) in [
            (
                "/home/ana/.npm/_npx/1f/node_modules/a/bin/exa-mcp-server",
                "cleared",
            ),
            (
                "/home/ana/.cache/pnpm/dlx/1f/a/bin/exa-mcp-server",
                "cleared",
            ),
            (
                "/tmp/bunx-0-exa-mcp-rs@latest/a/bin/exa-mcp-server",
                "cleared",
            ),
            (
                "/a/node_modules/.pnpm/b/node_modules/c/bin/exa-mcp-server",
                "after an update",
            ),
            (
                concat!(
                    "/opt/exa/",
                    env!("CARGO_PKG_VERSION"),
                    "/bin/exa-mcp-server"
                ),
                "after an update",
            ),
        ] {
            let text = warning(Path::new(path)).unwrap_or_default();
            assert!(text.contains(part), "{path}: {text}");
        }
        for path in [
            "/usr/bin/exa-mcp-server",
            "/home/ana/.nvm/versions/node/v24.1.0/lib/node_modules/exa-mcp-rs/bin/exa-mcp-server",
        ] {
            assert_eq!(warning(Path::new(path)), None);
        }
    }
}
