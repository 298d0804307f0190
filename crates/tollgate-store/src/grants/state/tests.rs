//! Tests the protocol of grants against a model of the database: random schedules of nodes that reserve, settle, refill and release. Each write may
//! succeed, be rejected, or fail with and without being applied, and nodes are suspended while others release their grants.

mod exploration;
mod model;

use std::collections::BTreeMap;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::*;

const SCHEDULES: u64 = 2_000;
const STEPS: usize = 150;
const BALANCE: i64 = 400;
const NODES: usize = 3;

/// A seeded generator of small numbers.
struct Random(StdRng);

impl Random {
    fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    fn below(&mut self, n: i64) -> i64 {
        self.0.random_range(0..n)
    }
}

/// The outcome of a write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Committed,
    /// The caller sees an error, whether or not the write was applied.
    AppliedInDoubt,
    NotApplied,
}

impl End {
    fn draw(random: &mut Random) -> Self {
        match random.below(12) {
            0 => Self::AppliedInDoubt,
            1 => Self::NotApplied,
            _ => Self::Committed,
        }
    }

    fn is_applied(self) -> bool {
        self != Self::NotApplied
    }
}

/// Which guards the statements of the model have.
#[derive(Debug, Clone, Copy)]
struct Guards {
    /// A grant is lowered only once, and only if it is as its node expects.
    lower: bool,
    /// Other nodes release only grants of a node whose heartbeat has expired.
    dead_node: bool,
}

impl Guards {
    const ALL: Self = Self {
        lower: true,
        dead_node: true,
    };
}

/// A row of `grants`.
#[derive(Debug, Clone)]
struct Row {
    node: usize,
    amount: i64,
    granted: i64,
    released: i64,
}

#[derive(Debug, Clone)]
struct Database {
    available: i64,
    spent: i64,
    rows: BTreeMap<String, Row>,
    /// Whether an account has paid for a chat whose grant had been released.
    is_settled_late: bool,
    guards: Guards,
}

impl Database {
    fn new(available: i64, guards: Guards) -> Self {
        Self {
            available,
            spent: 0,
            rows: BTreeMap::new(),
            is_settled_late: false,
            guards,
        }
    }

    /// Models `open_grant` and `raise_grant`. `None` is a rejection, 0 a grant that does not exist any more or has changed.
    fn give(&mut self, node: usize, write: &GrantWrite) -> Option<i64> {
        let (min, max) = match write {
            GrantWrite::Open(new) => (new.min, new.max),
            GrantWrite::Raise(raise) => (raise.min, raise.max),
        };
        let amount = max.nanos().max(min.nanos()).min(self.available / 4);
        if amount < min.nanos() {
            return None;
        }
        match write {
            GrantWrite::Open(new) => {
                let row = Row {
                    node,
                    amount,
                    granted: amount,
                    released: 0,
                };
                self.rows.insert(new.id.clone(), row);
            }
            GrantWrite::Raise(raise) => match self.rows.get_mut(&raise.id) {
                Some(row) if row.granted == raise.granted.nanos() => {
                    row.amount += amount;
                    row.granted += amount;
                }
                _ => return Some(0),
            },
        }
        self.available -= amount;
        Some(amount)
    }

    /// Models `SETTLE_GRANT`; if that fails, the account pays.
    fn settle(&mut self, id: &str, cost: i64) -> bool {
        self.spent += cost;
        match self.rows.get_mut(id) {
            Some(row) if row.amount >= cost => {
                row.amount -= cost;
                true
            }
            _ => {
                self.available -= cost;
                self.is_settled_late = true;
                false
            }
        }
    }

    /// Models `lower_grant` and `close_grant`.
    fn apply_return(&mut self, returned: &Return) -> bool {
        let amount = match &returned.part {
            None => match self.rows.remove(&returned.id) {
                Some(row) => row.amount,
                None => return false,
            },
            Some(part) => match self.rows.get_mut(&returned.id) {
                Some(row)
                    if !self.guards.lower
                        || row.released == part.released.nanos()
                            && row.amount >= part.amount.nanos() =>
                {
                    row.amount -= part.amount.nanos();
                    row.released += part.amount.nanos();
                    part.amount.nanos()
                }
                _ => return false,
            },
        };
        self.available += amount;
        true
    }

    fn release_all_of(&mut self, node: usize) {
        let available = &mut self.available;
        self.rows.retain(|_, row| {
            if row.node == node {
                *available += row.amount;
            }
            row.node != node
        });
    }
}

struct Chat {
    grant_id: String,
    reserved: i64,
    /// Whether other nodes released its grant while the node was suspended.
    is_uncovered: bool,
}

