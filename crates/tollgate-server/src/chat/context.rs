//! The parts of the gateway that chats need.

use std::sync::Arc;

use tollgate_chat::RequestSummary;
use tollgate_config::Config;
use tollgate_core::Clock;
use tollgate_upstream::{Channel, ChatTimeouts, egress};

use crate::auth::keys::Authenticator;
use crate::auth::limits::RateLimiter;
use crate::chat::billing_context::BillingContext;
use crate::chat::error::ChatErrorResponse;
use crate::chat::response_memory::ResponseBudget;
use crate::chat::signature_cache::SignatureCache;
use crate::chat::stored_conversations::StoredConversations;
use crate::http::body_memory::BodyBudget;
use crate::metrics::Metrics;
use crate::reloadable::ReloadableHandle;

/// The parts of the gateway that chats need.
pub struct ChatContext {
    /// Authenticates API keys.
    pub auth: Arc<Authenticator>,
    /// Rate limits.
    pub limits: RateLimiter,
    /// The source of the current time, in Unix milliseconds.
    pub clock: Arc<dyn Clock>,
    /// The memory budget of request bodies.
    pub body_budget: BodyBudget,
    /// The memory budget of complete responses of providers.
    pub response_budget: ResponseBudget,
    /// Channels and prices.
    pub reloadable: ReloadableHandle,
    /// Fetches files that clients name by URL.
    pub egress: egress::Client,
    /// Signatures of tool calls, for clients whose format has no field for them.
    pub signatures: SignatureCache,
    /// On which channels upstreams store conversations.
    pub stored_conversations: StoredConversations,
    /// Counts chats and failed attempts.
    pub metrics: Arc<Metrics>,
    /// Holds and charges.
    pub billing: Arc<BillingContext>,
    /// The configuration of chats.
    pub settings: ChatSettings,
}

impl ChatContext {
    /// Reads from Redis on which channel the conversation that a request continues is stored, if this node does not know it.
    ///
    /// # Errors
    /// 404 if the stored response is another user's.
    pub async fn fetch_stored(
        &self,
        user_id: &str,
        summary: &RequestSummary,
    ) -> Result<(), ChatErrorResponse> {
        // Boxed: this is rare, and would make every request's future larger.
        Box::pin(self.stored_conversations.fetch(user_id, summary)).await
    }
}

/// The configuration of chats.
pub struct ChatSettings {
    /// The output tokens that are held, and sent to upstreams that need a maximum, if the client sets none.
    pub default_max_tokens: u64,
    /// The timeouts of channels without their own.
    timeouts: ChatTimeouts,
}

impl ChatSettings {
    /// The settings of `config`.
    pub fn new(config: &Config) -> Self {
        let limits = &config.time_limits;
        Self {
            default_max_tokens: config.chat.default_max_tokens,
            timeouts: ChatTimeouts {
                connect: limits.chat_connect,
                first_byte: limits.chat_first_byte,
                idle: limits.chat_idle,
            },
        }
    }

    /// The timeouts of calls on `channel`.
    pub fn timeouts(&self, channel: &Channel) -> ChatTimeouts {
        let own = &channel.time_limits;
        ChatTimeouts {
            connect: own.connect.unwrap_or(self.timeouts.connect),
            first_byte: own.first_byte.unwrap_or(self.timeouts.first_byte),
            idle: own.idle.unwrap_or(self.timeouts.idle),
        }
    }
}
