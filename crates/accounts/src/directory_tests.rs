//! Tokens by their texts, and owners by their tokens.
#![allow(clippy::unwrap_used)]

use std::net::Ipv4Addr;

use super::*;
use crate::record::Former;

const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn directory(users: &str) -> Directory {
    let usual = TokenLimits::default();
    let secret = Secret::chosen("s");
    Directory::new(Some("admin-secret"), Some(users), &secret, usual).unwrap()
}

#[test]
fn a_token_lets_its_holder_in() {
    let directory = directory("a:ann:2999-01-01,b::never,c:carl:2001-01-01");
    let found = |token| directory.find(token, HERE).map(|token| token.owner());
    assert_eq!(found(Some("a")), Ok(Identity::user("ann")));
    assert!(found(Some("b")).unwrap().as_str().starts_with("token:"));
    assert_eq!(found(Some("c")), Err(Denied::Expired));
    for wrong in [None, Some(""), Some("A"), Some("aa"), Some("a:ann")] {
        assert_eq!(found(wrong), Err(Denied::Unknown), "{wrong:?}");
    }
}

#[test]
fn only_the_admin_looks_after_the_server() {
    let directory = directory("a");
    let admit = |token| directory.find(Some(token), HERE).unwrap().admit_admin();
    assert_eq!(admit("admin-secret"), Ok(()));
    assert_eq!(admit("a"), Err(Denied::NotAdmin));
}

#[test]
fn guesses_are_throttled_and_tokens_are_not() {
    let directory = directory("a,b:ben:2001-01-01");
    for _ in 0..10 {
        assert_eq!(directory.find(Some("x"), HERE).err(), Some(Denied::Unknown));
    }
    let throttled = |token| matches!(directory.find(Some(token), HERE), Err(Denied::Throttled(_)));
    assert!(throttled("x") && throttled("y"));
    assert!(directory.find(Some("a"), HERE).is_ok());
    assert_eq!(directory.find(Some("b"), HERE).err(), Some(Denied::Expired));
    assert!(throttled("x"), "a right token gives no further tries");
    assert_eq!(directory.find(None, HERE).err(), Some(Denied::Unknown));
}

#[test]
fn an_owner_ends_with_the_last_of_their_tokens() {
    let directory = directory("a:ann,a2:ann:2001-01-01,b:ben:2001-01-01,c:carl,d::2001-01-01");
    let id = |token: &str| {
        let known = directory.known(Some(token), HERE);
        known.unwrap().id.clone()
    };
    let nameless = Identity::token(&id("d"));
    let users = ["ann", "ben", "carl", "nobody"].map(Identity::user);
    let owners: HashSet<Identity> = users.into_iter().chain([nameless.clone()]).collect();
    let ended = || {
        let mut ended = directory.ended_owners(&owners, now());
        ended.sort_by(|one, other| one.0.cmp(&other.0));
        ended
    };
    let ben = (Identity::user("ben"), Denied::Expired);
    let nameless = (nameless, Denied::Expired);
    assert_eq!(ended(), [nameless.clone(), ben.clone()]);
    directory.learn(&Record {
        id: id("a"),
        revoked: Some(1),
        ..Record::default()
    });
    let ann = (Identity::user("ann"), Denied::Revoked);
    assert_eq!(ended(), [nameless, ann, ben]);
    assert!(directory.ended_owners(&HashSet::new(), now()).is_empty());
}

#[test]
fn an_owner_ends_when_their_last_token_is_given_to_somebody_else() {
    let directory = directory("c:carl");
    let owners: HashSet<Identity> = [Identity::token("t")]
        .into_iter()
        .chain(["ann", "ben", "carl"].map(Identity::user))
        .collect();
    let ended = || {
        let mut ended = directory.ended_owners(&owners, now());
        ended.sort_by(|one, other| one.0.cmp(&other.0));
        ended
    };
    let mut record = Record {
        id: "t".to_owned(),
        hash: Some(directory.digest("text").written()),
        user: Some("ann".to_owned()),
        ..Record::default()
    };
    directory.learn(&record);
    assert_eq!(ended(), []);
    let without = |user: &str| (Identity::user(user), Denied::Unknown);
    // Carl has a token of his own.
    for (user, expected) in [
        (Some("ben"), vec![without("ann")]),
        (None, vec![without("ann"), without("ben")]),
        (
            Some("carl"),
            vec![
                (Identity::token("t"), Denied::Unknown),
                without("ann"),
                without("ben"),
            ],
        ),
        (
            Some("ann"),
            vec![(Identity::token("t"), Denied::Unknown), without("ben")],
        ),
    ] {
        record.give_to(user);
        directory.learn(&record);
        assert_eq!(ended(), expected, "{user:?}");
    }
    // Ben gets another token.
    directory.learn(&Record {
        id: "other".to_owned(),
        hash: Some(directory.digest("other").written()),
        user: Some("ben".to_owned()),
        ..Record::default()
    });
    assert_eq!(ended(), [(Identity::token("t"), Denied::Unknown)]);
}

#[test]
fn many_tokens_are_all_found() {
    let users: Vec<String> = (0..20_000).map(|n| format!("t{n}:u{n}")).collect();
    let directory = directory(&users.join(","));
    for n in (0..20_000).step_by(997) {
        let token = directory.find(Some(&format!("t{n}")), HERE).unwrap();
        assert_eq!(token.owner(), Identity::user(&format!("u{n}")));
    }
}

#[test]
fn what_is_learnt_counts_at_once() {
    let directory = directory("a:ann");
    let find = |token| {
        directory
            .find(Some(token), HERE)
            .map(|token| token.id.clone())
    };
    let record = |token: &str| Record {
        id: "t".to_owned(),
        hash: Some(directory.digest(token).written()),
        ..Record::default()
    };
    directory.learn(&record("one"));
    assert_eq!(find("one"), Ok("t".to_owned()));
    let renewed = |until| Record {
        former: Some(Former {
            hash: directory.digest("one").written(),
            until,
        }),
        ..record("two")
    };
    directory.learn(&renewed(now() + 60_000));
    assert!(find("one").is_ok() && find("two").is_ok());
    directory.learn(&renewed(now()));
    assert_eq!(find("one"), Err(Denied::Unknown));
    let revoked = Some(1);
    directory.learn(&Record {
        revoked,
        ..record("two")
    });
    assert_eq!(find("two"), Err(Denied::Revoked));
    assert_eq!(directory.len(), 3);
    let ann = find("a").unwrap();
    directory.learn(&Record {
        id: ann.clone(),
        revoked,
        ..Record::default()
    });
    assert_eq!(find("a"), Err(Denied::Revoked));
    assert_eq!(directory.get(&ann).unwrap().user.as_deref(), Some("ann"));
    directory.learn(&Record {
        id: "gone".to_owned(),
        ..Record::default()
    });
    assert_eq!(directory.len(), 3);
}
