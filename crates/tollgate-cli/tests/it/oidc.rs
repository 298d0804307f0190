//! Sign-in by an OpenID provider: admins and users, roles by claim, and a provider that returns wrong data.

use serde_json::{Value, json};

use crate::harness::fake_oidc::{FakeOidc, Fault};
use crate::harness::*;

on_both!(
    an_admin_signs_in_with_the_role_of_a_claim,
    a_user_signs_in_to_the_portal,
    invalid_responses_of_a_provider_sign_nobody_in,
);
on_sqlite!(
    an_account_is_linked_once_to_the_user_of_its_name,
    a_session_is_fresh_again_after_reauthentication,
    a_sign_in_is_valid_once_and_only_in_the_browser_that_started_it,
    new_keys_of_the_provider_are_read,
    a_request_whose_connection_breaks_off_is_sent_again,
    invalid_sign_in_requests_are_rejected,
);

const OWNER: &str = "the-owner-of-this-gateway";
const ROLES: &str = r#"
role_claim = "groups"
roles = { admins = "owner", finance = "finance", staff = "user" }
"#;

/// A browser: it stores cookies, and sends `SameSite=Strict` ones only with requests of the gateway's own pages.
struct Browser {
    client: Client,
    cookies: Vec<(String, String)>,
}

impl Browser {
    fn new(gateway: &TestGateway) -> Self {
        Self {
            client: gateway.anonymous(),
            cookies: Vec::new(),
        }
    }

    /// Follows a link.
    async fn get(&mut self, path: &str) -> Reply {
        let cookies: Vec<String> = self
            .cookies
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        let headers = [("cookie", cookies.join("; "))];
        let headers = headers.each_ref().map(|(n, v)| (*n, v.as_str()));
        let reply = self.client.send_with("GET", path, &headers, "").await;
        for cookie in reply.headers.get_all("set-cookie") {
            let cookie = cookie.to_str().unwrap();
            assert!(
                cookie.contains("HttpOnly") && cookie.contains("Path=/"),
                "{cookie}"
            );
            let (name, rest) = cookie.split_once('=').unwrap();
            let value = rest.split(';').next().unwrap();
            self.cookies.retain(|(known, _)| known != name);
            if !cookie.contains("Max-Age=0") {
                self.cookies.push((name.to_owned(), value.to_owned()));
            }
        }
        reply
    }

    /// Signs in at the provider and returns to the gateway. Returns the path to which the gateway then redirects.
    async fn sign_in(&mut self, provider: &FakeOidc, query: &str) -> String {
        let start = self.get(&format!("/oidc/start{query}")).await.expect(303);
        let location = start.header("location").to_owned();
        if location.starts_with('/') {
            return location;
        }
        let back = provider.visit(&location);
        self.finish(&back).await
    }

    async fn finish(&mut self, back: &str) -> String {
        let reply = self.get(back).await.expect(303);
        assert_eq!(reply.header("cache-control"), "no-store");
        reply.header("location").to_owned()
    }
}

async fn gateway(backend: Backend, more: &str) -> (FakeOidc, TestGateway, Client) {
    let provider = FakeOidc::start().await;
    let setup = Setup::new(backend).config(&provider.config(more));
    let gateway = setup.admin_key(OWNER).start().await;
    let owner = gateway.client(Some(OWNER.to_owned()), String::new());
    (provider, gateway, owner)
}

/// An account with these groups.
fn account(subject: &str, name: &str, groups: Value) -> Value {
    json!({ "sub": subject, "preferred_username": name, "groups": groups })
}

fn error(word: &str) -> String {
    format!("/console/signed-in?error={word}&next=%2Fconsole%2F")
}

