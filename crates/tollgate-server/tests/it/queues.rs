//! Work in the queues of providers: taken there once, followed over crashes, paid for once.

mod house;

use std::time::Duration;

use tollgate_fakes::{Scenario, Stage};

use crate::gate::{Backend, on_both, on_one, status, until};
use house::{HOUSES, House, OTHER_HOUSES, PRICE, PURSE, Site, key, keys_of_tasks};

on_both!(
    what_is_taken_is_followed_to_its_end,
    a_restart_goes_on_where_it_was,
    a_crash_with_a_ticket_loses_nothing,
    a_crash_before_the_ticket_submits_nothing_twice,
);
on_one!(
    cancellations_are_passed_on,
    time_limits_hold_and_are_passed_on,
    failures_cost_nothing,
    another_channel_takes_over,
    polls_may_fail,
    results_may_be_late_and_may_never_come,
    a_lost_answer_is_never_asked_for_again,
    every_other_queue_is_followed_and_paid_for,
);

const VARIABLE: &str = "TOLLGATE_CRASH_AT";
const KEY: &str = "the-one-order";
/// Longer than any test takes.
const LONG: u32 = 600;
/// How long a task may take whose end is that its time is over.
const SHORT: u32 = 4;
const PAUSE: Duration = Duration::from_millis(10);

