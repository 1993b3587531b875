//! The secret in the store: token and key ids made with it outlive the process.

use super::Secret;
use exa_mcp_model::{Identity, to_hex};
use exa_mcp_store::{Expected, Place, Rules, Store, StoreError};

/// Loads the secret of a store, and creates it if there is none.
///
/// # Errors
/// The store fails, or the operating system gives no random numbers.
pub async fn load_or_create_secret(store: &dyn Store) -> Result<Secret, StoreError> {
    let place = Place {
        owner: Identity::server(),
        collection: "secrets",
        id: "tokens".to_owned(),
    };
    if let Some(document) = store.get(place.clone()).await? {
        return Ok(Secret::chosen(&document.body));
    }
    let bytes =
        Secret::random_bytes().map_err(|error| StoreError::Unavailable(error.to_string()))?;
    let text = to_hex(&bytes);
    let rules = Rules {
        expected: Expected::Nothing,
        ..Rules::default()
    };
    match store.put(place.clone(), text.clone(), rules).await {
        Ok(_) => Ok(Secret::chosen(&text)),
        // Another process that shares the store was faster.
        Err(StoreError::Conflict) => {
            let document = store.get(place).await?;
            let body = document.map(|document| document.body).unwrap_or_default();
            Ok(Secret::chosen(&body))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use exa_mcp_store::{MemoryStore, SqliteStore};

    #[tokio::test]
    async fn the_secret_lives_as_long_as_the_store() {
        let name = |secret: Secret| secret.digest("x", "y").name();
        let folder = tempfile::tempdir().unwrap();
        let open = || SqliteStore::new(folder.path().join("s.db"));
        let first = name(load_or_create_secret(&open()).await.unwrap());
        assert_eq!(name(load_or_create_secret(&open()).await.unwrap()), first);
        let other = name(
            load_or_create_secret(&MemoryStore::default())
                .await
                .unwrap(),
        );
        assert_ne!(other, first);
    }
}
