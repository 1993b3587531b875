//! Splits a response of the API into its results and its other fields.

/// The fields of a response that become part of the metadata.
pub const METADATA_FIELDS: [&str; 2] = ["requestId", "warnings"];

/// The fields that may contain the results; the first one present counts.
const LISTS: [&str; 4] = ["results", "data", "items", "citations"];

/// A response with an identifier is a single object, even if it contains lists.
const IDENTIFIERS: [&str; 2] = ["id", "researchId"];

/// Returns the field that contains the results of a response, unless the response is itself a result.
///
/// The callbacks check the fields of a response or of its schema.
pub fn results_field(
    has: impl Fn(&str) -> bool,
    is_list: impl Fn(&str) -> bool,
) -> Option<&'static str> {
    // The fields `metadata` and `results` are added to a list, so it must not have them already.
    let is_object = has("metadata") || IDENTIFIERS.into_iter().any(&has);
    let list = LISTS.into_iter().find(|name| !is_object && is_list(name))?;
    (list == "results" || !has("results")).then_some(list)
}
