//! Tests reservations together with the real writer, which pauses or fails in the middle of a batch.

use std::sync::mpsc;

use tollgate_core::{Amount, id};

use super::*;
use crate::chats::parts::ChatParts;
use crate::chats::prices::TokenPrices;
use crate::db::Sql;
use crate::keys::{KeyLimits, NewKey};
use crate::store::DatabaseLocation;
use crate::users::RateLimits;

const NODE: &str = "node_1";
const REVOKE_KEY: Sql = Sql::both("UPDATE keys SET revoked_at = 1 WHERE id = $1");

/// A store with a user who has a balance of 10 nanos, and a key without a quota, in a folder that is deleted on drop.
struct Fixture {
    store: Store,
    user_id: String,
    key_id: String,
    folder: std::path::PathBuf,
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Fixture {
    async fn new() -> Self {
        let folder = std::env::temp_dir().join(id::short_id("tollgate-store-"));
        std::fs::create_dir_all(&folder).unwrap();
        let location = DatabaseLocation::Sqlite(folder.join("tollgate.db"));
        let store = Store::open(&location).await.unwrap();
        let (ten, rates) = (nanos(10), RateLimits::default());
        let user = store.create_user("ann", false, ten, rates, 0).await;
        let key = NewKey {
            id: id::short_id("key_"),
            hash: "hash".to_owned(),
            hint: "sk-".to_owned(),
            user: "ann".to_owned(),
            label: String::new(),
            quota: None,
            limits: KeyLimits::default(),
            now: 0,
        };
        store.heartbeat(NODE, i64::MAX).await.unwrap();
        Self {
            user_id: user.unwrap().id,
            key_id: store.create_key(key).await.unwrap().id,
            store,
            folder,
        }
    }

    /// A chat at 1 nano per token.
    fn chat(&self) -> NewChat {
        NewChat {
            id: id::chat_id(0),
            user_id: self.user_id.clone(),
            key_id: self.key_id.clone(),
            model: "gpt-5".to_owned(),
            format: "messages",
            streamed: true,
            request_id: "req_1".to_owned(),
            held_parts: Amount::ZERO,
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

    fn account(&self) -> Account<'_> {
        Account {
            user_id: &self.user_id,
            key_id: &self.key_id,
        }
    }

    fn reserved(&self) -> i64 {
        let [user, key] = self.store.reserved_amounts(&self.user_id, &self.key_id);
        assert_eq!(key, Amount::ZERO, "it has no quota");
        user.nanos()
    }

    /// The user's balance, and what is held of it.
    async fn sums(&self) -> [i64; 2] {
        let user = self.store.user(&self.user_id).await.unwrap().unwrap();
        [user.balance, user.held].map(Amount::nanos)
    }

    async fn headroom(&self) -> Headroom {
        let [day, week, month] = Headroom::period_starts(1);
        let args = args![day, week, month, &self.key_id, &self.user_id];
        let headroom = self.store.first(&READ_HEADROOM, args, Headroom::read).await;
        headroom.unwrap().flatten().unwrap()
    }

    /// Runs `step` in a batch of the writer that then pauses.
    fn pause(&self, step: Step, then: Then) -> Paused {
        let (at, reached) = mpsc::channel();
        let (resume, resumed) = mpsc::channel();
        let signals = std::sync::Mutex::new((at, resumed));
        let write = PausingWrite {
            chat: self.chat(),
            step,
            then,
            signals,
        };
        let store = self.store.clone();
        let written = tokio::spawn(async move { store.write(write).await });
        Paused {
            reached,
            resume,
            written,
        }
    }

    async fn is_clean(&self) {
        assert_eq!(self.store.audit().await.unwrap(), []);
    }
}

struct Paused {
    reached: mpsc::Receiver<()>,
    resume: mpsc::Sender<()>,
    written: tokio::task::JoinHandle<Result<(), StoreError>>,
}

enum Step {
    Hold(u64),
    Settle(Reservation, u64),
    RevokeKey,
}

#[derive(Clone, Copy)]
enum Then {
    Commit,
    Panic,
}

struct PausingWrite {
    chat: NewChat,
    step: Step,
    then: Then,
    signals: std::sync::Mutex<(mpsc::Sender<()>, mpsc::Receiver<()>)>,
}

#[async_trait(?Send)]
impl Write for PausingWrite {
    type Out = ();

    fn accounts(&self) -> AccountIds<'_> {
        AccountIds::both(&self.chat.user_id, &self.chat.key_id)
    }

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        match &self.step {
            Step::Hold(amount) => {
                let held = open_chat(batch, &self.chat, &tokens(*amount), NODE)?;
                held.unwrap();
            }
            Step::Settle(reservation, cost) => {
                let (chat, end) = (Arc::new(self.chat.clone()), Arc::new(end(*cost)));
                charge_chat(batch, &chat, &end, &ChatHold::Reserved(reservation.clone()))?;
            }
            Step::RevokeKey => batch.queue(&REVOKE_KEY, args![&self.chat.key_id])?,
        }
        let signals = self.signals.lock().unwrap();
        signals.0.send(()).unwrap();
        signals.1.recv().unwrap();
        match self.then {
            Then::Commit => Ok(()),
            Then::Panic => panic!("in the middle of a batch"),
        }
    }
}

