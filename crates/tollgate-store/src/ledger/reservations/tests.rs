//! A model test: random schedules of the steps of chats and the writer, on a real database. After each step every reservation is covered, whether the
//! open batch is committed or rolled back.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use futures_util::FutureExt as _;
use proptest::prelude::*;
use rusqlite::Connection;
use tollgate_core::clock::DAY;
use tollgate_core::{Amount, Millis};

use super::{Account, Headroom, READ_HEADROOM, Reservation, Reservations, ReserveOutcome};
use crate::db::{Tx, args, migrate::migrate, sqlite};
use crate::ledger::balances::Balances;

const ACCOUNT: Account<'static> = Account {
    user_id: "user_1",
    key_id: "key_1",
};
const BALANCE: i64 = 100;
const QUOTA: i64 = 80;
/// The budget for a day, in schedules in which the user has one.
const BUDGET: i64 = 60;
/// Chats that run at the same time.
const CHATS: usize = 4;

#[derive(Debug, Clone)]
enum Step {
    /// A chat notes the epoch,
    NoteEpoch(usize),
    /// reads the rows,
    Read(usize),
    /// and tries to reserve.
    Reserve(usize, i64),
    /// A chat tries to reserve from a headroom that another chat read, or that the writer primed.
    ReserveFromCache(usize, i64),
    Drop(usize),
    /// The day of the budget ends.
    NextDay,
    Begin,
    Hold(i64),
    Release(i64),
    Debit(i64),
    SetQuota(i64),
    Settle(usize, i64),
    /// Commits the batch to disk; `end_batch` is not called yet.
    Commit,
    RollBack,
    /// Calls `end_batch`.
    End,
}

fn step() -> impl Strategy<Value = Step> {
    let chat = || 0..CHATS;
    prop_oneof![
        6 => chat().prop_map(Step::NoteEpoch),
        6 => chat().prop_map(Step::Read),
        8 => (chat(), 1..40i64).prop_map(|(chat, amount)| Step::Reserve(chat, amount)),
        8 => (chat(), 1..40i64).prop_map(|(chat, amount)| Step::ReserveFromCache(chat, amount)),
        1 => chat().prop_map(Step::Drop),
        1 => Just(Step::NextDay),
        6 => Just(Step::Begin),
        4 => (1..40i64).prop_map(Step::Hold),
        2 => (1..40i64).prop_map(Step::Release),
        1 => (1..40i64).prop_map(Step::Debit),
        2 => (0..2 * QUOTA).prop_map(Step::SetQuota),
        6 => (chat(), 0..60i64).prop_map(|(chat, cost)| Step::Settle(chat, cost)),
        6 => Just(Step::Commit),
        1 => Just(Step::RollBack),
        6 => Just(Step::End),
    ]
}

#[derive(Default)]
struct Chat {
    epoch: Option<u64>,
    headroom: Option<Headroom>,
    reserved: Option<(Reservation, i64)>,
    /// Whether its settlement is in the open batch.
    ending: bool,
}

enum Phase {
    Idle,
    Open(Balances),
    Committed,
    RolledBack,
}

/// The available amounts of balance and quota, the quota, what is held, and what was spent today.
#[derive(Clone, Copy)]
struct Available {
    user: i64,
    key: i64,
    quota: i64,
    held: i64,
    spent: i64,
}

struct Model {
    writer: Connection,
    reader: Connection,
    reservations: Arc<Reservations>,
    chats: [Chat; CHATS],
    phase: Phase,
    committed: Available,
    /// The amounts after the operations of the open batch so far.
    after: Available,
    has_budget: bool,
    now: Millis,
}

