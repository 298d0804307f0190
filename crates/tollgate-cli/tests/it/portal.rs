//! The portal's API: a user who is signed in with an API key reads only the own data, and can give new keys no more than the own key has.

use serde_json::{Value, json};

use crate::harness::*;

on_both!(
    a_key_can_read_its_user_and_history_without_operator_fields,
    a_session_starts_with_a_key_and_ends_with_its_revocation,
    new_keys_do_not_exceed_the_limits_of_their_parent,
    the_quota_of_a_key_is_subtracted_from_its_parents,
    a_key_with_a_hard_budget_neither_creates_keys_nor_changes_others,
    keys_with_limits_change_only_themselves_and_their_children,
    records_of_another_user_are_not_visible,
);
on_sqlite!(
    a_rotation_ends_the_other_sessions_of_its_key,
    failed_sign_ins_are_throttled,
    the_portal_page_is_served,
);

const OWNER: &str = "the-owner-of-this-gateway";
const PRICES: &str = r#"
[price."gpt-image-2-official"]
per_image = 0.4
[price."gpt-5"]
input_per_million = 100
output_per_million = 1000
"#;

async fn gateway(backend: Backend) -> (TestGateway, Client, Client) {
    let setup = Setup::new(backend).config(PRICES).admin_key(OWNER);
    let gateway = setup.start().await;
    let owner = gateway.client(Some(OWNER.to_owned()), String::new());
    let client = gateway.funded_client("10").await;
    (gateway, owner, client)
}

async fn send(client: &Client, method: &str, path: &str, body: &Value) -> Reply {
    let headers = [("content-type", "application/json")];
    let text = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    client
        .send_with(method, &format!("/v1/me{path}"), &headers, text)
        .await
}

fn image(prompt: &str) -> Value {
    json!({ "model": "gpt-image-2-official", "prompt": prompt })
}

fn chat() -> Value {
    json!({ "model": "gpt-5", "max_tokens": 20, "messages": [{ "role": "user", "content": "Hello" }] })
}

/// Creates a key with these members. Returns its client.
async fn create_key(gateway: &TestGateway, client: &Client, members: &Value) -> Client {
    let created = send(client, "POST", "/keys", members).await.expect(201);
    let created = created.json();
    let secret = created["secret"].as_str().unwrap().to_owned();
    gateway.client(Some(secret), created["id"].as_str().unwrap().to_owned())
}

