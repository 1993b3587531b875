//! The secret in the store. Token and key ids derived from it outlive the process.

use super::Secret;
use exa_mcp_model::{Identity, to_hex};
use exa_mcp_store::{DocumentKey, ExpectedRevision, Store, StoreError, WriteOptions};

/// Loads the secret of a store, or creates it.
///
/// # Errors
/// The store fails, or the operating system does not provide random numbers.
pub async fn load_or_create_secret(store: &dyn Store) -> Result<Secret, StoreError> {
    let key = DocumentKey {
        owner: Identity::server(),
        collection: "secrets",
        id: "tokens".to_owned(),
    };
    if let Some(document) = store.get(key.clone()).await? {
        return Ok(Secret::from_passphrase(&document.body));
    }
    let bytes =
        Secret::random_bytes().map_err(|error| StoreError::Unavailable(error.to_string()))?;
    let text = to_hex(&bytes);
    let options = WriteOptions {
        expected: ExpectedRevision::Absent,
        ..WriteOptions::default()
    };
    match store.put(key.clone(), text.clone(), options).await {
        Ok(_) => Ok(Secret::from_passphrase(&text)),
        // Another process created it at the same time.
        Err(StoreError::Conflict) => {
            let document = store.get(key).await?;
            let body = document.map(|document| document.body).unwrap_or_default();
            Ok(Secret::from_passphrase(&body))
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
    async fn the_secret_persists_with_the_store() {
        let fingerprint = |secret: Secret| secret.digest("x", "y").short_hex();
        let folder = tempfile::tempdir().unwrap();
        let open = || SqliteStore::new(folder.path().join("s.db"));
        let first = fingerprint(load_or_create_secret(&open()).await.unwrap());
        assert_eq!(
            fingerprint(load_or_create_secret(&open()).await.unwrap()),
            first
        );
        let other = fingerprint(
            load_or_create_secret(&MemoryStore::default())
                .await
                .unwrap(),
        );
        assert_ne!(other, first);
    }
}