fn nanos(n: i64) -> Amount {
    Amount::from_nanos(n)
}

fn tokens(input: u64) -> TokenCounts {
    TokenCounts {
        input,
        ..TokenCounts::default()
    }
}

fn end(cost: u64) -> ChatEnd {
    ChatEnd {
        clamped: 0,
        parts: ChatParts::default(),
        tokens: tokens(cost),
        estimated: false,
        channel: None,
        upstream_model: None,
        attempts: String::new(),
        dropped: None,
        outcome: "done",
        ended_at: 1,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_amount_held_by_an_open_batch_cannot_be_reserved() {
    let fixture = Fixture::new().await;
    for (then, left) in [(Then::Panic, 7), (Then::Commit, 0)] {
        let paused = fixture.pause(Step::Hold(7), then);
        paused.reached.recv().unwrap();
        assert!(fixture.reserve(4).await.is_none());
        let three = fixture.reserve(3).await.unwrap();
        paused.resume.send(()).unwrap();
        assert_eq!(paused.written.await.unwrap().is_ok(), left == 0);
        assert_eq!(fixture.reserved(), 3);
        assert!(fixture.reserve(left + 1).await.is_none());
        assert!(fixture.reserve(left).await.is_some());
        drop(three);
    }
    assert_eq!((fixture.sums().await, fixture.reserved()), ([10, 7], 0));
    fixture.is_clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cost_beyond_the_reservation_cannot_be_reserved_by_others() {
    let fixture = Fixture::new().await;
    let five = fixture.reserve(5).await.unwrap();
    for (then, left) in [(Then::Panic, 3), (Then::Commit, 0)] {
        let paused = fixture.pause(Step::Settle(five.clone(), 8), then);
        paused.reached.recv().unwrap();
        assert!(fixture.reserve(3).await.is_none());
        let two = fixture.reserve(2).await.unwrap();
        paused.resume.send(()).unwrap();
        assert_eq!(paused.written.await.unwrap().is_ok(), left == 0);
        assert!(fixture.reserve(left + 1).await.is_none());
        assert!(fixture.reserve(left).await.is_some());
        // After the failed settlement the reservation is unchanged.
        assert_eq!(fixture.reserved(), if left > 0 { 7 } else { 2 });
        drop(two);
    }
    drop(five);
    assert_eq!((fixture.sums().await, fixture.reserved()), ([2, 0], 0));
    fixture.is_clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_headroom_read_before_a_commit_is_stale() {
    let fixture = Fixture::new().await;
    let reserved = &fixture.store.writer.reservations;
    let (epoch, headroom) = (reserved.epoch(), fixture.headroom().await);
    // The batch is still open: what it takes counts, although the rows were read before.
    let paused = fixture.pause(Step::Hold(8), Then::Commit);
    paused.reached.recv().unwrap();
    let midway = reserved.reserve(fixture.account(), nanos(3), headroom, epoch);
    assert!(matches!(midway, ReserveOutcome::Insufficient), "{midway:?}");
    paused.resume.send(()).unwrap();
    paused.written.await.unwrap().unwrap();
    // The batch has ended, so the headroom is outdated.
    let after = reserved.reserve(fixture.account(), nanos(3), headroom, epoch);
    assert!(matches!(after, ReserveOutcome::Stale), "{after:?}");
    assert!(fixture.reserve(3).await.is_none());
    // The same after a settlement whose commit has freed its reservation.
    let two = fixture.reserve(2).await.unwrap();
    let (epoch, headroom) = (reserved.epoch(), fixture.headroom().await);
    let hold = ChatHold::Reserved(two);
    let settled = fixture
        .store
        .settle_chat(fixture.chat(), &hold, end(2))
        .await;
    assert_eq!(settled, Ok(SettleOutcome::Settled { cost: nanos(2) }));
    assert_eq!(fixture.reserved(), 0);
    let after = reserved.reserve(fixture.account(), nanos(1), headroom, epoch);
    assert!(matches!(after, ReserveOutcome::Stale), "{after:?}");
    fixture.is_clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_that_changes_a_key_leaves_no_headroom_in_memory() {
    let fixture = Fixture::new().await;
    let paused = fixture.pause(Step::RevokeKey, Then::Commit);
    paused.reached.recv().unwrap();
    paused.resume.send(()).unwrap();
    paused.written.await.unwrap().unwrap();
    let (store, chat) = (&fixture.store, fixture.chat());
    let hold = store.reserve_chat(&chat, &tokens(1), NODE).await.unwrap();
    assert!(hold.is_err(), "the key is revoked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chat_whose_reads_are_always_stale_is_held_on_disk() {
    let fixture = Fixture::new().await;
    let (stop, stopped) = mpsc::channel::<()>();
    let reserved = std::sync::Arc::clone(&fixture.store.writer.reservations);
    let busy = std::thread::spawn(move || {
        while stopped.try_recv() == Err(mpsc::TryRecvError::Empty) {
            reserved.end_batch(true);
        }
    });
    let mut stored = 0;
    for _ in 0..1000 {
        let chat = fixture.chat();
        let hold = fixture.store.reserve_chat(&chat, &tokens(6), NODE).await;
        let hold = hold.unwrap().unwrap();
        stored += u32::from(matches!(hold, ChatHold::Stored));
        let settled = fixture.store.settle_chat(chat, &hold, end(0)).await;
        assert_eq!(settled, Ok(SettleOutcome::Settled { cost: nanos(0) }));
        if stored > 3 {
            break;
        }
    }
    drop(stop);
    busy.join().unwrap();
    assert!(stored > 3);
    assert_eq!((fixture.sums().await, fixture.reserved()), ([10, 0], 0));
    fixture.is_clean().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_releases_the_reservation() {
    let fixture = Fixture::new().await;
    let ten = fixture.reserve(10).await.unwrap();
    assert!(fixture.reserve(1).await.is_none());
    let panicked = tokio::spawn(async move {
        let _kept = ten;
        panic!("before settling")
    });
    assert!(panicked.await.is_err());
    assert_eq!(fixture.reserved(), 0);
    assert!(fixture.reserve(10).await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_debit_by_another_process_turns_uncovered_charges_into_debt() {
    let fixture = Fixture::new().await;
    let six = ChatHold::Reserved(fixture.reserve(6).await.unwrap());
    let three = ChatHold::Reserved(fixture.reserve(3).await.unwrap());
    let credit =
        |store: Store, by| async move { store.credit_user("ann", nanos(by), None, 0).await };
    // This process counts its reservations: 9 of the 10 are reserved.
    assert!(credit(fixture.store.clone(), -2).await.is_err());
    let location = DatabaseLocation::Sqlite(fixture.folder.join("tollgate.db"));
    let other = Store::open(&location).await.unwrap();
    assert!(credit(other, -5).await.is_ok());
    // 5 are left of the 9 that are reserved: nothing is available to the second settlement.
    assert!(fixture.reserve(1).await.is_none());
    let short = fixture
        .store
        .reserve_chat(&fixture.chat(), &tokens(1), NODE)
        .await;
    assert!(matches!(short, Ok(Err(_))), "{short:?}");
    for (hold, cost, debt) in [(&six, 6_u64, 1), (&three, 3, 3)] {
        let settled = fixture
            .store
            .settle_chat(fixture.chat(), hold, end(cost))
            .await;
        let (cost, debt) = (nanos(cost.cast_signed()), nanos(debt));
        assert_eq!(settled, Ok(SettleOutcome::SettledInDebt { cost, debt }));
    }
    assert_eq!((fixture.sums().await, fixture.reserved()), ([-4, 0], 0));
    fixture.is_clean().await;
}