/// Tells a story once in each house.
async fn in_each(story: impl AsyncFn(&'static House)) {
    for house in HOUSES {
        eprintln!("at {}", house.name());
        story(house).await;
    }
}

async fn what_is_taken_is_followed_to_its_end(backend: Backend) {
    in_each(async |house| followed(backend, house).await).await;
}

async fn every_other_queue_is_followed_and_paid_for(backend: Backend) {
    for house in OTHER_HOUSES {
        eprintln!("at {}", house.name());
        followed(backend, house).await;
        failing(backend, house).await;
        if house.fails_for_good {
            given_up(backend, house).await;
        } else {
            taken_over(backend, house, &Scenario::Fail).await;
        }
        taken_over(backend, house, &Scenario::QuotaExhausted).await;
        let (site, id) = crash(backend, house, "run.after_provider_job_id", LONG).await;
        site.check_made(&site.client.ended(&id).await).await;
        assert_eq!(site.submissions(0).len(), 1);
        site.check_purse(PRICE).await;
        site.close().await;
    }
}

async fn followed(backend: Backend, house: &'static House) {
    let site = Site::open(backend, house, 1, LONG).await;
    let id = site.order("a pier [[fake:polls=4]]").await;
    site.check_made(&site.client.ended(&id).await).await;
    assert_eq!(site.submissions(0).len(), 1);
    assert_eq!(
        site.polls(0),
        4 + usize::from(house.tells_apart),
        "asked until it was done, and then no more"
    );
    site.check_purse(PRICE).await;
    site.close().await;
}

async fn a_restart_goes_on_where_it_was(backend: Backend) {
    in_each(async |house| {
        let mut site = Site::open(backend, house, 1, LONG).await;
        let mut ids = Vec::new();
        for n in 0..3 {
            ids.push(site.order(&format!("pier {n} [[fake:polls=1000]]")).await);
        }
        let followed = async |site: &Site, more: usize| {
            let before: usize = site.fakes[0].polls().iter().map(|(_, at)| at.len()).sum();
            until("polls", async || {
                let polls = site.fakes[0].polls();
                let all: usize = polls.iter().map(|(_, at)| at.len()).sum();
                let each = polls.len() == 3 && polls.iter().all(|(_, at)| at.len() >= 2);
                (each && all >= before + more).then_some(())
            })
            .await;
        };
        followed(&site, 6).await;
        site.gate.kill().await;
        site.gate.start_server().await;
        followed(&site, 6).await;
        site.gate.restart().await;
        followed(&site, 6).await;
        for id in &ids {
            assert_eq!(status(&site.client.task(id).await), house.running);
        }

        let submissions = site.submissions(0);
        assert_eq!(submissions.len(), 3, "each was submitted once");
        let mut keys: Vec<Vec<String>> = submissions.iter().map(|one| vec![key(one)]).collect();
        keys.sort_unstable();
        let asked = keys_of_tasks(&site.fakes[0]);
        assert_eq!(asked, keys, "a task is its key's");
        for id in &ids {
            site.client.cancel(id).await.expect(200);
        }
        site.check_purse(0.0).await;
        site.close().await;
    })
    .await;
}

async fn a_crash_with_a_ticket_loses_nothing(backend: Backend) {
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
    in_each(async |house| {
        for point in points {
            let (site, id) = crash(backend, house, point, LONG).await;
            site.check_made(&site.client.ended(&id).await).await;
            assert_eq!(site.submissions(0).len(), 1, "{point}");
            assert_eq!(site.fakes[0].polls().len(), 1, "{point}");
            site.check_purse(PRICE).await;
            site.close().await;
        }
    })
    .await;
}

async fn a_crash_before_the_ticket_submits_nothing_twice(backend: Backend) {
    in_each(async |house| {
        for (point, submitted) in [("run.after_attempt", 0), ("run.after_start", 1)] {
            let limit_s = if house.finds { LONG } else { SHORT };
            let (site, id) = crash(backend, house, point, limit_s).await;
            let record = site.client.ended(&id).await;
            if house.finds {
                // It is looked for by our own id: gone on with if it is there, and begun if it is not.
                site.check_made(&record).await;
                assert_eq!(site.submissions(0).len(), 1, "{point}");
                site.check_purse(PRICE).await;
            } else {
                // Nobody can say whether the provider has it: the task waits for its deadline and costs nothing.
                site.check_failed(&record, "timeout");
                assert_eq!(site.submissions(0).len(), submitted, "{point}");
                site.check_purse(0.0).await;
            }
            site.close().await;
        }
    })
    .await;
}

/// Orders at a gateway that ends at a crash point, and starts it again; answers the task.
async fn crash(
    backend: Backend,
    house: &'static House,
    point: &str,
    limit_s: u32,
) -> (Site, String) {
    let mut site = Site::build(backend, house, 1, limit_s).await;
    site.gate.set_env(VARIABLE, point);
    assert!(site.gate.start_doomed().await, "{}", site.gate.last_words());
    let prompt = "a pier [[fake:polls=3]]";
    let order = site.try_order(prompt, KEY).await;
    while !site.gate.has_ended() {
        tokio::time::sleep(PAUSE).await;
    }
    site.gate.ended().await;
    site.gate.set_env(VARIABLE, "");
    site.gate.start_server().await;
    let again = site.try_order(prompt, KEY).await.expect("an answer");
    assert!(order.is_none_or(|id| id == again), "one order is one task");
    (site, again)
}

async fn cancellations_are_passed_on(backend: Backend) {
    in_each(async |house| {
        let site = Site::open(backend, house, 1, LONG).await;
        let id = site.order("a pier [[fake:polls=1000]]").await;
        until("a poll", async || (site.polls(0) > 0).then_some(())).await;
        assert_eq!(site.client.purse().await, (PURSE - PRICE, 0.0), "held");
        site.client.cancel(&id).await.expect(200);
        site.check_failed(&site.client.task(&id).await, "cancelled");
        site.called_off(0, 1).await;
        let polls = site.polls(0);
        site.check_purse(0.0).await;
        // Another task's whole life later nobody has asked for it again.
        let next = site.order("a bridge").await;
        site.check_made(&site.client.ended(&next).await).await;
        assert!(site.polls(0) <= polls + 1, "one may have been on its way");
        site.close().await;
    })
    .await;
}

async fn time_limits_hold_and_are_passed_on(backend: Backend) {
    in_each(async |house| {
        let site = Site::open(backend, house, 1, SHORT).await;
        let slow = site.order("a pier [[fake:polls=100000]]").await;
        let hangs = site.order("a bridge [[fake:hang@poll]]").await;
        for id in [slow, hangs] {
            let record = site.client.ended(&id).await;
            site.check_failed(&record, "timeout");
        }
        site.called_off(0, 2).await;
        assert_eq!(site.submissions(0).len(), 2);
        site.check_purse(0.0).await;
        site.close().await;
    })
    .await;
}

async fn failures_cost_nothing(backend: Backend) {
    in_each(async |house| failing(backend, house).await).await;
}

async fn failing(backend: Backend, house: &'static House) {
    let site = Site::open(backend, house, 1, LONG).await;
    for (prompt, code) in [
        ("[[fake:blocked]]", "moderated"),
        ("[[fake:content-filter]][[fake:polls=2]]", "moderated"),
        (&format!("[[fake:{}]]", house.refusal), "invalid_request"),
    ] {
        let id = site.order(prompt).await;
        site.check_failed(&site.client.ended(&id).await, code);
    }
    assert_eq!(site.submissions(0).len(), 3, "none was tried again");
    site.check_purse(0.0).await;
    site.close().await;
}

async fn another_channel_takes_over(backend: Backend) {
    in_each(async |house| {
        for broken in [
            Scenario::Fail,
            Scenario::QuotaExhausted,
            Scenario::KeyRefused { key: None },
            Scenario::Overloaded,
            Scenario::ModelMissing,
        ] {
            taken_over(backend, house, &broken).await;
        }
    })
    .await;
}

async fn taken_over(backend: Backend, house: &'static House, broken: &Scenario) {
    let site = Site::open(backend, house, 2, LONG).await;
    site.fakes[0].set(broken.clone());
    let id = site.order("a pier").await;
    site.check_made(&site.client.ended(&id).await).await;
    assert!(!site.submissions(0).is_empty(), "{broken:?}");
    assert_eq!(site.submissions(1).len(), 1, "{broken:?}");
    site.check_purse(PRICE).await;
    site.close().await;
}

/// The work itself failed: nobody else is asked for it.
async fn given_up(backend: Backend, house: &'static House) {
    let site = Site::open(backend, house, 2, LONG).await;
    site.fakes[0].set(Scenario::Fail);
    let id = site.order("a pier").await;
    site.check_failed(&site.client.ended(&id).await, "provider_error");
    assert_eq!(site.submissions(0).len(), 1);
    assert!(site.submissions(1).is_empty());
    site.check_purse(0.0).await;
    site.close().await;
}

async fn polls_may_fail(backend: Backend) {
    in_each(async |house| {
        let site = Site::open(backend, house, 1, LONG).await;
        let mut spent = 0.0;
        for broken in [
            "status=503@poll*2",
            "rate-limited=1@poll*1",
            "html-200@poll*1",
            "truncated-json@poll*1",
            "empty-body@poll*1",
            "reset-before-head@poll*2",
            "reset-mid-body@poll*1",
            "close-without-answer@poll*1",
        ] {
            let id = site.order(&format!("a pier [[fake:{broken}]]")).await;
            site.check_made(&site.client.ended(&id).await).await;
            spent += PRICE;
            site.check_purse(spent).await;
        }
        assert_eq!(site.submissions(0).len(), 8, "none was submitted twice");
        site.close().await;
    })
    .await;
}

async fn results_may_be_late_and_may_never_come(backend: Backend) {
    in_each(async |house| {
        let site = Site::open(backend, house, 1, LONG).await;
        let late = [
            "status=404@file*2",
            "html-200@file*1",
            "reset-mid-body@file*1",
        ];
        for broken in late {
            let id = site.order(&format!("a pier [[fake:{broken}]]")).await;
            site.check_made(&site.client.ended(&id).await).await;
        }
        let spent = PRICE * late.len() as f64;
        let never = ["status=404@file", "html-200@file", "reset-mid-body@file"];
        let mut ids = Vec::new();
        let too_large = house.too_large();
        let too_large = too_large.map(|bytes| format!("result-bytes={bytes}"));
        let never = never.into_iter().chain(too_large.as_deref());
        for broken in never {
            ids.push(site.order(&format!("a pier [[fake:{broken}]]")).await);
        }
        let orders = late.len() + ids.len();
        for id in ids {
            site.check_failed(&site.client.ended(&id).await, "provider_error");
        }
        assert_eq!(site.submissions(0).len(), orders, "no work is done twice");
        site.check_purse(spent).await;
        site.close().await;
    })
    .await;
}

async fn a_lost_answer_is_never_asked_for_again(backend: Backend) {
    in_each(async |house| {
        let limit_s = if house.finds { LONG } else { SHORT };
        let site = Site::open(backend, house, 2, limit_s).await;
        site.fakes[0].queue_at(Stage::Submit, Scenario::LostAnswer { hang: false });
        let id = site.order("a pier").await;
        let record = site.client.ended(&id).await;
        if house.finds {
            site.check_made(&record).await;
            site.check_purse(PRICE).await;
        } else {
            site.check_failed(&record, "timeout");
            site.check_purse(0.0).await;
        }
        assert_eq!(site.submissions(0).len(), 1);
        assert!(site.submissions(1).is_empty(), "nor elsewhere");
        site.close().await;
    })
    .await;
}
