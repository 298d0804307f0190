//! Holds, settlements, releases: exact, together or not at all.

use tollgate_core::{Amount, money};
use tollgate_store::{Cancelled, Charge, Ended, RateLimits, StoreError, Submitted};

use crate::db::{Db, on_both};
use crate::world::{
    NOW, amount, assert_clean, claim, claim_one, delivered, failed, finish, key_sums, no_balance,
    no_quota, payer, rich, submit, sums, task, with_key,
};

on_both!(
    all_of_it_is_paid_for,
    part_of_it_is_paid_for_and_the_rest_released,
    failure_costs_nothing,
    more_than_ordered_is_free,
    prices_are_rounded_half_up_once,
    what_costs_nothing_needs_no_balance,
    quota_and_balance_move_together,
    a_refusal_leaves_nothing_behind,
    prices_that_cannot_be_are_refused,
    the_unlimited_go_below_zero,
    a_poisoned_operation_fails_alone,
);

async fn all_of_it_is_paid_for(db: &Db) {
    let store = db.open().await;
    let ann = payer(&store, "ann", "1").await;
    let id = submit(&store, task(&ann, 3, "0.04")).await;
    assert_eq!(sums(&store, &ann).await, ["1", "0.12", "0"]);
    assert_eq!(key_sums(&store, &ann).await, ["0.12", "0"]);
    let leased = claim_one(&store, NOW).await;
    let cost = amount("0.12");
    let done = finish(&store, &leased, delivered(3), NOW + 1).await;
    assert_eq!(done, Ended::Done { cost });
    assert_eq!(sums(&store, &ann).await, ["0.88", "0", "0.12"]);
    assert_eq!(key_sums(&store, &ann).await, ["0", "0.12"]);
    assert_eq!(store.task(&id).await.unwrap().unwrap().cost, cost);
    assert_clean(&store).await;
}

async fn part_of_it_is_paid_for_and_the_rest_released(db: &Db) {
    let store = db.open().await;
    let ann = payer(&store, "ann", "1").await;
    for k in 1..=4 {
        submit(&store, task(&ann, 4, "0.01")).await;
        let leased = claim_one(&store, NOW).await;
        let cost = Amount::from_nanos(10_000_000 * k);
        let done = finish(&store, &leased, delivered(k.unsigned_abs()), NOW).await;
        assert_eq!(done, Ended::Done { cost });
    }
    assert_eq!(sums(&store, &ann).await, ["0.9", "0", "0.1"]);
    assert_eq!(key_sums(&store, &ann).await, ["0", "0.1"]);
    assert_clean(&store).await;
}

async fn failure_costs_nothing(db: &Db) {
    let store = db.open().await;
    let ann = payer(&store, "ann", "1").await;
    submit(&store, task(&ann, 2, "0.5")).await;
    assert_eq!(
        store.submit(task(&ann, 1, "0.1")).await,
        Ok(no_balance("0"))
    );
    let leased = claim_one(&store, NOW).await;
    let done = finish(&store, &leased, failed(), NOW).await;
    assert_eq!(done, Ended::Done { cost: Amount::ZERO });
    assert_eq!(sums(&store, &ann).await, ["1", "0", "0"]);
    submit(&store, task(&ann, 10, "0.1")).await;
    assert_clean(&store).await;
}

async fn more_than_ordered_is_free(db: &Db) {
    let store = db.open().await;
    let ann = payer(&store, "ann", "1").await;
    submit(&store, task(&ann, 2, "0.1")).await;
    let leased = claim_one(&store, NOW).await;
    let cost = amount("0.2");
    let done = finish(&store, &leased, delivered(5), NOW).await;
    assert_eq!(done, Ended::Done { cost });
    submit(&store, task(&ann, 2, "0.1")).await;
    let leased = claim_one(&store, NOW).await;
    let nothing = crate::world::finish_of(&leased, delivered(0), NOW);
    let refused = store.finish(nothing).await;
    assert!(
        matches!(refused, Err(StoreError::Invalid(_))),
        "{refused:?}"
    );
    assert_clean(&store).await;
}

async fn prices_are_rounded_half_up_once(db: &Db) {
    let store = db.open().await;
    let ann = payer(&store, "ann", "1").await;
    // (price in nanos, per, units asked for, held, units delivered, settled)
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
    assert_clean(&store).await;
}

async fn what_costs_nothing_needs_no_balance(db: &Db) {
    let store = db.open().await;
    let ann = payer(&store, "ann", "0").await;
    assert_eq!(
        store.submit(task(&ann, 1, "0.000000001")).await,
        Ok(no_balance("0"))
    );
    submit(&store, task(&ann, 4, "0")).await;
    let leased = claim_one(&store, NOW).await;
    finish(&store, &leased, delivered(4), NOW).await;
    assert_eq!(sums(&store, &ann).await, ["0", "0", "0"]);
    assert_clean(&store).await;
}

