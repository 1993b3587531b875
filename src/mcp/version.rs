//! Features of the protocol versions, and the version-specific form of results.

use std::sync::Arc;

use rmcp::model::{
    CacheScope, CallToolResult, ContentBlock, Implementation, JsonObject, ListToolsResult,
    MetaObject, PromptsCapability, ProtocolVersion, Resource, ResourcesCapability,
    ServerCapabilities, TASKS_EXTENSION_ID, Tool, ToolAnnotations, ToolsCapability,
};
use serde_json::{Value, json};

use super::pagination::Page;
use super::request::declared_version;
use super::skills;
use crate::tools::{ResourceLink, ToolContent, ToolDefinition};

const NAME: &str = "exa-mcp-server";
const TITLE: &str = "Exa";
const WEBSITE: &str = "https://exa.ai";

/// The metadata key with which a result names the server. rmcp sets it in discovery only.
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// How long a client may cache a list, in milliseconds. The tools only change when the server restarts with another
/// configuration.
pub(super) const CACHE_TTL_MS: u64 = 300_000;

/// Lists must not be cached for several users: over HTTP the tools depend on the requester.
pub(super) const CACHE_SCOPE: CacheScope = CacheScope::Private;

/// A protocol version and its features.
#[derive(Clone, Debug)]
pub(super) struct McpVersion(ProtocolVersion);

impl McpVersion {
    /// Wraps a version; the default is the newest with a handshake.
    pub(super) fn new(version: Option<ProtocolVersion>) -> Self {
        Self(version.unwrap_or(ProtocolVersion::LATEST_WITH_INITIALIZE))
    }

    /// Returns the version that the parameters of a request declare, if it is known. rmcp does not read that of custom
    /// requests.
    pub(super) fn declared(params: Option<&Value>) -> Option<Self> {
        let declared = declared_version(params)?.as_str()?;
        let mut known = ProtocolVersion::KNOWN_VERSIONS.iter();
        let version = known.find(|version| version.as_str() == declared);
        version.cloned().map(Self)
    }

    /// Progress notifications have a message since 2025-03-26.
    pub(super) fn supports_progress_messages(&self) -> bool {
        self.0.as_str() >= "2025-03-26"
    }

    /// There is no handshake: every request declares its version, and every result its type.
    pub(super) fn is_stateless(&self) -> bool {
        self.0 >= ProtocolVersion::V_2026_07_28
    }

    /// Tool annotations, resource sizes, and the completions capability.
    pub(super) fn supports_annotations(&self) -> bool {
        self.0 >= ProtocolVersion::V_2025_03_26
    }

    /// Titles and modification times.
    pub(super) fn supports_titles(&self) -> bool {
        self.0 >= ProtocolVersion::V_2025_06_18
    }

    fn supports_resource_links(&self) -> bool {
        self.0 >= ProtocolVersion::V_2025_06_18
    }

    fn supports_structured_content(&self) -> bool {
        self.0 >= ProtocolVersion::V_2025_06_18
    }

    /// Tasks.
    pub(super) fn supports_tasks(&self) -> bool {
        self.0 >= ProtocolVersion::V_2025_11_25
    }

    /// Elicitation by form.
    pub(super) fn supports_elicitation(&self) -> bool {
        self.0 >= ProtocolVersion::V_2025_06_18
    }

    /// Elicitation by URL.
    pub(super) fn supports_elicitation_by_url(&self) -> bool {
        self.0 >= ProtocolVersion::V_2025_11_25
    }

    /// The error that asks the user to open a page first. Later versions use multi-round-trip requests.
    pub(super) fn supports_url_errors(&self) -> bool {
        self.0 == ProtocolVersion::V_2025_11_25
    }

    /// Sampling with tools.
    pub(super) fn supports_sampling_with_tools(&self) -> bool {
        self.0 >= ProtocolVersion::V_2025_11_25
    }

    fn supports_websites(&self) -> bool {
        self.0 >= ProtocolVersion::V_2025_11_25
    }

    /// Returns the name and version of the server.
    pub(super) fn server_info(&self) -> Implementation {
        let mut info = Implementation::new(NAME, env!("CARGO_PKG_VERSION"));
        if self.supports_titles() {
            info = info.with_title(TITLE);
        }
        if self.supports_websites() {
            info = info.with_website_url(WEBSITE);
        }
        info
    }

    /// Returns the metadata that names the server in results of stateless versions.
    pub(super) fn result_meta(&self) -> Option<MetaObject> {
        let server = || json!({"name": NAME, "version": env!("CARGO_PKG_VERSION")});
        let meta = || JsonObject::from_iter([(SERVER_KEY.to_owned(), server())]);
        self.is_stateless().then(|| MetaObject(meta()))
    }