async fn an_admin_signs_in_with_the_role_of_a_claim(backend: Backend) {
    let (provider, gateway, owner) = gateway(backend, ROLES).await;
    let methods = owner.get_json("/admin/v1/session/methods").await;
    assert_eq!(methods, json!({ "oidc": { "label": "Single sign-on" } }));
    provider.set_account(account("1", "ann", json!(["staff", "finance", "other"])));
    let mut ann = Browser::new(&gateway);
    let next = ann.sign_in(&provider, "?next=/console/users").await;
    assert_eq!(next, "/console/users");
    let me = ann.get("/admin/v1/me").await.expect(200).json();
    assert_has(
        &me,
        json!({ "kind": "session", "name": "ann", "role": "finance" }),
    );

    // The next sign-in gives the same admin the new role.
    provider.set_account(account("1", "ann renamed", json!("admins")));
    let mut elsewhere = Browser::new(&gateway);
    assert_eq!(elsewhere.sign_in(&provider, "").await, "/console/");
    for browser in [&mut ann, &mut elsewhere] {
        let me = browser.get("/admin/v1/me").await.expect(200).json();
        assert_has(&me, json!({ "name": "ann", "role": "owner" }));
    }
    // Another account with the same name is another admin.
    provider.set_account(account("2", "ann", json!(["admins"])));
    let mut other = Browser::new(&gateway);
    assert_eq!(other.sign_in(&provider, "").await, error("name_taken"));
    other.get("/admin/v1/me").await.expect(401);

    // Without a role the sign-in is rejected, and the sessions end.
    provider.set_account(account("1", "ann", json!(["staff"])));
    assert_eq!(other.sign_in(&provider, "").await, error("no_role"));
    ann.get("/admin/v1/me").await.expect(401);
    provider.set_account(account("1", "ann", json!([{ "admins": true }])));
    assert_eq!(other.sign_in(&provider, "").await, error("no_role"));

    // A disabled admin cannot sign in again.
    provider.set_account(account("1", "ann", json!(["admins"])));
    gateway.cli_json(&["admin", "disable", "ann"]).await;
    assert_eq!(other.sign_in(&provider, "").await, error("disabled"));

    let events = owner.get_json("/admin/v1/events?limit=200").await;
    let events = events["data"].as_array().unwrap();
    let actions: Vec<&str> = events
        .iter()
        .rev()
        .map(|e| e["action"].as_str().unwrap())
        .collect();
    let expected = [
        "admin.create",
        "session.sign_in",
        "admin.update",
        "session.sign_in",
        "admin.update",
    ];
    assert_eq!(actions, expected);
    let created = events.last().unwrap();
    assert_has(
        created,
        json!({ "actor": "oidc", "after": { "name": "ann", "oidc": { "subject": "1" } } }),
    );
    gateway.close().await;
}

async fn a_user_signs_in_to_the_portal(backend: Backend) {
    let (provider, gateway, owner) = gateway(backend, ROLES).await;
    // The groups are in userinfo only, as the standard allows.
    provider.set_account(
        json!({ "sub": "7", "userinfo:preferred_username": "bob", "userinfo:groups": ["staff"] }),
    );
    let mut bob = Browser::new(&gateway);
    assert_eq!(
        bob.sign_in(&provider, "?to=portal&next=/portal/keys").await,
        "/portal/keys"
    );
    let me = bob.get("/v1/me").await.expect(200).json();
    assert_has(
        &me,
        json!({ "user": { "name": "bob", "balance": "0" }, "key": { "name": "Portal", "quota": null } }),
    );
    bob.get("/admin/v1/me").await.expect(401);
    let key = me["key"]["id"].as_str().unwrap().to_owned();

    // The next sign-in uses the same user and key; another key if that one was revoked.
    let mut again = Browser::new(&gateway);
    again.sign_in(&provider, "?to=portal").await;
    let same = again.get("/v1/me").await.expect(200).json();
    assert_eq!(
        (&same["user"]["id"], &same["key"]["id"]),
        (&me["user"]["id"], &me["key"]["id"])
    );
    gateway.cli_json(&["key", "revoke", &key]).await;
    again.get("/v1/me").await.expect(401);
    again.sign_in(&provider, "?to=portal").await;
    let renewed = again.get("/v1/me").await.expect(200).json();
    assert_eq!(renewed["user"]["id"], me["user"]["id"]);
    assert_ne!(renewed["key"]["id"], me["key"]["id"]);

    // An account whose name is taken, or without the group, gets no user; nor does an account whose user was disabled.
    let mut carl = Browser::new(&gateway);
    for (claims, word) in [
        (account("8", "bob", json!(["staff"])), "name_taken"),
        (account("8", "carl", json!(["admins"])), "no_role"),
        (account("8", "carl", json!([])), "no_role"),
        (account("8", "cli", json!(["staff"])), "rejected"),
    ] {
        provider.set_account(claims);
        let next = carl.sign_in(&provider, "?to=portal").await;
        assert_eq!(
            next,
            format!("/portal/signed-in?error={word}&next=%2Fportal%2F")
        );
    }
    provider.set_account(account("7", "bob", json!(["staff"])));
    gateway.cli_json(&["user", "disable", "bob"]).await;
    let next = carl.sign_in(&provider, "?to=portal").await;
    assert!(next.contains("error=disabled"), "{next}");
    let users = owner.get_json("/admin/v1/users").await;
    assert_has(&users, json!({ "data": [{ "name": "bob" }] }));
    gateway.close().await;
}

