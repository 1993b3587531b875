//! The address of a client, as used for quotas.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

/// The network part of an IPv6 address. A host may use every address of its network.
const NETWORK_BITS: u128 = u128::MAX << 64;

/// An IPv4 address, or the /64 network of an IPv6 address. IPv4-mapped IPv6 addresses count as IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientAddress(IpAddr);

impl From<IpAddr> for ClientAddress {
    fn from(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V4(address) => IpAddr::V4(address),
            IpAddr::V6(address) => {
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & NETWORK_BITS))
            }
        })
    }
}

impl fmt::Display for ClientAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            IpAddr::V4(address) => address.fmt(formatter),
            IpAddr::V6(address) => write!(formatter, "{address}/64"),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn address(text: &str) -> ClientAddress {
        text.parse::<IpAddr>().unwrap().into()
    }

    #[test]
    fn a_host_has_one_client_address() {
        assert_eq!(address("2001:db8::1"), address("2001:db8::ffff:0:0:1"));
        assert_ne!(address("2001:db8::1"), address("2001:db8:0:1::1"));
        assert_eq!(address("::ffff:192.0.2.7"), address("192.0.2.7"));
        assert_ne!(address("192.0.2.6"), address("192.0.2.7"));
        assert_ne!(address("::1"), address("127.0.0.1"));
        assert_eq!(address("2001:db8::1").to_string(), "2001:db8::/64");
        assert_eq!(address("::ffff:192.0.2.7").to_string(), "192.0.2.7");
    }
}
