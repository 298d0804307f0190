//! What the tests are made of: people who pay, tasks, workers.

use tollgate_core::{Amount, Millis, TaskKind, id};
use tollgate_store::{
    Accepted, AttemptBegun, AttemptEnd, AttemptStart, Charge, ChatEnd, ChatSettled, Delivered, End,
    Ended, Finish, Hold, Idempotency, KeyLimits, Leased, NewChat, NewKey, NewTask, RateLimits,
    Refusal, Retry, Store, Submitted, TokenPrices, TokenUnits, User,
};

use crate::db::Db;

/// When most tests take place.
pub(crate) const NOW: Millis = 1_790_000_000_000;

/// The process that most tests are.
pub(crate) const NODE: &str = "node_1";

/// A user and one of its keys.
#[derive(Debug, Clone)]
pub(crate) struct Payer {
    pub(crate) name: String,
    pub(crate) user_id: String,
    pub(crate) key_id: String,
}

pub(crate) fn amount(text: &str) -> Amount {
    text.parse().unwrap()
}

/// A user with `balance` and a key without a quota.
pub(crate) async fn payer(store: &Store, name: &str, balance: &str) -> Payer {
    let user = store
        .create_user(name, false, amount(balance), RateLimits::default(), NOW)
        .await
        .unwrap();
    with_key(store, user, None).await
}

/// A user without a limit, and a key with `quota`.
pub(crate) async fn rich(store: &Store, name: &str, quota: Option<&str>) -> Payer {
    let user = store
        .create_user(name, true, Amount::ZERO, RateLimits::default(), NOW)
        .await
        .unwrap();
    with_key(store, user, quota).await
}

pub(crate) async fn with_key(store: &Store, user: User, quota: Option<&str>) -> Payer {
    let key = store.create_key(new_key(&user.name, quota)).await.unwrap();
    Payer {
        name: user.name,
        user_id: user.id,
        key_id: key.id,
    }
}

pub(crate) fn new_key(user: &str, quota: Option<&str>) -> NewKey {
    NewKey {
        id: id::short_id("key_"),
        hash: id::key_hash(&id::api_key()),
        user: user.to_owned(),
        label: "test".to_owned(),
        quota: quota.map(amount),
        limits: KeyLimits::default(),
        now: NOW,
    }
}

/// A submission of `units` at `price` each.
pub(crate) fn task(payer: &Payer, units: u64, price: &str) -> NewTask {
    task_at(payer, units, price, NOW)
}

pub(crate) fn task_at(payer: &Payer, units: u64, price: &str, now: Millis) -> NewTask {
    NewTask {
        id: id::task_id(now),
        user_id: payer.user_id.clone(),
        key_id: payer.key_id.clone(),
        kind: TaskKind::Image,
        family: "seedream".to_owned(),
        model: "seedream-5".to_owned(),
        created_at: now,
        deadline_at: now + 600_000,
        job: r#"{"prompt":"a lighthouse"}"#.to_owned(),
        adjustments: "[]".to_owned(),
        shown: "{}".to_owned(),
        callback_url: None,
        request_id: "req_1".to_owned(),
        charge: Charge {
            price: amount(price),
            per: 1,
            units,
        },
        idempotency: None,
    }
}

/// The same with an `Idempotency-Key`; the receipt names the task.
pub(crate) fn keyed(mut task: NewTask, key: &str, fingerprint: &str) -> NewTask {
    task.idempotency = Some(Idempotency {
        key: key.to_owned(),
        fingerprint: fingerprint.to_owned(),
        receipt: format!("{{\"id\":\"{}\"}}", task.id),
    });
    task
}

/// Submits, and expects it to be taken; answers its id.
pub(crate) async fn submit(store: &Store, task: NewTask) -> String {
    let id = task.id.clone();
    assert_eq!(store.submit(task).await, Ok(Submitted::Accepted));
    id
}

