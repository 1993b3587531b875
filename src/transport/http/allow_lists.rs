//! Allowed hosts and origins, and trusted proxies.
//!
//! With DNS rebinding a web page can reach a server that listens on loopback only. Such requests carry a
//! foreign host or origin.

use std::net::{IpAddr, Ipv6Addr};

use http::uri::Authority;
use http::{HeaderMap, Uri, header};
use ipnet::{IpNet, Ipv6Net};
use url::Url;

/// An invalid entry of an allow list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: `{entry}` is not a valid {kind}; expected for example {example}")]
pub struct AllowListError {
    variable: &'static str,
    entry: String,
    kind: &'static str,
    example: &'static str,
}

/// The variable with the allowed hosts.
pub(crate) const HOSTS_VARIABLE: &str = "EXA_MCP_ALLOWED_HOSTS";
/// The variable with the allowed origins.
pub(crate) const ORIGINS_VARIABLE: &str = "EXA_MCP_ALLOWED_ORIGINS";
/// The variable with the trusted proxies.
pub(crate) const PROXIES_VARIABLE: &str = "EXA_MCP_TRUSTED_PROXIES";

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
}

/// The accepted values of the `Host` header.
#[derive(Clone, Debug)]
pub struct AllowedHosts {
    allow_any: bool,
    /// Host names in lower case, with a port if only that port is allowed.
    names: Vec<(String, Option<u16>)>,
}

impl AllowedHosts {
    /// Parses a list such as `mcp.example.com,10.0.0.5:8080`. `*` allows every host. Without a list only
    /// loopback names and the `listening` address are allowed.
    pub fn new(list: Option<&str>, listening: Option<IpAddr>) -> Result<Self, AllowListError> {
        let mut hosts = Self {
            allow_any: false,
            names: Vec::new(),
        };
        let Some(list) = list else {
            hosts = Self::loopback();
            let address = listening.filter(|address| !address.is_unspecified());
            hosts
                .names
                .extend(address.map(|address| (host_name(address), None)));
            return Ok(hosts);
        };
        for entry in entries(list) {
            if entry == "*" {
                hosts.allow_any = true;
                continue;
            }
            let name = parse_authority(entry).ok_or_else(|| AllowListError {
                variable: HOSTS_VARIABLE,
                entry: entry.to_owned(),
                kind: "host",
                example: "mcp.example.com or 10.0.0.5:8080",
            })?;
            hosts.names.push(name);
        }
        Ok(hosts)
    }

    /// Allows only loopback names.
    pub(super) fn loopback() -> Self {
        Self {
            allow_any: false,
            names: LOOPBACK.map(|name| (name.to_owned(), None)).to_vec(),
        }
    }

    /// Returns whether the request names exactly one host, and that host is allowed.
    pub(super) fn allows(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let mut named = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            return false;
        };
        let host = host.to_str().ok().filter(|host| self.allows_name(host));
        // The request line may name a host too, which takes precedence.
        let line = uri.authority().map(Authority::as_str);
        host.is_some() && line.is_none_or(|line| self.allows_name(line))
    }

    fn allows_name(&self, name: &str) -> bool {
        let name = parse_authority(name);
        name.is_some_and(|(host, port)| self.allow_any || self.lists(&host, port))
    }

    fn lists(&self, host: &str, port: Option<u16>) -> bool {
        let matches = |(name, only): &(String, Option<u16>)| {
            *name == host && only.is_none_or(|only| port == Some(only))
        };
        self.names.iter().any(matches)
    }

    /// Returns whether the origin is one of the server's own pages under a configured host name. With `*`
    /// no origin qualifies, because any name may have been rebound to this server.
    pub(super) fn is_own_page(&self, origin: &str, headers: &HeaderMap) -> bool {
        let named = headers
            .get(header::HOST)
            .and_then(|host| host.to_str().ok());
        let (Some(origin), Some((host, port))) =
            (parse_origin(origin), named.and_then(parse_authority))
        else {
            return false;
        };
        let default_port = match origin.scheme.as_str() {
            "http" => 80,
            "https" => 443,
            _ => return false,
        };
        self.lists(&host, port)
            && origin.host == host
            && origin.port == Some(port.unwrap_or(default_port))
    }
}

