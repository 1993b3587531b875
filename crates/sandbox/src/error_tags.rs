//! The documented error tags and codes, for faults that ask for one.

use serde_json::{Value, json};

use crate::api_error::{ApiError, ErrorFormat};
use crate::json::set;

/// Tag of the errors that contain the terms of a payment.
pub(crate) const PAYMENT_REQUIRED: &str = "X402_PAYMENT_REQUIRED";

/// Status, tag and message of the errors of the flat formats. A status with several tags begins with the
/// most common one; some have none.
const TAGS: &str = "\
400 INVALID_REQUEST Invalid request
400 INVALID_REQUEST_BODY Invalid request body
400 INVALID_REQUEST_QUERY Invalid query parameter
400 INVALID_JSON_SCHEMA outputSchema is too large
400 INVALID_NUM_RESULTS numResults may be 100 at most
400 NUM_RESULTS_EXCEEDED Your plan allows fewer results
400 SUBPAGES_LIMIT_EXCEEDED subpages may be 100 at most
400 INVALID_URLS The URLs are not valid
400 UNSUPPORTED_PUBLICATION_INCLUDE_FILTER Unsupported filter
400 X402_INVALID_SIGNATURE The signature is not valid
401 INVALID_API_KEY Invalid API key
402 NO_MORE_CREDITS You have run out of credits
402 API_KEY_BUDGET_EXCEEDED The budget of this key is used up
402 TEAM_BUDGET_EXCEEDED The budget of the team is used up
402 SNAPSHOT_TRIAL_EXHAUSTED The trial is used up
402 SNAPSHOT_TRIAL_CAP_EXCEEDED The trial allows fewer pages
402 X402_PAYMENT_REQUIRED Payment required
402 X402_VERIFICATION_FAILED The payment is not valid
402 MPP_VERIFICATION_FAILED The payment is not valid
403 FEATURE_DISABLED This feature is not enabled
403 INSUFFICIENT_SCOPE This key may not do that
403 TEAM_BLOCKED The team is blocked
403 PROHIBITED_CONTENT The content is prohibited
403 CONTENT_FILTER_ERROR The content is filtered
403 SNAPSHOT_NOT_ON_PLAN Your plan has no snapshots
403 SNAPSHOT_NOT_IN_CONTRACT Your contract has no snapshots
404 NOT_FOUND Not found
410 RESEARCH_RETIRED The research API is retired; use agent runs
413 PAYLOAD_TOO_LARGE The body is too large
408 - The request took too long
409 - The request conflicts with another
422 - The request cannot be processed
504 - The request took too long
422 UNABLE_TO_GENERATE_RESPONSE The request cannot be processed
422 NO_CONTENT_FOUND No content was found
422 FETCH_DOCUMENT_ERROR The documents are not available
429 RATE_LIMIT_EXCEEDED You have exceeded your rate limit
429 SNAPSHOT_RATE_LIMIT_EXCEEDED Too many snapshots
429 X402_TOO_MANY_UNPAID Too many unpaid requests
429 X402_WALLET_RATE_LIMITED Too many requests
500 DEFAULT_ERROR Something went wrong on our side
500 INTERNAL_ERROR Something went wrong on our side
500 X402_INTERNAL_ERROR The payment failed
503 SERVICE_OVERLOADED The service is overloaded";

/// Status, code and message of the errors of the agent APIs.
const AGENT_CODES: &str = "\
400 INVALID_REQUEST Invalid request
400 INVALID_OUTPUT_SCHEMA outputSchema is not valid
400 INVALID_DATA_SOURCE The data source is not known
400 PREVIOUS_RUN_NOT_COMPLETED The previous run has not ended
401 TEAM_NOT_FOUND No team for this key
404 RUN_NOT_FOUND The run was not found
404 PREVIOUS_RUN_NOT_FOUND The previous run was not found
429 CONCURRENCY_LIMIT_REACHED Too many runs at once
500 SERVER_ERROR Something went wrong on our side
500 TIMEOUT The run took too long";

