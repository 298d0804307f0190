//! Authentication, and the balances that the API reports.

use http::Method;
use serde_json::{Value, json};

use crate::harness::*;

on_both!(
    only_valid_keys_are_accepted,
    revoked_and_expired_keys_are_rejected,
    balances_are_returned,
    quotas_of_keys_and_balances_of_users_are_separate,
);
on_sqlite!(the_balance_of_a_disabled_user_has_its_own_error_body);

const BALANCES: [&str; 4] = [
    "/v1/balance",
    "/balance",
    "/v1/user/balance",
    "/user/balance",
];
const MODEL: &str = "imagen-4.0-partner";

fn image(prompt: &str) -> Value {
    json!({ "model": MODEL, "prompt": prompt })
}

fn priced(backend: Backend, price: f64) -> Setup {
    let config = format!("[price.\"{MODEL}\"]\nper_image = {price}\n");
    Setup::new(backend).config(&config)
}

async fn only_valid_keys_are_accepted(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let get = async |path: &str, headers: &[(&str, &str)]| {
        let url = client.url(path);
        client.fetch_with(Method::GET, &url, headers).await
    };
    let secret = client.secret.clone().unwrap();
    let bearer = format!("Bearer {secret}");
    let upper = format!("BEARER   {secret}");
    for header in [
        ("authorization", bearer.as_str()),
        ("authorization", &upper),
        ("x-api-key", &secret),
        ("x-goog-api-key", &secret),
    ] {
        for path in ["/v1/models", "/v1/tasks", "/balance"] {
            get(path, &[header]).await.expect(200);
        }
    }
    let unknown = format!("sk-{}", "a".repeat(40));
    // Whether the gateway reads the header's value as a key.
    for (headers, is_key) in [
        (&[][..], false),
        (&[("authorization", "")], false),
        (&[("authorization", "Bearer ")], false),
        (&[("authorization", "Basic dXNlcjpwYXNz")], false),
        (&[("x-api-key", "")], false),
        (&[("authorization", "Bearer x")], true),
        (&[("authorization", &unknown)], false),
        (&[("x-api-key", &unknown)], true),
        (&[("x-goog-api-key", &secret[1..])], true),
    ] {
        for path in [
            "/v1/models",
            "/v1/tasks",
            "/v1/tasks/task_0",
            "/v1/images/generations/x",
        ] {
            let reply = get(path, headers).await;
            reply.rejected(401, "");
            assert_eq!(reply.header("www-authenticate"), "Bearer");
        }
        for path in BALANCES {
            let reply = get(path, headers).await;
            if !is_key {
                reply.rejected(401, "");
                continue;
            }
            let body = reply.expect(401).json();
            assert_eq!(body["success"], false);
            let message = body["message"].as_str().unwrap();
            let expected = "token info lookup failure: ";
            assert!(message.starts_with(expected), "{message}");
        }
    }
    // If a request has no key, the gateway checks nothing else of it.
    let anonymous = gateway.anonymous();
    for path in ["images/generations", "images/edits", "tasks/batch"] {
        let body = json!("rubbish");
        let reply = anonymous.post(&format!("/v1/{path}"), &body).await;
        reply.rejected(401, "");
    }
    let reply = anonymous.upload("a.png", "image/png", b"x").await;
    let error = json!({ "type": "authentication_error", "message": "<string>" });
    assert_shape(&reply.expect(401).json(), json!({ "error": error }));
    gateway.close().await;
}

async fn revoked_and_expired_keys_are_rejected(backend: Backend) {
    let gateway = priced(backend, 1.25).start().await;
    gateway.user("owner", &[]).await;
    let revoked = gateway.key("owner", &[]).await;
    let stays = gateway.key("owner", &[]).await;
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_millis(2500);
    let soon = soon.to_string();
    let expires = gateway.key("owner", &["--expires", &soon]).await;
    let expired = ["--expires", "2020-01-01T00:00:00Z"];
    let expired = gateway.key("owner", &expired).await;
    for client in [&revoked, &stays, &expires] {
        client.get("/v1/models").await.expect(200);
    }
    expired.get("/v1/models").await.rejected(401, "");

    let record = gateway.cli_json(&["key", "revoke", &revoked.key_id]).await;
    assert_eq!(record["revoked"], true);
    let rejection = async |client: &Client| {
        until("a key to be rejected", async || {
            let reply = client.get("/v1/models").await;
            (reply.status != 200).then_some(reply)
        })
        .await
    };
    rejection(&revoked).await.rejected(401, "");
    rejection(&expires).await.rejected(401, "");
    let body = revoked.get("/balance").await.expect(401).json();
    let message = "token info lookup failure: this API key was revoked";
    assert_eq!(body["message"], message);
    stays.get("/v1/models").await.expect(200);

    // Tasks that were accepted before are generated and charged all the same.
    stays.submit(&image("[[sandbox:delay=1500]]")).await;
    gateway.cli_json(&["user", "disable", "owner"]).await;
    rejection(&stays).await.rejected(403, "");
    for path in BALANCES {
        let body = stays.get(path).await.expect(403).json();
        assert_eq!(body["success"], false, "{body}");
    }
    gateway.idle().await;
    let users = gateway.cli_json(&["user", "list"]).await;
    assert_eq!(users[0]["used"], 1.25, "{users}");
    gateway.close().await;
}