async fn invalid_responses_of_a_provider_sign_nobody_in(backend: Backend) {
    let (provider, gateway, _) = gateway(backend, ROLES).await;
    let claims = json!({ "sub": "1", "preferred_username": "ann", "userinfo:groups": ["admins"] });
    provider.set_account(claims);
    let mut ann = Browser::new(&gateway);
    // The first of these sign-ins reads the metadata.
    for (fault, word, logged) in [
        (Fault::ForeignMetadata, "provider_unavailable", "the issuer"),
        (
            Fault::PlainEndpoint,
            "provider_unavailable",
            "which is not https",
        ),
        (
            Fault::Denied,
            "denied",
            "the OpenID provider rejected a sign-in",
        ),
        (
            Fault::ForeignResponse,
            "rejected",
            "the response is from the issuer",
        ),
        (Fault::ForeignIssuer, "rejected", "`iss` is"),
        (Fault::ForeignAudience, "rejected", "`aud` is"),
        (Fault::ForeignNonce, "rejected", "`nonce` is not"),
        (Fault::NoSignature, "rejected", "`alg` is not allowed"),
        (
            Fault::SymmetricSignature,
            "rejected",
            "`alg` is not allowed",
        ),
        (Fault::ForeignKey, "rejected", "signature is wrong"),
        (Fault::Expired, "rejected", "has expired"),
        (Fault::NoExpiry, "rejected", "`exp` is missing"),
        (Fault::NoSubject, "rejected", "`sub` is missing"),
        (
            Fault::ForeignUserinfo,
            "rejected",
            "userinfo is of another account",
        ),
        (
            Fault::NoToken,
            "provider_unavailable",
            "missing field `id_token`",
        ),
        (Fault::ServerError, "provider_unavailable", "502"),
    ] {
        provider.set_fault(Some(fault));
        assert_eq!(ann.sign_in(&provider, "").await, error(word), "{fault:?}");
        ann.get("/admin/v1/me").await.expect(401);
        until_true(logged, async || gateway.log().contains(logged)).await;
    }
    provider.set_fault(None);
    assert_eq!(ann.sign_in(&provider, "").await, "/console/");
    let mut other = Browser::new(&gateway);
    provider.set_fault(Some(Fault::Replay));
    assert_eq!(other.sign_in(&provider, "").await, error("rejected"));
    gateway.close().await;
}

