//! Signatures of tool calls, kept for clients whose format cannot carry them.
//!
//! Gemini and Claude want the proof of their thinking back with the tool calls that followed it. Clients of another format send the
//! calls back by id and drop the rest, so what belongs to an id is kept here, per user, in bounded memory. What was lost (another node,
//! a restart, an old conversation) is the writers' business: each format has a documented way without.

use std::sync::Arc;
use std::time::Duration;

use quick_cache::Weighter;
use quick_cache::sync::Cache;
use tokio::time::Instant;
use tollgate_chat::hub::{Choice, Kind, Opaque, Part, Request, Role};

/// Bytes of memory for all of it.
const MOST_BYTES: u64 = 32 * 1024 * 1024;
/// What one call may take.
const ONE_CALL: usize = 256 * 1024;
/// Calls that are expected in that memory.
const CALLS: usize = 16 * 1024;
/// How long a conversation may pause.
const LIFE: Duration = Duration::from_secs(24 * 3_600);

/// What belongs to tool calls.
pub struct Memory(Cache<Name, Arc<Kept>, Size>);

/// User id and call id.
type Name = (String, String);

struct Kept {
    since: Instant,
    /// The thinking that led to the call, signed.
    before: Vec<Part>,
    /// The signature on the call itself.
    signature: Option<Opaque>,
    bytes: usize,
}

#[derive(Clone)]
struct Size;

impl Weighter<Name, Arc<Kept>> for Size {
    fn weight(&self, name: &Name, kept: &Arc<Kept>) -> u64 {
        (name.0.len() + name.1.len() + kept.bytes + 128) as u64
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self(Cache::with_weighter(CALLS, MOST_BYTES, Size))
    }
}

impl Memory {
    /// Keeps what belongs to the tool calls of a reply that goes to `user_id` in another format.
    pub fn keep(&self, user_id: &str, choice: &Choice) {
        let mut before: Vec<Part> = Vec::new();
        for part in &choice.parts {
            match &part.kind {
                Kind::Reasoning {
                    signature: Some(_), ..
                }
                | Kind::Redacted(_) => before.push(part.clone()),
                Kind::ToolCall { id, signature, .. }
                    if signature.is_some() || !before.is_empty() =>
                {
                    let before = std::mem::take(&mut before);
                    let bytes = before.iter().map(size).sum::<usize>()
                        + signature.as_ref().map_or(0, |s| s.data.len());
                    if bytes <= ONE_CALL {
                        let kept = Kept {
                            since: Instant::now(),
                            before,
                            signature: signature.clone(),
                            bytes,
                        };
                        self.0
                            .insert((user_id.to_owned(), id.clone()), Arc::new(kept));
                    }
                }
                _ => {}
            }
        }
    }

    /// Puts back what belongs to the tool calls of `request`, where the client did not send it itself.
    pub fn recall(&self, user_id: &str, request: &mut Request) {
        if self.0.is_empty() {
            return;
        }
        for turn in request
            .turns
            .iter_mut()
            .filter(|turn| turn.role == Role::Assistant)
        {
            let has_thinking = |part: &Part| match &part.kind {
                Kind::Reasoning { signature, .. } => signature.is_some(),
                Kind::Redacted(_) => true,
                _ => false,
            };
            let has_thinking = turn.parts.iter().any(has_thinking);
            let mut at = 0;
            while at < turn.parts.len() {
                if let Kind::ToolCall { id, signature, .. } = &mut turn.parts[at].kind
                    && let Some(kept) = self.0.get(&(user_id.to_owned(), id.clone()))
                    && kept.since.elapsed() < LIFE
                {
                    if signature.is_none() {
                        signature.clone_from(&kept.signature);
                    }
                    if !has_thinking {
                        turn.parts.splice(at..at, kept.before.iter().cloned());
                        at += kept.before.len();
                    }
                }
                at += 1;
            }
        }
    }
}

fn size(part: &Part) -> usize {
    match &part.kind {
        Kind::Reasoning {
            text, signature, ..
        } => text.len() + signature.as_ref().map_or(0, |s| s.data.len()),
        Kind::Redacted(opaque) => opaque.data.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_chat::hub::Turn;

    fn call(signature: Option<Opaque>) -> Part {
        Part::of(Kind::ToolCall {
            id: "call_1".to_owned(),
            name: "f".to_owned(),
            arguments: "{}".to_owned(),
            custom: false,
            signature,
        })
    }

    #[test]
    fn what_a_client_cannot_carry_comes_back_to_its_own_user_only() {
        let signed = Opaque::new("gemini", "sig");
        let thought = Part::of(Kind::Reasoning {
            text: "hm".to_owned(),
            signature: Some(Opaque::new("anthropic", "proof")),
            id: None,
            summary: false,
        });
        let mut choice = Choice::empty(0);
        choice.parts = vec![
            thought.clone(),
            Part::text("let me see"),
            call(Some(signed.clone())),
        ];
        let memory = Memory::default();
        memory.keep("alice", &choice);

        let asked = || Request {
            turns: vec![Turn::of(Role::Assistant, vec![call(None)])],
            ..Request::default()
        };
        let mut request = asked();
        memory.recall("alice", &mut request);
        assert_eq!(request.turns[0].parts, vec![thought, call(Some(signed))]);
        let again = request.clone();
        memory.recall("alice", &mut request);
        assert_eq!(request, again, "nothing is put in twice");

        let mut request = asked();
        memory.recall("bob", &mut request);
        assert_eq!(request, asked());
    }
}
