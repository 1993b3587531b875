//! Lists and reads resources.

use rmcp::model::{
    Annotations, ErrorData, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult,
    Resource, ResourceContents, ResourceTemplate, Role,
};
use serde_json::json;

use super::{
    pagination::{Page, unknown_cursor},
    version::{CACHE_SCOPE, CACHE_TTL_MS, McpVersion},
};
use crate::tools::ResourceUri;
use crate::tools::resources::{
    ReadError, ResourceContent, ResourceEntry, ResourceTemplate as TemplateDefinition, Resources,
};
use exa_mcp_model::Identity;

/// Resources per page.
const PAGE_SIZE: usize = 100;

/// The longest URI that is quoted in an error, in characters.
const MAX_URI: usize = 200;

/// Returns a page of resources.
pub(super) async fn list(
    resources: &Resources,
    owner: &Identity,
    protocol: &McpVersion,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    let page = resources.page(owner, cursor, PAGE_SIZE).await;
    let page = page.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let page = page.ok_or_else(unknown_cursor)?;
    let resources = page
        .entries
        .iter()
        .map(|entry| convert_resource(protocol, entry));
    let mut result = ListResourcesResult::with_all_items(resources.collect());
    result.next_cursor = page.next;
    result.meta = protocol.result_meta();
    if protocol.is_stateless() {
        // The list may change with the next call.
        result = result.with_ttl_ms(0).with_cache_scope(CACHE_SCOPE);
    }
    Ok(result)
}

/// Reads one resource.
pub(super) async fn read(
    resources: &Resources,
    owner: &Identity,
    protocol: &McpVersion,
    uri: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let address = parse_address(uri)?;
    match resources.read(owner, &address).await {
        Ok(content) => Ok(read_result(protocol, uri, content)),
        Err(error) => Err(read_error(uri, &error)),
    }
}

/// Parses the URI of a resource.
pub(super) fn parse_address(uri: &str) -> Result<ResourceUri, ErrorData> {
    ResourceUri::parse(uri).ok_or_else(|| {
        let hint = "it matches none of the templates in resources/templates/list";
        read_error(uri, &ReadError::NotFound(hint.to_owned()))
    })
}

/// Returns the error of a failed read. rmcp translates the code of a missing resource for each version.
pub(super) fn read_error(uri: &str, error: &ReadError) -> ErrorData {
    let shown: String = uri.chars().take(MAX_URI).collect();
    let data = Some(json!({"uri": shown}));
    match error {
        ReadError::NotFound(why) => {
            ErrorData::resource_not_found(format!("Resource not found: {why}"), data)
        }
        ReadError::Failed(why) => ErrorData::internal_error(why.clone(), data),
    }
}

/// Converts a resource for a protocol version.
fn convert_resource(protocol: &McpVersion, entry: &ResourceEntry) -> Resource {
    let mut resource = Resource::new(entry.uri.to_string(), entry.name.clone())
        .with_description(entry.description.clone())
        .with_mime_type(entry.mime)
        .with_annotations(annotations(protocol, entry));
    let size = entry.size.filter(|_| protocol.supports_annotations());
    resource.size = size.map(|size| size as u64);
    resource.title = entry.title.clone().filter(|_| protocol.supports_titles());
    resource
}

fn annotations(protocol: &McpVersion, entry: &ResourceEntry) -> Annotations {
    let audience = if entry.for_people {
        vec![Role::User, Role::Assistant]
    } else {
        vec![Role::Assistant]
    };
    let mut annotations = Annotations::default().with_audience(audience);
    annotations.last_modified = entry
        .modified
        .clone()
        .filter(|_| protocol.supports_titles());
    annotations
}

/// Converts a page of resource templates for a protocol version.
pub(super) fn template_list(
    protocol: &McpVersion,
    page: Page<&'static TemplateDefinition>,
) -> ListResourceTemplatesResult {
    let templates = page
        .items
        .into_iter()
        .map(|template| convert_template(protocol, template));
    let mut list = ListResourceTemplatesResult::with_all_items(templates.collect());
    list.next_cursor = page.next;
    list.meta = protocol.result_meta();
    if protocol.is_stateless() {
        list = list.with_ttl_ms(CACHE_TTL_MS).with_cache_scope(CACHE_SCOPE);
    }
    list
}

fn convert_template(protocol: &McpVersion, template: &TemplateDefinition) -> ResourceTemplate {
    let converted = ResourceTemplate::new(template.pattern, template.name)
        .with_description(template.description)
        .with_mime_type(template.mime);
    if protocol.supports_titles() {
        converted.with_title(template.title)
    } else {
        converted
    }
}

fn read_result(protocol: &McpVersion, uri: &str, content: ResourceContent) -> ReadResourceResult {
    let contents = ResourceContents::text(content.text, uri).with_mime_type(content.mime);
    let mut result = ReadResourceResult::new(vec![contents]);
    result.meta = protocol.result_meta();
    if protocol.is_stateless() {
        let ttl = if content.is_final { CACHE_TTL_MS } else { 0 };
        result.ttl_ms = Some(ttl);
        result.cache_scope = Some(CACHE_SCOPE);
    }
    result
}
