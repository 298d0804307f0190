//! The client's address behind proxies: `x-forwarded-for` is used only if it is from the operator's own proxies.

use std::net::{IpAddr, SocketAddr};

use http::{HeaderMap, HeaderName};
use ipnet::IpNet;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The address of the client's end of a connection, as an extension of requests that the router handles. With the PROXY protocol it is the address
/// that the proxy reports.
#[derive(Debug, Clone, Copy)]
pub struct PeerAddress(pub SocketAddr);

/// Whether `address` belongs to one of the networks.
pub fn is_in(address: IpAddr, networks: &[IpNet]) -> bool {
    let address = address.to_canonical();
    networks.iter().any(|network| network.contains(&address))
}

/// The address of the client behind `peer`: the last address in `x-forwarded-for` that is not in `trusted_proxies`, if the peer itself is in them.
/// Everything before that address was written by the client and is ignored. If all addresses are in them, it is the first; text that is no address
/// ends the search at the address after it.
pub fn client_address(peer: IpAddr, headers: &HeaderMap, trusted_proxies: &[IpNet]) -> IpAddr {
    let mut client = peer.to_canonical();
    if !is_in(client, trusted_proxies) {
        return client;
    }
    let values = headers.get_all(X_FORWARDED_FOR).iter().rev();
    let texts = values.flat_map(|value| value.to_str().unwrap_or("").rsplit(','));
    for text in texts {
        let Some(address) = parse_address(text.trim()) else {
            return client;
        };
        client = address;
        if !is_in(client, trusted_proxies) {
            return client;
        }
    }
    client
}

/// An address with or without a port, as proxies write it.
fn parse_address(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<IpAddr>().ok();
    let address = address.or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()));
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_address_that_is_no_proxy_is_the_clients() {
        let trusted: Vec<IpNet> = vec!["10.0.0.0/8".parse().unwrap(), "fd00::/8".parse().unwrap()];
        for (peer, values, expected) in [
            ("10.0.0.1", vec!["203.0.113.7"], "203.0.113.7"),
            ("10.0.0.1", vec!["6.6.6.6, 203.0.113.7"], "203.0.113.7"),
            (
                "10.0.0.1",
                vec!["6.6.6.6,203.0.113.7, 10.9.9.9"],
                "203.0.113.7",
            ),
            (
                "10.0.0.1",
                vec!["6.6.6.6", "203.0.113.7", "10.9.9.9"],
                "203.0.113.7",
            ),
            ("10.0.0.1", vec!["203.0.113.7:4711"], "203.0.113.7"),
            ("::ffff:10.0.0.1", vec!["[2001:db8::1]:4711"], "2001:db8::1"),
            ("fd00::1", vec!["::ffff:203.0.113.7"], "203.0.113.7"),
            ("10.0.0.1", vec!["10.2.2.2, 10.3.3.3"], "10.2.2.2"),
            ("10.0.0.1", vec!["6.6.6.6, unknown"], "10.0.0.1"),
            ("10.0.0.1", vec!["6.6.6.6, unknown, 10.2.2.2"], "10.2.2.2"),
            ("10.0.0.1", vec![""], "10.0.0.1"),
            ("10.0.0.1", vec![], "10.0.0.1"),
            // A client that is not a trusted proxy can write any address.
            ("198.51.100.1", vec!["203.0.113.7"], "198.51.100.1"),
            ("127.0.0.1", vec!["203.0.113.7"], "127.0.0.1"),
        ] {
            let mut headers = HeaderMap::new();
            for value in &values {
                headers.append(X_FORWARDED_FOR, value.parse().unwrap());
            }
            let client = client_address(peer.parse().unwrap(), &headers, &trusted);
            assert_eq!(client.to_string(), expected, "{peer} {values:?}");
        }
    }
}
