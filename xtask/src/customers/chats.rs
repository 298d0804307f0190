//! Chats of customers: each is either complete and charged for the usage that it reports, or cut off and charged for no more than it can have used.

use serde_json::{Value, json};

use super::observations::{Observations, increment};
use crate::http::{Client, HttpRequest, HttpResponse};
use crate::rng::Rng;

/// The price of an input token of the model, in billionths; [`super::PRICES`] configures the same for the gateway.
const INPUT_PRICE: i64 = 1_250;
/// The price of an output token, in billionths.
const OUTPUT_PRICE: i64 = 10_000;
const MAX_COMPLETION_TOKENS: i64 = 90;
/// An upper bound of the prompt tokens of a chat.
const MAX_PROMPT_TOKENS: i64 = 200;

/// Sends a chat and records its cost.
pub(super) async fn send_chat(
    rng: &mut Rng,
    client: &Client,
    observations: &Observations,
    account: usize,
    key: &str,
    address: &str,
) {
    let stream = rng.one_in(2);
    let words = rng.below(60);
    let body = json!({
        "model": "gpt-5",
        "messages": [{ "role": "user", "content": format!("Tell me of the harbour. [[sandbox:words={words}]]") }],
        "max_completion_tokens": MAX_COMPLETION_TOKENS,
        "stream": stream,
        "stream_options": stream.then(|| json!({ "include_usage": true })),
    });
    increment(&observations.counts.chats);
    let request = HttpRequest::json(format!("http://{address}/v1/chat/completions"), &body);
    let response = client.send(key, request).await;
    let usage = match &response {
        Ok(response) if response.status == 200 => parse_usage(response, stream),
        Ok(response) if matches!(response.status.as_u16(), 402 | 429) => return,
        Ok(response) if matches!(response.status.as_u16(), 502..=504) => None,
        Ok(response) => {
            observations.record_violation(format!("chat {body}: {}", response.describe()));
            None
        }
        Err(_) => None,
    };
    match usage {
        Some(tokens) => {
            increment(&observations.counts.chats_complete);
            observations.add_chat_cost(account, cost_of_tokens(tokens), 0);
        }
        None => {
            increment(&observations.counts.chats_cut_off);
            observations.add_chat_cost(
                account,
                0,
                MAX_PROMPT_TOKENS * INPUT_PRICE + MAX_COMPLETION_TOKENS * OUTPUT_PRICE,
            );
        }
    }
}

/// The cost of a complete response by its `usage`, in billionths; `None` if its end is missing.
pub(crate) fn cost_of_chat(response: &HttpResponse, stream: bool) -> Option<i64> {
    parse_usage(response, stream).map(cost_of_tokens)
}

fn cost_of_tokens([prompt, completion]: [i64; 2]) -> i64 {
    prompt * INPUT_PRICE + completion * OUTPUT_PRICE
}

/// Prompt and completion tokens of the `usage` of a complete response; `None` if its end is missing.
fn parse_usage(response: &HttpResponse, stream: bool) -> Option<[i64; 2]> {
    let record: Value = if stream {
        let text = String::from_utf8_lossy(&response.body);
        let text = text.trim_end().strip_suffix("data: [DONE]")?;
        let last = text.rsplit("data: ").next()?;
        serde_json::from_str(last.trim()).ok()?
    } else {
        response.json()
    };
    let tokens = |name| record["usage"][name].as_i64();
    Some([tokens("prompt_tokens")?, tokens("completion_tokens")?])
}
