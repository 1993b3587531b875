//! Log lines: on standard error for the operator, since standard output belongs to the protocol, and to
//! clients that listen.

mod listener;
mod request;

pub use listener::{Entry, Listener, Severity, inherited};
pub(crate) use request::{
    RequestFields, http_span, plain_rpc_id, record_rpc_id, record_session, record_user,
    session_digest,
};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;

use self::listener::{ToListener, Wanted};
use crate::settings::Source;

/// Starts logging at the level that the settings ask for; warnings and errors by default.
///
/// An unknown level is told instead of silently taken for another one.
pub fn start(source: &Source) -> Result<(), String> {
    let level = level(
        source.text("EXA_MCP_LOG_LEVEL").as_deref(),
        source.text("EXA_MCP_DEBUG").as_deref(),
    )?;
    let targets = Targets::new()
        .with_default(libraries(level))
        .with_target(env!("CARGO_CRATE_NAME"), level);
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
