//! Jobs in the queues of providers: submitted once, polled across crashes, charged once.

mod fixture;

use futures_util::future::join_all;
use serde_json::json;
use tollgate_fakes::{Scenario, Stage};

use crate::harness::*;
use fixture::{BALANCE, Fixture, PRICE, QueueProvider, key, keys_of_tasks};

on_both!(
    a_job_is_polled_to_its_end,
    a_restart_continues_polling,
    a_crash_with_a_provider_job_id_continues_the_job,
    a_crash_without_a_provider_job_id_does_not_submit_again,
);
on_sqlite!(
    cancellations_are_sent_upstream,
    time_limits_cancel_the_job_upstream,
    failed_jobs_are_not_charged,
    failed_submissions_fail_over_to_another_channel,
    failed_polls_are_retried,
    failed_result_downloads_are_retried_and_then_fail_the_task,
    a_lost_response_is_not_submitted_again,
    a_search_that_fails_occupies_no_worker,
    every_other_queue_provider_passes_the_same_checks,
);

/// Longer than any test takes.
const LONG: u32 = 600;
/// The time limit of tasks that end with a timeout.
const SHORT: u32 = 4;

/// Runs a test with each provider, side by side: most of the time they wait.
async fn for_each(test: impl AsyncFn(&QueueProvider)) {
    let providers: Vec<QueueProvider> = cases::rows("queue_providers");
    join_all(providers.iter().map(|provider| test(provider))).await;
}

async fn a_job_is_polled_to_its_end(backend: Backend) {
    for_each(async |provider| check_polled(backend, provider).await).await;
}

async fn every_other_queue_provider_passes_the_same_checks(backend: Backend) {
    let providers: Vec<QueueProvider> = cases::rows("queue_providers_briefly");
    let check = async |provider: &QueueProvider| {
        check_polled(backend, provider).await;
        check_failed(backend, provider).await;
        if provider.failures_are_final {
            check_not_retried(backend, provider).await;
        } else {
            check_taken_over(backend, provider, "fail").await;
        }
        check_taken_over(backend, provider, "quota-exhausted").await;
        let (fixture, id) = crash(backend, provider, "run.after_provider_job_id", LONG).await;
        let record = fixture.client.wait_for_end(&id).await;
        fixture.check_completed(&record).await;
        assert_eq!(fixture.submissions(0).len(), 1);
        fixture.close(PRICE).await;
    };
    join_all(providers.iter().map(check)).await;
}

async fn check_polled(backend: Backend, provider: &QueueProvider) {
    let fixture = Fixture::start(backend, provider, 1, LONG).await;
    fixture.complete("a pier [[fake:polls=4]]").await;
    assert_eq!(fixture.submissions(0).len(), 1);
    // The gateway polls until the job has ended, and not after that.
    let polls = 4 + usize::from(provider.result_is_separate);
    assert_eq!(fixture.polls(), polls);
    fixture.close(PRICE).await;
}

async fn a_restart_continues_polling(backend: Backend) {
    for_each(async |provider| {
        let mut fixture = Fixture::start(backend, provider, 1, LONG).await;
        let mut ids = Vec::new();
        for n in 0..3 {
            let prompt = format!("pier {n} [[fake:polls=1000]]");
            ids.push(fixture.submit(&prompt).await);
        }
        let wait_for_polls = async |fixture: &Fixture<'_>| {
            let count = || {
                let polls = fixture.fakes[0].polls().into_iter();
                polls.map(|(_, times)| times.len()).collect::<Vec<usize>>()
            };
            let before: usize = count().iter().sum();
            until_true("polls", async || {
                let polls = count();
                let each = polls.len() == 3 && polls.iter().all(|times| *times >= 2);
                each && polls.iter().sum::<usize>() >= before + 6
            })
            .await;
        };
        wait_for_polls(&fixture).await;
        fixture.gateway.kill().await;
        fixture.gateway.start_server().await;
        wait_for_polls(&fixture).await;
        fixture.gateway.restart().await;
        wait_for_polls(&fixture).await;
        for id in &ids {
            assert_eq!(status(&fixture.client.task(id).await), provider.running);
        }

        let submissions = fixture.submissions(0);
        assert_eq!(submissions.len(), 3, "each was submitted once");
        let mut keys: Vec<Vec<String>> = submissions.iter().map(|one| vec![key(one)]).collect();
        keys.sort_unstable();
        // A task is always polled with the same key.
        assert_eq!(keys_of_tasks(&fixture.fakes[0]), keys);
        for id in &ids {
            fixture.client.cancel(id).await.expect(200);
        }
        fixture.close(0.0).await;
    })
    .await;
}

