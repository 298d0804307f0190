//! Reservations beside the real writer, which is made to wait or to fail in the middle of a batch.

use std::sync::Arc;
use std::sync::mpsc;

use async_trait::async_trait;
use tollgate_core::{Amount, id};

use super::{Location, Store};
use crate::batch::Batch;
use crate::db::{DbError, args};
use crate::error::StoreError;
use crate::model::{
    ChatEnd, ChatSettled, Hold, KeyLimits, NewChat, NewKey, RateLimits, TokenPrices, TokenUnits,
};
use crate::money::{self, Payer, ROOM, Reservation, Room, Tried};
use crate::writer::{Payers, Write};

const NODE: &str = "node_1";

/// A store with a user who has 10, its key, and a folder that goes with it.
struct Bench {
    store: Store,
    user_id: String,
    key_id: String,
    folder: std::path::PathBuf,
}

impl Drop for Bench {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Bench {
    async fn new() -> Self {
        let folder = std::env::temp_dir().join(id::short_id("tollgate-store-"));
        std::fs::create_dir_all(&folder).unwrap();
        let location = Location::Sqlite(folder.join("tollgate.db"));
        let store = Store::open(&location).await.unwrap();
        let (ten, rates) = (nanos(10), RateLimits::default());
        let user = store.create_user("ann", false, ten, rates, 0).await;
        let key = NewKey {
            id: id::short_id("key_"),
            hash: "hash".to_owned(),
            user: "ann".to_owned(),
            label: String::new(),
            quota: None,
            limits: KeyLimits::default(),
            now: 0,
        };
        store.beat(NODE, i64::MAX).await.unwrap();
        Self {
            user_id: user.unwrap().id,
            key_id: store.create_key(key).await.unwrap().id,
            store,
            folder,
        }
    }

    /// A chat of which a token costs one.
    fn chat(&self) -> NewChat {
        NewChat {
            id: id::chat_id(0),
            user_id: self.user_id.clone(),
            key_id: self.key_id.clone(),
            model: "gpt-5".to_owned(),
            format: "messages",
            streamed: true,
            request_id: "req_1".to_owned(),
            prices: TokenPrices {
                input: nanos(1_000_000),
                ..TokenPrices::default()
            },
            opened_at: 0,
        }
    }

    async fn reserve(&self, amount: i64) -> Option<Reservation> {
        let reserved = self.store.try_to_reserve(&self.chat(), nanos(amount)).await;
        reserved.unwrap()
    }

    fn payer(&self) -> Payer<'_> {
        Payer {
            user_id: &self.user_id,
            key_id: &self.key_id,
        }
    }

    fn reserved(&self) -> i64 {
        let [user, key] = self.store.reserved(&self.user_id, &self.key_id);
        assert_eq!(key, Amount::ZERO, "it has no quota");
        user.nanos()
    }

    /// Balance and held.
    async fn sums(&self) -> [i64; 2] {
        let user = self.store.user(&self.user_id).await.unwrap().unwrap();
        [user.balance, user.held].map(Amount::nanos)
    }

    async fn room(&self) -> Room {
        let args = args![&self.key_id, &self.user_id];
        let room = self.store.first(&ROOM, args, Room::read).await;
        room.unwrap().flatten().unwrap()
    }

    /// Has the writer do `work`, and stop in the middle of its batch.
    fn pause(&self, work: Work, way: Way) -> Paused {
        let (at, reached) = mpsc::channel();
        let (go, gone) = mpsc::channel();
        let gate = std::sync::Mutex::new((at, gone));
        let write = Midway {
            chat: self.chat(),
            work,
            way,
            gate,
        };
        let store = self.store.clone();
        let done = tokio::spawn(async move { store.write(write).await });
        Paused { reached, go, done }
    }

    async fn is_clean(&self) {
        assert_eq!(self.store.audit().await.unwrap(), []);
    }
}

