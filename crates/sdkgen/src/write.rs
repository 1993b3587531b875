//! Writing a tree to a folder without touching what is not ours.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::{File, HEADER, Language, SdkError};

/// The header is in the first bytes of every file.
const LOOKED_AT: u64 = 256;

/// Writes files into `folder` in place of an earlier tree.
///
/// A folder that holds anything else is refused. With `force`, files are written beside what is
/// there, and nothing is removed.
pub fn write(
    folder: &Path,
    language: Language,
    files: &[File],
    force: bool,
) -> Result<(), SdkError> {
    if fs::symlink_metadata(folder).is_ok() && !folder.is_dir() {
        return Err(SdkError::NotAFolder(folder.to_owned()));
    }
    let earlier = match folder.is_dir() && !force {
        true => earlier_tree(folder, language)?,
        false => Vec::new(),
    };
    let paths: Vec<PathBuf> = files.iter().map(|file| folder.join(&file.path)).collect();
    for old in earlier.iter().filter(|old| !paths.contains(old)) {
        fs::remove_file(old).map_err(failed("remove", old))?;
    }
    for (path, file) in paths.iter().zip(files) {
        let parent = path.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(failed("make", parent))?;
        fs::write(path, &file.text).map_err(failed("write", path))?;
    }
    Ok(())
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> SdkError {
    let path = path.to_owned();
    move |error| SdkError::Io { doing, path, error }
}

/// The files of an earlier tree; anything else ends the search.
fn earlier_tree(folder: &Path, language: Language) -> Result<Vec<PathBuf>, SdkError> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).map_err(failed("read", &next))? {
            let path = entry.map_err(failed("read", &next))?.path();
            // A link is taken for what it is, not for what it leads to.
            let kind = fs::symlink_metadata(&path).map_err(failed("read", &path))?;
            if kind.is_dir() && !is_cache(&path) {
                folders.push(path);
            } else if kind.is_file() && is_ours(&path, language)? {
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

/// What Python leaves behind wherever it imports from.
fn is_cache(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == "__pycache__")
}

fn is_ours(path: &Path, language: Language) -> Result<bool, SdkError> {
    let endings: &[&str] = match language {
        // The compiler may have put its output beside the sources, with the header in it.
        Language::Typescript => &["ts", "js", "md"],
        Language::Python => &["py", "typed", "md"],
    };
    let ending = path.extension().and_then(|ending| ending.to_str());
    if !ending.is_some_and(|ending| endings.contains(&ending)) {
        return Ok(false);
    }
    let mut start = Vec::new();
    let file = fs::File::open(path).map_err(failed("read", path))?;
    let read = file.take(LOOKED_AT).read_to_end(&mut start);
    read.map_err(failed("read", path))?;
    Ok(String::from_utf8_lossy(&start).contains(HEADER))
}
