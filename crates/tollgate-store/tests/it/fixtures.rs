//! Fixtures and builders for the tests: users with keys, tasks, attempts, chats, and shorthands for the store's methods.

use tollgate_core::{Amount, Millis, TaskKind, id};
use tollgate_store::{
    AdminRejection, AdminReply, AdminRequest, AttemptEnd, CancelOutcome, Charge, ChatEnd, ChatHold,
    ChatParts, Delivered, FinishOutcome, IdempotencyRecord, KeyLimits, KeyPatch, LeasedTask,
    NewAttempt, NewChat, NewKey, NewTask, ProviderJob, RateLimits, Rejection, SettleOutcome,
    StartOutcome, Store, StoreError, SubmitOutcome, Task, TaskEnd, TaskFinish, TaskRetry,
    TokenCounts, TokenPrices,
};

use crate::databases::Db;

/// The time of most tests.
pub(crate) const NOW: Millis = 1_790_000_000_000;

/// The node of most tests.
pub(crate) const NODE: &str = "node_1";

/// A user and one of its keys.
#[derive(Debug, Clone)]
pub(crate) struct TestAccount {
    pub(crate) name: String,
    pub(crate) user_id: String,
    pub(crate) key_id: String,
}

pub(crate) fn amount(text: &str) -> Amount {
    text.parse().unwrap()
}

/// A user with `balance` and a key without a quota.
pub(crate) async fn account(store: &Store, name: &str, balance: &str) -> TestAccount {
    create(store, name, false, balance, None).await
}

/// A user without a limit, and a key with `quota`.
pub(crate) async fn unlimited_account(
    store: &Store,
    name: &str,
    quota: Option<&str>,
) -> TestAccount {
    create(store, name, true, "0", quota).await
}

async fn create(
    store: &Store,
    name: &str,
    unlimited: bool,
    balance: &str,
    quota: Option<&str>,
) -> TestAccount {
    let (balance, rates) = (amount(balance), RateLimits::default());
    let user = store.create_user(name, unlimited, balance, rates, NOW);
    user.await.unwrap();
    with_key(store, name, quota).await
}

/// Adds another key to that user.
pub(crate) async fn with_key(store: &Store, user: &str, quota: Option<&str>) -> TestAccount {
    let key = store.create_key(new_key(user, quota)).await.unwrap();
    TestAccount {
        name: user.to_owned(),
        user_id: key.user_id,
        key_id: key.id,
    }
}

/// Runs futures concurrently.
pub(crate) async fn all<F>(futures: impl IntoIterator<Item = F>) -> Vec<F::Output>
where
    F: Future<Output: Send + 'static> + Send + 'static,
{
    let running: tokio::task::JoinSet<_> = futures.into_iter().collect();
    running.join_all().await
}

pub(crate) fn new_key(user: &str, quota: Option<&str>) -> NewKey {
    NewKey {
        id: id::short_id("key_"),
        hash: id::key_hash(&id::api_key()),
        hint: "sk-".to_owned(),
        user: user.to_owned(),
        label: "test".to_owned(),
        quota: quota.map(amount),
        limits: KeyLimits::default(),
        now: NOW,
    }
}

/// A submission of `units` at `price` each.
pub(crate) fn task(account: &TestAccount, units: u64, price: &str) -> NewTask {
    task_at(account, units, price, NOW)
}

pub(crate) fn task_at(account: &TestAccount, units: u64, price: &str, now: Millis) -> NewTask {
    NewTask {
        id: id::task_id(now),
        user_id: account.user_id.clone(),
        key_id: account.key_id.clone(),
        kind: TaskKind::Image,
        family: "seedream".to_owned(),
        model: "seedream-5".to_owned(),
        created_at: now,
        deadline_at: now + 600_000,
        job: r#"{"prompt":"a lighthouse"}"#.to_owned(),
        adjustments: "[]".to_owned(),
        echoed_fields: "{}".to_owned(),
        callback_url: None,
        request_id: "req_1".to_owned(),
        trace_context: None,
        trace_state: None,
        charge: Charge {
            price: amount(price),
            units_per_price: 1,
            units,
        },
        idempotency: None,
    }
}

/// The same task with an `Idempotency-Key`; the receipt names the task.
pub(crate) fn with_idempotency_key(mut task: NewTask, key: &str, fingerprint: &str) -> NewTask {
    task.idempotency = Some(IdempotencyRecord {
        key: key.to_owned(),
        fingerprint: fingerprint.to_owned(),
        receipt: format!("{{\"id\":\"{}\"}}", task.id),
    });
    task
}

/// Submits a task, and asserts that it is accepted. Returns the id.
pub(crate) async fn submit(store: &Store, task: NewTask) -> String {
    let id = task.id.clone();
    assert_eq!(store.submit_task(task).await, Ok(SubmitOutcome::Accepted));
    id
}

