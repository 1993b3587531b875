//! How far the client has introduced itself, and what it may ask meanwhile.
//!
//! rmcp's own handshake ends the connection on an unexpected first message and cannot go from one era
//! to the other. This one refuses and stays: up to 2025-11-25 a client opens with `initialize`, from
//! 2026-07-28 on every request introduces itself, and one connection may do both.

use super::shims;
use crate::mcp::request::VERSION_KEY;
use rmcp::model::{ClientRequest, ErrorData, GetMeta, ProtocolVersion, RequestId};

/// The state of the handshake.
#[derive(Debug, Default)]
pub(super) enum Handshake {
    /// No `initialize` was seen.
    #[default]
    Open,
    /// An `initialize` is being answered. Nothing more is read until it is, because what follows
    /// depends on the version.
    Asked(RequestId),
    /// The client and the server agreed on this version.
    Done(ProtocolVersion),
}

impl Handshake {
    /// Says whether this request may be served now.
    pub(super) fn admit(&self, request: &ClientRequest) -> Result<(), ErrorData> {
        match request {
            ClientRequest::InitializeRequest(_) => self.admit_initialize(),
            // Pings are for all, the others answer for themselves: discovery insists on its metadata
            // and unknown methods are unknown at any time.
            ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => Ok(()),
            ClientRequest::CustomRequest(request)
                if !shims::is_known(&request.method)
                    || shims::introduces(request.params.as_ref()) =>
            {
                Ok(())
            }
            _ if matches!(self, Self::Done(_)) => Ok(()),
            request if request.get_meta().contains_key(VERSION_KEY) => Ok(()),
            request => Err(ErrorData::invalid_params(
                format!(
                    "{} came before initialize: send initialize first, or, with protocol 2026-07-28, \
                     put {VERSION_KEY} and io.modelcontextprotocol/clientCapabilities into _meta",
                    request.method()
                ),
                None,
            )),
        }
    }

    fn admit_initialize(&self) -> Result<(), ErrorData> {
        match self {
            Self::Open => Ok(()),
            Self::Asked(_) | Self::Done(_) => Err(ErrorData::invalid_request(
                "Invalid request: this connection is already initialized",
                None,
            )),
        }
    }

    /// Says whether reading must wait for the answer to `initialize`.
    pub(super) fn is_asked(&self) -> bool {
        matches!(self, Self::Asked(_))
    }

    /// Says whether the client may send several messages as one array: only 2025-03-26 had that.
    pub(super) fn knows_batches(&self) -> bool {
        matches!(self, Self::Done(version) if *version == ProtocolVersion::V_2025_03_26)
    }

    /// Notes that `initialize` goes to the handler under this number.
    pub(super) fn ask(&mut self, request: RequestId) {
        *self = Self::Asked(request);
    }

    /// Notes an answer; `version` is the one agreed on, if it answers `initialize` well.
    pub(super) fn answered(&mut self, request: &RequestId, version: Option<&ProtocolVersion>) {
        if !matches!(self, Self::Asked(asked) if asked == request) {
            return;
        }
        *self = version.map_or(Self::Open, |version| Self::Done(version.clone()));
    }
}
