//! Commands of tasks, leases and attempts.

use tollgate_core::{TaskKind, id};
use tollgate_store::{
    AttemptEnd, CancelOutcome, Charge, Delivered, FairShare, FinishOutcome, NewAttempt,
    ProviderJob, StartOutcome, SubmitOutcome, TaskClaim, TaskEnd,
};

use super::{Fixture, NOW, Step, ok, or_dash, outcome, rejected, since};
use crate::fixtures::{
    attempt, delivered, failed, provider_job, queued, retry_task, task_at, task_finish,
    with_idempotency_key, with_webhook,
};

impl Fixture<'_> {
    /// - `submit KEY UNITS PRICE NAME… [per=] [kind=] [key=IDEMPOTENCY_KEY/FINGERPRINT] [webhook=yes]` submits tasks.
    /// - `claim [owner=] [max=] [until=] [ordered=yes]` shows the leases, with failed attempts and the attempt in a queue. Shared out
    ///   by `[reserve=] [per_user=] [in_work=USER:N,…] [weights=USER:N,…]`; `[flags=yes]` shows whether there may be more.
    /// - `finish LEASE UNITS|all|files|failed|nul [files=] [attempt=NUMBER:OUTCOME] [charged_to=KEY]`, `cancel TASK [user=KEY]`, `task TASK`.
    /// - `receipt KEY IDEMPOTENCY_KEY`; `purge UNTIL` deletes what ended before.
    pub(super) async fn task_step(&mut self, step: &Step<'_>) -> String {
        match step.command {
            "submit" => {
                let mut outcomes = Vec::new();
                for name in &step.args[3..] {
                    outcomes.push(self.submit(step, name).await);
                }
                outcomes.dedup();
                outcomes.join(" ")
            }
            "claim" => self.claim(step).await,
            "time-out" => self.time_out(step).await,
            "waiting" => {
                let user_id = &self.account(step.args[0]).user_id;
                let tasks = self.store.unfinished_tasks(user_id, 1_000).await.unwrap();
                let webhooks = self.store.waiting_webhooks(user_id, 1_000).await.unwrap();
                let capped = self.store.unfinished_tasks(user_id, 1).await.unwrap();
                assert_eq!(capped, tasks.min(1));
                format!("{tasks} tasks, {webhooks} webhooks")
            }
            "finish" => self.finish(step).await,
            "cancel" => {
                let id = self.task_id(step.args[0]);
                let mut task = self.store.task(id).await.unwrap().unwrap();
                if let Some(other) = step.option("user") {
                    task.user_id.clone_from(&self.account(other).user_id);
                }
                if step.option("id").is_some() {
                    task.id = id::task_id(NOW);
                }
                outcome(
                    self.store.cancel_task(&task, step.now()).await,
                    |end| match end {
                        CancelOutcome::Cancelled => ok(()),
                        CancelOutcome::AlreadyFinal => "final".to_owned(),
                        CancelOutcome::NotFound => "not found".to_owned(),
                    },
                )
            }
            "task" => match self.store.task(self.task_id(step.args[0])).await.unwrap() {
                None => "-".to_owned(),
                Some(task) => format!(
                    "{:?} {}% started={} ended={} cost={} result={} error={}",
                    task.state,
                    task.progress,
                    since(task.started_at),
                    since(task.ended_at),
                    task.cost,
                    or_dash(task.result),
                    or_dash(
                        task.error
                            .map(|(code, message)| format!("{code}: {message}"))
                    ),
                ),
            },
            "receipt" => {
                let user = &self.account(step.args[0]).user_id;
                let found = self
                    .store
                    .find_receipt(user, step.args[1], step.now())
                    .await;
                outcome(found, |found| {
                    let id = |receipt: &str| receipt.split('"').nth(3).unwrap().to_owned();
                    or_dash(found.map(|(fingerprint, receipt)| {
                        format!("{fingerprint} {}", self.name_of(&id(&receipt)))
                    }))
                })
            }
            _ => {
                let until = super::time(step.args[0]);
                let purged = self.store.purge_expired(until, step.now()).await;
                outcome(purged, |count| count.to_string())
            }
        }
    }

    async fn submit(&mut self, step: &Step<'_>, name: &str) -> String {
        let account = self.account(step.args[0]);
        let units = step.args[1].parse().unwrap();
        let mut new = task_at(account, units, step.args[2], step.now());
        let units_per_price = step.option("per").map_or(1, |per| per.parse().unwrap());
        new.charge = Charge {
            units_per_price,
            ..new.charge
        };
        if let Some((key, fingerprint)) = step.option("key").and_then(|key| key.split_once('/')) {
            new = with_idempotency_key(new, key, fingerprint);
        }
        new.kind = match step.option("kind") {
            Some("video") => TaskKind::Video,
            Some("speech") => TaskKind::Speech,
            _ => TaskKind::Image,
        };
        if step.option("webhook").is_some() {
            new = with_webhook(new);
        }
        let id = new.id.clone();
        let submitted = self.store.submit_task(new).await;
        outcome(submitted, |submitted| match submitted {
            SubmitOutcome::Accepted => {
                self.tasks.insert(name.to_owned(), id);
                ok(())
            }
            SubmitOutcome::Replayed { receipt } => {
                format!(
                    "replayed {}",
                    self.name_of(receipt.split('"').nth(3).unwrap())
                )
            }
            SubmitOutcome::KeyReused => "key reused".to_owned(),
            SubmitOutcome::Rejected(rejection) => rejected(rejection),
        })
    }

    async fn claim(&mut self, step: &Step<'_>) -> String {
        let owner = step.option("owner").unwrap_or("w");
        let max = step.option("max").map_or(100, |max| max.parse().unwrap());
        let until = step.time("until", step.now() + 30_000);
        let number = |name| step.option(name).map(|n| n.parse().unwrap());
        let pairs = |name| {
            let pairs = step.option(name).unwrap_or_default().split(',');
            pairs.filter_map(|pair| pair.split_once(':'))
        };
        let in_work = pairs("in_work").map(|(name, n)| {
            let user_id = self.account(name).user_id.clone();
            (user_id, n.parse().unwrap())
        });
        let claim = TaskClaim {
            owner: owner.to_owned(),
            limit: max,
            until,
            now: step.now(),
            share: FairShare {
                after_user: self.last_user.clone(),
                turn: 0,
                reserve: number("reserve").unwrap_or(0),
                max_per_user: number("per_user"),
                in_work: in_work.collect(),
                weights: pairs("weights")
                    .map(|(name, n)| (name.to_owned(), n.parse().unwrap()))
                    .collect(),
            },
        };
        let claimed = self.store.claim_in_turns(claim).await.unwrap();
        let mut shown = Vec::new();
        self.last_user.clone_from(&claimed.last_user);
        for lease in claimed.tasks {
            let name = format!("{}@{}", self.name_of(&lease.task.id), lease.fence);
            let mut text = name.clone();
            if lease.failed_attempts > 0 {
                text += &format!(" failed={}", lease.failed_attempts);
            }
            if let Some(open) = &lease.queued_attempt {
                text += &format!(
                    " open={}:{}",
                    open.number,
                    or_dash(open.provider_job_id.as_ref())
                );
            }
            shown.push(text);
            self.leases.insert(name, lease);
        }
        if step.option("ordered").is_none() {
            shown.sort();
        }
        if step.option("flags").is_some() {
            let more = ["no more", "more"][usize::from(claimed.may_be_more)];
            shown.push(more.to_owned());
            shown.extend(claimed.is_held_back.then(|| "held back".to_owned()));
        }
        shown.join(", ")
    }

    /// - `time-out [until=]` fails the tasks whose deadline was then, and shows them.
    async fn time_out(&self, step: &Step<'_>) -> String {
        let until = step.time("until", step.now());
        let mut shown = Vec::new();
        for task in self.store.overdue_tasks(until).await.unwrap() {
            let ended = self
                .store
                .time_out_task(&task, "too late", step.now())
                .await;
            assert_eq!(ended, Ok(CancelOutcome::Cancelled));
            let again = self
                .store
                .time_out_task(&task, "too late", step.now())
                .await;
            assert_eq!(again, Ok(CancelOutcome::AlreadyFinal));
            shown.push(self.name_of(&task.id));
        }
        shown.sort();
        shown.join(" ")
    }

    async fn finish(&self, step: &Step<'_>) -> String {
        let end = match step.args[1] {
            "failed" => failed(),
            // A provider's message may contain anything, even characters that PostgreSQL cannot store.
            "nul" => TaskEnd::Failed {
                code: "provider_error".to_owned(),
                message: "a\0b 'c' \u{1f5bc}".to_owned(),
            },
            units => self.delivery(step, units),
        };
        let mut finish = task_finish(self.lease(step.args[0]), end, step.now());
        if let Some(charged_to) = step.option("charged_to") {
            finish.user_id.clone_from(&self.account(charged_to).user_id);
            finish.key_id.clone_from(&self.account(charged_to).key_id);
        }
        finish.attempt = step.option("attempt").map(attempt_end);
        outcome(self.store.finish_task(finish).await, |end| match end {
            FinishOutcome::Finished { cost } => cost.to_string(),
            FinishOutcome::AlreadyFinal => "final".to_owned(),
            FinishOutcome::LeaseLost => "lease lost".to_owned(),
        })
    }

    /// A delivery of that many units, or of `all`, in as many files unless the option `files` gives another number.
    fn delivery(&self, step: &Step<'_>, units: &str) -> TaskEnd {
        let kind = self.lease(step.args[0]).task.kind;
        let count = step.option("files").unwrap_or(units).parse().unwrap();
        let TaskEnd::Completed { result, .. } = delivered(count) else {
            unreachable!("a delivery completes its task")
        };
        let delivered = match units {
            "all" => Delivered::FullOrder,
            "files" => Delivered::from_files(kind, count),
            units => Delivered::Units(units.parse().unwrap()),
        };
        TaskEnd::Completed { delivered, result }
    }

    /// - `start LEASE [queued=yes] [abandon=OUTCOME] [channel=]` shows the attempt's number.
    /// - `accept LEASE NUMBER PROVIDER_JOB_ID [adjustments=]`, `retry LEASE NUMBER due=`, `postpone LEASE due=`, `progress LEASE PERCENT`.
    /// - `renew LEASE… owner= until=` shows the lost ones; `release OWNER|all|stranded` their number.
    /// - `due` shows when the next task is due, and totals; `channels TASK` those that failed; `queued TASK` its last queued attempt.
    pub(super) async fn lease_step(&mut self, step: &Step<'_>) -> String {
        let now = step.now();
        let store = &self.store;
        match step.command {
            "start" => self.start(step).await,
            "accept" => {
                let id = match step.args[2].split_once('*') {
                    Some((text, count)) => text.repeat(count.parse().unwrap()),
                    None => step.args[2].to_owned(),
                };
                let number = step.args[1].parse().unwrap();
                let job = ProviderJob {
                    adjustments: step.option("adjustments").map(str::to_owned),
                    ..provider_job(self.lease(step.args[0]), number, &id, now)
                };
                outcome(store.record_provider_job(job).await, yes_or_lost)
            }
            "retry" => {
                let lease = self.lease(step.args[0]);
                let (number, due) = (step.args[1].parse().unwrap(), step.time("due", now));
                yes_or_lost(retry_task(store, lease, number, due, now).await)
            }
            "postpone" => {
                let lease = self.lease(step.args[0]);
                let due = step.time("due", now);
                outcome(
                    store.postpone_task(&lease.task.id, lease.fence, due).await,
                    ok,
                )
            }
            "progress" => {
                let lease = self.lease(step.args[0]);
                let percent = step.args[1].parse().unwrap();
                outcome(
                    store
                        .set_progress(&lease.task.id, lease.fence, percent, now)
                        .await,
                    ok,
                )
            }
            "renew" => {
                let leases = step.args.iter().map(|name| self.lease(name));
                let leases = leases
                    .map(|lease| (lease.task.id.clone(), lease.fence))
                    .collect();
                let owner = step.option("owner").unwrap_or("w");
                let lost = store
                    .renew_leases(owner, leases, step.time("until", now))
                    .await;
                outcome(lost, |lost| {
                    let names = lost.iter().map(|id| self.name_of(id));
                    format!("lost: {}", names.collect::<Vec<_>>().join(" "))
                })
            }
            "release" if step.args[0] == "stranded" => {
                let released = store.release_stranded(60_000, now).await;
                outcome(released, |count| count.to_string())
            }
            "release" => {
                let owner = Some(step.args[0]).filter(|owner| *owner != "all");
                outcome(store.release_leases(owner, now).await, |count| {
                    count.to_string()
                })
            }
            "due" => {
                let totals = store.totals().await.unwrap();
                let (waiting, running) = (totals.submitted, totals.in_progress);
                let (next, oldest) = (
                    store.next_task_due_at().await.unwrap(),
                    totals.oldest_due_at,
                );
                format!(
                    "{}, {waiting} since {}, {running} running",
                    since(next),
                    since(oldest)
                )
            }
            "channels" => store
                .failed_channels(self.task_id(step.args[0]))
                .await
                .unwrap()
                .join(" "),
            _ => {
                let found = store
                    .last_queued_attempt(self.task_id(step.args[0]))
                    .await
                    .unwrap();
                or_dash(found.map(|open| {
                    let id = or_dash(open.provider_job_id.map(|id| abbreviated(&id).to_string()));
                    let parts = [open.external_id, open.key_fingerprint, open.adjustments];
                    let [external, key, adjustments] = parts.map(or_dash);
                    let (started, accepted) = (since(open.started_at), since(open.accepted_at));
                    let who = format!("{} {} {external} {key}", open.number, open.channel);
                    format!("{who} started={started} id={id} accepted={accepted} adjustments={adjustments}")
                }))
            }
        }
    }

    async fn start(&self, step: &Step<'_>) -> String {
        let lease = self.lease(step.args[0]);
        let base = match step.option("queued") {
            Some(_) => queued(lease, step.now()),
            None => attempt(lease, step.now()),
        };
        let abandon_queued_as = step.option("abandon").map(|outcome| match outcome {
            "lost" => "lost",
            _ => "unknown",
        });
        let start = NewAttempt {
            channel: step.option("channel").unwrap_or("main").to_owned(),
            abandon_queued_as,
            ..base
        };
        outcome(
            self.store.start_attempt(start).await,
            |started| match started {
                StartOutcome::Started(number) => number.to_string(),
                StartOutcome::LeaseLost => "lease lost".to_owned(),
                StartOutcome::EarlierStillQueued => "still queued".to_owned(),
            },
        )
    }
}

/// `NUMBER:OUTCOME`.
fn attempt_end(text: &str) -> AttemptEnd {
    let (number, outcome) = text.split_once(':').unwrap();
    let failed = crate::fixtures::attempt_end(number.parse().unwrap());
    match outcome {
        "done" => AttemptEnd {
            outcome: "done",
            error: None,
            ..failed
        },
        _ => failed,
    }
}

fn yes_or_lost(written: bool) -> String {
    if written { "ok" } else { "lost" }.to_owned()
}

/// A long id as its first character and its length.
fn abbreviated(id: &str) -> String {
    match id.len() {
        0..=20 => id.to_owned(),
        long => format!("{}*{long}", &id[..1]),
    }
}
