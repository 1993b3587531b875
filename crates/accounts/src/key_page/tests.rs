//! The page as seen by a browser and by an attacker.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

/// A browser with an open page.
struct Browser {
    keys: KeyPool,
    page: KeyPage,
    host: String,
    path: String,
}

impl Browser {
    async fn new() -> Self {
        let keys = KeyPool::new([]);
        let page = KeyPrompt::new(keys.clone(), KeyUse::Session)
            .page()
            .await
            .unwrap();
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
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        response
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

fn status(response: &str) -> &str {
    response.split(' ').nth(1).unwrap_or(response)
}

#[tokio::test]
async fn accepts_one_key_and_closes() {
    let browser = Browser::new().await;
    assert!(browser.page.url.starts_with("http://127.0.0.1:"));
    let token = browser.token().await;
    let origin = format!("\r\nOrigin: http://{}", browser.host);
    let body = format!("token={token}&key=+exa-key%2D1%0A");
    let response = browser.post(&origin, &body).await;
    assert_eq!(status(&response), "200", "{response}");
    assert!(!response.contains("exa-key"), "{response}");
    assert!(browser.page.wait().await);
    assert_eq!(
        browser
            .keys
            .lease("search", None, &[])
            .unwrap()
            .key()
            .redact("exa-key-1"),
        "[redacted]"
    );
    let again = browser.post(&origin, &body).await;
    assert!(["410", "closed"].contains(&status(&again)), "{again}");
    assert_eq!(browser.keys.len(), 1);
}

#[tokio::test]
async fn loads_nothing_and_is_not_cached() {
    let browser = Browser::new().await;
    let response = browser
        .get(&browser.path, &browser.host)
        .await
        .to_lowercase();
    for part in [
        "default-src 'none'",
        "frame-ancestors 'none'",
        "form-action 'self'",
        "cache-control: no-store",
        "x-content-type-options: nosniff",
        "referrer-policy: same-origin",
    ] {
        assert!(response.contains(part), "{part} in {response}");
    }
    assert!(!response.contains("<script"));
}

#[tokio::test]
async fn responds_only_to_its_address() {
    let browser = Browser::new().await;
    for path in ["/", "/favicon.ico", &format!("{}x", browser.path)] {
        let response = browser.get(path, &browser.host).await;
        assert_eq!(status(&response), "404", "{path}");
    }
    // DNS rebinding: another host name that resolves to this machine.
    let response = browser.get(&browser.path, "evil.example").await;
    assert_eq!(status(&response), "404");
}

#[tokio::test]
async fn rejects_forms_of_other_pages() {
    let browser = Browser::new().await;
    let token = browser.token().await;
    let good = format!("token={token}&key=k-1");
    for (more, body) in [
        ("", "key=k-1"),
        ("", "token=wrong&key=k-1"),
        ("\r\nOrigin: https://evil.example", good.as_str()),
        ("\r\nOrigin: null", good.as_str()),
    ] {
        let response = browser.post(more, body).await;
        assert_eq!(status(&response), "403", "{more} {body}");
    }
    assert!(browser.keys.is_empty());
}

#[tokio::test]
async fn an_invalid_key_can_be_corrected() {
    let browser = Browser::new().await;
    let token = browser.token().await;
    for key in ["", "%20", "sch%C3%BCssel", "a%0D%0Ab"] {
        let response = browser.post("", &format!("token={token}&key={key}")).await;
        assert_eq!(status(&response), "400", "{key}");
    }
    let long = format!("token={token}&key={}", "k".repeat(5_000));
    assert_eq!(status(&browser.post("", &long).await), "413");
    let response = browser.post("", &format!("token={token}&key=k-1")).await;
    assert_eq!(status(&response), "200");
}

#[tokio::test]
async fn opens_a_new_page_after_closing() {
    let keys = KeyPool::new([]);
    let prompt = KeyPrompt::new(keys, KeyUse::Session);
    let first = prompt.page().await.unwrap();
    assert_eq!(prompt.page().await.unwrap().url, first.url);
    first.close();
    assert!(!first.wait().await);
    let second = prompt.page().await.unwrap();
    assert_ne!(second.url, first.url);
}

#[tokio::test(start_paused = true)]
async fn closes_after_its_lifetime() {
    let prompt = KeyPrompt::new(KeyPool::new([]), KeyUse::Session);
    let page = prompt.page().await.unwrap();
    sleep(LIFETIME - Duration::from_secs(1)).await;
    assert!(page.is_open());
    sleep(Duration::from_secs(2)).await;
    assert!(!page.wait().await);
}

/// The page of `login` must not promise that the key is not stored.
#[test]
fn page_says_what_happens_to_the_key() {
    let page = |key_use| html::form("/p", "token", "nonce", key_use, None);
    assert!(page(KeyUse::Session).contains("not written to a file"));
    let login = page(KeyUse::Login);
    assert!(!login.contains("not written to a file") && login.contains("stored for your user"));
}
