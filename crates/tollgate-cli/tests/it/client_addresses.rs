//! The client's address behind proxies: the PROXY protocol, `x-forwarded-for`, and which senders are trusted.

use serde_json::{Value, json};

use crate::harness::*;

on_sqlite!(
    the_proxy_protocol_states_the_client_address,
    x_forwarded_for_is_used_from_trusted_proxies_only,
);

const ADMIN_KEY: &str = "admin-key-of-the-test";
/// Another address of this machine, so that the gateway does not take the harness for a proxy.
const PROXY: &str = "127.0.0.2";

/// The client's address in the log line of a request.
async fn logged_client(gateway: &TestGateway, request_id: &str) -> Value {
    until("the line of a request", async || {
        let log = gateway.log();
        let line = log.lines().find(|line| line.contains(request_id))?;
        Some(serde_json::from_str::<Value>(line).unwrap()["client"].clone())
    })
    .await
}

fn models(request_id: &str) -> Vec<u8> {
    format!("GET /v1/models HTTP/1.1\r\nhost: gateway\r\nx-request-id: {request_id}\r\n\r\n").into()
}

async fn the_proxy_protocol_states_the_client_address(backend: Backend) {
    let config = format!(
        "[limits]\ntrusted_proxies = [\"{PROXY}\"]\nproxy_protocol = true\nconnections_per_address = 1\n"
    );
    let setup = Setup::new(backend).config(&config).admin_key(ADMIN_KEY);
    let gateway = setup.start().await;
    let open = async |header: &[u8], request_id: &str| {
        let mut connection = RawConnection::connect_from(PROXY, &gateway.address()).await;
        // Header and request in one write: no byte of the request may be lost with the header.
        connection
            .write(&[header, &models(request_id)].concat())
            .await;
        let status = connection.status().await;
        (connection, status)
    };
    let v1 = b"PROXY TCP4 203.0.113.7 10.0.0.1 4711 443\r\n";
    let v2 = b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x0c\xcb\0\x71\x08\x0a\0\0\x01\x12\x67\x01\xbb";
    let (first, status) = open(v1, "first-1").await;
    assert_eq!(status, Some(401));
    assert_eq!(logged_client(&gateway, "first-1").await, "203.0.113.7");
    // The limit counts connections per client, not per proxy.
    assert_eq!(open(v1, "beyond-1").await.1, Some(429));
    assert_eq!(open(v2, "second-1").await.1, Some(401));
    assert_eq!(logged_client(&gateway, "second-1").await, "203.0.113.8");
    drop(first);
    until_true("the connection to be free again", async || {
        open(v1, "again-1").await.1 == Some(401)
    })
    .await;
    // A proxy must send the header; any other client must not.
    assert_eq!(open(b"", "bare-1").await.1, None);
    let mut direct = gateway.raw().await;
    direct
        .write(&[v1.as_slice(), &models("forged-1")].concat())
        .await;
    assert_eq!(direct.status().await, Some(400));
    let mut direct = gateway.raw().await;
    direct.write(&models("direct-1")).await;
    assert_eq!(direct.status().await, Some(401));
    assert_eq!(logged_client(&gateway, "direct-1").await, "127.0.0.1");
    // A listener behind a proxy also serves clients on other machines.
    gateway.anonymous().get("/metrics").await.expect(401);
    assert!(!gateway.log().contains("forged-1"));
    gateway.close().await;
}

async fn x_forwarded_for_is_used_from_trusted_proxies_only(backend: Backend) {
    let rows = [("127.0.0.0/8", "203.0.113.7"), ("10.0.0.0/8", "127.0.0.1")];
    for (trusted, expected) in rows {
        let config = format!("limits.trusted_proxies = [\"{trusted}\"]\n");
        let setup = Setup::new(backend).config(&config).admin_key(ADMIN_KEY);
        let gateway = setup.start().await;
        let operator = gateway.client(Some(ADMIN_KEY.to_owned()), String::new());
        let headers = [
            ("x-forwarded-for", "6.6.6.6, 203.0.113.7"),
            ("x-request-id", "created-1"),
        ];
        let user = json!({ "name": "ann" });
        let reply = operator.post_with("/admin/v1/users", &user, &headers).await;
        reply.expect(201);
        assert_eq!(logged_client(&gateway, "created-1").await, expected);
        let events = operator.get_json("/admin/v1/events?limit=1").await;
        assert_eq!(events["data"][0]["address"], expected, "{events}");
        gateway.close().await;
    }
}
