//! SSRF guard: decides which IP addresses a URL from a client (or from a provider's response) may lead to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// Address blocks of the IPv4 registry that are not public, as first address and prefix length.
const NOT_PUBLIC_V4: [([u8; 4], u8); 17] = [
    ([0, 0, 0, 0], 8),        // this network
    ([10, 0, 0, 0], 8),       // private
    ([100, 64, 0, 0], 10),    // carrier NAT, and Alibaba's metadata
    ([127, 0, 0, 0], 8),      // loopback
    ([168, 63, 129, 16], 32), // Azure's host agent, within a public block
    ([169, 254, 0, 0], 16),   // link-local, and most clouds' metadata
    ([172, 16, 0, 0], 12),    // private
    ([192, 0, 0, 0], 24),     // protocol assignments, and Oracle's metadata
    ([192, 0, 2, 0], 24),     // documentation
    ([192, 31, 196, 0], 24),  // AS112
    ([192, 52, 193, 0], 24),  // AMT
    ([192, 88, 99, 0], 24),   // 6to4 relays
    ([192, 168, 0, 0], 16),   // private
    ([198, 18, 0, 0], 15),    // benchmarks
    ([198, 51, 100, 0], 24),  // documentation
    ([203, 0, 113, 0], 24),   // documentation
    ([224, 0, 0, 0], 3),      // multicast, reserved, broadcast
];

/// Blocks within the global unicast space 2000::/3 that are not public.
const NOT_PUBLIC_V6: [([u16; 8], u8); 5] = [
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), // protocol assignments, Teredo and ORCHID among them
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32), // documentation
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16), // 6to4, which embeds an IPv4 address
    ([0x2620, 0x4f, 0x8000, 0, 0, 0, 0, 0], 48), // AS112
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20), // documentation
];

/// The well-known prefix by which a network translates to IPv4: 64:ff9b::/96.
const NAT64: [u16; 6] = [0x64, 0xff9b, 0, 0, 0, 0];

/// Permits public addresses, and the private blocks that the operator allows (`media.allow_private_urls`).
#[derive(Debug, Clone, Default)]
pub(super) struct SsrfGuard {
    allowed: Vec<IpNet>,
}

impl SsrfGuard {
    pub(super) fn new(allowed: Vec<IpNet>) -> Self {
        Self { allowed }
    }

    /// Whether a connection to `address` is allowed.
    pub(super) fn permits(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        is_public(address) || self.allowed.iter().any(|net| net.contains(&address))
    }
}

/// Whether `address` is globally reachable.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    !NOT_PUBLIC_V4.iter().any(|&(block, prefix)| {
        let differ = address.to_bits() ^ Ipv4Addr::from(block).to_bits();
        differ >> (32 - u32::from(prefix)) == 0
    })
}