fn host_name(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// Parses an authority without user information into host and port.
fn parse_authority(text: &str) -> Option<(String, Option<u16>)> {
    let authority: Authority = text.parse().ok()?;
    if authority.as_str().contains('@') || authority.host().is_empty() {
        return None;
    }
    // The parser ignores invalid ports.
    let port = match authority.as_str().strip_prefix(authority.host())? {
        "" => None,
        rest => Some(rest.strip_prefix(':')?.parse().ok()?),
    };
    let host = authority.host().trim_end_matches('.').to_ascii_lowercase();
    Some((host, port))
}

/// The accepted values of the `Origin` header.
#[derive(Clone, Debug)]
pub struct AllowedOrigins {
    allow_any: bool,
    allow_null: bool,
    origins: Vec<Origin>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Origin {
    scheme: String,
    host: String,
    /// `None` allows any port.
    port: Option<u16>,
}

impl AllowedOrigins {
    /// Parses a list such as `https://app.example.com,http://localhost:*`. `*` allows every origin. Without
    /// a list only loopback origins are allowed.
    pub fn new(list: Option<&str>) -> Result<Self, AllowListError> {
        let mut origins = Self {
            allow_any: false,
            allow_null: false,
            origins: Vec::new(),
        };
        let Some(list) = list else {
            for scheme in ["http", "https"] {
                origins.origins.extend(LOOPBACK.map(|host| Origin {
                    scheme: scheme.to_owned(),
                    host: host.to_owned(),
                    port: None,
                }));
            }
            return Ok(origins);
        };
        for entry in entries(list) {
            match entry {
                "*" => origins.allow_any = true,
                "null" => origins.allow_null = true,
                entry => origins.origins.push(parse_allowed_origin(entry)?),
            }
        }
        Ok(origins)
    }

    /// Returns whether the origin is allowed.
    pub(super) fn allows(&self, origin: &str) -> bool {
        if self.allow_any || (self.allow_null && origin == "null") {
            return true;
        }
        let Some(origin) = parse_origin(origin) else {
            return false;
        };
        let matches = |allowed: &Origin| {
            allowed.scheme == origin.scheme
                && allowed.host == origin.host
                && (allowed.port.is_none() || allowed.port == origin.port)
        };
        self.origins.iter().any(matches)
    }
}

fn parse_allowed_origin(entry: &str) -> Result<Origin, AllowListError> {
    let origin = match entry.strip_suffix(":*") {
        Some(start) => parse_origin(start).map(|origin| Origin {
            port: None,
            ..origin
        }),
        None => parse_origin(entry),
    };
    origin.ok_or_else(|| AllowListError {
        variable: ORIGINS_VARIABLE,
        entry: entry.to_owned(),
        kind: "origin",
        example: "https://app.example.com or http://localhost:*",
    })
}

/// Parses an origin as browsers send it: scheme, host and optional port.
fn parse_origin(text: &str) -> Option<Origin> {
    let url = Url::parse(text).ok()?;
    let has_no_credentials_or_query =
        url.username().is_empty() && url.password().is_none() && url.query().is_none();
    let has_no_path =
        matches!(url.path(), "" | "/") && !text.ends_with('/') && url.fragment().is_none();
    if !has_no_credentials_or_query || !has_no_path || text.contains('@') {
        return None;
    }
    Some(Origin {
        scheme: url.scheme().to_owned(),
        host: url.host_str()?.trim_end_matches('.').to_owned(),
        port: url.port_or_known_default(),
    })
}

/// The proxies whose `X-Forwarded-For` header is trusted.
#[derive(Clone, Debug, Default)]
pub struct TrustedProxies(Vec<Ipv6Net>);

impl TrustedProxies {
    /// Parses a list of addresses and networks such as `10.0.0.0/8,::1`.
    pub fn new(list: &str) -> Result<Self, AllowListError> {
        let networks = entries(list).map(|entry| {
            parse_network(entry).ok_or_else(|| AllowListError {
                variable: PROXIES_VARIABLE,
                entry: entry.to_owned(),
                kind: "address or network",
                example: "10.0.0.5 or 10.0.0.0/8",
            })
        });
        networks.collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether the address is a trusted proxy.
    pub(super) fn contains(&self, address: IpAddr) -> bool {
        let address = to_ipv6(address);
        self.0.iter().any(|network| network.contains(&address))
    }

    /// Returns the address of the client: the last hop that is not a trusted proxy.
    pub(super) fn client_address(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer;
        let forwarded = headers.get_all("x-forwarded-for").iter();
        let forwarded = forwarded.filter_map(|value| value.to_str().ok());
        let chain: Vec<&str> = forwarded.flat_map(|value| value.split(',')).collect();
        for hop in chain.iter().rev() {
            if !self.contains(client) {
                break;
            }
            match hop.trim().parse() {
                Ok(address) => client = address,
                Err(_) => break,
            }
        }
        client
    }
}

/// Converts an address to IPv6. A dual-stack socket reports IPv4 addresses in mapped form.
fn to_ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

fn parse_network(entry: &str) -> Option<Ipv6Net> {
    let address = || entry.parse::<IpAddr>().ok().map(IpNet::from);
    match entry.parse().ok().or_else(address)? {
        IpNet::V4(network) => {
            Ipv6Net::new(to_ipv6(network.addr().into()), 96 + network.prefix_len()).ok()
        }
        IpNet::V6(network) => Some(network),
    }
}

#[cfg(test)]
#[path = "allow_lists_tests.rs"]
mod tests;
