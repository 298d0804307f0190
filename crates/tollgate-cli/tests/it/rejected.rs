//! Requests that the gateway must reject. Every response is a clear 4xx in the documented envelope, and the next request is served.

use serde_json::{Value, json};

use crate::harness::*;

on_sqlite!(
    fields_and_models_are_rejected,
    bodies_are_rejected,
    incomplete_bodies_are_rejected,
    unknown_paths_and_methods_are_rejected,
    malformed_http_is_rejected,
    a_connection_serves_the_request_after_a_rejected_one,
    bodies_are_limited_by_endpoint,
    compressed_bodies_are_rejected,
);

const GENERATIONS: &str = "/v1/images/generations";
const MULTIMODAL: &str = "/v1/multimodal/audio/generations";

async fn fields_and_models_are_rejected(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    cases::check(&client, "images_rejected", &[]).await;
    let empty = json!({ "data": [], "next_cursor": null });
    assert_eq!(client.get_json("/v1/tasks").await, empty);
    gateway.close().await;
}

async fn bodies_are_rejected(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    cases::check(&client, "bodies_rejected", &[]).await;
    for path in [GENERATIONS, "/v1/images/edits", "/v1/tasks/batch"] {
        let body = b"{\"model\": \"\xff\xfe\"}";
        let reply = client.post_bytes(path, "application/json", body).await;
        reply.rejected(400, "UTF-8");
    }
    gateway.close().await;
}

async fn incomplete_bodies_are_rejected(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    // A declared length over the limit gets its response before the body arrives.
    let headers =
        "Content-Type: application/json\r\nContent-Length: 67108865\r\nExpect: 100-continue\r\n";
    let mut raw = gateway.raw().await;
    raw.write(client.raw_head(GENERATIONS, headers).as_bytes())
        .await;
    assert_eq!(raw.status().await, Some(413));
    // A body of more than a megabyte whose length is not declared.
    let chunk = format!("8000\r\n{}\r\n", " ".repeat(0x8000));
    let headers = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n";
    let head = client.raw_head("/v1/tasks/batch", headers);
    let mut raw = gateway.raw().await;
    let request = format!("{head}{}0\r\n\r\n", chunk.repeat(33));
    raw.write(request.as_bytes()).await;
    assert_eq!(raw.status().await, Some(413));
    client.get_json("/v1/models").await;
    gateway.close().await;
}

async fn unknown_paths_and_methods_are_rejected(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    cases::check(&client, "paths_rejected", &[]).await;
    gateway.close().await;
}

async fn malformed_http_is_rejected(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let many: String = (0..200).map(|i| format!("x-{i}: y\r\n")).collect();
    let get = |headers: &str| format!("GET / HTTP/1.1\r\nHost: x\r\n{headers}\r\n").into_bytes();
    let post = |headers: &str| {
        let headers = format!("Content-Type: application/json\r\n{headers}");
        client.raw_head(GENERATIONS, &headers).into_bytes()
    };
    let key = client.secret.clone().unwrap();
    let models =
        b"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer \xff";
    for bytes in [
        b"\r\n\r\n".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00".to_vec(),
        vec![0xff; 200],
        b"GET / HTTP/9.9\r\nHost: x\r\n\r\n".to_vec(),
        b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        get("bad header\r\n"),
        get("a: \0\r\n"),
        get(&many),
        get(&format!("a: {}\r\n", "b".repeat(200_000))),
        post("Content-Length: -1\r\n"),
        post("Content-Length: 1\r\nContent-Length: 2\r\n"),
        post("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n"),
        [post("Transfer-Encoding: chunked\r\n"), b"zz\r\n".to_vec()].concat(),
        [models, key.as_bytes(), b"\r\n\r\n"].concat(),
    ] {
        let mut raw = gateway.raw().await;
        raw.write(&bytes).await;
        raw.finish().await;
        let reply = raw.read_to_end().await;
        let is_4xx = reply.starts_with(b"HTTP/1.1 4") || reply.starts_with(b"HTTP/1.0 4");
        let (sent, reply) = (bytes.escape_ascii(), reply.escape_ascii().to_string());
        assert!(reply.is_empty() || is_4xx, "{sent}: {reply}");
        client.get("/healthz").await.expect(200);
    }
    // A request whose body arrives only in part creates no task.
    let mut raw = gateway.raw().await;
    let head = client.raw_json_head(GENERATIONS, 500);
    let part = "{\"model\": \"imagen-4.0-partner\", \"prompt\": \"x\"}";
    raw.write(format!("{head}{part}").as_bytes()).await;
    drop(raw);
    gateway.idle().await;
    assert!(client.tasks().await.is_empty());
    gateway.close().await;
}

