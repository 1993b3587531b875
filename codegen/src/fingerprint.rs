//! A fast fingerprint of folders, shared by the generator and the build script.
//!
//! It detects changed files but is not cryptographic: it does not detect deliberate tampering.

use std::path::{Path, PathBuf};

/// The file in `generated/` that contains the fingerprints.
pub const FILE: &str = "FINGERPRINT";

/// The only file in `generated/` that is not generated.
pub const MANIFEST: &str = "Cargo.toml";

/// Files in `data-design/` that record where the specs come from; the generator does not read them.
const RECORDS: &[&str] = &["UPSTREAM.toml", "upstream.lock"];

/// Returns the fingerprint of the files below `dir` that matter to the generator, except [`FILE`] and
/// [`MANIFEST`].
///
/// It covers names and contents but not line endings.
pub fn of_dir(dir: &Path) -> std::io::Result<String> {
    let mut files = Vec::new();
    list_files(dir, dir, &mut files)?;
    files.sort();
    let mut hash = FileHash::default();
    files.retain(|name| name != FILE && name != MANIFEST && !RECORDS.contains(&name.as_str()));
    for name in &files {
        hash.add(name, &std::fs::read(dir.join(name))?);
    }
    Ok(hash.finish())
}

fn list_files(base: &Path, dir: &Path, files: &mut Vec<String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path: PathBuf = entry?.path();
        if path.is_dir() {
            list_files(base, &path, files)?;
        } else if let Ok(relative) = path.strip_prefix(base) {
            files.push(relative.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(())
}

/// A 64-bit FNV-1a hash of file names and contents.
pub struct FileHash(u64);

impl Default for FileHash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl FileHash {
    /// Adds one file.
    pub fn add(&mut self, name: &str, content: &[u8]) {
        let separator = [0u8];
        let content = content.iter().filter(|byte| **byte != b'\r');
        let bytes = name
            .as_bytes()
            .iter()
            .chain(&separator)
            .chain(content)
            .chain(&separator);
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Returns the hash as hexadecimal text.
    pub fn finish(&self) -> String {
        format!("{:016x}", self.0)
    }
}

/// Returns the contents of [`FILE`].
pub fn file_contents(inputs: &str, outputs: &str) -> String {
    format!("data-design {inputs}\ngenerated {outputs}\n")
}
