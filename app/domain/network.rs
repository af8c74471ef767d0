//! Networks in text form: `10.0.0.0/8`, `2001:db8::/32`, or a single address.

use core::net::IpAddr;
use std::fmt;
use std::str::FromStr;

/// Maximum number of allowed networks of a worker.
pub const MAX_NETWORKS: usize = 32;

/// An IP network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network {
    base: IpAddr,
    prefix_len: u8,
}

/// The text is not a valid network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkParseError(pub String);

impl Network {
    /// Returns the network with this prefix length that contains an address; a longer prefix than the address has is
    /// reduced. An IPv4 address in IPv6 notation is treated as IPv4.
    pub fn containing(address: IpAddr, bits: u8) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let bits = bits.min(32);
                let mask = u32::MAX.checked_shl(u32::from(32 - bits)).unwrap_or(0);
                Self { base: IpAddr::from((u32::from(address) & mask).to_be_bytes()), prefix_len: bits }
            }
            IpAddr::V6(address) => {
                let bits = bits.min(128);
                let mask = u128::MAX.checked_shl(u32::from(128 - bits)).unwrap_or(0);
                Self { base: IpAddr::from((u128::from(address) & mask).to_be_bytes()), prefix_len: bits }
            }
        }
    }

    /// Returns the network that identifies an unauthenticated client: an IPv4 address, or the /64 of an IPv6 address,
    /// in which a host can use any number of addresses.
    pub fn from_client(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self::containing(address, if address.is_ipv4() { 32 } else { 64 })
    }

    /// Returns whether the network contains an address.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.base.is_ipv4() && Self::containing(address, self.prefix_len) == *self
    }
}

impl FromStr for Network {
    type Err = NetworkParseError;

    fn from_str(text: &str) -> Result<Self, NetworkParseError> {
        let invalid = || NetworkParseError(text.chars().take(60).collect());
        let (address, bits) =
            text.trim().split_once('/').map_or((text.trim(), None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().map_err(|_| invalid())?;
        let max_bits = if address.is_ipv4() { 32 } else { 128 };
        let bits: u8 = match bits {
            None => max_bits,
            Some(digits) if digits.len() <= 3 && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().ok().filter(|bits| *bits <= max_bits).ok_or_else(invalid)?
            }
            Some(_) => return Err(invalid()),
        };
        // For an IPv4 address in IPv6 notation, the IPv6 prefix is not counted.
        let mapped_prefix = if address.is_ipv6() && address.to_canonical().is_ipv4() { 96 } else { 0 };
        Ok(Self::containing(address, bits.checked_sub(mapped_prefix).ok_or_else(invalid)?))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.base, self.prefix_len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap_or_else(|_| panic!("{text} is a network"))
    }

    #[test]
    fn networks_are_parsed_in_common_notations() {
        let cases = [
            ("10.1.2.3/8", "10.0.0.0/8"),
            (" 192.0.2.7 ", "192.0.2.7/32"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("2001:db8::7/32", "2001:db8::/32"),
            ("::1", "::1/128"),
            ("::/0", "::/0"),
            ("::ffff:10.1.2.3", "10.1.2.3/32"),
            ("::ffff:10.1.2.3/104", "10.0.0.0/8"),
        ];
        for (text, normalized) in cases {
            assert_eq!(network(text).to_string(), normalized, "{text}");
        }
        for text in [
            "",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/+8",
            "10.0.0.0/",
            "/8",
            "host",
            "10.0.0/8",
            "1.2.3.4/8/8",
            "::ffff:10.1.2.3/95",
        ] {
            assert!(text.parse::<Network>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn network_contains_exactly_its_addresses() {
        let cases = [
            ("10.0.0.0/8", "10.255.255.255", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("10.0.0.0/8", "::ffff:10.0.0.1", true),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("::/0", "2001:db8::1", true),
            ("::/0", "203.0.113.9", false),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.6", false),
            ("2001:db8::/33", "2001:db8:7fff::", true),
            ("2001:db8::/33", "2001:db8:8000::", false),
        ];
        for (text, address, expected) in cases {
            assert_eq!(network(text).contains(address.parse().expect("an address")), expected, "{address} in {text}");
        }
    }

    #[test]
    fn unauthenticated_clients_are_distinguished_by_network() {
        let client_network = |text: &str| Network::from_client(text.parse().expect("an address"));
        assert_ne!(client_network("192.0.2.1"), client_network("192.0.2.2"));
        assert_eq!(client_network("192.0.2.1"), client_network("::ffff:192.0.2.1"));
        assert_eq!(client_network("2001:db8::1"), client_network("2001:db8::2:3"));
        assert_ne!(client_network("2001:db8::1"), client_network("2001:db8:0:1::1"));
    }
}
