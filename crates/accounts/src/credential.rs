//! The credential of a request, which may end while the request is served.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use super::secret::Digest;
use super::{Denied, Directory, Token, now};
use exa_mcp_model::Identity;

/// The longest time between two looks at the clock: it may be set while somebody waits.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// A token as a request showed it. It ends when the token expires, is revoked, is given to another user, or
/// gets a new text by rotation and the grace period of the old one is over.
#[derive(Clone)]
pub struct Credential {
    directory: Arc<Directory>,
    digest: Digest,
    owner: Identity,
    /// Notified whenever the token changes.
    changes: Arc<watch::Sender<()>>,
}

impl Credential {
    pub(super) fn new(directory: &Arc<Directory>, token: &Token, shown: &str) -> Self {
        Self {
            directory: Arc::clone(directory),
            digest: directory.digest(shown),
            owner: token.owner(),
            changes: Arc::clone(&token.changes),
        }
    }

    /// Returns until when it is valid, in milliseconds since 1970, or why it is not; `None` is for ever.
    fn validity(&self) -> Result<Option<i64>, Denied> {
        self.directory.validity(&self.digest, &self.owner, now())
    }

    /// Waits until it has ended; returns why.
    pub async fn ended(&self) -> Denied {
        let mut changes = self.changes.subscribe();
        loop {
            let wait = match self.validity() {
                Err(why) => return why,
                Ok(None) => None,
                Ok(Some(end)) => {
                    let left = u64::try_from(end.saturating_sub(now())).unwrap_or_default();
                    Some(Duration::from_millis(left).min(LONGEST_WAIT))
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
    use crate::record::{Former, Record};
    use crate::{Secret, TokenLimits};

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    struct Stage {
        directory: Arc<Directory>,
    }

    impl Stage {
        fn new() -> Self {
            let secret = Secret::chosen("s");
            let directory = Directory::new(Some("admin"), None, &secret, TokenLimits::default());
            Self {
                directory: Arc::new(directory.unwrap()),
            }
        }

        fn record(&self, text: &str) -> Record {
            Record {
                id: "t".to_owned(),
                user: Some("ann".to_owned()),
                hash: Some(self.directory.digest(text).written()),
                ..Record::default()
            }
        }

        /// Learns a token; waits for the end of its credential.
        async fn open(&self, record: Record, shown: &'static str) -> JoinHandle<Denied> {
            self.directory.learn(&record);
            let token = self.directory.find(Some(shown), HERE).unwrap();
            let credential = Credential::new(&self.directory, &token, shown);
            let waiting = tokio::spawn(async move { credential.ended().await });
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert!(!waiting.is_finished());
            waiting
        }
    }

    async fn soon(waiting: JoinHandle<Denied>) -> Denied {
        let ended = timeout(Duration::from_secs(1), waiting).await;
        ended.unwrap().unwrap()
    }

    #[tokio::test]
    async fn it_ends_when_its_token_does() {
        let stage = Stage::new();
        let record = stage.record("one");
        let waiting = stage.open(record.clone(), "one").await;
        stage.directory.learn(&Record {
            revoked: Some(1),
            ..record.clone()
        });
        assert_eq!(soon(waiting).await, Denied::Revoked);
        let waiting = stage.open(record.clone(), "one").await;
        stage.directory.learn(&Record {
            expires: Some(now()),
            ..record.clone()
        });
        assert_eq!(soon(waiting).await, Denied::Expired);
        let waiting = stage.open(record.clone(), "one").await;
        stage.directory.learn(&stage.record("two"));
        assert_eq!(soon(waiting).await, Denied::Unknown);
        let waiting = stage.open(record.clone(), "one").await;
        stage.directory.learn(&Record {
            user: Some("ben".to_owned()),
            ..record
        });
        assert_eq!(soon(waiting).await, Denied::Unknown);
    }

    #[tokio::test]
    async fn it_ends_by_itself_at_its_time() {
        let stage = Stage::new();
        let expiring = Record {
            expires: Some(now() + 300),
            ..stage.record("one")
        };
        let waiting = stage.open(expiring, "one").await;
        assert_eq!(soon(waiting).await, Denied::Expired);
        let rotated = Record {
            former: Some(Former {
                hash: stage.directory.digest("one").written(),
                until: now() + 300,
            }),
            ..stage.record("two")
        };
        let old = stage.open(rotated.clone(), "one").await;
        let new = stage.open(rotated, "two").await;
        assert_eq!(soon(old).await, Denied::Unknown);
        assert!(!new.is_finished());
    }

    #[tokio::test]
    async fn it_goes_on_through_other_changes() {
        let stage = Stage::new();
        let record = Record {
            expires: Some(now() + 400),
            ..stage.record("one")
        };
        let waiting = stage.open(record.clone(), "one").await;
        stage.directory.learn(&Record {
            expires: None,
            ..record
        });
        tokio::time::sleep(Duration::from_millis(600)).await;
        assert!(!waiting.is_finished(), "its end was put off");
    }
}
