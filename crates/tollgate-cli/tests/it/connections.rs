//! Connections: the maximum and its reserve, bodies of rejected requests, connections accepted before a drain.

use crate::harness::*;

on_sqlite!(
    health_is_served_when_all_connections_are_in_use,
    a_rejected_body_gets_an_immediate_response_and_is_drained,
    a_connection_accepted_before_a_drain_is_served,
    http2_floods_are_disconnected_and_others_are_served,
);

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nhost: gateway\r\n\r\n";
const MODELS: &[u8] = b"GET /v1/models HTTP/1.1\r\nhost: gateway\r\n\r\n";

async fn health_is_served_when_all_connections_are_in_use(backend: Backend) {
    let setup = Setup::new(backend).env("TOLLGATE_LIMITS__MAX_CONNECTIONS", "1");
    let gateway = setup.start().await;
    let request = async |bytes: &[u8]| {
        let mut connection = gateway.raw().await;
        connection.write(bytes).await;
        let (status, head, _) = connection.response().await.expect("a response");
        (status, head)
    };
    // A connection that was open before, such as the one of the gateway's start, may still count for a moment.
    let only = loop {
        let mut connection = gateway.raw().await;
        connection.write(MODELS).await;
        if connection
            .status()
            .await
            .is_some_and(|status| status != 503)
        {
            break connection;
        }
    };
    let (status, head) = request(MODELS).await;
    assert_eq!(status, 503);
    for header in ["retry-after: 1", "connection: close"] {
        assert!(head.to_ascii_lowercase().contains(header), "{head}");
    }
    for _ in 0..3 {
        assert_eq!(request(HEALTH).await.0, 200);
    }
    drop(only);
    until_true("the connection to be free again", async || {
        request(MODELS).await.0 != 503
    })
    .await;
    gateway.close().await;
}

async fn a_rejected_body_gets_an_immediate_response_and_is_drained(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let with_key = |path, length| client.raw_head(path, &format!("Content-Length: {length}\r\n"));
    let without_key = |length: usize| {
        format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: gateway\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    const SIZE: usize = 20 * 1_048_576;
    for (head, size, expected) in [
        (
            with_key("/v1/images/generations", 70 * 1_048_576),
            70 * 1_048_576,
            413,
        ),
        (
            with_key("/v1/uploads/images", 70 * 1_048_576),
            70 * 1_048_576,
            413,
        ),
        (with_key("/v1/tasks/batch", SIZE), SIZE, 413),
        (without_key(SIZE), SIZE, 401),
    ] {
        // The response does not wait for the body.
        let mut early = gateway.raw().await;
        early.write(head.as_bytes()).await;
        assert_eq!(early.status().await, Some(expected), "{head}");
        // A client that sends its complete request before it reads still gets the response.
        let mut late = gateway.raw().await;
        late.write(head.as_bytes()).await;
        late.write(&vec![b' '; size]).await;
        assert_eq!(late.status().await, Some(expected), "{head}");
    }
    gateway.close().await;
}

async fn a_connection_accepted_before_a_drain_is_served(backend: Backend) {
    let mut gateway = TestGateway::start(backend).await;
    let mut accepted = Vec::new();
    for n in 0..20 {
        let mut connection = gateway.raw().await;
        if n % 2 == 0 {
            connection.write(HEALTH).await;
            assert_eq!(connection.status().await, Some(200));
        }
        accepted.push(connection);
    }
    gateway.signal("TERM").await;
    until_true("the drain to begin", async || {
        gateway.log().contains("draining")
    })
    .await;
    for connection in &mut accepted {
        connection.write(HEALTH).await;
    }
    for connection in &mut accepted {
        assert_eq!(connection.status().await, Some(200));
    }
    assert!(gateway.wait_for_exit().await.success());
    gateway.start_server().await;
    gateway.close().await;
}

/// A frame of HTTP/2 (RFC 9113, 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let stream = stream.to_be_bytes();
    [&length[1..], &[kind, flags], &stream, payload].concat()
}

const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const CONTINUATION: u8 = 9;
const END_STREAM_AND_HEADERS: u8 = 5;
/// `GET / http` and an authority, in HPACK.
const REQUEST: &[u8] = b"\x82\x84\x86\x41\x01x";
/// A header that is never indexed: 100 bytes of value.
const HEADER: [u8; 104] = {
    let mut header = [b'a'; 104];
    (header[0], header[1], header[2], header[3]) = (0x10, 1, b'a', 100);
    header
};

async fn http2_floods_are_disconnected_and_others_are_served(backend: Backend) {
    let gateway = TestGateway::start(backend).await;
    let reset_request = |number: u32| {
        let stream = 2 * number + 1;
        let cancel = frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes());
        [
            frame(HEADERS, END_STREAM_AND_HEADERS, stream, REQUEST),
            cancel,
        ]
        .concat()
    };
    let endless_headers = |number: u32| match number {
        0 => frame(HEADERS, 0, 1, REQUEST),
        _ => frame(CONTINUATION, 0, 1, &HEADER.repeat(100)),
    };
    let resets: Vec<u8> = (0..2_000).flat_map(reset_request).collect();
    let headers: Vec<u8> = (0..2_000).flat_map(endless_headers).collect();
    for (name, flood) in [("resets", resets), ("headers", headers)] {
        let mut connection = gateway.raw().await;
        connection.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
        connection.write(&frame(4, 0, 0, &[])).await;
        connection.write(&flood).await;
        gateway.anonymous().get("/healthz").await.expect(200);
        let replies = connection.read_to_end().await;
        assert!(replies.len() < flood.len(), "{name}: {}", replies.len());
    }
    gateway.close().await;
}
