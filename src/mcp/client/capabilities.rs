//! What the client of a request can do. This is the one place that reads it.

use rmcp::{RoleServer, model, service::RequestContext};

use super::super::version::Era;
use crate::operations::client::ClientCapabilities;

/// What a client can do beside calling tools, which is all that may be taken for granted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(in super::super) struct Detected {
    /// It takes tasks in place of results.
    pub(in super::super) tasks: bool,
    /// Its model can be asked.
    pub(in super::super) sampling: bool,
    /// Its model can be asked with a tool.
    pub(in super::super) sampling_with_tools: bool,
    /// Its user can be asked by a form.
    pub(in super::super) elicitation_form: bool,
    /// Its user can be sent to a page.
    pub(in super::super) elicitation_url: bool,
    /// It tells its folders.
    pub(in super::super) roots: bool,
    /// It tells when its folders change.
    pub(in super::super) roots_changes: bool,
    /// It wants to know how far this request is.
    pub(in super::super) progress: bool,
}

impl Detected {
    /// What the client of a request can do: as the request says, or else the handshake.
    pub(in super::super) fn of(context: &RequestContext<RoleServer>, era: &Era) -> Self {
        let declared = context.client_capabilities().unwrap_or_default();
        Self {
            progress: context.meta.get_progress_token().is_some(),
            ..Self::declared(&declared, era)
        }
    }

    /// What these capabilities mean in this era. A client cannot mean what its version does not know.
    fn declared(client: &model::ClientCapabilities, era: &Era) -> Self {
        let elicitation = client
            .elicitation
            .as_ref()
            .filter(|_| era.knows_elicitation());
        let sampling = client.sampling.as_ref();
        let url = elicitation.is_some_and(|modes| modes.url.is_some());
        Self {
            tasks: client.supports_tasks(),
            sampling: sampling.is_some(),
            sampling_with_tools: era.knows_sampling_with_tools()
                && sampling.is_some_and(|sampling| sampling.tools.is_some()),
            // The first version of elicitation had forms alone and no words for it.
            elicitation_form: elicitation.is_some_and(|modes| modes.form.is_some() || !url),
            elicitation_url: url && era.knows_elicitation_by_url(),
            roots: client.roots.is_some(),
            roots_changes: client
                .roots
                .as_ref()
                .is_some_and(|roots| roots.list_changed == Some(true)),
            progress: false,
        }
    }

    /// The same as what it can be asked for.
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

    fn detected(version: ProtocolVersion, client: Value) -> Detected {
        let client = serde_json::from_value(client).unwrap();
        Detected::declared(&client, &Era::of(Some(version)))
    }

    #[test]
    fn nothing_declared_is_nothing_detected() {
        for version in ProtocolVersion::KNOWN_VERSIONS {
            let found = detected(version.clone(), json!({}));
            assert_eq!(found, Detected::default(), "{version}");
        }
    }

    #[test]
    fn forms_are_the_older_way_to_elicit() {
        let cases = [
            (json!({}), (true, false)),
            (json!({"form": {}}), (true, false)),
            (json!({"url": {}}), (false, true)),
            (json!({"form": {}, "url": {}}), (true, true)),
        ];
        for (modes, expected) in cases {
            let found = detected(
                ProtocolVersion::V_2025_11_25,
                json!({"elicitation": modes.clone()}),
            );
            let found = (found.elicitation_form, found.elicitation_url);
            assert_eq!(found, expected, "{modes}");
        }
    }

    #[test]
    fn a_version_bounds_what_can_be_meant() {
        let all = json!({
            "sampling": {"tools": {}}, "elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": true},
        });
        let of = |version| detected(version, all.clone()).capabilities();
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
    fn tasks_are_an_extension() {
        let declared = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
        assert!(detected(ProtocolVersion::V_2026_07_28, declared).tasks);
    }
}
