//! A client of the admin API.

use super::super::load::{Connection, RawResponse, request_bytes};

/// The admin key with which the gateway is started.
pub(super) const ADMIN_KEY: &str = "bench-admin-key";

/// A kept connection to the admin API.
pub(super) struct Client(Connection);

impl Client {
    pub(super) async fn open(address: &str) -> Result<Self, String> {
        Connection::open(address).await.map(Self)
    }

    /// The JSON of a page.
    pub(super) async fn get(&mut self, path: &str) -> Result<serde_json::Value, String> {
        let path = format!("/admin/v1{path}");
        self.0
            .send(&request_bytes("GET", &path, ADMIN_KEY, ""))
            .await?;
        let RawResponse { head, body } = self.0.read_response().await?;
        let text = String::from_utf8_lossy(&body);
        if !head.starts_with("HTTP/1.1 200") {
            return Err(format!("{path}: {head} {text}"));
        }
        serde_json::from_str(&text).map_err(|e| format!("{path}: {e}"))
    }
}