async fn a_key_can_read_its_user_and_history_without_operator_fields(backend: Backend) {
    let (gateway, owner, client) = gateway(backend).await;
    let task = task_id(&client.generate(&image("a mill")).await);
    client
        .post("/v1/chat/completions", &chat())
        .await
        .expect(200);
    let me = client.get_json("/v1/me").await;
    assert_has(
        &me,
        json!({ "user": { "balance": "<string>", "held": "0" }, "key": { "id": client.key_id, "quota": null } }),
    );
    let budget = json!({ "key_id": client.key_id, "amount": "9", "period": "day", "mode": "soft" });
    let headers = [("content-type", "application/json")];
    let created = owner.send_with("POST", "/admin/v1/budgets", &headers, budget.to_string());
    created.await.expect(201);
    for (path, expected) in [
        ("/entries?limit=1", json!([{ "balance_after": "<string>" }])),
        (
            "/usage?group_by=model&metric=cost",
            json!([{ "model": "gpt-5" }, { "model": "gpt-image-2-official", "cost": "0.4" }]),
        ),
        (
            "/tasks?state=completed",
            json!([{ "id": task, "cost": "0.4" }]),
        ),
        ("/chats", json!([{ "outcome": "done", "model": "gpt-5" }])),
        ("/keys", json!([{ "id": client.key_id }])),
        (
            "/budgets",
            json!([{ "key_id": client.key_id, "amount": "9" }]),
        ),
    ] {
        let list = client.get_json(&format!("/v1/me{path}")).await;
        assert_has(&list, json!({ "data": expected }));
    }
    let detail = client.get_json(&format!("/v1/me/tasks/{task}")).await;
    assert_has(
        &detail,
        json!({ "id": task, "files": [{ "type": "image/png" }], "charge": { "settled": "0.4" }, "record": { "status": "completed" } }),
    );
    let tasks = client.get_json("/v1/me/tasks").await;
    let chats = client.get_json("/v1/me/chats").await;
    for object in [&detail, &tasks["data"][0], &chats["data"][0]] {
        for hidden in ["channel", "attempts", "provider_job_id", "timeline"] {
            assert!(object.get(hidden).is_none(), "{hidden} in {object}");
        }
    }
    let csv = [("accept", "text/csv")];
    let csv = client
        .send_with("GET", "/v1/me/tasks", &csv, "")
        .await
        .expect(200);
    assert!(
        csv.text()
            .starts_with("id,kind,model,state,user_id,key_id,error_code,held,")
    );
    let models = client.get_json("/v1/me/models?limit=200").await;
    let models = models["data"].as_array().unwrap();
    let one = models
        .iter()
        .find(|model| model["id"] == "gpt-image-2-official");
    assert_has(
        one.unwrap(),
        json!({ "kind": "image", "schema": { "properties": {} } }),
    );
    let limited = create_key(&gateway, &client, &json!({ "models": ["gpt-5"] })).await;
    let models = limited.get_json("/v1/me/models").await;
    assert_has(
        &models,
        json!({ "data": [{ "id": "gpt-5", "kind": "chat" }] }),
    );
    // Errors have the client API's envelope.
    for (path, status, expected) in [
        ("/tasks?channel=main", 400, "`channel`"),
        ("/usage?group_by=channel", 400, "`group_by`"),
        ("/tasks?limit=0", 400, "`limit`"),
        ("/tasks/task_0", 404, "no such task"),
    ] {
        let reply = client.get(&format!("/v1/me{path}")).await;
        assert_eq!(reply.status, status, "{path}");
        let error = reply.json()["error"].clone();
        assert_eq!(error["code"], status, "{error}");
        assert!(
            error["message"].as_str().unwrap().contains(expected),
            "{error}"
        );
    }
    assert_eq!(gateway.anonymous().get("/v1/me").await.status, 401);
    assert_eq!(owner.get("/v1/me").await.status, 401);
    assert_eq!(client.get("/admin/v1/me").await.status, 401);
    gateway.close().await;
}

/// The headers that a browser sends with a request of the gateway's own page.
fn own_page(gateway: &TestGateway) -> Vec<(String, String)> {
    vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("x-tollgate-console".to_owned(), "1".to_owned()),
        (
            "origin".to_owned(),
            gateway.anonymous().url("").trim_end_matches('/').to_owned(),
        ),
    ]
}

async fn browse(
    gateway: &TestGateway,
    method: &str,
    path: &str,
    cookie: &str,
    body: &Value,
) -> Reply {
    let mut headers = own_page(gateway);
    headers.push(("cookie".to_owned(), cookie.to_owned()));
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(n, v)| (n.as_str(), v.as_str()))
        .collect();
    let text = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    gateway
        .anonymous()
        .send_with(method, &format!("/v1/me{path}"), &headers, text)
        .await
}

