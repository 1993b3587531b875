//! Restricts connections to public addresses.
//!
//! A URL from upstream must not lead into the network of the server: to its loopback interface, to another
//! host, or to the metadata service of a cloud. A name is checked when it is resolved for the connection
//! itself, because an earlier lookup could return different addresses.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use ipnet::{Ipv4Net, Ipv6Net};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// Special-purpose IPv4 networks of the IANA registry.
const SPECIAL_V4: [Ipv4Net; 15] = [
    v4([0, 0, 0, 0], 8),       // "this network"
    v4([10, 0, 0, 0], 8),      // private use
    v4([100, 64, 0, 0], 10),   // carrier-grade NAT
    v4([127, 0, 0, 0], 8),     // loopback
    v4([169, 254, 0, 0], 16),  // link-local
    v4([172, 16, 0, 0], 12),   // private use
    v4([192, 0, 0, 0], 24),    // protocol assignments
    v4([192, 0, 2, 0], 24),    // documentation
    v4([192, 88, 99, 0], 24),  // relays of 6to4
    v4([192, 168, 0, 0], 16),  // private use
    v4([198, 18, 0, 0], 15),   // benchmarks
    v4([198, 51, 100, 0], 24), // documentation
    v4([203, 0, 113, 0], 24),  // documentation
    v4([224, 0, 0, 0], 4),     // multicast
    v4([240, 0, 0, 0], 4),     // reserved, broadcast
];

/// The global unicast network of IPv6; all others have a special purpose.
const GLOBAL_V6: Ipv6Net = v6(0x2000, 0, 3);

/// Special-purpose parts of [`GLOBAL_V6`] in the IANA registry.
const SPECIAL_V6: [Ipv6Net; 4] = [
    v6(0x2001, 0, 23),     // protocol assignments, Teredo among them
    v6(0x2001, 0xdb8, 32), // documentation
    v6(0x2002, 0, 16),     // 6to4
    v6(0x3fff, 0, 20),     // documentation
];

/// The network in which NAT64 maps IPv4 addresses.
const NAT64: Ipv6Net = v6(0x64, 0xff9b, 96);

const fn v4([a, b, c, d]: [u8; 4], length: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), length)
}

const fn v6(first: u16, second: u16, length: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(first, second, 0, 0, 0, 0, 0, 0), length)
}

/// Returns whether an address belongs to the public internet.
///
/// IPv6 addresses that embed an IPv4 address do not, except for NAT64: in an IPv6-only network, names with
/// only an IPv4 address resolve to it.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !SPECIAL_V4.iter().any(|network| network.contains(&address)),
        IpAddr::V6(address) if NAT64.contains(&address) => {
            let [.., a, b, c, d] = address.octets();
            is_public(Ipv4Addr::new(a, b, c, d).into())
        }
        IpAddr::V6(address) => {
            let is_special = SPECIAL_V6.iter().any(|network| network.contains(&address));
            GLOBAL_V6.contains(&address) && !is_special
        }
    }
}

/// Returns whether a URL may refer to a public host. [`PublicResolver`] checks what a name resolves to.
pub(super) fn may_be_public(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => !is_local_name(name),
        Some(Host::Ipv4(address)) => is_public(address.into()),
        Some(Host::Ipv6(address)) => is_public(address.into()),
        None => false,
    }
}

/// Returns whether a name always refers to this machine.
pub(super) fn is_local_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let last = name.rsplit('.').next().unwrap_or_default();
    matches!(last, "localhost" | "localdomain")
}

/// A name resolves to an address that is not public.
#[derive(Debug)]
pub(super) struct NotPublicError(IpAddr);

impl fmt::Display for NotPublicError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.0;
        write!(
            f,
            "its name resolves to {address}, which is not a public address"
        )
    }
}

impl std::error::Error for NotPublicError {}

/// Resolves one name only if all its addresses are public. Other names are those of proxies, which the
/// operator chose; a proxy resolves the names of its targets itself.
pub(super) struct PublicResolver {
    /// The restricted name, in lower case.
    pub(super) host: String,
}

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let is_restricted = name.as_str().eq_ignore_ascii_case(&self.host);
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            // A single private address is enough, because any of them may be used.
            let private = found.iter().find(|address| !is_public(address.ip()));
            if let Some(private) = private.filter(|_| is_restricted) {
                return Err(NotPublicError(private.ip()).into());
            }
            let found: Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn special_addresses_are_not_public() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.9.9.9",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.8",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.1.1.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:8.8.8.8",
            "::ffff:0:127.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:2::1",
            "2001:10::1",
            "2001:20::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "2002:808:808::1",
            "3fff::1",
            "3fff:fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "169.253.1.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "192.167.1.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2a00:1450:4001::1",
            "2001:4860:4860::8888",
            "64:ff9b::808:808",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn recognizes_private_urls_in_every_spelling() {
        let of = |url: &str| may_be_public(&Url::parse(url).unwrap());
        for url in [
            "https://127.0.0.1/",
            "https://2130706433/",
            "https://0x7f.1/",
            "https://0177.0.0.1/",
            "https://127.1/",
            "https://localhost/",
            "https://LOCALHOST./",
            "https://a.localhost/",
            "https://localhost.localdomain/",
            "https://[::1]/",
            "https://[::ffff:10.0.0.1]/",
        ] {
            assert!(!of(url), "{url}");
        }
        for url in [
            "https://storage.example/",
            "https://8.8.8.8/",
            "https://localhost.example/",
        ] {
            assert!(of(url), "{url}");
        }
    }

    #[tokio::test]
    async fn checks_what_a_name_resolves_to() {
        let host = "localhost".to_owned();
        let resolver = PublicResolver { host };
        let rejected = resolver.resolve("LocalHost".parse().unwrap()).await;
        let error = rejected.err().unwrap();
        assert!(error.is::<NotPublicError>(), "{error}");
        // The name of a proxy is the operator's choice.
        let host = "storage.example".to_owned();
        let resolver = PublicResolver { host };
        assert!(resolver.resolve("localhost".parse().unwrap()).await.is_ok());
    }
}
