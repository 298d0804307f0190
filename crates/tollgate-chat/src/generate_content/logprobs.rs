//! Converts log probabilities between `logprobsResult` and the hub's form, which is that of chat-completions.

use serde_json::{Value, json};

/// Reads `logprobsResult`. `None` if it has no chosen candidates.
pub(crate) fn read_logprobs(result: &Value) -> Option<Value> {
    let chosen = result.get("chosenCandidates")?.as_array()?;
    let tops = result.get("topCandidates").and_then(Value::as_array);
    let content: Vec<Value> = chosen
        .iter()
        .enumerate()
        .map(|(at, token)| {
            let others = tops.and_then(|tops| tops.get(at)?.get("candidates")?.as_array());
            let others: Vec<Value> = others.into_iter().flatten().map(read_token).collect();
            let mut token = read_token(token);
            token["top_logprobs"] = Value::Array(others);
            token
        })
        .collect();
    Some(json!({"content": content, "refusal": null}))
}

fn read_token(token: &Value) -> Value {
    let text = token["token"].as_str().unwrap_or_default();
    let bytes: Vec<u8> = text.bytes().collect();
    json!({"token": text, "logprob": token["logProbability"].as_f64().unwrap_or(0.0), "bytes": bytes})
}

/// Writes `logprobsResult`. `None` if there is no content.
pub(crate) fn write_logprobs(value: &Value) -> Option<Value> {
    let content = value.get("content")?.as_array()?;
    let chosen: Vec<Value> = content.iter().map(write_token).collect();
    let tops: Vec<Value> = content
        .iter()
        .map(|token| {
            let others = token["top_logprobs"].as_array().into_iter().flatten();
            json!({"candidates": others.map(write_token).collect::<Vec<_>>()})
        })
        .collect();
    Some(json!({"topCandidates": tops, "chosenCandidates": chosen}))
}

fn write_token(token: &Value) -> Value {
    json!({"token": token["token"], "logProbability": token["logprob"]})
}
