//! Where imports send their CSV. At Exa this is a storage service that knows nothing of API keys, so
//! a key sent here is a leak, and refused to make it noticed.

use axum::http::HeaderMap;

use crate::failure::Failure;
use crate::state::World;

/// Takes the file of the import behind `token`.
pub(super) fn put(
    world: &mut World,
    token: &str,
    headers: &HeaderMap,
    body: &[u8],
    lenient: bool,
) -> Result<(), Failure> {
    if headers.contains_key("x-api-key") || headers.contains_key("authorization") {
        return Err(Failure::invalid(
            "An API key was sent to the upload URL; it belongs to the API alone",
        ));
    }
    let unknown = || Failure::new(404, "NOT_FOUND", "This upload URL is not known");
    let (key, import) = world.uploads.get(token).cloned().ok_or_else(unknown)?;
    world
        .account(&key)
        .upload(&import, body, lenient)
        .ok_or_else(unknown)?
}
