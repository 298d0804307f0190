//! Model test: random histories of operations against a small model; the sums match and the audit passes.

mod chats;

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tollgate_core::clock::DAY;
use tollgate_core::{Amount, Millis};
use tollgate_store::{
    AdminRequest, BudgetOwner, BudgetPatch, BudgetPeriod, CancelOutcome, ExceededBudget,
    FinishOutcome, LeasedTask, Rejection, StartOutcome, Store, SubmitOutcome,
};

use crate::budgets::{create_budget, new_budget};
use crate::databases::{Db, on_both};
use crate::fixtures::{
    NOW, TestAccount, account, assert_clean, delivered, failed, finish, provider_job, queued,
    retry_task, start_attempt, task_at, unlimited_account, with_idempotency_key, with_key,
    with_webhook,
};

on_both!(random_histories_match_the_model_and_pass_the_audit);

#[derive(Debug, Clone)]
enum Step {
    Submit {
        who: usize,
        units: u64,
        price: i64,
        key: Option<u8>,
    },
    /// Claims at most this number of tasks.
    Claim(usize),
    /// Finishes the task of a lease with this number of units; with `None` the task fails.
    Finish(usize, Option<u64>),
    Retry(usize),
    Enqueue(usize),
    Cancel(usize),
    Credit(usize, i64),
    /// Sets the amount of the budget.
    Budget(usize, i64),
    HandBack,
    Revoke(usize),
    Wait(Millis),
    Purge,
    Chat(chats::Step),
}

fn step() -> impl Strategy<Value = Step> {
    let who = 0..4usize;
    let pick = 0..40usize;
    prop_oneof![
        8 => (who.clone(), 1..5u64, 0..40i64, prop::option::of(0..6u8))
            .prop_map(|(who, units, price, key)| Step::Submit { who, units, price, key }),
        4 => (1..4usize).prop_map(Step::Claim),
        4 => (pick.clone(), 1..6u64).prop_map(|(pick, units)| Step::Finish(pick, Some(units))),
        2 => pick.clone().prop_map(|pick| Step::Finish(pick, None)),
        2 => pick.clone().prop_map(Step::Retry),
        3 => pick.clone().prop_map(Step::Enqueue),
        3 => pick.prop_map(Step::Cancel),
        2 => (who.clone(), -60..90i64).prop_map(|(who, nanos)| Step::Credit(who, nanos)),
        2 => (who.clone(), 0..200i64).prop_map(|(who, nanos)| Step::Budget(who, nanos)),
        1 => Just(Step::HandBack),
        1 => who.prop_map(Step::Revoke),
        2 => (1..40_000i64).prop_map(Step::Wait),
        1 => Just(Step::Purge),
        10 => chats::step().prop_map(Step::Chat),
    ]
}

/// The model's state of a task.
#[derive(Debug, Clone)]
struct Known {
    who: usize,
    price: i64,
    units: u64,
    fence: i64,
    leased: bool,
    ended: bool,
    /// The number of the attempt that a provider has in its queue.
    queued: Option<i64>,
    calls: bool,
}

#[derive(Debug, Default, Clone)]
struct Account {
    limited: bool,
    quota: Option<i64>,
    revoked: bool,
    balance: i64,
    held: i64,
    /// The amount reserved for chats, in memory.
    reserved: i64,
    used: i64,
    budget: Budget,
}

/// The daily budget of an account's user or key.
#[derive(Debug, Default, Clone)]
struct Budget {
    id: String,
    of_key: bool,
    is_hard: bool,
    amount: i64,
    spent: i64,
    /// The day to which `spent` belongs, in milliseconds since 1970.
    day: Millis,
}

/// The beginning of the day of that time.
fn day(at: Millis) -> Millis {
    at - at % DAY
}

impl Budget {
    fn owner(&self) -> BudgetOwner {
        if self.of_key {
            BudgetOwner::Key
        } else {
            BudgetOwner::User
        }
    }

    fn spend(&mut self, amount: i64, now: Millis) {
        if amount != 0 && day(now) > self.day {
            (self.day, self.spent) = (day(now), 0);
        }
        self.spent += amount;
    }
}

impl Account {
    /// The remaining balance, if it is limited.
    fn balance_left(&self) -> Option<i64> {
        let left = self.balance - self.held - self.reserved;
        self.limited.then_some(left)
    }

    fn quota_left(&self) -> Option<i64> {
        let taken = self.held + self.reserved + self.used;
        self.quota.map(|quota| quota - taken)
    }

