//! The build script of the crate in `generated/`, which it guards: an ordinary build compares fingerprints, `--features codegen` regenerates.

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
    if let Err(error) = regenerate(root, check).and_then(|()| guard(root)) {
        // One line for each line: cargo cuts a message at its first line end.
        error
            .lines()
            .for_each(|line| println!("cargo::error={line}"));
    }
}

/// Compares the fingerprints of the specs and of the generated code with those written down.
fn guard(root: &Path) -> Result<(), String> {
    let of = |folder: &str| fingerprint::of_dir(&root.join(folder)).unwrap_or_default();
    let now = fingerprint::line(&of("data-design"), &of("generated"));
    let then = std::fs::read_to_string(root.join("generated").join(fingerprint::FILE));
    match then.is_ok_and(|then| then.replace('\r', "") == now) {
        true => Ok(()),
        false => Err(format!(
            "generated/ does not belong to data-design/ any more; run `{COMMAND}`"
        )),
    }
}

#[cfg(feature = "codegen")]
fn regenerate(root: &Path, check: bool) -> Result<(), String> {
    println!("cargo::rerun-if-changed=../codegen-snapshots");
    let output = codegen::generate(root).map_err(|error| error.to_string())?;
    for notice in &output.notices {
        println!("cargo::warning={notice}");
    }
    match check {
        true => output.compare(root).map_err(|error| error.to_string()),
        false => output
            .write(root)
            .map(drop)
            .map_err(|error| error.to_string()),
    }
}

#[cfg(not(feature = "codegen"))]
fn regenerate(_root: &Path, check: bool) -> Result<(), String> {
    match check {
        true => Err(format!(
            "EXA_CODEGEN=check needs the generator; run `EXA_CODEGEN=check {COMMAND}`"
        )),
        false => Ok(()),
    }
}
