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

fn allowed(hosts: &AllowedHosts, host: &str) -> bool {
    hosts.allows(&Uri::from_static("/mcp"), &headers(&[host]))
}

#[test]
fn allows_only_loopback_hosts_by_default() {
    let hosts = AllowedHosts::new(None, Some("192.0.2.7".parse().unwrap())).unwrap();
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
    let everywhere = AllowedHosts::new(None, Some("0.0.0.0".parse().unwrap())).unwrap();
    assert!(!allowed(&everywhere, "0.0.0.0:3000"));
}

#[test]
fn allows_listed_hosts() {
    let hosts = AllowedHosts::new(Some("mcp.example.com, 10.0.0.5:8080"), None).unwrap();
    assert!(allowed(&hosts, "MCP.example.com:443"));
    assert!(allowed(&hosts, "10.0.0.5:8080"));
    assert!(!allowed(&hosts, "10.0.0.5"));
    assert!(!allowed(&hosts, "localhost"));
    let any = AllowedHosts::new(Some("*"), None).unwrap();
    assert!(allowed(&any, "whatever.example"));
    for bad in ["http://x", "a b", "u@h", "h:", "h:x"] {
        let error = AllowedHosts::new(Some(bad), None).unwrap_err().to_string();
        assert!(error.contains("EXA_MCP_ALLOWED_HOSTS"), "{bad}: {error}");
    }
}

#[test]
fn allows_the_servers_own_pages() {
    let hosts = AllowedHosts::new(Some("mcp.example.com,10.0.0.5:8080"), None).unwrap();
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
    // Every host name is allowed here, so the name of a foreign page may resolve to this server.
    let any = AllowedHosts::new(Some("*"), None).unwrap();
    assert!(!any.is_own_page("https://evil.example", &headers(&["evil.example"])));
}

#[test]
fn requires_exactly_one_host() {
    let hosts = AllowedHosts::new(None, None).unwrap();
    let plain = Uri::from_static("/mcp");
    assert!(!hosts.allows(&plain, &headers(&[])));
    assert!(!hosts.allows(&plain, &headers(&["localhost", "localhost"])));
    let local = headers(&["localhost"]);
    assert!(hosts.allows(&Uri::from_static("http://localhost/mcp"), &local));
    assert!(!hosts.allows(&Uri::from_static("http://evil.example/mcp"), &local));
}

#[test]
fn allows_only_loopback_origins_by_default() {
    let origins = AllowedOrigins::new(None).unwrap();
    for origin in [
        "http://localhost:6274",
        "https://127.0.0.1",
        "http://[::1]:1",
    ] {
        assert!(origins.allows(origin), "{origin}");
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
        assert!(!origins.allows(origin), "{origin}");
    }
}

#[test]
fn allows_listed_origins() {
    let list = "https://app.example.com, http://localhost:*, https://x.example:8443, null";
    let origins = AllowedOrigins::new(Some(list)).unwrap();
    for origin in [
        "https://app.example.com",
        "https://app.example.com:443",
        "http://localhost:5",
        "https://x.example:8443",
        "null",
    ] {
        assert!(origins.allows(origin), "{origin}");
    }
    for origin in [
        "http://app.example.com",
        "https://app.example.com:8443",
        "https://localhost:5",
        "https://x.example",
    ] {
        assert!(!origins.allows(origin), "{origin}");
    }
    assert!(
        AllowedOrigins::new(Some("*"))
            .unwrap()
            .allows("https://any.example")
    );
    for bad in ["app.example.com", "https://x/y", "https://u@x", "x:*"] {
        let error = AllowedOrigins::new(Some(bad)).unwrap_err().to_string();
        assert!(error.contains("EXA_MCP_ALLOWED_ORIGINS"), "{bad}: {error}");
    }
}

#[test]
fn trusts_forwarded_addresses_of_trusted_proxies_only() {
    let proxies = TrustedProxies::new("10.0.0.0/8, 192.0.2.1, 2001:db8::/32").unwrap();
    let address = |text: &str| -> IpAddr { text.parse().unwrap() };
    let client = |peer: &str, forwarded: &'static str| {
        let mut headers = HeaderMap::new();
        headers.insert("x-forwarded-for", HeaderValue::from_static(forwarded));
        proxies.client_address(address(peer), &headers)
    };
    assert_eq!(client("10.1.2.3", "203.0.113.9"), address("203.0.113.9"));
    assert_eq!(
        client("::ffff:10.1.2.3", "203.0.113.9"),
        address("203.0.113.9")
    );
    assert_eq!(client("203.0.113.1", "203.0.113.9"), address("203.0.113.1"));
    // Values sent by the client come first and are not trusted.
    let chain = "1.1.1.1, 203.0.113.9, 192.0.2.1";
    assert_eq!(client("2001:db8::7", chain), address("203.0.113.9"));
    assert_eq!(client("10.0.0.1", "nonsense"), address("10.0.0.1"));
    for bad in ["10.0.0.0/33", "x", "10.0.0.0/", "::/129"] {
        let error = TrustedProxies::new(bad).unwrap_err().to_string();
        assert!(error.contains("EXA_MCP_TRUSTED_PROXIES"), "{bad}: {error}");
    }
    let all = TrustedProxies::new("0.0.0.0/0,::/0").unwrap();
    assert!(all.contains(address("1.2.3.4")) && all.contains(address("::5")));
    let none = TrustedProxies::default();
    assert!(!none.contains(address("10.0.0.1")));
}
