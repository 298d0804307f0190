//! The log: the contents of a request's line, which requests get one, its formats, and what no line contains.

use std::os::linux::fs::MetadataExt as _;

use http::Method;
use serde_json::{Value, json};

use crate::harness::images::png;
use crate::harness::*;

on_sqlite!(
    the_line_of_a_chat_has_its_cost_channel_attempts_and_tokens,
    the_end_of_a_task_has_its_cost_channel_and_attempts,
    an_access_ratio_of_0_logs_only_errors,
    the_text_format_is_written_and_journald_gets_priorities,
    the_log_has_no_secrets,
);

const CHATS: &str = "/v1/chat/completions";
const CHANNELS: &str = "[[channel]]\nname = \"first\"\nkind = \"sandbox\"\n";

/// Waits for the line of the log that has these members; returns it.
async fn find_line(gateway: &TestGateway, members: &[(&str, Value)]) -> Value {
    until("a line of the log", async || {
        let log = gateway.log();
        let lines = log.lines().map(serde_json::from_str::<Value>);
        let mut lines = lines.filter_map(Result::ok);
        lines.find(|line| members.iter().all(|(name, value)| line[name] == *value))
    })
    .await
}

async fn the_line_of_a_chat_has_its_cost_channel_attempts_and_tokens(backend: Backend) {
    let prices = "[price.\"gpt-5\"]\ninput_per_million = 1\noutput_per_million = 2\n";
    let (gateway, client) = TestGateway::with_config(backend, &format!("{CHANNELS}{prices}")).await;
    for (id, is_stream) in [("complete-1", false), ("streamed-1", true)] {
        let body = json!({
            "model": "gpt-5", "stream": is_stream, "messages": [{ "role": "user", "content": "hello" }],
        });
        let headers = [("x-request-id", id)];
        client.post_with(CHATS, &body, &headers).await.expect(200);
        let line = find_line(&gateway, &[("request_id", id.into())]).await;
        let charged = gateway
            .query(&format!(
                "SELECT settled, channel FROM chats WHERE request_id = '{id}'"
            ))
            .await;
        let cost = charged[0][0].parse::<f64>().unwrap() / 1e9;
        assert!(
            cost > 0.0 && (line["cost"].as_f64().unwrap() - cost).abs() < 1e-12,
            "{line}"
        );
        assert_has(
            &line,
            json!({
                "method": "POST", "path": CHATS, "status": 200, "key": client.key_id, "client": "127.0.0.1", "model": "gpt-5",
                "channel": charged[0][1], "attempts": 1, "outcome": "done",
            }),
        );
        for name in ["us", "total_us", "input_tokens", "output_tokens"] {
            assert!(
                line[name].as_u64().is_some_and(|n| n > 0),
                "{name} in {line}"
            );
        }
        assert!(line["total_us"].as_u64() >= line["us"].as_u64(), "{line}");
        let lines = gateway.log().matches(id).count();
        assert_eq!(lines, 1, "one line a request");
    }
    gateway.close().await;
}

async fn the_end_of_a_task_has_its_cost_channel_and_attempts(backend: Backend) {
    let prices = "[price.\"imagen-4.0-partner\"]\nper_image = 0.5\n";
    let (gateway, client) = TestGateway::with_config(backend, &format!("{CHANNELS}{prices}")).await;
    let id = client
        .submit(&json!({ "model": "imagen-4.0-partner", "prompt": "a mill" }))
        .await;
    client.wait_for_end(&id).await;
    let line = find_line(
        &gateway,
        &[("task", id.into()), ("message", "task ended".into())],
    )
    .await;
    let expected = json!({
        "cost": "0.5", "channel": "first", "attempts": 1, "model": "imagen-4.0-partner", "key": client.key_id,
    });
    assert_has(&line, expected);
    gateway.close().await;
}

