//! Who gets in, and what balances say.

use http::Method;
use http_body_util::Full;
use serde_json::{Value, json};

use crate::gate::{Backend, Client, Gate, Reply, Setup, on_both, until};

on_both!(
    keys_are_checked,
    revocations_are_seen,
    balances_are_told,
    quotas_hold_key_and_user_apart,
);

const BALANCES: [&str; 4] = [
    "/v1/balance",
    "/balance",
    "/v1/user/balance",
    "/user/balance",
];

/// GET with headers in place of the key.
async fn ask(client: &Client, path: &str, headers: &[(&str, &str)]) -> Reply {
    client
        .fetch_with(Method::GET, &client.url(path), headers)
        .await
}

async fn keys_are_checked(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    let secret = client.secret.clone().unwrap();
    let bearer = format!("Bearer {secret}");
    let shouted = format!("BEARER   {secret}");
    for header in [
        ("authorization", bearer.as_str()),
        ("authorization", shouted.as_str()),
        ("x-api-key", secret.as_str()),
        ("x-goog-api-key", secret.as_str()),
    ] {
        for path in ["/v1/models", "/v1/tasks", "/balance"] {
            ask(&client, path, &[header]).await.expect(200);
        }
    }
    let unknown = format!("sk-{}", "a".repeat(40));
    for (headers, known) in [
        (vec![], false),
        (vec![("authorization", "")], false),
        (vec![("authorization", "Bearer ")], false),
        (vec![("authorization", "Basic dXNlcjpwYXNz")], false),
        (vec![("x-api-key", "")], false),
        (vec![("authorization", "Bearer x")], true),
        (vec![("authorization", unknown.as_str())], false),
        (vec![("x-api-key", unknown.as_str())], true),
        (vec![("x-goog-api-key", &secret[..secret.len() - 1])], true),
    ] {
        for path in [
            "/v1/models",
            "/v1/tasks",
            "/v1/tasks/task_0",
            "/v1/images/generations/x",
        ] {
            let reply = ask(&client, path, &headers).await;
            reply.error(401, "authentication_error");
            assert_eq!(reply.header("www-authenticate"), "Bearer");
        }
        for path in BALANCES {
            let reply = ask(&client, path, &headers).await;
            if known {
                let body = reply.expect(401).json();
                assert_eq!(body["success"], false);
                let message = body["message"].as_str().unwrap();
                assert!(
                    message.starts_with("token info lookup failure: "),
                    "{message}"
                );
            } else {
                reply.error(401, "authentication_error");
            }
        }
    }
    // Without a key nothing of a request is looked at.
    let nobody = gate.nobody();
    for path in [
        "/v1/images/generations",
        "/v1/images/edits",
        "/v1/tasks/batch",
    ] {
        nobody
            .post(path, &json!("rubbish"))
            .await
            .error(401, "authentication_error");
    }
    let reply = nobody
        .upload("a.png", "image/png", b"x")
        .await
        .expect(401)
        .json();
    assert_eq!(reply["error"]["type"], "authentication_error");
    assert!(reply["error"].get("code").is_none(), "{reply}");
    gate.close().await;
}

async fn revocations_are_seen(backend: Backend) {
    let gate = Setup::new(backend)
        .config("[price.\"imagen-4.0-partner\"]\nper_image = 1.25\n")
        .start()
        .await;
    gate.user("owner", &[]).await;
    let revoked = gate.key("owner", &[]).await;
    let stays = gate.key("owner", &[]).await;
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_millis(2500);
    let expires = gate.key("owner", &["--expires", &soon.to_string()]).await;
    let expired = gate
        .key("owner", &["--expires", "2020-01-01T00:00:00Z"])
        .await;
    for client in [&revoked, &stays, &expires] {
        client.get("/v1/models").await.expect(200);
    }
    expired
        .get("/v1/models")
        .await
        .error(401, "authentication_error");

    let record = gate.record(&["key", "revoke", &revoked.key_id]).await;
    assert_eq!(record["revoked"], true);
    let refused = async |client: &Client| {
        let client = client.clone();
        until("a key to be refused", async || {
            let reply = client.get("/v1/models").await;
            (reply.status != 200).then_some(reply)
        })
        .await
    };
    refused(&revoked).await.error(401, "authentication_error");
    refused(&expires).await.error(401, "authentication_error");
    let body = revoked.get("/balance").await.expect(401).json();
    assert_eq!(
        body["message"],
        "token info lookup failure: this API key was revoked"
    );
    stays.get("/v1/models").await.expect(200);

    // What was taken before is made and charged all the same.
    let slow = json!({ "model": "imagen-4.0-partner", "prompt": "[[sandbox:delay=1500]]" });
    stays.submit(&slow).await;
    gate.record(&["user", "disable", "owner"]).await;
    refused(&stays).await.error(403, "permission_error");
    for path in BALANCES {
        stays.get(path).await.error(403, "permission_error");
    }
    gate.idle().await;
    let users = gate.record(&["user", "list"]).await;
    assert_eq!(users[0]["used"], 1.25, "{users}");
    gate.close().await;
}

