//! Billing of a chat: a hold before the call, and one charge for what was delivered, in whichever way the chat ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde_json::json;
use tokio_util::task::TaskTracker;
use tollgate_chat::hub::Usage;
use tollgate_chat::tokens;
use tollgate_core::{Amount, ApiError, ErrorKind, id};
use tollgate_store::{ChatEnd, ChatHold, ChatParts, NewChat, SettleOutcome, TokenCounts};
use tollgate_upstream::ProviderError;

use crate::auth::limits::RequestPermit;
use crate::chat::billing_context::BillingContext;
use crate::chat::bounds::{ChargeBounds, HiddenOutput};
use crate::chat::part_charges;
use crate::chat::settlement::{PendingSettlement, Settlement};
use crate::http::errors;
use crate::http::request_notes::RequestNotes;
use crate::metrics::{ChatHoldKind, ChatTimes, EndedChat};
use crate::otel::ChatContent;
use crate::spawn::spawn_detached;

/// The bill of one request. If it is dropped before it was settled, its drop settles [`Bill::delivered`] in the background.
pub struct Bill {
    context: Arc<BillingContext>,
    /// `None` once it is settled, or while it is being settled.
    chat: Option<NewChat>,
    hold: ChatHold,
    permit: Option<RequestPermit>,
    notes: RequestNotes,
    bounds: ChargeBounds,
    attempts: Vec<serde_json::Value>,
    /// The request fields that a translation left out, as a JSON array.
    dropped: Option<String>,
    channel: Option<String>,
    upstream_model: Option<String>,
    /// `None` if no upstream has received the request.
    in_flight: Option<InFlight>,
    has_client_left: bool,
    /// Whether the upstream sent far more output than the request allows.
    is_too_large: bool,
    /// Bytes of what has been received of a stream before its first piece for the client.
    pub received_before_start: AtomicU64,
    /// What has been received from the upstream so far.
    pub delivered: Delivered,
}

/// A request that was sent to an upstream.
#[derive(Debug, Clone, Copy)]
struct InFlight {
    since: Instant,
    /// `None` before the first piece of a stream, and if the response is not streamed.
    first_piece_at: Option<Instant>,
    hidden: HiddenOutput,
    /// The context window of the model. `None` if unknown.
    context_window: Option<u64>,
}

/// The tokens to charge.
#[derive(Debug, Clone, Default)]
struct ChargedTokens {
    /// All tokens, except those of `parts`.
    counts: TokenCounts,
    /// All tokens, including those of parts that are charged separately.
    all: TokenCounts,
    /// The parts that are charged separately.
    parts: ChatParts,
    /// Whether the gateway estimated the tokens.
    estimated: bool,
    /// Tokens that the upstream reported and that exceed the bounds.
    clamped: u64,
}

/// What an upstream has delivered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Delivered {
    /// The usage that the upstream reported.
    pub usage: Option<Usage>,
    /// Bytes of everything that was generated; images and audio count like a text with as many tokens.
    pub text_bytes: u64,
    /// Whether the end of the upstream's response was received, so that its usage is final.
    pub complete: bool,
}