/// The receiver of the webhooks of [`with_webhook`], of which up to `max` may be claimed.
pub(crate) fn receivers(max: usize) -> Vec<(String, usize)> {
    vec![("https://example.com".to_owned(), max)]
}

/// Leases all due tasks to worker `w`, for 30 s.
pub(crate) async fn claim_tasks(store: &Store, now: Millis) -> Vec<LeasedTask> {
    store
        .claim_tasks("w", 100, now + 30_000, now)
        .await
        .unwrap()
}

/// Leases the only task that is due.
pub(crate) async fn claim_one(store: &Store, now: Millis) -> LeasedTask {
    let mut leased = claim_tasks(store, now).await;
    assert_eq!(leased.len(), 1);
    leased.remove(0)
}

pub(crate) fn delivered(files: u64) -> TaskEnd {
    let shown = vec![serde_json::json!({"name": "x"}); files as usize];
    TaskEnd::Completed {
        delivered: Delivered::from_files(TaskKind::Image, files),
        result: serde_json::json!({ "files": shown }).to_string(),
    }
}

pub(crate) fn failed() -> TaskEnd {
    TaskEnd::Failed {
        code: "provider_error".to_owned(),
        message: "it broke".to_owned(),
    }
}

pub(crate) fn task_finish(leased: &LeasedTask, end: TaskEnd, now: Millis) -> TaskFinish {
    TaskFinish {
        task_id: leased.task.id.clone(),
        user_id: leased.task.user_id.clone(),
        key_id: leased.task.key_id.clone(),
        fence: leased.fence,
        end,
        attempt: None,
        now,
    }
}

pub(crate) async fn finish(
    store: &Store,
    leased: &LeasedTask,
    end: TaskEnd,
    now: Millis,
) -> FinishOutcome {
    store
        .finish_task(task_finish(leased, end, now))
        .await
        .unwrap()
}

/// An attempt at a provider that returns its result at once.
pub(crate) fn attempt(leased: &LeasedTask, now: Millis) -> NewAttempt {
    NewAttempt {
        task_id: leased.task.id.clone(),
        fence: leased.fence,
        channel: "main".to_owned(),
        external_id: None,
        queued: false,
        key_fingerprint: None,
        abandon_queued_as: None,
        now,
    }
}

/// An attempt at a provider that puts jobs into its queue.
pub(crate) fn queued(leased: &LeasedTask, now: Millis) -> NewAttempt {
    NewAttempt {
        external_id: Some(format!("tg-{}", leased.fence)),
        queued: true,
        key_fingerprint: Some("3f9a".to_owned()),
        ..attempt(leased, now)
    }
}

/// Starts an attempt at a provider that returns its result at once; `None` if the lease is lost.
pub(crate) async fn start_attempt(store: &Store, leased: &LeasedTask, now: Millis) -> Option<i64> {
    begin(store, attempt(leased, now)).await
}

/// Starts an attempt; `None` if the lease is lost.
pub(crate) async fn begin(store: &Store, start: NewAttempt) -> Option<i64> {
    match store.start_attempt(start).await.unwrap() {
        StartOutcome::Started(number) => Some(number),
        StartOutcome::LeaseLost => None,
        StartOutcome::EarlierStillQueued => panic!("one is still open"),
    }
}

/// The provider's acceptance of an attempt.
pub(crate) fn provider_job(
    leased: &LeasedTask,
    number: i64,
    provider_job_id: &str,
    now: Millis,
) -> ProviderJob {
    ProviderJob {
        task_id: leased.task.id.clone(),
        fence: leased.fence,
        number,
        provider_job_id: provider_job_id.to_owned(),
        adjustments: None,
        now,
    }
}

/// Starts a queued attempt and records its provider job id. Returns the attempt's number.
pub(crate) async fn enqueue(
    store: &Store,
    leased: &LeasedTask,
    provider_job_id: &str,
    now: Millis,
) -> i64 {
    let number = begin(store, queued(leased, now)).await.unwrap();
    let accepted = provider_job(leased, number, provider_job_id, now);
    assert_eq!(store.record_provider_job(accepted).await, Ok(true));
    number
}

/// The same task with a callback URL.
pub(crate) fn with_webhook(mut task: NewTask) -> NewTask {
    task.callback_url = Some("https://example.com/hook?a=1".to_owned());
    task
}

pub(crate) async fn retry_task(
    store: &Store,
    leased: &LeasedTask,
    number: i64,
    due_at: Millis,
    now: Millis,
) -> bool {
    let retry = TaskRetry {
        task_id: leased.task.id.clone(),
        fence: leased.fence,
        attempt: attempt_end(number),
        due_at,
        now,
    };
    store.retry_task(retry).await.unwrap()
}

pub(crate) fn attempt_end(number: i64) -> AttemptEnd {
    AttemptEnd {
        number,
        outcome: "failed",
        error: Some("status 500".to_owned()),
    }
}

