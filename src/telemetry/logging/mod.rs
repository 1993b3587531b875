//! Log lines: on standard error for the operator, since standard output belongs to the protocol, and to
//! clients that listen.

mod listener;
mod request;

pub(crate) use listener::{Entry, Listener, Severity, inherited};
pub(crate) use request::{
    RequestFields, http_span, plain_rpc_id, record_rpc_id, record_session, record_user,
    session_digest,
};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;

use self::listener::{ToListener, Wanted};

/// The crates of this program; all others are libraries.
pub(super) const OWN_CRATES: &str = "exa_mcp_";

/// Starts logging at the level of `EXA_MCP_LOG_LEVEL`, or that of `EXA_MCP_DEBUG`; warnings and errors by default.
///
/// # Errors
/// The level is unknown.
pub(crate) fn start(level_name: Option<&str>, debug: Option<&str>) -> Result<(), String> {
    let level = level(level_name, debug)?;
    let targets = Targets::new()
        .with_default(libraries(level))
        .with_target(OWN_CRATES, level);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false);
    let subscriber = tracing_subscriber::registry()
        .with(lines.with_filter(targets))
        .with(ToListener.with_filter(Wanted));
    // A second start, as in tests, keeps the first logger.
    let _ = tracing::subscriber::set_global_default(subscriber);
    Ok(())
}

/// How much libraries may tell. The one of the protocol tells every refused request as a warning and
/// every notification at `info`, with what the client wrote in it; at `debug` it and others tell whole
/// messages. What people ask and secrets in answers are for no log, so only errors are left.
fn libraries(level: LevelFilter) -> LevelFilter {
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
    fn the_environment_sets_the_level() {
        assert_eq!(level(None, None), Ok(LevelFilter::WARN));
        assert_eq!(level(None, Some("true")), Ok(LevelFilter::DEBUG));
        assert_eq!(level(Some("INFO"), Some("true")), Ok(LevelFilter::INFO));
        assert!(level(Some("loud"), None).is_err());
    }
}
