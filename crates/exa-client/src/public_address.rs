//! Addresses of the public internet, and a way to connect to no others.
//!
//! An address that upstream names must not lead into the network of the server: to its loopback
//! interface, to a neighbour, or to the metadata service of a cloud. A name is judged by what it resolves
//! to, when it is resolved for the connection itself: a look before would be answered differently later.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// Whether an address belongs to the public internet.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// The special-purpose blocks are those of the IANA registry.
fn is_public_v4(address: Ipv4Addr) -> bool {
    let special = match address.octets() {
        // "This network", private use, loopback.
        [0 | 10 | 127, ..] => true,
        // Shared by the customers of a carrier.
        [100, second, ..] => (64..128).contains(&second),
        [169, 254, ..] | [192, 168, ..] => true,
        [172, second, ..] => (16..32).contains(&second),
        // Protocol assignments, documentation, relays of 6to4.
        [192, 0, 0 | 2, _] | [192, 88, 99, _] => true,
        // Benchmarks, documentation.
        [198, 18 | 19, ..] | [198, 51, 100, _] | [203, 0, 113, _] => true,
        // Multicast, reserved, broadcast.
        [first, ..] => first >= 224,
    };
    !special
}

/// Only global unicast is public. Forms that hold an IPv4 address are refused, apart from that of NAT64:
/// in a network without IPv4 every name that has only an IPv4 address resolves to it.
fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            let [a, b] = high.to_be_bytes();
            let [c, d] = low.to_be_bytes();
            is_public_v4(Ipv4Addr::new(a, b, c, d))
        }
        // Protocol assignments (Teredo among them), documentation.
        [0x2001, second, ..] => second >= 0x200 && second != 0xdb8,
        // 6to4.
        [0x2002, ..] => false,
        // Documentation.
        [0x3fff, second, ..] => second >= 0x1000,
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

/// Whether a URL may name a public host: not an address that is not public, and not a name that always
/// means this machine. What any other name resolves to is judged by [`PublicResolver`].
pub(super) fn may_be_public(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => !is_local_name(name),
        Some(Host::Ipv4(address)) => is_public(address.into()),
        Some(Host::Ipv6(address)) => is_public(address.into()),
        None => false,
    }
}

/// Whether a name always means this machine.
pub(super) fn is_local_name(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
    let last = name.rsplit('.').next().unwrap_or_default();
    matches!(last, "localhost" | "localdomain")
}

/// A name resolves to an address that is not public.
#[derive(Debug)]
pub(super) struct NotPublic(IpAddr);

impl fmt::Display for NotPublic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = self.0;
        write!(
            f,
            "its name resolves to {address}, which is not a public address"
        )
    }
}

impl std::error::Error for NotPublic {}

/// Resolves one name to public addresses or not at all. Other names are those of proxies, which the operator
/// chose; behind one of them the proxy resolves.
pub(super) struct PublicResolver {
    /// The name, in lower case.
    pub(super) host: String,
}

impl Resolve for PublicResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let is_guarded = name.as_str().eq_ignore_ascii_case(&self.host);
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let found: Vec<SocketAddr> = found.collect();
            // One that is not public is enough: which of them answers is nobody's choice.
            let inner = found.iter().find(|address| !is_public(address.ip()));
            if let Some(inner) = inner.filter(|_| is_guarded) {
                return Err(NotPublic(inner.ip()).into());
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
    fn urls_are_judged_in_every_spelling() {
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
    async fn a_name_is_judged_by_what_it_resolves_to() {
        let host = "localhost".to_owned();
        let resolver = PublicResolver { host };
        let refused = resolver.resolve("LocalHost".parse().unwrap()).await;
        let error = refused.err().unwrap();
        assert!(error.is::<NotPublic>(), "{error}");
        // The name of a proxy is the operator's choice.
        let host = "storage.example".to_owned();
        let resolver = PublicResolver { host };
        assert!(resolver.resolve("localhost".parse().unwrap()).await.is_ok());
    }
}
