//! Which hosts, origins and proxies are believed.
//!
//! A page in a browser can make its own name mean this machine, and then talk to a server that listens
//! on loopback alone. Such requests name a foreign host, or a foreign origin.

use std::net::{IpAddr, Ipv6Addr};

use http::uri::Authority;
use http::{HeaderMap, Uri, header};
use ipnet::{IpNet, Ipv6Net};
use url::Url;

/// Why a list cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable}: `{entry}` is no {kind}; write for example {example}")]
pub struct AllowedError {
    variable: &'static str,
    entry: String,
    kind: &'static str,
    example: &'static str,
}

/// The variables that hold the lists.
pub(crate) const HOSTS_VARIABLE: &str = "EXA_MCP_ALLOWED_HOSTS";
/// The variable of the origins.
pub(crate) const ORIGINS_VARIABLE: &str = "EXA_MCP_ALLOWED_ORIGINS";
/// The variable of the proxies.
pub(crate) const PROXIES_VARIABLE: &str = "EXA_MCP_TRUSTED_PROXIES";

const LOOPBACK: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

fn entries(list: &str) -> impl Iterator<Item = &str> {
    list.split(',')
        .map(str::trim)
        .filter(|entry| !entry.is_empty())
}

/// The hosts by which the server may be called.
#[derive(Clone, Debug)]
pub struct Hosts {
    /// Every name is fine.
    any: bool,
    /// Names in lower case, with a port where only that is fine.
    names: Vec<(String, Option<u16>)>,
}

impl Hosts {
    /// Reads a list such as `mcp.example.com,10.0.0.5:8080`; `*` allows all. Without a list only this
    /// machine's own names are fine, and the address that is listened on.
    pub fn new(list: Option<&str>, listening: Option<IpAddr>) -> Result<Self, AllowedError> {
        let mut hosts = Self {
            any: false,
            names: Vec::new(),
        };
        let Some(list) = list else {
            hosts = Self::loopback();
            let address = listening.filter(|address| !address.is_unspecified());
            hosts
                .names
                .extend(address.map(|address| (shown(address), None)));
            return Ok(hosts);
        };
        for entry in entries(list) {
            if entry == "*" {
                hosts.any = true;
                continue;
            }
            let name = parts(entry).ok_or_else(|| AllowedError {
                variable: HOSTS_VARIABLE,
                entry: entry.to_owned(),
                kind: "host",
                example: "mcp.example.com or 10.0.0.5:8080",
            })?;
            hosts.names.push(name);
        }
        Ok(hosts)
    }

    /// This machine's own names for itself.
    pub(super) fn loopback() -> Self {
        Self {
            any: false,
            names: LOOPBACK.map(|name| (name.to_owned(), None)).to_vec(),
        }
    }

    /// Whether a request names one of the hosts, and only one.
    pub(super) fn allow(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let mut named = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            return false;
        };
        let host = host.to_str().ok().filter(|host| self.allow_name(host));
        // A request line may name a host as well, and then that one counts.
        let line = uri.authority().map(Authority::as_str);
        host.is_some() && line.is_none_or(|line| self.allow_name(line))
    }

    fn allow_name(&self, name: &str) -> bool {
        let name = parts(name);
        name.is_some_and(|(host, port)| self.any || self.lists(&host, port))
    }

    fn lists(&self, host: &str, port: Option<u16>) -> bool {
        let is = |(known, only): &(String, Option<u16>)| {
            *known == host && only.is_none_or(|only| port == Some(only))
        };
        self.names.iter().any(is)
    }

    /// Whether a page is one of this server's own, under a name that the operator gave it. Where any name
    /// is fine, none is the server's own: it may be one that was made to lead here.
    pub(super) fn is_own_page(&self, origin: &str, headers: &HeaderMap) -> bool {
        let named = headers
            .get(header::HOST)
            .and_then(|host| host.to_str().ok());
        let (Some(origin), Some((host, port))) = (parse_origin(origin), named.and_then(parts))
        else {
            return false;
        };
        let usual = match origin.scheme.as_str() {
            "http" => 80,
            "https" => 443,
            _ => return false,
        };
        self.lists(&host, port) && origin.host == host && origin.port == Some(port.unwrap_or(usual))
    }
}

