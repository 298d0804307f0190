//! What a chat costs: held for before the call, settled once on what was delivered, whatever way it ends.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tollgate_chat::hub::Usage;
use tollgate_chat::{Glance, tokens};
use tollgate_core::{Amount, ApiError, ErrorKind, id};
use tollgate_store::{ChatEnd, ChatSettled, Hold, NewChat, StoreError, TokenPrices, TokenUnits};
use tollgate_upstream::ChatError;

use crate::app::App;
use crate::errors;
use crate::limits::Permit;

/// Tries of a settlement while the database is away, and the pause between them.
const TRIES: u32 = 2;
const PAUSE: Duration = Duration::from_millis(250);
/// How long a hold that could not be settled is tried to be given back.
const GIVE_BACK_TRIES: u32 = 240;
/// Tokens that an upstream may add to a prompt of its own accord: tool preambles, framing.
const FRAMING: u64 = 16_384;
/// Tokens that one attachment may take.
const ATTACHMENT: u64 = 50_000;
/// Output of one reply where neither client nor model bounds it.
const UNBOUNDED: u64 = 1_000_000;
/// Reasoning tokens that some servers do not count into the cap.
const REASONING: u64 = 131_072;

/// The bill of one request. Dropped before it was settled, it settles by itself for what [`Bill::delivered`] says.
pub struct Bill {
    app: Arc<App>,
    /// None once it is settled, or being settled.
    chat: Option<NewChat>,
    hold: Hold,
    permit: Option<Permit>,
    bounds: Bounds,
    attempts: Vec<serde_json::Value>,
    channel: Option<String>,
    upstream_model: Option<String>,
    /// What the client has got so far.
    pub delivered: Delivered,
}

/// What a request can take.
#[derive(Debug, Clone, Copy)]
pub struct Bounds {
    /// Our count of the prompt.
    pub prompt: u64,
    /// More than that no honest count of the prompt can be.
    pub prompt_most: u64,
    /// The cap on one reply; none where the client gave none.
    pub cap: Option<u64>,
    /// What is held for one reply.
    pub reply: u64,
    /// Replies asked for.
    pub n: u64,
}

/// What a client has got.
#[derive(Debug, Clone, Copy, Default)]
pub struct Delivered {
    /// The upstream's count.
    pub usage: Option<Usage>,
    /// Bytes of text, reasoning and arguments.
    pub text_bytes: u64,
    /// Whether the upstream's end was seen, so that its count is whole.
    pub complete: bool,
}

impl Bounds {
    /// Of a request with that body; `default_cap` is held for where the client gave no cap.
    pub fn new(glance: &Glance, body: &[u8], default_cap: u64) -> Self {
        let bytes = body.len() as u64;
        let attachments = u64::from(glance.attachments);
        let text = bytes.saturating_sub(glance.payload_bytes);
        Self {
            prompt: tokens::of_bytes(text) + attachments * tokens::IMAGE_TOKENS,
            prompt_most: bytes + attachments * ATTACHMENT + FRAMING,
            cap: glance.max_tokens,
            reply: glance.max_tokens.unwrap_or(default_cap),
            n: u64::from(glance.n.max(1)),
        }
    }

    /// What is held: a third of the bytes as prompt (a quarter is what most texts take), the cap on every reply.
    fn worst(&self, prices: &TokenPrices) -> TokenUnits {
        let prompt = self.prompt + self.prompt / 3 + 16;
        let output = self.reply.saturating_mul(self.n);
        let mut units = TokenUnits::default();
        if prices.cache_write > prices.input {
            units.cache_write = prompt;
        } else {
            units.input = prompt;
        }
        if prices.reasoning > prices.output {
            units.reasoning = output;
        } else {
            units.output = output;
        }
        units
    }

    /// Tokens that count against limits until the real number is known.
    pub fn reserved(&self) -> u64 {
        self.prompt
            .saturating_add(self.reply.saturating_mul(self.n))
    }

