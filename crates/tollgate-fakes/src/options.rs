//! How a fake is set up.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// How a fake is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it listens; port 0 takes a free one.
    pub address: SocketAddr,
    /// The keys that it takes; any if there are none. For Kling `access:secret` is a pair that
    /// tokens are signed with; without any key a token's signature is not checked.
    pub keys: Vec<String>,
    /// How events are cut and joined on their way depends on it.
    pub seed: u64,
    /// Into how many pieces a text is cut at most.
    pub chunks: usize,
    /// The pause between two pieces of a stream.
    pub delay: Duration,
    /// Answers made before, for measuring: nothing is checked.
    pub bench: Option<Bench>,
    /// How long media take to be made.
    pub work: Duration,
    /// The poll at which a task is done at the earliest, counted from 1.
    pub polls: u32,
    /// How large a result is at least, in bytes.
    pub result_bytes: Option<u64>,
    /// How long the links to results work; for ever if there is no time.
    pub link_ttl: Option<Duration>,
    /// Where clients reach the fake, for links to results, without a slash at the end; the address
    /// that it listens on if there is none.
    pub public_url: Option<String>,
    /// One more address, to which the links to results lead instead: nothing else is served there,
    /// and requests that bring a key are rejected, since it is not theirs to know.
    pub files_address: Option<SocketAddr>,
    /// How many requests [`crate::Fake::requests`] tells of: the latest.
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

/// How large prepared answers are.
#[derive(Debug, Clone)]
pub struct Bench {
    /// Bytes of text in an answer.
    pub bytes: usize,
    /// Into how many events a stream cuts them.
    pub chunks: usize,
}
