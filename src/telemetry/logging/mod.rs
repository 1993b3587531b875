//! Logging to standard error, because standard output belongs to the protocol, and to clients that have set a
//! log level.

mod json;
mod listener;
mod request;

pub(crate) use listener::{LogEntry, LogListener, Severity, inherit_listener};
pub(crate) use request::{
    RequestFields, http_span, loggable_rpc_id, record_rpc_id, record_session, record_user,
    session_digest,
};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;

use self::json::JsonLayer;
use self::listener::{ListenerFilter, ListenerLayer};

/// The prefix of this project's crates.
pub(super) const OWN_CRATES: &str = "exa_mcp_";

/// Starts logging at the level of `EXA_MCP_LOG_LEVEL` or `EXA_MCP_DEBUG`, in the format of `EXA_MCP_LOG_FORMAT`. The
/// defaults are `warn` and `text`; without any of them, `reported` is a module whose warnings are left out, because the
/// command reports them itself.
///
/// # Errors
/// The level or the format is unknown.
pub(crate) fn start(
    level_name: Option<&str>,
    debug: Option<&str>,
    format: Option<&str>,
    reported: Option<&'static str>,
) -> Result<(), String> {
    let is_configured = level_name.or(debug).or(format).is_some();
    let level = level(level_name, debug)?;
    let is_json = is_json(format)?;
    let targets = Targets::new()
        .with_default(library_level(level))
        .with_target(OWN_CRATES, level);
    let targets = match reported.filter(|_| !is_configured) {
        Some(module) => targets.with_target(module, LevelFilter::ERROR),
        None => targets,
    };
    // A second start, as in tests, keeps the first logger. An optional layer would disable spans, so there are two
    // subscribers.
    if is_json {
        let objects = JsonLayer.with_filter(targets);
        let subscriber = tracing_subscriber::registry()
            .with(objects)
            .with(ListenerLayer.with_filter(ListenerFilter));
        let _ = tracing::subscriber::set_global_default(subscriber);
    } else {
        let lines = tracing_subscriber::fmt::layer()
            .with_writer(std::io::stderr)
            .with_ansi(false)
            .with_target(false);
        let lines = lines.with_filter(targets);
        let subscriber = tracing_subscriber::registry()
            .with(lines)
            .with(ListenerLayer.with_filter(ListenerFilter));
        let _ = tracing::subscriber::set_global_default(subscriber);
    }
    Ok(())
}

/// Returns whether messages are JSON objects.
fn is_json(format: Option<&str>) -> Result<bool, String> {
    match format
        .map(|format| format.trim().to_ascii_lowercase())
        .as_deref()
    {
        None | Some("" | "text") => Ok(false),
        Some("json") => Ok(true),
        Some(other) => Err(format!(
            "EXA_MCP_LOG_FORMAT must be text or json, not `{other}`"
        )),
    }
}

/// Returns the level for libraries. rmcp logs every rejected request as a warning and every notification at
/// `info`, including client input; at `debug` it and others log whole messages. Queries and secrets must not
/// end up in the log, so only errors pass.
fn library_level(level: LevelFilter) -> LevelFilter {
    level.min(LevelFilter::ERROR)
}

fn level(level: Option<&str>, debug: Option<&str>) -> Result<LevelFilter, String> {
    let debug = matches!(debug.map(str::trim), Some("1" | "true" | "yes" | "on"));
    match level
        .map(|level| level.trim().to_ascii_lowercase())
        .as_deref()
    {
        None | Some("") if debug => Ok(LevelFilter::DEBUG),
        None | Some("") => Ok(LevelFilter::WARN),
        Some("off") => Ok(LevelFilter::OFF),
        Some("error") => Ok(LevelFilter::ERROR),
        Some("warn" | "warning") => Ok(LevelFilter::WARN),
        Some("info") => Ok(LevelFilter::INFO),
        Some("debug") => Ok(LevelFilter::DEBUG),
        Some("trace") => Ok(LevelFilter::TRACE),
        Some(other) => Err(format!(
            "EXA_MCP_LOG_LEVEL must be off, error, warn, info, debug or trace, not `{other}`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_level_from_the_environment() {
        assert_eq!(level(None, None), Ok(LevelFilter::WARN));
        assert_eq!(level(None, Some("true")), Ok(LevelFilter::DEBUG));
        assert_eq!(level(Some("INFO"), Some("true")), Ok(LevelFilter::INFO));
        assert!(level(Some("loud"), None).is_err());
    }
}
