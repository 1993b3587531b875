//! The credential of a request, which may become invalid while the request is served.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use super::secret::Digest;
use super::{AuthError, Token, TokenDirectory, now};
use exa_mcp_model::Identity;

/// How long to wait before reading the clock again, because it may be adjusted meanwhile.
const MAX_WAIT: Duration = Duration::from_secs(60);

/// A token as a request presented it. It becomes invalid when the token expires, is revoked, is assigned to another
/// user, or is rotated and the grace period of the old text has passed.
#[derive(Clone)]
pub struct Credential {
    directory: Arc<TokenDirectory>,
    digest: Digest,
    owner: Identity,
    /// Notified whenever the token changes.
    changes: Arc<watch::Sender<()>>,
}

impl Credential {
    pub(super) fn new(directory: &Arc<TokenDirectory>, token: &Token, presented: &str) -> Self {
        Self {
            directory: Arc::clone(directory),
            digest: directory.digest(presented),
            owner: token.owner(),
            changes: Arc::clone(&token.changes),
        }
    }

    /// Returns until when it is valid, in milliseconds since 1970; `None` is forever.
    fn validity(&self) -> Result<Option<i64>, AuthError> {
        self.directory.validity(&self.digest, &self.owner, now())
    }

    /// Returns whether it is valid now.
    pub fn is_valid(&self) -> bool {
        self.validity().is_ok()
    }

    /// Waits until it is invalid and returns why.
    pub async fn wait_until_invalid(&self) -> AuthError {
        let mut changes = self.changes.subscribe();
        loop {
            let wait = match self.validity() {
                Err(error) => return error,
                Ok(None) => None,
                Ok(Some(until)) => {
                    let left = u64::try_from(until.saturating_sub(now())).unwrap_or_default();
                    Some(Duration::from_millis(left).min(MAX_WAIT))
                }
            };
            match wait {
                Some(wait) => drop(timeout(wait, changes.changed()).await),
                None => drop(changes.changed().await),
            }
        }
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Credential").field(&self.owner).finish()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr};

    use tokio::task::JoinHandle;

    use super::*;
    use crate::token_record::{PreviousToken, TokenRecord};
    use crate::{Secret, TokenLimits};

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    struct Fixture {
        directory: Arc<TokenDirectory>,
    }

    impl Fixture {
        fn new() -> Self {
            let secret = Secret::from_passphrase("s");
            let directory =
                TokenDirectory::new(Some("admin"), None, &secret, TokenLimits::default());
            Self {
                directory: Arc::new(directory.unwrap()),
            }
        }

        fn record(&self, text: &str) -> TokenRecord {
            TokenRecord {
                id: "t".to_owned(),
                user: Some("ann".to_owned()),
                hash: Some(self.directory.digest(text).to_hex()),
                ..TokenRecord::default()
            }
        }

        /// Adds a token and waits for its credential to become invalid.
        async fn open(
            &self,
            record: TokenRecord,
            presented: &'static str,
        ) -> JoinHandle<AuthError> {
            self.directory.apply(&record);
            let token = self.directory.authenticate(Some(presented), HERE).unwrap();
            let credential = Credential::new(&self.directory, &token, presented);
            assert!(credential.is_valid());
            let waiting = tokio::spawn(async move {
                let reason = credential.wait_until_invalid().await;
                assert!(!credential.is_valid());
                reason
            });
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert!(!waiting.is_finished());
            waiting
        }
    }

    async fn result_of(waiting: JoinHandle<AuthError>) -> AuthError {
        let ended = timeout(Duration::from_secs(1), waiting).await;
        ended.unwrap().unwrap()
    }

    #[tokio::test]
    async fn becomes_invalid_with_its_token() {
        let fixture = Fixture::new();
        let record = fixture.record("one");
        let waiting = fixture.open(record.clone(), "one").await;
        fixture.directory.apply(&TokenRecord {
            revoked: Some(1),
            ..record.clone()
        });
        assert_eq!(result_of(waiting).await, AuthError::Revoked);
        let waiting = fixture.open(record.clone(), "one").await;
        fixture.directory.apply(&TokenRecord {
            expires: Some(now()),
            ..record.clone()
        });
        assert_eq!(result_of(waiting).await, AuthError::Expired);
        let waiting = fixture.open(record.clone(), "one").await;
        fixture.directory.apply(&fixture.record("two"));
        assert_eq!(result_of(waiting).await, AuthError::Unknown);
        let waiting = fixture.open(record.clone(), "one").await;
        fixture.directory.apply(&TokenRecord {
            user: Some("ben".to_owned()),
            ..record
        });
        assert_eq!(result_of(waiting).await, AuthError::Unknown);
    }

    #[tokio::test]
    async fn becomes_invalid_at_its_expiry() {
        let fixture = Fixture::new();
        let expiring = TokenRecord {
            expires: Some(now() + 300),
            ..fixture.record("one")
        };
        let waiting = fixture.open(expiring, "one").await;
        assert_eq!(result_of(waiting).await, AuthError::Expired);
        let rotated = TokenRecord {
            previous: Some(PreviousToken {
                hash: fixture.directory.digest("one").to_hex(),
                until: now() + 300,
            }),
            ..fixture.record("two")
        };
        let old = fixture.open(rotated.clone(), "one").await;
        let new = fixture.open(rotated, "two").await;
        assert_eq!(result_of(old).await, AuthError::Unknown);
        assert!(!new.is_finished());
    }

    #[tokio::test]
    async fn survives_other_changes() {
        let fixture = Fixture::new();
        let record = TokenRecord {
            expires: Some(now() + 400),
            ..fixture.record("one")
        };
        let waiting = fixture.open(record.clone(), "one").await;
        fixture.directory.apply(&TokenRecord {
            expires: None,
            ..record
        });
        tokio::time::sleep(Duration::from_millis(600)).await;
        assert!(!waiting.is_finished(), "the expiry was removed");
    }
}
