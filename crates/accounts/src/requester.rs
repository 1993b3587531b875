//! Who makes a request, and with what.

use std::sync::Arc;

use super::allowance::Allowance;
use super::credential::Credential;
use super::usage::Meter;
use super::{ClientAddress, KeyProof};
use exa_mcp_exa_client::ApiKey;
use exa_mcp_model::Identity;

/// Who makes a request over HTTP, where each request says for itself. Such a requester is remote,
/// whatever identity it has: see [`exa_mcp_model::Owner`].
#[derive(Clone, Debug)]
pub struct Requester {
    /// To whom belongs what the request leaves behind.
    pub owner: Identity,
    /// The key that the request brought; without one the server's own is used, if it has any.
    pub key: Option<ApiKey>,
    /// The request brought a key in its address, where none is taken.
    pub key_in_address: bool,
    /// The sets and tools to which the request narrows down what is offered.
    pub tools: Option<Arc<str>>,
    /// Where the request is counted, if it is.
    pub meter: Option<Meter>,
    /// What limits the request, if anything does.
    pub allowance: Option<Allowance>,
    /// The sets and tools that the requester may use at all.
    pub allowed: Option<Arc<str>>,
    /// Nothing may be changed.
    pub read_only: bool,
    /// The address whose quotas count, for somebody who has proved nothing.
    pub guest_address: Option<ClientAddress>,
    /// Notes that Exa has accepted the key that the request brought.
    pub key_proof: Option<KeyProof>,
    /// The token that the request showed, where tokens are needed. What is done for the request ends
    /// with it.
    pub credential: Option<Credential>,
}

impl Requester {
    /// Someone who brings nothing.
    pub fn new(owner: Identity) -> Self {
        Self {
            owner,
            key: None,
            key_in_address: false,
            tools: None,
            meter: None,
            allowance: None,
            allowed: None,
            read_only: false,
            guest_address: None,
            key_proof: None,
            credential: None,
        }
    }
}
