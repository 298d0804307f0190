//! Results that are downloaded from a provider.

use futures_util::future::join_all;
use serde_json::json;
use tollgate_fakes::{Options, Provider, start};

use crate::harness::*;

on_sqlite!(a_download_that_is_cut_off_is_tried_seven_times);

const IMAGES: &str = "/v1/images/generations";

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
        let config = format!(
            "[[channel]]\nname = \"up\"\nkind = \"{}\"\nbase_url = \"{}\"\napi_keys = [\"up-key\"]\npoll_ms = 50\nmodels = [{}]\n",
            provider.name(),
            fake.base_url(),
            body["model"],
        );
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
