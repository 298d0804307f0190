//! What the tests of crashes, nodes and money order: small pictures at a price.

use std::path::PathBuf;

use bytes::Bytes;
use http::Method;
use http::header::CONTENT_TYPE;
use http_body_util::Full;
use serde_json::{Value, json};
use tokio_postgres::{NoTls, SimpleQueryMessage};

use crate::gate::{Client, Gate, Reply, links};
use crate::pictures::decoded;

/// A model with pictures of 512 × 512 pixels, several at a time, and references as data URIs.
pub(crate) const MODEL: &str = "gemini-3.1-flash-image-preview";
/// The configuration that gives it its price.
pub(crate) const PRICES: &str = "[price.\"gemini-3.1-flash-image-preview\"]\nper_image = 0.25\n";
/// The price of one picture.
pub(crate) const PRICE: f64 = 0.25;

/// The body that orders `n` pictures.
pub(crate) fn pictures(prompt: &str, n: u32) -> Value {
    json!({ "model": MODEL, "prompt": prompt, "resolution": "0.5K", "size": "1:1", "n": n })
}

/// Submits under an idempotency key; none where the connection breaks before the answer is there.
pub(crate) async fn try_order(client: &Client, key: &str, body: &Value) -> Option<Reply> {
    let request = client
        .request(Method::POST, "/v1/images/generations")
        .header(CONTENT_TYPE, "application/json")
        .header("idempotency-key", key)
        .body(Full::from(Bytes::from(body.to_string())));
    client.try_send(request.unwrap()).await
}

/// The same where there must be an answer.
pub(crate) async fn order(client: &Client, key: &str, body: &Value) -> Reply {
    try_order(client, key, body).await.expect("an answer")
}

/// Asks for a task's cancellation; none where the connection breaks first.
pub(crate) async fn try_cancel(client: &Client, id: &str) -> Option<Reply> {
    let request = client
        .request(Method::POST, &format!("/v1/tasks/{id}/cancel"))
        .body(Full::default());
    client.try_send(request.unwrap()).await
}

/// How many different pictures a record shows; each must decode.
pub(crate) async fn count_pictures(client: &Client, record: &Value) -> usize {
    let mut links = links(record);
    for link in &links {
        decoded(&client.fetch(link).await.expect(200).body);
    }
    links.sort();
    links.dedup();
    links.len()
}

/// Every file that is visible, shown by a task or not.
pub(crate) fn public_files(gate: &Gate) -> Vec<PathBuf> {
    let entries = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let hours = entries(gate.data_dir().join("files/public"));
    let files = hours.flat_map(|hour| entries(hour.path()));
    files.map(|file| file.path()).collect()
}

/// Every file that is visible is a whole picture; answers how many there are.
pub(crate) fn count_public_files(gate: &Gate) -> usize {
    let files = public_files(gate);
    for file in &files {
        decoded(&std::fs::read(file).unwrap());
    }
    files.len()
}

/// Runs SQL past the gateway; answers its rows, every cell as text. On PostgreSQL only.
pub(crate) async fn sql(gate: &Gate, text: &str) -> Vec<Vec<Option<String>>> {
    let url = gate.database_url().expect("a PostgreSQL database");
    sql_at(&url, text).await
}

/// The same on the database of that URL.
pub(crate) async fn sql_at(url: &str, text: &str) -> Vec<Vec<Option<String>>> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    let mut rows = Vec::new();
    for message in client.simple_query(text).await.unwrap() {
        if let SimpleQueryMessage::Row(row) = message {
            let cells = (0..row.len()).map(|i| row.get(i).map(str::to_owned));
            rows.push(cells.collect());
        }
    }
    drop(client);
    connection.await.unwrap().unwrap();
    rows
}

/// The one number that a query answers.
pub(crate) async fn number(gate: &Gate, text: &str) -> i64 {
    let rows = sql(gate, text).await;
    let cell = rows.first().and_then(|row| row[0].as_ref());
    cell.and_then(|n| n.parse().ok())
        .unwrap_or_else(|| panic!("{text}: {rows:?}"))
}
