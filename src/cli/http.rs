//! `exa-mcp-server http`.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use super::Failure;
use super::serve::close;
use crate::admin;
use crate::config::Settings;
use crate::config::http::HttpSettings;
use crate::mcp::{self, McpServer};
use crate::spending::follow_jobs;
use crate::telemetry;
use crate::tools::ToolExecutor;
use crate::transport::http::{self, AnonymousAccess, AuthMode, HOSTS_VARIABLE, HttpConfig};
use exa_mcp_accounts::budget::BudgetPolicy;
use exa_mcp_accounts::{Accounts, KnownKeys, Secret, TokenDirectory, load_or_create_secret};
use exa_mcp_exa_client::KeyOwner;
use exa_mcp_store::Store;

/// How long task starts and the budget ledger may take to finish on shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns an address to listen on: a port alone means this computer only.
pub(super) fn address(listen: &str) -> String {
    let listen = listen.trim();
    let port = listen.strip_prefix(':').unwrap_or(listen);
    if port.parse::<u16>().is_ok() {
        format!("127.0.0.1:{port}")
    } else {
        listen.to_owned()
    }
}

/// Describes why an address cannot be listened on, and what to do.
pub(super) fn cannot_listen(address: &str, error: &std::io::Error) -> String {
    let hint = match error.kind() {
        std::io::ErrorKind::InvalidInput => "; write HOST:PORT, such as 127.0.0.1:3000, or a port",
        std::io::ErrorKind::AddrInUse => "; stop the other program, or choose another port",
        _ => "",
    };
    format!("cannot listen on {address}: {error}{hint}")
}

/// Serves until the process receives a termination signal.
pub(super) async fn serve(
    mut settings: Settings,
    http: HttpSettings,
    listen: &str,
    sandbox: bool,
) -> Result<String, Failure> {
    if let Some(store) = http.default_store.as_ref().filter(|_| !sandbox) {
        settings.store = store.clone();
    }
    if http.is_pool() {
        settings.key_owner = KeyOwner::Operator;
    } else if !sandbox {
        // Clients without a key must not use the operator's.
        settings.key = None;
        settings.more_keys.clear();
        settings.key_owner = KeyOwner::Clients;
    }
    if !http.is_pool() {
        // Without tokens there are no admins.
        settings.service_key = None;
    }
    let listener = TcpListener::bind(listen)
        .await
        .map_err(|error| Failure::usage(cannot_listen(listen, &error)))?;
    let address = listener.local_addr().map_err(Failure::usage)?;
    let config = http.config(Some(address.ip())).map_err(Failure::usage)?;
    let executor = super::executor(&settings)?;
    if let Some(list) = http.token_limits.tool_list() {
        let offered = executor.narrow(&list).map(drop);
        offered.map_err(|error| Failure::usage(format!("EXA_MCP_TOKEN_LIMITS: {error}")))?;
    }
    let store = executor.store();
    store
        .check()
        .await
        .map_err(|error| Failure::usage(format!("{error} (EXA_MCP_STORE)")))?;
    let auth_mode = auth_mode(&http, settings.budgets, store, sandbox).await?;
    print_banner(address, &auth_mode, &http, &settings);
    let serving = serve_executor(executor, listener, auth_mode, config, super::shutdown());
    telemetry::with_exporter(serving).await;
    Ok(String::new())
}

/// Serves tools until `stop` resolves, then waits for running requests.
async fn serve_executor(
    executor: ToolExecutor,
    listener: TcpListener,
    auth_mode: AuthMode,
    config: HttpConfig,
    stop: impl Future<Output = ()>,
) {
    let store = executor.store();
    if store.is_remote()
        && let Ok(secret) = load_or_create_secret(&*store).await
    {
        mcp::set_shared_state_key(&secret);
    }
    executor.resources().replicate(&store);
    let (ledger, payers) = match &auth_mode {
        AuthMode::Pool(accounts) => (
            Some(Arc::clone(&accounts.ledger)),
            Some(accounts.payer_lookup()),
        ),
        AuthMode::Passthrough { .. } => (None, None),
    };
    if let Some(ledger) = &ledger {
        let executor = executor.operation_executor().clone();
        tokio::spawn(follow_jobs(Arc::clone(ledger), executor));
    }
    let server = McpServer::remote(executor);
    server.govern_tasks(payers, auth_mode.tokens());
    server.resume_tasks();
    http::serve_with_admin(
        server.clone(),
        Arc::clone(&store),
        listener,
        auth_mode,
        config,
        admin::routes(),
        stop,
    )
    .await;
    server.settle(DRAIN_TIMEOUT).await;
    if let Some(ledger) = ledger {
        ledger.drain(DRAIN_TIMEOUT).await;
    }
    close(&*store).await;
}

