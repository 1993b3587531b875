//! The page as a browser, and as somebody who tries to deceive, sees it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

/// A page and its parts.
struct Visit {
    keys: KeyPool,
    page: KeyPage,
    host: String,
    path: String,
}

impl Visit {
    async fn new() -> Self {
        let keys = KeyPool::new([]);
        let page = KeyDesk::new(keys.clone()).page().await.unwrap();
        let rest = page.url.strip_prefix("http://").unwrap();
        let (host, path) = rest.split_once('/').unwrap();
        Self {
            host: host.to_owned(),
            path: format!("/{path}"),
            keys,
            page,
        }
    }

    async fn send(&self, head: &str, body: &str) -> String {
        let Ok(mut stream) = TcpStream::connect(&self.host).await else {
            return "closed".to_owned();
        };
        let length = body.len();
        let text = format!("{head}\r\nContent-Length: {length}\r\n\r\n{body}");
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    }

    async fn get(&self, path: &str, host: &str) -> String {
        self.send(&format!("GET {path} HTTP/1.1\r\nHost: {host}"), "")
            .await
    }

    async fn post(&self, more: &str, body: &str) -> String {
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: {}{more}\r\nContent-Type: application/x-www-form-urlencoded",
            self.path, self.host
        );
        self.send(&head, body).await
    }

    async fn token(&self) -> String {
        let form = self.get(&self.path, &self.host).await;
        let (_, rest) = form.split_once("name=\"token\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    }
}

fn status(answer: &str) -> &str {
    answer.split(' ').nth(1).unwrap_or(answer)
}

#[tokio::test]
async fn a_key_is_taken_once_and_the_page_is_gone() {
    let visit = Visit::new().await;
    assert!(visit.page.url.starts_with("http://127.0.0.1:"));
    let token = visit.token().await;
    let origin = format!("\r\nOrigin: http://{}", visit.host);
    let body = format!("token={token}&key=+exa-key%2D1%0A");
    let answer = visit.post(&origin, &body).await;
    assert_eq!(status(&answer), "200", "{answer}");
    assert!(!answer.contains("exa-key"), "{answer}");
    assert!(visit.page.is_done().await);
    assert_eq!(
        visit
            .keys
            .lease("search", None, &[])
            .unwrap()
            .key()
            .redact("exa-key-1"),
        "[redacted]"
    );
    let again = visit.post(&origin, &body).await;
    assert!(["410", "closed"].contains(&status(&again)), "{again}");
    assert_eq!(visit.keys.len(), 1);
}

#[tokio::test]
async fn the_page_loads_nothing_and_is_kept_nowhere() {
    let visit = Visit::new().await;
    let answer = visit.get(&visit.path, &visit.host).await.to_lowercase();
    for part in [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "form-action 'self'",
        "cache-control: no-store",
        "x-content-type-options: nosniff",
        "referrer-policy: same-origin",
    ] {
        assert!(answer.contains(part), "{part} in {answer}");
    }
    assert!(!answer.contains("<script"));
}

#[tokio::test]
async fn who_does_not_know_the_address_finds_nothing() {
    let visit = Visit::new().await;
    for path in ["/", "/favicon.ico", &format!("{}x", visit.path)] {
        let answer = visit.get(path, &visit.host).await;
        assert_eq!(status(&answer), "404", "{path}");
    }
    // A name of another host that points to this machine.
    let answer = visit.get(&visit.path, "evil.example").await;
    assert_eq!(status(&answer), "404");
}

#[tokio::test]
async fn forms_of_other_pages_are_refused() {
    let visit = Visit::new().await;
    let token = visit.token().await;
    let good = format!("token={token}&key=k-1");
    for (more, body) in [
        ("", "key=k-1"),
        ("", "token=wrong&key=k-1"),
        ("\r\nOrigin: https://evil.example", good.as_str()),
        ("\r\nOrigin: null", good.as_str()),
    ] {
        let answer = visit.post(more, body).await;
        assert_eq!(status(&answer), "403", "{more} {body}");
    }
    assert!(visit.keys.is_empty());
}

#[tokio::test]
async fn what_is_no_key_can_be_corrected() {
    let visit = Visit::new().await;
    let token = visit.token().await;
    for key in ["", "%20", "sch%C3%BCssel", "a%0D%0Ab"] {
        let answer = visit.post("", &format!("token={token}&key={key}")).await;
        assert_eq!(status(&answer), "400", "{key}");
    }
    let long = format!("token={token}&key={}", "k".repeat(5_000));
    assert_eq!(status(&visit.post("", &long).await), "413");
    let answer = visit.post("", &format!("token={token}&key=k-1")).await;
    assert_eq!(status(&answer), "200");
}

#[tokio::test]
async fn a_closed_page_gives_way_to_a_new_one() {
    let keys = KeyPool::new([]);
    let desk = KeyDesk::new(keys);
    let first = desk.page().await.unwrap();
    assert_eq!(desk.page().await.unwrap().url, first.url);
    first.close();
    assert!(!first.is_done().await);
    let second = desk.page().await.unwrap();
    assert_ne!(second.url, first.url);
}

#[tokio::test(start_paused = true)]
async fn a_page_that_nobody_visits_is_gone_after_a_while() {
    let desk = KeyDesk::new(KeyPool::new([]));
    let page = desk.page().await.unwrap();
    sleep(LIFE - Duration::from_secs(1)).await;
    assert!(page.is_open());
    sleep(Duration::from_secs(2)).await;
    assert!(!page.is_done().await);
}
