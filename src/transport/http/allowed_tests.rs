#![allow(clippy::unwrap_used)]

use http::HeaderValue;

use super::*;

fn headers(hosts: &[&str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for host in hosts {
        headers.append(header::HOST, HeaderValue::from_str(host).unwrap());
    }
    headers
}

fn allowed(hosts: &Hosts, host: &str) -> bool {
    hosts.allow(&Uri::from_static("/mcp"), &headers(&[host]))
}

#[test]
fn without_a_list_only_this_machine_is_called() {
    let hosts = Hosts::new(None, Some("192.0.2.7".parse().unwrap())).unwrap();
    for host in [
        "localhost",
        "LOCALHOST:3000",
        "127.0.0.1:3000",
        "[::1]:3000",
        "localhost.:3000",
        "192.0.2.7:3000",
    ] {
        assert!(allowed(&hosts, host), "{host}");
    }
    for host in [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "evil@localhost",
        "192.0.2.8",
        "127.0.0.1:",
        "localhost:99999",
        "",
        "[::2]",
    ] {
        assert!(!allowed(&hosts, host), "{host}");
    }
    let everywhere = Hosts::new(None, Some("0.0.0.0".parse().unwrap())).unwrap();
    assert!(!allowed(&everywhere, "0.0.0.0:3000"));
}

#[test]
fn a_list_says_which_hosts_are_fine() {
    let hosts = Hosts::new(Some("mcp.example.com, 10.0.0.5:8080"), None).unwrap();
    assert!(allowed(&hosts, "MCP.example.com:443"));
    assert!(allowed(&hosts, "10.0.0.5:8080"));
    assert!(!allowed(&hosts, "10.0.0.5"));
    assert!(!allowed(&hosts, "localhost"));
    let any = Hosts::new(Some("*"), None).unwrap();
    assert!(allowed(&any, "whatever.example"));
    for bad in ["http://x", "a b", "u@h", "h:", "h:x"] {
        let error = Hosts::new(Some(bad), None).unwrap_err().to_string();
        assert!(error.contains("EXA_MCP_ALLOWED_HOSTS"), "{bad}: {error}");
    }
}

#[test]
fn pages_of_the_server_itself_may_call() {
    let hosts = Hosts::new(Some("mcp.example.com,10.0.0.5:8080"), None).unwrap();
    let own = |host: &str, origin: &str| hosts.is_own_page(origin, &headers(&[host]));
    assert!(own("mcp.example.com", "https://mcp.example.com"));
    assert!(own("MCP.example.com:8443", "https://mcp.example.com:8443"));
    assert!(own("10.0.0.5:8080", "http://10.0.0.5:8080"));
    for (host, origin) in [
        ("mcp.example.com", "https://evil.example"),
        ("mcp.example.com", "https://mcp.example.com:8443"),
        ("mcp.example.com", "https://mcp.example.com.evil.example"),
        ("mcp.example.com", "null"),
        ("evil.example", "https://evil.example"),
        ("10.0.0.5", "http://10.0.0.5"),
    ] {
        assert!(!own(host, origin), "{host} {origin}");
    }
    // Any name is fine here, so a page may have made its own lead here.
    let any = Hosts::new(Some("*"), None).unwrap();
    assert!(!any.is_own_page("https://evil.example", &headers(&["evil.example"])));
}

#[test]
fn a_request_names_one_host() {
    let hosts = Hosts::new(None, None).unwrap();
    let plain = Uri::from_static("/mcp");
    assert!(!hosts.allow(&plain, &headers(&[])));
    assert!(!hosts.allow(&plain, &headers(&["localhost", "localhost"])));
    let local = headers(&["localhost"]);
    assert!(hosts.allow(&Uri::from_static("http://localhost/mcp"), &local));
    assert!(!hosts.allow(&Uri::from_static("http://evil.example/mcp"), &local));
}

#[test]
fn without_a_list_only_pages_of_this_machine_may_call() {
    let origins = Origins::new(None).unwrap();
    for origin in [
        "http://localhost:6274",
        "https://127.0.0.1",
        "http://[::1]:1",
    ] {
        assert!(origins.allow(origin), "{origin}");
    }
    for origin in [
        "https://evil.example",
        "http://localhost.evil.example",
        "null",
        "",
        "file://",
        "http://localhost@evil.example",
        "http://localhost/",
        "ws://localhost",
    ] {
        assert!(!origins.allow(origin), "{origin}");
    }
}

#[test]
fn a_list_says_which_pages_may_call() {
    let list = "https://app.example.com, http://localhost:*, https://x.example:8443, null";
    let origins = Origins::new(Some(list)).unwrap();
    for origin in [
        "https://app.example.com",
        "https://app.example.com:443",
        "http://localhost:5",
        "https://x.example:8443",
        "null",
    ] {
        assert!(origins.allow(origin), "{origin}");
    }
    for origin in [
        "http://app.example.com",
        "https://app.example.com:8443",
        "https://localhost:5",
        "https://x.example",
    ] {
        assert!(!origins.allow(origin), "{origin}");
    }
    assert!(
        Origins::new(Some("*"))
            .unwrap()
            .allow("https://any.example")
    );
    for bad in ["app.example.com", "https://x/y", "https://u@x", "x:*"] {
        let error = Origins::new(Some(bad)).unwrap_err().to_string();
        assert!(error.contains("EXA_MCP_ALLOWED_ORIGINS"), "{bad}: {error}");
    }
}

#[test]
fn only_trusted_proxies_tell_where_a_client_is() {
    let proxies = Proxies::new("10.0.0.0/8, 192.0.2.1, 2001:db8::/32").unwrap();
    let address = |text: &str| -> IpAddr { text.parse().unwrap() };
    let client = |peer: &str, forwarded: &'static str| {
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", HeaderValue::from_static(forwarded));
        proxies.client(address(peer), &headers)
    };
    assert_eq!(client("10.1.2.3", "203.0.113.9"), address("203.0.113.9"));
    assert_eq!(
        client("::ffff:10.1.2.3", "203.0.113.9"),
        address("203.0.113.9")
    );
    assert_eq!(client("203.0.113.1", "203.0.113.9"), address("203.0.113.1"));
    // What a client itself put there comes first and is not believed.
    let chain = "1.1.1.1, 203.0.113.9, 192.0.2.1";
    assert_eq!(client("2001:db8::7", chain), address("203.0.113.9"));
    assert_eq!(client("10.0.0.1", "nonsense"), address("10.0.0.1"));
    for bad in ["10.0.0.0/33", "x", "10.0.0.0/", "::/129"] {
        let error = Proxies::new(bad).unwrap_err().to_string();
        assert!(error.contains("EXA_MCP_TRUSTED_PROXIES"), "{bad}: {error}");
    }
    let all = Proxies::new("0.0.0.0/0,::/0").unwrap();
    assert!(all.has(address("1.2.3.4")) && all.has(address("::5")));
    let none = Proxies::default();
    assert!(!none.has(address("10.0.0.1")));
}