impl Model {
    /// Runs on a copy of the database `template`, which has tables and no rows.
    fn new(folder: &Path, template: &Path, has_budget: bool) -> Self {
        let path = folder.join("tollgate.db");
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(folder.join(format!("tollgate.db{end}")));
        }
        std::fs::copy(template, &path).unwrap();
        let writer = sqlite::open(&path).unwrap();
        writer.pragma_update(None, "synchronous", "off").unwrap();
        sqlite::run_script(&writer, &format!(
            "INSERT INTO users (id, name, unlimited, balance, held, used, created_at) VALUES ('user_1', 'ann', 0, {BALANCE}, 0, 0, 0);
             INSERT INTO keys (id, user_id, label, hash, quota, held, used, created_at, bare_envelope)
             VALUES ('key_1', 'user_1', '', 'h', {QUOTA}, 0, 0, 0, 0);",
        ))
        .unwrap();
        if has_budget {
            sqlite::run_script(&writer, &format!(
                "INSERT INTO budgets (id, owner_id, amount, period, hard, spent, period_start, created_at, version)
                 VALUES ('bud_1', 'user_1', {BUDGET}, 'day', 1, 0, 0, 0, 1);
                 UPDATE users SET budgets = 1;",
            ))
            .unwrap();
        }
        let left = Available {
            user: BALANCE,
            key: QUOTA,
            quota: QUOTA,
            held: 0,
            spent: 0,
        };
        Self {
            reader: sqlite::open_reader(&path).unwrap(),
            writer,
            reservations: Arc::default(),
            chats: <[Chat; CHATS]>::default(),
            phase: Phase::Idle,
            committed: left,
            after: left,
            has_budget,
            now: 0,
        }
    }

    /// The amounts that user and key leave available; for the user, the smaller one of balance and budget.
    fn left(&self, available: Available) -> [i64; 2] {
        let of_budget = BUDGET - available.spent - available.held;
        let user = match self.has_budget {
            true => available.user.min(of_budget),
            false => available.user,
        };
        [user, available.key]
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::NoteEpoch(chat) => {
                self.chats[chat].epoch = Some(self.reservations.epoch());
                self.chats[chat].headroom = None;
            }
            Step::Read(chat) => self.read(chat),
            Step::Reserve(chat, amount) => self.try_to_reserve(chat, amount),
            Step::ReserveFromCache(chat, amount) if self.chats[chat].reserved.is_none() => {
                let reservation = self
                    .reservations
                    .reserve_from_cache(ACCOUNT, Amount::from_nanos(amount));
                self.chats[chat].reserved = reservation.map(|reservation| (reservation, amount));
            }
            Step::Drop(chat) if !self.chats[chat].ending => self.chats[chat].reserved = None,
            Step::NextDay => {
                self.now += DAY;
                (self.committed.spent, self.after.spent) = (0, 0);
            }
            Step::Begin if matches!(self.phase, Phase::Idle) => self.begin(),
            Step::Commit => self.commit(),
            Step::RollBack => self.roll_back(),
            Step::End => self.end(),
            _ => self.run_in_batch(step),
        }
    }

    fn read(&mut self, chat: usize) {
        let chat = &mut self.chats[chat];
        if chat.epoch.is_some() {
            let [day, week, month] = Headroom::period_starts(self.now);
            let args = args![day, week, month, ACCOUNT.key_id, ACCOUNT.user_id];
            let mut rows = sqlite::query(&self.reader, &READ_HEADROOM, args).unwrap();
            chat.headroom = Headroom::read(&mut rows[0]).unwrap();
        }
    }

    fn try_to_reserve(&mut self, chat: usize, amount: i64) {
        let chat = &mut self.chats[chat];
        let (Some(headroom), Some(epoch), None) =
            (chat.headroom.take(), chat.epoch, &chat.reserved)
        else {
            return;
        };
        let wanted = Amount::from_nanos(amount);
        match self.reservations.reserve(ACCOUNT, wanted, headroom, epoch) {
            ReserveOutcome::Reserved(reservation) => chat.reserved = Some((reservation, amount)),
            ReserveOutcome::Insufficient => {}
            ReserveOutcome::Stale => assert_ne!(epoch, self.reservations.epoch()),
        }
    }

    fn begin(&mut self) {
        sqlite::begin(&self.writer).unwrap();
        let mut tx = Tx::Sqlite(sqlite::Transaction::new(&self.writer));
        let balances = Balances::load(
            &mut tx,
            BTreeSet::from([ACCOUNT.user_id]),
            BTreeSet::from([ACCOUNT.key_id]),
            Arc::clone(&self.reservations),
        );
        self.phase = Phase::Open(balances.now_or_never().unwrap().unwrap());
    }

    /// Runs a step of the open batch, if there is one.
    fn run_in_batch(&mut self, step: &Step) {
        let (free, now) = (self.free(), self.now);
        let [reserved, ending] = self.sums();
        let Phase::Open(balances) = &mut self.phase else {
            return;
        };
        let after = &mut self.after;
        match *step {
            Step::Hold(amount) => {
                let held = balances
                    .hold(ACCOUNT, Amount::from_nanos(amount), now)
                    .unwrap();
                assert_eq!(held.is_ok(), amount <= free[0].min(free[1]), "{held:?}");
                if held.is_ok() {
                    after.user -= amount;
                    after.key -= amount;
                    after.held += amount;
                }
            }
            Step::Release(amount) => {
                let amount = amount.min(after.held);
                let ended =
                    balances.close_hold(ACCOUNT, Amount::from_nanos(amount), Amount::ZERO, now);
                ended.unwrap();
                after.user += amount;
                after.key += amount;
                after.held -= amount;
            }
            Step::Debit(amount) => {
                let taken = balances.credit(ACCOUNT.user_id, Amount::from_nanos(-amount));
                let taken = taken.unwrap().is_ok();
                // Only the balance limits this amount.
                assert_eq!(taken, amount <= after.user + ending - reserved);
                after.user -= if taken { amount } else { 0 };
            }
            Step::SetQuota(quota) => {
                let set = balances.set_quota(ACCOUNT.key_id, Some(Amount::from_nanos(quota)));
                let raised = quota - after.quota;
                let is_set = set.unwrap().is_ok();
                assert_eq!(is_set, -raised <= free[1]);
                if is_set {
                    let update = format!("UPDATE keys SET quota = {quota}");
                    sqlite::run_script(&self.writer, &update).unwrap();
                    after.quota = quota;
                    after.key += raised;
                }
            }
            Step::Settle(chat, cost) => {
                let chat = &mut self.chats[chat];
                let Some((reservation, amount)) = chat.reserved.as_ref().filter(|_| !chat.ending)
                else {
                    return;
                };
                // If a chat costs more than is available, it causes a debt, for which the invariants do not hold.
                let cost = cost.min(amount + free[0].min(free[1]));
                let due = Amount::from_nanos(cost);
                let debt = balances
                    .charge(ACCOUNT, due, Some(reservation), now)
                    .unwrap();
                assert_eq!(
                    debt,
                    Amount::ZERO,
                    "at least the reserved amount is available"
                );
                chat.ending = true;
                after.user -= cost;
                after.key -= cost;
                after.spent += cost;
            }
            _ => {}
        }
    }

    fn commit(&mut self) {
        if let Phase::Open(balances) = &self.phase {
            balances
                .write_back(&mut Tx::Sqlite(sqlite::Transaction::new(&self.writer)))
                .unwrap();
            balances.prime_reservations();
            sqlite::commit(&self.writer).unwrap();
            self.committed = self.after;
            self.phase = Phase::Committed;
        }
    }

    fn roll_back(&mut self) {
        if let Phase::Open(balances) = &self.phase {
            balances.prime_reservations();
            sqlite::roll_back(&self.writer);
            self.after = self.committed;
            self.phase = Phase::RolledBack;
        }
    }

    fn end(&mut self) {
        let committed = match self.phase {
            Phase::Committed => true,
            Phase::RolledBack => false,
            _ => return,
        };
        self.reservations.end_batch(committed);
        self.phase = Phase::Idle;
        for chat in &mut self.chats {
            if std::mem::take(&mut chat.ending) && committed {
                chat.reserved = None;
            }
        }
    }

    /// The sum of all reservations, and of those that end with the batch.
    fn sums(&self) -> [i64; 2] {
        let amount = |chat: &Chat| chat.reserved.as_ref().map_or(0, |(_, amount)| *amount);
        let ending = self.chats.iter().filter(|chat| chat.ending);
        [
            self.chats.iter().map(amount).sum(),
            ending.map(amount).sum(),
        ]
    }

    /// The amounts that the writer may take of user and key: A + F − G.
    fn free(&self) -> [i64; 2] {
        let [reserved, ending] = self.sums();
        self.left(self.after).map(|left| left + ending - reserved)
    }

    fn check(&self) {
        let [reserved, _] = self.sums();
        let counted = self.reservations.sums(ACCOUNT).map(Amount::nanos);
        assert_eq!(counted, [reserved; 2]);
        assert!(
            self.free().into_iter().all(|left| left >= 0),
            "invariant (2)"
        );
        if !matches!(self.phase, Phase::Committed) {
            let left = self.left(self.committed);
            assert!(left[0].min(left[1]) >= reserved, "invariant (1)");
        }
    }
}

fn create_tables(path: &Path) {
    let connection = sqlite::open(path).unwrap();
    let migrated = migrate(&mut Tx::Sqlite(sqlite::Transaction::new(&connection))).now_or_never();
    migrated.unwrap().unwrap();
    drop(connection);
    sqlite::empty_wal(path).unwrap();
}

#[test]
fn reservations_are_covered_under_every_schedule() {
    let folder = std::env::temp_dir().join(format!("tollgate-reserved-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let template = folder.join("template.db");
    create_tables(&template);
    let config = ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(has_budget: bool, steps in prop::collection::vec(step(), 1..120))| {
        let mut model = Model::new(&folder, &template, has_budget);
        for step in &steps {
            model.run(step);
            model.check();
        }
        model.roll_back();
        model.end();
        model.chats = <[Chat; CHATS]>::default();
        let state = model.reservations.lock();
        prop_assert!(state.users.is_empty() && state.keys.is_empty() && state.ending.is_empty());
        prop_assert!(state.taken_of_users.is_empty() && state.taken_of_keys.is_empty());
    });
    let _ = std::fs::remove_dir_all(folder);
}
