//! How a response of the API is taken apart: the results that it lists, and the fields beside them.

/// The fields of a response that move into the metadata.
pub const METADATA_FIELDS: [&str; 2] = ["requestId", "warnings"];

/// The fields in which the API lists things; the first one present counts.
const LISTS: [&str; 4] = ["results", "data", "items", "citations"];

/// A response with an identifier is a single thing, even if it contains lists.
const IDENTIFIERS: [&str; 2] = ["id", "researchId"];

/// Returns the field whose entries are the results of a response, if the response is not a result itself.
///
/// The caller looks the fields up in a response or in the schema of one.
pub fn results_field(
    has: impl Fn(&str) -> bool,
    is_list: impl Fn(&str) -> bool,
) -> Option<&'static str> {
    // A list gets `metadata` and `results`, so it must not have fields like that of its own.
    let is_thing = has("metadata") || IDENTIFIERS.into_iter().any(&has);
    let list = LISTS.into_iter().find(|name| !is_thing && is_list(name))?;
    (list == "results" || !has("results")).then_some(list)
}
