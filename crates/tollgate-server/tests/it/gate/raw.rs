//! A connection for requests that no client would make.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::PATIENCE;

/// A TCP connection to the gateway.
pub(crate) struct Raw(TcpStream);

impl Raw {
    pub(crate) async fn connect(address: &str) -> Self {
        Self(TcpStream::connect(address).await.unwrap())
    }

    /// Writes bytes, as far as the other side takes them.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        let _ = self.0.write_all(bytes).await;
    }

    /// Says that nothing more will be written.
    pub(crate) async fn finish(&mut self) {
        let _ = self.0.shutdown().await;
    }

    /// Reads one answer with a `content-length`; returns its status, head and body. None where the connection was
    /// closed instead.
    pub(crate) async fn answer(&mut self) -> Option<(u16, String, Vec<u8>)> {
        let answer = tokio::time::timeout(PATIENCE, self.read_answer());
        answer.await.expect("an answer, or the connection's end")
    }

    async fn read_answer(&mut self) -> Option<(u16, String, Vec<u8>)> {
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
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let read = tokio::time::timeout(PATIENCE, self.0.read_to_end(&mut bytes));
        let _ = read.await.expect("the connection's end");
        bytes
    }
}
