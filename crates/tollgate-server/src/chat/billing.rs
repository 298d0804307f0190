//! Billing of a chat: a hold before the call, one charge for what was delivered, however the chat ends.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio_util::task::TaskTracker;
use tollgate_chat::hub::Usage;
use tollgate_chat::{RequestSummary, tokens};
use tollgate_core::{Amount, ApiError, Clock, ErrorKind, id};
use tollgate_store::{
    ChatEnd, ChatHold, NewChat, SettleOutcome, Store, StoreError, TokenCounts, TokenPrices,
};
use tollgate_upstream::ProviderError;

use crate::auth::limits::RequestPermit;
use crate::config::Currency;
use crate::http::errors;
use crate::metrics::Metrics;

/// How often a settlement is tried while the database is away, and the pause between.
const SETTLE_TRIES: u32 = 2;
const SETTLE_RETRY_PAUSE: Duration = Duration::from_millis(250);
/// How often, once a second, the release of a hold that could not be settled is tried.
const RELEASE_TRIES: u32 = 240;
/// Tokens that an upstream may add to a prompt by itself: tool preambles, framing.
const MAX_FRAMING_TOKENS: u64 = 16_384;
/// Tokens that one attachment may count.
const MAX_ATTACHMENT_TOKENS: u64 = 50_000;
/// Output tokens of one choice if neither client nor model bounds them.
const MAX_UNBOUNDED_OUTPUT: u64 = 1_000_000;
/// Reasoning tokens that some servers do not count towards the client's maximum.
const MAX_UNCOUNTED_REASONING: u64 = 131_072;

/// The parts of the gateway that billing works with.
pub struct BillingContext {
    /// Holds and charges.
    pub store: Store,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// This process's name in the database.
    pub node: String,
    /// Counts chats and tokens.
    pub metrics: Arc<Metrics>,
    /// Settlements in the background that shutdown waits for.
    pub closing: TaskTracker,
    /// The currency that error messages name.
    pub currency: Currency,
}

/// The bill of one request. If it is dropped before it was settled, it settles itself for [`Bill::delivered`].
pub struct Bill {
    context: Arc<BillingContext>,
    /// `None` once it is settled, or being settled.
    chat: Option<NewChat>,
    hold: ChatHold,
    permit: Option<RequestPermit>,
    bounds: ChargeBounds,
    attempts: Vec<serde_json::Value>,
    channel: Option<String>,
    upstream_model: Option<String>,
    /// What the client has received so far.
    pub delivered: Delivered,
}

/// Estimates and bounds of the tokens that a request can cost.
#[derive(Debug, Clone, Copy)]
pub struct ChargeBounds {
    /// Our estimate of the prompt's tokens.
    estimated_prompt: u64,
    /// An upstream's count of the prompt above this cannot be true.
    max_prompt: u64,
    /// The client's maximum of output tokens of one choice. `None` if the client gave none.
    max_output: Option<u64>,
    /// The output tokens that are held for one choice.
    held_output: u64,
    /// The requested number of choices.
    choices: u64,
}

/// What a client has received.
#[derive(Debug, Clone, Copy, Default)]
pub struct Delivered {
    /// The upstream's count.
    pub usage: Option<Usage>,
    /// Bytes of text, reasoning and tool arguments.
    pub text_bytes: u64,
    /// Whether the upstream's end was seen, so that its count is final.
    pub complete: bool,
}

impl ChargeBounds {
    /// The bounds of a request with that body. `default_max_tokens` of output are held if the client gave no maximum.
    pub fn new(summary: &RequestSummary, body: &[u8], default_max_tokens: u64) -> Self {
        let bytes = body.len() as u64;
        let attachments = u64::from(summary.attachments);
        let text = bytes.saturating_sub(summary.payload_bytes);
        Self {
            estimated_prompt: tokens::estimate_bytes(text) + attachments * tokens::IMAGE_TOKENS,
            max_prompt: bytes + attachments * MAX_ATTACHMENT_TOKENS + MAX_FRAMING_TOKENS,
            max_output: summary.max_tokens,
            held_output: summary.max_tokens.unwrap_or(default_max_tokens),
            choices: u64::from(summary.n.max(1)),
        }
    }

    /// What is held: the estimated prompt and a third more (most texts take a token for four bytes), the maximum of output for
    /// every choice, each at the higher of the prices that may apply.
    fn held_tokens(&self, prices: &TokenPrices) -> TokenCounts {
        let prompt = self.estimated_prompt + self.estimated_prompt / 3 + 16;
        let output = self.held_output.saturating_mul(self.choices);
        let mut held = TokenCounts::default();
        if prices.cache_write > prices.input {
            held.cache_write = prompt;
        } else {
            held.input = prompt;
        }
        if prices.reasoning > prices.output {
            held.reasoning = output;
        } else {
            held.output = output;
        }
        held
    }

