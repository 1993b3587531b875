//! The skills extension: instructions for models, with the steps of common tasks.
//!
//! The files are those of the folder `skills`, which plugins contain too.

mod files;

use rmcp::model::{ErrorData, JsonObject, ReadResourceResult, Resource, ResourceContents};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::pagination::{PAGE_SIZE, Page, page};
use super::version::{CACHE_TTL_MS, McpVersion};
use files::{FILES, SkillFile};

/// The name of the extension.
pub(super) const EXTENSION_ID: &str = "io.modelcontextprotocol/skills";

const SCHEME: &str = "skill://";
const MANIFEST: &str = "SKILL.md";
const DIRECTORY: &str = "inode/directory";
const MARKDOWN: &str = "text/markdown";

/// The longest URI that is quoted in an error, in characters.
const MAX_URI: usize = 200;

/// A method of the extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SkillMethod {
    List,
    Get,
    ReadDirectory,
}

impl SkillMethod {
    pub(super) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "skills/list" => Self::List,
            "skills/get" => Self::Get,
            "resources/directory/read" => Self::ReadDirectory,
            _ => return None,
        })
    }

    /// Returns the result of a request.
    pub(super) fn serve(
        self,
        protocol: &McpVersion,
        params: Option<&Value>,
    ) -> Result<Value, ErrorData> {
        let text = |name: &str| match params.and_then(|params| params.get(name)) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(invalid(&format!("{name} must be a string"))),
        };
        let uri = || text("uri")?.ok_or_else(|| invalid("uri is missing"));
        let mut result = match self {
            Self::List => {
                let page = page(skills().collect(), text("cursor")?, PAGE_SIZE)?;
                paged("skills", page, entry)
            }
            Self::Get => json!({ "skill": entry(find_skill(uri()?)?) }),
            Self::ReadDirectory => {
                let page = page(children(uri()?)?, text("cursor")?, PAGE_SIZE)?;
                paged("resources", page, |child| json!(child))
            }
        };
        if let (true, Value::Object(result)) = (protocol.is_stateless(), &mut result) {
            result.insert("resultType".to_owned(), json!("complete"));
            result.insert("ttlMs".to_owned(), json!(CACHE_TTL_MS));
            // The files are the same for everybody.
            result.insert("cacheScope".to_owned(), json!("public"));
            result.insert("_meta".to_owned(), json!(protocol.result_meta()));
        }
        Ok(result)
    }
}

/// Returns the settings of the extension.
pub(super) fn settings() -> JsonObject {
    JsonObject::from_iter([("directoryRead".to_owned(), json!(true))])
}

/// Returns whether a URI is one of this extension.
pub(super) fn is_skill_uri(uri: &str) -> bool {
    uri.starts_with(SCHEME)
}

/// Returns the manifests as resources.
pub(super) fn resources(protocol: &McpVersion) -> impl Iterator<Item = Resource> {
    skills().map(|file| {
        let mut resource = file.resource();
        resource.size = resource.size.filter(|_| protocol.supports_annotations());
        resource
    })
}

/// Reads a file of a skill.
pub(super) fn read(protocol: &McpVersion, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let file = FILES.iter().find(|file| file.uri() == uri);
    let file = file.ok_or_else(|| {
        let hint = "Resource not found: no skill has this file; skills/list names all files";
        ErrorData::resource_not_found(hint, Some(json!({ "uri": shown(uri) })))
    })?;
    let contents = ResourceContents::text(file.content, uri).with_mime_type(MARKDOWN);
    let mut result = ReadResourceResult::new(vec![contents]);
    result.meta = protocol.result_meta();
    if protocol.is_stateless() {
        result.ttl_ms = Some(CACHE_TTL_MS);
        result.cache_scope = Some(rmcp::model::CacheScope::Public);
    }
    Ok(result)
}

impl SkillFile {
    fn uri(&self) -> String {
        format!("{SCHEME}{}/{}", self.skill, self.path)
    }

