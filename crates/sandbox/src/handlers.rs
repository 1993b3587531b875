//! The table of handlers: the only module that names operations.

use crate::agent::{backtests, monitors as agent_monitors, run_events, runs};
use crate::call::{ApiResult, BodyParser, Call};
use crate::search_monitors::{self, batch as monitor_batch, runs as monitor_runs};
use crate::state::{Account, SandboxState};
use crate::websets::{
    enrichments, events, imports, items, monitors, preview, searches, team, webhooks, webset,
};
use crate::{batches, research, search, team_keys};

/// The implementation of an operation.
#[derive(Clone, Copy)]
pub(crate) enum Handler {
    /// Works on the account of the API key.
    Account(fn(&mut Account, &Call) -> ApiResult),
    /// Works on the account, and parses the bodies of other operations.
    Nested(fn(&mut Account, &Call, &BodyParser<'_>) -> ApiResult),
    /// Works on all accounts of the team.
    Team(fn(&mut SandboxState, &Call) -> ApiResult),
    /// Rejects every request: the operation is retired, unless the sandbox still serves it.
    Retired(fn(&mut Account, &Call) -> ApiResult),
}

/// Whether a request without a key may be paid for instead.
pub(crate) fn is_payable(operation: &str) -> bool {
    matches!(operation, "search" | "get_contents")
}

/// Returns the hand-written handler of an operation, if there is one.
pub(crate) fn handler_for(operation: &str) -> Option<Handler> {
    let handler = match operation {
        "batches.create" => return Some(Handler::Nested(batches::create)),
        "team.keys.create" => return Some(Handler::Team(team_keys::create)),
        "team.keys.list" => return Some(Handler::Team(team_keys::list)),
        "team.keys.get" => return Some(Handler::Team(team_keys::get)),
        "team.keys.update" => return Some(Handler::Team(team_keys::update)),
        "team.keys.delete" => return Some(Handler::Team(team_keys::delete)),
        "team.keys.usage" => return Some(Handler::Team(team_keys::usage)),
        "research.create" => return Some(Handler::Retired(research::create)),
        "research.get" => return Some(Handler::Retired(research::get)),
        "research.list" => return Some(Handler::Retired(research::list)),
        other => account_handler(other)?,
    };
    Some(Handler::Account(handler))
}

fn account_handler(operation: &str) -> Option<fn(&mut Account, &Call) -> ApiResult> {
    Some(match operation {
        "search" => search::search,
        "find_similar" => search::find_similar,
        "get_contents" => search::get_contents,
        "answer" => search::answer,
        "search_monitors.create" => search_monitors::create,
        "search_monitors.get" => search_monitors::get,
        "search_monitors.list" => search_monitors::list,
        "search_monitors.update" => search_monitors::update,
        "search_monitors.delete" => search_monitors::delete,
        "search_monitors.trigger" => search_monitors::trigger,
        "search_monitors.batch" => monitor_batch::run,
        "search_monitors.runs.list" => monitor_runs::list,
        "search_monitors.runs.get" => monitor_runs::get,
        "batches.get" => batches::get,
        "batches.list" => batches::list,
        "batches.cancel" => batches::cancel,
        "batches.delete" => batches::delete,
        "agent.runs.create" => runs::create,
        "agent.runs.get" => runs::get,
        "agent.runs.list" => runs::list,
        "agent.runs.cancel" => runs::cancel,
        "agent.runs.stop" => runs::stop,
        "agent.runs.delete" => runs::delete,
        "agent.runs.events.list" => run_events::list,
        "agent.monitors.create" => agent_monitors::create,
        "agent.monitors.get" => agent_monitors::get,
        "agent.monitors.list" => agent_monitors::list,
        "agent.monitors.delete" => agent_monitors::delete,
        "agent.monitors.entities.add" => agent_monitors::add_entities,
        "agent.monitors.entities.list" => agent_monitors::list_entities,
        "agent.monitors.changes.list" => agent_monitors::list_changes,
        "agent.monitors.backtests.create" => backtests::create,
        "agent.monitors.backtests.get" => backtests::get,
        "websets.create" => webset::create,
        "websets.get" => webset::get,
        "websets.list" => webset::list,
        "websets.update" => webset::update,
        "websets.delete" => webset::delete,
        "websets.cancel" => webset::cancel,
        "websets.preview" => preview::preview,
        "searches.create" => searches::create,
        "searches.get" => searches::get,
        "searches.cancel" => searches::cancel,
        "items.list" => items::list,
        "items.get" => items::get,
        "items.delete" => items::delete,
        "enrichments.create" => enrichments::create,
        "enrichments.get" => enrichments::get,
        "enrichments.update" => enrichments::update,
        "enrichments.delete" => enrichments::delete,
        "enrichments.cancel" => enrichments::cancel,
        "imports.create" => imports::create,
        "imports.get" => imports::get,
        "imports.list" => imports::list,
        "imports.update" => imports::update,
        "imports.delete" => imports::delete,
        "monitors.create" => monitors::create,
        "monitors.get" => monitors::get,
        "monitors.list" => monitors::list,
        "monitors.update" => monitors::update,
        "monitors.delete" => monitors::delete,
        "monitors.runs.list" => monitors::list_runs,
        "monitors.runs.get" => monitors::get_run,
        "webhooks.create" => webhooks::create,
        "webhooks.get" => webhooks::get,
        "webhooks.list" => webhooks::list,
        "webhooks.update" => webhooks::update,
        "webhooks.delete" => webhooks::delete,
        "webhooks.list_attempts" => webhooks::list_attempts,
        "events.list" => events::list,
        "events.get" => events::get,
        "teams.me" => team::me,
        _ => return None,
    })
}
