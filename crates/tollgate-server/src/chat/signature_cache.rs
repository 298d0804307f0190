//! A cache of the signatures of tool calls and of the reasoning before them, for clients whose format has no field for them or that did not request
//! reasoning.
//!
//! Gemini and Claude require their signed reasoning back with the tool calls that followed it, DeepSeek and Kimi its text. Clients of another format
//! send back the calls by id without the rest. So it is cached here by user and call id, in bounded memory; with `secrets.key` and a Redis it is also
//! stored there, encrypted for its user, for the other nodes and after a restart. If an entry is missing (an old conversation, a Redis that was
//! emptied), each format's writer has a documented way without it.

use std::sync::Arc;
use std::time::Duration;

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use tollgate_chat::hub::{Choice, ExtraFields, Opaque, Part, PartKind, Request, Role, Turn};

use crate::chat::sealed_memory::{EntryKind, Found, SealedMemory};

/// Bytes of all entries.
const MAX_BYTES: u64 = 32 * 1024 * 1024;
/// Bytes of one entry.
const MAX_ENTRY_BYTES: usize = 256 * 1024;
/// Expected number of entries.
const ESTIMATED_ENTRIES: usize = 16 * 1024;
/// How long an entry is kept, and so how long a conversation may pause.
const TTL: Duration = Duration::from_secs(24 * 3_600);

/// How long the gateway remembers that the shared cache has no entry for a call.
const MISSING_TTL: Duration = Duration::from_secs(600);
/// Calls of one request whose entries are read from the shared cache, at most: the latest ones.
const MAX_FETCHED: usize = 64;

/// Signatures and reasoning, by tool call.
pub struct SignatureCache {
    local: Cache<CallId, Arc<Entry>, ByBytes>,
    /// The cache that all nodes share; `None` without Redis or `secrets.key`.
    shared: Option<Arc<SealedMemory>>,
}

/// User id and id of the tool call.
type CallId = (String, String);

struct Entry {
    inserted_at: Instant,
    /// The reasoning before the call.
    reasoning: Vec<Part>,
    /// The signature on the call itself.
    signature: Option<Opaque>,
    /// The size of reasoning and signature; 0 if the nodes' shared cache was read and has no entry.
    bytes: usize,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<CallId, Arc<Entry>> for ByBytes {
    fn weight(&self, id: &CallId, entry: &Arc<Entry>) -> u64 {
        (id.0.len() + id.1.len() + entry.bytes + 128) as u64
    }
}

impl SignatureCache {
    /// An empty cache. Missing entries are read from `shared`.
    pub fn new(shared: Option<Arc<SealedMemory>>) -> Self {
        Self {
            local: Cache::with_weighter(ESTIMATED_ENTRIES, MAX_BYTES, ByBytes),
            shared,
        }
    }

    /// Caches the signatures of the tool calls in a response that is sent to `user_id` in another format.
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
                    let bytes = entry_bytes(&reasoning, signature.as_ref());
                    if bytes <= MAX_ENTRY_BYTES {
                        let entry = Entry {
                            inserted_at: Instant::now(),
                            reasoning,
                            signature: signature.clone(),
                            bytes,
                        };
                        self.share(user_id, id, &entry);
                        self.local
                            .insert((user_id.to_owned(), id.clone()), Arc::new(entry));
                    }
                }
                _ => {}
            }
        }
    }

    fn share(&self, user_id: &str, call_id: &str, entry: &Entry) {
        if let Some(shared) = &self.shared
            && let Some(text) = SharedEntry::new(entry)
            && let Ok(text) = serde_json::to_vec(&text)
        {
            shared.put(EntryKind::Signature, user_id, call_id, &text);
        }
    }

    /// Reads the entries that [`Self::restore`] needs for `request` from the shared cache, in one call to Redis. Missing entries are not requested
    /// again soon.
    pub async fn fetch(&self, user_id: &str, request: &Request) {
        let Some(shared) = &self.shared else {
            return;
        };
        let missing = self.missing_calls(user_id, request);
        if missing.is_empty() {
            return;
        }
        let found = shared.get(EntryKind::Signature, user_id, &missing).await;
        let found = found.unwrap_or_default();
        for (call_id, found) in missing.into_iter().zip(found) {
            let entry = match found {
                Found::Text(text) => serde_json::from_slice::<SharedEntry>(&text).ok(),
                Found::Nothing | Found::OfAnother => None,
            };
            let entry = entry.unwrap_or_default().into_entry();
            self.local
                .insert((user_id.to_owned(), call_id.to_owned()), Arc::new(entry));
        }
    }

    /// The calls without a signature for which this node has no entry, in turns without signed reasoning; the latest first, at most [`MAX_FETCHED`].
    fn missing_calls<'a>(&self, user_id: &str, request: &'a Request) -> Vec<&'a str> {
        let turns = request.turns.iter().rev();
        let unsigned = turns.filter(|turn| turn.role == Role::Assistant && !is_signed(turn));
        let calls = unsigned.flat_map(|turn| turn.parts.iter().rev());
        let ids = calls.filter_map(|part| match &part.kind {
            PartKind::ToolCall { id, signature, .. } => signature.is_none().then_some(id.as_str()),
            _ => None,
        });
        let is_missing = |id: &&str| {
            let known = self.local.get(&(user_id.to_owned(), (*id).to_owned()));
            known.is_none_or(|entry| entry.bytes == 0 && entry.inserted_at.elapsed() >= MISSING_TTL)
        };
        ids.filter(is_missing).take(MAX_FETCHED).collect()
    }

    /// Restores the signatures of those tool calls of `request` that have none, and inserts the reasoning before the calls of each turn that has no
    /// signed reasoning; reasoning without a signature is inserted only into turns that have no reasoning.
    pub fn restore(&self, user_id: &str, request: &mut Request) {
        if self.local.is_empty() {
            return;
        }
        for turn in request
            .turns
            .iter_mut()
            .filter(|turn| turn.role == Role::Assistant)
        {
            let has_signature = is_signed(turn);
            let has_reasoning = turn.parts.iter().any(|part| byte_size(part) > 0);
            let mut at = 0;
            while at < turn.parts.len() {
                if let PartKind::ToolCall { id, signature, .. } = &mut turn.parts[at].kind
                    && let Some(entry) = self.local.get(&(user_id.to_owned(), id.clone()))
                    && entry.inserted_at.elapsed() < TTL
                {
                    if signature.is_none() {
                        signature.clone_from(&entry.signature);
                    }
                    let is_signed = entry.reasoning.iter().any(is_signed_reasoning);
                    if !has_signature && (is_signed || !has_reasoning) {
                        turn.parts.splice(at..at, entry.reasoning.iter().cloned());
                        at += entry.reasoning.len();
                    }
                }
                at += 1;
            }
        }
    }
}

