//! tmp
use std::time::Duration;
pub struct FetchLimits {
    pub max_bytes: u64,
    pub total_time: Duration,
    pub max_redirects: usize,
}
pub struct Client;
impl Client {
    pub fn new(_: Vec<ipnet::IpNet>) -> Self {
        Self
    }
    pub async fn fetch_guarded<W>(&self, _: &str, _: &FetchLimits, _: W) -> Result<(), String> {
        Err("x".into())
    }
}
