//! Random schedules of the steps that chats and the writer take, on a real database: after each of them what is reserved
//! is covered, whether the open batch is committed or not.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures_util::FutureExt as _;
use proptest::prelude::*;
use rusqlite::Connection;
use tollgate_core::Amount;

use super::{ROOM, Reservation, Reserved, Room, Tried};
use crate::db::{Tx, args, sqlite};
use crate::migrate;
use crate::money::{Accounts, Payer};

const PAYER: Payer<'static> = Payer {
    user_id: "user_1",
    key_id: "key_1",
};
const BALANCE: i64 = 100;
const QUOTA: i64 = 80;
/// Chats that run at once.
const CHATS: usize = 4;

#[derive(Debug, Clone)]
enum Step {
    /// A chat notes the epoch,
    Note(usize),
    /// reads the rows,
    Read(usize),
    /// and tries to reserve.
    Try(usize, i64),
    /// A chat tries to reserve of what is known from another's read, or from the writer.
    Known(usize, i64),
    Drop(usize),
    Begin,
    Hold(i64),
    Release(i64),
    Debit(i64),
    Settle(usize, i64),
    /// On disk, and not yet said to be.
    Commit,
    RollBack,
    /// The batch is over.
    End,
}

fn step() -> impl Strategy<Value = Step> {
    let chat = || 0..CHATS;
    prop_oneof![
        6 => chat().prop_map(Step::Note),
        6 => chat().prop_map(Step::Read),
        8 => (chat(), 1..40i64).prop_map(|(chat, amount)| Step::Try(chat, amount)),
        8 => (chat(), 1..40i64).prop_map(|(chat, amount)| Step::Known(chat, amount)),
        1 => chat().prop_map(Step::Drop),
        6 => Just(Step::Begin),
        4 => (1..40i64).prop_map(Step::Hold),
        2 => (1..40i64).prop_map(Step::Release),
        1 => (1..40i64).prop_map(Step::Debit),
        6 => (chat(), 0..60i64).prop_map(|(chat, cost)| Step::Settle(chat, cost)),
        6 => Just(Step::Commit),
        1 => Just(Step::RollBack),
        6 => Just(Step::End),
    ]
}

#[derive(Default)]
struct Chat {
    epoch: Option<u64>,
    room: Option<Room>,
    reserved: Option<(Reservation, i64)>,
    /// Its settlement is in the open batch.
    ending: bool,
}

enum Phase {
    Idle,
    Open(Accounts),
    Committed,
    RolledBack,
}

/// What user and key have left, and what the user has in holds.
#[derive(Clone, Copy)]
struct Left {
    user: i64,
    key: i64,
    held: i64,
}

struct World {
    writer: Connection,
    reader: Connection,
    reserved: Arc<Reserved>,
    chats: [Chat; CHATS],
    phase: Phase,
    committed: Left,
    /// After the open batch, as far as it has come.
    after: Left,
}

