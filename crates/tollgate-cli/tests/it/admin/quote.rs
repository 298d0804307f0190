//! Quotes: a submission then holds exactly the quoted amount, and a quote moves no money.

use serde_json::{Value, json};
use tollgate_core::Amount;

use super::{OWNER, send};
use crate::harness::*;

on_both!(a_quote_equals_the_hold_of_a_submission);
on_sqlite!(
    a_quote_returns_the_errors_of_the_endpoint,
    a_quote_reports_whether_a_channel_is_available,
);

const PRICES: &str = r#"
[price."grok-imagine-1.0-partner"]
per_image = 0.333333333
[price."gpt-image-2-official"]
per_image = 0.04
when = [{ resolution = "2k", per_image = 0.19 }]
[price."grok-imagine-video-1.5"]
per_second = 0.25
when = [{ resolution = "720p", per_second = 0.5 }, { size = "9:16", per_video = 0.7 }]
[price."native-v3"]
per_thousand_characters = 0.03
[price."gpt-5"]
input_per_million = 1.25
output_per_million = 10
per_web_search = 0.01
service_tiers = { priority = 2 }
"#;

/// Path, request, unit, units, price. The total of tasks is units × price.
type Row = (
    &'static str,
    Value,
    &'static str,
    Option<u64>,
    Option<&'static str>,
);

fn requests() -> Vec<Row> {
    let image = "/v1/images/generations";
    let video = "/v1/video/generations";
    let grok = |n: u32| json!({ "model": "grok-imagine-1.0-partner", "prompt": "x", "n": n });
    let gpt = json!({ "model": "gpt-image-2-official", "prompt": "x", "size": "1:1", "resolution": "2k" });
    let clip = |more: Value| {
        let mut body = json!({ "model": "grok-imagine-video-1.5", "prompt": "x", "duration": 6 });
        let members = more.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(members);
        body
    };
    let text = "é".repeat(250);
    let speech = json!({ "model": "native-v3", "input": text });
    let native = json!({ "model_name": "native-v3", "text": text });
    let messages = json!([{ "role": "user", "content": "How tall is a mill? 🙂" }]);
    let contents = json!([{ "role": "user", "parts": [{ "text": "x" }] }]);
    let tier = json!({ "model": "gpt-5", "messages": messages, "service_tier": "priority" });
    vec![
        (image, grok(3), "image", Some(3), Some("0.333333333")),
        (image, gpt, "image", Some(1), Some("0.19")),
        (video, clip(json!({})), "second", Some(6), None),
        (
            "/v1/videos",
            clip(json!({ "resolution": "720p" })),
            "second",
            Some(6),
            Some("0.5"),
        ),
        (
            "/v1/audio/speech",
            speech,
            "character",
            Some(250),
            Some("0.00003"),
        ),
        (
            "/native/v1/audio/tts",
            native.clone(),
            "character",
            Some(250),
            Some("0.00003"),
        ),
        (
            "/kling/v1/audio/tts",
            native,
            "character",
            Some(250),
            Some("0.00003"),
        ),
        (
            "/v1/chat/completions",
            json!({ "model": "gpt-5", "messages": messages, "max_tokens": 100, "n": 2 }),
            "token",
            None,
            None,
        ),
        ("/api/v1/chat/completions", tier, "token", None, None),
        (
            "/v1/responses",
            json!({ "model": "gpt-5", "input": "x", "tools": [{ "type": "web_search" }] }),
            "token",
            None,
            None,
        ),
        (
            "/anthropic/v1/messages",
            json!({ "model": "gpt-5", "max_tokens": 77, "messages": messages }),
            "token",
            None,
            None,
        ),
        (
            "/v1beta/models/gpt-5:generateContent",
            json!({ "contents": contents }),
            "token",
            None,
            None,
        ),
        (
            "/gemini/v1beta/models/gpt-5:streamGenerateContent",
            json!({ "contents": contents, "generationConfig": { "maxOutputTokens": 9 } }),
            "token",
            None,
            None,
        ),
    ]
}

