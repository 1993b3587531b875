//! What the versions of the protocol know, and how things look to each.

use std::sync::Arc;

use rmcp::model::{
    CacheScope, CallToolResult, ContentBlock, Implementation, JsonObject, ListToolsResult,
    MetaObject, PromptsCapability, ProtocolVersion, Resource, ResourcesCapability,
    ServerCapabilities, TASKS_EXTENSION_ID, Tool, ToolAnnotations, ToolsCapability,
};
use serde_json::{Value, json};

use super::pages::Page;
use crate::tools::{ResourceLink, ToolContent, ToolDefinition};

const NAME: &str = "exa-mcp-server";
const TITLE: &str = "Exa";
const WEBSITE: &str = "https://exa.ai";

/// Where a result names the server. rmcp does so in discovery alone.
const SERVER_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// How long a client may keep a list, in milliseconds: the tools are fixed when the server starts,
/// and five minutes are soon over after it was started anew with others.
pub(super) const FRESH_FOR: u64 = 300_000;

/// The client alone may keep it: over HTTP the tools depend on who asks.
pub(super) const KEPT_BY: CacheScope = CacheScope::Private;

/// One version of the protocol.
#[derive(Clone, Debug)]
pub(super) struct Era(ProtocolVersion);

impl Era {
    /// The era of a version; without one the newest that has a handshake.
    pub(super) fn of(version: Option<ProtocolVersion>) -> Self {
        Self(version.unwrap_or(ProtocolVersion::LATEST_WITH_INITIALIZE))
    }

    /// Every request introduces itself, every result says what kind it is.
    pub(super) fn is_stateless(&self) -> bool {
        self.0 >= ProtocolVersion::V_2026_07_28
    }

    /// Hints on tools, sizes of resources, and completion as a capability came with one version.
    pub(super) fn knows_annotations(&self) -> bool {
        self.0 >= ProtocolVersion::V_2025_03_26
    }

    /// Titles beside names, links to resources in results, and times of change came with one version.
    pub(super) fn knows_titles(&self) -> bool {
        self.0 >= ProtocolVersion::V_2025_06_18
    }

    fn knows_resource_links(&self) -> bool {
        self.0 >= ProtocolVersion::V_2025_06_18
    }

    fn knows_structured_content(&self) -> bool {
        self.0 >= ProtocolVersion::V_2025_06_18
    }

    /// Calls that go on after they were answered.
    pub(super) fn knows_tasks(&self) -> bool {
        self.0 >= ProtocolVersion::V_2025_11_25
    }

    /// Forms for the user.
    pub(super) fn knows_elicitation(&self) -> bool {
        self.0 >= ProtocolVersion::V_2025_06_18
    }

    /// Pages for the user.
    pub(super) fn knows_elicitation_by_url(&self) -> bool {
        self.0 >= ProtocolVersion::V_2025_11_25
    }

    /// An error that says which page the user must visit first; later a call asks by its answer.
    pub(super) fn knows_url_errors(&self) -> bool {
        self.0 == ProtocolVersion::V_2025_11_25
    }

    /// Tools for the client's model.
    pub(super) fn knows_sampling_with_tools(&self) -> bool {
        self.0 >= ProtocolVersion::V_2025_11_25
    }

    fn knows_websites(&self) -> bool {
        self.0 >= ProtocolVersion::V_2025_11_25
    }

    /// Who we are.
    pub(super) fn server_info(&self) -> Implementation {
        let mut info = Implementation::new(NAME, env!("CARGO_PKG_VERSION"));
        if self.knows_titles() {
            info = info.with_title(TITLE);
        }
        if self.knows_websites() {
            info = info.with_website_url(WEBSITE);
        }
        info
    }

    /// Names the server in a result: without a handshake the client learns it from there.
    pub(super) fn result_meta(&self) -> Option<MetaObject> {
        let server = || json!({"name": NAME, "version": env!("CARGO_PKG_VERSION")});
        let meta = || JsonObject::from_iter([(SERVER_KEY.to_owned(), server())]);
        self.is_stateless().then(|| MetaObject(meta()))
    }