async fn a_session_starts_with_a_key_and_ends_with_its_revocation(backend: Backend) {
    let (gateway, owner, client) = gateway(backend).await;
    let secret = client.secret.clone().unwrap();
    let body = json!({ "api_key": secret });
    // Requests of another page are rejected.
    let headers = [
        ("content-type", "application/json"),
        ("origin", "http://evil.example"),
        ("x-tollgate-console", "1"),
    ];
    let foreign = gateway.anonymous();
    let foreign = foreign.send_with("POST", "/v1/me/session", &headers, body.to_string());
    assert_eq!(foreign.await.status, 403);
    let invalid_login = browse(
        &gateway,
        "POST",
        "/session",
        "",
        &json!({ "api_key": "sk-invalid" }),
    )
    .await;
    assert_eq!(invalid_login.status, 401);
    let unknown = browse(&gateway, "POST", "/session", "", &json!({ "key": secret })).await;
    assert_eq!(unknown.status, 400);
    let signed_in = browse(&gateway, "POST", "/session", "", &body)
        .await
        .expect(201);
    assert_has(&signed_in.json(), json!({ "key": { "id": client.key_id } }));
    let cookie = signed_in.header("set-cookie").to_owned();
    assert!(
        cookie.starts_with("tollgate_portal=") && cookie.contains("; HttpOnly; SameSite=Strict"),
        "{cookie}"
    );
    assert!(!cookie.contains(&secret));
    let cookie = cookie.split(';').next().unwrap();
    browse(&gateway, "GET", "/tasks", cookie, &Value::Null)
        .await
        .expect(200);
    // With the cookie a client can submit nothing and cannot use the admin API; writes must come from the gateway's own page.
    let headers = [("cookie", cookie), ("content-type", "application/json")];
    let anonymous = gateway.anonymous();
    let spent = anonymous.send_with("POST", "/v1/chat/completions", &headers, chat().to_string());
    assert_eq!(spent.await.status, 401);
    assert_eq!(
        anonymous
            .send_with("GET", "/admin/v1/me", &headers, "")
            .await
            .status,
        401
    );
    let created = anonymous.send_with("POST", "/v1/me/keys", &headers, "{}".to_owned());
    assert_eq!(created.await.status, 403);
    browse(
        &gateway,
        "POST",
        "/keys",
        cookie,
        &json!({ "name": "laptop" }),
    )
    .await
    .expect(201);
    browse(&gateway, "DELETE", "/session", cookie, &Value::Null)
        .await
        .expect(204);
    assert_eq!(
        browse(&gateway, "GET", "", cookie, &Value::Null)
            .await
            .status,
        401
    );

    let signed_in = browse(&gateway, "POST", "/session", "", &body)
        .await
        .expect(201);
    let cookie = signed_in
        .header("set-cookie")
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let revoke = format!("/keys/{}/revoke", client.key_id);
    browse(&gateway, "POST", &revoke, &cookie, &Value::Null)
        .await
        .expect(200);
    assert_eq!(
        browse(&gateway, "GET", "", &cookie, &Value::Null)
            .await
            .status,
        401
    );
    let events = owner.get_json("/admin/v1/events").await;
    let actions: Vec<_> = events["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|e| e["action"].clone())
        .collect();
    assert_eq!(
        actions[..5],
        [
            "key.revoke",
            "session.sign_in",
            "session.sign_out",
            "key.create",
            "session.sign_in"
        ]
    );
    let actor = events["data"][0]["actor"].as_str().unwrap();
    assert!(actor.starts_with("user:user_"), "{actor}");
    assert!(!events.to_string().contains(&secret));
    gateway.close().await;
}

async fn a_rotation_ends_the_other_sessions_of_its_key(backend: Backend) {
    let (gateway, _, client) = gateway(backend).await;
    let body = json!({ "api_key": client.secret.clone().unwrap() });
    let begin = async || {
        let signed_in = browse(&gateway, "POST", "/session", "", &body).await;
        let signed_in = signed_in.expect(201);
        let cookie = signed_in.header("set-cookie").split(';').next();
        cookie.unwrap().to_owned()
    };
    let (own, stolen) = (begin().await, begin().await);
    let rotate = format!("/keys/{}/rotate", client.key_id);
    let overlap = json!({ "overlap_s": 0 });
    let rotated = browse(&gateway, "POST", &rotate, &own, &overlap).await;
    rotated.expect(200);
    for (cookie, status) in [(&own, 200), (&stolen, 401)] {
        let reply = browse(&gateway, "GET", "", cookie, &Value::Null).await;
        assert_eq!(reply.status, status);
    }
    gateway.close().await;
}

async fn new_keys_do_not_exceed_the_limits_of_their_parent(backend: Backend) {
    let (gateway, _, client) = gateway(backend).await;
    let limits = json!({ "name": "limited", "rpm": 50, "max_concurrency": 4, "models": ["gpt-5"], "expires_at": "2100-01-01T00:00:00Z" });
    let limited = create_key(&gateway, &client, &limits).await;
    for (member, value) in [
        ("rpm", json!(51)),
        ("max_concurrency", json!(5)),
        ("models", json!(["gpt-5", "o3"])),
        ("expires_at", json!("2100-01-01T00:00:01Z")),
        ("user_id", json!("user_x")),
        ("balance", json!(1)),
    ] {
        let reply = send(&limited, "POST", "/keys", &json!({ member: value })).await;
        let message = reply.expect(400).json()["error"]["message"].to_string();
        assert!(message.contains(member), "{message}");
    }
    let child = send(&limited, "POST", "/keys", &json!({ "rpm": 5, "tpm": 9 })).await;
    assert_has(
        &child.expect(201).json(),
        json!({ "rpm": 5, "tpm": 9, "max_concurrency": 4, "models": ["gpt-5"], "expires_at": "2100-01-01T00:00:00.000Z", "quota": null }),
    );
    gateway.close().await;
}

async fn the_quota_of_a_key_is_subtracted_from_its_parents(backend: Backend) {
    let (gateway, _, client) = gateway(backend).await;
    let parent = create_key(&gateway, &client, &json!({ "quota": "1" })).await;
    parent.generate(&image("a mill")).await;
    let missing = send(&parent, "POST", "/keys", &json!({ "name": "x" })).await;
    assert!(missing.expect(400).text().contains("`quota`"));
    let too_much = send(&parent, "POST", "/keys", &json!({ "quota": "0.61" })).await;
    assert!(too_much.expect(400).text().contains("at most 0.6"));
    let child = create_key(&gateway, &parent, &json!({ "quota": "0.5" })).await;
    let me = parent.get_json("/v1/me").await;
    assert_has(
        &me["key"],
        json!({ "quota": "0.5", "used": "0.4", "version": 2 }),
    );
    parent
        .post("/v1/images/generations", &image("a hill"))
        .await
        .expect(402);
    child.generate(&image("a hill")).await;
    // Concurrent requests cannot take more than the available amount.
    let rest = create_key(&gateway, &client, &json!({ "quota": "1" })).await;
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let rest = rest.clone();
        running.spawn(async move {
            send(&rest, "POST", "/keys", &json!({ "quota": "0.15" }))
                .await
                .status
        });
    }
    let created = running.join_all().await;
    assert_eq!(
        created.iter().filter(|status| **status == 201).count(),
        6,
        "{created:?}"
    );
    gateway.close().await;
}

