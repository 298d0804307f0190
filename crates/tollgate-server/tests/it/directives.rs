//! The sandbox's directives for pictures, seen from outside, and the review of prompts.

use serde_json::{Value, json};

use crate::gate::{Backend, Gate, Setup, on_both, on_one, status};

on_both!(a_hanging_task_times_out);
on_one!(directives_do_what_they_say, prompts_are_reviewed);

fn order(prompt: &str) -> Value {
    json!({ "model": "grok-imagine-1.0-partner", "prompt": prompt })
}

async fn directives_do_what_they_say(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    let mut tasks = Vec::new();
    for (prompt, ends) in [
        ("[[sandbox:fail]]", "provider_error"),
        ("[[sandbox:fail=1]] a mill", ""),
        ("[[sandbox:fail=3]] a mill", ""),
        ("[[sandbox:partial=0]]", "provider_error"),
        ("[[sandbox:moderated]]", "moderated"),
        ("[[sandbox:status=400]]", "invalid_request"),
        ("[[sandbox:status=404]]", "provider_error"),
        ("[[sandbox:status=429]]", "provider_error"),
        ("[[sandbox:status=500]]", "provider_error"),
        ("[[sandbox:status=500]][[sandbox:fail=2]] a mill", ""),
        ("[[sandbox:delay=50]][[sandbox:fail]]", "provider_error"),
        ("[[sandbox:unheard-of]] and [[sandbox:fail=x]]", ""),
    ] {
        tasks.push((prompt, ends, client.submit(&order(prompt)).await));
    }
    for (prompt, ends, id) in tasks {
        let record = client.ended(&id).await;
        let expected = if ends.is_empty() {
            "completed"
        } else {
            "failed"
        };
        assert_eq!(status(&record), expected, "{prompt}: {record}");
        if !ends.is_empty() {
            assert_eq!(record["error"]["code"], ends, "{prompt}: {record}");
            assert!(!record["error"]["message"].as_str().unwrap().is_empty());
        }
    }
    // Progress is told on the way.
    let id = client.submit(&order("[[sandbox:delay=1500]]")).await;
    let seen = crate::gate::until("progress", async || {
        let progress = client.task(&id).await["progress"].as_i64().unwrap();
        (progress > 0).then_some(progress)
    })
    .await;
    assert!(seen < 100, "{seen}");
    assert_eq!(client.ended(&id).await["progress"], 100);
    gate.close().await;
}

async fn a_hanging_task_times_out(backend: Backend) {
    let gate = Setup::new(backend)
        .config("[time_limits]\nimage_s = 1\n[price.\"grok-imagine-1.0-partner\"]\nper_image = 1\n")
        .start()
        .await;
    let client = gate.somebody_with("payer", &["--balance", "2"]).await;
    let hanging = client.submit(&order("[[sandbox:hang]]")).await;
    let slow = client.submit(&order("[[sandbox:delay=60000]]")).await;
    assert_eq!(client.purse().await, (0.0, 0.0));
    for id in [hanging, slow] {
        let record = client.ended(&id).await;
        assert_eq!(
            (status(&record), &record["error"]["code"]),
            ("failed", &json!("timeout"))
        );
        assert_eq!(record["cost"], 0.0);
    }
    assert_eq!(client.purse().await, (2.0, 0.0));
    gate.close().await;
}

async fn prompts_are_reviewed(backend: Backend) {
    let gate = Setup::new(backend)
        .config("[safety]\npatterns = [\"forbidden fruit\"]\nfamilies = [\"imagen-4\"]\n")
        .start()
        .await;
    let client = gate.somebody().await;
    let order = |model: &str, prompt: &str| json!({ "model": model, "prompt": prompt });
    for (model, prompt) in [
        ("gpt-image-2-official", "[[sandbox:moderated]]"),
        ("gpt-image-2-official", "a Forbidden  FRUIT"),
        ("imagen-4.0-partner", "the forbidden fruit"),
    ] {
        let reply = client.order(&order(model, prompt)).await;
        let message = reply.error(400, "invalid_request_error");
        assert!(
            message.starts_with("prompt rejected by safety review"),
            "{message}"
        );
    }
    let tasks = client.get("/v1/tasks").await.json();
    assert_eq!(tasks["data"], json!([]), "refused before anything is taken");
    // Families without a review leave it to the provider.
    client
        .make(&order("grok-imagine-1.0-partner", "the forbidden fruit"))
        .await;
    let id = client
        .submit(&order("grok-imagine-1.0-partner", "[[sandbox:moderated]]"))
        .await;
    let error = client.ended(&id).await["error"].clone();
    assert_eq!(error["code"], "moderated");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.starts_with("prompt rejected by safety review"),
        "{message}"
    );
    gate.close().await;
}
