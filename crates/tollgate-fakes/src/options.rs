//! The options of a fake.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The options of a fake.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address to listen on; port 0 selects a free port.
    pub address: SocketAddr,
    /// The accepted keys; if empty, any key is accepted. For Kling, `access:secret` is a pair with which tokens are signed; without any key, a
    /// token's signature is not checked.
    pub keys: Vec<String>,
    /// The seed for splitting and joining events in transmission.
    pub seed: u64,
    /// The maximum number of pieces that a text is split into.
    pub chunks: usize,
    /// The pause between two pieces of a stream.
    pub delay: Duration,
    /// Sends prepared responses, for measuring: no request is checked.
    pub bench: Option<Bench>,
    /// The time that generating media takes.
    pub work: Duration,
    /// The earliest poll at which a task is complete, counted from 1.
    pub polls: u32,
    /// The minimum size of a result, in bytes.
    pub result_bytes: Option<u64>,
    /// How long links to results stay valid. `None`: without limit.
    pub link_ttl: Option<Duration>,
    /// The URL at which clients reach the fake, for links to results, without a slash at the end. `None`: the address that the fake listens on.
    pub public_url: Option<String>,
    /// Another address, to which the links to results lead instead: it serves nothing else, and requests with a key are rejected there, because that
    /// server must not receive the key.
    pub files_address: Option<SocketAddr>,
    /// The number of latest requests that [`crate::Fake::requests`] returns.
    pub remember: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            keys: Vec::new(),
            seed: 1,
            chunks: 5,
            delay: Duration::ZERO,
            bench: None,
            work: Duration::ZERO,
            polls: 1,
            result_bytes: None,
            link_ttl: None,
            public_url: None,
            files_address: None,
            remember: usize::MAX,
        }
    }
}

/// The size of prepared responses.
#[derive(Debug, Clone)]
pub struct Bench {
    /// Bytes of text in a response.
    pub bytes: usize,
    /// The number of events that the text of a stream is split into.
    pub chunks: usize,
}
