//! Everything about tokens that share the server's keys.

use std::net::IpAddr;
use std::sync::Arc;

use super::allowance::{Allowance, Warden};
use super::audit::Audit;
use super::daily::ANONYMOUS;
use super::sweep::sweep;
use super::usage::Usage;
use super::{Directory, Registrar, Requester, Token};
use crate::store::{Store, StoreError};

/// Everything about tokens that share the server's keys.
pub struct Pool {
    /// The tokens.
    pub directory: Arc<Directory>,
    /// Where their use is counted.
    pub usage: Usage,
    /// Who makes and changes them.
    pub registrar: Registrar,
    /// What happened.
    pub audit: Audit,
    /// Days of use that are kept.
    pub days_kept: u64,
    warden: Arc<Warden>,
}

impl Pool {
    /// The tokens of the configuration and those of the store. Must be called inside a runtime.
    /// So many days of use are kept.
    pub async fn open(
        directory: Directory,
        store: Arc<dyn Store>,
        days_kept: u64,
    ) -> Result<Self, StoreError> {
        let directory = Arc::new(directory);
        let registrar = Registrar::open(Arc::clone(&store), Arc::clone(&directory)).await?;
        tokio::spawn(registrar.clone().follow());
        tokio::spawn(sweep(Arc::clone(&store), days_kept));
        let audit = Audit::new(Arc::clone(&store));
        let warden = Arc::new(Warden {
            store: Arc::clone(&store),
            directory: Arc::clone(&directory),
            audit: audit.clone(),
            spare: Default::default(),
        });
        Ok(Self {
            directory,
            usage: Usage::new(store),
            days_kept,
            registrar,
            audit,
            warden,
        })
    }

    /// Whoever holds a token, at an address.
    pub fn requester(&self, token: &Arc<Token>, address: IpAddr) -> Requester {
        let user = token.user.as_deref().unwrap_or(ANONYMOUS);
        let limits = &token.in_force;
        let address = address.to_canonical().to_string();
        Requester {
            meter: Some(self.usage.meter(&token.id, user)),
            allowance: Some(Allowance::new(&self.warden, token, &address)),
            allowed: limits.tool_list().map(Arc::from),
            read_only: limits.read_only.unwrap_or_default(),
            ..Requester::new(token.owner())
        }
    }
}