impl Bill {
    /// Counts the request's estimated tokens against the rate limits and, if its account or key has a limit (`needs_hold`), holds the highest
    /// possible cost.
    ///
    /// # Errors
    /// 429 if a limit of tokens is reached, 402 if the hold is not covered; the store's errors.
    pub async fn open(
        context: &Arc<BillingContext>,
        mut chat: NewChat,
        bounds: ChargeBounds,
        needs_hold: bool,
        permit: Option<RequestPermit>,
        notes: RequestNotes,
    ) -> Result<Self, ApiError> {
        if let Some(permit) = &permit {
            permit.reserve_tokens(bounds.reserved_tokens()).await?;
        }
        let held_tokens = bounds.held_tokens(&chat.prices);
        let hold = if needs_hold {
            let held_parts = bounds.held_parts(&held_tokens, &chat.prices);
            chat.held_parts = held_parts.ok_or_else(ApiError::internal)?;
            let (store, node) = (&context.store, &context.node);
            let held = store.reserve_chat(&chat, &held_tokens, node).await;
            held.map_err(errors::from_store)?.map_err(|rejection| {
                let needed = chat.prices.cost(&held_tokens);
                let needed = needed.map(|tokens| tokens + chat.held_parts);
                let error = errors::from_rejection(rejection, needed, context.currency);
                bounds.suggest_smaller_limit(error, chat.format)
            })?
        } else {
            ChatHold::None
        };
        let kind = match &hold {
            ChatHold::None => None,
            ChatHold::Reserved(_) => Some(ChatHoldKind::Memory),
            ChatHold::Granted(_) => Some(ChatHoldKind::Grant),
            ChatHold::Stored => Some(ChatHoldKind::Database),
        };
        if let Some(kind) = kind {
            context.metrics.chat_held(kind);
        }
        Ok(Self {
            context: Arc::clone(context),
            chat: Some(chat),
            hold,
            permit,
            notes,
            bounds,
            attempts: Vec::new(),
            dropped: None,
            channel: None,
            upstream_model: None,
            in_flight: None,
            has_client_left: false,
            is_too_large: false,
            received_before_start: AtomicU64::new(0),
            delivered: Delivered::default(),
        })
    }

    /// Records that the request is sent to an upstream now. If the client leaves after this, it pays at least for the prompt.
    pub fn request_sent(
        &mut self,
        channel: &str,
        upstream_model: &str,
        hidden: HiddenOutput,
        context_window: Option<u64>,
    ) {
        self.channel = Some(channel.to_owned());
        self.upstream_model = Some(upstream_model.to_owned());
        self.in_flight = Some(InFlight {
            since: Instant::now(),
            first_piece_at: None,
            hidden,
            context_window,
        });
    }

    /// Records that the upstream failed before its response began: the attempt costs nothing.
    pub fn request_failed(&mut self) {
        (self.in_flight, self.channel, self.upstream_model) = (None, None, None);
        *self.received_before_start.get_mut() = 0;
    }

    /// Records that the upstream sent far more output than the request allows and was cut off: only the allowed output is charged.
    pub fn response_was_too_large(&mut self) {
        self.is_too_large = true;
    }

    /// Records that the first piece of a stream for the client was received.
    pub fn stream_started(&mut self) {
        if let Some(sent) = &mut self.in_flight {
            sent.first_piece_at = Some(Instant::now());
        }
    }

    /// Records that the client has left; what the upstream sends after this is still charged.
    pub fn client_left(&mut self) {
        self.has_client_left = true;
    }

    /// Whether the client has left, so that output after this is charged.
    pub fn has_client_left(&self) -> bool {
        self.has_client_left
    }

    /// Whether the upstream generates output that is not visible, so that only its usage shows the cost. False once a usage with reasoning is known.
    pub fn is_output_hidden(&self) -> bool {
        let is_counted = self.delivered.usage.is_some_and(|usage| {
            // Google reports complete counts in every chunk.
            usage.output > 1 && usage.reasoning > 0
        });
        !is_counted && self.in_flight.is_some_and(|sent| !sent.hidden.is_none())
    }

    /// The output tokens that are held. `None` if nothing is held.
    pub fn held_output(&self) -> Option<u64> {
        let is_held = !matches!(self.hold, ChatHold::None);
        is_held.then(|| self.bounds.held_output())
    }

    /// The output tokens that the request allows.
    pub fn max_output(&self) -> u64 {
        let hides = self.in_flight.is_some_and(|sent| !sent.hidden.is_none());
        self.bounds.max_output(hides)
    }

    /// The recorder of the chat's content. `None` if the content is not recorded.
    pub fn content(&self) -> Option<Arc<ChatContent>> {
        self.notes.content()
    }