/// Leases everything that is due to worker `w`, for 30 s.
pub(crate) async fn claim(store: &Store, now: Millis) -> Vec<Leased> {
    store.claim("w", 100, now + 30_000, now).await.unwrap()
}

/// Leases the one task that is due.
pub(crate) async fn claim_one(store: &Store, now: Millis) -> Leased {
    let mut leased = claim(store, now).await;
    assert_eq!(leased.len(), 1);
    leased.remove(0)
}

pub(crate) fn delivered(files: u64) -> End {
    let shown = vec![serde_json::json!({"name": "x"}); files as usize];
    End::Completed {
        delivered: Delivered::of(TaskKind::Image, files),
        result: serde_json::json!({ "files": shown }).to_string(),
    }
}

pub(crate) fn failed() -> End {
    End::Failed {
        code: "provider_error".to_owned(),
        message: "it broke".to_owned(),
    }
}

pub(crate) fn finish_of(leased: &Leased, end: End, now: Millis) -> Finish {
    Finish {
        task_id: leased.task.id.clone(),
        user_id: leased.task.user_id.clone(),
        key_id: leased.task.key_id.clone(),
        fence: leased.fence,
        end,
        attempt: None,
        now,
    }
}

pub(crate) async fn finish(store: &Store, leased: &Leased, end: End, now: Millis) -> Ended {
    store.finish(finish_of(leased, end, now)).await.unwrap()
}

/// An attempt of a provider that answers at once.
pub(crate) fn attempt(leased: &Leased, now: Millis) -> AttemptStart {
    AttemptStart {
        task_id: leased.task.id.clone(),
        fence: leased.fence,
        channel: "main".to_owned(),
        external_id: None,
        queued: false,
        key_print: None,
        abandon: None,
        now,
    }
}

/// An attempt of a provider that takes work into its queue.
pub(crate) fn queued(leased: &Leased, now: Millis) -> AttemptStart {
    AttemptStart {
        external_id: Some(format!("tg-{}", leased.fence)),
        queued: true,
        key_print: Some("3f9a".to_owned()),
        ..attempt(leased, now)
    }
}

/// Begins an attempt of a provider that answers at once; none when the lease is lost.
pub(crate) async fn begin_attempt(store: &Store, leased: &Leased, now: Millis) -> Option<i64> {
    begin(store, attempt(leased, now)).await
}

/// Begins an attempt; none when the lease is lost.
pub(crate) async fn begin(store: &Store, start: AttemptStart) -> Option<i64> {
    match store.begin_attempt(start).await.unwrap() {
        AttemptBegun::Begun(number) => Some(number),
        AttemptBegun::LostLease => None,
        AttemptBegun::StillOpen => panic!("one is still open"),
    }
}

/// The provider's word that it has an attempt in its queue.
pub(crate) fn accepted_of(leased: &Leased, number: i64, ticket: &str, now: Millis) -> Accepted {
    Accepted {
        task_id: leased.task.id.clone(),
        fence: leased.fence,
        number,
        ticket: ticket.to_owned(),
        adjustments: None,
        now,
    }
}

/// Begins a queued attempt and has it accepted under that ticket; answers its number.
pub(crate) async fn enqueue(store: &Store, leased: &Leased, ticket: &str, now: Millis) -> i64 {
    let number = begin(store, queued(leased, now)).await.unwrap();
    let accepted = accepted_of(leased, number, ticket, now);
    assert_eq!(store.accepted(accepted).await, Ok(true));
    number
}

/// The same submission with somebody who wants to hear of the end.
pub(crate) fn calling(mut task: NewTask) -> NewTask {
    task.callback_url = Some("https://example.com/hook?a=1".to_owned());
    task
}

pub(crate) async fn try_again(
    store: &Store,
    leased: &Leased,
    number: i64,
    due_at: Millis,
    now: Millis,
) -> bool {
    let retry = Retry {
        task_id: leased.task.id.clone(),
        fence: leased.fence,
        attempt: attempt_end(number),
        due_at,
        now,
    };
    store.try_again(retry).await.unwrap()
}