async fn keys_with_limits_change_only_themselves_and_their_children(backend: Backend) {
    let (gateway, owner, client) = gateway(backend).await;
    let limited = create_key(&gateway, &client, &json!({ "models": ["gpt-5"] })).await;
    let child = create_key(&gateway, &limited, &json!({})).await;
    let change = async |who: &Client, which: &Client, what: &str| {
        send(
            who,
            "POST",
            &format!("/keys/{}/{what}", which.key_id),
            &json!({}),
        )
        .await
    };
    for what in ["rotate", "revoke"] {
        let reply = change(&limited, &client, what).await.expect(403);
        assert_eq!(reply.json()["error"]["type"], "permission_error");
        assert_eq!(change(&child, &limited, what).await.status, 403);
    }
    let rotated = change(&limited, &child, "rotate").await.expect(200).json();
    assert_ne!(rotated["secret"], json!(child.secret));
    // The parent does not gain what an operator gives to its child.
    let version = format!("\"{}\"", rotated["version"]);
    let headers = [
        ("content-type", "application/json"),
        ("if-match", version.as_str()),
    ];
    let path = format!("/admin/v1/keys/{}", child.key_id);
    let raised = owner.send_with("PATCH", &path, &headers, "{\"models\":null}");
    raised.await.expect(200);
    change(&limited, &child, "rotate").await.expect(403);
    change(&limited, &child, "revoke").await.expect(200);
    change(&limited, &limited, "rotate").await.expect(200);
    change(&client, &limited, "revoke").await.expect(200);
    let unknown = send(&client, "POST", "/keys/key_0/revoke", &json!({})).await;
    assert_eq!(unknown.status, 404);
    gateway.close().await;
}