    /// Returns the server capabilities, with or without resources and tasks.
    pub(super) fn capabilities(&self, resources: bool, tasks: bool) -> ServerCapabilities {
        let mut tools = ToolsCapability::default();
        tools.list_changed = Some(false);
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools = Some(tools);
        capabilities.logging = Some(JsonObject::new());
        if resources {
            let mut resources = ResourcesCapability::default();
            resources.subscribe = Some(true);
            resources.list_changed = Some(true);
            let mut prompts = PromptsCapability::default();
            prompts.list_changed = Some(false);
            capabilities.resources = Some(resources);
            capabilities.prompts = Some(prompts);
            capabilities.completions = self.supports_annotations().then(JsonObject::new);
        }
        if resources && self.supports_titles() {
            let skills = (skills::EXTENSION_ID.to_owned(), skills::settings());
            capabilities
                .extensions
                .get_or_insert_default()
                .extend([skills]);
        }
        if tasks && self.supports_tasks() {
            let extension = (TASKS_EXTENSION_ID.to_owned(), JsonObject::new());
            capabilities
                .extensions
                .get_or_insert_default()
                .extend([extension]);
        }
        capabilities
    }

    /// Converts a tool for this version.
    pub(super) fn tool(&self, definition: &ToolDefinition) -> Tool {
        self.tool_with(definition, Arc::clone(definition.input_schema.shared()))
    }

    fn tool_with(&self, definition: &ToolDefinition, schema: Arc<JsonObject>) -> Tool {
        let name = definition.name.to_owned();
        let mut tool = Tool::new(name, definition.description.to_owned(), schema);
        if self.supports_annotations() {
            tool = tool.with_annotations(self.annotations(definition));
        }
        if self.supports_titles() {
            tool = tool.with_title(definition.title.to_owned());
        }
        tool
    }

    /// Returns the annotations. Only 2025-03-26 has the title among them; later versions would get it twice.
    fn annotations(&self, definition: &ToolDefinition) -> ToolAnnotations {
        let hints = &definition.hints;
        let mut annotations = ToolAnnotations::new()
            .read_only(hints.read_only)
            .destructive(hints.destructive)
            .idempotent(hints.idempotent)
            .open_world(hints.open_world);
        annotations.title = (!self.supports_titles()).then(|| definition.title.to_owned());
        annotations
    }

    /// Converts a page of tools. rmcp sends caching hints to all versions, so they are set for stateless ones only.
    pub(super) fn tool_list(&self, page: Page<ToolDefinition>) -> ListToolsResult {
        let tools = page.items.iter().map(|tool| self.tool(tool)).collect();
        self.list_of(tools, page.next)
    }

    fn list_of(&self, tools: Vec<Tool>, next: Option<String>) -> ListToolsResult {
        let mut list = ListToolsResult::with_all_items(tools);
        list.next_cursor = next;
        list.meta = self.result_meta();
        if self.is_stateless() {
            list = list.with_ttl_ms(CACHE_TTL_MS).with_cache_scope(CACHE_SCOPE);
        }
        list
    }

    /// Converts a page of tools to JSON, with the task support of 2025-11-25.
    pub(super) fn tool_list_json(&self, page: Page<ToolDefinition>, tasks: bool) -> Value {
        // The schemas are the bulk of the list, so they are moved into it instead of copied.
        let none = Arc::new(JsonObject::new());
        let tools = page.items.iter();
        let tools = tools.map(|tool| self.tool_with(tool, Arc::clone(&none)));
        let list = self.list_of(tools.collect(), page.next);
        let mut list = serde_json::to_value(list).unwrap_or_default();
        if let Value::Object(list) = &mut list {
            // Only later versions have a result type.
            list.shift_remove("resultType");
        }
        let tools = list.get_mut("tools").and_then(Value::as_array_mut);
        for (tool, definition) in tools.into_iter().flatten().zip(page.items) {
            let Value::Object(tool) = tool else { continue };
            tool.insert(
                "inputSchema".to_owned(),
                definition.input_schema.owned().into(),
            );
            if tasks && definition.starts_job && self.supports_tasks() {
                tool.insert("execution".to_owned(), json!({"taskSupport": "optional"}));
            }
        }
        list
    }

    /// Converts the result of a call for this version.
    pub(super) fn call_result(&self, outcome: ToolContent) -> CallToolResult {
        let mut content = vec![ContentBlock::text(outcome.text)];
        if self.supports_resource_links() {
            content.extend(outcome.links.into_iter().map(resource_link));
        }
        let mut result = CallToolResult::success(content);
        result.is_error = Some(outcome.is_error);
        result.meta = self.result_meta();
        // Some clients show only the structured content, so an empty one must not hide the text.
        if self.supports_structured_content() && !outcome.structured.is_empty() {
            result.structured_content = Some(Value::Object(outcome.structured));
        }
        result
    }
}

