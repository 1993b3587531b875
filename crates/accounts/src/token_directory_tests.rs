//! Authentication by token, and access by owner.
#![allow(clippy::unwrap_used)]

use std::net::Ipv4Addr;

use super::*;
use crate::token_record::PreviousToken;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn directory(users: &str) -> TokenDirectory {
    let limits = TokenLimits::default();
    let secret = Secret::from_passphrase("s");
    TokenDirectory::new(Some("admin-secret"), Some(users), &secret, limits).unwrap()
}

#[test]
fn authenticates_active_tokens() {
    let directory = directory("a:ann:2999-01-01,b::never,c:carl:2001-01-01");
    let owner = |token| {
        directory
            .authenticate(token, HERE)
            .map(|token| token.owner())
    };
    assert_eq!(owner(Some("a")), Ok(Identity::user("ann")));
    assert!(owner(Some("b")).unwrap().as_str().starts_with("token:"));
    assert_eq!(owner(Some("c")), Err(AuthError::Expired));
    for wrong in [None, Some(""), Some("A"), Some("aa"), Some("a:ann")] {
        assert_eq!(owner(wrong), Err(AuthError::Unknown), "{wrong:?}");
    }
}

#[test]
fn only_admin_tokens_are_admins() {
    let directory = directory("a");
    let check_admin = |token| {
        directory
            .authenticate(Some(token), HERE)
            .unwrap()
            .check_admin()
    };
    assert_eq!(check_admin("admin-secret"), Ok(()));
    assert_eq!(check_admin("a"), Err(AuthError::NotAdmin));
}

#[test]
fn throttles_wrong_tokens_only() {
    let directory = directory("a,b:ben:2001-01-01");
    for _ in 0..10 {
        assert_eq!(
            directory.authenticate(Some("x"), HERE).err(),
            Some(AuthError::Unknown)
        );
    }
    let throttled = |token| {
        matches!(
            directory.authenticate(Some(token), HERE),
            Err(AuthError::Throttled(_))
        )
    };
    assert!(throttled("x") && throttled("y"));
    assert!(directory.authenticate(Some("a"), HERE).is_ok());
    assert_eq!(
        directory.authenticate(Some("b"), HERE).err(),
        Some(AuthError::Expired)
    );
    assert!(throttled("x"), "a valid token does not reset the throttle");
    assert_eq!(
        directory.authenticate(None, HERE).err(),
        Some(AuthError::Unknown)
    );
}

#[test]
fn owners_lose_access_with_their_last_token() {
    let directory = directory("a:ann,a2:ann:2001-01-01,b:ben:2001-01-01,c:carl,d::2001-01-01");
    let id = |token: &str| {
        let token = directory.lookup(Some(token), HERE);
        token.unwrap().id.clone()
    };
    let nameless = Identity::token(&id("d"));
    let users = ["ann", "ben", "carl", "nobody"].map(Identity::user);
    let owners: HashSet<Identity> = users.into_iter().chain([nameless.clone()]).collect();
    let without_access = || {
        let mut without_access = directory.owners_without_access(&owners, now());
        without_access.sort_by(|one, other| one.0.cmp(&other.0));
        without_access
    };
    let ben = (Identity::user("ben"), AuthError::Expired);
    let nameless = (nameless, AuthError::Expired);
    assert_eq!(without_access(), [nameless.clone(), ben.clone()]);
    directory.apply(&TokenRecord {
        id: id("a"),
        revoked: Some(1),
        ..TokenRecord::default()
    });
    let ann = (Identity::user("ann"), AuthError::Revoked);
    assert_eq!(without_access(), [nameless, ann, ben]);
    assert!(
        directory
            .owners_without_access(&HashSet::new(), now())
            .is_empty()
    );
}

#[test]
fn owners_lose_access_when_their_token_is_reassigned() {
    let directory = directory("c:carl");
    let owners: HashSet<Identity> = [Identity::token("t")]
        .into_iter()
        .chain(["ann", "ben", "carl"].map(Identity::user))
        .collect();
    let without_access = || {
        let mut without_access = directory.owners_without_access(&owners, now());
        without_access.sort_by(|one, other| one.0.cmp(&other.0));
        without_access
    };
    let mut record = TokenRecord {
        id: "t".to_owned(),
        hash: Some(directory.digest("text").to_hex()),
        user: Some("ann".to_owned()),
        ..TokenRecord::default()
    };
    directory.apply(&record);
    assert_eq!(without_access(), []);
    let without = |user: &str| (Identity::user(user), AuthError::Unknown);
    // Carl has a token of his own.
    for (user, expected) in [
        (Some("ben"), vec![without("ann")]),
        (None, vec![without("ann"), without("ben")]),
        (
            Some("carl"),
            vec![
                (Identity::token("t"), AuthError::Unknown),
                without("ann"),
                without("ben"),
            ],
        ),
        (
            Some("ann"),
            vec![(Identity::token("t"), AuthError::Unknown), without("ben")],
        ),
    ] {
        record.assign_to(user);
        directory.apply(&record);
        assert_eq!(without_access(), expected, "{user:?}");
    }
    // Ben gets another token.
    directory.apply(&TokenRecord {
        id: "other".to_owned(),
        hash: Some(directory.digest("other").to_hex()),
        user: Some("ben".to_owned()),
        ..TokenRecord::default()
    });
    assert_eq!(
        without_access(),
        [(Identity::token("t"), AuthError::Unknown)]
    );
}

#[test]
fn finds_one_of_many_tokens() {
    let users: Vec<String> = (0..20_000).map(|n| format!("t{n}:u{n}")).collect();
    let directory = directory(&users.join(","));
    for n in (0..20_000).step_by(997) {
        let token = directory
            .authenticate(Some(&format!("t{n}")), HERE)
            .unwrap();
        assert_eq!(token.owner(), Identity::user(&format!("u{n}")));
    }
}

#[test]
fn applied_records_take_effect_immediately() {
    let directory = directory("a:ann");
    let find = |token| {
        directory
            .authenticate(Some(token), HERE)
            .map(|token| token.id.clone())
    };
    let record = |token: &str| TokenRecord {
        id: "t".to_owned(),
        hash: Some(directory.digest(token).to_hex()),
        ..TokenRecord::default()
    };
    directory.apply(&record("one"));
    assert_eq!(find("one"), Ok("t".to_owned()));
    let rotated = |until| TokenRecord {
        previous: Some(PreviousToken {
            hash: directory.digest("one").to_hex(),
            until,
        }),
        ..record("two")
    };
    directory.apply(&rotated(now() + 60_000));
    assert!(find("one").is_ok() && find("two").is_ok());
    directory.apply(&rotated(now()));
    assert_eq!(find("one"), Err(AuthError::Unknown));
    let revoked = Some(1);
    directory.apply(&TokenRecord {
        revoked,
        ..record("two")
    });
    assert_eq!(find("two"), Err(AuthError::Revoked));
    assert_eq!(directory.len(), 3);
    let ann = find("a").unwrap();
    directory.apply(&TokenRecord {
        id: ann.clone(),
        revoked,
        ..TokenRecord::default()
    });
    assert_eq!(find("a"), Err(AuthError::Revoked));
    assert_eq!(directory.get(&ann).unwrap().user.as_deref(), Some("ann"));
    directory.apply(&TokenRecord {
        id: "gone".to_owned(),
        ..TokenRecord::default()
    });
    assert_eq!(directory.len(), 3);
}
