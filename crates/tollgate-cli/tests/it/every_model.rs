//! Every model that generates media, through the adapter of a provider that offers it.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Value, json};
use tollgate_core::TaskKind;
use tollgate_fakes::{Options, Provider, start};
use tollgate_media::AnyFamily;

use crate::harness::images::{data_uri, decode, png};
use crate::harness::*;
use crate::videos::mp4_ms;

on_sqlite!(every_model_generates_with_its_provider);

/// A provider, and models that it offers.
#[derive(Deserialize)]
struct Row {
    provider: String,
    models: Vec<String>,
    /// Whether the models need an image.
    #[serde(default)]
    reference: bool,
}

/// The family of a model.
fn family(model: &str) -> AnyFamily {
    let mut all = AnyFamily::all();
    let found = all.find(|family| family.models().contains(&model));
    found.unwrap_or_else(|| panic!("no family has {model}"))
}

impl Row {
    fn request(&self, model: &str) -> Value {
        let mut body = match family(model).kind() {
            TaskKind::Speech => json!({ "input": "The tide is coming in." }),
            TaskKind::Image | TaskKind::Video => json!({ "prompt": "a harbour at dawn" }),
        };
        body["model"] = model.into();
        if self.reference {
            body["image_urls"] = json!([data_uri("image/png", &png(640, 480))]);
        }
        body
    }
}

async fn every_model_generates_with_its_provider(backend: Backend) {
    let rows: Vec<Row> = cases::rows("providers_of_models");
    let named = rows.iter().flat_map(|row| &row.models).map(String::as_str);
    let named: Vec<&str> = named.collect();
    let families = AnyFamily::all().flat_map(|family| family.models());
    let all: BTreeSet<&str> = families.copied().collect();
    assert_eq!(BTreeSet::from_iter(named.iter().copied()), all);
    assert_eq!(named.len(), all.len(), "a model stands there once");

    let (mut config, mut fakes) = (String::new(), Vec::new());
    for (at, row) in rows.iter().enumerate() {
        let provider: Provider = row.provider.parse().unwrap();
        let fake = start(provider, Options::default()).await.unwrap();
        let kind = &row.provider;
        let channel = ChannelConfig::new(&format!("{kind}-{at}"), kind).url(&fake.base_url());
        let channel = channel.keys(&[format!("up-key-{at}")]).models(&row.models);
        config += &channel.lines("poll_ms = 100").text();
        fakes.push(fake);
    }
    let (gateway, client) = TestGateway::with_config(backend, &config).await;
    let mut tasks = Vec::new();
    for row in &rows {
        for model in &row.models {
            let path = family(model).endpoint().path();
            let receipt = client.post(path, &row.request(model)).await;
            tasks.push((model, task_id(&receipt.expect(200).json())));
        }
    }
    for (model, id) in tasks {
        eprintln!("{model}");
        let record = client.wait_for_end(&id).await;
        assert_eq!(status(&record), "completed", "{record}");
        check_file(&client, family(model).kind(), &record).await;
    }
    for (row, fake) in rows.iter().zip(&fakes) {
        assert!(!fake.requests().is_empty(), "{}", row.provider);
        for one in fake.requests() {
            let what = format!("{} {} {}", one.method, one.path, one.body);
            assert_eq!(one.rejected_by, None, "{what}");
            assert!(!what.contains("up-key"), "{what}");
        }
    }
    gateway.close().await;
}

/// Checks the file of a record.
async fn check_file(client: &Client, kind: TaskKind, record: &Value) {
    let url = match kind {
        TaskKind::Image => image_urls(record).remove(0),
        TaskKind::Video => record["url"].as_str().expect("a link").to_owned(),
        TaskKind::Speech => record["metadata"]["url"].as_str().unwrap().to_owned(),
    };
    assert!(url.starts_with(&client.url("/files/")), "{url}");
    let file = client.fetch(&url).await.expect(200);
    let media_type = file.header("content-type");
    match kind {
        TaskKind::Image => {
            let (_, width, height) = decode(&file.body);
            assert!(width >= 512 && height >= 512, "{width}x{height}");
        }
        TaskKind::Video => {
            let seconds: u64 = record["seconds"].as_str().unwrap().parse().unwrap();
            assert_eq!(media_type, "video/mp4");
            assert_eq!(mp4_ms(&file.body), 1000 * seconds);
        }
        TaskKind::Speech => assert!(media_type.starts_with("audio/"), "{media_type}"),
    }
}