/// An entry in the form in which nodes share it.
#[derive(Default, Serialize, Deserialize)]
struct SharedEntry {
    reasoning: Vec<SharedPart>,
    signature: Option<SharedOpaque>,
}

/// Vendor and data.
type SharedOpaque = (String, String);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SharedPart {
    Reasoning {
        text: String,
        signature: Option<SharedOpaque>,
        id: Option<String>,
        summary: bool,
    },
    Redacted(SharedOpaque),
}

impl SharedEntry {
    /// `None` if the entry contains data that only its format's code can read, which stays on this node.
    fn new(entry: &Entry) -> Option<Self> {
        let shared = |opaque: &Opaque| (opaque.vendor.clone(), opaque.data.clone());
        let part = |part: &Part| match &part.kind {
            _ if part.extra != ExtraFields::NONE => None,
            PartKind::Reasoning {
                text,
                signature,
                id,
                summary,
            } => Some(SharedPart::Reasoning {
                text: text.clone(),
                signature: signature.as_ref().map(shared),
                id: id.clone(),
                summary: *summary,
            }),
            PartKind::RedactedReasoning(opaque) => Some(SharedPart::Redacted(shared(opaque))),
            _ => None,
        };
        Some(Self {
            reasoning: entry.reasoning.iter().map(part).collect::<Option<_>>()?,
            signature: entry.signature.as_ref().map(shared),
        })
    }

    fn into_entry(self) -> Entry {
        let opaque = |(vendor, data): SharedOpaque| Opaque { vendor, data };
        let part = |part| match part {
            SharedPart::Reasoning {
                text,
                signature,
                id,
                summary,
            } => Part::new(PartKind::Reasoning {
                text,
                signature: signature.map(opaque),
                id,
                summary,
            }),
            SharedPart::Redacted(redacted) => {
                Part::new(PartKind::RedactedReasoning(opaque(redacted)))
            }
        };
        let reasoning: Vec<Part> = self.reasoning.into_iter().map(part).collect();
        let signature = self.signature.map(opaque);
        Entry {
            inserted_at: Instant::now(),
            bytes: entry_bytes(&reasoning, signature.as_ref()),
            reasoning,
            signature,
        }
    }
}

/// Whether a turn has reasoning with a signature.
fn is_signed(turn: &Turn) -> bool {
    turn.parts.iter().any(is_signed_reasoning)
}

fn is_signed_reasoning(part: &Part) -> bool {
    match &part.kind {
        PartKind::Reasoning { signature, .. } => signature.is_some(),
        PartKind::RedactedReasoning(_) => true,
        _ => false,
    }
}

fn entry_bytes(reasoning: &[Part], signature: Option<&Opaque>) -> usize {
    reasoning.iter().map(byte_size).sum::<usize>() + signature.map_or(0, |s| s.data.len())
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
        let cache = SignatureCache::new(None);
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

    #[test]
    fn an_entry_is_shared_as_it_is() {
        let reasoning = vec![
            Part::new(PartKind::Reasoning {
                text: "hm".to_owned(),
                signature: Some(Opaque::new("anthropic", "proof")),
                id: Some("rs_1".to_owned()),
                summary: true,
            }),
            Part::new(PartKind::RedactedReasoning(Opaque::new("anthropic", "xyz"))),
        ];
        let entry = Entry {
            inserted_at: Instant::now(),
            bytes: entry_bytes(&reasoning, None),
            reasoning,
            signature: Some(Opaque::new("gemini", "sig")),
        };
        let shared = SharedEntry::new(&entry).expect("nothing of one format only");
        let text = serde_json::to_string(&shared).unwrap();
        let again = serde_json::from_str::<SharedEntry>(&text)
            .unwrap()
            .into_entry();
        assert_eq!(again.reasoning, entry.reasoning);
        assert_eq!(again.signature, entry.signature);
        let none = SharedEntry::default().into_entry();
        assert_eq!((none.bytes, none.signature), (0, None));
    }
}
