//! The state of the handshake, and the requests it admits.
//!
//! rmcp's own handshake ends the connection on an unexpected first message and cannot mix protocol
//! versions. This one rejects the message and continues: up to 2025-11-25 a client starts with
//! `initialize`, from 2026-07-28 on every request declares its version, and one connection may do both.

use super::compat;
use crate::mcp::request::VERSION_KEY;
use rmcp::model::{ClientRequest, ErrorData, GetMeta, ProtocolVersion, RequestId};

/// The state of the handshake.
#[derive(Debug, Default)]
pub(super) enum Handshake {
    /// The client has not sent `initialize`.
    #[default]
    NotStarted,
    /// The handler is processing `initialize`. Reading pauses until it finishes, because the meaning of
    /// later messages depends on the version.
    Pending(RequestId),
    /// The negotiated protocol version.
    Complete(ProtocolVersion),
}

impl Handshake {
    /// Checks whether the request may be served now.
    pub(super) fn admit(&self, request: &ClientRequest) -> Result<(), ErrorData> {
        match request {
            ClientRequest::InitializeRequest(_) => self.admit_initialize(),
            // Always allowed: discovery validates its own metadata, and unknown methods are rejected later.
            ClientRequest::PingRequest(_) | ClientRequest::DiscoverRequest(_) => Ok(()),
            ClientRequest::CustomRequest(request)
                if !compat::is_custom_method(&request.method)
                    || compat::declares_version(request.params.as_ref()) =>
            {
                Ok(())
            }
            _ if matches!(self, Self::Complete(_)) => Ok(()),
            request if request.get_meta().contains_key(VERSION_KEY) => Ok(()),
            request => Err(ErrorData::invalid_params(
                format!(
                    "{} requires a handshake: send initialize first, or with protocol 2026-07-28 \
                     put {VERSION_KEY} and io.modelcontextprotocol/clientCapabilities into _meta",
                    request.method()
                ),
                None,
            )),
        }
    }

    fn admit_initialize(&self) -> Result<(), ErrorData> {
        match self {
            Self::NotStarted => Ok(()),
            Self::Pending(_) | Self::Complete(_) => Err(ErrorData::invalid_request(
                "Invalid request: this connection is already initialized",
                None,
            )),
        }
    }

    /// Returns whether reading must wait for the response to `initialize`.
    pub(super) fn is_pending(&self) -> bool {
        matches!(self, Self::Pending(_))
    }

    /// Returns whether the client may send batches. Only 2025-03-26 has them.
    pub(super) fn allows_batches(&self) -> bool {
        matches!(self, Self::Complete(version) if *version == ProtocolVersion::V_2025_03_26)
    }

    /// Records that `initialize` went to the handler under this internal id.
    pub(super) fn start(&mut self, request: RequestId) {
        *self = Self::Pending(request);
    }

    /// Records a response. `version` is the negotiated version if it is a successful response to
    /// `initialize`.
    pub(super) fn complete(&mut self, request: &RequestId, version: Option<&ProtocolVersion>) {
        if !matches!(self, Self::Pending(pending) if pending == request) {
            return;
        }
        *self = version.map_or(Self::NotStarted, |version| Self::Complete(version.clone()));
    }
}