async fn a_crash_with_a_provider_job_id_continues_the_job(backend: Backend) {
    let points = [
        "run.after_provider_job_id",
        "run.before_poll",
        "run.before_poll:2",
        "run.result_stored",
        "run.before_finish",
        "run.after_finish",
        "blob.before_rename",
        "blob.after_rename",
    ];
    for_each(async |provider| {
        for point in points {
            let (fixture, id) = crash(backend, provider, point, LONG).await;
            let record = fixture.client.wait_for_end(&id).await;
            fixture.check_completed(&record).await;
            assert_eq!(fixture.submissions(0).len(), 1, "{point}");
            assert_eq!(fixture.fakes[0].polls().len(), 1, "{point}");
            fixture.close(PRICE).await;
        }
    })
    .await;
}

async fn a_crash_without_a_provider_job_id_does_not_submit_again(backend: Backend) {
    for_each(async |provider| {
        let finds = provider.finds_by_external_id;
        for (point, submitted) in [("run.after_attempt", 0), ("run.after_start", 1)] {
            let limit_s = if finds { LONG } else { SHORT };
            let (fixture, id) = crash(backend, provider, point, limit_s).await;
            let record = fixture.client.wait_for_end(&id).await;
            if finds {
                // The gateway searches for the job by its own id: it polls the job if there is one, and submits it otherwise.
                fixture.check_completed(&record).await;
                assert_eq!(fixture.submissions(0).len(), 1, "{point}");
                fixture.close(PRICE).await;
            } else {
                // The gateway cannot find out whether the provider has the job: the task waits for its deadline and costs nothing.
                fixture.check_failed(&record, "timeout");
                assert_eq!(fixture.submissions(0).len(), submitted, "{point}");
                fixture.close(0.0).await;
            }
        }
    })
    .await;
}

/// Submits to a gateway that exits at a crash point, and starts it again; returns the task.
async fn crash<'a>(
    backend: Backend,
    provider: &'a QueueProvider,
    point: &str,
    limit_s: u32,
) -> (Fixture<'a>, String) {
    let mut fixture = Fixture::prepare(backend, provider, 1, limit_s).await;
    let gateway = &mut fixture.gateway;
    gateway.crash_at(point);
    assert!(gateway.start_to_crash().await, "{}", gateway.log_tail());
    let prompt = "a pier [[fake:polls=3]]";
    let first = fixture.try_submit(prompt, "one-key").await;
    fixture.gateway.wait_for_exit().await;
    fixture.gateway.crash_at("");
    fixture.gateway.start_server().await;
    let id = fixture.try_submit(prompt, "one-key").await;
    let id = id.expect("a response");
    assert!(first.is_none_or(|first| first == id), "one key, one task");
    (fixture, id)
}

async fn cancellations_are_sent_upstream(backend: Backend) {
    for_each(async |provider| {
        let fixture = Fixture::start(backend, provider, 1, LONG).await;
        let id = fixture.submit("a pier [[fake:polls=1000]]").await;
        until_true("a poll", async || fixture.polls() > 0).await;
        let held = (BALANCE - PRICE, 0.0);
        assert_eq!(fixture.client.balances().await, held);
        fixture.client.cancel(&id).await.expect(200);
        fixture.check_failed(&fixture.client.task(&id).await, "cancelled");
        fixture.wait_for_cancellations(1).await;
        let polls = fixture.polls();
        fixture.check_spent(0.0).await;
        // While another task runs to its end there are no more polls, except one that may have been in flight.
        fixture.complete("a bridge").await;
        assert!(fixture.polls() <= polls + 1);
        fixture.close(PRICE).await;
    })
    .await;
}

async fn time_limits_cancel_the_job_upstream(backend: Backend) {
    for_each(async |provider| {
        let fixture = Fixture::start(backend, provider, 1, SHORT).await;
        let slow = fixture.submit("a pier [[fake:polls=100000]]").await;
        let hanging = fixture.submit("a bridge [[fake:hang@poll]]").await;
        for id in [slow, hanging] {
            let record = fixture.client.wait_for_end(&id).await;
            fixture.check_failed(&record, "timeout");
            let channel = format!("{}-0", provider.provider);
            let expected = json!({ "attempts": 1, "channel": channel });
            assert_has(&fixture.end_line(&id).await, expected);
        }
        fixture.wait_for_cancellations(2).await;
        assert_eq!(fixture.submissions(0).len(), 2);
        fixture.close(0.0).await;
    })
    .await;
}

async fn failed_jobs_are_not_charged(backend: Backend) {
    for_each(async |provider| check_failed(backend, provider).await).await;
}

async fn check_failed(backend: Backend, provider: &QueueProvider) {
    let fixture = Fixture::start(backend, provider, 1, LONG).await;
    let filtered = "[[fake:content-filter]][[fake:polls=2]]";
    let rejected = format!("[[fake:{}]]", provider.rejection);
    fixture.fail("[[fake:blocked]]", "moderated").await;
    fixture.fail(filtered, "moderated").await;
    fixture.fail(&rejected, "invalid_request").await;
    assert_eq!(fixture.submissions(0).len(), 3, "no attempt is repeated");
    fixture.close(0.0).await;
}

