//! How far the replica has replayed the primary's log, as far as this process knows.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tollgate_core::Millis;

/// The maximum age of the moment up to which the replica is known to have everything.
pub(super) const MAX_AGE: Duration = Duration::from_secs(2);
/// Positions of the primary that are remembered until the replica has reached them.
const MAX_POSITIONS: usize = 16;

#[derive(Default)]
pub(super) struct State {
    /// Positions of the primary that the replica has not reached yet, and when each was read.
    positions: VecDeque<Position>,
    /// The last position that it has reached.
    pub(super) reached: Option<Position>,
    /// When this process last changed an ended task or chat.
    pub(super) changed_at: Option<Instant>,
    /// Whether it was verified to be a replica of this database.
    pub(super) is_known: bool,
}

/// A position in the primary's write-ahead log.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    pub(super) bytes: i64,
    pub(super) read_at: Instant,
    /// The time of the read by the primary's clock.
    pub(super) time: Millis,
}

impl State {
    /// The last position that the replica has reached, if it is recent.
    pub(super) fn fresh(&self, now: Instant) -> Option<Position> {
        let reached = self.reached?;
        let is_recent = now.saturating_duration_since(reached.read_at) <= MAX_AGE;
        let is_later = self.changed_at.is_none_or(|at| at < reached.read_at);
        (is_recent && is_later).then_some(reached)
    }

    pub(super) fn note(&mut self, primary: Position, replayed: i64) {
        if self.positions.len() == MAX_POSITIONS {
            self.positions.pop_front();
        }
        self.positions.push_back(primary);
        while let Some(first) = self.positions.front()
            && first.bytes <= replayed
        {
            self.reached = self.positions.pop_front();
        }
    }

    /// Records that the replica does not respond, or is not a replica.
    pub(super) fn lose(&mut self) {
        self.positions.clear();
        self.reached = None;
        self.is_known = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(bytes: i64, read_at: Instant) -> Position {
        Position {
            bytes,
            read_at,
            time: bytes,
        }
    }

    #[test]
    fn a_replica_is_fresh_while_it_has_reached_a_recent_position() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut state = State::default();
        assert!(state.fresh(start).is_none());
        state.note(position(100, at(0)), 99);
        assert!(state.fresh(at(0)).is_none());
        // The replica has reached the first position, but not the second.
        state.note(position(200, at(500)), 150);
        assert_eq!(state.fresh(at(2_000)).unwrap().bytes, 100);
        assert!(state.fresh(at(2_001)).is_none());
        state.note(position(300, at(1_000)), 300);
        assert_eq!(state.fresh(at(3_000)).unwrap().bytes, 300);
        // After a change of this process, the replica is not fresh until it has reached a later position.
        state.changed_at = Some(at(1_200));
        assert!(state.fresh(at(1_300)).is_none());
        state.note(position(400, at(1_500)), 400);
        assert_eq!(state.fresh(at(1_500)).unwrap().bytes, 400);
        state.lose();
        assert!(state.fresh(at(1_500)).is_none());
    }

    #[test]
    fn the_number_of_unreached_positions_is_limited() {
        let start = Instant::now();
        let mut state = State::default();
        for n in 0..100 {
            state.note(position(100 + n, start), 0);
        }
        assert_eq!(state.positions.len(), MAX_POSITIONS);
    }
}
