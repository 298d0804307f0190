//! Selects one of the channels that serve a model: by priority, weight and session affinity; channels that were tried, are busy or are in cooldown
//! are passed over.

use std::hash::Hasher as _;
use std::sync::Arc;
use std::time::Duration;

use fnv::FnvHasher;
use rand::RngExt as _;
use tokio::time::Instant;

use super::channel::{ChannelPermit, OpenChannel, TriedKey};
use super::cooldown::Cooldown;
use super::health::Availability;

/// The outcome of selecting a channel.
pub enum Selection {
    /// A permit for a call on the selected channel.
    Permit(ChannelPermit),
    /// Channels serve the model, but all are at their `max_concurrency`, or their free permits are reserved for other users.
    AllBusy,
    /// Every channel that serves the model is paused, by an operator or because its upstream requested it; contains the time until the first pause
    /// ends.
    CoolingDown(Duration),
    /// No channel serves the model, or all have been tried.
    None,
}

/// The next channel, on which this node has no permit left: other nodes may have unused ones.
pub(super) type NeedsPermit = Arc<OpenChannel>;

/// Selects among `candidates`: ready channels by priority and weight; if all are in cooldown, the one whose cooldown ends first, unless its upstream
/// requested the pause. If `may_borrow`, a full channel is returned as `NeedsPermit` and not passed over, so that a permit can be requested from
/// other nodes.
pub(super) fn select(
    candidates: Vec<&Arc<OpenChannel>>,
    model: &str,
    tried: &[TriedKey],
    session: Option<u64>,
    user_id: &str,
    may_borrow: bool,
) -> Result<Selection, NeedsPermit> {
    let mut ready = Vec::with_capacity(candidates.len());
    let mut cooling_down: Option<(Cooldown, &Arc<OpenChannel>, Option<usize>)> = None;
    for open in candidates {
        match open.availability(model, tried, session, user_id) {
            Availability::Ready(key) => ready.push((open, key)),
            Availability::CoolingDown { cooldown, key } => {
                // Cooldowns that no upstream requested come first, then the one that ends first.
                let rank = |c: &Cooldown| (c.is_requested, c.until);
                if cooling_down
                    .as_ref()
                    .is_none_or(|(best, ..)| rank(&cooldown) < rank(best))
                {
                    cooling_down = Some((cooldown, open, key));
                }
            }
            Availability::AllKeysTried => {}
        }
    }
    let any_ready = !ready.is_empty();
    while !ready.is_empty() {
        let best = ready
            .iter()
            .map(|(c, _)| c.channel.priority)
            .min()
            .unwrap_or_default();
        let selected = select_by_weight(&ready, best, session);
        let (open, key) = ready.swap_remove(selected);
        if let Some(permit) = open.acquire(key, user_id) {
            return Ok(Selection::Permit(permit));
        }
        if may_borrow && open.may_borrow() {
            return Err(Arc::clone(open));
        }
    }
    Ok(match cooling_down {
        _ if any_ready => Selection::AllBusy,
        None => Selection::None,
        Some((cooldown, ..)) if cooldown.is_requested => {
            Selection::CoolingDown(cooldown.until.saturating_duration_since(Instant::now()))
        }
        Some((_, open, key)) => match open.acquire(key, user_id) {
            Some(permit) => Selection::Permit(permit.despite_cooldown(model, user_id)),
            None => Selection::AllBusy,
        },
    })
}

/// The index of one of the candidates with priority `best`: at random by weight, or always the same one for a session.
fn select_by_weight(
    ready: &[(&Arc<OpenChannel>, Option<usize>)],
    best: i64,
    session: Option<u64>,
) -> usize {
    let weight = |c: &OpenChannel| {
        if c.channel.priority == best {
            u64::from(c.channel.weight.max(1))
        } else {
            0
        }
    };
    if let Some(session) = session {
        // Rendezvous hashing: if a channel is added or removed, only its own sessions move.
        let score = |c: &OpenChannel| {
            let unit = (hash_session(session, &c.channel.name) >> 11) as f64 / (1u64 << 53) as f64;
            weight(c) as f64 / -(unit.max(f64::MIN_POSITIVE).ln())
        };
        let best = ready
            .iter()
            .enumerate()
            .max_by(|(_, a), (_, b)| score(a.0).total_cmp(&score(b.0)));
        return best.map(|(index, _)| index).unwrap_or_default();
    }
    if ready.len() == 1 {
        return 0;
    }
    let total: u64 = ready.iter().map(|(c, _)| weight(c)).sum();
    let mut left = rand::rng().random_range(0..total.max(1));
    ready
        .iter()
        .position(|(c, _)| {
            let weight = weight(c);
            let selected = left < weight;
            left = left.saturating_sub(weight);
            selected
        })
        .unwrap_or_default()
}

/// A hash that is the same in every process and version (FNV-1a, finished by a multiply and shift).
fn hash_session(session: u64, name: &str) -> u64 {
    let mut hasher = FnvHasher::with_key(session ^ FnvHasher::default().finish());
    hasher.write(name.as_bytes());
    let mut hash = hasher.finish();
    hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    hash ^ (hash >> 32)
}

/// The session of an end user of an API key: its requests use the same channel and key.
pub fn session_hash(key_id: &str, end_user: &str) -> u64 {
    hash_session(hash_session(0, key_id), end_user)
}
