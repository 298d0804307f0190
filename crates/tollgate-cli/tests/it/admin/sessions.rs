//! Sign-in, sessions, cross-site requests, throttling, and the commands that create admins and tokens.

use serde_json::{Value, json};

use super::{gateway, send};
use crate::harness::*;

on_both!(
    admins_sign_in_with_links_and_passwords,
    failed_sign_ins_are_throttled
);
on_sqlite!(commands_create_admins_and_tokens_and_record_audit_events);

const CONSOLE: (&str, &str) = ("x-tollgate-console", "1");

/// A browser page of the gateway: its origin, and a cookie if it has one.
struct Page {
    client: Client,
    origin: String,
    cookie: String,
}

impl Page {
    fn new(gateway: &TestGateway) -> Self {
        Self {
            client: gateway.anonymous(),
            origin: format!("http://{}", gateway.address()),
            cookie: String::new(),
        }
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Reply {
        let headers = [CONSOLE, ("origin", &self.origin), ("cookie", &self.cookie)];
        send(&self.client, method, path, &headers, body).await
    }

    /// Signs in; keeps the cookie.
    async fn sign_in(&mut self, body: &Value) -> Reply {
        let reply = self.send("POST", "/session", body).await;
        if reply.status == 201 {
            let cookie = reply.header("set-cookie");
            for part in ["tollgate_session=", "HttpOnly", "SameSite=Strict", "Path=/"] {
                assert!(cookie.contains(part), "{cookie}");
            }
            cookie
                .split(';')
                .next()
                .unwrap()
                .clone_into(&mut self.cookie);
        }
        reply
    }
}

fn code(link: &str) -> &str {
    link.split_once("/console/setup#code=")
        .expect(link)
        .1
        .trim()
}

fn check_error(reply: &Reply, status: u16, code: &str) {
    let body = reply.clone().expect(status).json();
    assert_eq!(body["error"]["code"], code, "{body}");
}

async fn admins_sign_in_with_links_and_passwords(backend: Backend) {
    let (gateway, owner) = gateway(backend).await;
    let log = gateway.log();
    let link = log
        .lines()
        .find(|line| line.starts_with("first sign-in: "))
        .expect("a link");
    let first = json!({ "code": code(link), "name": "ann", "password": "a long password" });
    let mut ann = Page::new(&gateway);
    // A request with a short password, without a name, or from another address does not use the link up.
    let short = json!({ "code": code(link), "name": "ann", "password": "short" });
    check_error(&ann.sign_in(&short).await, 400, "invalid");
    let nameless = json!({ "code": code(link), "password": "a long password" });
    check_error(&ann.sign_in(&nameless).await, 400, "invalid");
    let reserved = json!({ "code": code(link), "name": "owner", "password": "a long password" });
    check_error(&ann.sign_in(&reserved).await, 400, "invalid");
    let forwarded = [
        CONSOLE,
        ("origin", &ann.origin),
        ("x-forwarded-for", "8.8.8.8"),
    ];
    let reply = send(&ann.client, "POST", "/session", &forwarded, &first).await;
    check_error(&reply, 401, "bad_credentials");
    let me = ann.sign_in(&first).await.expect(201).json();
    assert_has(
        &me,
        json!({ "kind": "session", "name": "ann", "role": "owner", "fresh_until": "<string>" }),
    );
    check_error(
        &Page::new(&gateway).sign_in(&first).await,
        401,
        "bad_credentials",
    );

    // Requests with a cookie must come from the gateway's own pages.
    let user = json!({ "name": "bob" });
    let cookie = ("cookie", ann.cookie.as_str());
    let own = ("origin", ann.origin.as_str());
    for headers in [
        vec![cookie],
        vec![cookie, own],
        vec![cookie, CONSOLE],
        vec![cookie, CONSOLE, ("origin", "http://evil.example")],
        vec![
            cookie,
            CONSOLE,
            ("origin", "null"),
            ("sec-fetch-site", "same-origin"),
        ],
        vec![cookie, CONSOLE, ("sec-fetch-site", "same-site")],
    ] {
        let reply = send(&ann.client, "POST", "/users", &headers, &user).await;
        check_error(&reply, 403, "csrf");
    }
    let headers = [cookie, CONSOLE, ("sec-fetch-site", "same-origin")];
    let created = send(&ann.client, "POST", "/users", &headers, &user).await;
    let bob = created.expect(201).json()["id"]
        .as_str()
        .unwrap()
        .to_owned();
    send(&ann.client, "GET", "/users", &[cookie], &Value::Null)
        .await
        .expect(200);
    check_error(
        &send(&ann.client, "POST", "/session", &[], &first).await,
        403,
        "csrf",
    );

    // Requests that move money need a password that was entered recently.
    let credit = json!({ "amount": "1", "reason": "test" });
    let path = format!("/users/{bob}/credits");
    let post = async |page: &Page, key: &str| {
        let headers = [
            CONSOLE,
            ("origin", page.origin.as_str()),
            ("cookie", page.cookie.as_str()),
            ("idempotency-key", key),
        ];
        send(&page.client, "POST", &path, &headers, &credit).await
    };
    post(&ann, "a").await.expect(201);
    gateway
        .execute("UPDATE admin_sessions SET fresh_until = 0")
        .await;
    check_error(&post(&ann, "b").await, 403, "fresh_auth_required");
    // So do requests that grant a scope for money or secrets. Disabling an owner does not.
    let boss = json!({ "name": "boss", "role": "owner" });
    for (path, body) in [
        (
            "/tokens",
            json!({ "name": "x", "scopes": ["users:read", "money:write"] }),
        ),
        (
            "/tokens",
            json!({ "name": "x", "scopes": ["secrets:write"] }),
        ),
        ("/admins", boss.clone()),
        ("/admins", json!({ "name": "x", "role": "finance" })),
    ] {
        let reply = ann.send("POST", path, &body).await;
        check_error(&reply, 403, "fresh_auth_required");
    }
    let plain = json!({ "name": "x", "scopes": ["users:read"] });
    ann.send("POST", "/tokens", &plain).await.expect(201);
    let boss = send(&owner, "POST", "/admins", &[], &boss).await;
    let path_of_boss = format!(
        "/admins/{}",
        boss.expect(201).json()["id"].as_str().unwrap()
    );
    let headers = [cookie, CONSOLE, own, ("if-match", "\"1\"")];
    let disable = json!({ "disabled": true });
    let disabled = send(&ann.client, "PATCH", &path_of_boss, &headers, &disable).await;
    disabled.expect(200);
    let invalid_login = json!({ "password": "another password" });
    check_error(
        &ann.send("POST", "/session/fresh", &invalid_login).await,
        401,
        "bad_credentials",
    );
    let right = json!({ "password": "a long password" });
    ann.send("POST", "/session/fresh", &right).await.expect(200);
    post(&ann, "b").await.expect(201);

    // A second admin signs in with the owner's link; deleting it ends its session.
    let new = json!({ "name": "vic", "role": "viewer" });
    let vic = send(&owner, "POST", "/admins", &[], &new)
        .await
        .expect(201)
        .json();
    let mut page = Page::new(&gateway);
    let set = json!({ "code": code(vic["link"].as_str().unwrap()), "password": "viewer password" });
    page.sign_in(&set).await.expect(201);
    let before = page.cookie.clone();
    let again = json!({ "name": "vic", "password": "viewer password" });
    page.sign_in(&again).await.expect(201);
    assert_ne!(page.cookie, before);
    let sessions = page
        .send("GET", "/sessions", &Value::Null)
        .await
        .expect(200)
        .json();
    let current: Vec<&Value> = sessions["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|s| &s["current"])
        .collect();
    assert_eq!(current.len(), 2, "{sessions}");
    assert_eq!(
        current.iter().filter(|c| ***c == true).count(),
        1,
        "{sessions}"
    );
    check_error(
        &page.send("POST", "/users", &user).await,
        403,
        "missing_scope",
    );
    let path = format!("/admins/{}", vic["id"].as_str().unwrap());
    send(
        &owner,
        "DELETE",
        &path,
        &[("if-match", "\"1\"")],
        &Value::Null,
    )
    .await
    .expect(204);
    check_error(
        &page.send("GET", "/me", &Value::Null).await,
        401,
        "unauthorized",
    );
    ann.send("DELETE", "/session", &Value::Null)
        .await
        .expect(204);
    check_error(
        &ann.send("GET", "/me", &Value::Null).await,
        401,
        "unauthorized",
    );
    gateway.close().await;
}

async fn failed_sign_ins_are_throttled(backend: Backend) {
    let (gateway, owner) = gateway(backend).await;
    let new = json!({ "name": "ann", "role": "viewer" });
    let link = send(&owner, "POST", "/admins", &[], &new)
        .await
        .expect(201)
        .json();
    let mut page = Page::new(&gateway);
    let set =
        json!({ "code": code(link["link"].as_str().unwrap()), "password": "a long password" });
    page.sign_in(&set).await.expect(201);
    let attempt = |name: &str, password: &str| json!({ "name": name, "password": password });
    for name in ["ann", "nobody"] {
        for _ in 0..5 {
            let reply = page.sign_in(&attempt(name, "wrong")).await;
            check_error(&reply, 401, "bad_credentials");
        }
        let reply = page.sign_in(&attempt(name, "a long password")).await;
        check_error(&reply, 429, "throttled");
        assert!(reply.header("retry-after").parse::<u32>().unwrap() <= 901);
    }
    // Attempts from one address are throttled, whatever names they have.
    for n in 0..10 {
        let reply = page.sign_in(&attempt(&format!("name-{n}"), "wrong")).await;
        check_error(&reply, 401, "bad_credentials");
    }
    let headers = [
        CONSOLE,
        ("origin", page.origin.as_str()),
        ("x-forwarded-for", "9.9.9.9"),
    ];
    let reply = send(
        &page.client,
        "POST",
        "/session",
        &headers,
        &attempt("new", "wrong"),
    )
    .await;
    check_error(&reply, 429, "throttled");
    gateway.close().await;
}

async fn commands_create_admins_and_tokens_and_record_audit_events(backend: Backend) {
    let (gateway, owner) = gateway(backend).await;
    let admin = gateway
        .cli_json(&["admin", "create", "ann", "--role", "viewer"])
        .await;
    assert_has(
        &admin,
        json!({ "name": "ann", "role": "viewer", "link": "<string>" }),
    );
    let set =
        json!({ "code": code(admin["link"].as_str().unwrap()), "password": "a long password" });
    let mut page = Page::new(&gateway);
    page.sign_in(&set).await.expect(201);
    gateway
        .cli(&["admin", "create", "ann", "--role", "viewer"])
        .await
        .check_failure("there is an admin \"ann\" already");
    for command in [
        ["admin", "create", "owner", "--role", "viewer"],
        ["token", "create", "cli", "--scopes", "users:read"],
    ] {
        let failed = gateway.cli(&command).await;
        failed.check_failure("the name must not be cli, oidc, owner or begin with user:");
    }
    gateway.cli_json(&["admin", "disable", "ann"]).await;
    check_error(
        &page.send("GET", "/me", &Value::Null).await,
        401,
        "unauthorized",
    );
    let listed = gateway.cli_json(&["admin", "list"]).await;
    assert_has(&listed, json!([{ "name": "ann", "disabled": true }]));

    let token = ["token", "create", "ci", "--scopes", "users:read,keys:read"];
    let token = gateway.cli_json(&token).await;
    let bearer = gateway.client(token["secret"].as_str().map(str::to_owned), String::new());
    send(&bearer, "GET", "/users", &[], &Value::Null)
        .await
        .expect(200);
    gateway
        .cli(&["token", "create", "ci", "--scopes", "all"])
        .await
        .check_failure("\"all\" is not a scope");
    gateway
        .cli_json(&["token", "revoke", token["id"].as_str().unwrap()])
        .await;
    check_error(
        &send(&bearer, "GET", "/users", &[], &Value::Null).await,
        401,
        "unauthorized",
    );
    assert_eq!(gateway.cli_json(&["token", "list"]).await, json!([]));

    let client = gateway.funded_client("5").await;
    gateway
        .cli_json(&["user", "credit", "account", "2", "--note", "gift"])
        .await;
    gateway.cli_json(&["key", "revoke", &client.key_id]).await;
    gateway.cli_json(&["user", "disable", "account"]).await;
    let events = send(&owner, "GET", "/events?actor=cli", &[], &Value::Null)
        .await
        .expect(200)
        .json();
    let actions: Vec<&str> = events["data"]
        .as_array()
        .unwrap()
        .iter()
        .rev()
        .map(|e| e["action"].as_str().unwrap())
        .collect();
    let expected = [
        "admin.create",
        "admin.update",
        "token.create",
        "token.delete",
        "user.create",
        "key.create",
        "user.credit",
        "key.revoke",
        "user.update",
    ];
    assert_eq!(actions, expected);
    gateway.close().await;
}