    /// Tokens that count against the rate limits until the real number is known.
    fn reserved_tokens(&self) -> u64 {
        let output = self.held_output.saturating_mul(self.choices);
        self.estimated_prompt.saturating_add(output)
    }

    /// Whether an upstream's count can be true of this request.
    fn is_plausible(&self, usage: &Usage) -> bool {
        let visible_output = usage.output.saturating_sub(usage.reasoning);
        let max_output = self.max_output.unwrap_or(MAX_UNBOUNDED_OUTPUT);
        let max_output = max_output.saturating_mul(self.choices);
        let parts_add_up = usage.cache_read.saturating_add(usage.cache_write) <= usage.input
            && usage.reasoning <= usage.output;
        parts_add_up
            && usage.input <= self.max_prompt
            && visible_output <= max_output
            && usage.reasoning <= max_output.saturating_add(MAX_UNCOUNTED_REASONING)
    }
}

impl Bill {
    /// Counts the request's estimated tokens against the rate limits, and holds the most that it can cost if its account or key
    /// has a limit (`needs_hold`).
    ///
    /// # Errors
    /// 429 if a limit of tokens is reached, 402 if the hold is not covered; the store's errors.
    pub async fn open(
        context: &Arc<BillingContext>,
        chat: NewChat,
        bounds: ChargeBounds,
        needs_hold: bool,
        permit: Option<RequestPermit>,
    ) -> Result<Self, ApiError> {
        if let Some(permit) = &permit {
            permit.reserve_tokens(bounds.reserved_tokens())?;
        }
        let held_tokens = bounds.held_tokens(&chat.prices);
        let hold = if needs_hold && !chat.prices.is_free() {
            let (store, node) = (&context.store, &context.node);
            let held = store.reserve_chat(&chat, &held_tokens, node).await;
            held.map_err(errors::from_store)?
                .map_err(|rejection| errors::from_rejection(rejection, context.currency))?
        } else {
            ChatHold::None
        };
        Ok(Self {
            context: Arc::clone(context),
            chat: Some(chat),
            hold,
            permit,
            bounds,
            attempts: Vec::new(),
            channel: None,
            upstream_model: None,
            delivered: Delivered::default(),
        })
    }

    /// The client's name of the model; empty once settled.
    pub fn model(&self) -> &str {
        self.chat.as_ref().map_or("", |chat| &chat.model)
    }

    /// Our estimate of the prompt's tokens.
    pub fn estimated_prompt_tokens(&self) -> u64 {
        self.bounds.estimated_prompt
    }

    /// Records a failed attempt, which costs nothing.
    pub fn add_failed_attempt(&mut self, channel: &str, error: &ProviderError) {
        self.attempts.push(json!({
            "channel": channel,
            "outcome": error.kind.recorded_name(),
            "status": error.status,
            "error": error.message,
        }));
    }

    /// Records the channel that answers.
    pub fn set_channel(&mut self, channel: &str, upstream_model: &str) {
        self.channel = Some(channel.to_owned());
        self.upstream_model = Some(upstream_model.to_owned());
    }

    /// Settles for what was delivered; the charge is on disk when this returns. `outcome` is for the record.
    ///
    /// # Errors
    /// If nothing could be charged; then the end of the response must not be sent.
    pub async fn settle(&mut self, outcome: &'static str) -> Result<Amount, ApiError> {
        let Some(chat) = self.chat.take() else {
            return Ok(Amount::ZERO);
        };
        let settlement = self.settlement(chat, outcome);
        match settlement.write(&self.context.store).await {
            Ok(SettleOutcome::Settled { cost }) => Ok(cost),
            Ok(SettleOutcome::AlreadyReleased) => {
                tracing::error!(
                    chat = settlement.chat.id,
                    "a chat's hold was released while it ran"
                );
                Err(ApiError::new(
                    ErrorKind::BadGateway,
                    "this request took too long to settle; nothing was charged",
                ))
            }
            Err(e) => {
                if settlement.is_hold_stored() {
                    tokio::spawn(settlement.release_hold(self.context.store.clone()));
                }
                Err(errors::from_store(e))
            }
        }
    }

