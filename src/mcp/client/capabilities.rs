//! The features that the client of a request declares. Nothing else reads its capabilities.

use rmcp::{RoleServer, model, service::RequestContext};

use super::super::version::McpVersion;
use crate::operations::interaction::ClientCapabilities;

/// The optional features of a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in super::super) struct ClientFeatures {
    /// It accepts tasks instead of results.
    pub(in super::super) tasks: bool,
    /// It supports sampling.
    pub(in super::super) sampling: bool,
    /// It supports sampling with tools.
    pub(in super::super) sampling_with_tools: bool,
    /// It supports elicitation by form.
    pub(in super::super) elicitation_form: bool,
    /// It supports elicitation by URL.
    pub(in super::super) elicitation_url: bool,
    /// It exposes roots.
    pub(in super::super) roots: bool,
    /// It notifies of changed roots.
    pub(in super::super) roots_changes: bool,
    /// It requests progress of this request.
    pub(in super::super) progress: bool,
}

impl ClientFeatures {
    /// Reads the features from a request, or else from the handshake.
    pub(in super::super) fn from_request(
        context: &RequestContext<RoleServer>,
        protocol: &McpVersion,
    ) -> Self {
        let declared = context.client_capabilities().unwrap_or_default();
        Self {
            progress: context.meta.get_progress_token().is_some(),
            ..Self::from_declared(&declared, protocol)
        }
    }

    /// Interprets capabilities in a protocol version; ignores those that the version does not define.
    fn from_declared(client: &model::ClientCapabilities, protocol: &McpVersion) -> Self {
        let elicitation = client
            .elicitation
            .as_ref()
            .filter(|_| protocol.supports_elicitation());
        let sampling = client.sampling.as_ref();
        let url = elicitation.is_some_and(|modes| modes.url.is_some());
        Self {
            tasks: client.supports_tasks(),
            sampling: sampling.is_some(),
            sampling_with_tools: protocol.supports_sampling_with_tools()
                && sampling.is_some_and(|sampling| sampling.tools.is_some()),
            // The first version with elicitation had only forms, without a name for the mode.
            elicitation_form: elicitation.is_some_and(|modes| modes.form.is_some() || !url),
            elicitation_url: url && protocol.supports_elicitation_by_url(),
            roots: client.roots.is_some(),
            roots_changes: client
                .roots
                .as_ref()
                .is_some_and(|roots| roots.list_changed == Some(true)),
            progress: false,
        }
    }

    /// Returns the requests that the client supports.
    pub(in super::super) fn capabilities(&self) -> ClientCapabilities {
        ClientCapabilities {
            sampling: self.sampling,
            sampling_with_tools: self.sampling_with_tools,
            forms: self.elicitation_form,
            urls: self.elicitation_url,
            roots: self.roots,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rmcp::model::ProtocolVersion;
    use serde_json::{Value, json};

    use super::*;

    fn features(version: ProtocolVersion, client: Value) -> ClientFeatures {
        let client = serde_json::from_value(client).unwrap();
        ClientFeatures::from_declared(&client, &McpVersion::new(Some(version)))
    }

    #[test]
    fn declares_nothing_by_default() {
        for version in ProtocolVersion::KNOWN_VERSIONS {
            let found = features(version.clone(), json!({}));
            assert_eq!(found, ClientFeatures::default(), "{version}");
        }
    }

    #[test]
    fn elicitation_without_a_mode_means_forms() {
        let cases = [
            (json!({}), (true, false)),
            (json!({"form": {}}), (true, false)),
            (json!({"url": {}}), (false, true)),
            (json!({"form": {}, "url": {}}), (true, true)),
        ];
        for (modes, expected) in cases {
            let found = features(
                ProtocolVersion::V_2025_11_25,
                json!({"elicitation": modes.clone()}),
            );
            let found = (found.elicitation_form, found.elicitation_url);
            assert_eq!(found, expected, "{modes}");
        }
    }

    #[test]
    fn ignores_capabilities_that_the_version_does_not_define() {
        let all = json!({
            "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": true},
        });
        let of = |version| features(version, all.clone()).capabilities();
        let oldest = ClientCapabilities {
            sampling: true,
            roots: true,
            ..ClientCapabilities::default()
        };
        assert_eq!(of(ProtocolVersion::V_2024_11_05), oldest);
        assert_eq!(of(ProtocolVersion::V_2025_03_26), oldest);
        let with_forms = ClientCapabilities {
            forms: true,
            ..oldest
        };
        assert_eq!(of(ProtocolVersion::V_2025_06_18), with_forms);
        let everything = ClientCapabilities {
            sampling_with_tools: true,
            urls: true,
            ..with_forms
        };
        assert_eq!(of(ProtocolVersion::V_2025_11_25), everything);
        assert_eq!(of(ProtocolVersion::V_2026_07_28), everything);
    }

    #[test]
    fn tasks_are_declared_as_an_extension() {
        let declared = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        assert!(features(ProtocolVersion::V_2026_07_28, declared).tasks);
    }
}
