//! `tollgate import --from`: channels of LiteLLM, new-api and one-api as text for tollgate.toml.

use serde_json::{Value, json};

use crate::harness::*;

on_sqlite!(
    channels_of_litellm_are_imported,
    channels_of_new_api_and_one_api_are_imported,
    files_of_another_format_are_rejected,
);

const LITELLM: &str = include_str!("../import/litellm.yaml");
const NEW_API: &str = include_str!("../import/new-api.json");
const ONE_API: &str = include_str!("../import/one-api.jsonl");
/// Keys in the imported files: no message may contain one.
const SECRETS: [&str; 3] = ["sk-written-out", "sk-master", "postgres://"];

/// Imports a file; returns the record with the text.
async fn import(gateway: &TestGateway, from: &str, text: &str) -> Value {
    let file = gateway.dir().join("channels-of-another");
    std::fs::write(&file, text).unwrap();
    let file = file.display().to_string();
    let output = gateway
        .cli(&["import", &file, "--from", from, "--json"])
        .await;
    assert_eq!(output.code, 0, "{}", output.stderr);
    for secret in SECRETS {
        assert!(!output.stderr.contains(secret), "{}", output.stderr);
    }
    let record = output.json();
    // stderr, the record and the file name each item that is left out.
    for left_out in record["left_out"].as_array().unwrap() {
        let line = format!(
            "{}: {}",
            left_out["item"].as_str().unwrap(),
            left_out["reason"].as_str().unwrap()
        );
        assert!(output.stderr.contains(&line), "{line}");
        assert!(record["toml"].as_str().unwrap().contains(&line), "{line}");
    }
    record
}

/// Checks that these items are left out, each with a part of its reason.
fn check_left_out(record: &Value, expected: &[(&str, &str)]) {
    let left_out = record["left_out"].as_array().unwrap();
    for (item, reason) in expected {
        let found = left_out.iter().find(|left| left["item"] == *item);
        let found = found.unwrap_or_else(|| panic!("{item} in {left_out:#?}"));
        assert!(
            found["reason"].as_str().unwrap().contains(reason),
            "{found}"
        );
    }
    assert_eq!(left_out.len(), expected.len(), "{left_out:#?}");
}

/// The channels that the gateway reads from that text.
async fn channels(gateway: &mut TestGateway, record: &Value, variables: &[&str]) -> Vec<Value> {
    gateway.set_config(record["toml"].as_str().unwrap());
    for name in variables {
        gateway.set_env(name, "sk-of-the-environment");
    }
    let channels = gateway.cli_json(&["channel", "list"]).await;
    channels.as_array().unwrap().clone()
}

async fn channels_of_litellm_are_imported(backend: Backend) {
    let mut gateway = Setup::new(backend).prepare().await;
    let record = import(&gateway, "litellm", LITELLM).await;
    let names = [
        "openai",
        "openai-2",
        "anthropic",
        "azure",
        "deepseek",
        "hosted-vllm",
        "ollama",
    ];
    assert_eq!(record["channels"], json!(names));
    check_left_out(
        &record,
        &[
            ("model_list[1] (gpt-5): rpm", "keys and users"),
            ("model_list[1] (gpt-5): timeout", "first_byte_s"),
            ("model_list[1] (gpt-5): its prices", "a model has one price"),
            (
                "model_list[3] (claude-eu)",
                "no kind of channel for the provider bedrock",
            ),
            (
                "model_list[7] (text-embedding-3-large)",
                "no API of the mode embedding",
            ),
            ("model_list[8] (*)", "name them"),
            ("litellm_settings.drop_params", "only model_list"),
            ("litellm_settings.fallbacks", "not to another model"),
            ("router_settings.routing_strategy", "only model_list"),
            (
                "general_settings.master_key",
                "admin.key = \"env:LITELLM_MASTER_KEY\"",
            ),
            ("general_settings.database_url", "database.url"),
        ],
    );
    let toml = record["toml"].as_str().unwrap();
    for part in [
        "api_keys = [\"env:OPENAI_API_KEY\"]",
        "base_url = \"https://eu-resource.openai.azure.com/openai/v1\"",
        "{ name = \"own-model\", upstream = \"meta-llama/Llama-3.3-70B-Instruct\" }",
        "base_url = \"http://localhost:11434/v1\"",
        "[price.\"gpt-5\"]\ninput_per_million = 1.25\noutput_per_million = 10\n",
        "weight = 3",
        "max_concurrency = 20",
        "priority = 1",
        "[[model]]\nname = \"own-model\"\nlike = \"gpt-4o\"",
    ] {
        assert!(toml.contains(part), "{part} in\n{toml}");
    }
    let variables = [
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "AZURE_API_KEY",
        "DEEPSEEK_API_KEY",
    ];
    let read = channels(&mut gateway, &record, &variables).await;
    assert_eq!(read.len(), names.len(), "{read:#?}");
    // Written to a file: never over an existing one, and readable by its owner only.
    let out = gateway.dir().join("channels.toml").display().to_string();
    let file = gateway
        .dir()
        .join("channels-of-another")
        .display()
        .to_string();
    let write = ["import", &file, "--from", "litellm", "--out", &out];
    let written = gateway.cli(&write).await;
    assert!(
        written.stdout.starts_with("7 channels with "),
        "{written:?}"
    );
    assert_eq!(std::fs::read_to_string(&out).unwrap(), toml);
    gateway.cli(&write).await.check_failure("exists");
    gateway.set_config("");
    gateway.close().await;
}

