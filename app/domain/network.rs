//! Networks, as people write them: `10.0.0.0/8`, `2001:db8::/32`, or a single address.

use core::net::IpAddr;
use std::fmt;
use std::str::FromStr;

/// The most that one worker may be allowed to come from.
pub const MAX_NETWORKS: usize = 32;

/// All addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Network {
    first: IpAddr,
    bits: u8,
}

/// What is no network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadNetwork(pub String);

impl Network {
    /// The one of so many bits that an address is in; more bits than it has are all of them. An IPv4 address that is
    /// written as IPv6 is the IPv4 address.
    pub fn around(address: IpAddr, bits: u8) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let bits = bits.min(32);
                let mask = u32::MAX.checked_shl(u32::from(32 - bits)).unwrap_or(0);
                Self { first: IpAddr::from((u32::from(address) & mask).to_be_bytes()), bits }
            }
            IpAddr::V6(address) => {
                let bits = bits.min(128);
                let mask = u128::MAX.checked_shl(u32::from(128 - bits)).unwrap_or(0);
                Self { first: IpAddr::from((u128::from(address) & mask).to_be_bytes()), bits }
            }
        }
    }

    /// What counts as one stranger: an IPv4 address, and of an IPv6 address its /64, in which a host has as many
    /// addresses as it likes.
    pub fn of_stranger(address: IpAddr) -> Self {
        let address = address.to_canonical();
        Self::around(address, if address.is_ipv4() { 32 } else { 64 })
    }

    /// Whether an address is in it.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        address.is_ipv4() == self.first.is_ipv4() && Self::around(address, self.bits) == *self
    }
}

impl FromStr for Network {
    type Err = BadNetwork;

    fn from_str(text: &str) -> Result<Self, BadNetwork> {
        let bad = || BadNetwork(text.chars().take(60).collect());
        let (address, bits) = text.trim().split_once('/').map_or((text.trim(), None), |(one, two)| (one, Some(two)));
        let address: IpAddr = address.parse().map_err(|_| bad())?;
        let all = if address.is_ipv4() { 32 } else { 128 };
        let bits: u8 = match bits {
            None => all,
            Some(digits) if digits.len() <= 3 && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                digits.parse().ok().filter(|bits| *bits <= all).ok_or_else(bad)?
            }
            Some(_) => return Err(bad()),
        };
        // What comes before an IPv4 address that is written as IPv6 is not counted.
        let before = if address.is_ipv6() && address.to_canonical().is_ipv4() { 96 } else { 0 };
        Ok(Self::around(address, bits.checked_sub(before).ok_or_else(bad)?))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(text: &str) -> Network {
        text.parse().unwrap_or_else(|_| panic!("{text} is a network"))
    }

    #[test]
    fn networks_are_read_as_people_write_them() {
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
        for (text, shown) in cases {
            assert_eq!(network(text).to_string(), shown, "{text}");
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
    fn a_network_has_its_addresses_and_no_others() {
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
        for (text, address, inside) in cases {
            assert_eq!(network(text).contains(address.parse().expect("an address")), inside, "{address} in {text}");
        }
    }

    #[test]
    fn strangers_are_told_apart_by_address_or_by_network() {
        let stranger = |text: &str| Network::of_stranger(text.parse().expect("an address"));
        assert_ne!(stranger("192.0.2.1"), stranger("192.0.2.2"));
        assert_eq!(stranger("192.0.2.1"), stranger("::ffff:192.0.2.1"));
        assert_eq!(stranger("2001:db8::1"), stranger("2001:db8::2:3"));
        assert_ne!(stranger("2001:db8::1"), stranger("2001:db8:0:1::1"));
    }
}