/// One row of a table.
struct Entry {
    status: u16,
    tag: &'static str,
    message: &'static str,
}

/// Returns the rows of a table.
fn entries(table: &'static str) -> impl Iterator<Item = Entry> {
    table.lines().filter_map(|line| {
        let (status, rest) = line.split_once(' ')?;
        let (tag, message) = rest.split_once(' ')?;
        Some(Entry {
            status: status.parse().ok()?,
            tag: if tag == "-" { "" } else { tag },
            message,
        })
    })
}

/// Returns the error that an API with this format sends with a status, or with a tag. A status of its own
/// overrides the usual one of the tag.
pub(crate) fn requested(format: ErrorFormat, status: Option<u16>, tag: Option<&str>) -> ApiError {
    let (own, other) = match format {
        ErrorFormat::Agent => (AGENT_CODES, TAGS),
        _ => (TAGS, AGENT_CODES),
    };
    let is_requested = |entry: &Entry| match tag {
        Some(tag) => entry.tag == tag,
        None => Some(entry.status) == status,
    };
    let known = entries(own).chain(entries(other)).find(is_requested);
    let usual = known.as_ref().map_or(500, |entry| entry.status);
    let message = known.as_ref().map_or("An error", |entry| entry.message);
    let tag = tag.unwrap_or(known.as_ref().map_or("", |entry| entry.tag));
    let message = format!("{message} (a fault asked for from the sandbox)");
    ApiError::new(status.unwrap_or(usual), tag, message)
}

/// The error for a request without a key to an operation that can be paid for instead.
pub(crate) fn payment_required() -> ApiError {
    let message = "Payment required: send an API key, or pay for the request";
    ApiError::new(402, PAYMENT_REQUIRED, message).at_gateway()
}

/// Adds the terms of a payment to an error body.
pub(crate) fn add_payment_challenge(body: &mut Value, path: &str) {
    let accepts = json!([{
        "scheme": "exact",
        "network": "sandbox:0",
        "amount": "7000",
        "payTo": "0x0000000000000000000000000000000000000000",
        "asset": "synthetic",
        "maxTimeoutSeconds": 60,
        "extra": {},
    }]);
    let resource = json!({
        "url": format!("https://sandbox.example{path}"),
        "description": "One request to the sandbox, which accepts no payments",
        "mimeType": "application/json",
    });
    set(body, "x402Version", 2);
    set(body, "resource", resource);
    set(body, "accepts", accepts);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_and_tags_select_the_documented_error() {
        let outcome = |format, status, tag| {
            let error = requested(format, status, tag);
            format!("{} {}", error.status, error.tag)
        };
        use ErrorFormat::{Agent, Standard, Websets};
        let by_status = |format, status| outcome(format, Some(status), None);
        assert_eq!(by_status(Standard, 402), "402 NO_MORE_CREDITS");
        assert_eq!(by_status(Standard, 403), "403 FEATURE_DISABLED");
        assert_eq!(by_status(Standard, 503), "503 SERVICE_OVERLOADED");
        assert_eq!(by_status(Agent, 429), "429 CONCURRENCY_LIMIT_REACHED");
        assert_eq!(by_status(Agent, 402), "402 NO_MORE_CREDITS");
        for status in [409, 418, 422, 504] {
            assert_eq!(by_status(Websets, status), format!("{status} "), "no tag");
        }
        let by_tag = |tag| outcome(Standard, None, Some(tag));
        assert_eq!(by_tag("TEAM_BUDGET_EXCEEDED"), "402 TEAM_BUDGET_EXCEEDED");
        assert_eq!(by_tag("NEW_TAG"), "500 NEW_TAG");
        let both = outcome(Standard, Some(429), Some("NO_MORE_CREDITS"));
        assert_eq!(both, "429 NO_MORE_CREDITS");
    }
}
