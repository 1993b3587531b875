//! The dashboard at `/admin`: it is public, and its content security policy is strict.

use crate::support::{HttpResponse, HttpServer};

const ADMIN: &str = "the-admin-secret-of-the-tests";
const USER: &str = "user-of-the-tests";
const PAGES: [&str; 2] = ["/admin", "/admin/"];
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
                      img-src 'self' data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'";

fn start() -> HttpServer {
    let users = format!("token-of-the-tests:{USER}");
    HttpServer::sandboxed(&[("MCP_AUTH_TOKEN", ADMIN), ("USER_TOKENS", &users)])
}

/// Returns the files that a text names in quotes, such as `"./api.js"` or `"/admin/app.css"`.
fn named(text: &str) -> Vec<String> {
    let words = text.split('"');
    let names = words.filter_map(|word| {
        let name = word
            .strip_prefix("/admin/")
            .or_else(|| word.strip_prefix("./"))?;
        (name.ends_with(".js") || name.ends_with(".css")).then(|| format!("/admin/{name}"))
    });
    names.collect()
}

/// Returns the page and everything that it loads, as a browser finds it.
fn files(server: &HttpServer) -> Vec<(String, HttpResponse)> {
    let mut wanted: Vec<String> = PAGES.map(str::to_owned).to_vec();
    let mut found: Vec<(String, HttpResponse)> = Vec::new();
    while let Some(path) = wanted.pop() {
        if found.iter().any(|(known, _)| *known == path) {
            continue;
        }
        let response = server.get(&path, &[]);
        assert_eq!(response.status, 200, "{path}");
        wanted.extend(named(&response.text()));
        found.push((path, response));
    }
    found
}

#[test]
fn dashboard_files_have_type_and_csp() {
    let server = start();
    let files = files(&server);
    assert!(files.len() >= 5, "{}", files.len());
    for (path, response) in &files {
        let kind = match path {
            path if path.ends_with(".js") => "text/javascript; charset=utf-8",
            path if path.ends_with(".css") => "text/css; charset=utf-8",
            _ => "text/html; charset=utf-8",
        };
        for (name, value) in [
            ("content-type", kind),
            ("content-security-policy", POLICY),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cache-control", "no-store"),
        ] {
            let values: Vec<&str> = response
                .headers
                .iter()
                .filter(|(known, _)| known == name)
                .map(|(_, value)| value.as_str())
                .collect();
            assert_eq!(values, [value], "{path}: {name}");
        }
        assert_eq!(response.header("set-cookie"), None, "{path}");
    }
    // Other responses have the policy that allows nothing.
    let response = server.get("/admin/tokens", &[("authorization", &super::bearer(ADMIN))]);
    let policy = "default-src 'none'; frame-ancestors 'none'";
    assert_eq!(response.header("content-security-policy"), Some(policy));
    assert_eq!(server.get("/admin/none.js", &[]).status, 404);
    assert_eq!(server.get("/admin/page.html", &[]).status, 404);
}

#[test]
fn dashboard_files_comply_with_csp() {
    let server = start();
    let authorization = super::bearer(ADMIN);
    for (path, response) in files(&server) {
        let text = response.text();
        for secret in [ADMIN, USER, "token-of-the-tests"] {
            assert!(!text.contains(secret), "{path}: {secret}");
        }
        // A request with a token gets the same files.
        let known = server.get(&path, &[("authorization", &authorization)]);
        assert!(known.body == response.body, "{path}");
        // The namespace URL of SVG is never requested.
        let text = text.replace("http://www.w3.org/2000/svg", "");
        for word in [
            "http://",
            "https://",
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "new Function",
            "localStorage",
            "sessionStorage",
            "document.cookie",
            " style=",
            " onclick=",
            "<style",
            "window.confirm",
        ] {
            assert!(!text.contains(word), "{path}: {word}");
        }
    }
    let page = server.get("/admin", &[]).text();
    let scripts: Vec<&str> = page.split("<script").skip(1).collect();
    assert_eq!(scripts.len(), 1, "{page}");
    assert!(
        scripts.iter().all(|script| script.contains("\"></script>")),
        "{page}"
    );
}

#[test]
fn dashboard_is_read_only() {
    let server = start();
    for path in ["/admin", "/admin/", "/admin/app.js", "/admin/app.css"] {
        let whole = server.get(path, &[]);
        let head = server.send("HEAD", path, &[], b"");
        assert_eq!(head.status, 200, "{path}");
        assert!(head.body.is_empty(), "{path}");
        for name in ["content-type", "content-security-policy", "cache-control"] {
            assert_eq!(head.header(name), whole.header(name), "{path}: {name}");
        }
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            let response = server.send(method, path, &[("content-length", "0")], b"");
            assert_eq!(response.status, 405, "{method} {path}");
            assert_eq!(
                response.header("allow"),
                Some("GET,HEAD"),
                "{method} {path}"
            );
            assert_eq!(response.text(), "Method not allowed");
        }
    }
}

#[test]
fn dashboard_rejects_foreign_hosts_and_origins() {
    let server = start();
    for path in PAGES {
        let response = server.get(path, &[("host", "evil.example")]);
        assert_eq!(response.status, 403, "{path}");
        let response = server.get(path, &[("origin", "https://evil.example")]);
        assert_eq!(response.status, 403, "{path}");
        assert!(!response.text().contains("<html"), "{path}");
    }
}

#[test]
fn dashboard_explains_missing_tokens() {
    let server = HttpServer::sandboxed(&[]);
    for path in PAGES {
        let response = server.get(path, &[]);
        assert_eq!(response.status, 200, "{path}");
        assert!(response.text().contains("Nothing to administer"), "{path}");
    }
    assert_eq!(server.get("/admin/tokens", &[]).status, 404);
}
