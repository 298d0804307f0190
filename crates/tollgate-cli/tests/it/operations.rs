//! What operators rely on: health, metrics, the API's OpenAPI document, request ids.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::{Method, Version};
use http_body_util::Full;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tollgate_server::chat::endpoint::CHAT_PATHS;

use crate::harness::images::png;
use crate::harness::*;

on_both!(health_and_metrics_are_reported);
on_sqlite!(
    metrics_of_a_public_listener_need_the_admin_key,
    the_openapi_document_has_every_route,
    http_2_is_served,
    requests_have_ids,
    the_console_and_its_files_are_served,
    the_documentation_is_served,
);

/// The source of the routers: the document must describe every path in it.
const ROUTERS: [&str; 2] = [
    include_str!("../../../tollgate-server/src/router.rs"),
    include_str!("../../../tollgate-admin/src/lib.rs"),
];

async fn health_and_metrics_are_reported(backend: Backend) {
    let prices = "[price.\"grok-imagine-1.0-partner\"]\nper_image = 0.5\n";
    let gateway = Setup::new(backend).config(prices).start().await;
    let anonymous = gateway.anonymous();
    for (path, status) in [("/healthz", "ok"), ("/readyz", "ready")] {
        let expected = json!({ "status": status });
        assert_eq!(anonymous.get_json(path).await, expected);
    }
    let client = gateway.funded_client("10").await;
    let body = |prompt: &str, n: u32| json!({ "model": "grok-imagine-1.0-partner", "prompt": prompt, "n": n });
    client.generate(&body("a mill", 2)).await;
    let failing = client.submit(&body("[[sandbox:fail]]", 1)).await;
    client.wait_for_end(&failing).await;
    client.upload_image(&png(30, 30)).await;
    client.get("/v1/unheard-of").await.expect(404);
    let open = client.submit(&body("[[sandbox:hang]]", 3)).await;
    client.wait_for_start(&open).await;
    for (name, value) in cases::rows::<(String, f64)>("metrics") {
        let found = gateway.metric(&name).await;
        assert!((found - value).abs() < 1e-9, "{name}: {found}");
    }
    let reply = anonymous.get("/metrics").await.expect(200);
    assert!(reply.header("content-type").starts_with("text/plain"));
    assert!(
        reply
            .text()
            .contains("tollgate_http_request_seconds_bucket")
    );
    client.cancel(&open).await.expect(200);
    assert_eq!(gateway.metric("tollgate_ledger_held").await, 0.0);
    gateway.close().await;
}

async fn metrics_of_a_public_listener_need_the_admin_key(backend: Backend) {
    let key = "admin-of-this-test-and-no-other";
    let setup = Setup::new(backend).listen("0.0.0.0:0").admin_key(key);
    let gateway = setup.start().await;
    let client = gateway.unlimited_client().await;
    let get = async |value: &str| {
        let headers = [("authorization", value)];
        let headers = &headers[usize::from(value.is_empty())..];
        client
            .fetch_with(Method::GET, &client.url("/metrics"), headers)
            .await
    };
    let user_key = format!("Bearer {}", client.secret.as_deref().unwrap());
    for value in ["", "Bearer ", "Bearer x", &user_key, key] {
        get(value).await.rejected(401, "");
    }
    get(&format!("Bearer {key}")).await.expect(200);
    for path in ["/healthz", "/readyz", "/openapi.json", "/docs", "/docs/api"] {
        gateway.anonymous().get(path).await.expect(200);
    }
    // The admin key is valid for nothing else.
    let admin = gateway.client(Some(key.to_owned()), String::new());
    admin.get("/v1/tasks").await.rejected(401, "");
    gateway.close().await;
}

async fn the_openapi_document_has_every_route(backend: Backend) {
    let gateway = TestGateway::start(backend).await;
    let reply = gateway.anonymous().get("/openapi.json").await.expect(200);
    assert_eq!(reply.header("content-type"), "application/json");
    let document = reply.json();
    let version = document["openapi"].as_str().unwrap();
    assert!(version.starts_with("3.1"), "{version}");
    let chats = CHAT_PATHS.iter().map(|chat| chat.path.replace("{*", "{"));
    let routes = ROUTERS
        .iter()
        .flat_map(|text| text.split(".route(").skip(1));
    let routes = routes.filter_map(|rest| Some(rest.split('"').nth(1)?.replace("{*", "{")));
    let portal = tollgate_admin::portal::all();
    let portal =
        portal.map(|endpoint| format!("{}{}", tollgate_admin::portal::PREFIX, endpoint.path));
    let routes: BTreeSet<String> = routes.chain(chats).chain(portal).collect();
    let paths = document["paths"].as_object().unwrap();
    assert!(routes.len() > 10);
    assert_eq!(routes, paths.keys().cloned().collect::<BTreeSet<_>>());
    let mut ids = BTreeSet::new();
    for (path, item) in paths {
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str();
            assert!(id.is_some() && ids.insert(id), "{method} {path}: {id:?}");
            let responses = operation["responses"].as_object();
            assert!(responses.is_some_and(|all| !all.is_empty()), "{path}");
        }
    }
    let mut references = Vec::new();
    collect_references(&document, &mut references);
    assert!(!references.is_empty());
    for reference in &references {
        let target = document.pointer(reference.strip_prefix('#').unwrap());
        assert!(target.is_some(), "{reference} leads nowhere");
    }
    for family in tollgate_media::AnyFamily::all() {
        let name = format!("Request.{}", family.name());
        let has_schema = references
            .iter()
            .any(|reference| reference.ends_with(&name));
        assert!(has_schema, "{name}");
    }
    gateway.close().await;
}

