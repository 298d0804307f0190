//! What the gateway sends a provider in place of what the client requested: the record lists it, also after a crash.

use serde_json::{Value, json};
use tollgate_fakes::{Fake, Options, Provider, start};

use crate::harness::priced_images::images;
use crate::harness::*;

on_sqlite!(
    a_size_replaced_by_the_nearest_is_an_adjustment,
    omitted_fields_are_adjustments,
    fewer_images_than_requested_are_an_adjustment,
);
on_both!(adjustments_survive_a_crash);

/// A gateway that is not started yet, whose only channel leads to a fake.
async fn prepare(backend: Backend, provider: Provider, model: &str) -> (TestGateway, Fake) {
    let fake = start(provider, Options::default()).await.unwrap();
    let channel = ChannelConfig::new(provider.name(), provider.name()).url(&fake.base_url());
    let channel = channel.keys(&["access:hidden-half"]).models(&[model]);
    let config = channel.lines("poll_ms = 100").text();
    // On SQLite a restarted gateway reclaims its tasks at once.
    let setup = Setup::new(backend).config(&config);
    let setup = setup.env("TOLLGATE_LEASES__SECONDS", "1");
    (setup.prepare().await, fake)
}

/// The adjustments of a completed record.
#[track_caller]
fn check_adjustments(record: &Value, expected: &[(&str, Value, Value)]) {
    assert_eq!(status(record), "completed", "{record}");
    let adjustment = |(field, requested, used): &(&str, Value, Value)| json!({ "field": field, "asked": requested, "used": used, "why": "<string>" });
    let expected: Vec<Value> = expected.iter().map(adjustment).collect();
    assert_shape(&record["adjustments"], expected.into());
}

async fn a_size_replaced_by_the_nearest_is_an_adjustment(backend: Backend) {
    let (mut gateway, fake) = prepare(backend, Provider::OpenAi, "gpt-image-2-official").await;
    gateway.start_server().await;
    let client = gateway.unlimited_client().await;
    let body = json!({
        "model": "gpt-image-2-official", "prompt": "a pier", "size": "1881x836", "colour": "blue",
    });
    let record = client.generate(&body).await;
    // The adjustments of the family come first.
    let colour = ("colour", json!("blue"), Value::Null);
    let size = ("size", json!("1881x836"), json!("1536x512"));
    check_adjustments(&record, &[colour, size]);
    assert_eq!(fake.requests()[0].body["size"], "1536x512");
    gateway.close().await;
}

async fn omitted_fields_are_adjustments(backend: Backend) {
    let (mut gateway, _fake) = prepare(backend, Provider::Xai, "native-v3").await;
    gateway.start_server().await;
    let client = gateway.unlimited_client().await;
    let body = json!({
        "model": "native-v3", "input": "The tide is coming in.", "speed": 3.5, "instructions": "whisper",
        "external_task_id": "mine-1",
    });
    let mut record = client.run("/v1/audio/speech", &body).await;
    let list = record["adjustments"].as_array_mut().unwrap();
    list.sort_by_key(|one| one["field"].to_string());
    let instructions = ("instructions", json!("whisper"), Value::Null);
    let speed = ("speed", json!(3.5), json!(1.5));
    check_adjustments(&record, &[instructions, speed]);
    gateway.close().await;
}

async fn adjustments_survive_a_crash(backend: Backend) {
    let (mut gateway, fake) = prepare(backend, Provider::Ark, "seedance-1.0-pro").await;
    gateway.crash_at("run.after_provider_job_id");
    assert!(gateway.start_to_crash().await, "{}", gateway.log_tail());
    let client = gateway.unlimited_client().await;
    // Text in the prompt that this provider would read as parameters.
    let body = json!({
        "model": "seedance-1.0-pro", "prompt": "a pier --dur 12 at dusk", "duration": 2, "resolution": "480p",
    });
    let path = "/v1/video/generations";
    client.try_post_once(path, "one-key", &body).await;
    gateway.wait_for_exit().await;
    gateway.crash_at("");
    gateway.start_server().await;
    let reply = client.try_post_once(path, "one-key", &body).await;
    let id = task_id(&reply.expect("a response").expect(200).json());
    let record = client.wait_for_end(&id).await;
    let prompt = ("prompt", json!("--dur 12"), Value::Null);
    check_adjustments(&record, &[prompt]);
    let posts = fake.requests().into_iter().filter(|r| r.method == "POST");
    assert_eq!(posts.count(), 1);
    gateway.close().await;
}

async fn fewer_images_than_requested_are_an_adjustment(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let record = client
        .generate(&images("a pier [[sandbox:partial=2]]", 4))
        .await;
    check_adjustments(&record, &[("n", json!(4), json!(2))]);
    let why = record["adjustments"][0]["why"].as_str();
    assert!(why.is_some_and(|why| why.contains("fewer")), "{record}");
    let record = client.generate(&images("a pier", 2)).await;
    assert_eq!(record.get("adjustments"), None, "{record}");
    gateway.close().await;
}