impl World {
    fn new(folder: &std::path::Path) -> Self {
        let path = folder.join("tollgate.db");
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(folder.join(format!("tollgate.db{end}")));
        }
        let writer = sqlite::open(&path).unwrap();
        let migrated = migrate::migrate(&mut Tx::Sqlite(sqlite::Open::new(&writer))).now_or_never();
        migrated.unwrap().unwrap();
        writer.pragma_update(None, "synchronous", "off").unwrap();
        sqlite::script(&writer, &format!(
            "INSERT INTO users (id, name, unlimited, balance, held, used, created_at) VALUES ('user_1', 'ann', 0, {BALANCE}, 0, 0, 0);
             INSERT INTO keys (id, user_id, label, hash, quota, held, used, created_at, bare_envelope)
             VALUES ('key_1', 'user_1', '', 'h', {QUOTA}, 0, 0, 0, 0);",
        ))
        .unwrap();
        let left = Left {
            user: BALANCE,
            key: QUOTA,
            held: 0,
        };
        Self {
            reader: sqlite::open_reader(&path).unwrap(),
            writer,
            reserved: Arc::default(),
            chats: <[Chat; CHATS]>::default(),
            phase: Phase::Idle,
            committed: left,
            after: left,
        }
    }

    fn take(&mut self, step: &Step) {
        match *step {
            Step::Note(chat) => {
                self.chats[chat].epoch = Some(self.reserved.epoch());
                self.chats[chat].room = None;
            }
            Step::Read(chat) => self.read(chat),
            Step::Try(chat, amount) => self.try_to_reserve(chat, amount),
            Step::Known(chat, amount) if self.chats[chat].reserved.is_none() => {
                let known = self
                    .reserved
                    .reserve_known(PAYER, Amount::from_nanos(amount));
                self.chats[chat].reserved = known.map(|reservation| (reservation, amount));
            }
            Step::Drop(chat) if !self.chats[chat].ending => self.chats[chat].reserved = None,
            Step::Begin if matches!(self.phase, Phase::Idle) => self.begin(),
            Step::Commit => self.commit(),
            Step::RollBack => self.roll_back(),
            Step::End => self.end(),
            _ => self.work(step),
        }
    }

    fn read(&mut self, chat: usize) {
        let chat = &mut self.chats[chat];
        if chat.epoch.is_some() {
            let args = args![PAYER.key_id, PAYER.user_id];
            let mut rows = sqlite::query(&self.reader, &ROOM, args).unwrap();
            chat.room = Room::read(&mut rows[0]).unwrap();
        }
    }

    fn try_to_reserve(&mut self, chat: usize, amount: i64) {
        let chat = &mut self.chats[chat];
        let (Some(room), Some(epoch), None) = (chat.room.take(), chat.epoch, &chat.reserved) else {
            return;
        };
        let wanted = Amount::from_nanos(amount);
        match self.reserved.reserve(PAYER, wanted, room, epoch) {
            Tried::Done(reservation) => chat.reserved = Some((reservation, amount)),
            // Nothing happens: a chat alone is not sent away.
            Tried::Short => {}
            Tried::Moved => assert_ne!(epoch, self.reserved.epoch()),
        }
    }

    fn begin(&mut self) {
        sqlite::begin(&self.writer).unwrap();
        let mut tx = Tx::Sqlite(sqlite::Open::new(&self.writer));
        let accounts = Accounts::load(
            &mut tx,
            BTreeSet::from([PAYER.user_id]),
            BTreeSet::from([PAYER.key_id]),
            Arc::clone(&self.reserved),
        );
        self.phase = Phase::Open(accounts.now_or_never().unwrap().unwrap());
    }

    /// A step of the open batch, if there is one.
    fn work(&mut self, step: &Step) {
        let free = self.free();
        let Phase::Open(accounts) = &mut self.phase else {
            return;
        };
        let after = &mut self.after;
        match *step {
            Step::Hold(amount) => {
                let held = accounts.hold(PAYER, Amount::from_nanos(amount)).unwrap();
                assert_eq!(held.is_ok(), amount <= free[0].min(free[1]), "{held:?}");
                if held.is_ok() {
                    after.user -= amount;
                    after.key -= amount;
                    after.held += amount;
                }
            }
            Step::Release(amount) => {
                let amount = amount.min(after.held);
                let ended = accounts.end_hold(PAYER, Amount::from_nanos(amount), Amount::ZERO);
                ended.unwrap();
                after.user += amount;
                after.key += amount;
                after.held -= amount;
            }
            Step::Debit(amount) => {
                let taken = accounts.credit(PAYER.user_id, Amount::from_nanos(-amount));
                let taken = taken.unwrap().is_ok();
                assert_eq!(taken, amount <= free[0]);
                after.user -= if taken { amount } else { 0 };
            }
            Step::Settle(chat, cost) => {
                let chat = &mut self.chats[chat];
                let Some((reservation, amount)) = chat.reserved.as_ref().filter(|_| !chat.ending)
                else {
                    return;
                };
                let due = Amount::from_nanos(cost);
                let taken = accounts.take(PAYER, due, Some(reservation)).unwrap();
                let most = amount + free[0].min(free[1]);
                assert_eq!(
                    taken.nanos(),
                    cost.min(most),
                    "never less than was reserved"
                );
                chat.ending = true;
                after.user -= taken.nanos();
                after.key -= taken.nanos();
            }
            _ => {}
        }
    }

    fn commit(&mut self) {
        if let Phase::Open(accounts) = &self.phase {
            accounts
                .write_back(&mut Tx::Sqlite(sqlite::Open::new(&self.writer)))
                .unwrap();
            accounts.foretell();
            sqlite::commit(&self.writer).unwrap();
            self.committed = self.after;
            self.phase = Phase::Committed;
        }
    }

    fn roll_back(&mut self) {
        if let Phase::Open(accounts) = &self.phase {
            accounts.foretell();
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
        self.reserved.end_batch(committed);
        self.phase = Phase::Idle;
        for chat in &mut self.chats {
            if std::mem::take(&mut chat.ending) && committed {
                chat.reserved = None;
            }
        }
    }

    /// All reservations, and those that end with the batch.
    fn sums(&self) -> [i64; 2] {
        let amount = |chat: &Chat| chat.reserved.as_ref().map_or(0, |(_, amount)| *amount);
        let ending = self.chats.iter().filter(|chat| chat.ending);
        [
            self.chats.iter().map(amount).sum(),
            ending.map(amount).sum(),
        ]
    }

    /// What the writer may take of user and key.
    fn free(&self) -> [i64; 2] {
        let [reserved, ending] = self.sums();
        [self.after.user, self.after.key].map(|left| left + ending - reserved)
    }

    fn check(&self) {
        let [reserved, _] = self.sums();
        let counted = self.reserved.of(PAYER).map(Amount::nanos);
        assert_eq!(counted, [reserved; 2]);
        assert!(self.free().into_iter().all(|left| left >= 0), "(2)");
        if !matches!(self.phase, Phase::Committed) {
            let left = self.committed.user.min(self.committed.key);
            assert!(left >= reserved, "(1)");
        }
    }
}

#[test]
fn whatever_the_schedule_reservations_are_covered() {
    let folder = std::env::temp_dir().join(format!("tollgate-reserved-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let config = ProptestConfig {
        cases: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(steps in prop::collection::vec(step(), 1..120))| {
        let mut world = World::new(&folder);
        for step in &steps {
            world.take(step);
            world.check();
        }
        world.roll_back();
        world.end();
        world.chats = <[Chat; CHATS]>::default();
        let state = world.reserved.lock();
        prop_assert!(state.users.is_empty() && state.keys.is_empty() && state.ending.is_empty());
        prop_assert!(state.batch_users.is_empty() && state.batch_keys.is_empty());
    });
    let _ = std::fs::remove_dir_all(folder);
}