struct Paused {
    reached: mpsc::Receiver<()>,
    go: mpsc::Sender<()>,
    done: tokio::task::JoinHandle<Result<(), StoreError>>,
}

enum Work {
    Hold(u64),
    Settle(Reservation, u64),
}

#[derive(Clone, Copy)]
enum Way {
    Well,
    Panic,
}

struct Midway {
    chat: NewChat,
    work: Work,
    way: Way,
    gate: std::sync::Mutex<(mpsc::Sender<()>, mpsc::Receiver<()>)>,
}

#[async_trait(?Send)]
impl Write for Midway {
    type Out = ();

    fn payers(&self) -> Payers<'_> {
        Payers {
            user: Some(&self.chat.user_id),
            key: Some(&self.chat.key_id),
        }
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        match &self.work {
            Work::Hold(amount) => {
                let held = money::open_chat(batch, &self.chat, &units(*amount), NODE)?;
                held.unwrap();
            }
            Work::Settle(reservation, cost) => {
                let (chat, end) = (Arc::new(self.chat.clone()), Arc::new(end(*cost)));
                money::charge_chat(batch, &chat, &end, Some(reservation))?;
            }
        }
        let gate = self.gate.lock().unwrap();
        gate.0.send(()).unwrap();
        gate.1.recv().unwrap();
        match self.way {
            Way::Well => Ok(()),
            Way::Panic => panic!("midway"),
        }
    }
}

fn nanos(n: i64) -> Amount {
    Amount::from_nanos(n)
}

fn units(input: u64) -> TokenUnits {
    TokenUnits {
        input,
        ..TokenUnits::default()
    }
}