/// Only IPv6 addresses known to be public are permitted: loopback, unique local, link-local, multicast, IPv4-compatible and
/// everything not yet assigned lie outside 2000::/3.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    if segments[..6] == NAT64 {
        let [.., a, b, c, d] = address.octets();
        return is_public_v4(Ipv4Addr::new(a, b, c, d));
    }
    segments[0] & 0xe000 == 0x2000
        && !NOT_PUBLIC_V6.iter().any(|&(block, prefix)| {
            let differ = address.to_bits() ^ Ipv6Addr::from(block).to_bits();
            differ >> (128 - u32::from(prefix)) == 0
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(addresses: &str, public: bool) {
        for text in addresses.split_whitespace() {
            let address: IpAddr = text.parse().expect(text);
            assert_eq!(is_public(address), public, "{text}");
        }
    }

    #[test]
    fn public_addresses_are_public() {
        check(
            "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 93.184.216.34 100.63.255.255 100.128.0.0 126.255.255.255 \
             128.0.0.0 168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 \
             191.255.255.255 192.0.1.0 192.0.3.0 192.167.255.255 192.169.0.0 198.17.255.255 198.20.0.0 \
             198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255 2001:200::1 \
             2001:4860:4860::8888 2003::1 2606:4700:4700::1111 2a00:1450:4001:81b::200e 3ffe::1 ::ffff:8.8.8.8 \
             64:ff9b::8.8.8.8",
            true,
        );
    }

    #[test]
    fn private_and_reserved_addresses_are_not_public() {
        check(
            "0.0.0.0 0.0.0.1 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.100.100.200 100.127.255.255 \
             127.0.0.0 127.0.0.1 127.1.2.3 127.255.255.255 168.63.129.16 169.254.0.0 169.254.169.254 \
             169.254.170.2 169.254.255.255 172.16.0.0 172.17.0.1 172.31.255.255 192.0.0.0 192.0.0.192 192.0.2.1 \
             192.31.196.1 192.52.193.1 192.88.99.1 192.168.0.0 192.168.255.255 198.18.0.0 198.19.255.255 \
             198.51.100.7 203.0.113.255 224.0.0.1 239.255.255.250 240.0.0.1 255.255.255.255 :: ::1 ::2 ::8.8.8.8 \
             ::127.0.0.1 ::ffff:0.0.0.0 ::ffff:10.1.2.3 ::ffff:127.0.0.1 ::ffff:169.254.169.254 \
             ::ffff:192.168.1.1 ::ffff:0:8.8.8.8 64:ff9b::0.0.0.0 64:ff9b::10.0.0.1 64:ff9b::127.0.0.1 \
             64:ff9b::169.254.169.254 64:ff9b::192.168.1.1 64:ff9b:0:0:0:1:808:808 64:ff9b:1:: 64:ff9b:1::8.8.8.8 \
             64:ff9b:1:ffff:ffff:ffff:ffff:ffff 100::1 100:0:0:1::1 1fff:ffff::1 2001::1 \
             2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1 2001:10::1 2001:20::1 2001:1ff:ffff::1 2001:db8::1 \
             2001:db8:ffff::1 2002::1 2002:7f00:1::1 2002:808:808::1 2002:a00:1:: 2002:c0a8:101::1 \
             2620:4f:8000::1 3fff::1 3fff:fff::1 4000::1 5f00::1 8000::1 fc00::1 fd00::1 fd00:ec2::254 \
             fdff:ffff::1 fe00::1 fe80::1 fe80::a9fe:a9fe febf::1 fec0::1 feff::1 ff00::1 ff02::1 ff0e::1 \
             ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
            false,
        );
    }

    #[test]
    fn the_first_and_last_address_of_every_block_are_not_public() {
        for (block, prefix) in NOT_PUBLIC_V4 {
            let first = Ipv4Addr::from(block).to_bits();
            let last = first | u32::MAX.checked_shr(prefix.into()).unwrap_or(0);
            for bits in [first, last] {
                let v4 = Ipv4Addr::from_bits(bits);
                assert!(!is_public(v4.into()), "{v4}");
                assert!(!is_public(v4.to_ipv6_mapped().into()), "{v4} mapped");
                let [a, b, c, d] = v4.octets();
                let pair = |x: u8, y: u8| u16::from_be_bytes([x, y]);
                let nat64 = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, pair(a, b), pair(c, d));
                assert!(!is_public(nat64.into()), "{v4} behind NAT64");
                let six_to_four = Ipv6Addr::new(0x2002, pair(a, b), pair(c, d), 0, 0, 0, 0, 1);
                assert!(!is_public(six_to_four.into()), "{v4} in 6to4");
            }
        }
    }

    #[test]
    fn the_operator_can_allow_private_blocks() {
        let guard = SsrfGuard::new(vec![
            "127.0.0.0/8".parse().unwrap(),
            "fd00::/8".parse().unwrap(),
        ]);
        for (text, permitted) in [
            ("127.0.0.1", true),
            ("::ffff:127.0.0.1", true),
            ("fd12::1", true),
            ("8.8.8.8", true),
            ("10.0.0.1", false),
            ("::1", false),
            ("64:ff9b::127.0.0.1", false),
        ] {
            assert_eq!(guard.permits(text.parse().unwrap()), permitted, "{text}");
        }
    }
}
