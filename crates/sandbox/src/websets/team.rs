//! `GET /websets/v0/teams/me`: the team of the key, and how much of its concurrency is in use.

use serde_json::json;

use super::Webset;
use crate::call::{ApiResponse, ApiResult, Call};
use crate::state::Account;

/// Websets that may work at once, and that may wait.
const MAX_CONCURRENT: usize = 50;
const MAX_QUEUED: usize = 200;

pub(crate) fn me(account: &mut Account, _: &Call) -> ApiResult {
    let busy = account
        .websets
        .values()
        .filter(|webset| Webset::is_busy(webset))
        .count();
    let active = busy.min(MAX_CONCURRENT);
    let id = account.stable_id("team");
    ApiResponse::ok(json!({
        "object": "team",
        "id": id,
        "name": "Sandbox team",
        "concurrency": { "active": active, "queued": busy - active },
        "limits": { "maxConcurrent": MAX_CONCURRENT, "maxQueued": MAX_QUEUED },
    }))
}