fn end(cost: u64) -> ChatEnd {
    ChatEnd {
        units: units(cost),
        estimated: false,
        channel: None,
        upstream_model: None,
        attempts: String::new(),
        outcome: "done",
        ended_at: 1,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_open_batch_holds_cannot_be_reserved() {
    let bench = Bench::new().await;
    for (way, left) in [(Way::Panic, 7), (Way::Well, 0)] {
        let paused = bench.pause(Work::Hold(7), way);
        paused.reached.recv().unwrap();
        assert!(bench.reserve(4).await.is_none());
        let three = bench.reserve(3).await.unwrap();
        paused.go.send(()).unwrap();
        assert_eq!(paused.done.await.unwrap().is_ok(), left == 0);
        assert_eq!(bench.reserved(), 3);
        assert!(bench.reserve(left + 1).await.is_none());
        assert!(bench.reserve(left).await.is_some());
        drop(three);
    }
    assert_eq!((bench.sums().await, bench.reserved()), ([10, 7], 0));
    bench.is_clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_chat_costs_beyond_its_reservation_cannot_be_reserved() {
    let bench = Bench::new().await;
    let five = bench.reserve(5).await.unwrap();
    for (way, left) in [(Way::Panic, 3), (Way::Well, 0)] {
        let paused = bench.pause(Work::Settle(five.clone(), 8), way);
        paused.reached.recv().unwrap();
        assert!(bench.reserve(3).await.is_none());
        let two = bench.reserve(2).await.unwrap();
        paused.go.send(()).unwrap();
        assert_eq!(paused.done.await.unwrap().is_ok(), left == 0);
        assert!(bench.reserve(left + 1).await.is_none());
        assert!(bench.reserve(left).await.is_some());
        // Its failed settlement left the reservation as it was.
        assert_eq!(bench.reserved(), if left > 0 { 7 } else { 2 });
        drop(two);
    }
    drop(five);
    assert_eq!((bench.sums().await, bench.reserved()), ([2, 0], 0));
    bench.is_clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_read_before_a_commit_is_read_again() {
    let bench = Bench::new().await;
    let reserved = &bench.store.writer.reserved;
    let (epoch, room) = (reserved.epoch(), bench.room().await);
    // The batch is open: what it takes is seen, though the rows that were read are not its own.
    let paused = bench.pause(Work::Hold(8), Way::Well);
    paused.reached.recv().unwrap();
    let midway = reserved.reserve(bench.payer(), nanos(3), room, epoch);
    assert!(matches!(midway, Tried::Short), "{midway:?}");
    paused.go.send(()).unwrap();
    paused.done.await.unwrap().unwrap();
    // It is over: the rows are old.
    let after = reserved.reserve(bench.payer(), nanos(3), room, epoch);
    assert!(matches!(after, Tried::Moved), "{after:?}");
    assert!(bench.reserve(3).await.is_none());
    // The same after a settlement, whose reservation has gone with its commit.
    let two = bench.reserve(2).await.unwrap();
    let (epoch, room) = (reserved.epoch(), bench.room().await);
    let hold = Hold::Reserved(two);
    let settled = bench.store.settle_chat(bench.chat(), &hold, end(2)).await;
    assert_eq!(settled, Ok(ChatSettled::Done { cost: nanos(2) }));
    assert_eq!(bench.reserved(), 0);
    let after = reserved.reserve(bench.payer(), nanos(1), room, epoch);
    assert!(matches!(after, Tried::Moved), "{after:?}");
    bench.is_clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_reads_in_vain_again_and_again_is_held_for_on_disk() {
    let bench = Bench::new().await;
    let (stop, stopped) = mpsc::channel::<()>();
    let reserved = std::sync::Arc::clone(&bench.store.writer.reserved);
    let busy = std::thread::spawn(move || {
        while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
            reserved.end_batch(true);
        }
    });
    let mut stored = 0;
    for _ in 0..1000 {
        let chat = bench.chat();
        let hold = bench.store.reserve_chat(&chat, &units(6), NODE).await;
        let hold = hold.unwrap().unwrap();
        stored += u32::from(matches!(hold, Hold::Stored));
        let settled = bench.store.settle_chat(chat, &hold, end(0)).await;
        assert_eq!(settled, Ok(ChatSettled::Done { cost: nanos(0) }));
        if stored > 3 {
            break;
        }
    }
    drop(stop);
    busy.join().unwrap();
    assert!(stored > 3);
    assert_eq!((bench.sums().await, bench.reserved()), ([10, 0], 0));
    bench.is_clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reservation_goes_with_whoever_panics() {
    let bench = Bench::new().await;
    let ten = bench.reserve(10).await.unwrap();
    assert!(bench.reserve(1).await.is_none());
    let panicked = tokio::spawn(async move {
        let _kept = ten;
        panic!("on the way")
    });
    assert!(panicked.await.is_err());
    assert_eq!(bench.reserved(), 0);
    assert!(bench.reserve(10).await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_process_cannot_see_what_is_reserved() {
    let bench = Bench::new().await;
    let six = Hold::Reserved(bench.reserve(6).await.unwrap());
    let three = Hold::Reserved(bench.reserve(3).await.unwrap());
    let credit = |store: Store, by| async move { store.credit("ann", nanos(by), None, 0).await };
    // This one can: of 10, 9 are not to be had.
    assert!(credit(bench.store.clone(), -2).await.is_err());
    let location = Location::Sqlite(bench.folder.join("tollgate.db"));
    let other = Store::open(&location).await.unwrap();
    assert!(credit(other, -5).await.is_ok());
    // Of the 5 that are left each gets what the others' reservations leave.
    assert!(bench.reserve(1).await.is_none());
    let short = bench
        .store
        .reserve_chat(&bench.chat(), &units(1), NODE)
        .await;
    assert!(matches!(short, Ok(Err(_))), "{short:?}");
    for (hold, cost, paid) in [(&six, 6, 2), (&three, 3, 3)] {
        let settled = bench.store.settle_chat(bench.chat(), hold, end(cost)).await;
        assert_eq!(settled, Ok(ChatSettled::Done { cost: nanos(paid) }));
    }
    assert_eq!((bench.sums().await, bench.reserved()), ([0, 0], 0));
    bench.is_clean().await;
}