    fn settlement(&mut self, mut chat: NewChat, outcome: &'static str) -> Settlement {
        let ended_at = self.context.clock.now();
        if !matches!(self.hold, ChatHold::Stored) {
            // Its row is inserted now: ids in the order of insertion touch the fewest pages.
            chat.id = id::chat_id_with_time(&chat.id, ended_at);
        }
        let (charged, estimated) = self.charged_tokens(&chat);
        if let Some(permit) = &self.permit {
            permit.settle_tokens(charged.total());
        }
        let channel = self.channel.as_deref().unwrap_or_default();
        self.context.metrics.chat_ended(channel, outcome, &charged);
        let end = ChatEnd {
            tokens: charged,
            estimated,
            channel: self.channel.take(),
            upstream_model: self.upstream_model.take(),
            attempts: if self.attempts.is_empty() {
                "[]".to_owned()
            } else {
                serde_json::Value::Array(std::mem::take(&mut self.attempts)).to_string()
            },
            outcome,
            ended_at,
        };
        Settlement {
            chat: Arc::new(chat),
            hold: std::mem::replace(&mut self.hold, ChatHold::None),
            end: Arc::new(end),
        }
    }

    /// The tokens to charge, and whether they are our own estimate.
    fn charged_tokens(&self, chat: &NewChat) -> (TokenCounts, bool) {
        let Delivered {
            usage,
            text_bytes,
            complete,
        } = self.delivered;
        if text_bytes == 0 && !complete {
            return (TokenCounts::default(), false);
        }
        // A count of 0 counts as missing: no complete response has an empty prompt, and no text takes 0 tokens.
        let is_counted =
            |usage: &Usage| usage.input > 0 && (usage.output > 0 || text_bytes == 0) || !complete;
        let believed = usage
            .filter(|usage| self.bounds.is_plausible(usage))
            .filter(is_counted);
        if complete && believed.is_none() {
            let id = &chat.id;
            tracing::warn!(
                chat = id,
                ?usage,
                "the upstream's usage is missing or impossible: it is estimated here"
            );
        }
        if let Some(usage) = believed.filter(|_| complete) {
            return (token_counts(&usage), false);
        }
        // The stream was cut off, or the count is not believed. A plausible count of the prompt is used all the same.
        let with_prompt = believed.filter(|usage| usage.input > 0);
        let mut usage = with_prompt.unwrap_or(Usage {
            input: self.bounds.estimated_prompt,
            ..Usage::default()
        });
        usage.output = usage.output.max(tokens::estimate_bytes(text_bytes));
        (token_counts(&usage), true)
    }
}

impl Drop for Bill {
    fn drop(&mut self) {
        let Some(chat) = self.chat.take() else { return };
        let was_sent = self.channel.is_some() || !self.attempts.is_empty();
        // Rejected before any channel was called, and no hold to release: nothing to record.
        if !matches!(self.hold, ChatHold::Stored) && !was_sent {
            return;
        }
        let outcome = if was_sent { "client_gone" } else { "refused" };
        let settlement = self.settlement(chat, outcome);
        let store = self.context.store.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(self.context.closing.track_future(async move {
                if let Err(e) = settlement.write(&store).await {
                    tracing::error!(chat = settlement.chat.id, error = %e, "an abandoned chat could not be settled");
                    if settlement.is_hold_stored() {
                        settlement.release_hold(store).await;
                    }
                }
            }));
        }
    }
}

/// Everything that settling needs, independent of the request.
struct Settlement {
    chat: Arc<NewChat>,
    hold: ChatHold,
    end: Arc<ChatEnd>,
}

impl Settlement {
    /// Whether the hold is a row in the store that must be released; a hold in memory is released when it is dropped.
    fn is_hold_stored(&self) -> bool {
        matches!(self.hold, ChatHold::Stored)
    }

    async fn write(&self, store: &Store) -> Result<SettleOutcome, StoreError> {
        let settle = || {
            let (chat, end) = (Arc::clone(&self.chat), Arc::clone(&self.end));
            store.settle_chat(chat, &self.hold, end)
        };
        for _ in 1..SETTLE_TRIES {
            match settle().await {
                Err(StoreError::Unavailable(_) | StoreError::Overloaded) => {
                    tokio::time::sleep(SETTLE_RETRY_PAUSE).await
                }
                outcome => return outcome,
            }
        }
        settle().await
    }

    /// Releases the hold of a chat whose end was never sent, as soon as the database is back. Nothing is charged.
    async fn release_hold(mut self, store: Store) {
        let end = Arc::make_mut(&mut self.end);
        end.tokens = TokenCounts::default();
        end.outcome = "failed";
        for _ in 0..RELEASE_TRIES {
            if self.write(&store).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

fn token_counts(usage: &Usage) -> TokenCounts {
    TokenCounts {
        input: usage.uncached(),
        cached_input: usage.cache_read,
        cache_write: usage.cache_write,
        output: usage.output.saturating_sub(usage.reasoning),
        reasoning: usage.reasoning.min(usage.output),
    }
}
