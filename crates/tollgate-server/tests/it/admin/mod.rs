//! The admin API: a table of requests, sign-in, and what any sequence of writes leaves behind.

mod catalogue;
mod quote;
mod refunds;
mod sessions;
mod table;
mod tasks;
mod writes;

use serde_json::Value;

use crate::harness::*;

/// The owner's key of the gateways in these tests.
const OWNER: &str = "the-owner-of-this-gateway";
const ADMIN: &str = "/admin/v1";

async fn gateway(backend: Backend) -> (TestGateway, Client) {
    let gateway = Setup::new(backend).admin_key(OWNER).start().await;
    let owner = gateway.client(Some(OWNER.to_owned()), String::new());
    (gateway, owner)
}

/// Sends a request with a JSON body below [`ADMIN`].
async fn send(
    client: &Client,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Reply {
    let headers = [&[("content-type", "application/json")], headers].concat();
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    client
        .send_with(method, &format!("{ADMIN}{path}"), &headers, body)
        .await
}