async fn an_access_ratio_of_0_logs_only_errors(backend: Backend) {
    let (gateway, client) = TestGateway::with_config(backend, "log.access_ratio = 0\n").await;
    for (id, path, status) in [
        ("well-1", "/v1/models", 200),
        ("missing-1", "/v1/tasks/task_none", 404),
        ("well-2", "/v1/models", 200),
    ] {
        let headers = [("x-request-id", id)];
        client
            .send_with("GET", path, &headers, "")
            .await
            .expect(status);
    }
    let headers = [("x-request-id", "unknown-key-1")];
    let anonymous = gateway.anonymous();
    let reply = anonymous.send_with("GET", "/v1/models", &headers, "");
    reply.await.expect(401);
    let line = find_line(&gateway, &[("request_id", "unknown-key-1".into())]).await;
    assert_has(&line, json!({ "status": 401 }));
    let log = gateway.log();
    assert!(log.contains("missing-1") && !log.contains("well-"), "{log}");
    gateway.close().await;
}

async fn the_text_format_is_written_and_journald_gets_priorities(backend: Backend) {
    let setup = Setup::new(backend).config("log.format = \"text\"\n");
    let mut gateway = setup.start().await;
    let request = async |gateway: &TestGateway, id: &str| {
        let (anonymous, headers) = (gateway.anonymous(), [("x-request-id", id)]);
        let reply = anonymous.send_with("GET", "/v1/models", &headers, "");
        reply.await.expect(401);
        until("a line of the log", async || {
            let log = gateway.log();
            log.lines()
                .find(|line| line.contains(id))
                .map(str::to_owned)
        })
        .await
    };
    let line = request(&gateway, "plain-1").await;
    assert!(
        line.starts_with("20") && line.contains("Z  INFO 401 GET /v1/models "),
        "{line}"
    );
    // systemd identifies the stream by device and inode.
    let log = std::fs::metadata(gateway.dir().join("stderr.log")).unwrap();
    let stream = format!("{}:{}", log.st_dev(), log.st_ino());
    gateway.set_env("JOURNAL_STREAM", &stream);
    gateway.restart().await;
    let line = request(&gateway, "journal-1").await;
    assert!(line.starts_with("<6>INFO 401 GET /v1/models "), "{line}");
    gateway.close().await;
}

async fn the_log_has_no_secrets(backend: Backend) {
    let setup = Setup::new(backend).env("TOLLGATE_LOG", "trace");
    let gateway = setup.start().await;
    let client = gateway.unlimited_client().await;
    let secret = client.secret.clone().unwrap();
    let known = [("x-request-id", "known-request-1")];
    let mut body = json!({ "model": "imagen-4.0-partner", "prompt": "private-prompt" });
    let path = "/v1/images/generations";
    client.post_with(path, &body, &known).await.expect(200);
    // The key in places where it does not belong: a query, a path, a body, another header.
    let with_key = format!("/v1/tasks?key={secret}&limit=not-a-number-77");
    for (path, status) in [
        (with_key.as_str(), 400),
        ("/v1/tasks?cursor=query-text-99", 400),
        ("/v1/tasks/line%0abreak%0d%1b[31m", 404),
    ] {
        client.get(path).await.expect(status);
    }
    body["api_key"] = secret.clone().into();
    client.post_image(&body).await.expect(200);
    for header in ["x-api-key", "x-goog-api-key", "authorization"] {
        let value = format!("Bearer {secret}0");
        let headers = [(header, value.as_str())];
        let url = client.url("/v1/models");
        let reply = client.fetch_with(Method::GET, &url, &headers).await;
        reply.expect(401);
    }
    let image = png(3, 3);
    let reply = client.upload("secret-file-name.png", "image/png", &image);
    reply.await.expect(200);
    gateway.idle().await;
    // The line of a task's end also has the id of its request.
    until_true("the log to be written", async || {
        let log = gateway.log();
        let lines_of_request = log.matches("known-request-1").count();
        lines_of_request > 1 && log.contains("/v1/uploads/images")
    })
    .await;
    let log = gateway.log();
    for text in [
        &secret,
        &secret[3..],
        "not-a-number-77",
        "query-text-99",
        "secret-file-name",
    ] {
        assert!(!log.contains(text), "{text} is in the log");
    }
    let lines = log
        .lines()
        .filter(|line| !line.starts_with("first sign-in: "))
        .map(|line| serde_json::from_str(line).expect(line));
    let mut lines = lines.filter(|line: &Value| line["request_id"] == "known-request-1");
    let submission = lines.find(|line| line["path"] == "/v1/images/generations");
    let expected = json!({ "status": 200, "key": client.key_id });
    assert_has(&submission.expect("a line"), expected);
    gateway.close().await;
}
