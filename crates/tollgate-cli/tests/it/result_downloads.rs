//! Results that are downloaded from a provider.

use std::net::SocketAddr;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tollgate_fakes::{Fake, Options, Provider, start};

use crate::harness::*;

on_sqlite!(
    a_download_that_is_cut_off_is_tried_seven_times,
    a_slow_host_leaves_permits_for_downloads_to_other_hosts,
);

const IMAGES: &str = "/v1/images/generations";

/// The configuration of a channel for one model of a fake.
fn channel(name: &str, provider: Provider, fake: &Fake, model: &Value) -> String {
    let channel = ChannelConfig::new(name, provider.name()).url(&fake.base_url());
    let channel = channel.keys(&["up-key"]).lines("poll_ms = 50");
    channel.models(&[model.as_str().unwrap()]).text()
}

async fn a_download_that_is_cut_off_is_tried_seven_times(backend: Backend) {
    let video = json!({ "model": "seedance-1.0-pro", "duration": 2, "aspect_ratio": "1:1", "resolution": "480p" });
    // The cases run side by side, because each waits between its attempts.
    let cases = [
        (
            Provider::Ark,
            IMAGES,
            json!({ "model": "doubao-seedance-4-5" }),
        ),
        (Provider::Ark, "/v1/video/generations", video),
        (Provider::OpenAi, "/v1/videos", json!({ "model": "sora-2" })),
        (
            Provider::Xai,
            IMAGES,
            json!({ "model": "grok-imagine-1.0-partner" }),
        ),
    ];
    let downloads = cases.map(|(provider, path, mut body)| async move {
        let fake = start(provider, Options::default()).await.unwrap();
        let config = channel("up", provider, &fake, &body["model"]);
        let (gateway, client) = TestGateway::with_config(backend, &config).await;
        body["prompt"] = "a pier [[fake:reset-mid-body@file]]".into();
        let receipt = client.post(path, &body).await.expect(200).json();
        let record = client.wait_for_end(&task_id(&receipt)).await;
        assert_eq!(status(&record), "failed", "{record}");
        assert_eq!(record["error"]["code"], "provider_error", "{record}");
        let requests = fake.requests();
        let downloads = requests.iter().filter(|seen| {
            seen.method == "GET"
                && (seen.path.contains("_files") || seen.path.ends_with("/content"))
        });
        assert_eq!(downloads.count(), 7, "{} {path}", provider.name());
        let submissions = requests.iter().filter(|seen| seen.method == "POST");
        assert_eq!(submissions.count(), 1, "{} {path}", provider.name());
        gateway.close().await;
    });
    join_all(downloads).await;
}

async fn a_slow_host_leaves_permits_for_downloads_to_other_hosts(backend: Backend) {
    let slow = start(Provider::Xai, Options::default()).await.unwrap();
    // Another host: ports make no difference.
    let elsewhere = Options {
        address: SocketAddr::from(([127, 0, 0, 2], 0)),
        ..Options::default()
    };
    let fast = start(Provider::Ark, elsewhere).await.unwrap();
    // A byte every five seconds: these downloads do not end.
    let endless =
        json!({ "model": "grok-imagine-1.0-partner", "prompt": "a pier [[fake:drip=5000@file]]" });
    let short = json!({ "model": "doubao-seedance-4-5", "prompt": "a pier" });
    let config = [
        "workers.downloads = 2\nfairness.reserve_percent = 50\n".to_owned(),
        channel("slow", Provider::Xai, &slow, &endless["model"]),
        channel("fast", Provider::Ark, &fast, &short["model"]),
    ];
    let (gateway, client) = TestGateway::with_config(backend, &config.concat()).await;
    let mut waiting = Vec::new();
    for _ in 0..3 {
        waiting.push(client.submit(&endless).await);
    }
    let downloads = || {
        let requests = slow.requests();
        let files = requests.iter().filter(|seen| seen.path.contains("_files"));
        files.count()
    };
    until_true("the slow host to have generated all", async || {
        let requests = slow.requests();
        let calls = requests.iter().filter(|seen| seen.method == "POST");
        calls.count() == 3 && downloads() > 0 && slow.open_streams() == downloads()
    })
    .await;
    client.generate(&short).await;
    assert_eq!(downloads(), 1, "the other results wait for its permit");
    for id in &waiting {
        client.cancel(id).await.expect(200);
    }
    gateway.close().await;
}
