//! The PROXY protocol, versions 1 and 2: a TCP proxy sends the client's address before the client's first byte
//! (<https://www.haproxy.org/download/3.0/doc/proxy-protocol.txt>). The crates `ppp` and `proxy-header` parse a buffer that may also contain bytes
//! after the header, so each connection would need a wrapper that returns these first; this code reads no such byte.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::io::{AsyncRead, AsyncReadExt as _};

/// The first bytes of a header of version 2.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";
/// Bytes of the longest header of version 1, including its line end.
const MAX_LINE: usize = 107;
/// Bytes of addresses and extensions that a header of version 2 may have, at most.
const MAX_V2: usize = 4_096;
/// In version 2, the high half of the 13th byte is the version; the low half states whether the proxy itself opened the connection.
const VERSION_2: u8 = 0x20;
const LOCAL: u8 = 0;
const PROXIED: u8 = 1;
/// In version 2, high half of the 14th byte: the kind of the addresses.
const INET: u8 = 1;
const INET6: u8 = 2;

/// Reads the header at the start of a connection, without reading any byte after it. `None` if the proxy reports no address: it checks the gateway's
/// health, or does not know the client's address.
///
/// # Errors
/// `InvalidData` for anything that is not a header; errors of reading.
pub(super) async fn read_header(
    stream: &mut (impl AsyncRead + Unpin),
) -> io::Result<Option<SocketAddr>> {
    let mut start = [0; SIGNATURE.len()];
    stream.read_exact(&mut start).await?;
    if start == *SIGNATURE {
        return read_v2(stream).await;
    }
    if !start.starts_with(b"PROXY ") {
        return Err(invalid(
            "a connection of a proxy begins with no PROXY header",
        ));
    }
    let mut line = start.to_vec();
    while !line.ends_with(b"\n") {
        if line.len() == MAX_LINE {
            return Err(invalid("a PROXY header is longer than 107 bytes"));
        }
        line.push(stream.read_u8().await?);
    }
    let line = line.strip_suffix(b"\r\n");
    let text = line.and_then(|line| std::str::from_utf8(line).ok());
    text.and_then(parse_v1)
        .ok_or_else(|| invalid("a PROXY header of version 1 is malformed"))
}

/// The source address of a line. `None` if the line is malformed.
fn parse_v1(line: &str) -> Option<Option<SocketAddr>> {
    let fields: Vec<&str> = line.split(' ').collect();
    if fields.get(1) == Some(&"UNKNOWN") {
        return Some(None);
    }
    let [
        _,
        protocol,
        source,
        destination,
        source_port,
        destination_port,
    ] = fields[..]
    else {
        return None;
    };
    let (source, destination) = (source.parse().ok()?, destination.parse().ok()?);
    let is_protocol = match (source, destination) {
        (IpAddr::V4(_), IpAddr::V4(_)) => protocol == "TCP4",
        (IpAddr::V6(_), IpAddr::V6(_)) => protocol == "TCP6",
        _ => false,
    };
    destination_port.parse::<u16>().ok()?;
    let source = SocketAddr::new(source, source_port.parse().ok()?);
    is_protocol.then_some(Some(source))
}

