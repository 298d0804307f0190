//! What those who look after a gateway rely on: health, numbers, the API's description, request ids, the log.

use std::collections::BTreeSet;

use bytes::Bytes;
use http::{Method, Version};
use http_body_util::Full;
use hyper_util::client::legacy;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tollgate_server::router;

use crate::gate::{Backend, Gate, Setup, on_both, on_one};
use crate::pictures::png;

on_both!(health_and_numbers_are_told);
on_one!(
    numbers_from_outside_need_the_admin_key,
    the_api_describes_itself,
    http_2_is_spoken,
    requests_have_ids,
    the_log_tells_no_secrets,
);

/// The table of contents itself: every path of it is to be described.
const ROUTER: &str = include_str!("../../src/router.rs");

async fn health_and_numbers_are_told(backend: Backend) {
    let gate = Setup::new(backend)
        .config("[price.\"grok-imagine-1.0-partner\"]\nper_image = 0.5\n")
        .start()
        .await;
    let nobody = gate.nobody();
    assert_eq!(
        nobody.get("/healthz").await.expect(200).json(),
        json!({ "status": "ok" })
    );
    assert_eq!(
        nobody.get("/readyz").await.expect(200).json(),
        json!({ "status": "ready" })
    );
    let client = gate.somebody_with("payer", &["--balance", "10"]).await;
    let order = |prompt: &str, n: u32| json!({ "model": "grok-imagine-1.0-partner", "prompt": prompt, "n": n });
    client.make(&order("a mill", 2)).await;
    let failing = client.submit(&order("[[sandbox:fail]]", 1)).await;
    client.ended(&failing).await;
    client.uploaded(&png(30, 30)).await;
    client.get("/v1/unheard-of").await.expect(404);
    let open = client.submit(&order("[[sandbox:hang]]", 3)).await;
    client.started(&open).await;
    let reply = nobody.get("/metrics").await.expect(200);
    assert!(reply.header("content-type").starts_with("text/plain"));
    for (name, value) in [
        ("tollgate_ledger_balance", 9.0),
        ("tollgate_ledger_held", 1.5),
        ("tollgate_ledger_used", 1.0),
        ("tollgate_tasks{state=\"in_progress\"}", 1.0),
        ("tollgate_tasks{state=\"submitted\"}", 0.0),
        ("tollgate_queue_age_seconds", 0.0),
        ("tollgate_uploads_total", 1.0),
        (
            "tollgate_tasks_ended_total{family=\"grok-imagine\",state=\"completed\"}",
            1.0,
        ),
        (
            "tollgate_tasks_ended_total{family=\"grok-imagine\",state=\"failed\"}",
            1.0,
        ),
        (
            "tollgate_http_requests_total{method=\"POST\",route=\"/v1/images/generations\",status=\"2xx\"}",
            3.0,
        ),
        (
            "tollgate_http_requests_total{method=\"GET\",route=\"none\",status=\"4xx\"}",
            1.0,
        ),
    ] {
        assert!(
            (gate.metric(name).await - value).abs() < 1e-9,
            "{name} in\n{}",
            reply.text()
        );
    }
    let text = reply.text();
    assert!(
        text.contains("tollgate_http_request_seconds_bucket"),
        "{text}"
    );
    client.cancel(&open).await.expect(200);
    assert_eq!(gate.metric("tollgate_ledger_held").await, 0.0);
    gate.close().await;
}

async fn numbers_from_outside_need_the_admin_key(backend: Backend) {
    let key = "admin-of-this-test-and-no-other";
    let gate = Setup::new(backend)
        .listen("0.0.0.0:0")
        .admin_key(key)
        .start()
        .await;
    let client = gate.somebody().await;
    let ask = async |value: &str| {
        let headers: &[(&str, &str)] = if value.is_empty() {
            &[]
        } else {
            &[("authorization", value)]
        };
        client
            .fetch_with(Method::GET, &client.url("/metrics"), headers)
            .await
    };
    let user_key = format!("Bearer {}", client.secret.as_deref().unwrap());
    for value in ["", "Bearer ", "Bearer x", &user_key, key] {
        ask(value).await.error(401, "authentication_error");
    }
    ask(&format!("Bearer {key}")).await.expect(200);
    for path in ["/healthz", "/readyz", "/openapi.json", "/docs"] {
        gate.nobody().get(path).await.expect(200);
    }
    // Here the admin key opens nothing else.
    let admin = gate.client(Some(key.to_owned()), String::new());
    admin
        .get("/v1/tasks")
        .await
        .error(401, "authentication_error");
    gate.close().await;
}

