//! A cache of the signatures of tool calls and of the reasoning before them, for clients whose format has no field for them or
//! that did not ask to see reasoning.
//!
//! Gemini and Claude require their signed reasoning back with the tool calls that followed it, DeepSeek and Kimi its text.
//! Clients of another format send the calls back by id and drop the rest, so it is cached here by user and call id, in bounded memory. If an entry is missing
//! (another node, a restart, an old conversation), each format's writer has a documented way without it.

use std::sync::Arc;
use std::time::Duration;

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tokio::time::Instant;
use tollgate_chat::hub::{Choice, Opaque, Part, PartKind, Request, Role};

/// Bytes of all entries.
const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// Bytes of one entry.
const MAX_ENTRY_BYTES: usize = 256 * 1024;
/// Expected number of entries.
const ESTIMATED_ENTRIES: usize = 16 * 1024;
/// How long a conversation may pause.
const TTL: Duration = Duration::from_secs(24 * 3_600);

/// Signatures and reasoning, by tool call.
pub struct SignatureCache(Cache<CallId, Arc<Entry>, ByBytes>);

/// User id and id of the tool call.
type CallId = (String, String);

struct Entry {
    inserted_at: Instant,
    /// The reasoning before the call.
    reasoning: Vec<Part>,
    /// The signature on the call itself.
    signature: Option<Opaque>,
    bytes: usize,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<CallId, Arc<Entry>> for ByBytes {
    fn weight(&self, id: &CallId, entry: &Arc<Entry>) -> u64 {
        (id.0.len() + id.1.len() + entry.bytes + 128) as u64
    }
}

impl Default for SignatureCache {
    fn default() -> Self {
        Self(Cache::with_weighter(ESTIMATED_ENTRIES, MAX_BYTES, ByBytes))
    }
}

impl SignatureCache {
    /// Caches the signatures of the tool calls in a response that `user_id` receives in another format.
    pub fn insert(&self, user_id: &str, choice: &Choice) {
        let mut reasoning: Vec<Part> = Vec::new();
        for part in &choice.parts {
            match &part.kind {
                PartKind::Reasoning { .. } | PartKind::RedactedReasoning(_) => {
                    reasoning.push(part.clone());
                }
                PartKind::ToolCall { id, signature, .. }
                    if signature.is_some() || !reasoning.is_empty() =>
                {
                    let reasoning = std::mem::take(&mut reasoning);
                    let bytes = reasoning.iter().map(byte_size).sum::<usize>()
                        + signature.as_ref().map_or(0, |s| s.data.len());
                    if bytes <= MAX_ENTRY_BYTES {
                        let entry = Entry {
                            inserted_at: Instant::now(),
                            reasoning,
                            signature: signature.clone(),
                            bytes,
                        };
                        self.0
                            .insert((user_id.to_owned(), id.clone()), Arc::new(entry));
                    }
                }
                _ => {}
            }
        }
    }

    /// Restores the signatures of the tool calls of `request` that the client did not send itself.
    pub fn restore(&self, user_id: &str, request: &mut Request) {
        if self.0.is_empty() {
            return;
        }
        for turn in request
            .turns
            .iter_mut()
            .filter(|turn| turn.role == Role::Assistant)
        {
            let has_signature = turn.parts.iter().any(is_signed_reasoning);
            let has_text = turn.parts.iter().any(|part| byte_size(part) > 0);
            let mut at = 0;
            while at < turn.parts.len() {
                if let PartKind::ToolCall { id, signature, .. } = &mut turn.parts[at].kind
                    && let Some(entry) = self.0.get(&(user_id.to_owned(), id.clone()))
                    && entry.inserted_at.elapsed() < TTL
                {
                    if signature.is_none() {
                        signature.clone_from(&entry.signature);
                    }
                    let is_signed = entry.reasoning.iter().any(is_signed_reasoning);
                    if !has_signature && (is_signed || !has_text) {
                        turn.parts.splice(at..at, entry.reasoning.iter().cloned());
                        at += entry.reasoning.len();
                    }
                }
                at += 1;
            }
        }
    }
}

fn is_signed_reasoning(part: &Part) -> bool {
    match &part.kind {
        PartKind::Reasoning { signature, .. } => signature.is_some(),
        PartKind::RedactedReasoning(_) => true,
        _ => false,
    }
}

/// Bytes of reasoning; 0 for a part of another kind.
fn byte_size(part: &Part) -> usize {
    match &part.kind {
        PartKind::Reasoning {
            text, signature, ..
        } => text.len() + signature.as_ref().map_or(0, |s| s.data.len()),
        PartKind::RedactedReasoning(opaque) => opaque.data.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_chat::hub::Turn;

    fn call(signature: Option<Opaque>) -> Part {
        Part::new(PartKind::ToolCall {
            id: "call_1".to_owned(),
            name: "f".to_owned(),
            arguments: "{}".to_owned(),
            custom: false,
            signature,
        })
    }

    #[test]
    fn signatures_are_restored_for_their_own_user_only() {
        let signed = Opaque::new("gemini", "sig");
        let reasoning = Part::new(PartKind::Reasoning {
            text: "hm".to_owned(),
            signature: Some(Opaque::new("anthropic", "proof")),
            id: None,
            summary: false,
        });
        let mut choice = Choice::empty(0);
        choice.parts = vec![
            reasoning.clone(),
            Part::text("let me see"),
            call(Some(signed.clone())),
        ];
        let cache = SignatureCache::default();
        cache.insert("alice", &choice);

        let without_signature = || Request {
            turns: vec![Turn::new(Role::Assistant, vec![call(None)])],
            ..Request::default()
        };
        let mut request = without_signature();
        cache.restore("alice", &mut request);
        assert_eq!(request.turns[0].parts, vec![reasoning, call(Some(signed))]);
        let again = request.clone();
        cache.restore("alice", &mut request);
        assert_eq!(request, again, "nothing is inserted twice");

        let mut request = without_signature();
        cache.restore("bob", &mut request);
        assert_eq!(request, without_signature());
    }
}
