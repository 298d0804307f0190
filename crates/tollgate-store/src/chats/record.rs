//! The record of a chat request: its data at the beginning, at the end, and the outcome of settling it.

use tollgate_core::{Amount, Millis};

use super::parts::ChatParts;
use super::prices::{TokenCounts, TokenPrices};
use crate::ledger::account::Account;

/// The beginning of a chat request.
#[derive(Debug, Clone)]
pub struct NewChat {
    /// From [`tollgate_core::id::chat_id`]. If nothing is held on disk, it is replaced by one of [`tollgate_core::id::chat_id_with_time`] when the
    /// chat ends, so that rows are inserted in the order of their ids.
    pub id: String,
    /// The user who pays.
    pub user_id: String,
    /// The key of the request.
    pub key_id: String,
    /// The name that channels use for the model; the client may have sent an alias.
    pub model: String,
    /// The client's format: `chat-completions`, `messages`, …
    pub format: &'static str,
    /// Whether the client requested a stream.
    pub streamed: bool,
    /// The request's id, for logs.
    pub request_id: String,
    /// The prices, frozen when the request was received.
    pub prices: TokenPrices,
    /// The amount held in addition to the cost of tokens, for parts that are charged separately.
    pub held_parts: Amount,
    /// When the request was received.
    pub opened_at: Millis,
}

impl NewChat {
    /// The user and key that pay.
    pub(crate) fn account(&self) -> Account<'_> {
        Account {
            user_id: &self.user_id,
            key_id: &self.key_id,
        }
    }
}

/// The end of a chat request.
#[derive(Debug, Clone)]
pub struct ChatEnd {
    /// The tokens to charge; all 0 if the request failed.
    pub tokens: TokenCounts,
    /// The parts that are charged separately.
    pub parts: ChatParts,
    /// Whether the gateway estimated the tokens, because the provider's counts are missing or implausible.
    pub estimated: bool,
    /// Tokens that the provider reported beyond what the request can have used. They are not charged.
    pub clamped: u64,
    /// The channel of the attempt that is charged, or that the request ended with. `None` if every attempt failed or none was started.
    pub channel: Option<String>,
    /// The provider's id of the model. `None` if there is no channel.
    pub upstream_model: Option<String>,
    /// A JSON array of `{channel, outcome, status, error, ms}`; `[]` if the first attempt succeeded.
    pub attempts: String,
    /// The fields of the request that a translation left out, as a JSON array of names. `None` if there are none.
    pub dropped: Option<String>,
    /// `done`, `cut`, `client_gone`, `failed`, …; never [`ChatEnd::OUTCOME_LOST`].
    pub outcome: &'static str,
    /// When it ended.
    pub ended_at: Millis,
}

impl ChatEnd {
    /// The outcome that only [`crate::Store::release_orphaned_chats`] writes.
    pub const OUTCOME_LOST: &'static str = "lost";

    /// Whether the chat counts as failed in usage.
    pub(crate) fn is_failed(&self) -> bool {
        matches!(self.outcome, "failed" | Self::OUTCOME_LOST)
    }
}

impl SettleOutcome {
    /// The amount charged; `None` if the hold had been released.
    pub(crate) fn cost(&self) -> Option<Amount> {
        match self {
            Self::Settled { cost } | Self::SettledInDebt { cost, .. } => Some(*cost),
            Self::AlreadyReleased => None,
        }
    }

    /// A chat that was charged `cost`, of which `debt` was not covered.
    pub(crate) fn new(cost: Amount, debt: Amount) -> Self {
        match debt {
            Amount::ZERO => Self::Settled { cost },
            debt => Self::SettledInDebt { cost, debt },
        }
    }
}

/// The outcome of settling a chat request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SettleOutcome {
    /// Settled, by this call or an earlier one.
    Settled {
        /// The amount charged.
        cost: Amount,
    },
    /// Settled too, but neither the user's balance nor the key's quota covered the complete cost.
    SettledInDebt {
        /// The amount charged.
        cost: Amount,
        /// The part of it that was not covered.
        debt: Amount,
    },
    /// Nothing is charged, because this node counted as dead and the hold was released.
    AlreadyReleased,
}