async fn a_key_with_a_hard_budget_neither_creates_keys_nor_changes_others(backend: Backend) {
    let (gateway, owner, client) = gateway(backend).await;
    let budgeted = create_key(&gateway, &client, &json!({})).await;
    let other = create_key(&gateway, &client, &json!({})).await;
    let rotate = format!("/keys/{}/rotate", other.key_id);
    let headers = [("content-type", "application/json")];
    let mut budget =
        json!({ "key_id": budgeted.key_id, "amount": "1", "period": "day", "mode": "soft" });
    let create = async |budget: &Value| {
        let body = budget.to_string();
        let created = owner.send_with("POST", "/admin/v1/budgets", &headers, body);
        created.await.expect(201);
    };
    create(&budget).await;
    for path in ["/keys", rotate.as_str()] {
        let reply = send(&budgeted, "POST", path, &json!({})).await;
        assert!(
            matches!(reply.status, 200 | 201),
            "a soft budget: {}",
            reply.text()
        );
    }
    budget["mode"] = json!("hard");
    create(&budget).await;
    for path in ["/keys", rotate.as_str()] {
        let reply = send(&budgeted, "POST", path, &json!({})).await.expect(403);
        assert_eq!(reply.json()["error"]["type"], "permission_error", "{path}");
    }
    let own = format!("/keys/{}/rotate", budgeted.key_id);
    send(&budgeted, "POST", &own, &json!({})).await.expect(200);
    gateway.close().await;
}

async fn records_of_another_user_are_not_visible(backend: Backend) {
    let (gateway, _, ann) = gateway(backend).await;
    let bob = gateway.unlimited_client().await;
    let task = task_id(&ann.generate(&image("a mill")).await);
    ann.post("/v1/chat/completions", &chat()).await.expect(200);
    assert_eq!(bob.get(&format!("/v1/me/tasks/{task}")).await.status, 404);
    for path in ["/tasks", "/chats", "/usage?group_by=model"] {
        assert_eq!(
            bob.get_json(&format!("/v1/me{path}")).await["data"],
            json!([]),
            "{path}"
        );
    }
    for path in ["/keys", "/entries"] {
        let text = bob.get(&format!("/v1/me{path}")).await.text();
        assert!(
            !text.contains(&ann.key_id) && !text.contains(&task),
            "{text}"
        );
    }
    for what in ["rotate", "revoke"] {
        let path = format!("/keys/{}/{what}", ann.key_id);
        assert_eq!(send(&bob, "POST", &path, &json!({})).await.status, 404);
    }
    let filtered = bob
        .get_json(&format!("/v1/me/tasks?key_id={}", ann.key_id))
        .await;
    assert_eq!(filtered["data"], json!([]));
    gateway.close().await;
}

async fn failed_sign_ins_are_throttled(backend: Backend) {
    let (gateway, _, client) = gateway(backend).await;
    let invalid_login = json!({ "api_key": "sk-invalid" });
    for _ in 0..20 {
        assert_eq!(
            browse(&gateway, "POST", "/session", "", &invalid_login)
                .await
                .status,
            401
        );
    }
    let right = json!({ "api_key": client.secret });
    let throttled = browse(&gateway, "POST", "/session", "", &right)
        .await
        .expect(429);
    assert!(throttled.header("retry-after").parse::<u32>().unwrap() > 0);
    gateway.close().await;
}

async fn the_portal_page_is_served(backend: Backend) {
    let (gateway, ..) = gateway(backend).await;
    for path in ["/portal/", "/portal/keys"] {
        let page = gateway.anonymous().get(path).await.expect(200);
        assert!(
            page.header("content-security-policy")
                .contains("default-src 'self'")
        );
        assert!(page.text().contains("<div id=\"app\">"));
    }
    let moved = gateway.anonymous().get("/portal").await.expect(303);
    assert_eq!(moved.header("location"), "/portal/");
    gateway.close().await;
}
