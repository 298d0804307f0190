//! What nobody should send. Every answer is a clear 4xx in the documented envelope, and the next request is served.

use http::Method;
use http::header::CONTENT_TYPE;
use http_body_util::Full;
use serde_json::{Value, json};

use crate::gate::{Backend, Client, Gate, on_one};

on_one!(
    values_are_refused,
    models_are_refused,
    bodies_are_refused,
    paths_and_methods_are_refused,
    what_is_hardly_http_is_refused,
);

const GENERATIONS: &str = "/v1/images/generations";
const JSON_ENDPOINTS: [&str; 3] = [GENERATIONS, "/v1/images/edits", "/v1/tasks/batch"];

/// POST of any bytes.
async fn post(
    client: &Client,
    path: &str,
    content_type: &str,
    body: Vec<u8>,
) -> crate::gate::Reply {
    let request = client
        .request(Method::POST, path)
        .header(CONTENT_TYPE, content_type);
    client.send(request.body(body.into()).unwrap()).await
}

async fn values_are_refused(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    for (field, value) in [
        ("n", json!("1")),
        ("n", json!(1.0)),
        ("n", json!(1.5)),
        ("n", json!(0)),
        ("n", json!(-1)),
        ("n", json!(5)),
        ("n", json!(1e300)),
        ("n", json!(u64::MAX)),
        ("n", json!([1])),
        ("n", json!(true)),
        ("prompt", json!(7)),
        ("prompt", json!("")),
        ("prompt", json!(" \n\t ")),
        ("prompt", json!(["a"])),
        ("prompt", Value::Null),
        ("size", json!(1024)),
        ("size", json!("1024 x 1024")),
        ("size", json!("big")),
        ("size", json!("-1:1")),
        ("size", json!("999999999999x1")),
        ("size", json!({ "width": 3 })),
        ("resolution", json!("8k")),
        ("quality", json!("best")),
        ("quality", json!(1)),
        ("background", json!("red")),
        ("moderation", json!("off")),
        ("output_format", json!("gif")),
        ("output_compression", json!("50")),
        ("output_compression", json!(101)),
        ("output_compression", json!(-1)),
        ("image_urls", json!("https://example.com/a.png")),
        (
            "image_urls",
            json!([{ "url": "https://example.com/a.png" }]),
        ),
        ("image_urls", json!([null])),
        ("image_urls", json!(["ftp://example.com/a.png"])),
        ("mask_url", json!("https://example.com/a.png")),
        ("model", Value::Null),
        ("model", json!("")),
        ("model", json!(7)),
        ("model", json!(["gpt-image-2-official"])),
    ] {
        let mut body = json!({ "model": "gpt-image-2-official", "prompt": "a mill" });
        body[field] = value.clone();
        let message = client
            .order(&body)
            .await
            .error(400, "invalid_request_error");
        assert!(
            message.contains(&format!("`{field}")),
            "{field} {value}: {message}"
        );
    }
    // What is long is not sent back whole, and what is odd not as it came.
    let long =
        json!({ "model": "gpt-image-2-official", "prompt": "x", "size": "y".repeat(100_000) });
    assert!(
        client
            .order(&long)
            .await
            .error(400, "invalid_request_error")
            .len()
            < 2_000
    );
    assert_eq!(client.get("/v1/tasks").await.json()["data"], json!([]));
    gate.close().await;
}

async fn models_are_refused(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    for (path, model, names) in [
        (
            GENERATIONS,
            "grok-imagine-1.0-edit-partner",
            "/v1/images/edits",
        ),
        ("/v1/images/edits", "gpt-image-2-official", GENERATIONS),
        (GENERATIONS, "sora-2", "/v1/video/generations"),
        (GENERATIONS, "native-v3", "/v1/audio/speech"),
        (GENERATIONS, "gpt-5", "chat/completions"),
        ("/v1/images/edits", "gemini-2.5-pro", "chat/completions"),
        (GENERATIONS, "gpt-4-vision", "/v1/responses"),
    ] {
        let body = json!({ "model": model, "prompt": "a mill" });
        let message = client
            .post(path, &body)
            .await
            .error(400, "invalid_request_error");
        assert!(message.contains(names), "{model}: {message}");
    }
    for model in [
        "gpt-image-9",
        "GPT-IMAGE-2-OFFICIAL",
        "gpt-image-2-official ",
        "../x",
        "a\"b\n",
    ] {
        for path in [GENERATIONS, "/v1/images/edits"] {
            let body = json!({ "model": model, "prompt": "a mill" });
            client.post(path, &body).await.error(404, "not_found_error");
        }
    }
    gate.close().await;
}