async fn a_quote_equals_the_hold_of_a_submission(backend: Backend) {
    let setup = Setup::new(backend).admin_key(OWNER).config(PRICES);
    let gateway = setup.start().await;
    let owner = gateway.client(Some(OWNER.to_owned()), String::new());
    let customer = gateway.user_client("customer", &["--balance", "1"]).await;
    for (at, (path, request, unit, units, price)) in requests().into_iter().enumerate() {
        let body = json!({ "endpoint": path, "request": request });
        let quote = customer.post("/v1/quote", &body).await.expect(200).json();
        eprintln!("{quote}");
        assert_eq!(
            (&quote["endpoint"], &quote["unit"]),
            (&json!(path), &json!(unit))
        );
        assert_eq!(quote["currency"], "USD");
        assert_eq!(quote["available"], true);
        assert_eq!(quote["exact"], unit != "token");
        let total: Amount = quote["total"].as_str().unwrap().parse().unwrap();
        if let Some(units) = units {
            assert_eq!(quote["units"], units);
            let each: Amount = quote["price"].as_str().unwrap().parse().unwrap();
            assert!(price.is_none_or(|price| quote["price"] == price), "{quote}");
            assert_eq!(each.times(units, 1), Some(total));
        } else {
            assert_eq!(quote["price"], Value::Null);
        }
        // The admin API returns the same quote, and also names the channels.
        let mut admins = send(&owner, "POST", "/quote", &[], &body)
            .await
            .expect(200)
            .json();
        assert_eq!(admins["channels"].take(), json!(["sandbox"]));
        let mut same = quote.clone();
        same["available"].take();
        for value in [&mut admins, &mut same] {
            value
                .as_object_mut()
                .unwrap()
                .retain(|_, value| !value.is_null());
        }
        assert_eq!(admins, same);

        // A balance that is a billionth less than the total does not cover the hold; the total does.
        let short = total - Amount::from_nanos(1);
        for (name, balance, status) in [("short", short, 402), ("exact", total, 200)] {
            let balance = balance.to_string();
            let name = format!("{name}{at}");
            let client = gateway.user_client(&name, &["--balance", &balance]).await;
            client.post(path, &request).await.expect(status);
        }
    }
    assert_eq!(customer.balances().await, (1.0, 0.0));
    assert_eq!(customer.get_json("/v1/tasks").await["data"], json!([]));
    gateway.close().await;
}

async fn a_quote_reports_whether_a_channel_is_available(backend: Backend) {
    let setup = Setup::new(backend).admin_key(OWNER).config(PRICES);
    let gateway = setup.start().await;
    let owner = gateway.client(Some(OWNER.to_owned()), String::new());
    let client = gateway.unlimited_client().await;
    for (action, is_available) in [("pause", false), ("wake", true)] {
        let path = format!("/channels/sandbox/{action}");
        send(&owner, "POST", &path, &[], &json!({}))
            .await
            .expect(200);
        for (path, request, ..) in requests() {
            let body = json!({ "endpoint": path, "request": request });
            let quote = client.post("/v1/quote", &body).await.expect(200).json();
            assert_eq!(quote["available"], is_available, "{action}: {path}");
        }
    }
    gateway.close().await;
}

async fn a_quote_returns_the_errors_of_the_endpoint(backend: Backend) {
    let gateway = Setup::new(backend).admin_key(OWNER).start().await;
    let owner = gateway.client(Some(OWNER.to_owned()), String::new());
    let client = gateway.unlimited_client().await;
    let image = "/v1/images/generations";
    let messages = json!([{ "role": "user", "content": "x" }]);
    // Path, request, the field of the admin API's error.
    for (path, request, field) in [
        (
            image,
            json!({ "model": "nothing", "prompt": "x" }),
            "request",
        ),
        (image, json!({ "model": "gpt-5", "prompt": "x" }), "request"),
        (
            image,
            json!({ "model": "grok-imagine-1.0-partner", "prompt": "x", "n": 99 }),
            "request",
        ),
        (
            "/v1/audio/speech",
            json!({ "model": "native-v3" }),
            "request",
        ),
        (
            "/v1/chat/completions",
            json!({ "model": "nothing", "messages": messages }),
            "request.model",
        ),
        (
            "/anthropic/v1/messages",
            json!({ "model": "sora-2", "max_tokens": 9, "messages": messages }),
            "request.model",
        ),
        (
            "/gemini/v1beta/models/nothing:generateContent",
            json!({ "contents": [{ "parts": [{ "text": "x" }] }] }),
            "request.model",
        ),
    ] {
        let real = client.post(path, &request).await;
        let status = real.status;
        assert!((400..500).contains(&status), "{path} {request}");
        let body = json!({ "endpoint": path, "request": request });
        let quoted = client.post("/v1/quote", &body).await.expect(status);
        let without_ids = |mut error: Value| {
            error.as_object_mut().unwrap().remove("request_id");
            error
        };
        assert_eq!(without_ids(quoted.json()), without_ids(real.json()));
        let admins = send(&owner, "POST", "/quote", &[], &body)
            .await
            .expect(status);
        assert_eq!(admins.json()["error"]["field"], field, "{path} {request}");
    }
    for (body, field) in [
        (
            json!({ "endpoint": "/v1/models", "request": {} }),
            "endpoint",
        ),
        (
            json!({ "endpoint": "/v1/messages/count_tokens", "request": {} }),
            "endpoint",
        ),
        (json!({ "request": {} }), "endpoint"),
        (json!({ "endpoint": image }), "request"),
        (json!({ "endpoint": image, "request": [] }), "request"),
        (json!({ "endpoint": image, "request": {}, "n": 1 }), "n"),
    ] {
        client
            .post("/v1/quote", &body)
            .await
            .rejected(400, &format!("`{field}`"));
        let admins = send(&owner, "POST", "/quote", &[], &body).await.expect(400);
        assert_eq!(admins.json()["error"]["field"], field, "{body}");
    }
    gateway.close().await;
}