    /// What we can do; `reads` says that there is something to read beside the tools.
    pub(super) fn capabilities(&self, reads: bool, tasks: bool) -> ServerCapabilities {
        let mut tools = ToolsCapability::default();
        tools.list_changed = Some(false);
        let mut capabilities = ServerCapabilities::default();
        capabilities.tools = Some(tools);
        capabilities.logging = Some(JsonObject::new());
        if reads {
            let mut resources = ResourcesCapability::default();
            resources.subscribe = Some(true);
            resources.list_changed = Some(true);
            let mut prompts = PromptsCapability::default();
            prompts.list_changed = Some(false);
            capabilities.resources = Some(resources);
            capabilities.prompts = Some(prompts);
            capabilities.completions = self.knows_annotations().then(JsonObject::new);
        }
        if tasks && self.knows_tasks() {
            let extension = (TASKS_EXTENSION_ID.to_owned(), JsonObject::new());
            capabilities
                .extensions
                .get_or_insert_default()
                .extend([extension]);
        }
        capabilities
    }

    /// A tool as this version lists it.
    pub(super) fn tool(&self, definition: &ToolDefinition) -> Tool {
        self.tool_with(definition, Arc::clone(definition.input_schema.shared()))
    }

    fn tool_with(&self, definition: &ToolDefinition, schema: Arc<JsonObject>) -> Tool {
        let name = definition.name.to_owned();
        let mut tool = Tool::new(name, definition.description.to_owned(), schema);
        if self.knows_annotations() {
            tool = tool.with_annotations(self.annotations(definition));
        }
        if self.knows_titles() {
            tool = tool.with_title(definition.title.to_owned());
        }
        tool
    }

    /// The hints. One version kept the title among them; to later ones it would be said twice.
    fn annotations(&self, definition: &ToolDefinition) -> ToolAnnotations {
        let hints = &definition.hints;
        let mut annotations = ToolAnnotations::new()
            .read_only(hints.read_only)
            .destructive(hints.destructive)
            .idempotent(hints.idempotent)
            .open_world(hints.open_world);
        annotations.title = (!self.knows_titles()).then(|| definition.title.to_owned());
        annotations
    }

    /// A page of tools. rmcp sends the caching hints to all versions, so they are set for one only.
    pub(super) fn tool_list(&self, page: Page<ToolDefinition>) -> ListToolsResult {
        let tools = page.items.iter().map(|tool| self.tool(tool)).collect();
        self.list_of(tools, page.next)
    }

    fn list_of(&self, tools: Vec<Tool>, next: Option<String>) -> ListToolsResult {
        let mut list = ListToolsResult::with_all_items(tools);
        list.next_cursor = next;
        list.meta = self.result_meta();
        if self.is_stateless() {
            list = list.with_ttl_ms(FRESH_FOR).with_cache_scope(KEPT_BY);
        }
        list
    }

    /// A page of tools as JSON, with what one version says about tasks.
    pub(super) fn tool_list_json(&self, page: Page<ToolDefinition>, tasks: bool) -> Value {
        // The schemas are the bulk of the list, so they are moved into it as they are read.
        let none = Arc::new(JsonObject::new());
        let tools = page.items.iter();
        let tools = tools.map(|tool| self.tool_with(tool, Arc::clone(&none)));
        let list = self.list_of(tools.collect(), page.next);
        let mut list = serde_json::to_value(list).unwrap_or_default();
        if let Value::Object(list) = &mut list {
            // Only later versions say what kind of result it is.
            list.shift_remove("resultType");
        }
        let tools = list.get_mut("tools").and_then(Value::as_array_mut);
        for (tool, definition) in tools.into_iter().flatten().zip(page.items) {
            let Value::Object(tool) = tool else { continue };
            tool.insert(
                "inputSchema".to_owned(),
                definition.input_schema.owned().into(),
            );
            if tasks && definition.starts_work && self.knows_tasks() {
                tool.insert("execution".to_owned(), json!({"taskSupport": "optional"}));
            }
        }
        list
    }