async fn bodies_are_refused(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth - 1), "]".repeat(depth - 1));
        format!("{{\"model\":\"imagen-4.0-partner\",\"prompt\":\"x\",\"a\":{open}{close}}}")
            .into_bytes()
    };
    let long_number = format!(
        "{{\"model\":\"imagen-4.0-partner\",\"n\":{}}}",
        "9".repeat(50_000)
    );
    for path in JSON_ENDPOINTS {
        for (body, says) in [
            (&b""[..], "JSON"),
            (b" ", "JSON"),
            (b"{", "JSON"),
            (b"{}}", "JSON"),
            (b"model=gpt", "JSON"),
            (b"{\"model\": NaN}", "JSON"),
            (b"{'model': 'x'}", "JSON"),
            (b"{\"model\": \"\xff\xfe\"}", "UTF-8"),
            (b"\xef\xbb\xbf{}", ""),
            (b"{\"model\": \"\\ud800\"}", ""),
            (b"[]", ""),
            (b"null", ""),
            (b"\"text\"", ""),
            (b"12", ""),
            (&nested(65), "64"),
            (&nested(60_000), "64"),
            (long_number.as_bytes(), ""),
        ] {
            let reply = post(&client, path, "application/json", body.to_vec()).await;
            let message = reply.error(400, "invalid_request_error");
            assert!(message.contains(says), "{path}: {message}, not {says}");
        }
        for content_type in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "json",
        ] {
            let reply = post(&client, path, content_type, b"{}".to_vec()).await;
            let message = reply.error(400, "invalid_request_error");
            assert!(message.contains("application/json"), "{message}");
        }
    }
    post(&client, GENERATIONS, "application/json", nested(64))
        .await
        .expect(200);
    // One byte too many, declared or not.
    let megabyte = vec![b' '; 1_048_577];
    let reply = post(&client, "/v1/tasks/batch", "application/json", megabyte).await;
    let message = reply.error(413, "invalid_request_error");
    assert!(message.contains("1048576"), "{message}");
    let mut raw = gate.raw().await;
    let head = head(
        &client,
        GENERATIONS,
        "Content-Length: 67108865\r\nExpect: 100-continue\r\n",
    );
    raw.write(head.as_bytes()).await;
    let (status, _, body) = raw.answer().await.expect("an answer before the body");
    assert_eq!(status, 413, "{}", String::from_utf8_lossy(&body));
    let mut raw = gate.raw().await;
    raw.write(super_chunked(&client).as_bytes()).await;
    assert_eq!(raw.answer().await.map(|(status, ..)| status), Some(413));
    client.get("/v1/models").await.expect(200);
    gate.close().await;
}

/// A POST's head with the key.
/// The head of a POST with a key and these headers more.
pub(crate) fn head(client: &Client, path: &str, headers: &str) -> String {
    let key = client.secret.as_deref().unwrap();
    format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {key}\r\nContent-Type: application/json\r\n{headers}\r\n"
    )
}

/// A body of a megabyte and more whose length is not declared.
fn super_chunked(client: &Client) -> String {
    let chunk = format!("8000\r\n{}\r\n", " ".repeat(0x8000));
    let head = head(client, "/v1/tasks/batch", "Transfer-Encoding: chunked\r\n");
    format!("{head}{}0\r\n\r\n", chunk.repeat(33))
}