#[derive(Default)]
struct Node {
    state: GrantsState,
    chats: Vec<Chat>,
    writes: Vec<GrantWrite>,
    returns: Vec<Return>,
}

const ACCOUNT: Account<'static> = Account {
    user_id: "user",
    key_id: "key",
};

impl Node {
    fn step(&mut self, number: usize, db: &mut Database, random: &mut Random) {
        match random.below(16) {
            0..6 => self.reserve(1 + random.below(6)),
            6..10 if !self.chats.is_empty() => self.settle(db, random),
            10 if !self.chats.is_empty() => {
                let chat = self.draw_chat(random);
                let reserved = Amount::from_nanos(chat.reserved);
                let state = &mut self.state;
                state.end_reservation(&chat.grant_id, reserved, Amount::ZERO);
            }
            11 => {
                let returns = self.state.take_returns();
                self.returns.extend(returns);
            }
            12 if random.below(6) == 0 => self.state.retire_of_user("user"),
            13 if random.below(6) == 0 => self.be_idle(),
            14 if random.below(12) == 0 => self.sleep(number, db),
            _ => self.end_write(number, db, random),
        }
        // The time for which users get no grants is shortened here.
        self.state.without.clear();
    }

    fn draw_chat(&mut self, random: &mut Random) -> Chat {
        let count = i64::try_from(self.chats.len()).expect("few");
        let at = usize::try_from(random.below(count)).expect("positive");
        self.chats.swap_remove(at)
    }

    fn reserve(&mut self, amount: i64) {
        let (step, write) = self
            .state
            .reserve(ACCOUNT, Amount::from_nanos(amount), 0, false);
        self.writes.extend(write);
        if let Step::Reserved(grant_id) = step {
            self.chats.push(Chat {
                grant_id,
                reserved: amount,
                is_uncovered: false,
            });
        }
    }

    fn settle(&mut self, db: &mut Database, random: &mut Random) {
        let mut chat = self.draw_chat(random);
        let cost = random.below(chat.reserved + 3);
        if cost > chat.reserved {
            let missing = Amount::from_nanos(cost - chat.reserved);
            chat.reserved += self.state.reserve_more(&chat.grant_id, missing).nanos();
        }
        let covered = cost.min(chat.reserved);
        let reserved = Amount::from_nanos(chat.reserved);
        let end = End::draw(random);
        if end.is_applied() {
            let is_paid = db.settle(&chat.grant_id, covered);
            assert!(is_paid || chat.is_uncovered, "the grant has too little");
        }
        let spent = if end == End::Committed {
            Amount::from_nanos(covered)
        } else {
            self.state.retire_uncertain(&chat.grant_id);
            Amount::ZERO
        };
        self.state.end_reservation(&chat.grant_id, reserved, spent);
    }

    /// Ends a write that is in progress.
    fn end_write(&mut self, number: usize, db: &mut Database, random: &mut Random) {
        let end = End::draw(random);
        if let Some(write) = self.writes.pop() {
            let given = end.is_applied().then(|| db.give(number, &write));
            match (write, given.filter(|_| end == End::Committed)) {
                (_, Some(None)) => self.state.leave_without("user"),
                (GrantWrite::Open(new), Some(Some(amount))) => {
                    let amount = Amount::from_nanos(amount);
                    self.state.record_open(ACCOUNT, new.id, amount);
                }
                (GrantWrite::Raise(raise), Some(Some(amount))) if amount > 0 => {
                    self.state
                        .record_raise(&raise.id, Amount::from_nanos(amount));
                }
                (GrantWrite::Open(new), None) => self.state.may_be_open(ACCOUNT, new.id),
                (GrantWrite::Raise(raise), _) => self.state.retire_uncertain(&raise.id),
            }
            self.state.end_change("key");
        } else if let Some(returned) = self.returns.pop() {
            let is_closed = returned.part.is_none();
            let is_known = end.is_applied() && db.apply_return(&returned);
            let is_written = end == End::Committed && (is_closed || is_known);
            self.state
                .record_return(&returned.id, is_closed, is_written);
        }
    }

    fn be_idle(&mut self) {
        let long_ago = Instant::now().checked_sub(IDLE);
        for key in self.state.keys.values_mut() {
            key.need.last_chat = long_ago.expect("the machine runs for a while");
        }
    }

    /// Suspends a node: others release its grants; it resumes, and its next heartbeat is late.
    fn sleep(&mut self, number: usize, db: &mut Database) {
        db.release_all_of(number);
        self.chats
            .iter_mut()
            .for_each(|chat| chat.is_uncovered = true);
        let before = Instant::now().checked_sub(Duration::from_secs(31));
        let before = before.expect("the machine runs for a while");
        self.state.heartbeat = None;
        let lease = 30_000;
        self.state.heartbeat_confirmed("node", before, 0, lease);
        self.state
            .heartbeat_confirmed("node", Instant::now(), 0, lease);
    }