    /// Whether an upstream's count can be true of this request.
    fn allow(&self, usage: &Usage) -> bool {
        let visible = usage.output.saturating_sub(usage.reasoning);
        let cap = self.cap.unwrap_or(UNBOUNDED).saturating_mul(self.n);
        let parts_fit = usage.cache_read.saturating_add(usage.cache_write) <= usage.input
            && usage.reasoning <= usage.output;
        parts_fit
            && usage.input <= self.prompt_most
            && visible <= cap
            && usage.reasoning <= cap.saturating_add(REASONING)
    }
}

impl Bill {
    /// Counts the tokens that the request may take against the limits, and holds for the worst case where the account has a limit.
    ///
    /// # Errors
    /// 429 where a limit of tokens is reached, 402 where the worst case is not covered; the store's errors.
    pub async fn open(
        app: &Arc<App>,
        chat: NewChat,
        bounds: Bounds,
        needs_hold: bool,
        permit: Option<Permit>,
    ) -> Result<Self, ApiError> {
        if let Some(permit) = &permit {
            permit.reserve_tokens(bounds.reserved())?;
        }
        let worst = bounds.worst(&chat.prices);
        let hold = if needs_hold && !chat.prices.is_free() {
            let held = app.store.reserve_chat(&chat, &worst, &app.node).await;
            held.map_err(errors::store)?
                .map_err(|refusal| crate::submit::refused(app, refusal))?
        } else {
            Hold::None
        };
        Ok(Self {
            app: Arc::clone(app),
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

    /// The gateway.
    pub fn app(&self) -> &App {
        &self.app
    }

    /// The model as the client knows it; empty once settled.
    pub fn model(&self) -> &str {
        self.chat.as_ref().map_or("", |chat| &chat.model)
    }

    /// Our count of the prompt.
    pub fn prompt(&self) -> u64 {
        self.bounds.prompt
    }

    /// An attempt failed; it is recorded and costs nothing.
    pub fn attempt_failed(&mut self, channel: &str, error: &ChatError) {
        self.attempts.push(json!({
            "channel": channel,
            "outcome": format!("{:?}", error.kind),
            "status": error.status,
            "error": error.message,
        }));
    }

    /// The channel that answers.
    pub fn answered_by(&mut self, channel: &str, upstream_model: &str) {
        self.channel = Some(channel.to_owned());
        self.upstream_model = Some(upstream_model.to_owned());
    }

    /// Settles for what was delivered; on disk when it returns. `outcome` is for the record.
    ///
    /// # Errors
    /// Where nothing could be charged: then the end must not be sent.
    pub async fn settle(&mut self, outcome: &'static str) -> Result<Amount, ApiError> {
        let Some(chat) = self.chat.take() else {
            return Ok(Amount::ZERO);
        };
        let settlement = self.settlement(chat, outcome);
        let app = Arc::clone(&self.app);
        match settlement.write(&app).await {
            Ok(ChatSettled::Done { cost }) => Ok(cost),
            Ok(ChatSettled::Lost) => {
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
                if settlement.is_stored() {
                    tokio::spawn(settlement.give_back(app));
                }
                Err(errors::store(e))
            }
        }
    }

    fn settlement(&mut self, mut chat: NewChat, outcome: &'static str) -> Settlement {
        let ended_at = self.app.clock.now();
        if !matches!(self.hold, Hold::Stored) {
            // Its row is written now: ids in the order of writing touch the fewest pages.
            chat.id = id::chat_id_at(&chat.id, ended_at);
        }
        let (units, estimated) = self.units(&chat);
        if let Some(permit) = &self.permit {
            permit.settle_tokens(units.total());
        }
        let channel = self.channel.as_deref().unwrap_or_default();
        self.app.metrics.chat_ended(channel, outcome, &units);
        let end = ChatEnd {
            units,
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
            hold: std::mem::replace(&mut self.hold, Hold::None),
            end: Arc::new(end),
        }
    }

    /// What is charged for, and whether that is our own count.
    fn units(&self, chat: &NewChat) -> (TokenUnits, bool) {
        let Delivered {
            usage,
            text_bytes,
            complete,
        } = self.delivered;
        if text_bytes == 0 && !complete {
            return (TokenUnits::default(), false);
        }
        // Counts that are no numbers are read as none: a whole reply to no prompt, or of text that took no tokens, cannot be.
        let adds_up =
            |usage: &Usage| usage.input > 0 && (usage.output > 0 || text_bytes == 0) || !complete;
        let sane = usage
            .filter(|usage| self.bounds.allow(usage))
            .filter(adds_up);
        if complete && sane.is_none() {
            let id = &chat.id;
            tracing::warn!(
                chat = id,
                ?usage,
                "the upstream's usage is missing or impossible: counted here"
            );
        }
        if let Some(usage) = sane.filter(|_| complete) {
            return (priced(&usage), false);
        }
        // Cut off, or not to be believed. What the upstream said of the prompt counts if it can be true.
        let begun = sane.filter(|usage| usage.input > 0);
        let mut usage = begun.unwrap_or(Usage {
            input: self.bounds.prompt,
            ..Usage::default()
        });
        usage.output = usage.output.max(tokens::of_bytes(text_bytes));
        (priced(&usage), true)
    }
}

impl Drop for Bill {
    fn drop(&mut self) {
        let Some(chat) = self.chat.take() else { return };
        // Refused before any channel was asked: nothing to record.
        let is_stored = matches!(self.hold, Hold::Stored);
        if !is_stored && self.channel.is_none() && self.attempts.is_empty() {
            return;
        }
        let asked = self.channel.is_some() || !self.attempts.is_empty();
        let outcome = if asked { "client_gone" } else { "refused" };
        let settlement = self.settlement(chat, outcome);
        let app = Arc::clone(&self.app);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let closing = app.closing.clone();
            runtime.spawn(closing.track_future(async move {
                if let Err(e) = settlement.write(&app).await {
                    tracing::error!(chat = settlement.chat.id, error = %e, "an abandoned chat could not be settled");
                    if settlement.is_stored() {
                        settlement.give_back(app).await;
                    }
                }
            }));
        }
    }
}

/// All that a settlement needs, apart from the request.
struct Settlement {
    chat: Arc<NewChat>,
    hold: Hold,
    end: Arc<ChatEnd>,
}

impl Settlement {
    /// Whether somebody has to give back what it holds; a reservation goes by itself.
    fn is_stored(&self) -> bool {
        matches!(self.hold, Hold::Stored)
    }

    async fn write(&self, app: &App) -> Result<ChatSettled, StoreError> {
        let settle = || {
            let (chat, end) = (Arc::clone(&self.chat), Arc::clone(&self.end));
            app.store.settle_chat(chat, &self.hold, end)
        };
        for _ in 1..TRIES {
            match settle().await {
                Err(StoreError::Unavailable(_) | StoreError::Overloaded) => {
                    tokio::time::sleep(PAUSE).await
                }
                done => return done,
            }
        }
        settle().await
    }

    /// Releases the hold of a chat whose end was never sent, when the database is back.
    async fn give_back(mut self, app: Arc<App>) {
        let end = Arc::make_mut(&mut self.end);
        end.units = TokenUnits::default();
        end.outcome = "failed";
        for _ in 0..GIVE_BACK_TRIES {
            if self.write(&app).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }
}

fn priced(usage: &Usage) -> TokenUnits {
    TokenUnits {
        input: usage.uncached(),
        cached_input: usage.cache_read,
        cache_write: usage.cache_write,
        output: usage.output.saturating_sub(usage.reasoning),
        reasoning: usage.reasoning.min(usage.output),
    }
}
