//! Holds, settlements and releases of tasks: exact, together or not at all.

use tollgate_core::{Amount, money};
use tollgate_store::{Charge, FinishOutcome, RateLimits, StoreError, SubmitOutcome};

use crate::databases::{Db, on_both};
use crate::fixtures::{
    NOW, account, amount, assert_invalid, cancel, claim_one, claim_tasks, delivered, failed,
    finish, insufficient_balance, insufficient_quota, key_sums, submit, task, unlimited_account,
    user_sums, with_key,
};

on_both!(
    a_full_delivery_settles_the_full_hold,
    a_partial_delivery_releases_the_rest,
    a_failed_task_costs_nothing,
    units_beyond_the_order_are_free,
    prices_are_rounded_half_up_once,
    a_free_task_needs_no_balance,
    quota_and_balance_are_both_limits,
    a_rejected_submission_writes_nothing,
    prices_out_of_range_are_invalid,
    an_unlimited_balance_may_become_negative,
    an_operation_that_overflows_does_not_fail_its_batch,
);

async fn a_full_delivery_settles_the_full_hold(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "1").await;
    let id = submit(&store, task(&ann, 3, "0.04")).await;
    assert_eq!(user_sums(&store, &ann).await, ["1", "0.12", "0"]);
    assert_eq!(key_sums(&store, &ann).await, ["0.12", "0"]);
    let leased = claim_one(&store, NOW).await;
    let cost = amount("0.12");
    let outcome = finish(&store, &leased, delivered(3), NOW + 1).await;
    assert_eq!(outcome, FinishOutcome::Finished { cost });
    assert_eq!(user_sums(&store, &ann).await, ["0.88", "0", "0.12"]);
    assert_eq!(key_sums(&store, &ann).await, ["0", "0.12"]);
    assert_eq!(store.task(&id).await.unwrap().unwrap().cost, cost);
}

async fn a_partial_delivery_releases_the_rest(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "1").await;
    for k in 1..=4 {
        submit(&store, task(&ann, 4, "0.01")).await;
        let leased = claim_one(&store, NOW).await;
        let cost = Amount::from_nanos(10_000_000 * k);
        let outcome = finish(&store, &leased, delivered(k.unsigned_abs()), NOW).await;
        assert_eq!(outcome, FinishOutcome::Finished { cost });
    }
    assert_eq!(user_sums(&store, &ann).await, ["0.9", "0", "0.1"]);
    assert_eq!(key_sums(&store, &ann).await, ["0", "0.1"]);
}

async fn a_failed_task_costs_nothing(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "1").await;
    submit(&store, task(&ann, 2, "0.5")).await;
    assert_eq!(
        store.submit_task(task(&ann, 1, "0.1")).await,
        Ok(insufficient_balance("0"))
    );
    let leased = claim_one(&store, NOW).await;
    let outcome = finish(&store, &leased, failed(), NOW).await;
    assert_eq!(outcome, FinishOutcome::Finished { cost: Amount::ZERO });
    assert_eq!(user_sums(&store, &ann).await, ["1", "0", "0"]);
    submit(&store, task(&ann, 10, "0.1")).await;
}

async fn units_beyond_the_order_are_free(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "1").await;
    submit(&store, task(&ann, 2, "0.1")).await;
    let leased = claim_one(&store, NOW).await;
    let cost = amount("0.2");
    let outcome = finish(&store, &leased, delivered(5), NOW).await;
    assert_eq!(outcome, FinishOutcome::Finished { cost });
    submit(&store, task(&ann, 2, "0.1")).await;
    let leased = claim_one(&store, NOW).await;
    let nothing = crate::fixtures::task_finish(&leased, delivered(0), NOW);
    let rejected = store.finish_task(nothing).await;
    assert_invalid(&rejected);
}

async fn prices_are_rounded_half_up_once(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "1").await;
    // (price in nanos, per, units ordered, held, units delivered, settled)
    for (price, per, units, held, delivered_units, settled) in [
        (1, 2, 3, 2, 1, 1),
        (1, 3, 1, 0, 1, 0),
        (1, 3, 2, 1, 1, 0),
        (1_250_000_000, 1_000_000, 7, 8_750, 3, 3_750),
        (5, 1000, 999, 5, 100, 1),
        (0, 1, 4, 0, 2, 0),
    ] {
        let mut new = task(&ann, units, "0");
        let price = Amount::from_nanos(price);
        new.charge = Charge { price, per, units };
        let before = store.user(&ann.user_id).await.unwrap().unwrap();
        submit(&store, new).await;
        let holding = store.user(&ann.user_id).await.unwrap().unwrap();
        assert_eq!(
            holding.held,
            Amount::from_nanos(held),
            "{price} {per} {units}"
        );
        let leased = claim_one(&store, NOW).await;
        finish(&store, &leased, delivered(delivered_units), NOW).await;
        let after = store.user(&ann.user_id).await.unwrap().unwrap();
        assert_eq!(after.held, Amount::ZERO);
        assert_eq!(before.balance - after.balance, Amount::from_nanos(settled));
    }
}

