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
use crate::spending::follow_runs;
use crate::telemetry;
use crate::tools::ToolExecutor;
use crate::transport::http::{self, Gate, Guests, HOSTS_VARIABLE, HttpConfig};
use exa_mcp_accounts::budget::BudgetPolicy;
use exa_mcp_accounts::{Accounts, KnownKeys, Secret, TokenDirectory, load_or_create_secret};
use exa_mcp_exa_client::KeyOwner;
use exa_mcp_store::Store;

/// How long starts on their way may take to be answered at the end.
const SETTLING: Duration = Duration::from_secs(5);

/// Serves until the process is told to end.
pub(super) async fn serve(
    mut settings: Settings,
    http: HttpSettings,
    listen: &str,
    sandbox: bool,
) -> Result<String, Failure> {
    if let Some(store) = http.usual_store.as_ref().filter(|_| !sandbox) {
        settings.store = store.clone();
    }
    if http.is_pool() {
        settings.holder = KeyOwner::Operator;
    } else if !sandbox {
        // Whoever brings no key of their own must not use the operator's.
        settings.key = None;
        settings.more_keys.clear();
        settings.holder = KeyOwner::Clients;
    }
    let listener = TcpListener::bind(listen)
        .await
        .map_err(|error| Failure::usage(format!("cannot listen on {listen}: {error}")))?;
    let address = listener.local_addr().map_err(Failure::usage)?;
    let config = http.config(Some(address.ip())).map_err(Failure::usage)?;
    let executor = super::executor(&settings)?;
    if let Some(list) = http.token_limits.tool_list() {
        let offered = executor.narrowed(&list).map(drop);
        offered.map_err(|error| Failure::usage(format!("EXA_MCP_TOKEN_LIMITS: {error}")))?;
    }
    let store = executor.store();
    store
        .check()
        .await
        .map_err(|error| Failure::usage(format!("{error} (EXA_MCP_STORE)")))?;
    let gate = gate(&http, settings.budgets, store, sandbox).await?;
    introduce(address, &gate, &http, &settings);
    let serving = serve_executor(executor, listener, gate, config, super::shutdown());
    telemetry::exporting(serving).await;
    Ok(String::new())
}

/// Serves tools until `stop`, then lets running requests finish.
async fn serve_executor(
    executor: ToolExecutor,
    listener: TcpListener,
    gate: Gate,
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
    let (ledger, payers) = match &gate {
        Gate::Pool(pool) => (Some(Arc::clone(&pool.ledger)), Some(pool.payer_lookup())),
        Gate::Passthrough { .. } => (None, None),
    };
    if let Some(ledger) = &ledger {
        let caller = executor.caller().clone();
        tokio::spawn(follow_runs(Arc::clone(ledger), caller));
    }
    let server = McpServer::remote(executor);
    server.govern_tasks(payers, gate.tokens());
    server.resume_tasks();
    http::serve_with_admin(
        server.clone(),
        Arc::clone(&store),
        listener,
        gate,
        config,
        admin::routes(),
        stop,
    )
    .await;
    server.settle(SETTLING).await;
    if let Some(ledger) = ledger {
        ledger.drain(SETTLING).await;
    }
    close(&*store).await;
}

async fn gate(
    http: &HttpSettings,
    budgets: BudgetPolicy,
    store: Arc<dyn Store>,
    sandbox: bool,
) -> Result<Gate, Failure> {
    let chosen = http.secret.as_deref().map(Secret::from_passphrase);
    if http.is_pool() {
        let named = match chosen {
            Some(secret) => secret,
            None => load_or_create_secret(&*store)
                .await
                .map_err(Failure::usage)?,
        };
        agree_on(&named, &*store).await?;
        let (admin, users) = (http.admin.as_deref(), http.users.as_deref());
        let directory = TokenDirectory::new(admin, users, &named, http.token_limits.clone());
        let directory = directory.map_err(Failure::usage)?;
        let pool = Accounts::open(directory, store, http.usage_days, budgets).await;
        let pool = pool.map_err(Failure::usage)?;
        return Ok(Gate::Pool(Box::new(pool)));
    }
    let secret = match chosen {
        Some(secret) => secret,
        // Whoever comes to another server must be the same there.
        None if store.is_remote() => load_or_create_secret(&*store)
            .await
            .map_err(Failure::usage)?,
        None => Secret::random().map_err(Failure::usage)?,
    };
    agree_on(&secret, &*store).await?;
    Ok(Gate::Passthrough {
        secret,
        key_in_url: http.key_in_url,
        guests: match sandbox {
            true => Guests::OneUser,
            false => Guests::Strangers,
        },
        known_keys: KnownKeys::default(),
    })
}

/// Refuses a secret that is not that of the other servers on the same store: they would know neither each
/// other's tokens nor to whom things belong.
async fn agree_on(secret: &Secret, store: &dyn Store) -> Result<(), Failure> {
    let own = secret.digest("agreed", "secret").short_hex();
    let agreed = store.get_or_init("secret", own.clone()).await;
    match agreed.map_err(Failure::usage)? {
        agreed if agreed == own => Ok(()),
        _ => Err(Failure::usage(
            "EXA_MCP_SECRET is not the secret with which the other servers use this store: set it to the same for all. \
             To change it for good, stop all servers and delete the field `secret` of the hash `exa-mcp:store` in \
             Redis; tokens made before are not known then",
        )),
    }
}

/// Tells whoever started the server what it does.
fn introduce(address: SocketAddr, gate: &Gate, http: &HttpSettings, settings: &Settings) {
    let mode = match gate {
        Gate::Pool(pool) => format!("pool mode, {} tokens", pool.directory.len()),
        Gate::Passthrough { .. } => "passthrough mode, each client brings its Exa key".to_owned(),
    };
    super::complain(&format!(
        "The MCP server listens on http://{address}/mcp ({mode})."
    ));
    if http.is_pool() && settings.key.is_none() {
        super::complain("No Exa key is set: set EXA_API_KEYS, or every call of Exa will fail.");
    }
    if !address.ip().is_loopback() && http.hosts.is_none() {
        super::complain(&format!(
            "Only requests to this machine's own names and {} are answered; set {HOSTS_VARIABLE} to the \
             names by which clients call it.",
            address.ip()
        ));
    }
}
