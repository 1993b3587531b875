//! A cheap fingerprint of folders, shared by the generator and the build script.
//!
//! It tells whether files changed; it is no protection against someone who wants to deceive.

use std::path::{Path, PathBuf};

/// The file in `generated/` that holds the fingerprints.
pub const FILE: &str = "FINGERPRINT";

/// The one file in `generated/` that is not generated.
pub const MANIFEST: &str = "Cargo.toml";

/// Fingerprint of all files below `dir` but [`FILE`] and [`MANIFEST`]; names and contents count, line ends do not.
pub fn of_dir(dir: &Path) -> std::io::Result<String> {
    let mut files = Vec::new();
    list(dir, dir, &mut files)?;
    files.sort();
    let mut hash = Hash::default();
    files.retain(|name| name != FILE && name != MANIFEST);
    for name in &files {
        hash.add(name, &std::fs::read(dir.join(name))?);
    }
    Ok(hash.finish())
}

fn list(base: &Path, dir: &Path, files: &mut Vec<String>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let path: PathBuf = entry?.path();
        if path.is_dir() {
            list(base, &path, files)?;
        } else if let Ok(relative) = path.strip_prefix(base) {
            files.push(relative.to_string_lossy().replace('\\', "/"));
        }
    }
    Ok(())
}

/// 64-bit FNV-1a over names and contents.
pub struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
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

    /// The hash as text.
    pub fn finish(&self) -> String {
        format!("{:016x}", self.0)
    }
}

/// The two lines of [`FILE`].
pub fn line(inputs: &str, outputs: &str) -> String {
    format!("data-design {inputs}\ngenerated {outputs}\n")
}
