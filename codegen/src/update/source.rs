//! Decides which sources are updated and where their documents are read.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::UpdateError;
use super::http::{self, FetchOutcome, MAX_BYTES};
use super::manifest::{Manifest, Source, last_segment};

/// Where the document of a source is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceLocation {
    /// The address of the source, whose `ETag` is recorded.
    Upstream(String),
    /// Another address.
    Url(String),
    /// A file.
    File(PathBuf),
}

impl SourceLocation {
    /// Reads the document. A document with the recorded `ETag` is not sent again.
    pub fn read(&self, etag: Option<&str>, timeout: Duration) -> Result<FetchOutcome, UpdateError> {
        match self {
            Self::Upstream(url) => http::fetch(url, etag, timeout),
            Self::Url(url) => match http::fetch(url, None, timeout)? {
                // The `ETag` of another server says nothing about upstream.
                FetchOutcome::Document { bytes, .. } => {
                    Ok(FetchOutcome::Document { bytes, etag: None })
                }
                unchanged @ FetchOutcome::NotModified => Ok(unchanged),
            },
            Self::File(path) => read_file(path),
        }
    }
}

impl std::fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Upstream(url) | Self::Url(url) => f.write_str(url),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

fn read_file(path: &Path) -> Result<FetchOutcome, UpdateError> {
    let metadata = std::fs::metadata(path).map_err(UpdateError::reading(path))?;
    if metadata.len() > MAX_BYTES {
        return Err(UpdateError::TooLarge {
            location: path.display().to_string(),
            limit: MAX_BYTES,
        });
    }
    let bytes = std::fs::read(path).map_err(UpdateError::reading(path))?;
    Ok(FetchOutcome::Document { bytes, etag: None })
}

/// Returns the sources to update with their locations.
///
/// `from` is a file, a folder with files of the served names, a URL of one document, or the URL of
/// a folder, which ends in `/`. `name` limits the update to one source.
pub fn select(
    manifest: &Manifest,
    from: Option<&str>,
    name: Option<&str>,
) -> Result<Vec<(Source, SourceLocation)>, UpdateError> {
    let named = name.map(|name| find(manifest, name)).transpose()?;
    let selected = match from {
        None => from_upstream(manifest, named)?,
        Some(from) if from.starts_with("http://") || from.starts_with("https://") => {
            from_url(manifest, from, named)?
        }
        Some(from) if Path::new(from).is_dir() => from_folder(manifest, Path::new(from), named)?,
        Some(from) => {
            let file_name = Path::new(from).file_name().unwrap_or_default();
            let source = match named {
                Some(source) => source,
                None => serving(manifest, &file_name.to_string_lossy(), from)?,
            };
            vec![(source, SourceLocation::File(from.into()))]
        }
    };
    check_distinct(manifest, &selected)?;
    let owned = selected.into_iter();
    Ok(owned.map(|(s, location)| (s.clone(), location)).collect())
}

type Selection<'a> = Vec<(&'a Source, SourceLocation)>;

fn from_upstream<'a>(
    manifest: &'a Manifest,
    named: Option<&'a Source>,
) -> Result<Selection<'a>, UpdateError> {
    if let Some(source) = named {
        let Some(url) = &source.url else {
            return Err(unclear(
                manifest,
                format!("source `{}` has no `url`; use --from", source.name),
            ));
        };
        return Ok(vec![(source, SourceLocation::Upstream(url.clone()))]);
    }
    let with_url = manifest.sources.iter().filter_map(|source| {
        let url = source.url.clone()?;
        Some((source, SourceLocation::Upstream(url)))
    });
    Ok(with_url.collect())
}

fn from_url<'a>(
    manifest: &'a Manifest,
    url: &str,
    named: Option<&'a Source>,
) -> Result<Selection<'a>, UpdateError> {
    if !url.ends_with('/') {
        let source = match named {
            Some(source) => source,
            None => serving(manifest, &last_segment(url).unwrap_or_default(), url)?,
        };
        return Ok(vec![(source, SourceLocation::Url(url.to_owned()))]);
    }
    let chosen = manifest.sources.iter().filter(|source| match named {
        Some(named) => named.name == source.name,
        None => source.url.is_some(),
    });
    let served = chosen.filter_map(|source| {
        let name = source.served_names().into_iter().next()?;
        Some((source, SourceLocation::Url(format!("{url}{name}"))))
    });
    Ok(served.collect())
}