async fn quota_and_balance_move_together(db: &Db) {
    let store = db.open().await;
    let user = store
        .create_user("ann", false, amount("10"), RateLimits::default(), NOW)
        .await
        .unwrap();
    let small = with_key(&store, user.clone(), Some("1")).await;
    let large = with_key(&store, user, Some("100")).await;
    submit(&store, task(&small, 1, "0.7")).await;
    assert_eq!(
        store.submit(task(&small, 1, "0.4")).await,
        Ok(no_quota("0.3"))
    );
    assert_eq!(sums(&store, &small).await, ["10", "0.7", "0"]);
    assert_eq!(key_sums(&store, &small).await, ["0.7", "0"]);
    assert_eq!(
        store.submit(task(&large, 1, "9.4")).await,
        Ok(no_balance("9.3"))
    );
    assert_eq!(key_sums(&store, &large).await, ["0", "0"]);
    // What is spent counts against a quota for good, what is released does not.
    let leased = claim_one(&store, NOW).await;
    finish(&store, &leased, delivered(1), NOW).await;
    assert_eq!(key_sums(&store, &small).await, ["0", "0.7"]);
    assert_eq!(
        store.submit(task(&small, 1, "0.4")).await,
        Ok(no_quota("0.3"))
    );
    let id = submit(&store, task(&small, 3, "0.1")).await;
    let waiting = store.task(&id).await.unwrap().unwrap();
    assert_eq!(store.cancel(&waiting, NOW).await, Ok(Cancelled::Done));
    submit(&store, task(&small, 3, "0.1")).await;
    assert_eq!(sums(&store, &small).await, ["9.3", "0.3", "0.7"]);
    assert_clean(&store).await;
}

async fn a_refusal_leaves_nothing_behind(db: &Db) {
    let store = db.open().await;
    let ann = payer(&store, "ann", "1").await;
    let counts = "SELECT (SELECT COUNT(*) FROM tasks) + (SELECT COUNT(*) FROM charges)
                  + (SELECT COUNT(*) FROM ledger) + (SELECT COUNT(*) FROM idempotency)";
    let before = db.number(counts).await;
    let refused = crate::world::keyed(task(&ann, 2, "0.6"), "k", "f");
    assert_eq!(store.submit(refused.clone()).await, Ok(no_balance("1")));
    assert_eq!(db.number(counts).await, before);
    assert_eq!(store.task(&refused.id).await.map(|t| t.is_none()), Ok(true));
    assert_eq!(sums(&store, &ann).await, ["1", "0", "0"]);
    assert_clean(&store).await;
}

async fn prices_that_cannot_be_are_refused(db: &Db) {
    let store = db.open().await;
    let ann = rich(&store, "ann", None).await;
    for (price, units) in [
        (Amount::from_nanos(-1), 1),
        (money::MAX, 2),
        (Amount::from_nanos(i64::MAX), 1),
        (amount("1"), u64::MAX),
    ] {
        let mut new = task(&ann, units, "0");
        new.charge.price = price;
        let refused = store.submit(new).await;
        assert!(
            matches!(refused, Err(StoreError::Invalid(_))),
            "{refused:?}"
        );
    }
    assert_clean(&store).await;
}

async fn the_unlimited_go_below_zero(db: &Db) {
    let store = db.open().await;
    let ann = rich(&store, "ann", Some("5")).await;
    submit(&store, task(&ann, 4, "1")).await;
    assert_eq!(store.submit(task(&ann, 2, "1")).await, Ok(no_quota("1")));
    let leased = claim_one(&store, NOW).await;
    finish(&store, &leased, delivered(3), NOW).await;
    assert_eq!(sums(&store, &ann).await, ["-3", "0", "3"]);
    assert_clean(&store).await;
}

/// Holds of an unlimited user that no number can add up: the last ones are refused by arithmetic itself, in the
/// middle of a batch whose other operations are somebody else's.
async fn a_poisoned_operation_fails_alone(db: &Db) {
    let store = db.open().await;
    let ann = rich(&store, "ann", None).await;
    let bob = payer(&store, "bob", "100").await;
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
        running.spawn(async move { (poisoned, store.submit(new).await) });
    }
    for (poisoned, result) in running.join_all().await {
        if poisoned {
            assert!(matches!(result, Err(StoreError::Broken(_))), "{result:?}");
        } else {
            assert_eq!(result, Ok(Submitted::Accepted));
        }
    }
    assert_eq!(sums(&store, &bob).await, ["100", "57", "0"]);
    assert_eq!(sums(&store, &ann).await, ["0", "9000000000", "0"]);
    assert_eq!(claim(&store, NOW).await.len(), 66);
    assert_clean(&store).await;
}
