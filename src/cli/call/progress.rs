//! Shows the progress of a call on standard error, if that is a terminal.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tokio::task::JoinHandle;

use super::super::output::Terminal;
use crate::operations::{ProgressReporter, ProgressUpdate, price};
use exa_mcp_model::lock;
use exa_mcp_text::sanitize;

/// What takes less time shows no bar.
const SHOW_AFTER: Duration = Duration::from_secs(1);

/// The pause between two frames of the bar.
const FRAME: Duration = Duration::from_millis(120);

/// The progress of one call.
pub(super) struct CallProgress {
    bar: ProgressBar,
    /// Shows the bar after a while.
    show: Option<JoinHandle<()>>,
    /// The text that was streamed to standard output so far.
    streamed: Arc<Mutex<String>>,
    streams: bool,
}

impl CallProgress {
    /// Starts to show progress. With `streams`, text of the response goes to standard output as it arrives.
    pub(super) fn start(terminal: &Terminal, what: &str, streams: bool) -> Self {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        bar.set_message(what.to_owned());
        bar.set_style(style("{spinner} {msg} {elapsed}"));
        let show = (terminal.has_progress && !streams).then(|| {
            let bar = bar.clone();
            tokio::spawn(async move {
                tokio::time::sleep(SHOW_AFTER).await;
                bar.set_draw_target(ProgressDrawTarget::stderr());
                bar.enable_steady_tick(FRAME);
            })
        });
        Self {
            bar,
            show,
            streamed: Arc::default(),
            streams,
        }
    }

    /// Returns a reporter for the call.
    pub(super) fn reporter(&self) -> ProgressReporter {
        let (bar, streamed, streams) = (self.bar.clone(), Arc::clone(&self.streamed), self.streams);
        let cost_bar = self.bar.clone();
        let reporter = ProgressReporter::new(move |update| {
            if streams && update.is_quoted {
                super::super::print_part(&update.message);
                lock(&streamed).push_str(&update.message);
            } else {
                show(&bar, &update);
            }
        });
        reporter.with_state_listener(move |response| {
            if let Some(cost) = price::actual(response) {
                cost_bar.set_prefix(cost.to_string());
            }
        })
    }

    /// Removes the bar. Returns the text that was streamed.
    pub(super) fn finish(&self) -> String {
        if let Some(show) = &self.show {
            show.abort();
        }
        self.bar.finish_and_clear();
        std::mem::take(&mut lock(&self.streamed))
    }
}

fn show(bar: &ProgressBar, update: &ProgressUpdate) {
    let message = sanitize::clean(&update.message).replace(['\n', '\r', '\t'], " ");
    let message: String = message.chars().take(200).collect();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let count = |number: f64| number.max(0.0) as u64;
    match update.total.filter(|total| *total > 0.0) {
        Some(total) => {
            // Uploads count bytes.
            let template = if total > 100_000.0 {
                "{spinner} {wide_bar} {bytes}/{total_bytes} {msg} {prefix} {elapsed}"
            } else {
                "{spinner} {wide_bar} {pos}/{len} {msg} {prefix} {elapsed}"
            };
            bar.set_style(style(template));
            bar.set_length(count(total));
            bar.set_position(count(update.done));
        }
        None => bar.set_style(style("{spinner} {msg} {prefix} {elapsed}")),
    }
    bar.set_message(message);
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_spinner())
}