fn record(remain: f64, used: f64, unlimited: bool) -> Value {
    json!({
        "success": true,
        "remain_balance": remain,
        "used_balance": used,
        "unlimited_quota": unlimited,
    })
}

async fn balances_are_told(backend: Backend) {
    let gate = Setup::new(backend)
        .config("[price.\"imagen-4.0-partner\"]\nper_image = 1.25\n")
        .start()
        .await;
    gate.user("rich", &[]).await;
    let free = gate.key("rich", &[]).await;
    let limited = gate.key("rich", &["--quota", "3"]).await;
    gate.user("poor", &["--balance", "10.5"]).await;
    let poor = gate.key("poor", &[]).await;
    let body = json!({ "model": "imagen-4.0-partner", "prompt": "a mill" });
    for client in [&free, &limited, &poor] {
        client.make(&body).await;
    }
    for (client, of_key, of_user) in [
        (&free, record(-1.0, 1.25, true), record(-1.0, 2.5, true)),
        (&limited, record(1.75, 1.25, false), record(-1.0, 2.5, true)),
        (&poor, record(-1.0, 1.25, true), record(9.25, 1.25, false)),
    ] {
        for (path, expected) in BALANCES.iter().zip([&of_key, &of_key, &of_user, &of_user]) {
            let reply = client.get(path).await.expect(200);
            assert_eq!(reply.json(), *expected, "{path}");
            assert_eq!(reply.header("access-control-allow-origin"), "*", "{path}");
        }
    }
    // A browser asks first, without a key; failures are for its eyes too.
    for path in BALANCES {
        let request = gate.nobody().request(Method::OPTIONS, path);
        let request = request
            .header("origin", "https://shop.example")
            .header("access-control-request-method", "GET")
            .header("access-control-request-headers", "authorization");
        let reply = gate
            .nobody()
            .send(request.body(Full::default()).unwrap())
            .await;
        assert!([200, 204].contains(&reply.status), "{path}");
        assert_eq!(reply.header("access-control-allow-origin"), "*");
        assert!(reply.header("access-control-allow-methods").contains("GET"));
        assert!(
            reply
                .header("access-control-allow-headers")
                .contains("authorization")
        );
        let reply = gate.nobody().get(path).await.expect(401);
        assert_eq!(reply.header("access-control-allow-origin"), "*");
    }
    // A credit counts at once.
    gate.record(&["user", "credit", "poor", "0.75", "--note", "a gift"])
        .await;
    assert_eq!(poor.user_balance().await, record(10.0, 1.25, false));
    gate.record(&["user", "credit", "poor", "-4"]).await;
    assert_eq!(poor.user_balance().await, record(6.0, 1.25, false));
    gate.close().await;
}

async fn quotas_hold_key_and_user_apart(backend: Backend) {
    let gate = Setup::new(backend)
        .config("[price.\"imagen-4.0-partner\"]\nper_image = 1\n")
        .start()
        .await;
    gate.user("payer", &["--balance", "3"]).await;
    let small = gate.key("payer", &["--quota", "1"]).await;
    let open = gate.key("payer", &[]).await;
    gate.user("broke", &["--balance", "0"]).await;
    let broke = gate.key("broke", &["--unlimited"]).await;
    let hold = json!({ "model": "imagen-4.0-partner", "prompt": "[[sandbox:hang]]" });
    let make = json!({ "model": "imagen-4.0-partner", "prompt": "a mill" });

    let held = small.submit(&hold).await;
    assert_eq!(
        small.balance().await,
        record(0.0, 0.0, false),
        "a hold is not used, only not there"
    );
    assert_eq!(small.user_balance().await, record(2.0, 0.0, false));
    let message = small.order(&make).await.error(402, "payment_required");
    assert!(message.contains("quota"), "{message}");
    small.cancel(&held).await.expect(200);
    assert_eq!(small.balance().await, record(1.0, 0.0, false));
    small.make(&make).await;
    assert_eq!(small.balance().await, record(0.0, 1.0, false));
    small.order(&make).await.error(402, "payment_required");
    open.make(&make).await;
    open.make(&make).await;
    let message = open.order(&make).await.error(402, "payment_required");
    assert!(message.contains("balance"), "{message}");
    assert_eq!(open.user_balance().await, record(0.0, 3.0, false));
    broke.order(&make).await.error(402, "payment_required");
    // What costs nothing needs no money.
    broke
        .make(&json!({ "model": "wan2.7-image", "prompt": "x", "size": "768x768" }))
        .await;
    gate.close().await;
}
