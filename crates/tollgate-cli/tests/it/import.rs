//! `tollgate import`: users and keys of another gateway.

use serde_json::{Value, json};
use tollgate_core::id::key_hash;

use crate::harness::*;

on_both!(keys_of_another_gateway_are_imported);
on_sqlite!(an_invalid_file_changes_nothing);

const KEY: &str = "sk-key-of-another-gateway-1";
const HASHED: &str = "sk-key-of-another-gateway-2";

fn write(gateway: &TestGateway, lines: &[Value]) -> String {
    let file = gateway.dir().join("keys.jsonl");
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    std::fs::write(&file, lines.join("\n")).unwrap();
    file.display().to_string()
}

async fn keys_of_another_gateway_are_imported(backend: Backend) {
    let price = "[price.\"imagen-4.0-partner\"]\nper_image = 2\n";
    let gateway = Setup::new(backend).config(price).start().await;
    let file = write(
        &gateway,
        &[
            json!({ "user": "ann", "balance": "3", "key": KEY, "name": "laptop", "rpm": 60 }),
            json!({ "user": "ann", "sha256": key_hash(HASHED), "models": ["gpt-5"], "quota": 1.5 }),
        ],
    );
    let check = gateway.cli_json(&["import", &file, "--check"]).await;
    assert_has(&check, json!({ "lines": 2, "users": 0, "keys": 0 }));
    for (users, keys, skipped) in [(1, 2, 0), (0, 0, 2)] {
        let imported = gateway.cli_json(&["import", &file]).await;
        let expected = json!({ "lines": 2, "users": users, "keys": keys, "skipped": skipped });
        assert_eq!(imported, expected);
    }
    let client = gateway.client(Some(KEY.to_owned()), String::new());
    assert_eq!(client.balances().await, (3.0, 0.0));
    client
        .generate(&json!({ "model": "imagen-4.0-partner", "prompt": "a mill" }))
        .await;
    assert_eq!(client.balances().await, (1.0, 2.0));
    let second = gateway.client(Some(HASHED.to_owned()), String::new());
    let image = json!({ "model": "imagen-4.0-partner", "prompt": "a mill" });
    second.post_image(&image).await.rejected(403, "gpt-5");
    let keys = gateway.cli_json(&["key", "list"]).await;
    let mut keys = keys.as_array().unwrap().iter();
    assert!(keys.any(|key| key["quota"] == 1.5 && key["models"][0] == "gpt-5"));
    gateway.close().await;
}

async fn an_invalid_file_changes_nothing(backend: Backend) {
    let gateway = TestGateway::start(backend).await;
    let valid = json!({ "user": "ann", "key": KEY });
    for (invalid, expected) in [
        (
            json!({ "user": "bob" }),
            "line 2: it takes either key or sha256",
        ),
        (
            json!({ "user": "bob", "key": HASHED, "sha256": key_hash(HASHED) }),
            "line 2: it takes either",
        ),
        (
            json!({ "user": "bob", "key": "short" }),
            "line 2: key must have at least 16 characters",
        ),
        (
            json!({ "user": "bob", "sha256": "ab" }),
            "line 2: sha256 must be 64",
        ),
        (
            json!({ "user": "", "key": HASHED }),
            "line 2: user must have",
        ),
        (
            json!({ "user": "bob", "key": HASHED, "balance": -1 }),
            "line 2: balance must not be negative",
        ),
        (
            json!({ "user": "bob", "key": HASHED, "rpm": 0 }),
            "line 2: rpm must be at least 1",
        ),
        (
            json!({ "user": "bob", "key": HASHED, "quote": 1 }),
            "line 2: a field is missing, unknown",
        ),
        (json!([HASHED]), "line 2: "),
        (valid.clone(), "line 2: its key is in another line too"),
    ] {
        let file = write(&gateway, &[valid.clone(), invalid]);
        let output = gateway.cli(&["import", &file]).await;
        assert_eq!(output.code, 1);
        assert!(
            output.stderr.contains(expected),
            "{}, not {expected}",
            output.stderr
        );
        assert!(!output.stderr.contains(HASHED) && !output.stderr.contains(KEY));
    }
    assert_eq!(gateway.query_number("SELECT COUNT(*) FROM users").await, 0);
    gateway.close().await;
}
