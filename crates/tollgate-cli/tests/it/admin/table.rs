//! The rows of `tests/cases/admin.jsonl`: the response to each request, for each kind of caller.

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{ADMIN, OWNER, gateway};
use crate::harness::*;
use crate::operations::collect_references;

on_both!(requests_match_the_table);
on_sqlite!(the_openapi_document_describes_every_endpoint);
on_sqlite!(the_documentation_lists_every_endpoint_with_its_scope);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// Method and path.
    request: String,
    /// `client` for a path of the client API.
    at: Option<String>,
    /// `owner`, `nobody`, or the name of a saved secret.
    #[serde(rename = "as")]
    sender: Option<String>,
    #[serde(default)]
    headers: Map<String, Value>,
    #[serde(default)]
    body: Value,
    /// A body that is not JSON.
    text: Option<String>,
    #[serde(default)]
    status: Option<u16>,
    /// The error's code.
    code: Option<String>,
    field: Option<String>,
    /// Words that the error's message, or the CSV, must contain.
    #[serde(default)]
    says: String,
    /// A pattern of the reply.
    #[serde(default)]
    has: Value,
    /// A pattern of the object beside an error.
    #[serde(default)]
    current: Value,
    /// The header row of a CSV.
    csv: Option<String>,
    /// Values of the reply that later rows need.
    #[serde(default)]
    save: Map<String, Value>,
}

async fn requests_match_the_table(backend: Backend) {
    let (gateway, owner) = gateway(backend).await;
    let client = gateway.unlimited_client().await;
    let saved = vec![
        ("owner".to_owned(), OWNER.to_owned()),
        ("client".to_owned(), client.secret.clone().unwrap()),
    ];
    let saved = run_table(&gateway, &owner, "admin", saved).await;
    let find = |name: &str| {
        saved
            .iter()
            .rfind(|(known, _)| known == name)
            .unwrap()
            .1
            .as_str()
    };
    assert_eq!((find("etag"), find("replayed")), ("\"1\"", "true"));
    // No event in the trail shows a secret.
    let trail = gateway
        .query("SELECT before, after FROM admin_events")
        .await
        .concat()
        .join("\n");
    for name in ["reader", "writer", "old", "new"] {
        assert!(
            !trail.contains(find(name)),
            "the secret of {name} is in the trail"
        );
    }
    gateway.close().await;
}

/// Sends the requests of a table in order. A row can name values in `saved` and those that earlier rows saved; returns all of them.
pub(super) async fn run_table(
    gateway: &TestGateway,
    owner: &Client,
    table: &str,
    mut saved: Vec<(String, String)>,
) -> Vec<(String, String)> {
    for line in cases::lines(table) {
        let values: Vec<(&str, &str)> = saved
            .iter()
            .map(|(n, v)| (n.as_str(), v.as_str()))
            .collect();
        let line = cases::fill(&line, &values);
        eprintln!("{line:.300}");
        let row: Row = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{line}: {e}"));
        let sender = match row.sender.as_deref() {
            None => owner.clone(),
            Some("nobody") => gateway.anonymous(),
            Some(name) => {
                let secret = saved.iter().rfind(|(known, _)| known == name);
                gateway.client(Some(secret.expect(name).1.clone()), String::new())
            }
        };
        let reply = row.send(&sender).await;
        row.check(&reply);
        for (name, source) in &row.save {
            let source = source.as_str().unwrap();
            let value = match source.strip_prefix('@') {
                Some(header) => reply.header(header).to_owned(),
                None => reply
                    .json()
                    .pointer(source)
                    .and_then(Value::as_str)
                    .expect(source)
                    .to_owned(),
            };
            saved.push((name.clone(), value));
        }
    }
    saved
}

impl Row {
    async fn send(&self, sender: &Client) -> Reply {
        let (method, path) = self.request.split_once(' ').unwrap();
        let path = match self.at.as_deref() {
            Some(_) => path.to_owned(),
            None => format!("{ADMIN}{path}"),
        };
        let mut headers: Vec<(&str, &str)> = self
            .headers
            .iter()
            .map(|(n, v)| (n.as_str(), v.as_str().unwrap()))
            .collect();
        let body = match (&self.text, &self.body) {
            (Some(text), _) => text.clone(),
            (None, Value::Null) => String::new(),
            (None, json) => {
                if !self.headers.contains_key("content-type") {
                    headers.push(("content-type", "application/json"));
                }
                json.to_string()
            }
        };
        sender.send_with(method, &path, &headers, body).await
    }