async fn failed_submissions_fail_over_to_another_channel(backend: Backend) {
    for_each(async |provider| {
        for scenario in [
            "fail",
            "quota-exhausted",
            "key-refused",
            "overloaded",
            "model-missing",
        ] {
            check_taken_over(backend, provider, scenario).await;
        }
    })
    .await;
}

async fn check_taken_over(backend: Backend, provider: &QueueProvider, scenario: &str) {
    let fixture = Fixture::start(backend, provider, 2, LONG).await;
    fixture.fakes[0].set(scenario.parse().unwrap());
    fixture.complete("a pier").await;
    assert!(!fixture.submissions(0).is_empty(), "{scenario}");
    assert_eq!(fixture.submissions(1).len(), 1, "{scenario}");
    fixture.close(PRICE).await;
}

/// The job itself failed: the gateway does not submit it to another channel.
async fn check_not_retried(backend: Backend, provider: &QueueProvider) {
    let fixture = Fixture::start(backend, provider, 2, LONG).await;
    fixture.fakes[0].set(Scenario::Fail);
    fixture.fail("a pier", "provider_error").await;
    assert_eq!(fixture.submissions(0).len(), 1);
    assert!(fixture.submissions(1).is_empty());
    fixture.close(0.0).await;
}

async fn failed_polls_are_retried(backend: Backend) {
    for_each(async |provider| {
        let fixture = Fixture::start(backend, provider, 1, LONG).await;
        let mut spent = 0.0;
        for failure in [
            "status=503@poll*2",
            "rate-limited=1@poll*1",
            "html-200@poll*1",
            "truncated-json@poll*1",
            "empty-body@poll*1",
            "reset-before-head@poll*2",
            "reset-mid-body@poll*1",
            "close-without-response@poll*1",
        ] {
            fixture
                .complete(&format!("a pier [[fake:{failure}]]"))
                .await;
            spent += PRICE;
            fixture.check_spent(spent).await;
        }
        assert_eq!(fixture.submissions(0).len(), 8, "none is submitted twice");
        fixture.close(spent).await;
    })
    .await;
}

async fn failed_result_downloads_are_retried_and_then_fail_the_task(backend: Backend) {
    for_each(async |provider| {
        let fixture = Fixture::start(backend, provider, 1, LONG).await;
        let failures = [
            ("status=404@file", 2),
            ("html-200@file", 1),
            ("reset-mid-body@file", 1),
        ];
        for (failure, times) in failures {
            let prompt = format!("a pier [[fake:{failure}*{times}]]");
            fixture.complete(&prompt).await;
        }
        let too_large = provider.too_large();
        let too_large = too_large.map(|bytes| format!("result-bytes={bytes}"));
        let never = failures.iter().map(|(failure, _)| *failure);
        let mut ids = Vec::new();
        for failure in never.chain(too_large.as_deref()) {
            let prompt = format!("a pier [[fake:{failure}]]");
            ids.push(fixture.submit(&prompt).await);
        }
        for id in &ids {
            let record = fixture.client.wait_for_end(id).await;
            fixture.check_failed(&record, "provider_error");
        }
        let submissions = fixture.submissions(0).len();
        assert_eq!(submissions, 3 + ids.len(), "no job is submitted twice");
        fixture.close(3.0 * PRICE).await;
    })
    .await;
}

async fn a_lost_response_is_not_submitted_again(backend: Backend) {
    for_each(async |provider| {
        let finds = provider.finds_by_external_id;
        let limit_s = if finds { LONG } else { SHORT };
        let fixture = Fixture::start(backend, provider, 2, limit_s).await;
        let lost = Scenario::LostResponse { hang: false };
        fixture.fakes[0].queue_at(Stage::Submit, lost);
        if finds {
            fixture.complete("a pier").await;
        } else {
            fixture.fail("a pier", "timeout").await;
        }
        assert_eq!(fixture.submissions(0).len(), 1);
        assert!(fixture.submissions(1).is_empty(), "nor elsewhere");
        fixture.close(if finds { PRICE } else { 0.0 }).await;
    })
    .await;
}

async fn a_search_that_fails_occupies_no_worker(backend: Backend) {
    for_each(async |provider| {
        if !provider.finds_by_external_id {
            return;
        }
        let mut fixture = Fixture::prepare(backend, provider, 1, LONG).await;
        fixture.gateway.set_env("TOLLGATE_WORKERS__CALLS", "1");
        fixture.gateway.start_server().await;
        let prompt = "a pier [[fake:reset-after-accept@submit]][[fake:status=503@poll]]";
        let lost = fixture.submit(prompt).await;
        until_true("a search", async || fixture.polls() > 0).await;
        fixture.complete("a bridge").await;
        let searches = fixture.polls();
        until_true("the next search", async || fixture.polls() > searches).await;
        assert_eq!(fixture.submissions(0).len(), 2, "none is submitted twice");
        fixture.client.cancel(&lost).await.expect(200);
        fixture.close(PRICE).await;
    })
    .await;
}
