//! Uploads over real sockets.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::stream;

use super::*;
use crate::{
    ExaErrorKind, UploadRequest,
    test_server::{ScriptedResponse, TestServer},
    upload,
};

fn local_http(server: &TestServer) -> ExaHttp {
    let config = ExaConfig {
        base_url: Some(server.url().parse().unwrap()),
        ..quick()
    };
    ExaHttp::new(config).unwrap()
}

async fn sent(server: &TestServer, opened: &AtomicUsize) -> Result<(), ExaError> {
    let address = format!("{}/file?signature=hidden-query", server.url());
    let request = UploadRequest {
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
    let outcome = upload(&local_http(server), request, pieces).await;
    if let Err(error) = &outcome {
        assert!(!error.to_string().contains("hidden-query"), "{error}");
    }
    outcome
}

#[tokio::test]
async fn uploads_a_file_without_the_key() {
    let server = TestServer::start([ScriptedResponse::new(200, &[], "")]).await;
    sent(&server, &AtomicUsize::new(0)).await.unwrap();
    let request = &server.requests()[0];
    assert_eq!(
        (request.method.as_str(), request.body.as_slice()),
        ("PUT", b"name\none\n2".as_slice())
    );
    assert_eq!(request.header("content-type"), Some("text/csv"));
    assert_eq!(request.header("content-length"), Some("10"));
    for name in ["x-api-key", "authorization", "transfer-encoding", "cookie"] {
        assert_eq!(request.header(name), None, "{name}");
    }
}

#[tokio::test]
async fn retries_temporary_failures_from_the_start() {
    let responses = [
        ScriptedResponse::new(503, &[], ""),
        ScriptedResponse::cut(),
        ScriptedResponse::new(204, &[], ""),
    ];
    let server = TestServer::start(responses).await;
    let opened = AtomicUsize::new(0);
    sent(&server, &opened).await.unwrap();
    assert_eq!((server.count(), opened.into_inner()), (3, 3));
    assert_eq!(server.requests()[2].body, b"name\none\n2");
}

#[tokio::test]
async fn reports_rejections_and_redirects() {
    let xml = "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>Request has expired</Message></Error>";
    let moved = [("location", "https://elsewhere.example/file")];
    for (scripted, part) in [
        (
            ScriptedResponse::new(403, &[], xml),
            "403 Forbidden: AccessDenied Request has expired",
        ),
        (
            ScriptedResponse::new(307, &moved, ""),
            "follows no redirect",
        ),
        (ScriptedResponse::new(400, &[], ""), "400 Bad Request"),
    ] {
        let server = TestServer::start([scripted]).await;
        let error = sent(&server, &AtomicUsize::new(0)).await.unwrap_err();
        assert_eq!((error.kind, server.count()), (ExaErrorKind::Upload, 1));
        assert!(error.message.contains(part), "{error}");
    }
}

#[tokio::test]
async fn does_not_retry_an_unreadable_file() {
    let server = TestServer::start([ScriptedResponse::new(200, &[], "")]).await;
    let address = format!("{}/file", server.url());
    let request = UploadRequest {
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
    let error = upload(&local_http(&server), request, pieces)
        .await
        .unwrap_err();
    assert_eq!(error.kind, ExaErrorKind::Upload);
    assert_eq!(server.count(), 0, "no complete request arrived");
}

#[tokio::test]
async fn does_not_connect_to_names_of_private_addresses() {
    let server = TestServer::start([ScriptedResponse::new(200, &[], "")]).await;
    let port = server.url().rsplit(':').next().unwrap().to_owned();
    let client = local_http(&server).public_client("LOCALHOST").unwrap();
    let sent = client.put(format!("http://localhost:{port}/file")).send();
    let error = sent.await.unwrap_err();
    let text = format!("{error:?}");
    assert!(text.contains("NotPublicError"), "{text}");
    assert_eq!(server.count(), 0);
}
