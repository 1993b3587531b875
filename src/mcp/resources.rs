//! Resources as MCP shows them.

use rmcp::model::{
    Annotations, ErrorData, ListResourceTemplatesResult, ListResourcesResult, ReadResourceResult,
    Resource, ResourceContents, ResourceTemplate, Role,
};
use serde_json::json;

use super::{
    pages::{Page, unknown_cursor},
    version::{Era, FRESH_FOR, KEPT_BY},
};
use crate::tools::ResourceUri;
use crate::tools::resources::{
    ReadError, ResourceContent, ResourceEntry, ResourceTemplate as TemplateDefinition, Resources,
};
use exa_mcp_model::Identity;

/// How many resources one page holds.
const PAGE_SIZE: usize = 100;

/// The longest address that is repeated in an error, in characters.
const LONGEST_SHOWN: usize = 200;

/// A page of what can be read.
pub(super) async fn list(
    resources: &Resources,
    owner: &Identity,
    era: &Era,
    cursor: Option<&str>,
) -> Result<ListResourcesResult, ErrorData> {
    let leaf = resources.page(owner, cursor, PAGE_SIZE).await;
    let leaf = leaf.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let leaf = leaf.ok_or_else(unknown_cursor)?;
    let resources = leaf.entries.iter().map(|entry| era.resource(entry));
    let mut result = ListResourcesResult::with_all_items(resources.collect());
    result.next_cursor = leaf.next;
    result.meta = era.result_meta();
    if era.is_stateless() {
        // The next call may add to the list.
        result = result.with_ttl_ms(0).with_cache_scope(KEPT_BY);
    }
    Ok(result)
}

/// Reads one resource.
pub(super) async fn read(
    resources: &Resources,
    owner: &Identity,
    era: &Era,
    uri: &str,
) -> Result<ReadResourceResult, ErrorData> {
    let address = address(uri)?;
    match resources.read(owner, &address).await {
        Ok(content) => Ok(era.read_result(uri, content)),
        Err(error) => Err(unread(uri, &error)),
    }
}

/// The address that a client wrote.
pub(super) fn address(uri: &str) -> Result<ResourceUri, ErrorData> {
    ResourceUri::parse(uri).ok_or_else(|| {
        let hint = "its form is none of those in resources/templates/list";
        unread(uri, &ReadError::NotFound(hint.to_owned()))
    })
}

/// Why a resource was not read. rmcp gives the error for what is not there the code of the version.
pub(super) fn unread(uri: &str, error: &ReadError) -> ErrorData {
    let shown: String = uri.chars().take(LONGEST_SHOWN).collect();
    let data = Some(json!({"uri": shown}));
    match error {
        ReadError::NotFound(why) => {
            ErrorData::resource_not_found(format!("Resource not found: {why}"), data)
        }
        ReadError::Failed(why) => ErrorData::internal_error(why.clone(), data),
    }
}

impl Era {
    /// A resource as this version lists it.
    pub(super) fn resource(&self, entry: &ResourceEntry) -> Resource {
        let mut resource = Resource::new(entry.uri.to_string(), entry.name.clone())
            .with_description(entry.description.clone())
            .with_mime_type(entry.mime)
            .with_annotations(self.resource_annotations(entry));
        let size = entry.size.filter(|_| self.knows_annotations());
        resource.size = size.map(|size| size as u64);
        resource.title = entry.title.clone().filter(|_| self.knows_titles());
        resource
    }

    fn resource_annotations(&self, entry: &ResourceEntry) -> Annotations {
        let audience = match entry.for_people {
            true => vec![Role::User, Role::Assistant],
            false => vec![Role::Assistant],
        };
        let mut annotations = Annotations::default().with_audience(audience);
        annotations.last_modified = entry.modified.clone().filter(|_| self.knows_titles());
        annotations
    }

    /// A page of patterns of addresses.
    pub(super) fn template_list(
        &self,
        page: Page<&'static TemplateDefinition>,
    ) -> ListResourceTemplatesResult {
        let templates = page
            .items
            .into_iter()
            .map(|template| self.template(template));
        let mut list = ListResourceTemplatesResult::with_all_items(templates.collect());
        list.next_cursor = page.next;
        list.meta = self.result_meta();
        if self.is_stateless() {
            list = list.with_ttl_ms(FRESH_FOR).with_cache_scope(KEPT_BY);
        }
        list
    }

    fn template(&self, template: &TemplateDefinition) -> ResourceTemplate {
        let shown = ResourceTemplate::new(template.pattern, template.name)
            .with_description(template.description)
            .with_mime_type(template.mime);
        match self.knows_titles() {
            true => shown.with_title(template.title),
            false => shown,
        }
    }

    fn read_result(&self, uri: &str, content: ResourceContent) -> ReadResourceResult {
        let contents = ResourceContents::text(content.text, uri).with_mime_type(content.mime);
        let mut result = ReadResourceResult::new(vec![contents]);
        result.meta = self.result_meta();
        if self.is_stateless() {
            let fresh_for = if content.is_final { FRESH_FOR } else { 0 };
            result.ttl_ms = Some(fresh_for);
            result.cache_scope = Some(KEPT_BY);
        }
        result
    }
}
