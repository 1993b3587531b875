//! `codegen update` against a local HTTP server, and the scripts around it.

mod documents;
mod failures;
#[cfg(unix)]
mod scripts;
mod server;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use codegen::update::{UpdateError, UpdateOptions, UpdateReport, update};

use crate::support::{DesignCopy, copy_dir, repository};

/// A copy of everything that an update reads and writes.
pub struct Workspace {
    design: DesignCopy,
}

impl Workspace {
    /// Creates a copy in which one source, `websets`, has this address.
    pub fn new(url: &str) -> Self {
        let design = DesignCopy::new();
        for folder in ["generated", "codegen-snapshots"] {
            copy_dir(&repository().join(folder), &design.root().join(folder));
        }
        std::fs::copy(
            repository().join("README.md"),
            design.root().join("README.md"),
        )
        .unwrap();
        design.write(
            "UPSTREAM.toml",
            &format!(
                "prose = \"strip\"\n\n[[source]]\nname = \"websets\"\nurl = \"{url}\"\n\n\
                 [[source.spec]]\nfile = \"exa-websets-spec.yaml\"\n"
            ),
        );
        Self { design }
    }

    pub fn root(&self) -> &Path {
        self.design.root()
    }

    /// Replaces our wording by these actions.
    pub fn write_wording(&self, actions: &str) {
        let head = "overlay: 1.0.0\ninfo: {title: Wording, version: 1.0.0}\n";
        self.design
            .write("exa-websets-wording.yaml", &format!("{head}{actions}"));
    }

    pub fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.root().join("data-design").join(file)).unwrap()
    }

    pub fn options(&self) -> UpdateOptions {
        UpdateOptions {
            root: self.root().to_owned(),
            from: None,
            name: None,
            timeout: Duration::from_secs(5),
            accept_removals: false,
            today: "2026-11-18".to_owned(),
        }
    }

    pub fn update(&self) -> Result<UpdateReport, UpdateError> {
        update(&self.options())
    }

    /// Returns all files with their contents.
    pub fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = BTreeMap::new();
        collect(self.root(), &mut files);
        files
    }
}

fn collect(dir: &Path, files: &mut BTreeMap<PathBuf, Vec<u8>>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else {
            files.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
}

/// Returns the present Websets spec with texts, as upstream would serve it.
pub fn websets_spec() -> String {
    let file = repository().join("data-design/exa-websets-spec.yaml");
    let stripped = std::fs::read_to_string(file).unwrap();
    let mut spec = String::new();
    for line in stripped.lines() {
        spec.push_str(line);
        spec.push('\n');
        let methods = ["get:", "post:", "put:", "patch:", "delete:"];
        if line
            .strip_prefix("    ")
            .is_some_and(|key| methods.contains(&key))
        {
            spec.push_str("      summary: Upstream's summary\n");
            spec.push_str("      description: Upstream's description\n");
        }
    }
    spec
}
