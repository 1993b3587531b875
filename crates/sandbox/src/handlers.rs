//! The table of handlers: the only module that names operations.

use crate::agent::{backtests, monitors as agent_monitors, runs};
use crate::call::{ApiResult, Call};
use crate::state::Account;
use crate::websets::{
    enrichments, events, imports, items, monitors, preview, searches, webhooks, webset,
};
use crate::{research, search, search_monitors};

/// Executes an operation on an account.
pub(crate) type Handler = fn(&mut Account, &Call) -> ApiResult;

/// Returns the hand-written handler of an operation, if there is one.
pub(crate) fn handler_for(operation: &str) -> Option<Handler> {
    Some(match operation {
        "search" => search::search,
        "find_similar" => search::find_similar,
        "get_contents" => search::get_contents,
        "answer" => search::answer,
        "research.create" => research::create,
        "research.get" => research::get,
        "research.list" => research::list,
        "search_monitors.create" => search_monitors::create,
        "search_monitors.get" => search_monitors::get,
        "search_monitors.list" => search_monitors::list,
        "search_monitors.update" => search_monitors::update,
        "search_monitors.delete" => search_monitors::delete,
        "search_monitors.trigger" => search_monitors::trigger,
        "search_monitors.runs.list" => search_monitors::list_runs,
        "search_monitors.runs.get" => search_monitors::get_run,
        "agent.runs.create" => runs::create,
        "agent.runs.get" => runs::get,
        "agent.runs.list" => runs::list,
        "agent.runs.cancel" => runs::cancel,
        "agent.runs.stop" => runs::stop,
        "agent.runs.delete" => runs::delete,
        "agent.runs.events.list" => runs::list_events,
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
        _ => return None,
    })
}
