//! The model of chat requests.

use proptest::prelude::*;
use tollgate_core::{Amount, Millis, clock, id};
use tollgate_store::{ChatEnd, ChatHold, NewChat, SettleOutcome};

use super::{Account, Model};
use crate::fixtures::{NODE, chat, chat_end, hold, reserve, tokens};

#[derive(Debug, Clone)]
pub(super) enum Step {
    Hold {
        who: usize,
        prices: [i64; 2],
        worst: [u64; 2],
        /// Whether the hold must be stored on disk.
        stored: bool,
    },
    Settle(usize, [u64; 2]),
    /// Charges a chat without a hold.
    Charge {
        who: usize,
        prices: [i64; 2],
        used: [u64; 2],
    },
    /// Drops a chat's bill without an end.
    Drop(usize),
    /// The node that has all stored holds dies and restarts.
    Die,
}

pub(super) fn step() -> impl Strategy<Value = Step> {
    let who = 0..4usize;
    let prices = [0..9i64, 0..9i64];
    let count = || [0..9u64, 0..9u64];
    prop_oneof![
        8 => (who.clone(), prices.clone(), count(), any::<bool>())
            .prop_map(|(who, prices, worst, stored)| Step::Hold { who, prices, worst, stored }),
        1 => (0..40usize).prop_map(Step::Drop),
        5 => (0..40usize, count()).prop_map(|(pick, used)| Step::Settle(pick, used)),
        3 => (who, prices, count())
            .prop_map(|(who, prices, used)| Step::Charge { who, prices, used }),
        1 => Just(Step::Die),
    ]
}

/// The model's state of a request with a hold.
pub(super) struct Known {
    who: usize,
    chat: NewChat,
    prices: [i64; 2],
    held: i64,
    hold: ChatHold,
    /// The outcome of its end.
    ended: Option<SettleOutcome>,
}

/// The cost at prices in billionths per token.
fn cost(prices: [i64; 2], counts: [u64; 2]) -> i64 {
    prices[0] * counts[0].cast_signed() + prices[1] * counts[1].cast_signed()
}

fn outcome(cost: i64, debt: i64) -> SettleOutcome {
    let (cost, debt) = (Amount::from_nanos(cost), Amount::from_nanos(debt));
    match debt {
        Amount::ZERO => SettleOutcome::Settled { cost },
        debt => SettleOutcome::SettledInDebt { cost, debt },
    }
}

fn is_stored(hold: &ChatHold) -> bool {
    matches!(hold, ChatHold::Stored)
}

impl Account {
    /// Spends `due`; returns the part that neither balance nor quota covered, regardless of what other chats have reserved.
    fn take(&mut self, due: i64, now: Millis) -> i64 {
        let left = [self.balance_left(), self.quota_left()];
        let left = left.map(|left| left.map(|left| (left + self.reserved).max(0)));
        self.balance -= due;
        self.used += due;
        self.budget.spend(due, now);
        let debts = left.map(|left| left.map_or(0, |left| (due - left).max(0)));
        debts[0].max(debts[1])
    }
}

impl Model {
    pub(super) async fn heartbeat(&self) {
        let alive_until = self.now + clock::HOUR;
        self.store.heartbeat(NODE, alive_until).await.unwrap();
    }

    pub(super) async fn chat(&mut self, step: Step) {
        match step {
            Step::Hold {
                who,
                prices,
                worst,
                stored,
            } => self.hold(who, prices, worst, stored).await,
            Step::Drop(pick) => self.drop(pick),
            Step::Settle(pick, used) => self.settle(pick, used).await,
            Step::Charge { who, prices, used } => {
                let new = self.new_chat(who, prices);
                let due = cost(prices, used);
                let debt = self.accounts[who].take(due, self.now);
                let end = self.end(used);
                let settled = self.store.settle_chat(new, &ChatHold::None, end).await;
                assert_eq!(settled, Ok(outcome(due, debt)));
            }
            Step::Die => self.die().await,
        }
    }

