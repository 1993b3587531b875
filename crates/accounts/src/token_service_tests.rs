//! Tokens on servers that share a store.
#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, Ipv4Addr};

use serde_json::json;

use super::*;
use crate::{AuthError, Secret};
use exa_mcp_store::SqliteStore;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

async fn server(path: &std::path::Path) -> TokenService {
    let store = Arc::new(SqliteStore::new(path.to_owned()));
    let limits = TokenLimits::default();
    let secret = Secret::from_passphrase("s");
    let directory = TokenDirectory::new(Some("admin"), Some("a:ann"), &secret, limits).unwrap();
    TokenService::open(store, Arc::new(directory))
        .await
        .unwrap()
}

fn new_token() -> NewToken {
    NewToken {
        user: Some("bob".to_owned()),
        role: TokenRole::User,
        expires: None,
        limits: TokenLimits::default(),
    }
}

#[tokio::test]
async fn servers_share_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let (one, two) = (server(&path).await, server(&path).await);
    let find = |server: &TokenService, token: &str| {
        let found = server.directory.authenticate(Some(token), HERE);
        found.map(|token| token.id.clone())
    };
    let (text, token) = one.create(new_token()).await.unwrap();
    assert_eq!(find(&one, &text), Ok(token.id.clone()));
    assert_eq!(find(&two, &text), Err(AuthError::Unknown));
    two.load_changes().await.unwrap();
    assert_eq!(find(&two, &text), Ok(token.id.clone()));
    let (rotated, _) = two.rotate(&token.id, Duration::ZERO).await.unwrap();
    one.load_changes().await.unwrap();
    assert_eq!(find(&one, &text), Err(AuthError::Unknown));
    assert_eq!(find(&one, &rotated), Ok(token.id.clone()));
    for n in 1..=150 {
        let limits = Some(json!({"requestsPerMinute": n}));
        let update = TokenUpdate {
            limits,
            ..TokenUpdate::default()
        };
        one.update(&token.id, update).await.unwrap();
    }
    one.revoke(&token.id).await.unwrap();
    two.load_changes().await.unwrap();
    assert_eq!(find(&two, &rotated), Err(AuthError::Revoked));
    let known = two.directory.get(&token.id).unwrap();
    assert_eq!(known.limits.requests_per_minute, Some(150));
    assert_eq!(
        find(&server(&path).await, &rotated),
        Err(AuthError::Revoked)
    );
}

#[tokio::test]
async fn servers_share_previous_users() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let (one, two) = (server(&path).await, server(&path).await);
    let (_, token) = one.create(new_token()).await.unwrap();
    let update = TokenUpdate {
        user: Some(Some("ben".to_owned())),
        ..TokenUpdate::default()
    };
    one.update(&token.id, update).await.unwrap();
    two.load_changes().await.unwrap();
    let bob = Identity::user("bob");
    let owners = HashSet::from([bob.clone(), Identity::user("ben")]);
    for server in [one, two, server(&path).await] {
        let without_access = server.directory.owners_without_access(&owners, now());
        assert_eq!(without_access, [(bob.clone(), AuthError::Unknown)]);
    }
}

#[tokio::test]
async fn configured_tokens_can_only_be_limited_and_revoked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.db");
    let one = server(&path).await;
    let id = |token| {
        one.directory
            .authenticate(Some(token), HERE)
            .unwrap()
            .id
            .clone()
    };
    let (admin, ann) = (id("admin"), id("a"));
    let is_immutable = |error| matches!(error, Some(TokenServiceError::Immutable(_)));
    assert!(is_immutable(one.revoke(&admin).await.err()));
    assert!(is_immutable(one.rotate(&ann, Duration::ZERO).await.err()));
    let update = TokenUpdate {
        user: Some(None),
        ..TokenUpdate::default()
    };
    assert!(is_immutable(one.update(&ann, update).await.err()));
    one.revoke(&ann).await.unwrap();
    let again = server(&path).await;
    let found = again.directory.authenticate(Some("a"), HERE);
    assert_eq!(found.err(), Some(AuthError::Revoked));
    assert!(matches!(
        one.revoke("nobody").await.err(),
        Some(TokenServiceError::Unknown)
    ));
}
