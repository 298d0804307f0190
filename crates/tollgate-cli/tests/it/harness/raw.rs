//! A connection for requests that no HTTP client library would send.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use super::TIMEOUT;

/// A TCP connection to the gateway.
pub(crate) struct RawConnection(TcpStream);

impl RawConnection {
    pub(crate) async fn connect(address: &str) -> Self {
        Self(TcpStream::connect(address).await.unwrap())
    }

    /// Connects from another address of this machine.
    pub(crate) async fn connect_from(source: &str, address: &str) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(format!("{source}:0").parse().unwrap()).unwrap();
        Self(socket.connect(address.parse().unwrap()).await.unwrap())
    }

    /// Writes bytes until the other side stops reading them.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        let _ = self.0.write_all(bytes).await;
    }

    /// Signals the end of the data to the other side.
    pub(crate) async fn finish(&mut self) {
        let _ = self.0.shutdown().await;
    }

    /// Reads one response with a `content-length`; returns its status, head and body. `None` if the connection was
    /// closed instead.
    pub(crate) async fn response(&mut self) -> Option<(u16, String, Vec<u8>)> {
        let response = tokio::time::timeout(TIMEOUT, self.read_response());
        response.await.expect("a response, or the connection's end")
    }

    async fn read_response(&mut self) -> Option<(u16, String, Vec<u8>)> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(self.0.read_u8().await.ok()?);
        }
        let head = String::from_utf8(head).expect("a head in UTF-8");
        let status = head.split(' ').nth(1)?.parse().expect("a status");
        let lower = head.to_ascii_lowercase();
        let length = lower.split("content-length: ").nth(1);
        let length = length.map_or(0, |rest| rest.split('\r').next().unwrap().parse().unwrap());
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await.ok()?;
        Some((status, head, body))
    }

    /// Waits for the other side to close the connection; returns what it wrote before.
    pub(crate) async fn read_to_end(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(TIMEOUT, self.0.read_to_end(&mut bytes));
        let _ = read.await.expect("the connection's end");
        bytes
    }

    /// The status of one response; `None` if the connection was closed instead.
    pub(crate) async fn status(&mut self) -> Option<u16> {
        self.response().await.map(|(status, ..)| status)
    }
}