/// Creates the authentication mode that the settings select.
async fn auth_mode(
    http: &HttpSettings,
    budgets: BudgetPolicy,
    store: Arc<dyn Store>,
    sandbox: bool,
) -> Result<AuthMode, Failure> {
    let configured = http.secret.as_deref().map(Secret::from_passphrase);
    if http.is_pool() {
        let secret = match configured {
            Some(secret) => secret,
            None => load_or_create_secret(&*store)
                .await
                .map_err(Failure::usage)?,
        };
        check_shared_secret(&secret, &*store).await?;
        let (admin, users) = (http.admin.as_deref(), http.users.as_deref());
        let directory = TokenDirectory::new(admin, users, &secret, http.token_limits.clone());
        let directory = directory.map_err(Failure::usage)?;
        let accounts = Accounts::open(directory, store, http.usage_days, budgets).await;
        let accounts = accounts.map_err(Failure::usage)?;
        return Ok(AuthMode::Pool(Box::new(accounts)));
    }
    let secret = match configured {
        Some(secret) => secret,
        // A client must have the same identity on all servers.
        None if store.is_remote() => load_or_create_secret(&*store)
            .await
            .map_err(Failure::usage)?,
        None => Secret::random().map_err(Failure::usage)?,
    };
    check_shared_secret(&secret, &*store).await?;
    Ok(AuthMode::Passthrough {
        secret,
        key_in_url: http.key_in_url,
        anonymous_access: if sandbox {
            AnonymousAccess::SharedUser
        } else {
            AnonymousAccess::SeparateUsers
        },
        known_keys: KnownKeys::default(),
    })
}

/// Rejects a secret that differs from that of the other servers on the same store. They would recognize neither
/// each other's tokens nor the owners of stored data.
async fn check_shared_secret(secret: &Secret, store: &dyn Store) -> Result<(), Failure> {
    let own = secret.digest("agreed", "secret").short_hex();
    let agreed = store.get_or_init("secret", own.clone()).await;
    match agreed.map_err(Failure::usage)? {
        agreed if agreed == own => Ok(()),
        _ => Err(Failure::usage(
            "EXA_MCP_SECRET differs from the secret of the other servers on this store: set the same value for all. \
             To change it permanently, stop all servers and delete the field `secret` of the hash `exa-mcp:store` in \
             Redis; existing tokens become invalid",
        )),
    }
}

/// Prints the address and mode of the server.
fn print_banner(
    address: SocketAddr,
    auth_mode: &AuthMode,
    http: &HttpSettings,
    settings: &Settings,
) {
    let mode = match auth_mode {
        AuthMode::Pool(accounts) => {
            let tokens = accounts.directory.len();
            let unit = if tokens == 1 { "token" } else { "tokens" };
            format!("pool mode, {tokens} {unit}")
        }
        AuthMode::Passthrough { .. } => {
            "passthrough mode, each client uses its own Exa API key".to_owned()
        }
    };
    super::print_stderr(&format!(
        "MCP server listening on http://{address}/mcp ({mode})"
    ));
    super::print_stderr(&match auth_mode {
        AuthMode::Pool(_) => format!("Dashboard: http://{address}/admin"),
        AuthMode::Passthrough { .. } => format!(
            "No dashboard at http://{address}/admin: set MCP_AUTH_TOKEN to manage tokens there (0 tokens)"
        ),
    });
    if http.is_pool() && settings.key.is_none() {
        super::print_stderr(
            "No Exa API key is set: set EXA_API_KEYS, or every call to Exa will fail.",
        );
    }
    if !address.ip().is_loopback() && http.hosts.is_none() {
        super::print_stderr(&format!(
            "Only requests to loopback names and {} are accepted; set {HOSTS_VARIABLE} to the host names that \
             clients use.",
            address.ip()
        ));
    }
}
