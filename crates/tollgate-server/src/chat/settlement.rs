//! Writes the settlement of a chat: again after a temporary error, in the background if the client has left, and a hold that cannot be settled is
//! released.

use std::sync::Arc;
use std::time::Duration;

use tollgate_store::{
    ChatEnd, ChatHold, ChatParts, NewChat, SettleOutcome, StoreError, TokenCounts,
};

use crate::chat::billing_context::BillingContext;
use crate::http::request_notes::{RequestNotes, SettledChat};
use crate::spawn::spawn_detached;

/// Attempts to write a settlement while the database is unavailable, and the pause between them.
const SETTLE_TRIES: u32 = 2;
const SETTLE_RETRY_PAUSE: Duration = Duration::from_millis(250);
/// Attempts to release a hold that could not be settled; a second passes after each.
const RELEASE_TRIES: u32 = 240;

/// A settlement that is being written. If it is dropped before that has ended, because the client left meanwhile, it is written in the background.
pub struct PendingSettlement {
    /// `None` once the write has ended.
    settlement: Option<Settlement>,
    context: Arc<BillingContext>,
}

impl PendingSettlement {
    /// A settlement whose write has not begun.
    pub fn new(settlement: Settlement, context: Arc<BillingContext>) -> Self {
        Self {
            settlement: Some(settlement),
            context,
        }
    }

    /// Writes the settlement; returns it with the result.
    pub async fn write(mut self) -> (Settlement, Result<SettleOutcome, StoreError>) {
        let settlement = self.settlement.as_ref().expect("it was not written yet");
        let written = settlement.write(&self.context).await;
        let settlement = self.settlement.take().expect("only this function takes it");
        (settlement, written)
    }
}

impl Drop for PendingSettlement {
    fn drop(&mut self) {
        if let Some(settlement) = self.settlement.take() {
            settlement.write_in_background(Arc::clone(&self.context));
        }
    }
}

/// Everything that settling needs, independent of the request's lifetime.
pub struct Settlement {
    /// The chat.
    pub chat: Arc<NewChat>,
    /// Its hold.
    pub hold: ChatHold,
    /// How it ended, with the tokens to charge.
    pub end: Arc<ChatEnd>,
    /// Attempts at upstreams that failed.
    pub failed_attempts: u32,
    /// Receives the cost.
    pub notes: RequestNotes,
}

impl Settlement {
    /// Whether the hold is a row in the store that must be released; a hold in memory is released when it is dropped.
    pub fn is_hold_stored(&self) -> bool {
        matches!(self.hold, ChatHold::Stored)
    }

    async fn write(&self, context: &BillingContext) -> Result<SettleOutcome, StoreError> {
        let settle = || {
            let (chat, end) = (Arc::clone(&self.chat), Arc::clone(&self.end));
            context.store.settle_chat(chat, &self.hold, end)
        };
        let mut tries = 1;
        let outcome = loop {
            match settle().await {
                Err(error) if is_temporary(&error) && tries < SETTLE_TRIES => {
                    tries += 1;
                    tokio::time::sleep(SETTLE_RETRY_PAUSE).await;
                }
                outcome => break outcome,
            }
        };
        if let Ok(SettleOutcome::SettledInDebt { cost, debt }) = &outcome {
            let (chat, model) = (&self.chat.id, &self.chat.model);
            tracing::warn!(chat, model, %cost, %debt, "a chat cost more than was left of the balance and the quota: the uncovered part is debt");
            context.metrics.chat_debt(model, *debt);
        }
        if let Ok(SettleOutcome::Settled { cost } | SettleOutcome::SettledInDebt { cost, .. }) =
            &outcome
        {
            self.notes.set_chat(SettledChat {
                chat: Arc::clone(&self.chat),
                end: Arc::clone(&self.end),
                failed_attempts: self.failed_attempts,
                cost: *cost,
            });
        }
        outcome
    }

    /// Settles a chat whose client has left. If that fails, a stored hold is released.
    pub fn write_in_background(self, context: Arc<BillingContext>) {
        let closing = context.closing.clone();
        spawn_detached(closing.track_future(async move {
            if let Err(e) = self.write(&context).await {
                tracing::error!(chat = self.chat.id, error = %e, "an abandoned chat could not be settled");
                if self.is_hold_stored() {
                    self.release_hold(context).await;
                }
            }
        }));
    }

    /// Releases the hold of a chat whose end was never sent, as soon as the database is available again. Nothing is charged.
    pub async fn release_hold(mut self, context: Arc<BillingContext>) {
        let end = Arc::make_mut(&mut self.end);
        end.tokens = TokenCounts::default();
        end.parts = ChatParts::default();
        (end.estimated, end.clamped) = (false, 0);
        end.outcome = "failed";
        for _ in 0..RELEASE_TRIES {
            if self.write(&context).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

/// Whether a settlement that failed with `error` may succeed when it is retried.
fn is_temporary(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Unavailable(_) | StoreError::Overloaded | StoreError::DiskFull(_)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_settlement_is_tried_again_after_a_temporary_error() {
        let why = || "why".to_owned();
        for (error, is_tried_again) in [
            (StoreError::Unavailable(why()), true),
            (StoreError::Overloaded, true),
            (StoreError::DiskFull(why()), true),
            (StoreError::Invalid(why()), false),
            (StoreError::Broken(why()), false),
        ] {
            assert_eq!(is_temporary(&error), is_tried_again, "{error}");
        }
    }
}
