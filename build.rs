//! Guards `generated/`: an ordinary build compares fingerprints, `--features codegen` regenerates.

use std::path::Path;

#[path = "codegen/src/fingerprint.rs"]
#[allow(dead_code, unreachable_pub)]
mod fingerprint;

const COMMAND: &str = "cargo build --features codegen";

/// The part of gcc's runtime that unwinds, as a static library.
const UNWINDER: &str = "libgcc_eh.a";

/// The variable that asks for a program that lies at another address with every start.
const RELOCATABLE: &str = "EXA_MCP_PIE";

/// The variable that asks for a program that still has the names of its functions.
const SYMBOLS: &str = "EXA_MCP_SYMBOLS";

/// The functions that are really run, for the linker; written by `scripts/order`.
const FIRST: &str = "link/first.ld";

fn main() {
    for input in [
        "data-design",
        "generated",
        "codegen/src/fingerprint.rs",
        FIRST,
    ] {
        println!("cargo::rerun-if-changed={input}");
    }
    println!("cargo::rerun-if-env-changed=EXA_CODEGEN");
    let root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default();
    ease_loading(Path::new(&root));
    let check = std::env::var("EXA_CODEGEN").is_ok_and(|value| value == "check");
    if let Err(error) = regenerate(Path::new(&root), check).and_then(|()| guard(Path::new(&root))) {
        // One line for each line: cargo cuts a message at its first line end.
        error
            .lines()
            .for_each(|line| println!("cargo::error={line}"));
    }
}

/// Leaves the loader less to do: nearly half of the time until the first answer is its work.
fn ease_loading(root: &Path) {
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    if !is("CARGO_CFG_TARGET_OS", "linux") || !is("CARGO_CFG_TARGET_ENV", "gnu") {
        return;
    }
    println!("cargo::rerun-if-env-changed={RELOCATABLE}");
    let fixed = is("PROFILE", "release") && std::env::var_os(RELOCATABLE).is_none();
    // At a fixed address nothing is relocated at all. Where that is not wanted, the list is packed, which
    // the loader of glibc understands since 2.36; other loaders are left alone.
    println!(
        "cargo::rustc-link-arg-bins={}",
        match fixed {
            true => "-no-pie",
            false => "-Wl,-z,pack-relative-relocs",
        }
    );
    println!("cargo::rerun-if-env-changed={SYMBOLS}");
    if is("PROFILE", "release") && std::env::var_os(SYMBOLS).is_none() {
        println!("cargo::rustc-link-arg-bins=-Wl,--strip-all");
    }
    // Nearly every page has a function that is run; with those together a third of the pages are needed.
    if is("PROFILE", "release") && takes_scripts() {
        let list = root.join(FIRST);
        println!("cargo::rustc-link-arg-bins=-Wl,-T,{}", list.display());
    }
    // What unwinds a panic becomes a part of the program: a library less to find, map and relocate.
    // Named before the shared one, which the linker then leaves out as unneeded.
    if linker_has(UNWINDER) {
        println!("cargo::rustc-link-lib=dylib:+verbatim={UNWINDER}");
    }
}

/// Whether the linker takes a part of a script: that of Rust and GNU's do, which are used unless someone
/// chose another one.
fn takes_scripts() -> bool {
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let chosen = ["linker", "fuse-ld"]
        .iter()
        .any(|part| flags.contains(part));
    !chosen && std::env::var_os("RUSTC_LINKER").is_none()
}

/// Whether the linker knows where this library is; not every stand-in for gcc brings it along.
fn linker_has(library: &str) -> bool {
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    let linker = std::env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let asked = std::process::Command::new(linker)
        .arg(format!("-print-file-name={library}"))
        .output();
    asked.is_ok_and(|answer| {
        let path = String::from_utf8_lossy(&answer.stdout);
        // A library that is not found is answered with its bare name.
        Path::new(path.trim()).is_absolute() && Path::new(path.trim()).is_file()
    })
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
    println!("cargo::rerun-if-changed=codegen-snapshots");
    println!("cargo::rerun-if-changed=tests/corpus/answers/LEVELS.md");
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