    fn new_chat(&self, who: usize, prices: [i64; 2]) -> NewChat {
        // Prices are per million tokens.
        let [input, output] = prices.map(|p| Amount::from_nanos(p * 1_000_000).to_string());
        NewChat {
            id: id::chat_id(self.now),
            opened_at: self.now,
            ..chat(&self.owners[who], &input, &output)
        }
    }

    fn end(&self, [input, output]: [u64; 2]) -> ChatEnd {
        ChatEnd {
            ended_at: self.now,
            ..chat_end(tokens(input, output))
        }
    }

    async fn hold(&mut self, who: usize, prices: [i64; 2], worst: [u64; 2], stored: bool) {
        let chat = self.new_chat(who, prices);
        let held = cost(prices, worst);
        let worst = tokens(worst[0], worst[1]);
        let result = if stored {
            let result = hold(&self.store, &chat, worst).await;
            result.map(|held| (ChatHold::Stored, held.nanos()))
        } else {
            let result = reserve(&self.store, &chat, worst).await;
            result.map(|hold| (hold, held))
        };
        if let Some(rejection) = self.accounts[who].rejection(held, self.now) {
            return assert_eq!(result.map(drop), Err(rejection));
        }
        let (hold, amount) = result.unwrap();
        assert_eq!(amount, held);
        let account = &mut self.accounts[who];
        if is_stored(&hold) {
            account.held += held;
        } else {
            account.reserved += held;
        }
        // No other node writes, so no hold is stored on disk that need not be.
        assert_eq!(is_stored(&hold), stored || self.store.is_shared());
        self.chats.push(Known {
            who,
            chat,
            prices,
            held,
            hold,
            ended: None,
        });
    }

    async fn settle(&mut self, pick: usize, used: [u64; 2]) {
        if self.chats.is_empty() {
            return;
        }
        let (end, now) = (self.end(used), self.now);
        let at = pick % self.chats.len();
        let known = &mut self.chats[at];
        let chat = known.chat.clone();
        let ended = self.store.settle_chat(chat, &known.hold, end).await;
        let expected = known.ended.unwrap_or_else(|| {
            let account = &mut self.accounts[known.who];
            let due = cost(known.prices, used);
            let from_hold = due.min(known.held);
            if is_stored(&known.hold) {
                account.held -= known.held;
            } else {
                account.reserved -= known.held;
            }
            let is_stored = is_stored(&known.hold);
            // A stored hold is always covered; another chat may have spent the money of a reservation by then.
            let debt = if is_stored {
                account.balance -= from_hold;
                account.used += from_hold;
                account.budget.spend(from_hold, now);
                account.take(due - from_hold, now)
            } else {
                account.take(due, now)
            };
            outcome(due, debt)
        });
        assert_eq!(ended, Ok(expected));
        known.ended = Some(expected);
    }

    /// A reservation that is dropped is available again at once.
    fn drop(&mut self, pick: usize) {
        if self.chats.is_empty() {
            return;
        }
        let at = pick % self.chats.len();
        if !is_stored(&self.chats[at].hold) {
            let known = self.chats.swap_remove(at);
            if known.ended.is_none() {
                self.accounts[known.who].reserved -= known.held;
            }
        }
    }

    /// Releases every open hold on disk.
    pub(super) async fn die(&mut self) {
        let open = self.chats.iter_mut();
        let open = open.filter(|chat| chat.ended.is_none() && is_stored(&chat.hold));
        let mut count = 0;
        for chat in open {
            self.accounts[chat.who].held -= chat.held;
            chat.ended = Some(SettleOutcome::AlreadyReleased);
            count += 1;
        }
        let after = self.now + clock::HOUR;
        let released = self.store.release_orphaned_chats(after, "other").await;
        assert_eq!(released, Ok(count));
        self.heartbeat().await;
    }
}