fn balances(remain: f64, used: f64, unlimited: bool) -> Value {
    json!({ "success": true, "remain_balance": remain, "used_balance": used, "unlimited_quota": unlimited })
}

async fn balances_are_returned(backend: Backend) {
    let gateway = priced(backend, 1.25).start().await;
    let free = gateway.user_client("rich", &[]).await;
    let limited = gateway.key("rich", &["--quota", "3"]).await;
    let poor = gateway.user_client("poor", &["--balance", "10.5"]).await;
    for client in [&free, &limited, &poor] {
        client.generate(&image("a mill")).await;
    }
    let unlimited = balances(-1.0, 2.5, true);
    for (client, of_key, of_user) in [
        (&free, balances(-1.0, 1.25, true), &unlimited),
        (&limited, balances(1.75, 1.25, false), &unlimited),
        (
            &poor,
            balances(-1.0, 1.25, true),
            &balances(9.25, 1.25, false),
        ),
    ] {
        for (path, expected) in BALANCES.iter().zip([&of_key, &of_key, of_user, of_user]) {
            let reply = client.get(path).await.expect(200);
            assert_eq!(reply.json(), *expected, "{path}");
            assert_eq!(reply.header("access-control-allow-origin"), "*", "{path}");
        }
    }
    // A browser sends a preflight without a key; pages may also read errors.
    let anonymous = gateway.anonymous();
    for path in BALANCES {
        let headers = [
            ("origin", "https://shop.example"),
            ("access-control-request-method", "GET"),
            ("access-control-request-headers", "authorization"),
        ];
        let reply = anonymous.send_with("OPTIONS", path, &headers, "").await;
        assert!([200, 204].contains(&reply.status), "{path}");
        for (name, value) in [
            ("origin", "*"),
            ("methods", "GET"),
            ("headers", "authorization"),
        ] {
            let allowed = reply.header(&format!("access-control-allow-{name}"));
            assert!(allowed.contains(value), "{path} {name}: {allowed}");
        }
        let reply = anonymous.get(path).await.expect(401);
        assert_eq!(reply.header("access-control-allow-origin"), "*");
    }
    // A credit is available at once.
    for (arguments, left) in [(&["0.75", "--note", "a gift"][..], 10.0), (&["-4"], 6.0)] {
        let command = [&["user", "credit", "poor"], arguments].concat();
        gateway.cli_json(&command).await;
        let record = poor.get_json("/v1/user/balance").await;
        assert_eq!(record, balances(left, 1.25, false));
    }
    gateway.close().await;
}

async fn quotas_of_keys_and_balances_of_users_are_separate(backend: Backend) {
    let gateway = priced(backend, 1.0).start().await;
    let open = gateway.funded_client("3").await;
    let small = gateway.key("account", &["--quota", "1"]).await;
    gateway.user("broke", &["--balance", "0"]).await;
    let broke = gateway.key("broke", &["--unlimited"]).await;
    let mill = image("a mill");

    let held = small.submit(&image("[[sandbox:hang]]")).await;
    // A held amount is not available, but it is not used either.
    assert_eq!(small.key_balances().await, (0.0, 0.0));
    assert_eq!(small.balances().await, (2.0, 0.0));
    small.post_image(&mill).await.rejected(402, "quota");
    small.cancel(&held).await.expect(200);
    assert_eq!(small.key_balances().await, (1.0, 0.0));
    small.generate(&mill).await;
    assert_eq!(small.key_balances().await, (0.0, 1.0));
    small.post_image(&mill).await.rejected(402, "");
    open.generate(&mill).await;
    open.generate(&mill).await;
    open.post_image(&mill).await.rejected(402, "balance");
    assert_eq!(open.balances().await, (0.0, 3.0));
    broke.post_image(&mill).await.rejected(402, "");
    // A request that costs nothing needs no balance.
    let free = json!({ "model": "wan2.7-image", "prompt": "x", "size": "768x768" });
    broke.generate(&free).await;
    gateway.close().await;
}

async fn the_balance_of_a_disabled_user_has_its_own_error_body(backend: Backend) {
    let gateway = TestGateway::start(backend).await;
    let client = gateway.user_client("gone", &[]).await;
    client.key_balances().await;
    assert_eq!(gateway.cli(&["user", "disable", "gone"]).await.code, 0);
    let disabled = async || client.get("/v1/balance").await.status == 403;
    until_true("the user to be disabled", disabled).await;
    for path in ["/v1/balance", "/user/balance"] {
        let body = client.get(path).await.expect(403).json();
        assert_eq!(body["success"], false, "{body}");
        assert!(
            body["message"].as_str().unwrap().contains("disabled"),
            "{body}"
        );
        assert_eq!(body.as_object().unwrap().len(), 2, "{body}");
    }
    gateway.close().await;
}
