//! Where conversations live that an upstream stores (`thread` of the messages format), so that the requests that continue one go
//! to the channel and key that created it.
//!
//! Entries are in memory, by user and id of the last reply. One that is missing (another node, a restart, too many of them) is
//! answered with `thread_not_found`, on which clients send the whole history again under a new thread.

use std::sync::Arc;

use quick_cache::sync::Cache;
use tollgate_chat::Thread;
use tollgate_chat::hub::Usage;

use crate::chat::error::ChatErrorResponse;
use crate::routing::{ChannelPermit, Routing};

/// Number of entries: one takes about 200 bytes.
const MAX_ENTRIES: usize = 64 * 1024;

/// Where a thread lives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadHome {
    /// The channel's name.
    pub channel: String,
    /// Fingerprint of the key. `None` if the channel has no keys.
    pub key: Option<String>,
    /// Tokens of the conversation so far: the upstream counts them as input of the next request.
    pub tokens: u64,
}

/// The homes of threads, by user id and id of the last reply.
pub struct ThreadCache(Cache<(String, String), Arc<ThreadHome>>);

impl Default for ThreadCache {
    fn default() -> Self {
        Self(Cache::new(MAX_ENTRIES))
    }
}

impl ThreadCache {
    /// Remembers that the thread of the reply `id` lives where `permit` called.
    pub fn insert(&self, user_id: &str, id: &str, permit: &ChannelPermit, usage: Option<Usage>) {
        let home = ThreadHome {
            channel: permit.open.channel.name.clone(),
            key: permit.key_fingerprint(),
            tokens: usage.map_or(0, |usage| usage.input.saturating_add(usage.output)),
        };
        self.0
            .insert((user_id.to_owned(), id.to_owned()), Arc::new(home));
    }

    /// The home of the thread that a request continues. `None` if it continues none.
    ///
    /// # Errors
    /// `thread_unsupported_request` if no channel of `model` stores threads, `thread_not_found` if this one is not known.
    pub fn find(
        &self,
        user_id: &str,
        thread: Option<&Thread>,
        routing: &Routing,
        model: &str,
    ) -> Result<Option<Arc<ThreadHome>>, ChatErrorResponse> {
        let Some(thread) = thread else {
            return Ok(None);
        };
        if !routing.stores_threads(model) {
            return Err(ChatErrorResponse::thread_unsupported());
        }
        let Thread::Continue(id) = thread else {
            return Ok(None);
        };
        let home = self.0.get(&(user_id.to_owned(), id.clone()));
        home.map(Some)
            .ok_or_else(ChatErrorResponse::thread_not_found)
    }
}
