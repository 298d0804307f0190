//! Commands of chats.

use tollgate_core::id;
use tollgate_store::{ChatEnd, ChatHold, NewChat, SettleOutcome, TokenCounts};

use super::{Fixture, NODE, Step, ok, outcome, rejected};
use crate::fixtures::{amount, chat, chat_end};

impl Fixture<'_> {
    /// - `hold CHAT KEY PRICES TOKENS [node=]` holds the worst case of a new chat.
    /// - `settle CHAT [KEY PRICES] TOKENS [end=failed|lost] [charged_to=KEY]` settles its hold, or a new chat without one.
    /// - `heartbeat NODE UNTIL`; `orphans NODE` shows how many holds of dead nodes are released.
    ///
    /// Prices and tokens are `INPUT/OUTPUT` or `INPUT/CACHED_INPUT/CACHE_WRITE/OUTPUT/REASONING`, prices per million.
    pub(super) async fn chat_step(&mut self, step: &Step<'_>) -> String {
        let (first, last) = (step.args[0], *step.args.last().unwrap());
        match step.command {
            "hold" => {
                let new = self.new_chat(step);
                let node = step.option("node").unwrap_or(NODE);
                let held = self.store.hold_chat(&new, &tokens(last), node).await;
                self.chats.insert(first.to_owned(), (new, ChatHold::Stored));
                outcome(held, |held| {
                    held.map_or_else(rejected, |held| held.to_string())
                })
            }
            "settle" => {
                if step.args.len() > 2 {
                    let new = self.new_chat(step);
                    self.chats.insert(first.to_owned(), (new, ChatHold::None));
                }
                let (mut new, hold) = self.chats[first].clone();
                if let Some(charged_to) = step.option("charged_to") {
                    new.user_id.clone_from(&self.account(charged_to).user_id);
                    new.key_id.clone_from(&self.account(charged_to).key_id);
                }
                let end = end(step.option("end"), tokens(last), new.opened_at + 1);
                let settled = self.store.settle_chat(new, &hold, end).await;
                outcome(settled, |settled| match settled {
                    SettleOutcome::Settled { cost } => cost.to_string(),
                    SettleOutcome::SettledInDebt { cost, debt } => format!("{cost} debt {debt}"),
                    SettleOutcome::AlreadyReleased => "released".to_owned(),
                })
            }
            "heartbeat" => outcome(self.store.heartbeat(first, super::time(last)).await, ok),
            _ => {
                let released = self.store.release_orphaned_chats(step.now(), first).await;
                outcome(released, |count| count.to_string())
            }
        }
    }

    fn new_chat(&self, step: &Step<'_>) -> NewChat {
        let mut new = chat(self.account(step.args[1]), "0", "0");
        let prices = five(step.args[2]).map(amount);
        let [input, cached_input, cache_write, output, reasoning] = prices;
        (new.prices.input, new.prices.output) = (input, output);
        (new.prices.cached_input, new.prices.cache_write) = (cached_input, cache_write);
        new.prices.reasoning = reasoning;
        (new.id, new.opened_at) = (id::chat_id(step.now()), step.now());
        new
    }
}

fn end(named: Option<&str>, tokens: TokenCounts, ended_at: i64) -> ChatEnd {
    let done = ChatEnd {
        ended_at,
        ..chat_end(tokens)
    };
    match named {
        None => done,
        Some("lost") => ChatEnd {
            outcome: ChatEnd::OUTCOME_LOST,
            ..done
        },
        Some(_) => ChatEnd {
            outcome: "failed",
            channel: None,
            upstream_model: None,
            attempts: r#"[{"channel":"main","status":500}]"#.to_owned(),
            dropped: None,
            ..done
        },
    }
}

/// Counts of tokens.
fn tokens(text: &str) -> TokenCounts {
    let counts = text.split('/').map(|count| count.parse().unwrap());
    match *counts.collect::<Vec<_>>() {
        [input, output] => crate::fixtures::tokens(input, output),
        [input, cached_input, cache_write, output, reasoning] => TokenCounts {
            input,
            cached_input,
            cache_write,
            output,
            reasoning,
        },
        _ => panic!("{text} are no tokens"),
    }
}

/// Five prices; of two, the input's and the output's.
fn five(text: &str) -> [&str; 5] {
    match *text.split('/').collect::<Vec<_>>() {
        [input, output] => [input, input, input, output, output],
        [a, b, c, d, e] => [a, b, c, d, e],
        _ => panic!("{text} are no prices"),
    }
}