/// Returns a link to a resource.
fn resource_link(link: ResourceLink) -> ContentBlock {
    let mut resource = Resource::new(link.uri, link.name);
    resource.description = Some(link.description);
    resource.mime_type = Some(link.mime_type.to_owned());
    resource.size = link.size.map(|size| size as u64);
    ContentBlock::resource_link(resource)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use crate::tools::ToolHints;

    fn versions() -> impl Iterator<Item = (String, McpVersion)> {
        let versions = ProtocolVersion::KNOWN_VERSIONS.iter();
        versions.map(|version| (version.to_string(), McpVersion(version.clone())))
    }

    fn definition() -> ToolDefinition {
        ToolDefinition {
            name: "look".to_owned(),
            title: "Look".to_owned(),
            description: "Looks.".to_owned(),
            input_schema: JsonObject::new().into(),
            hints: ToolHints {
                read_only: true,
                destructive: false,
                idempotent: true,
                open_world: true,
            },
            starts_job: false,
        }
    }

    #[test]
    fn tools_have_the_fields_of_the_version() {
        for (version, protocol) in versions() {
            let tool = serde_json::to_value(protocol.tool(&definition())).unwrap();
            let keys: Vec<_> = tool.as_object().unwrap().keys().collect();
            let expected: &[&str] = match version.as_str() {
                "2024-11-05" => &["name", "description", "inputSchema"],
                "2025-03-26" => &["name", "description", "inputSchema", "annotations"],
                _ => &["name", "title", "description", "inputSchema", "annotations"],
            };
            assert_eq!(keys, expected, "{version}");
        }
    }

    #[test]
    fn annotations_have_all_hints_and_the_title_once() {
        for (version, protocol) in versions().skip(1) {
            let annotations = protocol.tool(&definition()).annotations;
            let mut expected = json!({
                "readOnlyHint": true,
                "destructiveHint": false,
                "idempotentHint": true,
                "openWorldHint": true,
            });
            if version == "2025-03-26" {
                expected["title"] = json!("Look");
            }
            let annotations = serde_json::to_value(annotations).unwrap();
            assert_eq!(annotations, expected, "{version}");
        }
    }

    #[test]
    fn structured_content_requires_version_support() {
        for (version, protocol) in versions() {
            let structured = json!({"a": 1}).as_object().unwrap().clone();
            let outcome = ToolContent {
                text: "t".to_owned(),
                structured,
                links: Vec::new(),
                is_error: true,
            };
            let result = serde_json::to_value(protocol.call_result(outcome)).unwrap();
            let structured = result.get("structuredContent").is_some();
            assert_eq!(structured, *version >= *"2025-06-18", "{version}");
            assert_eq!(result["isError"], json!(true));
            assert_eq!(result["content"], json!([{"type": "text", "text": "t"}]));
        }
    }

    #[test]
    fn omits_empty_structured_content() {
        let outcome = ToolContent {
            text: String::new(),
            structured: JsonObject::new(),
            links: Vec::new(),
            is_error: false,
        };
        let result = McpVersion(ProtocolVersion::LATEST).call_result(outcome);
        assert_eq!(result.structured_content, None);
    }

    #[test]
    fn server_info_has_the_fields_of_the_version() {
        for (version, protocol) in versions() {
            let info = serde_json::to_value(protocol.server_info()).unwrap();
            assert_eq!(info["name"], json!("exa-mcp-server"));
            let title = info.get("title").is_some();
            assert_eq!(title, *version >= *"2025-06-18", "{version}");
            let website = info.get("websiteUrl").is_some();
            assert_eq!(website, *version >= *"2025-11-25", "{version}");
        }
    }

    #[test]
    fn capabilities_depend_on_the_version() {
        for (version, protocol) in versions() {
            let declared =
                |resources| serde_json::to_value(protocol.capabilities(resources, false)).unwrap();
            let mut expected = json!({"tools": {"listChanged": false}, "logging": {}});
            assert_eq!(declared(false), expected, "{version}");
            expected["resources"] = json!({"subscribe": true, "listChanged": true});
            expected["prompts"] = json!({"listChanged": false});
            if *version >= *"2025-03-26" {
                expected["completions"] = json!({});
            }
            if protocol.supports_titles() {
                expected["extensions"] =
                    json!({"io.modelcontextprotocol/skills": {"directoryRead": true}});
            }
            assert_eq!(declared(true), expected, "{version}");
        }
    }

    #[test]
    fn only_the_newest_version_gets_caching_hints_and_server_name() {
        for (version, protocol) in versions() {
            let page = Page {
                items: vec![definition()],
                next: None,
            };
            let list = protocol.tool_list(page);
            let newest = version == "2026-07-28";
            let hinted = list.ttl_ms.is_some() && list.cache_scope.is_some();
            assert_eq!(hinted, newest, "{version}");
            assert_eq!(list.meta.is_some(), newest, "{version}");
        }
    }
}