    /// The result of a call.
    pub(super) fn call_result(&self, outcome: ToolContent) -> CallToolResult {
        let mut content = vec![ContentBlock::text(outcome.text)];
        if self.knows_resource_links() {
            content.extend(outcome.links.into_iter().map(resource_link));
        }
        let mut result = CallToolResult::success(content);
        result.is_error = Some(outcome.is_error);
        result.meta = self.result_meta();
        // Some clients show nothing but the structured part, so an empty one must not hide the text.
        if self.knows_structured_content() && !outcome.structured.is_empty() {
            result.structured_content = Some(Value::Object(outcome.structured));
        }
        result
    }
}

/// A resource that holds more.
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
    use crate::tools::Hints;

    fn eras() -> impl Iterator<Item = (String, Era)> {
        let versions = ProtocolVersion::KNOWN_VERSIONS.iter();
        versions.map(|version| (version.to_string(), Era(version.clone())))
    }

    fn definition() -> ToolDefinition {
        ToolDefinition {
            name: "look".to_owned(),
            title: "Look".to_owned(),
            description: "Looks.".to_owned(),
            input_schema: JsonObject::new().into(),
            hints: Hints {
                read_only: true,
                destructive: false,
                idempotent: true,
                open_world: true,
            },
            starts_work: false,
        }
    }

    #[test]
    fn a_tool_has_the_fields_of_the_version() {
        for (version, era) in eras() {
            let tool = serde_json::to_value(era.tool(&definition())).unwrap();
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
    fn hints_are_all_said_and_the_title_once() {
        for (version, era) in eras().skip(1) {
            let annotations = era.tool(&definition()).annotations;
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
    fn structured_content_goes_to_those_who_know_it() {
        for (version, era) in eras() {
            let structured = json!({"a": 1}).as_object().unwrap().clone();
            let outcome = ToolContent {
                text: "t".to_owned(),
                structured,
                links: Vec::new(),
                is_error: true,
            };
            let result = serde_json::to_value(era.call_result(outcome)).unwrap();
            let structured = result.get("structuredContent").is_some();
            assert_eq!(structured, *version >= *"2025-06-18", "{version}");
            assert_eq!(result["isError"], json!(true));
            assert_eq!(result["content"], json!([{"type": "text", "text": "t"}]));
        }
    }

    #[test]
    fn nothing_structured_is_left_out() {
        let outcome = ToolContent {
            text: String::new(),
            structured: JsonObject::new(),
            links: Vec::new(),
            is_error: false,
        };
        let result = Era(ProtocolVersion::LATEST).call_result(outcome);
        assert_eq!(result.structured_content, None);
    }

    #[test]
    fn the_server_introduces_itself_by_version() {
        for (version, era) in eras() {
            let info = serde_json::to_value(era.server_info()).unwrap();
            assert_eq!(info["name"], json!("exa-mcp-server"));
            let title = info.get("title").is_some();
            assert_eq!(title, *version >= *"2025-06-18", "{version}");
            let website = info.get("websiteUrl").is_some();
            assert_eq!(website, *version >= *"2025-11-25", "{version}");
        }
    }

    #[test]
    fn the_capabilities_are_those_of_the_version() {
        for (version, era) in eras() {
            let claimed = |reads| serde_json::to_value(era.capabilities(reads, false)).unwrap();
            let mut expected = json!({"tools": {"listChanged": false}, "logging": {}});
            assert_eq!(claimed(false), expected, "{version}");
            expected["resources"] = json!({"subscribe": true, "listChanged": true});
            expected["prompts"] = json!({"listChanged": false});
            if *version >= *"2025-03-26" {
                expected["completions"] = json!({});
            }
            assert_eq!(claimed(true), expected, "{version}");
        }
    }

    #[test]
    fn caching_hints_and_our_name_go_to_the_newest_only() {
        for (version, era) in eras() {
            let page = Page {
                items: vec![definition()],
                next: None,
            };
            let list = era.tool_list(page);
            let newest = version == "2026-07-28";
            let hinted = list.ttl_ms.is_some() && list.cache_scope.is_some();
            assert_eq!(hinted, newest, "{version}");
            assert_eq!(list.meta.is_some(), newest, "{version}");
        }
    }
}
