//! The file with the state of the sandbox that the commands of one session share.

use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::config::variable;

/// A session that nobody used for so long is over.
const MAX_IDLE: Duration = Duration::from_secs(60 * 60);

/// The variable that names a session, for scripts that want their own.
const SESSION_VARIABLE: &str = "EXA_SANDBOX_SESSION";

/// How many shells above this process may belong to its session.
#[cfg(target_os = "linux")]
const MAX_SHELLS: usize = 8;

/// The programs that are shells.
#[cfg(target_os = "linux")]
const SHELLS: [&str; 7] = ["sh", "bash", "dash", "zsh", "ash", "ksh", "fish"];

/// Programs that run a single command.
#[cfg(target_os = "linux")]
const WRAPPERS: [&str; 9] = [
    "script", "timeout", "env", "time", "nice", "nohup", "setsid", "stdbuf", "watch",
];

/// Returns the file of this session; `None` if none can be created.
pub(super) fn file() -> Option<PathBuf> {
    let folder = folder()?;
    remove_old(&folder);
    let name = variable(SESSION_VARIABLE).unwrap_or_else(session);
    let name: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .take(64)
        .collect();
    Some(folder.join(format!("{name}.jsonl")))
}

/// Returns a folder that only this user can read.
fn folder() -> Option<PathBuf> {
    let runtime = variable("XDG_RUNTIME_DIR").map(PathBuf::from);
    let folder = match runtime.filter(|folder| folder.is_absolute()) {
        Some(folder) => folder.join("exa-mcp-server-sandbox"),
        None => std::env::temp_dir().join(format!("exa-mcp-server-sandbox-{}", user())),
    };
    create(&folder).then_some(folder)
}

#[cfg(unix)]
fn user() -> String {
    use std::os::unix::fs::MetadataExt;
    let home = std::fs::metadata("/proc/self").or_else(|_| std::fs::metadata(std::env::temp_dir()));
    home.map_or_else(|_| "user".to_owned(), |it| it.uid().to_string())
}

#[cfg(not(unix))]
fn user() -> String {
    "user".to_owned()
}

/// Creates the folder, or checks that an existing one belongs to nobody else.
#[cfg(unix)]
fn create(folder: &std::path::Path) -> bool {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    let created = std::fs::DirBuilder::new().mode(0o700).create(folder);
    let own = std::fs::metadata("/proc/self").map(|it| it.uid());
    let found = std::fs::symlink_metadata(folder);
    match (created, found) {
        (Ok(()), _) => true,
        (Err(_), Ok(found)) => {
            found.is_dir()
                && found.mode() & 0o077 == 0
                && own.map_or(true, |own| own == found.uid())
        }
        _ => false,
    }
}

#[cfg(not(unix))]
fn create(folder: &std::path::Path) -> bool {
    std::fs::create_dir_all(folder).is_ok()
}

/// Removes the files of sessions that are over.
fn remove_old(folder: &std::path::Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let modified = entry.metadata().and_then(|it| it.modified());
        let idle = modified
            .ok()
            .and_then(|it| SystemTime::now().duration_since(it).ok());
        if idle.is_some_and(|idle| idle > MAX_IDLE) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Returns the process that this session belongs to: the outermost shell, such as that of a terminal, or the program that
/// runs single commands in shells.
#[cfg(target_os = "linux")]
fn session() -> String {
    let mut process = std::os::unix::process::parent_id();
    let mut outermost = None;
    for _ in 0..MAX_SHELLS {
        let Some(shell) = Shell::find(process) else {
            break;
        };
        process = shell.parent;
        outermost = Some(shell);
    }
    let process = match outermost {
        Some(shell) if !shell.runs_command => shell.process,
        _ => process,
    };
    let started = stat(process).and_then(|fields| fields.get(19).cloned());
    format!("{process}-{}", started.unwrap_or_default())
}

#[cfg(all(unix, not(target_os = "linux")))]
fn session() -> String {
    std::os::unix::process::parent_id().to_string()
}

#[cfg(not(unix))]
fn session() -> String {
    "default".to_owned()
}

/// A process that is a shell.
#[cfg(target_os = "linux")]
struct Shell {
    process: u32,
    parent: u32,
    /// It was started for a single command, such as `sh -c`.
    runs_command: bool,
}

#[cfg(target_os = "linux")]
impl Shell {
    /// Returns the shell with this process id; `None` for other programs.
    fn find(process: u32) -> Option<Self> {
        let line = std::fs::read(format!("/proc/{process}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let mut words = line.split('\0');
        let program = words.next()?.rsplit('/').next()?;
        // A login shell has a hyphen before its name.
        let program = program.trim_start_matches('-');
        let is_wrapper = WRAPPERS.contains(&program);
        if !is_wrapper && !SHELLS.contains(&program) {
            return None;
        }
        let runs_command = words
            .next()
            .is_some_and(|word| word.starts_with('-') && word.ends_with('c'));
        Some(Self {
            process,
            parent: stat(process)?
                .get(1)?
                .parse()
                .ok()
                .filter(|parent| *parent > 0)?,
            runs_command: runs_command || is_wrapper,
        })
    }
}

/// Returns the fields of `/proc/PID/stat` from the state on, which follow the name in parentheses.
#[cfg(target_os = "linux")]
fn stat(process: u32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}
