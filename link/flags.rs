//! What the linker is told, so that a release starts soon and is small; a part of the build script.
//! `docs/decisions/0011-starting-fast.md` says why.

use std::path::Path;

/// The part of gcc's runtime that unwinds, as a static library.
const UNWINDER: &str = "libgcc_eh.a";

/// The variable that asks for a program that lies at another address with every start.
const RELOCATABLE: &str = "EXA_MCP_PIE";

/// The variable that asks for a program that still has the names of its functions.
const SYMBOLS: &str = "EXA_MCP_SYMBOLS";

/// The functions that are really run, for the linker; written by `scripts/order`.
const FIRST: &str = "link/first.ld";

/// Leaves the loader less to do: nearly half of the time until the first answer is its work.
pub(crate) fn ease_loading(root: &Path) {
    println!("cargo::rerun-if-changed={FIRST}");
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