fn shown(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// The name and the port of an authority without a user.
fn parts(text: &str) -> Option<(String, Option<u16>)> {
    let authority: Authority = text.parse().ok()?;
    if authority.as_str().contains('@') || authority.host().is_empty() {
        return None;
    }
    // A port that is none is overlooked by the parser.
    let port = match authority.as_str().strip_prefix(authority.host())? {
        "" => None,
        rest => Some(rest.strip_prefix(':')?.parse().ok()?),
    };
    let host = authority.host().trim_end_matches('.').to_ascii_lowercase();
    Some((host, port))
}

/// The web pages that may call the server.
#[derive(Clone, Debug)]
pub struct Origins {
    any: bool,
    null: bool,
    known: Vec<Origin>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Origin {
    scheme: String,
    host: String,
    /// `None` is any port.
    port: Option<u16>,
}

impl Origins {
    /// Reads a list such as `https://app.example.com,http://localhost:*`; `*` allows all. Without a
    /// list only pages of this machine are fine.
    pub fn new(list: Option<&str>) -> Result<Self, AllowedError> {
        let mut origins = Self {
            any: false,
            null: false,
            known: Vec::new(),
        };
        let Some(list) = list else {
            for scheme in ["http", "https"] {
                origins.known.extend(LOOPBACK.map(|host| Origin {
                    scheme: scheme.to_owned(),
                    host: host.to_owned(),
                    port: None,
                }));
            }
            return Ok(origins);
        };
        for entry in entries(list) {
            match entry {
                "*" => origins.any = true,
                "null" => origins.null = true,
                entry => origins.known.push(allowed_origin(entry)?),
            }
        }
        Ok(origins)
    }

    /// Whether a page of this origin may call.
    pub(super) fn allow(&self, origin: &str) -> bool {
        if self.any || (self.null && origin == "null") {
            return true;
        }
        let Some(origin) = parse_origin(origin) else {
            return false;
        };
        let is = |known: &Origin| {
            known.scheme == origin.scheme
                && known.host == origin.host
                && (known.port.is_none() || known.port == origin.port)
        };
        self.known.iter().any(is)
    }
}

fn allowed_origin(entry: &str) -> Result<Origin, AllowedError> {
    let origin = match entry.strip_suffix(":*") {
        Some(start) => parse_origin(start).map(|origin| Origin {
            port: None,
            ..origin
        }),
        None => parse_origin(entry),
    };
    origin.ok_or_else(|| AllowedError {
        variable: ORIGINS_VARIABLE,
        entry: entry.to_owned(),
        kind: "origin",
        example: "https://app.example.com or http://localhost:*",
    })
}

/// An origin as browsers write it: a scheme, a host and perhaps a port, nothing else.
fn parse_origin(text: &str) -> Option<Origin> {
    let url = Url::parse(text).ok()?;
    let bare = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    let whole = matches!(url.path(), "" | "/") && !text.ends_with('/') && url.fragment().is_none();
    if !bare || !whole || text.contains('@') {
        return None;
    }
    Some(Origin {
        scheme: url.scheme().to_owned(),
        host: url.host_str()?.trim_end_matches('.').to_owned(),
        port: url.port_or_known_default(),
    })
}

/// The proxies whose word about the address of a client is taken.
#[derive(Clone, Debug, Default)]
pub struct Proxies(Vec<Ipv6Net>);

impl Proxies {
    /// Reads a list of addresses and networks such as `10.0.0.0/8,::1`.
    pub fn new(list: &str) -> Result<Self, AllowedError> {
        let networks = entries(list).map(|entry| {
            network(entry).ok_or_else(|| AllowedError {
                variable: PROXIES_VARIABLE,
                entry: entry.to_owned(),
                kind: "address or network",
                example: "10.0.0.5 or 10.0.0.0/8",
            })
        });
        networks.collect::<Result<_, _>>().map(Self)
    }

    /// Whether this is one of them.
    pub(super) fn has(&self, address: IpAddr) -> bool {
        let address = ipv6(address);
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The address of the client: the last one in the chain that is no proxy of ours.
    pub(super) fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer;
        let forwarded = headers.get_all("x-forwarded-for").iter();
        let forwarded = forwarded.filter_map(|value| value.to_str().ok());
        let chain: Vec<&str> = forwarded.flat_map(|value| value.split(',')).collect();
        for hop in chain.iter().rev() {
            if !self.has(client) {
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

/// The address as IPv6: a socket that takes both kinds reports IPv4 in mapped form.
fn ipv6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

fn network(entry: &str) -> Option<Ipv6Net> {
    let address = || entry.parse::<IpAddr>().ok().map(IpNet::from);
    match entry.parse().ok().or_else(address)? {
        IpNet::V4(network) => {
            Ipv6Net::new(ipv6(network.addr().into()), 96 + network.prefix_len()).ok()
        }
        IpNet::V6(network) => Some(network),
    }
}

#[cfg(test)]
#[path = "allowed_tests.rs"]
mod tests;