async fn a_connection_serves_the_request_after_a_rejected_one(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let mut raw = gateway.raw().await;
    let image = "{\"model\":\"imagen-4.0-partner\",\"prompt\":\"x\"}";
    for (body, status) in [("{]", 400), (image, 200), ("7", 400)] {
        let head = client.raw_json_head(GENERATIONS, body.len());
        raw.write(format!("{head}{body}").as_bytes()).await;
        assert_eq!(raw.status().await, Some(status));
    }
    // The connection also serves the next request after a response that did not wait for the body, which clients send a moment after the head.
    for (path, status) in [("/v1/nowhere", 404), ("/v1/tasks/batch", 400)] {
        raw.write(client.raw_json_head(path, 2).as_bytes()).await;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        raw.write(b"{}").await;
        assert_eq!(raw.status().await, Some(status));
    }
    gateway.idle().await;
    assert_eq!(client.tasks().await.len(), 1);
    gateway.close().await;
}

async fn bodies_are_limited_by_endpoint(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let padded = |mut body: Value| {
        body["padding"] = "x".repeat(1_100_000).into();
        body
    };
    let image = json!({ "model": "grok-imagine-1.0-partner", "prompt": "a" });
    let id = client.submit(&image).await;
    client.wait_for_end(&id).await;
    let cancel = format!("/v1/tasks/{id}/cancel");
    let text = json!({ "text": "hello" });
    for (path, body) in [
        (
            "/v1/audio/speech",
            json!({ "model": "native-v3", "input": "hello" }),
        ),
        (
            "/native/v1/audio/tts",
            json!({ "model_name": "native-v3", "text": "hello" }),
        ),
        (
            MULTIMODAL,
            json!({ "model": "native-v3", "task_type": "tts", "metadata": text }),
        ),
        ("/v1/tasks/batch", json!({ "task_ids": [id] })),
        (&cancel, json!({})),
    ] {
        let reply = client.post(path, &padded(body)).await;
        reply.rejected(413, "1048576 bytes");
    }
    client.cancel(&id).await.expect(409);
    client.post(GENERATIONS, &padded(image)).await.expect(200);
    gateway.close().await;
}

async fn compressed_bodies_are_rejected(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let gzip = [&[0x1f, 0x8b, 8, 0][..], &[0xab; 40]].concat();
    let encoded = ("content-encoding", "gzip");
    let post = async |path: &str, headers: &[(&str, &str)]| {
        let reply = client.send_with("POST", path, headers, gzip.clone()).await;
        reply.message(400)
    };
    let json = ("content-type", "application/json");
    for path in [
        GENERATIONS,
        "/openai/v1/chat/completions",
        "/v1/tasks/batch",
    ] {
        let message = post(path, &[json, encoded]).await;
        let is_named = message.contains("`Content-Encoding`") && message.contains("gzip");
        assert!(is_named, "{message}");
        let message = post(path, &[json]).await;
        let is_recognised = message.contains("gzip") && !message.contains("UTF-8");
        assert!(is_recognised, "{message}");
    }
    let form = ("content-type", "multipart/form-data; boundary=edge");
    let message = post("/v1/uploads/images", &[form, encoded]).await;
    assert!(message.contains("gzip"), "{message}");
    gateway.close().await;
}
