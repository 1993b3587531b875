//! The key that `login` stores: in the keychain of the system if it has one, else in a file of the user.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use crate::config::user_directory;
use exa_mcp_exa_client::ApiKey;

/// The name of the entry in the keychain.
const SERVICE: &str = "exa-mcp-server";

/// The name of the file in the user's configuration directory.
const FILE: &str = "key";

/// Where a key is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyStorage {
    /// The keychain of the system.
    Keychain,
    /// A file that only the user can read.
    File(PathBuf),
}

/// Why a key cannot be stored.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeychainError {
    /// There is no place for a file.
    #[error("there is no configuration directory: set HOME or XDG_CONFIG_HOME")]
    NoDirectory,
    /// The file cannot be written or removed.
    #[error("the key file {path} cannot be changed: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
}

impl std::fmt::Display for KeyStorage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Keychain => f.write_str("the keychain of the system"),
            Self::File(path) => write!(f, "{}, which only you can read", path.display()),
        }
    }
}

/// Returns the stored key, if there is one.
pub(super) fn read() -> Option<ApiKey> {
    let text = read_file().or_else(read_keychain)?;
    ApiKey::new(text.trim()).ok()
}

/// Stores a key.
pub(super) fn write(key: &ApiKey) -> Result<KeyStorage, KeychainError> {
    if write_keychain(key.expose()) {
        // A key in an old file would take precedence.
        remove_file()?;
        return Ok(KeyStorage::Keychain);
    }
    write_file(key.expose()).map(KeyStorage::File)
}

/// Removes the key from all places. Returns whether there was one.
pub(super) fn remove() -> Result<bool, KeychainError> {
    let was_in_file = remove_file()?;
    Ok(remove_keychain() || was_in_file)
}

fn path() -> Option<PathBuf> {
    Some(user_directory()?.join(SERVICE).join(FILE))
}

fn read_file() -> Option<String> {
    std::fs::read_to_string(path()?).ok()
}

fn write_file(key: &str) -> Result<PathBuf, KeychainError> {
    let path = path().ok_or(KeychainError::NoDirectory)?;
    let failed = |source| KeychainError::File {
        path: path.clone(),
        source,
    };
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    // An existing file might have other permissions.
    remove_file()?;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&path).map_err(failed)?;
    file.write_all(key.as_bytes()).map_err(failed)?;
    Ok(path)
}

fn remove_file() -> Result<bool, KeychainError> {
    let Some(path) = path() else {
        return Ok(false);
    };
    match std::fs::remove_file(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(source) => Err(KeychainError::File { path, source }),
    }
}

/// Runs a program of the system with this input. Returns its output if it succeeds.
fn run(program: &str, arguments: &[&str], input: &str) -> Option<String> {
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .ok()?;
    // The key is never an argument, which other users could see.
    let mut stdin = child.stdin.take()?;
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = child.wait_with_output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then_some(text)
}

#[cfg(target_os = "macos")]
fn read_keychain() -> Option<String> {
    let arguments = ["find-generic-password", "-s", SERVICE, "-w"];
    run("/usr/bin/security", &arguments, "").filter(|text| !text.trim().is_empty())
}

#[cfg(target_os = "macos")]
fn write_keychain(key: &str) -> bool {
    let command = format!("add-generic-password -U -s {SERVICE} -a exa -w \"{key}\"\n");
    let is_plain = key
        .chars()
        .all(|c| c.is_ascii_graphic() && c != '"' && c != '\\');
    is_plain
        && run("/usr/bin/security", &["-i"], &command).is_some()
        && read_keychain().is_some_and(|stored| stored.trim() == key)
}

#[cfg(target_os = "macos")]
fn remove_keychain() -> bool {
    let arguments = ["delete-generic-password", "-s", SERVICE];
    run("/usr/bin/security", &arguments, "").is_some()
}

/// The secret service of a desktop session, through the program of libsecret.
#[cfg(all(unix, not(target_os = "macos")))]
const SECRET_TOOL: &str = "secret-tool";

/// Without a session bus there is no secret service, and asking for it would only take time.
#[cfg(all(unix, not(target_os = "macos")))]
fn has_session_bus() -> bool {
    std::env::var_os("DBUS_SESSION_BUS_ADDRESS").is_some()
}

#[cfg(all(unix, not(target_os = "macos")))]
fn read_keychain() -> Option<String> {
    let found = has_session_bus().then(|| run(SECRET_TOOL, &["lookup", "service", SERVICE], ""));
    found.flatten().filter(|text| !text.trim().is_empty())
}

#[cfg(all(unix, not(target_os = "macos")))]
fn write_keychain(key: &str) -> bool {
    let label = "--label=Exa API key";
    has_session_bus()
        && run(SECRET_TOOL, &["store", label, "service", SERVICE], key).is_some()
        && read_keychain().is_some_and(|stored| stored.trim() == key)
}

#[cfg(all(unix, not(target_os = "macos")))]
fn remove_keychain() -> bool {
    let was_there = read_keychain().is_some();
    was_there && run(SECRET_TOOL, &["clear", "service", SERVICE], "").is_some()
}

#[cfg(not(unix))]
fn read_keychain() -> Option<String> {
    None
}

#[cfg(not(unix))]
fn write_keychain(_: &str) -> bool {
    false
}

#[cfg(not(unix))]
fn remove_keychain() -> bool {
    false
}
