//! The filters that select search monitors.

use serde_json::{Map, Value};

use super::SearchMonitor;
use crate::json::opt_text;

/// Selects monitors by status, a part of the name, and metadata. Without filters, all match.
pub(super) struct MonitorFilter<'a> {
    status: Option<&'a str>,
    name: Option<String>,
    metadata: Option<&'a Map<String, Value>>,
}

impl<'a> MonitorFilter<'a> {
    /// Reads `status`, `name` and `metadata`.
    pub(super) fn new(request: &'a Value) -> Self {
        MonitorFilter {
            status: opt_text(request, "status"),
            name: opt_text(request, "name").map(str::to_lowercase),
            metadata: request.get("metadata").and_then(Value::as_object),
        }
    }

    pub(super) fn matches(&self, monitor: &SearchMonitor) -> bool {
        let name = monitor.name.as_str().unwrap_or_default().to_lowercase();
        let mut wanted = self.metadata.into_iter().flatten();
        self.status.is_none_or(|status| monitor.status == status)
            && self.name.as_ref().is_none_or(|part| name.contains(part))
            && wanted.all(|(key, value)| monitor.metadata.get(key) == Some(value))
    }
}
