//! Log messages for the client: those of its own calls, as far as it asked for them.
//!
//! Up to 2025-11-25 a client sets a level for its session. From 2026-07-28 on each request names its own,
//! and its messages come before its answer.

use std::future::Future;
use std::pin::pin;
use std::sync::Mutex;
use std::time::Instant;

// Logging is deprecated as of 2026-07-28, but alive.
#[expect(deprecated)]
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use rmcp::{Peer, RoleServer, model::ErrorData, service::RequestContext};
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use super::version::Era;
use crate::telemetry::logging::{LogEntry, LogListener, Severity};

/// The metadata by which a request of 2026-07-28 asks for messages.
const LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";

/// Who speaks.
const LOGGER: &str = "exa-mcp-server";

/// How many messages may come at once, and how many in a second after that.
const BURST: f64 = 50.0;
const PER_SECOND: f64 = 20.0;

/// The log of a session.
pub(super) struct SessionLog {
    listener: LogListener,
    /// Messages on their way, until somebody carries them.
    entries: Mutex<Option<UnboundedReceiver<LogEntry>>>,
}

impl Default for SessionLog {
    fn default() -> Self {
        let (listener, entries) = gated();
        Self {
            listener,
            entries: Mutex::new(Some(entries)),
        }
    }
}

impl SessionLog {
    /// Sets the level of the session.
    #[expect(deprecated)]
    pub(super) fn set_level(&self, level: LoggingLevel) {
        self.listener.set_level(severity(level));
    }

    /// Who hears what goes on in the session.
    pub(super) fn listener(&self) -> LogListener {
        self.listener.clone()
    }

    /// Carries messages to this client from now on.
    pub(super) fn start(&self, peer: Peer<RoleServer>) {
        let entries = self.entries.lock().ok().and_then(|mut kept| kept.take());
        if let Some(mut entries) = entries {
            tokio::spawn(async move {
                while let Some(entry) = entries.recv().await {
                    tell(&peer, entry).await;
                }
            });
        }
    }

    /// Who hears what a request does, and what carries its messages.
    pub(super) fn of(
        &self,
        context: &RequestContext<RoleServer>,
        era: &Era,
    ) -> Result<(Option<LogListener>, RequestLog), ErrorData> {
        if !era.is_stateless() {
            return Ok((Some(self.listener.clone()), RequestLog(None)));
        }
        if !context.meta.contains_key(LEVEL_KEY) {
            return Ok((None, RequestLog(None)));
        }
        let level = context.meta.log_level().ok_or_else(|| {
            let text = format!(
                "Invalid params: {LEVEL_KEY} must be debug, info, notice, warning, error, critical, alert or emergency"
            );
            ErrorData::invalid_params(text, None)
        })?;
        let (listener, entries) = gated();
        listener.set_level(severity(level));
        let peer = context.peer.clone();
        Ok((Some(listener), RequestLog(Some((entries, peer)))))
    }
}

/// The messages of one request on their way to its client.
pub(super) struct RequestLog(Option<(UnboundedReceiver<LogEntry>, Peer<RoleServer>)>);

impl RequestLog {
    /// Carries messages until the request is done; afterwards there must be none.
    pub(super) async fn until<T>(self, request: impl Future<Output = T>) -> T {
        let Some((mut entries, peer)) = self.0 else {
            return request.await;
        };
        let mut request = pin!(request);
        loop {
            tokio::select! {
                biased;
                Some(entry) = entries.recv() => tell(&peer, entry).await,
                outcome = &mut request => {
                    entries.close();
                    while let Some(entry) = entries.recv().await {
                        tell(&peer, entry).await;
                    }
                    return outcome;
                }
            }
        }
    }
}

#[expect(deprecated)]
async fn tell(peer: &Peer<RoleServer>, entry: LogEntry) {
    let data = Value::Object(entry.data);
    let message = LoggingMessageNotificationParam::new(level(entry.severity), data);
    // A client that went away misses nothing.
    let _ = peer
        .notify_logging_message(message.with_logger(LOGGER))
        .await;
}

/// A listener that a flood of messages does not drown.
fn gated() -> (LogListener, UnboundedReceiver<LogEntry>) {
    let (sender, entries) = mpsc::unbounded_channel();
    let gate = Mutex::new(Gate::new(Instant::now()));
    let listener = LogListener::new(move |mut entry: LogEntry| {
        let Ok(mut gate) = gate.lock() else { return };
        if let Some(suppressed) = gate.pass(Instant::now()) {
            if suppressed > 0 {
                entry
                    .data
                    .insert("suppressed".to_owned(), json!(suppressed));
            }
            let _ = sender.send(entry);
        }
    });
    (listener, entries)
}

/// Lets a number of messages through, and counts the others.
struct Gate {
    left: f64,
    last: Instant,
    suppressed: u64,
}

impl Gate {
    fn new(now: Instant) -> Self {
        Self {
            left: BURST,
            last: now,
            suppressed: 0,
        }
    }

    /// How many were held back before this one; nothing if this one is held back too.
    fn pass(&mut self, now: Instant) -> Option<u64> {
        let gone = now.saturating_duration_since(self.last).as_secs_f64();
        self.left = (self.left + gone * PER_SECOND).min(BURST);
        self.last = now;
        if self.left < 1.0 {
            self.suppressed += 1;
            return None;
        }
        self.left -= 1.0;
        Some(std::mem::take(&mut self.suppressed))
    }
}

#[expect(deprecated)]
fn severity(level: LoggingLevel) -> Severity {
    match level {
        LoggingLevel::Debug => Severity::Debug,
        LoggingLevel::Info => Severity::Info,
        LoggingLevel::Notice => Severity::Notice,
        LoggingLevel::Warning => Severity::Warning,
        LoggingLevel::Error => Severity::Error,
        LoggingLevel::Critical => Severity::Critical,
        LoggingLevel::Alert => Severity::Alert,
        _ => Severity::Emergency,
    }
}

#[expect(deprecated)]
fn level(severity: Severity) -> LoggingLevel {
    match severity {
        Severity::Debug => LoggingLevel::Debug,
        Severity::Info => LoggingLevel::Info,
        Severity::Notice => LoggingLevel::Notice,
        Severity::Warning => LoggingLevel::Warning,
        Severity::Error => LoggingLevel::Error,
        Severity::Critical => LoggingLevel::Critical,
        Severity::Alert => LoggingLevel::Alert,
        Severity::Emergency => LoggingLevel::Emergency,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_flood_is_counted_not_told() {
        let start = Instant::now();
        let mut gate = Gate::new(start);
        let passed = (0..200).filter(|_| gate.pass(start).is_some()).count();
        assert_eq!(passed, 50);
        let later = start + Duration::from_secs(1);
        assert_eq!(gate.pass(later), Some(150));
        let passed = (0..200).filter(|_| gate.pass(later).is_some()).count();
        assert_eq!(passed, 19);
    }
}
