//! Remembers the channel and key of conversations that an upstream stores (`thread` of the messages format, stored responses of the responses
//! format), so that requests which continue a conversation are sent to the channel and key that created it.
//!
//! Entries are in memory, by id of the last reply; with `secrets.key` and a Redis they are also stored there for a day, for the other nodes and after
//! a restart. If an entry is missing (too old, too many of them, a Redis that was emptied):
//! - the response to a thread is `thread_not_found`, after which clients send the complete history again in a new thread;
//! - a `previous_response_id` is sent to any channel that permits it, and its provider decides whether it knows the id.
//!
//! The response for a conversation of another user is the same as for one that does not exist.

use std::sync::Arc;

use quick_cache::sync::Cache;
use serde::{Deserialize, Serialize};
use tollgate_chat::hub::Usage;
use tollgate_chat::{RequestSummary, Thread};

use crate::chat::error::ChatErrorResponse;
use crate::chat::sealed_memory::{EntryKind, Found, SealedMemory};
use crate::routing::{ChannelPermit, Routing};

/// Number of entries: one needs about 200 bytes.
const MAX_ENTRIES: usize = 64 * 1024;

/// The channel and key that store a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationHome {
    /// The user whose conversation it is.
    pub user_id: String,
    /// The channel's name.
    pub channel: String,
    /// Fingerprint of the key. `None` if the channel has no keys.
    pub key: Option<String>,
    /// Tokens of the conversation so far: the upstream counts them as input of the next request.
    pub tokens: u64,
}

/// The homes of stored conversations, by id of the last reply.
pub struct StoredConversations {
    local: Cache<String, Arc<ConversationHome>>,
    /// The entries that all nodes share; `None` without Redis or `secrets.key`.
    shared: Option<Arc<SealedMemory>>,
}

impl StoredConversations {
    /// An empty cache. Missing entries are read from `shared`.
    pub fn new(shared: Option<Arc<SealedMemory>>) -> Self {
        Self {
            local: Cache::new(MAX_ENTRIES),
            shared,
        }
    }

    /// Stores that the conversation of the reply `id` is at the channel and key of `permit`.
    pub fn insert(&self, user_id: &str, id: &str, permit: &ChannelPermit, usage: Option<Usage>) {
        let home = ConversationHome {
            user_id: user_id.to_owned(),
            channel: permit.open.channel.name.clone(),
            key: permit.key_fingerprint(),
            tokens: usage.map_or(0, |usage| usage.input.saturating_add(usage.output)),
        };
        if let Some(shared) = &self.shared
            && let Ok(text) = serde_json::to_vec(&home)
        {
            shared.put(EntryKind::Conversation, user_id, id, &text);
        }
        self.local.insert(id.to_owned(), Arc::new(home));
    }

    /// Reads the entry that [`Self::find`] needs for a request from those that nodes share, if this node does not have it.
    ///
    /// # Errors
    /// 404 if the stored response is another user's. (For a thread of another user, [`Self::find`] returns the error.)
    pub async fn fetch(
        &self,
        user_id: &str,
        summary: &RequestSummary,
    ) -> Result<(), ChatErrorResponse> {
        let id = match (&summary.previous_response, &summary.thread) {
            (Some(id), _) | (None, Some(Thread::Continue(id))) => id,
            _ => return Ok(()),
        };
        let Some(shared) = self
            .shared
            .as_ref()
            .filter(|_| self.local.get(id).is_none())
        else {
            return Ok(());
        };
        let found = shared.get(EntryKind::Conversation, user_id, &[id]).await;
        match found.unwrap_or_default().into_iter().next() {
            Some(Found::Text(text)) => {
                if let Ok(home) = serde_json::from_slice(&text) {
                    self.local.insert(id.clone(), Arc::new(home));
                }
                Ok(())
            }
            Some(Found::OfAnother) if summary.previous_response.is_some() => {
                Err(ChatErrorResponse::previous_response_not_found(id))
            }
            _ => Ok(()),
        }
    }

    /// The home of the conversation that a request continues. `None` if it continues none, or a stored response without an entry.
    ///
    /// # Errors
    /// `thread_unsupported_request` if no channel of `model` stores threads, `thread_not_found` if this one is not known, 404 if the
    /// stored response is another user's.
    pub fn find(
        &self,
        user_id: &str,
        summary: &RequestSummary,
        routing: &Routing,
        model: &str,
    ) -> Result<Option<Arc<ConversationHome>>, ChatErrorResponse> {
        if let Some(id) = &summary.previous_response {
            let home = self.local.get(id);
            return match home.as_ref().is_some_and(|home| home.user_id != user_id) {
                true => Err(ChatErrorResponse::previous_response_not_found(id)),
                false => Ok(home),
            };
        }
        let Some(thread) = &summary.thread else {
            return Ok(None);
        };
        if !routing.stores_threads(model) {
            return Err(ChatErrorResponse::thread_unsupported());
        }
        let Thread::Continue(id) = thread else {
            return Ok(None);
        };
        let home = self.local.get(id).filter(|home| home.user_id == user_id);
        home.map(Some)
            .ok_or_else(ChatErrorResponse::thread_not_found)
    }
}