    /// The notes about the request.
    pub fn notes(&self) -> &RequestNotes {
        &self.notes
    }

    /// The tasks that shutdown waits for.
    pub fn closing(&self) -> TaskTracker {
        self.context.closing.clone()
    }

    /// The name that channels use for the model; empty once the bill is settled.
    pub fn model(&self) -> &str {
        self.chat.as_ref().map_or("", |chat| &chat.model)
    }

    /// The gateway's estimate of the prompt's tokens.
    pub fn estimated_prompt_tokens(&self) -> u64 {
        self.bounds.estimated_prompt
    }

    /// Adds a failed attempt to the chat's record.
    pub fn add_failed_attempt(&mut self, channel: &str, error: &ProviderError) {
        self.attempts.push(json!({
            "channel": channel,
            "outcome": error.kind.recorded_name(),
            "status": error.status,
            "error": error.message,
        }));
    }

    /// Records which fields of the request a translation left out.
    pub fn set_dropped(&mut self, names: &[String]) {
        self.dropped = (!names.is_empty()).then(|| json!(names).to_string());
    }

    /// Settles what was delivered; the charge is on disk when this returns. `outcome` is stored in the chat's record.
    ///
    /// # Errors
    /// If the charge is not known to be on disk; then the end of the response must not be sent to the client.
    pub async fn settle(&mut self, outcome: &'static str) -> Result<Amount, ApiError> {
        let Some(chat) = self.chat.take() else {
            return Ok(Amount::ZERO);
        };
        let settlement = self.settlement(chat, outcome);
        let pending = PendingSettlement::new(settlement, Arc::clone(&self.context));
        let (settlement, written) = pending.write().await;
        match written {
            Ok(SettleOutcome::Settled { cost } | SettleOutcome::SettledInDebt { cost, .. }) => {
                Ok(cost)
            }
            Ok(SettleOutcome::AlreadyReleased) => {
                tracing::error!(
                    chat = settlement.chat.id,
                    "the hold of a chat was released before the chat ended: nothing is charged"
                );
                Err(ApiError::new(
                    ErrorKind::BadGateway,
                    "this request took too long to settle; nothing was charged",
                ))
            }
            Err(e) => {
                if settlement.is_hold_stored() {
                    spawn_detached(settlement.release_hold(Arc::clone(&self.context)));
                }
                Err(errors::from_store(e))
            }
        }
    }

    fn settlement(&mut self, mut chat: NewChat, outcome: &'static str) -> Settlement {
        let ended_at = self.context.clock.now();
        if !matches!(self.hold, ChatHold::Stored) {
            // The row is inserted now: if ids are in the order of insertion, the fewest database pages are written.
            chat.id = id::chat_id_with_time(&chat.id, ended_at);
        }
        let charged = self.charged_tokens(&chat);
        if let Some(permit) = &self.permit {
            permit.settle_tokens(charged.all.total());
        }
        let channel = self.channel.as_deref().unwrap_or_default();
        let metrics = &self.context.metrics;
        let times = self
            .in_flight
            .map_or_else(ChatTimes::default, |sent| ChatTimes {
                first_token: sent.first_piece_at.map(|at| at - sent.since),
                total: Some(sent.since.elapsed()),
            });
        metrics.chat_ended(&EndedChat {
            channel,
            model: &chat.model,
            outcome,
            tokens: &charged.all,
            times,
            span: self.notes.attempt_span(),
        });
        if charged.estimated {
            metrics.chat_estimated(channel, &chat.model);
        }
        if charged.clamped > 0 {
            metrics.chat_usage_clamped(channel, &chat.model);
        }
        let failed_attempts = u32::try_from(self.attempts.len()).unwrap_or(u32::MAX);
        let end = ChatEnd {
            tokens: charged.counts,
            parts: charged.parts,
            estimated: charged.estimated,
            clamped: charged.clamped,
            channel: self.channel.take(),
            upstream_model: self.upstream_model.take(),
            dropped: self.dropped.take(),
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
            failed_attempts,
            notes: self.notes.clone(),
        }
    }