/// The balance, the held and the used amount of a user, as text.
pub(crate) async fn user_sums(store: &Store, account: &TestAccount) -> [String; 3] {
    let user = store.user(&account.user_id).await.unwrap().unwrap();
    [user.balance, user.held, user.used].map(|a| a.to_string())
}

/// Sets the quota of a key, as the admin API does.
pub(crate) async fn set_quota(
    store: &Store,
    account: &TestAccount,
    quota: &str,
) -> Result<AdminReply, AdminRejection> {
    let version = store.key(&account.key_id).await.unwrap().unwrap().version;
    let patch = KeyPatch {
        quota: Some(Some(amount(quota))),
        ..KeyPatch::default()
    };
    let request = AdminRequest::cli(NOW);
    let set = store.admin_update_key(&request, &account.key_id, version, patch);
    set.await.unwrap()
}

/// The held and the used amount of a key, as text.
pub(crate) async fn key_sums(store: &Store, account: &TestAccount) -> [String; 2] {
    let key = store.key(&account.key_id).await.unwrap().unwrap();
    [key.held, key.used].map(|a| a.to_string())
}

/// Opens a store whose node is alive for the next 30 s.
pub(crate) async fn node(db: &Db) -> Store {
    let store = db.open().await;
    store.heartbeat(NODE, NOW + 30_000).await.unwrap();
    store
}

/// A chat request at these prices per million input and output tokens.
pub(crate) fn chat(account: &TestAccount, input: &str, output: &str) -> NewChat {
    let (input, output) = (amount(input), amount(output));
    NewChat {
        id: id::chat_id(NOW),
        user_id: account.user_id.clone(),
        key_id: account.key_id.clone(),
        model: "gpt-5".to_owned(),
        format: "messages",
        streamed: true,
        request_id: "req_1".to_owned(),
        held_parts: Amount::ZERO,
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

/// Counts of input and output tokens.
pub(crate) fn tokens(input: u64, output: u64) -> TokenCounts {
    TokenCounts {
        input,
        output,
        ..TokenCounts::default()
    }
}

/// The end of a successful chat.
pub(crate) fn chat_end(units: TokenCounts) -> ChatEnd {
    ChatEnd {
        clamped: 0,
        parts: ChatParts::default(),
        tokens: units,
        estimated: false,
        channel: Some("main".to_owned()),
        upstream_model: Some("gpt-5-mini".to_owned()),
        attempts: "[]".to_owned(),
        dropped: None,
        outcome: "done",
        ended_at: NOW + 1,
    }
}

pub(crate) async fn hold(
    store: &Store,
    chat: &NewChat,
    worst: TokenCounts,
) -> Result<Amount, Rejection> {
    store.hold_chat(chat, &worst, NODE).await.unwrap()
}

pub(crate) async fn reserve(
    store: &Store,
    chat: &NewChat,
    worst: TokenCounts,
) -> Result<ChatHold, Rejection> {
    store.reserve_chat(chat, &worst, NODE).await.unwrap()
}

/// `Stored` if the chat was held with [`hold`], otherwise `None`.
pub(crate) fn stored(held: bool) -> ChatHold {
    if held {
        ChatHold::Stored
    } else {
        ChatHold::None
    }
}

pub(crate) async fn settle(
    store: &Store,
    chat: &NewChat,
    held: bool,
    units: TokenCounts,
) -> SettleOutcome {
    settle_hold(store, chat, &stored(held), units).await
}

pub(crate) async fn settle_hold(
    store: &Store,
    chat: &NewChat,
    hold: &ChatHold,
    units: TokenCounts,
) -> SettleOutcome {
    let end = chat_end(units);
    store.settle_chat(chat.clone(), hold, end).await.unwrap()
}

pub(crate) fn cost(text: &str) -> SettleOutcome {
    let cost = amount(text);
    SettleOutcome::Settled { cost }
}

/// The outcome of a chat that was settled at `cost`, of which `debt` was not covered.
pub(crate) fn in_debt(cost: &str, debt: &str) -> SettleOutcome {
    let (cost, debt) = (amount(cost), amount(debt));
    SettleOutcome::SettledInDebt { cost, debt }
}

/// Asserts that the audit finds no violation. The harness does so at the end of every test.
pub(crate) async fn assert_clean(store: &Store) {
    let violations = store.audit().await.unwrap();
    assert!(violations.is_empty(), "{violations:#?}");
}

/// Cancels an unfinished task.
pub(crate) async fn cancel(store: &Store, task: &Task, now: Millis) {
    let cancelled = store.cancel_task(task, now).await;
    assert_eq!(cancelled, Ok(CancelOutcome::Cancelled));
}

/// Asserts that the result is [`StoreError::Invalid`].
pub(crate) fn assert_invalid<T: std::fmt::Debug>(result: &Result<T, StoreError>) {
    assert!(matches!(result, Err(StoreError::Invalid(_))), "{result:?}");
}
