//! A storage folder that cannot be written to is the gateway's fault, not the provider's: results wait for it, no provider is called again, and
//! clients immediately get an error with `retry-after`.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::json;
use tokio::process::Command;
use tollgate_fakes::{Fake, Options, Provider, start};

use crate::harness::images::{data_uri, png};
use crate::harness::priced_images::{PRICES, images};
use crate::harness::{
    Backend, ChannelConfig, Setup, TestGateway, on_both, on_sqlite, status, task_id, until,
    until_true,
};

on_both!(results_wait_for_the_storage_and_are_generated_once);
on_sqlite!(
    submissions_with_files_get_a_retry_after,
    reads_are_served_if_the_disk_is_full_at_the_start,
);

const TASKS: usize = 6;
const PRICE: f64 = 0.5;
/// Longer than the sum of the pauses between an attempt's retries.
const OUTAGE: Duration = Duration::from_secs(3);

/// A gateway with a channel of images, which are in the provider's response, and one of videos, to which the response links.
async fn start_gateway(backend: Backend) -> (TestGateway, Fake, Fake) {
    let images = start(Provider::OpenAi, Options::default()).await.unwrap();
    let videos = start(Provider::Ark, Options::default()).await.unwrap();
    let channel = |kind: &str, url: &str, model: &str| {
        let channel = ChannelConfig::new(kind, kind).url(url);
        let channel = channel.keys(&["sk-fake"]).models(&[model]);
        channel.lines("poll_ms = 100").text()
    };
    let config = [
        channel("openai", &images.base_url(), "gpt-image-2-official"),
        channel("ark", &videos.base_url(), "seedance-1.0-pro"),
        format!("[price.\"gpt-image-2-official\"]\nper_image = {PRICE}\n"),
        format!("[price.\"seedance-1.0-pro\"]\nper_video = {PRICE}\n"),
    ];
    let gateway = Setup::new(backend).config(&config.concat()).start().await;
    (gateway, images, videos)
}

/// The folder to which every file is written first. Without it nothing can be stored.
struct TemporaryFolder {
    path: PathBuf,
    away: PathBuf,
}

impl TemporaryFolder {
    fn take_away(gateway: &TestGateway) -> Self {
        let files = gateway.data_dir().join("files");
        let (path, away) = (files.join("tmp"), files.join("tmp-away"));
        std::fs::rename(&path, &away).unwrap();
        Self { path, away }
    }

    fn put_back(self) {
        std::fs::rename(self.away, self.path).unwrap();
    }
}

fn submissions(fake: &Fake) -> usize {
    let requests = fake.requests();
    requests.iter().filter(|seen| seen.method == "POST").count()
}

async fn results_wait_for_the_storage_and_are_generated_once(backend: Backend) {
    let (gateway, images, videos) = start_gateway(backend).await;
    let client = gateway.user_client("customer", &["--balance", "100"]).await;
    let folder = TemporaryFolder::take_away(&gateway);
    let image = json!({ "model": "gpt-image-2-official", "prompt": "a pier", "size": "1:1" });
    let video = json!({
        "model": "seedance-1.0-pro", "prompt": "a pier", "duration": 2, "aspect_ratio": "1:1", "resolution": "480p",
    });
    let mut ids = Vec::new();
    for _ in 0..TASKS / 2 {
        ids.push(client.submit(&image).await);
        let receipt = client.post("/v1/video/generations", &video).await;
        ids.push(task_id(&receipt.expect(200).json()));
    }
    until("the storage to be missed", async || {
        (gateway.anonymous().get("/readyz").await.status == 503).then_some(())
    })
    .await;
    tokio::time::sleep(OUTAGE).await;
    for id in &ids {
        let record = client.task(id).await;
        assert!(
            !["completed", "failed"].contains(&status(&record)),
            "{record}"
        );
    }
    assert!(submissions(&images) + submissions(&videos) <= TASKS);

    folder.put_back();
    for id in &ids {
        let record = client.wait_for_end(id).await;
        assert_eq!(status(&record), "completed", "{record}");
    }
    assert_eq!(submissions(&images), TASKS / 2, "each was paid for once");
    assert_eq!(submissions(&videos), TASKS / 2, "each was paid for once");
    assert_eq!(client.balances().await, (100.0 - 6.0 * PRICE, 6.0 * PRICE));
    gateway.anonymous().get("/readyz").await.expect(200);
    gateway.close().await;
}

async fn submissions_with_files_get_a_retry_after(backend: Backend) {
    let gateway = Setup::new(backend).config(PRICES).start().await;
    let client = gateway.user_client("customer", &["--balance", "100"]).await;
    let folder = TemporaryFolder::take_away(&gateway);
    let mut body = images("a pier", 1);
    body["image_urls"] = json!([data_uri("image/png", &png(64, 64))]);
    let reply = client.post_image(&body).await;
    assert_eq!(reply.header("retry-after"), "5");
    reply.error(503, "unavailable");
    folder.put_back();
    let id = client.submit(&body).await;
    assert_eq!(status(&client.wait_for_end(&id).await), "completed");
    gateway.close().await;
}

async fn reads_are_served_if_the_disk_is_full_at_the_start(backend: Backend) {
    let (mut gateway, client) = TestGateway::with_config(backend, PRICES).await;
    let done = client.generate(&images("a pier", 1)).await;
    let waiting = client
        .submit(&images("a quay [[sandbox:delay=3000]]", 1))
        .await;
    client.wait_for_start(&waiting).await;
    gateway.kill().await;
    // The limit on file sizes is the size of the write-ahead log, so that no commit can append to it.
    let wal = std::fs::metadata(gateway.data_dir().join("tollgate.db-wal"));
    let full = format!("--fsize={}:unlimited", wal.unwrap().len());
    let ignore_the_signal = ["sh", "-c", "trap '' XFSZ; exec \"$0\" \"$@\""];
    let arguments = [&[full.as_str()], &ignore_the_signal[..]].concat();
    let command = gateway.serve_command_under("prlimit", &arguments);
    gateway.start_command(command).await;
    let anonymous = gateway.anonymous();
    anonymous.get("/healthz").await.expect(200);
    anonymous.get("/readyz").await.expect(503);
    client.get("/v1/tasks").await.expect(200);
    client.get("/v1/user/balance").await.expect(200);
    assert_eq!(
        client.task(done["id"].as_str().unwrap()).await["cost"],
        done["cost"]
    );
    let reply = client.post_image(&images("a mole", 1)).await;
    assert_eq!(reply.header("retry-after"), "5");
    reply.error(503, "unavailable");
    let mut free = Command::new("prlimit");
    free.args([
        "--pid",
        &gateway.pid().to_string(),
        "--fsize=unlimited:unlimited",
    ]);
    assert!(free.status().await.unwrap().success());
    until_true("/readyz", async || {
        anonymous.get("/readyz").await.status == 200
    })
    .await;
    assert_eq!(status(&client.wait_for_end(&waiting).await), "completed");
    gateway.close().await;
}