async fn the_api_describes_itself(backend: Backend) {
    let gate = Gate::start(backend).await;
    let nobody = gate.nobody();
    let reply = nobody.get("/openapi.json").await.expect(200);
    assert_eq!(reply.header("content-type"), "application/json");
    let document = reply.json();
    assert!(
        document["openapi"].as_str().unwrap().starts_with("3.1"),
        "{}",
        document["openapi"]
    );
    let chats = router::CHAT_PATHS.map(|(path, _)| path.to_owned());
    let routes: BTreeSet<String> = ROUTER
        .split(".route(")
        .skip(1)
        .filter_map(|rest| Some(rest.split('"').nth(1)?.replace("{*", "{")))
        .chain(chats)
        .collect();
    let described: BTreeSet<String> = document["paths"]
        .as_object()
        .unwrap()
        .keys()
        .cloned()
        .collect();
    assert!(routes.len() > 10);
    assert_eq!(routes, described);
    let mut ids = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str();
            assert!(
                ids.insert(id.unwrap_or_else(|| panic!("{method} {path}"))),
                "{id:?} twice"
            );
            assert!(
                operation["responses"]
                    .as_object()
                    .is_some_and(|r| !r.is_empty())
            );
        }
    }
    let mut references = Vec::new();
    collect_references(&document, &mut references);
    assert!(!references.is_empty());
    for reference in references {
        let pointer = reference.strip_prefix('#').expect(&reference);
        assert!(
            document.pointer(pointer).is_some(),
            "{reference} leads nowhere"
        );
    }
    let docs = nobody.get("/docs").await.expect(200);
    assert!(docs.header("content-type").starts_with("text/html"));
    assert!(docs.text().contains("<title>"));
    gate.close().await;
}

async fn http_2_is_spoken(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    let http2 = legacy::Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http();
    let order = json!({ "model": "imagen-4.0-partner", "prompt": "a mill" }).to_string();
    let requests: Vec<_> = (0..30)
        .map(|_| {
            let request = client.request(Method::POST, "/v1/images/generations");
            let body = Full::<Bytes>::from(order.clone());
            tokio::spawn(http2.request(request.body(body).unwrap()))
        })
        .collect();
    for request in requests {
        let response = request.await.unwrap().unwrap();
        assert_eq!(
            (response.version(), response.status().as_u16()),
            (Version::HTTP_2, 200)
        );
    }
    gate.close().await;
}

fn collect_references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            if let Some(Value::String(reference)) = members.get("$ref") {
                found.push(reference.clone());
            }
            members
                .values()
                .for_each(|member| collect_references(member, found));
        }
        Value::Array(items) => items
            .iter()
            .for_each(|item| collect_references(item, found)),
        _ => {}
    }
}

async fn requests_have_ids(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    let ask = async |path: &str, id: &str| {
        let request = client.request(Method::GET, path).header("x-request-id", id);
        let reply = client.send(request.body(Full::default()).unwrap()).await;
        reply.header("x-request-id").to_owned()
    };
    for path in ["/v1/models", "/healthz", "/nowhere", "/v1/tasks/x"] {
        for id in ["a", "req_1.2:3-4", &"x".repeat(128)] {
            assert_eq!(ask(path, id).await, id, "{path}");
        }
        let mut made = BTreeSet::new();
        for id in ["", "a b", "a\"b", "a\tb", "{}", &"x".repeat(129)] {
            let answered = ask(path, id).await;
            assert_ne!(answered, id);
            assert!((8..=64).contains(&answered.len()), "{answered}");
            assert!(made.insert(answered), "ids are made anew");
        }
        assert!(!client.get(path).await.header("x-request-id").is_empty());
    }
    gate.close().await;
}

async fn the_log_tells_no_secrets(backend: Backend) {
    let gate = Setup::new(backend)
        .env("TOLLGATE_LOG", "trace")
        .start()
        .await;
    let client = gate.somebody().await;
    let secret = client.secret.clone().unwrap();
    let known = [("x-request-id", "known-request-1")];
    let body = json!({ "model": "imagen-4.0-partner", "prompt": "privately-told" });
    client
        .post_with("/v1/images/generations", &body, &known)
        .await
        .expect(200);
    // In places where no key belongs: a query, a path, another header, a body.
    client
        .get(&format!("/v1/tasks?key={secret}&limit=not-a-number-77"))
        .await
        .expect(400);
    client
        .get("/v1/tasks?cursor=query-text-99")
        .await
        .expect(400);
    client
        .get("/v1/tasks/line%0abreak%0d%1b[31m")
        .await
        .expect(404);
    let mut wrong = body.clone();
    wrong["api_key"] = secret.clone().into();
    client.order(&wrong).await.expect(200);
    for header in ["x-api-key", "x-goog-api-key", "authorization"] {
        let headers = [(header, format!("Bearer {secret}0"))];
        let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (*n, v.as_str())).collect();
        client
            .fetch_with(Method::GET, &client.url("/v1/models"), &headers)
            .await
            .expect(401);
    }
    client
        .upload("secret-file-name.png", "image/png", &png(3, 3))
        .await
        .expect(200);
    gate.idle().await;
    // The task's end has the id of its request, too.
    crate::gate::until("the log to be written", async || {
        let log = gate.log();
        let lines_of_request = log.matches("known-request-1").count();
        (lines_of_request > 1 && log.contains("/v1/uploads/images")).then_some(())
    })
    .await;
    let log = gate.log();
    for text in [
        &secret,
        &secret[3..],
        "not-a-number-77",
        "query-text-99",
        "secret-file-name",
    ] {
        assert!(!log.contains(text), "{text} is in the log");
    }
    let request = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect(line));
    let lines: Vec<Value> = request
        .filter(|line| line["request_id"] == "known-request-1")
        .collect();
    let submitted = lines
        .iter()
        .find(|line| line["path"] == "/v1/images/generations");
    let submitted = submitted.unwrap_or_else(|| panic!("{lines:?}"));
    assert_eq!(
        (&submitted["status"], &submitted["key"]),
        (&json!(200), &json!(client.key_id))
    );
    gate.close().await;
}
