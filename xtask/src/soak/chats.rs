//! Chats of a soak: each is answered to its end and charged for what it says that it took, or cut off and charged for no
//! more than it could take.

use serde_json::{Value, json};

use super::notes::{Notes, count};
use crate::dice::Dice;
use crate::http::{Answer, Ask, Client};

/// The price of a token of the model, in billionths; the site's settings say the same to the gateway.
const INPUT: i64 = 1_250;
const OUTPUT: i64 = 10_000;
/// Most tokens of a reply.
const CAP: i64 = 90;
/// More than any prompt here takes.
const PROMPT: i64 = 200;

/// What the chats of an account cost, in billionths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bill {
    /// Of those that were answered to the end.
    pub(super) known: i64,
    /// Of those that were cut off: this much at the most.
    pub(super) perhaps: i64,
}

/// Has a chat; notes what it costs.
pub(super) async fn chat(
    dice: &mut Dice,
    client: &Client,
    notes: &Notes,
    account: usize,
    key: &str,
    address: &str,
) {
    let stream = dice.once_in(2);
    let words = dice.below(60);
    let body = json!({
        "model": "gpt-5",
        "messages": [{ "role": "user", "content": format!("Tell me of the harbour. [[sandbox:words={words}]]") }],
        "max_completion_tokens": CAP,
        "stream": stream,
        "stream_options": stream.then(|| json!({ "include_usage": true })),
    });
    count(&notes.counts.chats);
    let ask = Ask::json(format!("http://{address}/v1/chat/completions"), &body);
    let answer = client.ask(key, ask).await;
    let usage = match &answer {
        Ok(answer) if answer.status == 200 => usage(answer, stream),
        Ok(answer) if matches!(answer.status.as_u16(), 402 | 429) => return,
        Ok(answer) if matches!(answer.status.as_u16(), 502 | 503) => None,
        Ok(answer) => {
            notes.violation(format!("chat {body}: {}", answer.describe()));
            None
        }
        Err(_) => None,
    };
    match usage {
        Some([prompt, completion]) => {
            notes.chatted(account, prompt * INPUT + completion * OUTPUT, 0);
        }
        None => {
            count(&notes.counts.chats_cut_off);
            notes.chatted(account, 0, PROMPT * INPUT + CAP * OUTPUT);
        }
    }
}

/// The tokens that a whole answer says it took; none where its end is missing.
fn usage(answer: &Answer, stream: bool) -> Option<[i64; 2]> {
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

impl Bill {
    /// Whether an account used what is right, its `tasks` having cost so much.
    pub(super) fn allows(&self, used: i64, tasks: i64) -> bool {
        let least = tasks + self.known;
        (least..=least + self.perhaps).contains(&used)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_cut_off_may_cost_something_and_the_rest_costs_what_it_says() {
        let bill = Bill {
            known: 10,
            perhaps: 5,
        };
        assert!(bill.allows(110, 100) && bill.allows(115, 100));
        assert!(!bill.allows(109, 100) && !bill.allows(116, 100));
    }
}
