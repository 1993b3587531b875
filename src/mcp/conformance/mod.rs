//! What the conformance suite asks a server for by name, on the stack that serves everything else.
//!
//! Only for tests: the feature `conformance` is not part of any release. Tools with plain answers go
//! the way of all tools; what Exa's tools never do (images, questions of all kinds, resources of other
//! schemes) is answered in [`stage`].

mod asks;
mod jobs;
mod reads;
mod stage;
mod table;

use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::broadcast;

use self::stage::Stage;
use self::table::Table;
use super::server::{Handlers, McpServer};
use crate::transport::http::{Gate, Guests, Hosts, HttpConfig, HttpLimits, Origins, Proxies};
use exa_mcp_accounts::{KnownKeys, Requester, Secret};
use exa_mcp_store::MemoryStore;

/// A change of a list that listeners are told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Tools,
    Prompts,
}

/// The room in which the suite is served.
#[derive(Clone)]
struct Theatre {
    everybody: McpServer<Table>,
    changes: broadcast::Sender<Change>,
}

impl Handlers for Theatre {
    type Handler = Stage;

    fn handler(&self) -> Stage {
        Stage::new(self.everybody.handler(), self.changes.clone())
    }

    fn handler_for(&self, requester: &Requester) -> Stage {
        Stage::new(self.everybody.handler_for(requester), self.changes.clone())
    }

    fn check_list(&self, list: &str) -> Result<(), String> {
        self.everybody.check_list(list)
    }
}

/// Serves the suite until the process is told to end.
///
/// # Errors
/// The address cannot be listened on.
pub async fn serve(address: &str) -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind(address).await?;
    eprintln!("http://{}/mcp", listener.local_addr()?);
    let config = HttpConfig {
        hosts: Hosts::new(None, None)?,
        origins: Origins::new(None)?,
        proxies: Proxies::default(),
        open_metrics: false,
        limits: HttpLimits::default(),
    };
    let gate = Gate::Passthrough {
        secret: Secret::random()?,
        key_in_url: false,
        guests: Guests::OneUser,
        known_keys: KnownKeys::default(),
    };
    let store = Arc::new(MemoryStore::default());
    let tools = Table {
        store: Arc::clone(&store),
    };
    let theatre = Theatre {
        everybody: McpServer::remote(tools),
        changes: broadcast::channel(16).0,
    };
    let stop = crate::transport::connection::termination()?;
    crate::transport::http::serve(
        theatre,
        store,
        listener,
        gate,
        config,
        crate::admin::routes(),
        stop,
    )
    .await;
    Ok(())
}