    fn exceeds_budget(&self, cost: i64, now: Millis) -> Option<Rejection> {
        let budget = &self.budget;
        let spent = if day(now) > budget.day {
            0
        } else {
            budget.spent
        };
        let available = (budget.amount - spent - self.held - self.reserved).max(0);
        let is_exceeded = budget.is_hard && cost > 0 && available < cost;
        is_exceeded.then(|| {
            Rejection::BudgetExceeded(ExceededBudget {
                owner: budget.owner(),
                period: BudgetPeriod::Day,
                amount: Amount::from_nanos(budget.amount),
                available: Amount::from_nanos(available),
                resets_at: day(now) + DAY,
            })
        })
    }

    fn rejection(&self, cost: i64, now: Millis) -> Option<Rejection> {
        let too_little = |left: Option<i64>| {
            let left = left.filter(|left| cost > 0 && *left < cost);
            left.map(|left| Amount::from_nanos(left.max(0)))
        };
        if self.revoked {
            return Some(Rejection::AccountInactive);
        }
        let balance = too_little(self.balance_left());
        let quota = too_little(self.quota_left());
        balance
            .map(|available| Rejection::InsufficientBalance { available })
            .or(quota.map(|available| Rejection::InsufficientQuota { available }))
            .or_else(|| self.exceeds_budget(cost, now))
    }
}

struct Model {
    store: Store,
    owners: Vec<TestAccount>,
    accounts: Vec<Account>,
    tasks: BTreeMap<String, Known>,
    leases: Vec<LeasedTask>,
    keys: BTreeMap<(usize, u8), (String, String)>,
    chats: Vec<chats::Known>,
    now: Millis,
}

