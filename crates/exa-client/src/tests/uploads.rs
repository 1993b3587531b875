//! Uploads over real sockets.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::stream;

use super::*;
use crate::{
    ExaErrorKind, UploadRequest,
    test_server::{Reply, TestServer},
    upload,
};

fn near(server: &TestServer) -> ExaHttp {
    let config = ExaConfig {
        base_url: Some(server.url().parse().unwrap()),
        ..quick()
    };
    ExaHttp::new(config).unwrap()
}

async fn sent(server: &TestServer, opened: &AtomicUsize) -> Result<(), ExaError> {
    let address = format!("{}/file?signature=hidden-query", server.url());
    let told = UploadRequest {
        address: &address,
        size: 10,
        content_type: "text/csv",
    };
    let pieces = || {
        opened.fetch_add(1, Ordering::Relaxed);
        let pieces =
            ["name\n", "one\n", "2"].map(|piece| io::Result::Ok(piece.as_bytes().to_vec()));
        Some(stream::iter(pieces))
    };
    let outcome = upload(&near(server), told, pieces).await;
    if let Err(error) = &outcome {
        assert!(!error.to_string().contains("hidden-query"), "{error}");
    }
    outcome
}

#[tokio::test]
async fn a_file_is_put_without_the_key() {
    let server = TestServer::start([Reply::new(200, &[], "")]).await;
    sent(&server, &AtomicUsize::new(0)).await.unwrap();
    let seen = &server.seen()[0];
    assert_eq!(
        (seen.method.as_str(), seen.body.as_slice()),
        ("PUT", b"name\none\n2".as_slice())
    );
    assert_eq!(seen.header("content-type"), Some("text/csv"));
    assert_eq!(seen.header("content-length"), Some("10"));
    for name in ["x-api-key", "authorization", "transfer-encoding", "cookie"] {
        assert_eq!(seen.header(name), None, "{name}");
    }
}

#[tokio::test]
async fn trouble_that_passes_is_waited_out_and_the_file_sent_anew() {
    let replies = [
        Reply::new(503, &[], ""),
        Reply::cut(),
        Reply::new(204, &[], ""),
    ];
    let server = TestServer::start(replies).await;
    let opened = AtomicUsize::new(0);
    sent(&server, &opened).await.unwrap();
    assert_eq!((server.count(), opened.into_inner()), (3, 3));
    assert_eq!(server.seen()[2].body, b"name\none\n2");
}

#[tokio::test]
async fn refusals_and_redirects_are_told() {
    let xml = "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>";
    let moved = [("location", "https://elsewhere.example/file")];
    for (reply, part) in [
        (
            Reply::new(403, &[], xml),
            "403 Forbidden: AccessDenied Request has expired",
        ),
        (Reply::new(307, &moved, ""), "follows no redirect"),
        (Reply::new(400, &[], ""), "400 Bad Request"),
    ] {
        let server = TestServer::start([reply]).await;
        let error = sent(&server, &AtomicUsize::new(0)).await.unwrap_err();
        assert_eq!(
            (error.kind, server.count()),
            (ExaErrorKind::UploadRequest, 1)
        );
        assert!(error.message.contains(part), "{error}");
    }
}

#[tokio::test]
async fn a_file_that_fails_is_not_sent_again() {
    let server = TestServer::start([Reply::new(200, &[], "")]).await;
    let address = format!("{}/file", server.url());
    let told = UploadRequest {
        address: &address,
        size: 10,
        content_type: "text/csv",
    };
    let opened = AtomicUsize::new(0);
    let pieces = || {
        let first = opened.fetch_add(1, Ordering::Relaxed) == 0;
        let pieces = [Ok(b"name\n".to_vec()), Err(io::Error::other("changed"))];
        first.then(|| stream::iter(pieces))
    };
    let error = upload(&near(&server), told, pieces).await.unwrap_err();
    assert_eq!(error.kind, ExaErrorKind::Upload);
    assert_eq!(server.count(), 0, "nothing arrived whole");
}

#[tokio::test]
async fn a_name_of_a_private_address_is_not_connected_to() {
    let server = TestServer::start([Reply::new(200, &[], "")]).await;
    let port = server.url().rsplit(':').next().unwrap().to_owned();
    let client = near(&server).public_client("LOCALHOST").unwrap();
    let sent = client.put(format!("http://localhost:{port}/file")).send();
    let error = sent.await.unwrap_err();
    let told = format!("{error:?}");
    assert!(told.contains("NotPublic"), "{told}");
    assert_eq!(server.count(), 0);
}
