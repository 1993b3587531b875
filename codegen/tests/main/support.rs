//! Temporary copies of `data-design/` for tests.

use std::path::{Path, PathBuf};

use codegen::{GeneratedOutput, load};
use serde_json::Value;

/// Returns the root of the repository.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("..")
        .canonicalize()
        .unwrap()
}

/// A temporary folder with a copy of `data-design/`.
pub struct DesignCopy {
    pub dir: tempfile::TempDir,
}

impl DesignCopy {
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

    /// Changes a file as JSON, which is also valid YAML.
    pub fn edit(&self, file: &str, change: impl FnOnce(&mut Value)) {
        let dir = self.root().join("data-design");
        let mut root = load::load(&dir, file).unwrap().root;
        change(&mut root);
        std::fs::write(dir.join(file), root.to_string()).unwrap();
    }

    pub fn write(&self, file: &str, text: &str) {
        std::fs::write(self.root().join("data-design").join(file), text).unwrap();
    }

    pub fn generate(&self) -> codegen::Result<GeneratedOutput> {
        codegen::generate(self.root())
    }
}

/// Copies a folder recursively.
pub fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_dir(&path, &target)
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}

/// Returns the snapshot of an operation, with the definitions that it shares with others.
pub fn snapshot(output: &GeneratedOutput, operation: &str) -> Value {
    let name = format!("codegen-snapshots/operations/{operation}.json");
    let text = output
        .files
        .get(&name)
        .unwrap_or_else(|| panic!("{name} was not generated"));
    let mut snapshot: Value = serde_json::from_str(text).unwrap();
    for schema in ["inputSchema", "outputSchema", "streamSchema"] {
        let definitions = snapshot.get_mut(schema).and_then(|it| it.get_mut("$defs"));
        let definitions = definitions.and_then(Value::as_object_mut);
        for definition in definitions.into_iter().flat_map(|it| it.values_mut()) {
            let reference = definition.get("$ref").and_then(Value::as_str);
            let reference = reference.and_then(|it| it.strip_prefix("../"));
            if let Some((file, pointer)) = reference.and_then(|it| it.split_once('#')) {
                let text = &output.files[&format!("codegen-snapshots/{file}")];
                let file: Value = serde_json::from_str(text).unwrap();
                *definition = file.pointer(pointer).unwrap().clone();
            }
        }
    }
    snapshot
}
