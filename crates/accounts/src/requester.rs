//! Who makes a request, and what the request brings.

use std::sync::Arc;

use super::allowance::Allowance;
use super::credential::Credential;
use super::usage::UsageMeter;
use super::{ClientAddress, KeyProof};
use exa_mcp_exa_client::ApiKey;
use exa_mcp_model::Identity;

/// Who makes an HTTP request. Requests over HTTP are remote whatever their identity: see
/// [`exa_mcp_model::Owner`].
#[derive(Clone, Debug)]
pub struct Requester {
    /// The identity that owns what the request creates.
    pub owner: Identity,
    /// The key that the request brings; without one the server uses its own, if it has any.
    pub key: Option<ApiKey>,
    /// Whether the URL of the request contains a key although keys in URLs are not accepted.
    pub key_in_address: bool,
    /// The sets and tools to which the request narrows the offered ones.
    pub tools: Option<Arc<str>>,
    /// Records the usage of the request, if usage is recorded.
    pub meter: Option<UsageMeter>,
    /// Enforces the limits of the requester, if it has any.
    pub allowance: Option<Allowance>,
    /// The sets and tools that the requester may use at all.
    pub allowed_tools: Option<Arc<str>>,
    /// Whether the requester is an admin of this server.
    pub is_admin: bool,
    /// Whether the requester may not change anything.
    pub read_only: bool,
    /// The address whose quotas apply, for a requester that has not authenticated.
    pub guest_address: Option<ClientAddress>,
    /// Records that Exa has accepted the key of the request.
    pub key_proof: Option<KeyProof>,
    /// The token that the request presented, where tokens are required. Work for the request stops when it becomes
    /// invalid.
    pub credential: Option<Credential>,
}

impl Requester {
    /// Creates a requester without a key, token or limits.
    pub fn new(owner: Identity) -> Self {
        Self {
            owner,
            key: None,
            key_in_address: false,
            tools: None,
            meter: None,
            allowance: None,
            allowed_tools: None,
            is_admin: false,
            read_only: false,
            guest_address: None,
            key_proof: None,
            credential: None,
        }
    }
}