async fn read_v2(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<Option<SocketAddr>> {
    let command = stream.read_u8().await?;
    let family = stream.read_u8().await? >> 4;
    let length = usize::from(stream.read_u16().await?);
    if command & 0xf0 != VERSION_2 || length > MAX_V2 {
        return Err(invalid(
            "a PROXY header is of an unknown version or too long",
        ));
    }
    let mut addresses = vec![0; length];
    stream.read_exact(&mut addresses).await?;
    match command & 0x0f {
        LOCAL => return Ok(None),
        PROXIED => {}
        _ => return Err(invalid("a PROXY header has an unknown command")),
    }
    let source = match family {
        INET => inet_source(&addresses),
        INET6 => inet6_source(&addresses),
        _ => return Ok(None),
    };
    source
        .map(Some)
        .ok_or_else(|| invalid("a PROXY header of version 2 is too short for its addresses"))
}

/// Parses two addresses, then two ports; the source comes first.
fn inet_source(bytes: &[u8]) -> Option<SocketAddr> {
    let address: [u8; 4] = bytes.get(..4)?.try_into().ok()?;
    let port: [u8; 2] = bytes.get(8..12)?.get(..2)?.try_into().ok()?;
    let address = Ipv4Addr::from(address).into();
    Some(SocketAddr::new(address, u16::from_be_bytes(port)))
}

fn inet6_source(bytes: &[u8]) -> Option<SocketAddr> {
    let address: [u8; 16] = bytes.get(..16)?.try_into().ok()?;
    let port: [u8; 2] = bytes.get(32..36)?.get(..2)?.try_into().ok()?;
    let address = Ipv6Addr::from(address).into();
    Some(SocketAddr::new(address, u16::from_be_bytes(port)))
}

fn invalid(message: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &[u8] = b"GET / HTTP/1.1";

    /// Reads a header that is followed by [`REST`], checks that no byte of that was read, and returns the address. `Err` if the header is rejected.
    async fn source(header: &[u8]) -> Result<Option<String>, ()> {
        let bytes = [header, REST].concat();
        let mut stream = bytes.as_slice();
        let source = read_header(&mut stream).await.map_err(drop)?;
        assert_eq!(stream, REST);
        Ok(source.map(|source| source.to_string()))
    }

    #[tokio::test]
    async fn lines_of_version_1_are_read_exactly() {
        let long = format!("PROXY UNKNOWN {}\r\n", "f".repeat(100));
        for (line, expected) in [
            (
                "PROXY TCP4 203.0.113.7 10.0.0.1 4711 443\r\n",
                Ok(Some("203.0.113.7:4711")),
            ),
            (
                "PROXY TCP6 2001:db8::1 fd00::1 4711 443\r\n",
                Ok(Some("[2001:db8::1]:4711")),
            ),
            ("PROXY UNKNOWN\r\n", Ok(None)),
            ("PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", Ok(None)),
            ("PROXY TCP6 203.0.113.7 10.0.0.1 4711 443\r\n", Err(())),
            ("PROXY TCP4 203.0.113.7 10.0.0.1 4711\r\n", Err(())),
            ("PROXY TCP4 203.0.113.7 10.0.0.1 70000 443\r\n", Err(())),
            ("PROXY TCP4 203.0.113.7 10.0.0.1 4711 443\n", Err(())),
            ("GET / HTTP/1.1\r\n", Err(())),
            (&long, Err(())),
        ] {
            let expected = expected.map(|source| source.map(str::to_owned));
            assert_eq!(source(line.as_bytes()).await, expected, "{line}");
        }
    }

    #[tokio::test]
    async fn headers_of_version_2_are_read_exactly() {
        let v4 = [203, 0, 113, 7, 10, 0, 0, 1, 0x12, 0x67, 1, 187].to_vec();
        let v6 = [Ipv6Addr::LOCALHOST.octets(), [0; 16]].concat();
        let v6 = [v6, vec![0x12, 0x67, 1, 187]].concat();
        let with_extension = [v4.clone(), vec![0x04, 0, 1, 9]].concat();
        let short = v4[..11].to_vec();
        for (command, family, addresses, expected) in [
            (0x21, 0x11, &v4, Ok(Some("203.0.113.7:4711"))),
            (0x21, 0x11, &with_extension, Ok(Some("203.0.113.7:4711"))),
            (0x21, 0x21, &v6, Ok(Some("[::1]:4711"))),
            (0x20, 0x00, &Vec::new(), Ok(None)),
            (0x21, 0x31, &vec![0; 216], Ok(None)),
            (0x21, 0x11, &short, Err(())),
            (0x21, 0x21, &v4, Err(())),
            (0x11, 0x11, &v4, Err(())),
            (0x22, 0x11, &v4, Err(())),
            (0x21, 0x11, &vec![0; MAX_V2 + 1], Err(())),
        ] {
            let length = u16::try_from(addresses.len()).unwrap().to_be_bytes();
            let header = [SIGNATURE.as_slice(), &[command, family], &length, addresses].concat();
            let expected = expected.map(|source| source.map(str::to_owned));
            assert_eq!(source(&header).await, expected, "{command:x} {family:x}");
        }
    }
}
