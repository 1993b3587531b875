//! The Exa sandbox: as a separate server, or embedded in another command.

use std::path::PathBuf;

use exa_mcp_sandbox::{OperationSpec, Options, Sandbox};
use tokio::net::TcpListener;
use url::Url;

use crate::config::Settings;
use crate::operations::all;
use exa_mcp_exa_client::{ApiKey, KeyKind};

/// Set to 1, this variable makes the sandbox serve the retired research API.
const RESEARCH_VARIABLE: &str = "EXA_SANDBOX_RESEARCH";

/// The reason that the sandbox cannot run.
#[derive(Debug, thiserror::Error)]
pub(super) enum SandboxError {
    /// Listening on the address failed.
    #[error("{}", super::http::cannot_listen(address, source))]
    Listen {
        /// The address.
        address: String,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The file with the state cannot be used.
    #[error("the state of the sandbox cannot be stored in {path}: {source}")]
    Journal {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// The registry and the sandbox do not match.
    #[error("the sandbox cannot be built from the operations: {0}")]
    Build(#[from] exa_mcp_sandbox::Error),
}

/// Serves the sandbox until the process receives a termination signal.
pub(super) async fn serve(address: &str) -> Result<(), SandboxError> {
    let listener = listen(address).await?;
    if let Ok(local) = listener.local_addr() {
        super::print_stderr(&format!(
            "Exa sandbox listening on http://{local}. Use it with EXA_BASE_URL=http://{local} and any EXA_API_KEY, and \
             for team management with EXA_ADMIN_BASE_URL=http://{local} and any EXA_SERVICE_KEY. All data is synthetic."
        ));
    }
    let sandbox = Sandbox::new(specs(), options())?;
    let served = sandbox.serve(listener, super::shutdown()).await;
    served.map_err(|source| SandboxError::Listen {
        address: address.to_owned(),
        source,
    })
}

/// Starts a sandbox in this process and points the settings at it. With a journal, it continues with the state of
/// earlier commands.
pub(super) async fn embed(
    settings: &mut Settings,
    journal: Option<PathBuf>,
) -> Result<(), SandboxError> {
    let listener = listen("127.0.0.1:0").await?;
    let url = listener
        .local_addr()
        .ok()
        .and_then(|local| Url::parse(&format!("http://{local}")).ok());
    settings.exa.base_url = url.clone();
    settings.exa.service_base_url = url;
    settings.key = ApiKey::new("sandbox-key").ok();
    settings.more_keys.clear();
    settings.service_key = ApiKey::of_kind(KeyKind::Service, "sandbox-service-key").ok();
    // The sandbox is not a network.
    settings.exa.no_network = false;
    let sandbox = Sandbox::new(specs(), options())?;
    if let Some(path) = journal {
        let replayed = sandbox.with_journal(&path).await;
        replayed.map_err(|source| SandboxError::Journal { path, source })?;
    }
    tokio::spawn(sandbox.serve(listener, std::future::pending()));
    Ok(())
}

async fn listen(address: &str) -> Result<TcpListener, SandboxError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| SandboxError::Listen {
            address: address.to_owned(),
            source,
        })
}

/// Returns the options. The research API is retired, and served only if the environment asks for it.
fn options() -> Options {
    Options {
        with_research: std::env::var_os(RESEARCH_VARIABLE).is_some_and(|value| value == "1"),
        ..Options::default()
    }
}

/// Returns the operations in the form that the sandbox expects.
fn specs() -> Vec<OperationSpec> {
    all().iter().map(OperationSpec::from).collect()
}