    fn check(&self, number: usize, db: &Database) {
        for (id, grant) in &self.state.grants {
            let reserved = grant.reserved.nanos();
            let of_chats = self.chats.iter().filter(|chat| chat.grant_id == *id);
            assert_eq!(
                reserved,
                of_chats.clone().map(|chat| chat.reserved).sum::<i64>()
            );
            let Some(row) = db.rows.get(id) else { continue };
            assert_eq!(row.node, number);
            let covered: i64 = of_chats
                .filter(|chat| !chat.is_uncovered)
                .map(|chat| chat.reserved)
                .sum();
            assert!(covered <= row.amount, "{grant:?} {row:?}");
            assert!(grant.free >= Amount::ZERO);
            if !grant.is_uncertain {
                assert!(
                    grant.free.nanos() + reserved <= row.amount,
                    "{grant:?} {row:?}"
                );
            }
        }
    }

    /// Ends everything that is in progress, with writes that succeed.
    fn finish(&mut self, number: usize, db: &mut Database) {
        for chat in std::mem::take(&mut self.chats) {
            let reserved = Amount::from_nanos(chat.reserved);
            let state = &mut self.state;
            state.end_reservation(&chat.grant_id, reserved, Amount::ZERO);
        }
        // Writes that have begun end in a random way.
        let mut random = Random::new(7);
        while !self.writes.is_empty() || !self.returns.is_empty() {
            self.end_write(number, db, &mut random);
        }
        self.state.retire_all();
        for returned in self.state.take_returns() {
            let is_closed = returned.part.is_none();
            db.apply_return(&returned);
            self.state.record_return(&returned.id, is_closed, true);
        }
        assert!(self.state.grants.is_empty(), "{:?}", self.state.grants);
    }
}

#[test]
fn reservations_never_exceed_their_grant() {
    let (mut reservations, mut grants) = (0, 0);
    for schedule in 1..=SCHEDULES {
        let mut random = Random::new(schedule);
        let mut db = Database::new(BALANCE, Guards::ALL);
        let mut nodes: Vec<Node> = (0..NODES).map(|_| Node::default()).collect();
        for node in &mut nodes {
            let now = Instant::now();
            node.state.heartbeat_confirmed("node", now, 0, 30_000);
        }
        for _ in 0..STEPS {
            let at = usize::try_from(random.below(3)).expect("positive");
            let before = nodes[at].chats.len();
            nodes[at].step(at, &mut db, &mut random);
            reservations += usize::from(nodes[at].chats.len() > before);
            grants = grants.max(db.rows.len());
            for (number, node) in nodes.iter().enumerate() {
                node.check(number, &db);
            }
        }
        for (number, node) in nodes.iter_mut().enumerate() {
            node.finish(number, &mut db);
        }
        assert!(db.rows.is_empty(), "{:?}", db.rows);
        assert_eq!(db.available + db.spent, BALANCE);
    }
    // Checks that the schedules reached every interesting case.
    assert!(
        reservations > 20_000 && grants >= NODES,
        "{reservations} {grants}"
    );
}

#[test]
fn a_chat_that_waited_is_counted_once() {
    let mut state = GrantsState::default();
    state.heartbeat_confirmed("node", Instant::now(), 0, 30_000);
    let cent = Amount::from_nanos(10_000_000);
    state.reserve(ACCOUNT, cent, 0, false);
    let (step, write) = state.reserve(ACCOUNT, cent, 0, false);
    assert!(matches!(step, Step::Wait(_)));
    let Some(GrantWrite::Open(new)) = write else {
        panic!("no grant is opened")
    };
    assert_eq!(new.max, cent + cent);
    state.record_open(ACCOUNT, new.id, new.max);
    state.end_change("key");
    let (step, write) = state.reserve(ACCOUNT, cent, 0, true);
    assert!(matches!(step, Step::Reserved(_)));
    assert!(write.is_none(), "half of what the key needs is free");
}

#[test]
fn grants_are_retired_after_a_gap_between_heartbeats_by_the_wall_clock() {
    let mut state = GrantsState::default();
    let lease = 30_000;
    state.heartbeat_confirmed("node", Instant::now(), 0, lease);
    state.record_open(ACCOUNT, "grant".to_owned(), Amount::from_nanos(1));
    state.heartbeat_confirmed("node", Instant::now(), lease / 2, lease);
    assert!(!state.grants["grant"].is_retired);
    state.heartbeat_confirmed("node", Instant::now(), lease * 3 / 2, lease);
    assert!(state.grants["grant"].is_retired);
}