    fn check(&self, reply: &Reply) {
        let reply = reply.clone().expect(self.status.unwrap_or(200));
        if self.at.is_some() {
            return;
        }
        assert_eq!(reply.header("cache-control"), "no-store");
        if let Some(csv) = &self.csv {
            let text = reply.text();
            assert!(text.starts_with(&format!("{csv}\r\n")), "{text}");
            assert!(text.contains(&self.says), "{text}");
            return;
        }
        if let Some(code) = &self.code {
            let body = reply.json();
            let error = &body["error"];
            assert_eq!(error["code"], code.as_str(), "{body}");
            if let Some(field) = &self.field {
                assert_eq!(error["field"], field.as_str(), "{body}");
            }
            assert!(
                error["message"].as_str().unwrap().contains(&self.says),
                "{body}"
            );
            assert_eq!(error["request_id"], reply.header("x-request-id"), "{body}");
            if !self.current.is_null() {
                assert_has(&body["current"], self.current.clone());
                let version = format!("\"{}\"", body["current"]["version"]);
                assert_eq!(reply.header("etag"), version);
            }
            return;
        }
        if !self.has.is_null() {
            assert_has(&reply.json(), self.has.clone());
        }
    }
}

/// The gateway serves the OpenAPI document; it names every list that the table reads as CSV, and each of its operations responds.
async fn the_openapi_document_describes_every_endpoint(backend: Backend) {
    let (gateway, owner) = gateway(backend).await;
    let document = owner.get_json("/admin/openapi.json").await;
    assert_eq!(document["openapi"], "3.1.0");
    let health = &document["paths"]["/admin/v1/channels/{name}/health"]["get"];
    assert_has(&health["parameters"], json!([{ "name": "name" }]));
    let mut references = Vec::new();
    collect_references(&document, &mut references);
    for reference in references {
        let target = document.pointer(reference.strip_prefix('#').unwrap());
        assert!(target.is_some(), "{reference} leads nowhere");
    }
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let path = path
                .replace("{id}", "none")
                .replace("{model}", "none")
                .replace("{name}", "none");
            let reply = gateway
                .anonymous()
                .send_with(&method.to_uppercase(), &path, &[], "")
                .await;
            let is_open = operation["security"].as_array().is_some_and(Vec::is_empty);
            // Open operations are those that anybody may read, and sign-in, which only accepts requests of the gateway's own pages.
            let expected = match (is_open, method.as_str()) {
                (true, "get") => 200,
                (true, _) => 403,
                (false, _) => 401,
            };
            assert_eq!(reply.status, expected, "{method} {path}");
            let described = operation["description"].as_str().unwrap_or_default();
            let scopes = described.split('`').skip(1).step_by(2);
            for scope in scopes {
                assert!(scope.contains(':'), "{method} {path}: {described}");
            }
        }
    }
    gateway.close().await;
}

async fn the_documentation_lists_every_endpoint_with_its_scope(backend: Backend) {
    let page = include_str!("../../../../../docs/admin.md");
    let (gateway, owner) = gateway(backend).await;
    let document = owner.get_json("/admin/openapi.json").await;
    for (path, methods) in document["paths"].as_object().unwrap() {
        let Some(path) = path.strip_prefix(ADMIN) else {
            continue;
        };
        for (method, operation) in methods.as_object().unwrap() {
            let row = format!("\n| `{} {path}` |", method.to_uppercase());
            let rest = page.split_once(&row).unwrap_or_else(|| panic!("{row}")).1;
            let described = operation["description"].as_str().unwrap_or_default();
            if let Some(scope) = described.strip_prefix("Requires the scope ")
                && let Some(scope) = scope.strip_suffix('.')
                && !scope.contains(" or ")
            {
                assert!(rest.starts_with(&format!(" {scope} |")), "{row}");
            }
        }
    }
    gateway.close().await;
}