impl Model {
    async fn new(store: &Store, tag: usize) -> Self {
        let mut model = Self {
            store: store.clone(),
            owners: Vec::new(),
            accounts: Vec::new(),
            tasks: BTreeMap::new(),
            leases: Vec::new(),
            keys: BTreeMap::new(),
            chats: Vec::new(),
            // Most histories continue past midnight.
            now: day(NOW) + DAY - 90_000,
        };
        model.heartbeat().await;
        for who in 0..4 {
            let name = format!("u{tag}-{who}");
            let quota = (who % 2 == 1).then_some(150);
            let limited = who < 2;
            let owner = if limited {
                let first = account(store, &name, "0.0000001").await;
                match quota {
                    None => first,
                    Some(_) => with_key(store, &name, Some("0.00000015")).await,
                }
            } else {
                unlimited_account(store, &name, quota.map(|_| "0.00000015")).await
            };
            let mut budget = Budget {
                of_key: who > 1,
                is_hard: who != 1,
                amount: 120,
                day: day(model.now),
                ..Budget::default()
            };
            let amount = Amount::from_nanos(budget.amount).to_string();
            let new = new_budget(&owner, budget.owner(), &amount, budget.is_hard);
            budget.id = create_budget(store, new, model.now).await;
            model.owners.push(owner);
            model.accounts.push(Account {
                limited,
                quota,
                balance: if limited { 100 } else { 0 },
                budget,
                ..Account::default()
            });
        }
        model
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Submit {
                who,
                units,
                price,
                key,
            } => self.submit(who, units, price, key).await,
            Step::Claim(limit) => {
                let (until, store) = (self.now + 30_000, self.store.clone());
                let claimed = store.claim_tasks("w", limit, until, self.now).await;
                for leased in claimed.unwrap() {
                    let known = self.tasks.get_mut(&leased.task.id).unwrap();
                    assert!(!known.ended, "a finished task was leased");
                    known.fence += 1;
                    known.leased = true;
                    assert_eq!(leased.fence, known.fence);
                    let open = leased.queued_attempt.as_ref().map(|open| open.number);
                    assert_eq!(open, known.queued);
                    self.leases.push(leased);
                }
            }
            Step::Finish(pick, units) => self.finish(pick, units).await,
            Step::Retry(pick) => self.retry(pick).await,
            Step::Enqueue(pick) => self.enqueue(pick).await,
            Step::Cancel(pick) => self.cancel(pick).await,
            Step::Credit(who, nanos) => {
                let account = &mut self.accounts[who];
                let left = account.balance_left().unwrap_or(0);
                let allowed = !account.limited || nanos >= 0 || left + nanos >= 0;
                let amount = Amount::from_nanos(nanos);
                let name = &self.owners[who].name;
                let credited = self.store.credit_user(name, amount, None, self.now).await;
                assert_eq!(credited.is_ok(), allowed, "{credited:?}");
                if allowed {
                    account.balance += nanos;
                }
            }
            Step::Budget(who, nanos) => {
                let budget = &mut self.accounts[who].budget;
                let stored = self.store.budget(&budget.id).await.unwrap().unwrap();
                budget.amount = nanos;
                let patch = BudgetPatch {
                    amount: Some(Amount::from_nanos(nanos)),
                    ..BudgetPatch::default()
                };
                let request = AdminRequest::cli(self.now);
                let changed = self.store.update_budget(&request, &stored, None, patch);
                changed.await.unwrap().unwrap();
            }
            Step::HandBack => {
                let leased = self.tasks.values_mut().filter(|t| t.leased && !t.ended);
                let count = leased.map(|t| t.leased = false).count() as u64;
                let released = self.store.release_leases(Some("w"), self.now).await;
                assert_eq!(released, Ok(count));
            }
            Step::Revoke(who) => {
                let id = &self.owners[who].key_id;
                self.store.revoke_key(id, self.now).await.unwrap();
                self.accounts[who].revoked = true;
            }
            Step::Wait(by) => self.now += by,
            Step::Purge => {
                let partitioned = self.store.maintain_partitions(0, self.now).await;
                partitioned.unwrap();
                let purged = self.store.purge_expired(self.now, self.now).await;
                assert!(purged.is_ok(), "{purged:?}");
            }
            Step::Chat(step) => self.chat(step).await,
        }
    }

    async fn submit(&mut self, who: usize, units: u64, price: i64, key: Option<u8>) {
        let mut new = task_at(&self.owners[who], units, "0", self.now);
        new.charge.price = Amount::from_nanos(price);
        let calls = units > 2;
        if calls {
            new = with_webhook(new);
        }
        let fingerprint = format!("{units} {price}");
        if let Some(key) = key {
            new = with_idempotency_key(new, &key.to_string(), &fingerprint);
        }
        let id = new.id.clone();
        let receipt = new.idempotency.as_ref().map(|i| i.receipt.clone());
        let result = self.store.submit_task(new).await.unwrap();
        if let Some((first, receipt)) = key.and_then(|key| self.keys.get(&(who, key))) {
            let receipt = receipt.clone();
            return match *first == fingerprint {
                true => assert_eq!(result, SubmitOutcome::Replayed { receipt }),
                false => assert_eq!(result, SubmitOutcome::KeyReused),
            };
        }
        let account = &mut self.accounts[who];
        let cost = price * units as i64;
        match account.rejection(cost, self.now) {
            Some(rejection) => assert_eq!(result, SubmitOutcome::Rejected(rejection)),
            None => {
                assert_eq!(result, SubmitOutcome::Accepted);
                account.held += cost;
                let known = Known {
                    who,
                    price,
                    units,
                    fence: 0,
                    leased: false,
                    ended: false,
                    queued: None,
                    calls,
                };
                self.tasks.insert(id, known);
                if let (Some(key), Some(receipt)) = (key, receipt) {
                    self.keys.insert((who, key), (fingerprint, receipt));
                }
            }
        }
    }

    /// A lease, whether the task still has it, and whether the task has ended. `None` if there are no leases.
    fn pick(&self, pick: usize) -> Option<(LeasedTask, bool, bool)> {
        let leased = self.leases.get(pick.checked_rem(self.leases.len())?)?;
        let known = &self.tasks[&leased.task.id];
        let current = known.leased && known.fence == leased.fence;
        Some((leased.clone(), current, known.ended))
    }

    async fn finish(&mut self, pick: usize, units: Option<u64>) {
        let Some((leased, current, ended)) = self.pick(pick) else {
            return;
        };
        let end = units.map_or_else(failed, delivered);
        let outcome = finish(&self.store, &leased, end, self.now).await;
        if ended {
            return assert_eq!(outcome, FinishOutcome::AlreadyFinal);
        }
        if !current {
            return assert_eq!(outcome, FinishOutcome::LeaseLost);
        }
        let known = self.tasks.get_mut(&leased.task.id).unwrap();
        known.ended = true;
        let account = &mut self.accounts[known.who];
        let settled = known.price * units.unwrap_or(0).min(known.units) as i64;
        account.held -= known.price * known.units as i64;
        account.used += settled;
        account.balance -= settled;
        account.budget.spend(settled, self.now);
        let cost = Amount::from_nanos(settled);
        assert_eq!(outcome, FinishOutcome::Finished { cost });
    }

    async fn retry(&mut self, pick: usize) {
        let Some((leased, current, ended)) = self.pick(pick) else {
            return;
        };
        // If an attempt is in a provider's queue, it is ended, and no other one is started beside it.
        let number = match self.tasks[&leased.task.id].queued {
            Some(number) if current && !ended => Some(number),
            _ => start_attempt(&self.store, &leased, self.now).await,
        };
        assert_eq!(number.is_some(), current && !ended);
        let Some(number) = number else { return };
        assert!(retry_task(&self.store, &leased, number, self.now + 5, self.now).await);
        let known = self.tasks.get_mut(&leased.task.id).unwrap();
        (known.leased, known.queued) = (false, None);
    }

    async fn enqueue(&mut self, pick: usize) {
        let Some((leased, current, ended)) = self.pick(pick) else {
            return;
        };
        // Each attempt starts at another time, so that none is taken for a repetition.
        self.now += 1;
        let started = self.store.start_attempt(queued(&leased, self.now)).await;
        let known = self.tasks.get_mut(&leased.task.id).unwrap();
        let number = match started.unwrap() {
            StartOutcome::LeaseLost => return assert!(ended || !current),
            StartOutcome::EarlierStillQueued => return assert!(known.queued.is_some()),
            StartOutcome::Started(number) => number,
        };
        assert!(current && !ended && known.queued.is_none());
        known.queued = Some(number);
        let accepted = provider_job(&leased, number, "op", self.now);
        assert_eq!(self.store.record_provider_job(accepted).await, Ok(true));
    }

    async fn cancel(&mut self, pick: usize) {
        let at = pick.checked_rem(self.tasks.len()).unwrap_or(0);
        let Some((id, known)) = self.tasks.iter_mut().nth(at) else {
            return;
        };
        let Some(task) = self.store.task(id).await.unwrap() else {
            return assert!(known.ended, "an unfinished task was purged");
        };
        let cancelled = self.store.cancel_task(&task, self.now).await.unwrap();
        if known.ended {
            return assert_eq!(cancelled, CancelOutcome::AlreadyFinal);
        }
        assert_eq!(cancelled, CancelOutcome::Cancelled);
        known.ended = true;
        self.accounts[known.who].held -= known.price * known.units as i64;
    }

    /// Checks that the store's sums and webhooks are those of the model, and that the audit passes.
    async fn check(&self) {
        for (id, known) in &self.tasks {
            let log = self.store.webhook_log(id).await.unwrap();
            let is_there = self.store.task(id).await.unwrap().is_some();
            assert_eq!(log.is_some(), known.calls && known.ended && is_there);
        }
        for (owner, account) in self.owners.iter().zip(&self.accounts) {
            let user = self.store.user(&owner.user_id).await.unwrap().unwrap();
            let user_sums = [user.balance, user.held, user.used].map(Amount::nanos);
            assert_eq!(user_sums, [account.balance, account.held, account.used]);
            let key = self.store.key(&owner.key_id).await.unwrap().unwrap();
            let key_sums = [key.held, key.used].map(Amount::nanos);
            assert_eq!(key_sums, [account.held, account.used]);
            let reserved = self.store.reserved_amounts(&owner.user_id, &owner.key_id);
            let budget = self
                .store
                .budget(&account.budget.id)
                .await
                .unwrap()
                .unwrap();
            assert_eq!(budget.spent.nanos(), account.budget.spent);
            let has_hard = |of_key| account.budget.is_hard && account.budget.of_key == of_key;
            let limits = [
                account.limited || has_hard(false),
                account.quota.is_some() || has_hard(true),
            ];
            let counted = limits.map(|limit| if limit { account.reserved } else { 0 });
            assert_eq!(reserved.map(Amount::nanos), counted);
        }
        assert_clean(&self.store).await;
    }
}

async fn random_histories_match_the_model_and_pass_the_audit(db: &Db) {
    let mut runner = TestRunner::new(Config {
        cases: 40,
        failure_persistence: None,
        ..Config::default()
    });
    let store = db.open().await;
    let runtime = tokio::runtime::Handle::current();
    let tag = std::cell::Cell::new(0);
    tokio::task::block_in_place(|| {
        runner
            .run(&prop::collection::vec(step(), 1..60), |steps| {
                tag.set(tag.get() + 1);
                runtime.block_on(async {
                    let mut model = Model::new(&store, tag.get()).await;
                    for step in steps {
                        model.take(step).await;
                    }
                    model.check().await;
                    // The chats and tasks that this history leaves must not affect the next one.
                    model.die().await;
                    for id in model.tasks.keys() {
                        if let Some(task) = store.task(id).await.unwrap() {
                            store.cancel_task(&task, model.now).await.unwrap();
                        }
                    }
                });
                Ok(())
            })
            .unwrap();
    });
}
