//! Log messages for the client: those of its own calls, if it requests them.
//!
//! Up to 2025-11-25 a client sets a level for its session. Since 2026-07-28 each request sets its own level, and its
//! messages precede its response.

use std::future::Future;
use std::pin::pin;
use std::sync::Mutex;
use std::time::Instant;

// Logging is deprecated as of 2026-07-28, but still supported.
#[expect(deprecated)]
use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use rmcp::{Peer, RoleServer, model::ErrorData, service::RequestContext};
use serde_json::{Value, json};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use super::version::McpVersion;
use crate::telemetry::logging::{LogEntry, LogListener, Severity};

/// The metadata key with which a request of 2026-07-28 sets its log level.
const LEVEL_KEY: &str = "io.modelcontextprotocol/logLevel";

/// The logger name in the messages.
const LOGGER: &str = "exa-mcp-server";

/// The rate limit of messages: burst size, and messages per second after that.
const BURST: f64 = 50.0;
const PER_SECOND: f64 = 20.0;

/// The log of a session.
pub(super) struct SessionLog {
    listener: LogListener,
    /// Pending messages, until forwarding starts.
    entries: Mutex<Option<UnboundedReceiver<LogEntry>>>,
}

impl Default for SessionLog {
    fn default() -> Self {
        let (listener, entries) = rate_limited();
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

    /// Returns the listener of the session.
    pub(super) fn listener(&self) -> LogListener {
        self.listener.clone()
    }

    /// Starts forwarding messages to the client.
    pub(super) fn start(&self, peer: Peer<RoleServer>) {
        let entries = self
            .entries
            .lock()
            .ok()
            .and_then(|mut entries| entries.take());
        if let Some(mut entries) = entries {
            tokio::spawn(async move {
                while let Some(entry) = entries.recv().await {
                    send(&peer, entry).await;
                }
            });
        }
    }

    /// Returns the listener of a request, and the log that forwards its messages.
    pub(super) fn for_request(
        &self,
        context: &RequestContext<RoleServer>,
        protocol: &McpVersion,
    ) -> Result<(Option<LogListener>, RequestLog), ErrorData> {
        if !protocol.is_stateless() {
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
        let (listener, entries) = rate_limited();
        listener.set_level(severity(level));
        let peer = context.peer.clone();
        Ok((Some(listener), RequestLog(Some((entries, peer)))))
    }
}

/// Forwards the log messages of one request to its client.
pub(super) struct RequestLog(Option<(UnboundedReceiver<LogEntry>, Peer<RoleServer>)>);

impl RequestLog {
    /// Forwards messages until the request is done; none may follow its response.
    pub(super) async fn forward_during<T>(self, request: impl Future<Output = T>) -> T {
        let Some((mut entries, peer)) = self.0 else {
            return request.await;
        };
        let mut request = pin!(request);
        loop {
            tokio::select! {
                biased;
                Some(entry) = entries.recv() => send(&peer, entry).await,
                outcome = &mut request => {
                    entries.close();
                    while let Some(entry) = entries.recv().await {
                        send(&peer, entry).await;
                    }
                    return outcome;
                }
            }
        }
    }
}

#[expect(deprecated)]
async fn send(peer: &Peer<RoleServer>, entry: LogEntry) {
    let data = Value::Object(entry.data);
    let message = LoggingMessageNotificationParam::new(level(entry.severity), data);
    // A closed connection is not an error here.
    let _ = peer
        .notify_logging_message(message.with_logger(LOGGER))
        .await;
}

/// Creates a listener with a rate limit.
fn rate_limited() -> (LogListener, UnboundedReceiver<LogEntry>) {
    let (sender, entries) = mpsc::unbounded_channel();
    let limiter = Mutex::new(MessageLimiter::new(Instant::now()));
    let listener = LogListener::new(move |mut entry: LogEntry| {
        let Ok(mut limiter) = limiter.lock() else {
            return;
        };
        if let Some(suppressed) = limiter.admit(Instant::now()) {
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

/// A token bucket that counts the suppressed messages.
struct MessageLimiter {
    tokens: f64,
    last: Instant,
    suppressed: u64,
}

impl MessageLimiter {
    fn new(now: Instant) -> Self {
        Self {
            tokens: BURST,
            last: now,
            suppressed: 0,
        }
    }

    /// Returns how many messages were suppressed before this one; `None` if this one is suppressed too.
    fn admit(&mut self, now: Instant) -> Option<u64> {
        let elapsed = now.saturating_duration_since(self.last).as_secs_f64();
        self.tokens = (self.tokens + elapsed * PER_SECOND).min(BURST);
        self.last = now;
        if self.tokens < 1.0 {
            self.suppressed += 1;
            return None;
        }
        self.tokens -= 1.0;
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
    fn suppresses_and_counts_excess_messages() {
        let start = Instant::now();
        let mut limiter = MessageLimiter::new(start);
        let passed = (0..200).filter(|_| limiter.admit(start).is_some()).count();
        assert_eq!(passed, 50);
        let later = start + Duration::from_secs(1);
        assert_eq!(limiter.admit(later), Some(150));
        let passed = (0..200).filter(|_| limiter.admit(later).is_some()).count();
        assert_eq!(passed, 19);
    }
}