async fn a_free_task_needs_no_balance(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "0").await;
    assert_eq!(
        store.submit_task(task(&ann, 1, "0.000000001")).await,
        Ok(insufficient_balance("0"))
    );
    submit(&store, task(&ann, 4, "0")).await;
    let leased = claim_one(&store, NOW).await;
    finish(&store, &leased, delivered(4), NOW).await;
    assert_eq!(user_sums(&store, &ann).await, ["0", "0", "0"]);
}

async fn quota_and_balance_are_both_limits(db: &Db) {
    let store = db.open().await;
    let user = store
        .create_user("ann", false, amount("10"), RateLimits::default(), NOW)
        .await
        .unwrap();
    let small = with_key(&store, user.clone(), Some("1")).await;
    let large = with_key(&store, user, Some("100")).await;
    submit(&store, task(&small, 1, "0.7")).await;
    assert_eq!(
        store.submit_task(task(&small, 1, "0.4")).await,
        Ok(insufficient_quota("0.3"))
    );
    assert_eq!(user_sums(&store, &small).await, ["10", "0.7", "0"]);
    assert_eq!(key_sums(&store, &small).await, ["0.7", "0"]);
    assert_eq!(
        store.submit_task(task(&large, 1, "9.4")).await,
        Ok(insufficient_balance("9.3"))
    );
    assert_eq!(key_sums(&store, &large).await, ["0", "0"]);
    // What is spent counts against a quota for good, what is released does not.
    let leased = claim_one(&store, NOW).await;
    finish(&store, &leased, delivered(1), NOW).await;
    assert_eq!(key_sums(&store, &small).await, ["0", "0.7"]);
    assert_eq!(
        store.submit_task(task(&small, 1, "0.4")).await,
        Ok(insufficient_quota("0.3"))
    );
    let id = submit(&store, task(&small, 3, "0.1")).await;
    let waiting = store.task(&id).await.unwrap().unwrap();
    cancel(&store, &waiting, NOW).await;
    submit(&store, task(&small, 3, "0.1")).await;
    assert_eq!(user_sums(&store, &small).await, ["9.3", "0.3", "0.7"]);
}

async fn a_rejected_submission_writes_nothing(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "1").await;
    let counts = "SELECT (SELECT COUNT(*) FROM tasks) + (SELECT COUNT(*) FROM charges)
                  + (SELECT COUNT(*) FROM ledger) + (SELECT COUNT(*) FROM idempotency)";
    let before = db.number(counts).await;
    let rejected = crate::fixtures::with_idempotency_key(task(&ann, 2, "0.6"), "k", "f");
    assert_eq!(
        store.submit_task(rejected.clone()).await,
        Ok(insufficient_balance("1"))
    );
    assert_eq!(db.number(counts).await, before);
    assert_eq!(
        store.task(&rejected.id).await.map(|t| t.is_none()),
        Ok(true)
    );
    assert_eq!(user_sums(&store, &ann).await, ["1", "0", "0"]);
}

async fn prices_out_of_range_are_invalid(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    for (price, units) in [
        (Amount::from_nanos(-1), 1),
        (money::MAX, 2),
        (Amount::from_nanos(i64::MAX), 1),
        (amount("1"), u64::MAX),
    ] {
        let mut new = task(&ann, units, "0");
        new.charge.price = price;
        let rejected = store.submit_task(new).await;
        assert_invalid(&rejected);
    }
}

async fn an_unlimited_balance_may_become_negative(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", Some("5")).await;
    submit(&store, task(&ann, 4, "1")).await;
    assert_eq!(
        store.submit_task(task(&ann, 2, "1")).await,
        Ok(insufficient_quota("1"))
    );
    let leased = claim_one(&store, NOW).await;
    finish(&store, &leased, delivered(3), NOW).await;
    assert_eq!(user_sums(&store, &ann).await, ["-3", "0", "3"]);
}

/// Holds of an unlimited user that no number can add up: the last ones are rejected by arithmetic itself, in the
/// middle of a batch whose other operations are somebody else's.
async fn an_operation_that_overflows_does_not_fail_its_batch(db: &Db) {
    let store = db.open().await;
    let ann = unlimited_account(&store, "ann", None).await;
    let bob = account(&store, "bob", "100").await;
    for _ in 0..9 {
        submit(&store, task(&ann, 1, "1000000000")).await;
    }
    let mut running = tokio::task::JoinSet::new();
    for i in 0..60 {
        let poisoned = i % 20 == 7;
        let new = if poisoned {
            task(&ann, 1, "1000000000")
        } else {
            task(&bob, 1, "1")
        };
        let store = store.clone();
        running.spawn(async move { (poisoned, store.submit_task(new).await) });
    }
    for (poisoned, result) in running.join_all().await {
        if poisoned {
            assert!(matches!(result, Err(StoreError::Broken(_))), "{result:?}");
        } else {
            assert_eq!(result, Ok(SubmitOutcome::Accepted));
        }
    }
    assert_eq!(user_sums(&store, &bob).await, ["100", "57", "0"]);
    assert_eq!(user_sums(&store, &ann).await, ["0", "9000000000", "0"]);
    assert_eq!(claim_tasks(&store, NOW).await.len(), 66);
}
