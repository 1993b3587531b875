//! Who makes a request, and with what.

use std::sync::Arc;

use super::Identity;
use super::allowance::Allowance;
use super::usage::Meter;
use crate::exa::ApiKey;

/// Who makes a request. Over stdio there is one; over HTTP each request brings its own.
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
}

impl Requester {
    /// Whoever started this process.
    pub fn local() -> Self {
        Self::new(Identity::local())
    }

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
        }
    }
}
