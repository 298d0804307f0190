//! The sandbox's directives for images as clients see them, time limits, and the review of prompts.

use serde_json::{Value, json};

use crate::harness::*;

on_both!(hanging_tasks_time_out, tasks_without_a_channel_time_out);
on_sqlite!(
    directives_control_the_sandbox,
    prompts_that_match_a_safety_pattern_are_rejected
);

const MODEL: &str = "grok-imagine-1.0-partner";

fn image(prompt: &str) -> Value {
    json!({ "model": MODEL, "prompt": prompt })
}

async fn directives_control_the_sandbox(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    cases::check(&client, "sandbox_directives", &[]).await;
    // The record of a running task shows its progress.
    let id = client.submit(&image("[[sandbox:delay=1500]]")).await;
    let progress = until("progress", async || {
        let progress = client.task(&id).await["progress"].as_i64();
        progress.filter(|percent| *percent > 0)
    });
    assert!(progress.await < 100);
    assert_eq!(client.wait_for_end(&id).await["progress"], 100);
    gateway.close().await;
}

async fn check_timeouts(client: &Client, ids: [String; 2]) {
    for id in ids {
        let record = client.wait_for_end(&id).await;
        let error = json!({ "code": "timeout" });
        assert_has(
            &record,
            json!({ "status": "failed", "cost": 0.0, "error": error }),
        );
    }
    assert_eq!(client.balances().await, (2.0, 0.0));
}

async fn hanging_tasks_time_out(backend: Backend) {
    let config = format!("[time_limits]\nimage_s = 1\n[price.\"{MODEL}\"]\nper_image = 1\n");
    let gateway = Setup::new(backend).config(&config).start().await;
    let client = gateway.funded_client("2").await;
    let hanging = client.submit(&image("[[sandbox:hang]]")).await;
    let slow = client.submit(&image("[[sandbox:delay=60000]]")).await;
    assert_eq!(client.balances().await, (0.0, 0.0));
    check_timeouts(&client, [hanging, slow]).await;
    gateway.close().await;
}

async fn tasks_without_a_channel_time_out(backend: Backend) {
    let config = |model: &str| {
        format!(
            "[price.\"{MODEL}\"]\nper_image = 1\n[time_limits]\nimage_s = 3\n\
             [[channel]]\nname = \"only\"\nkind = \"sandbox\"\nmax_concurrency = 1\nmodels = [\"{model}\"]\n"
        )
    };
    let setup = Setup::new(backend).config(&config(MODEL));
    let gateway = setup.start().await;
    let client = gateway.funded_client("2").await;
    // One task holds the channel's only permit, the other one waits for it.
    let running = client.submit(&image("[[sandbox:hang]]")).await;
    client.wait_for_start(&running).await;
    let waiting = client.submit(&image("a mill")).await;
    let log_text = "channels and prices were reloaded";
    gateway
        .reload(&config("seedream-like-nothing"), log_text)
        .await;
    check_timeouts(&client, [running, waiting]).await;
    gateway.close().await;
}

async fn prompts_that_match_a_safety_pattern_are_rejected(backend: Backend) {
    let config = "[safety]\npatterns = [\"forbidden fruit\"]\nfamilies = [\"imagen-4\"]\n";
    let (gateway, client) = TestGateway::with_config(backend, config).await;
    let expected = "prompt rejected by safety review";
    for (model, prompt) in [
        ("gpt-image-2-official", "[[sandbox:moderated]]"),
        ("gpt-image-2-official", "a Forbidden  FRUIT"),
        ("imagen-4.0-partner", "the forbidden fruit"),
    ] {
        let body = json!({ "model": model, "prompt": prompt });
        let message = client.post_image(&body).await.rejected(400, expected);
        assert!(message.starts_with(expected), "{message}");
    }
    assert!(client.tasks().await.is_empty());
    // For families without a review, the gateway leaves the review to the provider.
    client.generate(&image("the forbidden fruit")).await;
    let id = client.submit(&image("[[sandbox:moderated]]")).await;
    let error = client.wait_for_end(&id).await["error"].clone();
    assert_eq!(error["code"], "moderated");
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with(expected), "{message}");
    gateway.close().await;
}