fn from_folder<'a>(
    manifest: &'a Manifest,
    folder: &Path,
    named: Option<&'a Source>,
) -> Result<Selection<'a>, UpdateError> {
    let mut selected = Vec::new();
    let mut expected = Vec::new();
    for source in &manifest.sources {
        if named.is_some_and(|named| named.name != source.name) {
            continue;
        }
        let names = source.served_names();
        let present = names.iter().map(|name| folder.join(name));
        if let Some(path) = present.into_iter().find(|path| path.is_file()) {
            selected.push((source, SourceLocation::File(path)));
        }
        expected.extend(names.into_iter().take(1));
    }
    if selected.is_empty() {
        return Err(unclear(
            manifest,
            format!(
                "{} contains none of the expected files: {}",
                folder.display(),
                expected.join(", ")
            ),
        ));
    }
    Ok(selected)
}

fn find<'a>(manifest: &'a Manifest, name: &str) -> Result<&'a Source, UpdateError> {
    let found = manifest.sources.iter().find(|source| source.name == name);
    found.ok_or_else(|| unclear(manifest, format!("there is no source `{name}`")))
}

/// Returns the source that serves a file of this name.
fn serving<'a>(
    manifest: &'a Manifest,
    file_name: &str,
    from: &str,
) -> Result<&'a Source, UpdateError> {
    let mut serving = manifest
        .sources
        .iter()
        .filter(|source| source.served_names().iter().any(|name| name == file_name));
    match (serving.next(), serving.next()) {
        (Some(source), None) => Ok(source),
        _ => Err(unclear(
            manifest,
            format!("name the source that {from} is a document of, as the last argument"),
        )),
    }
}

/// Fails if two documents would become the same spec.
fn check_distinct(manifest: &Manifest, selected: &Selection<'_>) -> Result<(), UpdateError> {
    let mut writers: Vec<(&str, &str)> = Vec::new();
    for (source, _) in selected {
        for spec in &source.specs {
            let earlier = writers.iter().find(|(file, _)| *file == spec.file);
            if let Some((file, first)) = earlier {
                return Err(unclear(
                    manifest,
                    format!(
                        "`{first}` and `{}` both become {file}; name one",
                        source.name
                    ),
                ));
            }
            writers.push((&spec.file, &source.name));
        }
    }
    Ok(())
}

fn unclear(manifest: &Manifest, message: String) -> UpdateError {
    UpdateError::Source {
        message,
        known: manifest.names(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn manifest() -> Manifest {
        Manifest::parse(
            r#"
prose = "strip"
[[source]]
name = "public"
url = "https://example.com/docs/exa-spec.yaml"
spec = [{ file = "exa-websets-spec.yaml", path_prefix = "/v0/" }, { file = "exa-search-spec.yaml" }]
[[source]]
name = "team"
url = "https://example.com/docs/team-spec.yaml"
spec = [{ file = "exa-team-spec.yaml" }]
[[source]]
name = "websets"
spec = [{ file = "exa-websets-spec.yaml" }]
"#,
        )
        .unwrap()
    }

    fn names(from: Option<&str>, name: Option<&str>) -> Result<Vec<String>, String> {
        let selected = select(&manifest(), from, name).map_err(|error| error.to_string())?;
        let described = selected
            .iter()
            .map(|(s, place)| format!("{} {place}", s.name));
        Ok(described.collect())
    }

    #[test]
    fn sources_without_an_address_are_read_on_demand_only() {
        let all = names(None, None).unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(
            names(None, Some("team")).unwrap(),
            ["team https://example.com/docs/team-spec.yaml"]
        );
        assert!(names(None, Some("websets")).unwrap_err().contains("--from"));
        let unknown = names(None, Some("x")).unwrap_err();
        assert!(unknown.contains("public, team, websets"), "{unknown}");
    }

    #[test]
    fn a_url_is_one_document_or_a_folder() {
        assert_eq!(
            names(Some("http://h/exa-spec.json"), None).unwrap(),
            ["public http://h/exa-spec.json"]
        );
        assert!(names(Some("http://h/other.yaml"), None).is_err());
        assert_eq!(
            names(Some("http://h/other.yaml"), Some("websets")).unwrap(),
            ["websets http://h/other.yaml"]
        );
        assert_eq!(
            names(Some("http://h/x/"), None).unwrap(),
            [
                "public http://h/x/exa-spec.yaml",
                "team http://h/x/team-spec.yaml"
            ]
        );
    }

    #[test]
    fn a_folder_contains_files_of_the_served_names() {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().to_str().unwrap();
        let error = names(Some(from), None).unwrap_err();
        assert!(error.contains("exa-spec.yaml"), "{error}");
        std::fs::write(dir.path().join("exa-spec.json"), "").unwrap();
        assert_eq!(names(Some(from), None).unwrap().len(), 1);
        std::fs::write(dir.path().join("exa-websets-spec.yaml"), "").unwrap();
        let error = names(Some(from), None).unwrap_err();
        assert!(
            error.contains("both become exa-websets-spec.yaml"),
            "{error}"
        );
        assert_eq!(names(Some(from), Some("websets")).unwrap().len(), 1);
    }
}
