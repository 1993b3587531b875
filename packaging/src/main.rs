//! Writes the files of all distribution channels from `packaging/manifest.toml`.
//!
//! `write` writes them, `check` names those that are out of date.

mod catalogs;
mod channels;
mod links;
mod manifest;
mod npm;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use manifest::Manifest;

/// A file that is written from the manifest.
struct GeneratedFile {
    path: PathBuf,
    content: String,
}

#[derive(Debug, thiserror::Error)]
enum PackagingError {
    #[error("cannot read {path}: {source}")]
    Read {
        path: String,
        source: std::io::Error,
    },
    #[error("cannot write {path}: {source}")]
    Write {
        path: String,
        source: std::io::Error,
    },
    #[error("packaging/manifest.toml is not valid: {0}")]
    Manifest(#[from] toml::de::Error),
    #[error(
        "packaging/manifest.toml has version {manifest}, but Cargo.toml has {workspace}: change both"
    )]
    Version { manifest: String, workspace: String },
    #[error("Cargo.toml is not valid: {0}")]
    Workspace(toml::de::Error),
    #[error("{path} has no lines `{start}` and `{end}` to write between")]
    Markers {
        path: String,
        start: String,
        end: String,
    },
    #[error("out of date: {}; run `cargo run -p exa-mcp-packaging -- write`", .0.join(", "))]
    OutOfDate(Vec<String>),
    #[error("not written from the manifest any more: {}; delete them", .0.join(", "))]
    Leftover(Vec<String>),
    #[error("unknown arguments; usage: packaging (write | check) [FOLDER]")]
    Usage,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let result = match arguments.as_slice() {
        ["write"] => write(&root),
        ["check"] => check(&root),
        ["write", folder] => write(Path::new(folder)),
        ["check", folder] => check(Path::new(folder)),
        _ => Err(PackagingError::Usage),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error @ PackagingError::Usage) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write(root: &Path) -> Result<(), PackagingError> {
    for file in files(root)? {
        let path = root.join(&file.path);
        let failed = |source| PackagingError::Write {
            path: file.path.display().to_string(),
            source,
        };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(failed)?;
        }
        fs::write(&path, &file.content).map_err(failed)?;
    }
    Ok(())
}

fn check(root: &Path) -> Result<(), PackagingError> {
    let files = files(root)?;
    let leftovers = leftovers(root, &files)?;
    if !leftovers.is_empty() {
        return Err(PackagingError::Leftover(leftovers));
    }
    let outdated: Vec<String> = files
        .into_iter()
        .filter(|file| {
            fs::read_to_string(root.join(&file.path)).ok().as_ref() != Some(&file.content)
        })
        .map(|file| file.path.display().to_string())
        .collect();
    if outdated.is_empty() {
        Ok(())
    } else {
        Err(PackagingError::OutOfDate(outdated))
    }
}

/// Returns the folders of platforms that are no targets any more.
fn leftovers(root: &Path, files: &[GeneratedFile]) -> Result<Vec<String>, PackagingError> {
    let mut leftovers = Vec::new();
    for parent in ["packaging/npm", "packaging/mcpb"] {
        let failed = |source| PackagingError::Read {
            path: parent.to_owned(),
            source,
        };
        for entry in fs::read_dir(root.join(parent)).map_err(failed)? {
            let folder = Path::new(parent).join(entry.map_err(failed)?.file_name());
            if !files.iter().any(|file| file.path.starts_with(&folder)) {
                leftovers.push(folder.display().to_string());
            }
        }
    }
    leftovers.sort();
    Ok(leftovers)
}

/// Returns all generated files with the content they should have.
fn files(root: &Path) -> Result<Vec<GeneratedFile>, PackagingError> {
    let manifest: Manifest = toml::from_str(&read(root, "packaging/manifest.toml")?)?;
    check_version(root, &manifest)?;
    let mut files = npm::files(&manifest);
    files.extend(channels::files(&manifest));
    files.push(catalogs::formula(&manifest));
    files.push(catalogs::docker_entry(&manifest));
    files.push(links::readme(&manifest, &read(root, "README.md")?)?);
    Ok(files)
}

/// Checks that the packages have the version of the program.
fn check_version(root: &Path, manifest: &Manifest) -> Result<(), PackagingError> {
    let workspace: toml::Table =
        toml::from_str(&read(root, "Cargo.toml")?).map_err(PackagingError::Workspace)?;
    let version = workspace
        .get("workspace")
        .and_then(|found| found.get("package"));
    let version = version
        .and_then(|found| found.get("version"))
        .and_then(toml::Value::as_str)
        .unwrap_or("none");
    if version == manifest.version {
        return Ok(());
    }
    Err(PackagingError::Version {
        manifest: manifest.version.clone(),
        workspace: version.to_owned(),
    })
}

fn read(root: &Path, path: &str) -> Result<String, PackagingError> {
    fs::read_to_string(root.join(path)).map_err(|source| PackagingError::Read {
        path: path.to_owned(),
        source,
    })
}

/// Returns a JSON document as a file.
fn json(path: impl Into<PathBuf>, value: &serde_json::Value) -> GeneratedFile {
    GeneratedFile {
        path: path.into(),
        content: format!("{value:#}\n"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    /// Returns a folder with what is read and written.
    fn copy() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("packaging")).unwrap();
        for path in ["packaging/manifest.toml", "Cargo.toml", "README.md"] {
            fs::copy(root().join(path), folder.path().join(path)).unwrap();
        }
        write(folder.path()).unwrap();
        check(folder.path()).unwrap();
        folder
    }

    #[test]
    fn every_file_is_checked() {
        let folder = copy();
        for file in files(&root()).unwrap() {
            let path = folder.path().join(&file.path);
            fs::write(&path, file.content.replacen("exa", "other", 1)).unwrap();
            // The rest of the README is written by hand.
            if file.path == Path::new("README.md") {
                let link = file.content.replacen("name=exa", "name=other", 1);
                fs::write(&path, link).unwrap();
            }
            let expected = format!("out of date: {};", file.path.display());
            let error = check(folder.path()).unwrap_err().to_string();
            assert!(error.contains(&expected), "{expected} {error}");
            fs::write(&path, file.content).unwrap();
        }
    }

    #[test]
    fn changes_of_the_manifest_are_noticed() {
        let folder = copy();
        let path = folder.path().join("packaging/manifest.toml");
        let text = fs::read_to_string(&path).unwrap();
        let outdated = |text: String| {
            fs::write(&path, text).unwrap();
            check(folder.path()).unwrap_err().to_string()
        };
        let variable = outdated(text.replace("\"EXA_API_KEY\"", "\"EXA_KEY\""));
        for file in [
            "server.json",
            "mcpb/win32-x64",
            "gemini-extension.json",
            "README.md",
        ] {
            assert!(variable.contains(file), "{variable}");
        }
        let (_, version) = text.split_once("\nversion = ").unwrap();
        let (version, _) = version.split_once('\n').unwrap();
        let version = outdated(text.replace(version, "\"99.0.0\""));
        assert!(version.contains("99.0.0, but Cargo.toml has"), "{version}");
        let (fewer, _) = text.rsplit_once("[[target]]").unwrap();
        let leftover = outdated(fewer.to_owned());
        assert!(leftover.contains("packaging/npm/win32-x64"), "{leftover}");
        assert!(leftover.contains("packaging/mcpb/win32-x64"), "{leftover}");
    }
}