    fn is_manifest(&self) -> bool {
        self.path == MANIFEST
    }

    /// Returns the file as a resource. A manifest has the name and the description of its skill.
    fn resource(&self) -> Resource {
        let name = self.path.rsplit('/').next().unwrap_or(self.path);
        let mut resource = if self.is_manifest() {
            let fields = frontmatter(self.content);
            let field = |name: &str| {
                let value = fields.get(name).and_then(Value::as_str);
                value.unwrap_or_default().to_owned()
            };
            Resource::new(self.uri(), field("name")).with_description(field("description"))
        } else {
            Resource::new(self.uri(), name)
        };
        resource = resource.with_mime_type(MARKDOWN);
        resource.size = Some(self.content.len() as u64);
        resource
    }
}

/// Returns the manifests of all skills.
fn skills() -> impl Iterator<Item = &'static SkillFile> {
    FILES.iter().filter(|file| file.is_manifest())
}

fn find_skill(uri: &str) -> Result<&'static SkillFile, ErrorData> {
    let found = skills().find(|file| file.uri() == uri);
    found.ok_or_else(|| {
        let uri = shown(uri);
        invalid(&format!(
            "`{uri}` is not a skill; skills/list has all of them"
        ))
    })
}

/// Returns the entry of a skill, with the digests of its files.
fn entry(manifest: &SkillFile) -> Value {
    let files = FILES.iter().filter(|file| file.skill == manifest.skill);
    let resources = files.map(|file| {
        json!({
            "uri": file.uri(),
            "digest": format!("sha256:{}", digest(file.content)),
            "size": file.content.len(),
        })
    });
    json!({
        "uri": manifest.uri(),
        "frontmatter": frontmatter(manifest.content),
        "resources": resources.collect::<Vec<Value>>(),
    })
}

fn digest(content: &str) -> String {
    let digest = Sha256::digest(content.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the fields before the text. They are plain texts of one line each, which a test checks.
fn frontmatter(content: &str) -> Value {
    let fields = content.split("---\n").nth(1).unwrap_or_default().lines();
    let fields = fields.filter_map(|line| line.split_once(": "));
    let fields = fields.map(|(name, value)| (name.to_owned(), json!(value)));
    Value::Object(fields.collect())
}

/// Returns the files and directories directly in a directory.
fn children(uri: &str) -> Result<Vec<Resource>, ErrorData> {
    let directory = format!("{}/", uri.trim_end_matches('/'));
    let mut children: Vec<Resource> = Vec::new();
    for file in FILES {
        let uri = file.uri();
        let Some(rest) = uri.strip_prefix(&directory) else {
            continue;
        };
        let child = match rest.split_once('/') {
            None => file.resource(),
            Some((name, _)) => {
                Resource::new(format!("{directory}{name}"), name).with_mime_type(DIRECTORY)
            }
        };
        if !children.iter().any(|known| known.uri == child.uri) {
            children.push(child);
        }
    }
    if children.is_empty() || !is_skill_uri(&directory) || directory == format!("{SCHEME}/") {
        let uri = shown(uri);
        return Err(invalid(&format!("`{uri}` is not a directory of a skill")));
    }
    Ok(children)
}

fn paged<T>(name: &str, page: Page<T>, convert: impl Fn(T) -> Value) -> Value {
    let items: Vec<Value> = page.items.into_iter().map(convert).collect();
    let mut result = json!({ name: items });
    if let (Some(next), Value::Object(result)) = (page.next, &mut result) {
        result.insert("nextCursor".to_owned(), json!(next));
    }
    result
}

fn shown(uri: &str) -> String {
    uri.chars().take(MAX_URI).collect()
}

fn invalid(why: &str) -> ErrorData {
    ErrorData::invalid_params(format!("Invalid params: {why}"), None)
}

#[cfg(test)]
mod tests;
