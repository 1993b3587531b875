//! Writes a package to a folder without touching other files.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{HEADER, Language, SdkError, SdkFile};

/// The header is within the first bytes of every generated file.
const HEADER_BYTES: u64 = 256;

/// Writes files into `folder` and removes those of an earlier package.
///
/// With `force`, existing files that are not part of the package stay untouched.
///
/// # Errors
/// The folder contains other files and `force` is not set, or reading or writing fails.
pub fn write(
    folder: &Path,
    language: Language,
    files: &[SdkFile],
    force: bool,
) -> Result<(), SdkError> {
    if fs::symlink_metadata(folder).is_ok() && !folder.is_dir() {
        return Err(SdkError::NotAFolder(folder.to_owned()));
    }
    let earlier = if folder.is_dir() && !force {
        generated_files(folder, language)?
    } else {
        Vec::new()
    };
    let paths: Vec<PathBuf> = files.iter().map(|file| folder.join(&file.path)).collect();
    for old in earlier.iter().filter(|old| !paths.contains(old)) {
        fs::remove_file(old).map_err(failed("remove", old))?;
    }
    for (path, file) in paths.iter().zip(files) {
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(failed("create", parent))?;
        fs::write(path, &file.text).map_err(failed("write", path))?;
    }
    Ok(())
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> SdkError {
    let path = path.to_owned();
    move |error| SdkError::Io {
        action,
        path,
        error,
    }
}

/// Returns the files of an earlier package.
///
/// # Errors
/// The folder contains any other file.
fn generated_files(folder: &Path, language: Language) -> Result<Vec<PathBuf>, SdkError> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).map_err(failed("read", &next))? {
            let path = entry.map_err(failed("read", &next))?.path();
            // Symbolic links are not followed.
            let kind = fs::symlink_metadata(&path).map_err(failed("read", &path))?;
            if kind.is_dir() && !is_cache(&path) {
                folders.push(path);
            } else if kind.is_file() && is_generated(&path, language)? {
                found.push(path);
            } else if !kind.is_dir() {
                let inside = path.strip_prefix(folder).unwrap_or(&path);
                return Err(SdkError::Occupied {
                    folder: folder.to_owned(),
                    found: inside.display().to_string(),
                });
            }
        }
    }
    Ok(found)
}

/// Returns whether a folder is a bytecode cache of Python.
fn is_cache(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "__pycache__")
}

fn is_generated(path: &Path, language: Language) -> Result<bool, SdkError> {
    let extensions: &[&str] = match language {
        // The compiler may have written its output, header included, next to the sources.
        Language::Typescript => &["ts", "js", "md"],
        Language::Python => &["py", "typed", "md"],
    };
    let extension = path.extension().and_then(|extension| extension.to_str());
    if !extension.is_some_and(|extension| extensions.contains(&extension)) {
        return Ok(false);
    }
    let mut start = Vec::new();
    let file = fs::File::open(path).map_err(failed("read", path))?;
    let read = file.take(HEADER_BYTES).read_to_end(&mut start);
    read.map_err(failed("read", path))?;
    Ok(String::from_utf8_lossy(&start).contains(HEADER))
}
