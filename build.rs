//! The build script of the crate in `generated/`.
//!
//! An ordinary build checks that the generated code is up to date, by comparing fingerprints. With
//! `--features codegen` it regenerates the code.

use std::path::{Path, PathBuf};

#[path = "codegen/src/fingerprint.rs"]
#[allow(dead_code, unreachable_pub)]
mod fingerprint;

const COMMAND: &str = "cargo build --features codegen";

fn main() {
    for input in ["data-design", "generated", "codegen/src/fingerprint.rs"] {
        println!("cargo::rerun-if-changed=../{input}");
    }
    println!("cargo::rerun-if-env-changed=EXA_CODEGEN");
    let manifest_dir = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let root = manifest_dir.parent().unwrap_or(&manifest_dir);
    let check = std::env::var("EXA_CODEGEN").is_ok_and(|value| value == "check");
    if let Err(error) = regenerate(root, check).and_then(|()| check_fingerprint(root)) {
        // One directive per line, because cargo truncates a message at its first line break.
        error
            .lines()
            .for_each(|line| println!("cargo::error={line}"));
    }
}

/// Compares the fingerprints of the specs and of the generated code with the recorded ones.
fn check_fingerprint(root: &Path) -> Result<(), String> {
    let hash_of = |folder: &str| fingerprint::of_dir(&root.join(folder)).unwrap_or_default();
    let current = fingerprint::file_contents(&hash_of("data-design"), &hash_of("generated"));
    let recorded = std::fs::read_to_string(root.join("generated").join(fingerprint::FILE));
    if recorded.is_ok_and(|recorded| recorded.replace('\r', "") == current) {
        Ok(())
    } else {
        Err(format!(
            "generated/ is out of date with data-design/; run `{COMMAND}`"
        ))
    }
}

#[cfg(feature = "codegen")]
fn regenerate(root: &Path, check: bool) -> Result<(), String> {
    for output in ["codegen-snapshots", "README.md", "docs"] {
        println!("cargo::rerun-if-changed=../{output}");
    }
    let output = codegen::generate(root).map_err(|error| error.to_string())?;
    for notice in &output.notices {
        println!("cargo::warning={notice}");
    }
    let result = if check {
        output.compare(root)
    } else {
        output.write(root).map(drop)
    };
    result.map_err(|error| error.to_string())
}

#[cfg(not(feature = "codegen"))]
fn regenerate(_root: &Path, check: bool) -> Result<(), String> {
    if check {
        return Err(format!(
            "EXA_CODEGEN=check needs the generator; run `EXA_CODEGEN=check {COMMAND}`"
        ));
    }
    Ok(())
}