/// Adds every `$ref` in `value` to `found`.
pub(crate) fn collect_references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    let mut collect = |value: &'a Value| collect_references(value, found);
    match value {
        Value::Object(members) => {
            members.values().for_each(&mut collect);
            found.extend(members.get("$ref").and_then(Value::as_str));
        }
        Value::Array(items) => items.iter().for_each(collect),
        _ => {}
    }
}

async fn http_2_is_served(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let mut http2 = legacy::Client::builder(TokioExecutor::new());
    let http2 = http2.http2_only(true).build_http();
    let body = json!({ "model": "imagen-4.0-partner", "prompt": "[[sandbox:fail]]" }).to_string();
    let requests = (0..30).map(|_| {
        let request = client.request(Method::POST, "/v1/images/generations");
        http2.request(request.body(Full::<Bytes>::from(body.clone())).unwrap())
    });
    for response in futures_util::future::join_all(requests).await {
        let response = response.unwrap();
        let found = (response.version(), response.status().as_u16());
        assert_eq!(found, (Version::HTTP_2, 200));
    }
    gateway.close().await;
}

async fn requests_have_ids(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let get = async |path: &str, id: &str| {
        let headers = [("x-request-id", id)];
        let reply = client.send_with("GET", path, &headers, "").await;
        reply.header("x-request-id").to_owned()
    };
    for path in ["/v1/models", "/healthz", "/nowhere", "/v1/tasks/x"] {
        for id in ["a", "req_1.2:3-4", &"x".repeat(128)] {
            assert_eq!(get(path, id).await, id, "{path}");
        }
        let mut new_ids = BTreeSet::new();
        for id in ["", "a b", "a\"b", "a\tb", "{}", &"x".repeat(129)] {
            let returned = get(path, id).await;
            assert_ne!(returned, id);
            assert!((8..=64).contains(&returned.len()), "{returned}");
            assert!(new_ids.insert(returned), "each is new");
        }
        let reply = client.get(path).await;
        assert!(!reply.header("x-request-id").is_empty());
    }
    gateway.close().await;
}

async fn the_console_and_its_files_are_served(backend: Backend) {
    let gateway = Setup::new(backend).start().await;
    let client = gateway.anonymous();
    let get = async |path: &str, name: &'static str, value: &'static str| {
        client
            .send_with("GET", path, &[(name, value)], Bytes::new())
            .await
    };
    let root = get("/", "accept", "text/html,*/*;q=0.8").await.expect(303);
    assert_eq!(root.header("location"), "/console/");
    get("/", "accept", "application/json").await.expect(404);
    for path in ["/console/", "/console/tasks/task_1"] {
        let page = get(path, "accept", "text/html").await.expect(200);
        assert_eq!(page.header("cache-control"), "no-cache");
        let policy = page.header("content-security-policy");
        assert!(policy.contains("script-src 'self';") && policy.contains("frame-ancestors 'none'"));
        let text = page.text();
        let assets: Vec<&str> = text
            .split('"')
            .filter(|part| part.starts_with("/console/assets/"))
            .collect();
        assert!(assets.len() > 5, "{path}: {assets:?}");
        for asset in assets {
            let plain = get(asset, "accept-encoding", "identity").await.expect(200);
            assert!(plain.header("cache-control").ends_with("immutable"));
            let gzip = get(asset, "accept-encoding", "gzip, br").await.expect(200);
            assert_eq!(gzip.header("content-encoding"), "gzip");
            assert_eq!(gzip.header("content-type"), plain.header("content-type"));
        }
    }
    get("/console/assets/main.0.js", "accept", "*/*")
        .await
        .expect(404);
    gateway.close().await;
}

async fn the_documentation_is_served(backend: Backend) {
    let gateway = TestGateway::start(backend).await;
    let client = gateway.anonymous();
    let get = async |path: &str, name: &str, value: &str| {
        let url = client.url(path);
        client.fetch_with(Method::GET, &url, &[(name, value)]).await
    };
    for path in ["/docs", "/docs/api", "/docs/tasks", "/docs/models/veo-3.1"] {
        let page = get(path, "accept-encoding", "identity").await.expect(200);
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        let policy = page.header("content-security-policy");
        assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"));
        assert!(page.text().contains("<title>"), "{path}");
        let etag = page.header("etag").to_owned();
        let same = get(path, "if-none-match", &etag).await.expect(304);
        assert_eq!(same.header("etag"), etag);
        let gzip = get(path, "accept-encoding", "gzip, br").await.expect(200);
        assert_eq!(gzip.header("content-encoding"), "gzip");
        let text = page.text();
        let assets = text.split('"');
        let assets: Vec<&str> = assets
            .filter(|part| part.starts_with("/docs/assets/"))
            .collect();
        assert!(assets.len() > 3, "{path}: {assets:?}");
        for asset in assets {
            let plain = get(asset, "accept-encoding", "identity").await.expect(200);
            assert!(plain.header("cache-control").ends_with("immutable"));
            let gzip = get(asset, "accept-encoding", "gzip").await.expect(200);
            assert_eq!(gzip.header("content-encoding"), "gzip");
            assert_eq!(gzip.header("content-type"), plain.header("content-type"));
        }
    }
    for (address, end, target) in [
        ("/docs", "/", "/docs"),
        ("/docs/tasks", ".md", "/docs/tasks"),
        ("/docs/models/README", ".md", "/docs/models"),
    ] {
        let path = format!("{address}{end}");
        let reply = get(&path, "accept", "text/html").await.expect(308);
        assert_eq!(reply.header("location"), target);
    }
    for path in [
        "/docs/unheard-of",
        "/docs/models/unheard-of/",
        "/docs/assets/docs.0.js",
    ] {
        get(path, "accept", "*/*").await.expect(404);
    }
    gateway.close().await;
}
