//! Chats of customers: each is either complete and charged for the usage that it reports, or cut off and charged for no more than it can have used.

use serde_json::{Value, json};

use super::observations::{Observations, count};
use crate::http::{Client, HttpRequest, HttpResponse};
use crate::rng::Rng;

/// The price of an input token of the model, in billionths; [`super::PRICES`] configures the same for the gateway.
const INPUT: i64 = 1_250;
const OUTPUT: i64 = 10_000;
/// Maximum completion tokens.
const CAP: i64 = 90;
/// Upper bound of the prompt tokens.
const PROMPT: i64 = 200;

/// Sends a chat and records its cost.
pub(super) async fn chat(
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
        "max_completion_tokens": CAP,
        "stream": stream,
        "stream_options": stream.then(|| json!({ "include_usage": true })),
    });
    count(&observations.counts.chats);
    let request = HttpRequest::json(format!("http://{address}/v1/chat/completions"), &body);
    let answer = client.send(key, request).await;
    let usage = match &answer {
        Ok(answer) if answer.status == 200 => usage(answer, stream),
        Ok(answer) if matches!(answer.status.as_u16(), 402 | 429) => return,
        Ok(answer) if matches!(answer.status.as_u16(), 502..=504) => None,
        Ok(answer) => {
            observations.violation(format!("chat {body}: {}", answer.describe()));
            None
        }
        Err(_) => None,
    };
    match usage {
        Some(tokens) => {
            count(&observations.counts.chats_complete);
            observations.chatted(account, cost(tokens), 0);
        }
        None => {
            count(&observations.counts.chats_cut_off);
            observations.chatted(account, 0, PROMPT * INPUT + CAP * OUTPUT);
        }
    }
}

/// The cost of a complete response by its `usage`, in billionths; `None` if its end is missing.
pub(crate) fn cost_of(answer: &HttpResponse, stream: bool) -> Option<i64> {
    usage(answer, stream).map(cost)
}

fn cost([prompt, completion]: [i64; 2]) -> i64 {
    prompt * INPUT + completion * OUTPUT
}

/// Prompt and completion tokens of the `usage` of a complete response; `None` if its end is missing.
fn usage(answer: &HttpResponse, stream: bool) -> Option<[i64; 2]> {
    let record: Value = if stream {
        let text = String::from_utf8_lossy(&answer.body);
        let text = text.trim_end().strip_suffix("data: [DONE]")?;
        let last = text.rsplit("data: ").next()?;
        serde_json::from_str(last.trim()).ok()?
    } else {
        answer.json()
    };
    let tokens = |name| record["usage"][name].as_i64();
    Some([tokens("prompt_tokens")?, tokens("completion_tokens")?])
}