async fn an_account_is_linked_once_to_the_user_of_its_name(backend: Backend) {
    let more = "users = \"match\"\nroles = { \"*\" = \"user\" }";
    let (provider, gateway, _) = gateway(backend, more).await;
    gateway
        .cli_json(&["user", "create", "dora", "--balance", "3"])
        .await;
    let mut dora = Browser::new(&gateway);
    provider.set_account(json!({ "sub": "d", "preferred_username": "dora" }));
    assert_eq!(dora.sign_in(&provider, "?to=portal").await, "/portal/");
    let me = dora.get("/v1/me").await.expect(200).json();
    assert_has(&me, json!({ "user": { "name": "dora", "balance": "3" } }));
    for (subject, name, word) in [("e", "dora", "name_taken"), ("e", "nobody", "no_user")] {
        provider.set_account(json!({ "sub": subject, "preferred_username": name }));
        let next = dora.sign_in(&provider, "?to=portal").await;
        assert!(next.contains(&format!("error={word}")), "{next}");
    }
    // An account that has signed in before may change its name.
    provider.set_account(json!({ "sub": "d", "preferred_username": "dora married" }));
    assert_eq!(dora.sign_in(&provider, "?to=portal").await, "/portal/");
    gateway.close().await;
}

async fn a_session_is_fresh_again_after_reauthentication(backend: Backend) {
    let (provider, gateway, _) = gateway(backend, ROLES).await;
    let mut ann = Browser::new(&gateway);
    let claims = account("1", "ann", json!(["admins"]));
    provider.set_account(claims.clone());
    ann.sign_in(&provider, "").await;
    let fresh_until = async |ann: &mut Browser| {
        let me = ann.get("/admin/v1/me").await.expect(200).json();
        let until: jiff::Timestamp = me["fresh_until"].as_str().unwrap().parse().unwrap();
        until.as_second() - now()
    };
    // The provider did not report when it last requested the password.
    assert!(fresh_until(&mut ann).await <= 0);
    let cookies = ann.cookies.clone();
    let again = "?fresh=1&next=/console/signed-in";
    let failed =
        |word: &str| format!("/console/signed-in?error={word}&next=%2Fconsole%2Fsigned-in");
    assert_eq!(ann.sign_in(&provider, again).await, failed("not_fresh"));
    assert_eq!(
        (
            provider.authorize_query("prompt"),
            provider.authorize_query("max_age")
        ),
        ("login".to_owned(), "0".to_owned())
    );
    let mut old = claims.clone();
    old["auth_time"] = json!(now() - 400);
    provider.set_account(old);
    assert_eq!(ann.sign_in(&provider, again).await, failed("not_fresh"));
    let mut other = account("2", "bert", json!(["admins"]));
    other["auth_time"] = json!(now());
    provider.set_account(other);
    assert_eq!(ann.sign_in(&provider, again).await, failed("other_account"));
    assert!(fresh_until(&mut ann).await <= 0);
    let mut recent = claims;
    recent["auth_time"] = json!(now() - 10);
    provider.set_account(recent);
    assert_eq!(ann.sign_in(&provider, again).await, "/console/signed-in");
    let left = fresh_until(&mut ann).await;
    assert!((1..=290).contains(&left), "{left}");
    assert_eq!(ann.cookies, cookies, "it is the same session");

    // The admin gets the role that the account has now; without a role the sessions end.
    let mut recent = account("1", "ann", json!(["finance"]));
    recent["auth_time"] = json!(now() - 10);
    provider.set_account(recent.clone());
    assert_eq!(ann.sign_in(&provider, again).await, "/console/signed-in");
    let me = ann.get("/admin/v1/me").await.expect(200).json();
    assert_eq!(me["role"], "finance");
    recent["groups"] = json!(["staff"]);
    provider.set_account(recent);
    assert_eq!(ann.sign_in(&provider, again).await, failed("no_role"));
    ann.get("/admin/v1/me").await.expect(401);
    gateway.close().await;
}