pub(crate) fn attempt_end(number: i64) -> AttemptEnd {
    AttemptEnd {
        number,
        outcome: "failed",
        error: Some("status 500".to_owned()),
    }
}

/// Balance, held and used of a user, as text.
pub(crate) async fn sums(store: &Store, payer: &Payer) -> [String; 3] {
    let user = store.user(&payer.user_id).await.unwrap().unwrap();
    [user.balance, user.held, user.used].map(|a| a.to_string())
}

/// Held and used of a key, as text.
pub(crate) async fn key_sums(store: &Store, payer: &Payer) -> [String; 2] {
    let key = store.key(&payer.key_id).await.unwrap().unwrap();
    [key.held, key.used].map(|a| a.to_string())
}

pub(crate) fn no_balance(available: &str) -> Submitted {
    Submitted::Refused(Refusal::UserBalance {
        available: amount(available),
    })
}

pub(crate) fn no_quota(available: &str) -> Submitted {
    Submitted::Refused(Refusal::KeyQuota {
        available: amount(available),
    })
}

/// A store of a process that lives for the next 30 s.
pub(crate) async fn node(db: &Db) -> Store {
    let store = db.open().await;
    store.beat(NODE, NOW + 30_000).await.unwrap();
    store
}

/// A chat request at these prices per million tokens of prompt and answer.
pub(crate) fn chat(payer: &Payer, input: &str, output: &str) -> NewChat {
    let (input, output) = (amount(input), amount(output));
    NewChat {
        id: id::chat_id(NOW),
        user_id: payer.user_id.clone(),
        key_id: payer.key_id.clone(),
        model: "gpt-5".to_owned(),
        format: "messages",
        streamed: true,
        request_id: "req_1".to_owned(),
        prices: TokenPrices {
            input,
            cached_input: input,
            cache_write: input,
            output,
            reasoning: output,
        },
        opened_at: NOW,
    }
}

/// So many tokens of prompt and answer.
pub(crate) fn tokens(input: u64, output: u64) -> TokenUnits {
    TokenUnits {
        input,
        output,
        ..TokenUnits::default()
    }
}

/// A good end.
pub(crate) fn chat_end(units: TokenUnits) -> ChatEnd {
    ChatEnd {
        units,
        estimated: false,
        channel: Some("main".to_owned()),
        upstream_model: Some("gpt-5-mini".to_owned()),
        attempts: "[]".to_owned(),
        outcome: "done",
        ended_at: NOW + 1,
    }
}

pub(crate) async fn hold(
    store: &Store,
    chat: &NewChat,
    worst: TokenUnits,
) -> Result<Amount, Refusal> {
    store.hold_chat(chat, &worst, NODE).await.unwrap()
}

pub(crate) async fn reserve(
    store: &Store,
    chat: &NewChat,
    worst: TokenUnits,
) -> Result<Hold, Refusal> {
    store.reserve_chat(chat, &worst, NODE).await.unwrap()
}

/// What [`hold`] leaves, or what is where nobody held.
pub(crate) fn stored(held: bool) -> Hold {
    if held { Hold::Stored } else { Hold::None }
}

pub(crate) async fn settle(
    store: &Store,
    chat: &NewChat,
    held: bool,
    units: TokenUnits,
) -> ChatSettled {
    settle_hold(store, chat, &stored(held), units).await
}

pub(crate) async fn settle_hold(
    store: &Store,
    chat: &NewChat,
    hold: &Hold,
    units: TokenUnits,
) -> ChatSettled {
    let end = chat_end(units);
    store.settle_chat(chat.clone(), hold, end).await.unwrap()
}

pub(crate) fn cost(text: &str) -> ChatSettled {
    let cost = amount(text);
    ChatSettled::Done { cost }
}

/// The books must close.
pub(crate) async fn assert_clean(store: &Store) {
    let violations = store.audit().await.unwrap();
    assert!(violations.is_empty(), "{violations:#?}");
}
