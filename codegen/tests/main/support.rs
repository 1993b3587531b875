//! Copies of `data-design/` that a test may change.

use std::path::{Path, PathBuf};

use codegen::{Output, load};
use serde_json::Value;

/// The repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .unwrap()
}

/// A folder with a copy of `data-design/`.
pub struct Copy {
    pub dir: tempfile::TempDir,
}

impl Copy {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        copy_dir(
            &repository().join("data-design"),
            &dir.path().join("data-design"),
        );
        Self { dir }
    }

    pub fn root(&self) -> &Path {
        self.dir.path()
    }

    /// Changes a file through its JSON form; JSON is YAML, so it is written as that.
    pub fn edit(&self, file: &str, change: impl FnOnce(&mut Value)) {
        let dir = self.root().join("data-design");
        let mut root = load::load(&dir, file).unwrap().root;
        change(&mut root);
        std::fs::write(dir.join(file), root.to_string()).unwrap();
    }

    pub fn write(&self, file: &str, text: &str) {
        std::fs::write(self.root().join("data-design").join(file), text).unwrap();
    }

    pub fn generate(&self) -> codegen::Result<Output> {
        codegen::generate(self.root())
    }
}

/// Copies a folder with everything in it.
pub fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true => copy_dir(&path, &target),
            false => drop(std::fs::copy(&path, &target).unwrap()),
        }
    }
}

/// The snapshot of an operation in an output.
pub fn snapshot(output: &Output, operation: &str) -> Value {
    let name = format!("codegen-snapshots/operations/{operation}.json");
    let text = output
        .files
        .get(&name)
        .unwrap_or_else(|| panic!("no {name}"));
    serde_json::from_str(text).unwrap()
}