async fn a_sign_in_is_valid_once_and_only_in_the_browser_that_started_it(backend: Backend) {
    let (provider, gateway, _) = gateway(backend, ROLES).await;
    provider.set_account(account("1", "ann", json!(["admins"])));
    let mut ann = Browser::new(&gateway);
    let start = ann.get("/oidc/start").await.expect(303);
    let cookie = start.header("set-cookie");
    assert!(cookie.contains("SameSite=Lax"), "{cookie}");
    let back = provider.visit(start.header("location"));
    // A browser that opens the callback link of another browser's sign-in is not signed in.
    let mut other_browser = Browser::new(&gateway);
    let expired = "/console/signed-in?error=expired&next=";
    assert_eq!(other_browser.finish(&back).await, expired);
    other_browser.get("/oidc/start").await.expect(303);
    assert_eq!(other_browser.finish(&back).await, error("expired"));

    let cookies = ann.cookies.clone();
    assert_eq!(ann.finish(&back).await, "/console/");
    assert_eq!(ann.finish(&back).await, expired, "the cookie is gone");
    ann.cookies = cookies;
    assert_eq!(
        ann.finish(&back).await,
        error("rejected"),
        "the code was used"
    );
    ann.get("/admin/v1/me").await.expect(401);

    // After a number of failed sign-ins, the gateway rejects further ones without a request to the provider.
    for _ in 0..30 {
        ann.sign_in(&provider, "").await;
    }
    provider.set_fault(Some(Fault::ForeignNonce));
    let mut last = String::new();
    for _ in 0..25 {
        last = ann.sign_in(&provider, "").await;
    }
    assert_eq!(last, error("throttled"));
    gateway.close().await;
}

async fn new_keys_of_the_provider_are_read(backend: Backend) {
    let (provider, gateway, _) = gateway(backend, ROLES).await;
    provider.set_account(account("1", "ann", json!(["admins"])));
    let mut ann = Browser::new(&gateway);
    for _ in 0..3 {
        assert_eq!(ann.sign_in(&provider, "").await, "/console/");
    }
    assert_eq!(provider.keys_read(), 1);
    provider.rotate_key();
    for _ in 0..3 {
        assert_eq!(ann.sign_in(&provider, "").await, "/console/");
    }
    assert_eq!(provider.keys_read(), 2);
    gateway.close().await;
}

async fn a_request_whose_connection_breaks_off_is_sent_again(backend: Backend) {
    let (provider, gateway, _) = gateway(backend, ROLES).await;
    provider.set_account(account("1", "ann", json!(["admins"])));
    let mut ann = Browser::new(&gateway);
    // The first sign-in begins with the provider's metadata, the second one with the exchange of the code.
    for _ in 0..2 {
        provider.set_fault(Some(Fault::BreakOff));
        assert_eq!(ann.sign_in(&provider, "").await, "/console/");
        assert!(!provider.has_fault());
    }
    gateway.close().await;
}

async fn invalid_sign_in_requests_are_rejected(backend: Backend) {
    let (_provider, gateway, owner) = gateway(backend, ROLES).await;
    for (query, expected) in [
        ("?to=admin", "to must be console or portal"),
        ("?next=//evil.example", "next must be the path of a page"),
        (
            "?next=https://evil.example/console/",
            "next must be the path of a page",
        ),
        (
            "?to=portal&next=/console/",
            "next must be the path of a page",
        ),
        ("?to=portal&fresh=1", "fresh must be 1"),
        ("?then=/console/", "unknown query parameter"),
    ] {
        let path = format!("/oidc/start{query}");
        owner
            .send_with("GET", &path, &[], "")
            .await
            .rejected(400, expected);
    }
    let post = owner.send_with("POST", "/oidc/start", &[], "").await;
    assert_eq!(post.status, 405);
    let settings = owner.get_json("/admin/v1/config").await.to_string();
    assert!(settings.contains("oidc.client_secret") && !settings.contains("secret of the gateway"));
    gateway.close().await;
    let plain = Setup::new(backend).start().await;
    let reply = plain
        .anonymous()
        .send_with("GET", "/oidc/start", &[], "")
        .await;
    reply.rejected(404, "not configured");
    let methods = plain.anonymous().get_json("/v1/me/session/methods").await;
    assert_eq!(methods, json!({ "oidc": null }));
    plain.close().await;
}