async fn channels_of_new_api_and_one_api_are_imported(backend: Backend) {
    let mut gateway = Setup::new(backend).prepare().await;
    let record = import(&gateway, "new-api", NEW_API).await;
    assert_eq!(
        record["channels"],
        json!(["OpenAI-main", "Claude", "DeepSeek", "Kling", "Grok"])
    );
    check_left_out(
        &record,
        &[
            ("channel 1 (OpenAI main): its key number 2", "disabled"),
            ("channel 1 (OpenAI main): header_override", "headers"),
            ("channel 1 (OpenAI main): setting.proxy", "directly"),
            ("channel 3 (DeepSeek): group vip", "models"),
            ("channel 4 (Midjourney)", "type 2"),
            ("channel 5 (old)", "disabled"),
            ("Grok: model my grok", "without spaces"),
            ("Flux", "options.input"),
        ],
    );
    let toml = record["toml"].as_str().unwrap();
    for part in [
        "api_keys = [\"sk-written-out-1\", \"sk-written-out-3\"]",
        "{ name = \"gpt-4o\", upstream = \"gpt-4o-2024-11-20\" }",
        "base_url = \"https://api.deepseek.com/v1\"\napis = [\"chat-completions\"]",
        "api_keys = [\"ak-written-out:sk-written-out\"]",
        "base_url = \"https://api.x.ai/v1\"\napis = [\"chat-completions\"]",
        "name = \"grok-4\"\nlike = \"gpt-4o",
        "priority = 10",
    ] {
        assert!(toml.contains(part), "{part} in\n{toml}");
    }
    assert_eq!(channels(&mut gateway, &record, &[]).await.len(), 5);
    gateway.set_config("");
    let record = import(&gateway, "one-api", ONE_API).await;
    assert_eq!(record["channels"], json!(["Groq", "Gemini"]));
    check_left_out(&record, &[("channel 9 (Kimi)", "it has no key")]);
    let toml = record["toml"].as_str().unwrap();
    assert!(
        toml.contains("base_url = \"https://api.groq.com/openai/v1\""),
        "{toml}"
    );
    assert_eq!(channels(&mut gateway, &record, &[]).await.len(), 2);
    gateway.set_config("");
    gateway.close().await;
}

async fn files_of_another_format_are_rejected(backend: Backend) {
    let gateway = Setup::new(backend).prepare().await;
    let file = gateway.dir().join("file");
    let path = file.display().to_string();
    for (from, text, expected) in [
        ("litellm", "models: []", "model_list"),
        ("litellm", "model_list: [sk-written-out\n", "it is not YAML"),
        ("new-api", "{\"users\": []}", "rows of the table channels"),
        (
            "new-api",
            "[\"sk-written-out\"]",
            "rows of the table channels",
        ),
        ("one-api", "", "rows of the table channels"),
        (
            "one-api",
            "sk-written-out",
            "line 1, column 1: it is not JSON",
        ),
    ] {
        std::fs::write(&file, text).unwrap();
        let output = gateway.cli(&["import", &path, "--from", from]).await;
        assert!(
            !output.stderr.contains("sk-written-out"),
            "{}",
            output.stderr
        );
        output.check_failure(expected);
    }
    gateway.close().await;
}
