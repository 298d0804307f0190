//! A task's time is over when it is over, whatever has become of its channel.

use serde_json::json;

use crate::gate::{Backend, Setup, on_both, status, until};

on_both!(tasks_without_a_channel_end_in_time);

const MODEL: &str = "grok-imagine-1.0-partner";

async fn tasks_without_a_channel_end_in_time(backend: Backend) {
    let config = |model: &str| {
        format!(
            "[price.\"{MODEL}\"]\nper_image = 1\n[time_limits]\nimage_s = 4\n\
             [[channel]]\nname = \"only\"\nkind = \"sandbox\"\nmax_concurrency = 1\nmodels = [\"{model}\"]\n"
        )
    };
    let gate = Setup::new(backend).config(&config(MODEL)).start().await;
    let client = gate.somebody_with("payer", &["--balance", "10"]).await;
    let order = |prompt: &str| json!({ "model": MODEL, "prompt": prompt });
    // One has the channel's only seat, the other waits for it.
    let seated = client.submit(&order("[[sandbox:hang]]")).await;
    client.started(&seated).await;
    let waiting = client.submit(&order("a mill")).await;
    gate.set_config(&config("seedream-like-nothing"));
    gate.signal("HUP").await;
    let taken = "channels and prices were read again";
    until(taken, async || gate.log().contains(taken).then_some(())).await;
    for id in [seated, waiting] {
        let record = client.ended(&id).await;
        assert_eq!(status(&record), "failed", "{record}");
        assert_eq!(record["error"]["code"], "timeout", "{record}");
    }
    assert_eq!(client.purse().await, (10.0, 0.0));
    gate.close().await;
}
