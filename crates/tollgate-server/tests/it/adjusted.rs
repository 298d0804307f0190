//! What a provider is asked for otherwise than the client said: the record tells it, whatever happens in between.

use http::Method;
use http_body_util::Full;
use serde_json::{Value, json};
use tollgate_fakes::{Fake, Options, Provider, start};

use crate::gate::{Backend, Gate, Setup, on_both, on_one, status, task_id};

on_one!(the_nearest_size_is_told, what_is_left_out_is_told);
on_both!(a_ticket_keeps_what_was_told);

const VARIABLE: &str = "TOLLGATE_CRASH_AT";

/// A gateway, not started yet, whose one channel leads to a fake.
async fn shop(backend: Backend, provider: Provider, model: &str) -> (Gate, Fake) {
    let fake = start(provider, Options::default()).await.unwrap();
    let (kind, url) = (provider.name(), fake.base_url());
    let config = format!(
        "[[channel]]\nname = \"{kind}\"\nkind = \"{kind}\"\nbase_url = \"{url}\"\napi_keys = [\"access:hidden-half\"]\n\
         models = [\"{model}\"]\npoll_ms = 100\n"
    );
    // On SQLite a restarted gateway takes its tasks back at once.
    let setup = Setup::new(backend).config(&config);
    let gate = setup.env("TOLLGATE_LEASES__SECONDS", "1").prepare().await;
    (gate, fake)
}

/// The adjustments of a completed record, as `field: asked → used`.
fn adjusted(record: &Value) -> Vec<String> {
    assert_eq!(status(record), "completed", "{record}");
    let inner = record.get("data").unwrap_or(record);
    let all = inner["adjustments"].as_array().expect("adjustments");
    for one in all {
        assert!(one["why"].as_str().is_some_and(|why| !why.is_empty()));
    }
    let text = |a: &Value| {
        format!(
            "{}: {} → {}",
            a["field"].as_str().unwrap(),
            a["asked"],
            a["used"]
        )
    };
    all.iter().map(text).collect()
}

async fn the_nearest_size_is_told(backend: Backend) {
    let (mut gate, fake) = shop(backend, Provider::OpenAi, "gpt-image-2-official").await;
    gate.start_server().await;
    let client = gate.somebody().await;
    let order = json!({
        "model": "gpt-image-2-official", "prompt": "a pier", "size": "1881x836", "colour": "blue",
    });
    let record = client.make(&order).await;
    assert_eq!(
        adjusted(&record),
        [
            r#"colour: "blue" → null"#,
            r#"size: "1881x836" → "1536x512""#
        ],
        "the reader's own come first"
    );
    let asked = fake.requests();
    assert_eq!(asked[0].body["size"], "1536x512");
    gate.close().await;
}

async fn what_is_left_out_is_told(backend: Backend) {
    let (mut gate, _fake) = shop(backend, Provider::Xai, "native-v3").await;
    gate.start_server().await;
    let client = gate.somebody().await;
    let order = json!({
        "model": "native-v3", "input": "The tide is coming in.", "speed": 3.5, "instructions": "whisper",
        "external_task_id": "mine-1",
    });
    let receipt = client.post("/v1/audio/speech", &order).await.expect(200);
    let id = task_id(&receipt.json());
    let mut told = adjusted(&client.ended(&id).await);
    told.sort();
    assert_eq!(
        told,
        [r#"instructions: "whisper" → null"#, "speed: 3.5 → 1.5"]
    );
    gate.close().await;
}

async fn a_ticket_keeps_what_was_told(backend: Backend) {
    let (mut gate, fake) = shop(backend, Provider::Ark, "seedance-1.0-pro").await;
    gate.set_env(VARIABLE, "run.after_provider_job_id");
    assert!(gate.start_doomed().await, "{}", gate.last_words());
    let client = gate.somebody().await;
    // Words that this provider would read as parameters.
    let order = json!({
        "model": "seedance-1.0-pro", "prompt": "a pier --dur 12 at dusk", "duration": 2, "resolution": "480p",
    });
    let send = async || {
        let request = client.request(Method::POST, "/v1/video/generations");
        let request = request.header("content-type", "application/json");
        let request = request.header("idempotency-key", "the-one-order");
        let request = request.body(Full::from(order.to_string())).unwrap();
        client.try_send(request).await
    };
    send().await;
    gate.ended().await;
    gate.set_env(VARIABLE, "");
    gate.start_server().await;
    let receipt = send().await.expect("an answer").expect(200).json();
    let id = task_id(&receipt);
    let record = client.ended(&id).await;
    assert_eq!(adjusted(&record), [r#"prompt: "--dur 12" → null"#]);
    let submitted = fake.requests();
    let submitted = submitted.iter().filter(|seen| seen.method == "POST");
    assert_eq!(submitted.count(), 1);
    gate.close().await;
}