async fn paths_and_methods_are_refused(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    let send = async |method: &str, path: &str| {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        client
            .send(client.request(method, path).body(Full::default()).unwrap())
            .await
    };
    let long = format!("/{}", "x".repeat(8_000));
    for path in [
        "/",
        "/v1",
        "/v1/",
        "/v2/tasks",
        "/v1/images",
        "/v1/tasks/",
        "/v1/images/generations/",
        "/v1/images/generations/async/x/y",
        "/v1/models/",
        "/admin.php",
        "/.git/config",
        "/%2e%2e/%2e%2e/etc/passwd",
        &long,
    ] {
        send("GET", path).await.error(404, "not_found_error");
    }
    for (method, path, allowed) in [
        ("GET", GENERATIONS, vec!["POST"]),
        ("PUT", GENERATIONS, vec!["POST"]),
        ("DELETE", "/v1/tasks/task_x", vec!["GET", "HEAD"]),
        ("GET", "/v1/tasks/task_x/cancel", vec!["POST"]),
        ("GET", "/v1/tasks/batch", vec!["POST"]),
        ("POST", "/v1/models", vec!["GET", "HEAD"]),
        ("PATCH", "/v1/tasks", vec!["GET", "HEAD"]),
        ("GET", "/v1/uploads/images", vec!["POST"]),
        ("POST", "/balance", vec!["GET", "HEAD", "OPTIONS"]),
        ("POST", "/files/x", vec!["GET", "HEAD"]),
        ("POST", "/healthz", vec!["GET", "HEAD"]),
        ("BREW", "/v1/tasks", vec!["GET", "HEAD"]),
    ] {
        let reply = send(method, path).await;
        reply.error(405, "invalid_request_error");
        let mut allow: Vec<&str> = reply.header("allow").split(',').map(str::trim).collect();
        allow.sort_unstable();
        assert_eq!(allow, allowed, "{method} {path}");
    }
    for path in [
        "/v1/tasks/x",
        "/v1/tasks/task_",
        "/v1/tasks/%ff",
        "/v1/tasks/%00",
        "/v1/tasks/..%2f..%2fadmin",
        "/v1/tasks/task_01%27%20or%201=1",
        "/v1/images/generations/%ff",
    ] {
        send("GET", path).await.error(404, "not_found_error");
    }
    send("POST", "/v1/tasks/%ff/cancel")
        .await
        .error(404, "not_found_error");
    for query in [
        "limit=1&limit=2",
        "cursor=a&cursor=b",
        "limit=%ff",
        "limit=1%00",
    ] {
        let reply = send("GET", &format!("/v1/tasks?{query}")).await;
        reply.error(400, "invalid_request_error");
    }
    for query in ["", "unknown=1", "&&&", "limit=5&x=y"] {
        send("GET", &format!("/v1/tasks?{query}")).await.expect(200);
    }
    gate.close().await;
}

async fn what_is_hardly_http_is_refused(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    let key = client.secret.clone().unwrap();
    let many: String = (0..200).map(|i| format!("x-{i}: y\r\n")).collect();
    let both = "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n";
    for bytes in [
        b"\r\n\r\n".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00".to_vec(),
        vec![0xff; 200],
        b"GET / HTTP/9.9\r\nHost: x\r\n\r\n".to_vec(),
        b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1\r\nHost: x\r\na: \x00\r\n\r\n".to_vec(),
        format!("GET / HTTP/1.1\r\nHost: x\r\n{many}\r\n").into_bytes(),
        format!("GET / HTTP/1.1\r\nHost: x\r\na: {}\r\n\r\n", "b".repeat(200_000)).into_bytes(),
        head(&client, GENERATIONS, "Content-Length: -1\r\n").into_bytes(),
        head(&client, GENERATIONS, "Content-Length: 1\r\nContent-Length: 2\r\n").into_bytes(),
        head(&client, GENERATIONS, both).into_bytes(),
        [head(&client, GENERATIONS, "Transfer-Encoding: chunked\r\n").as_bytes(), b"zz\r\n"].concat(),
        [b"GET /v1/models HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer \xff".as_slice(), key.as_bytes(), b"\r\n\r\n"].concat(),
    ] {
        let mut raw = gate.raw().await;
        raw.write(&bytes).await;
        raw.finish().await;
        let answer = raw.rest().await;
        let is_refusal = answer.is_empty() || answer.starts_with(b"HTTP/1.1 4") || answer.starts_with(b"HTTP/1.0 4");
        assert!(is_refusal, "{:?}: {:?}", bytes.escape_ascii().to_string(), answer.escape_ascii().to_string());
        client.get("/healthz").await.expect(200);
    }
    // A body that never comes whole is no task.
    let mut raw = gate.raw().await;
    raw.write(head(&client, GENERATIONS, "Content-Length: 500\r\n").as_bytes())
        .await;
    raw.write(b"{\"model\": \"imagen-4.0-partner\", \"prompt\": \"x\"}")
        .await;
    drop(raw);
    // One connection serves what comes after a refusal.
    let mut raw = gate.raw().await;
    for (body, expected) in [
        ("{]", 400),
        ("{\"model\":\"imagen-4.0-partner\",\"prompt\":\"x\"}", 200),
        ("7", 400),
    ] {
        let length = format!("Content-Length: {}\r\n", body.len());
        raw.write(head(&client, GENERATIONS, &length).as_bytes())
            .await;
        raw.write(body.as_bytes()).await;
        assert_eq!(
            raw.answer().await.map(|(status, ..)| status),
            Some(expected)
        );
    }
    // Also after one that did not wait for the body: clients send it a moment after the head.
    for (path, expected) in [("/v1/nowhere", 404), ("/v1/tasks/batch", 400)] {
        raw.write(head(&client, path, "Content-Length: 2\r\n").as_bytes())
            .await;
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        raw.write(b"{}").await;
        assert_eq!(
            raw.answer().await.map(|(status, ..)| status),
            Some(expected)
        );
    }
    gate.idle().await;
    assert_eq!(
        client.get("/v1/tasks").await.json()["data"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    gate.close().await;
}