    /// The tokens to charge: the upstream's count if it is final, else the gateway's estimate for what was delivered.
    fn charged_tokens(&self, chat: &NewChat) -> ChargedTokens {
        let Delivered {
            usage,
            text_bytes,
            complete,
        } = self.delivered;
        let text_bytes = text_bytes.max(self.received_before_start.load(Ordering::Relaxed));
        let abandoned = self.in_flight.filter(|_| self.has_client_left);
        if text_bytes == 0 && !complete && abandoned.is_none() {
            return ChargedTokens::default();
        }
        let context_window = self.in_flight.and_then(|sent| sent.context_window);
        let mut visible = tokens::estimate_bytes(text_bytes);
        if self.is_too_large {
            visible = visible.min(self.bounds.max_output(false));
        }
        let bounded = usage.map(|usage| self.bounds.clamp(usage, context_window, visible));
        let clamped = bounded.map_or(0, |(_, clamped)| clamped);
        if clamped > 0 {
            tracing::warn!(
                chat = chat.id,
                ?usage,
                clamped,
                "the upstream reported more usage than this request can have caused: the maximum is charged"
            );
        }
        let usage = bounded.map(|(usage, _)| usage);
        // A count of 0 counts as missing: no complete response has an empty prompt, and no text takes 0 tokens.
        let is_counted = |usage: &Usage| usage.input > 0 && (usage.output > 0 || text_bytes == 0);
        if let Some(usage) = usage.filter(|usage| complete && is_counted(usage)) {
            return self.split(&usage, false, clamped);
        }
        if complete {
            tracing::warn!(
                chat = chat.id,
                ?usage,
                "the upstream reported no usage: the gateway estimates it"
            );
        }
        // The stream was cut off, or its usage lacks a count. The counts that it has are used nevertheless.
        let mut usage = usage.unwrap_or_default();
        if usage.input == 0 {
            usage.input = self.bounds.estimated_prompt;
        }
        let unseen = self.in_flight;
        let unseen = unseen.filter(|_| !complete && self.is_output_hidden());
        let unseen = unseen.map_or(0, |sent| {
            let elapsed = sent.since.elapsed();
            self.bounds.unseen_output(sent.hidden, elapsed, visible)
        });
        usage.reasoning = usage.reasoning.max(unseen);
        usage.output = usage.output.max(visible.saturating_add(unseen));
        part_charges::estimate_parts(&mut usage, &chat.prices, &self.bounds.parts);
        self.split(&usage, true, clamped)
    }

    /// The tokens of `usage`, and the parts of it that have a separate price.
    fn split(&self, usage: &Usage, estimated: bool, clamped: u64) -> ChargedTokens {
        let all = token_counts(usage);
        let mut counts = all;
        let parts = part_charges::split_parts(&mut counts, usage, &self.bounds.parts);
        let parts = ChatParts::new(&parts).unwrap_or_else(|| {
            tracing::error!(
                ?parts,
                "the cost of these parts is out of range: they are not charged"
            );
            ChatParts::default()
        });
        ChargedTokens {
            counts,
            all,
            parts,
            estimated,
            clamped,
        }
    }
}

impl Drop for Bill {
    fn drop(&mut self) {
        let Some(chat) = self.chat.take() else { return };
        self.has_client_left = true;
        let was_sent = self.in_flight.is_some() || !self.attempts.is_empty();
        // The request was rejected before any channel was called, and there is no hold to release: nothing is recorded.
        if !matches!(self.hold, ChatHold::Stored) && !was_sent {
            return;
        }
        let outcome = if was_sent { "client_gone" } else { "refused" };
        let settlement = self.settlement(chat, outcome);
        settlement.write_in_background(Arc::clone(&self.context));
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
