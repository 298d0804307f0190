//! `tollgate reconcile` compares the gateway's tokens with the provider's.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tollgate_fakes::{Options, Scenario};

use super::charges::prices;
use super::format::Format;
use super::providers::{AllProviders, all_models};
use super::request::ChatRequest;
use crate::harness::*;

on_both!(tokens_are_compared_with_the_usage_of_the_provider);

async fn chat(client: &Client, model: &str, stream: bool) {
    let request = ChatRequest::of_text(Format::Chat, model, stream, "tell me of the sea");
    let path = Format::Chat.vendor_path(model, stream);
    client.open(&path, &request.body).await.text().await;
}

async fn tokens_are_compared_with_the_usage_of_the_provider(backend: Backend) {
    let (mut config, fakes) =
        AllProviders::start_fakes(&prices(&all_models()), Options::default()).await;
    for (name, key) in [
        ("openai-chat", "sk-admin-1"),
        ("openai-responses", "sk-ordinary"),
        ("anthropic", "sk-ant-admin-1"),
    ] {
        let line = format!("name = \"{name}\"\n");
        config = config.replace(&line, &format!("{line}admin_key = \"{key}\"\n"));
    }
    let gateway = Setup::new(backend).config(&config).start().await;
    let client = gateway.funded_client("1000").await;
    for model in ["gpt-4o", "claude-sonnet-4-5-20250929", "gemini-2.5-flash"] {
        chat(&client, model, false).await;
        chat(&client, model, true).await;
    }
    // The usage API returns two days in two pages.
    let day = |days: i64| {
        let time = Timestamp::now() + SignedDuration::from_hours(24 * days);
        time.strftime("%Y-%m-%d").to_string()
    };
    let (from, to) = (day(-1), day(1));
    let period = ["--from", from.as_str(), "--to", to.as_str()];
    let reconcile = async |channel: &str| {
        let command = [&["reconcile", channel][..], &period[..]].concat();
        let rows = gateway.cli_json(&command).await;
        assert_eq!(rows.as_array().unwrap().len(), 1, "{channel}: {rows}");
        rows[0].clone()
    };
    for (channel, model) in [
        ("openai-chat", "gpt-4o"),
        ("anthropic", "claude-sonnet-4-5"),
    ] {
        let row = reconcile(channel).await;
        assert_eq!(
            (&row["model"], &row["chats"]),
            (&json!(model), &json!(2)),
            "{row}"
        );
        assert!(
            row["input"].as_i64() > Some(100) && row["output"].as_i64() > Some(10),
            "{row}"
        );
        assert_eq!(row["input"], row["provider_input"], "{row}");
        assert_eq!(row["output"], row["provider_output"], "{row}");
        assert_eq!(
            (&row["drift"], &row["estimated"]),
            (&json!(0.0), &json!(0)),
            "{row}"
        );
    }
    let row = reconcile("gemini").await;
    assert_eq!(
        (&row["chats"], &row["provider_input"]),
        (&json!(2), &Value::Null),
        "{row}"
    );
    // The provider did not send token counts with this response.
    fakes[0].queue(Scenario::NoUsage);
    chat(&client, "gpt-4o", false).await;
    let row = reconcile("openai-chat").await;
    assert_eq!(
        (&row["chats"], &row["estimated"]),
        (&json!(3), &json!(1)),
        "{row}"
    );
    let drift = row["drift"].as_f64().unwrap();
    assert!(drift < -0.01, "{row}");
    let name = "tollgate_reconcile_drift_ratio{channel=\"openai-chat\",model=\"gpt-4o\"}";
    let metric = gateway.metric(name).await;
    assert!((metric - drift).abs() < 1e-9, "{metric} {row}");
    for (channel, from, message) in [
        (
            "openai-responses",
            from.as_str(),
            "this API needs an admin key",
        ),
        (
            "other",
            from.as_str(),
            "there is no channel \"other\"; there are: openai-chat",
        ),
        (
            "gemini",
            "2020-01-01",
            "--to must be from 0 to 365 days after --from",
        ),
    ] {
        let failed = gateway
            .cli(&["reconcile", channel, "--from", from, "--to", &to])
            .await;
        assert_eq!(failed.code, 1, "{}", failed.stdout);
        assert!(failed.stderr.contains(message), "{}", failed.stderr);
        assert!(!failed.stderr.contains("sk-"), "{}", failed.stderr);
    }
    gateway.close().await;
}
