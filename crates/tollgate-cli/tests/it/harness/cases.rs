//! Tables in `tests/cases`: files of JSON, one row per line.
//!
//! In a row, `<<name>>` is replaced by a value that the test gives, `<<x*100>>` by a hundred times `x`. A line that begins with `//` is a comment.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::images::decode;
use super::{Client, assert_has, image_urls, status, task_id};

/// A request and its expected result.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// Method and path; the submission of an image if empty.
    #[serde(default)]
    request: String,
    #[serde(default)]
    headers: Map<String, Value>,
    /// Members that are added to the default body; any other JSON replaces it.
    #[serde(default)]
    body: Value,
    /// A body that is not JSON.
    text: Option<String>,
    #[serde(default)]
    status: u16,
    /// Words that the error's message must contain.
    #[serde(default)]
    says: String,
    /// What the header `allow` lists, sorted.
    allow: Option<String>,
    /// The task's end: `completed`, or the error's code.
    ends: Option<String>,
    /// A pattern of the record at the end.
    #[serde(default)]
    has: Map<String, Value>,
    /// The amount that the task is charged.
    cost: Option<f64>,
    /// The amount that is held for the task; the test then cancels it.
    held: Option<f64>,
    /// The images: their number, format, width and height.
    files: Option<(usize, String, u32, u32)>,
}

/// The rows of a table.
pub(crate) fn rows<T: DeserializeOwned>(table: &str) -> Vec<T> {
    rows_with(table, &[])
}

/// The rows of a table with these values.
pub(crate) fn rows_with<T: DeserializeOwned>(table: &str, values: &[(&str, &str)]) -> Vec<T> {
    let file = format!("{}/tests/cases/{table}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&file).expect(&file);
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with("//"));
    let parsed = lines.map(|(number, line)| {
        let line = fill(line, values);
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{file}:{}: {e}", number + 1))
    });
    parsed.collect()
}

/// The rows of a table as text, for values that are known only when a row is sent.
pub(crate) fn lines(table: &str) -> Vec<String> {
    let file = format!("{}/tests/cases/{table}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&file).expect(&file);
    let is_row = |line: &&str| !line.is_empty() && !line.starts_with("//");
    text.lines().filter(is_row).map(str::to_owned).collect()
}

/// A row with its placeholders replaced by these values.
pub(crate) fn fill(line: &str, values: &[(&str, &str)]) -> String {
    let mut parts = line.split("<<");
    let mut filled = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once(">>").expect(part);
        let value = match name.split_once('*') {
            Some((text, times)) => text.repeat(times.parse().expect(name)),
            None => {
                let value = values.iter().find(|(known, _)| *known == name);
                value.expect(name).1.to_owned()
            }
        };
        let json = serde_json::to_string(&value).unwrap();
        filled += &json[1..json.len() - 1];
        filled += rest;
    }
    filled
}

/// Sends every request of a table, whose first row has the defaults for the other rows, and checks the results. At the end, exactly the sum of the
/// rows' costs was charged.
pub(crate) async fn check(client: &Client, table: &str, values: &[(&str, &str)]) {
    let mut rows: Vec<Value> = rows_with(table, values);
    let defaults = rows.remove(0);
    let (_, used) = client.balances().await;
    let (mut waiting, mut cost) = (Vec::new(), 0.0);
    for row in rows {
        let mut merged = defaults.clone();
        merge(&mut merged, &row);
        eprintln!("{table}: {:.300}", row.to_string());
        let case: Case = serde_json::from_value(merged).unwrap();
        cost += case.cost.unwrap_or(0.0);
        if let Some(id) = case.send(client).await {
            waiting.push((case, id));
        }
    }
    for (case, id) in waiting {
        eprintln!("{table}: {:.300}", case.body.to_string());
        case.check_end(client, &client.wait_for_end(&id).await)
            .await;
    }
    let charged = client.balances().await.1 - used;
    assert!((charged - cost).abs() < 1e-9, "{charged}, not {cost}");
}

/// Adds the members of an object to an object, and replaces those that it has, except `body`, which is merged. Replaces anything else.
fn merge(into: &mut Value, from: &Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                match into.get_mut(name) {
                    Some(known) if name == "body" => merge(known, value),
                    _ => drop(into.insert(name.clone(), value.clone())),
                }
            }
        }
        (into, from) => *into = from.clone(),
    }
}

impl Case {
    /// Sends the request and checks the response. Returns the id of the task whose end is to be checked; `None` if there is none.
    async fn send(&self, client: &Client) -> Option<String> {
        let reply = match self.request.split_once(' ') {
            None => client.post_image(&self.body).await,
            Some((method, path)) => {
                let text = |value: &Value| value.as_str().expect("text").to_owned();
                let headers = self.headers.iter().map(|(name, v)| (name.clone(), text(v)));
                let mut headers: Vec<(String, String)> = headers.collect();
                let body = match (&self.text, &self.body) {
                    (Some(text), _) => text.clone(),
                    (None, Value::Null) => String::new(),
                    (None, json) => {
                        headers.push(("content-type".to_owned(), "application/json".to_owned()));
                        json.to_string()
                    }
                };
                let headers = headers.iter().map(|(name, v)| (name.as_str(), v.as_str()));
                let headers: Vec<(&str, &str)> = headers.collect();
                client.send_with(method, path, &headers, body).await
            }
        };
        if self.status != 200 {
            let message = reply.rejected(self.status, &self.says);
            assert!(
                message.len() < 2000,
                "the request is not returned completely"
            );
            if let Some(allow) = &self.allow {
                let mut methods: Vec<&str> = reply.header("allow").split(',').collect();
                methods.sort_unstable();
                assert_eq!(methods.join(","), *allow);
            }
            return None;
        }
        let receipt = reply.expect(200);
        if self.ends.is_some() {
            return Some(task_id(&receipt.json()));
        }
        if let Some(held) = self.held {
            self.check_held(client, held, &task_id(&receipt.json()))
                .await;
        }
        None
    }

    async fn check_held(&self, client: &Client, held: f64, id: &str) {
        let (left, used) = client.balances().await;
        client.cancel(id).await.expect(200);
        let (before, used_before) = client.balances().await;
        assert!((before - left - held).abs() < 1e-9, "{before} {left}");
        assert_eq!(used, used_before);
    }

    async fn check_end(&self, client: &Client, record: &Value) {
        match self.ends.as_deref() {
            Some("completed") => assert_eq!(status(record), "completed", "{record}"),
            Some(code) => {
                assert_eq!(status(record), "failed", "{record}");
                assert_eq!(record["error"]["code"], code, "{record}");
                let message = record["error"]["message"].as_str().expect("a message");
                let is_named = !message.is_empty() && message.contains(&self.says);
                assert!(is_named, "{message}, not {}", self.says);
            }
            None => {}
        }
        assert_has(record, self.has.clone().into());
        if let Some(cost) = self.cost {
            assert_eq!(record["cost"], cost, "{record}");
        }
        let Some((n, format, width, height)) = &self.files else {
            return;
        };
        let links = image_urls(record);
        assert_eq!(links.len(), *n, "{record}");
        for link in links {
            let file = client.fetch(&link).await.expect(200);
            let (decoded, w, h) = decode(&file.body);
            let media_type = decoded.to_mime_type();
            assert_eq!((media_type, w, h), (format.as_str(), *width, *height));
            assert_eq!(file.header("content-type"), media_type);
        }
    }
}
