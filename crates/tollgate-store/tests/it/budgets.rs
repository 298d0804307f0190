//! Budgets: what a user or key may spend in a day, week or month.

use tollgate_core::clock::DAY;
use tollgate_core::{Amount, Millis};
use tollgate_store::{
    AdminRejection, AdminRequest, Budget, BudgetOwner, BudgetPatch, BudgetPeriod, ChatEnd,
    ChatHold, ExceededBudget, NewBudget, NewChat, NewRefund, Rejection, Store, SubmitOutcome,
};

use crate::databases::{Db, on_both};
use crate::fixtures::{
    NOW, TestAccount, account, all, amount, assert_clean, cancel, chat, chat_end, claim_one, cost,
    delivered, finish, hold, node, reserve, settle, settle_hold, submit, task, task_at, tokens,
    unlimited_account, with_key,
};

on_both!(
    a_hard_budget_rejects_holds_beyond_it,
    a_soft_budget_counts_spending_and_rejects_nothing,
    a_hold_counts_on_the_day_it_is_settled,
    spending_before_a_budget_was_created_counts,
    refunds_reduce_the_spending_of_the_budget,
    concurrent_holds_on_two_nodes_never_exceed_a_budget,
    budgets_and_reservations_in_memory_never_exceed_a_budget,
    a_deleted_budget_limits_nothing,
    a_budget_needs_an_owner_that_exists,
    a_changed_sum_is_a_violation,
);

/// A daily budget of the account's user or key.
pub(crate) fn new_budget(
    account: &TestAccount,
    owner: BudgetOwner,
    text: &str,
    is_hard: bool,
) -> NewBudget {
    let owner_id = match owner {
        BudgetOwner::User => &account.user_id,
        BudgetOwner::Key => &account.key_id,
    };
    NewBudget {
        owner,
        owner_id: owner_id.clone(),
        amount: amount(text),
        period: BudgetPeriod::Day,
        is_hard,
    }
}

/// Creates a budget. Returns its id.
pub(crate) async fn create_budget(store: &Store, new: NewBudget, now: Millis) -> String {
    let created = store.create_budget(&AdminRequest::cli(now), new).await;
    let reply = created.unwrap().unwrap();
    reply.body["id"].as_str().unwrap().to_owned()
}

async fn budget(store: &Store, id: &str) -> Budget {
    store.budget(id).await.unwrap().unwrap()
}

/// The spent and the held amount, as text.
async fn sums(store: &Store, id: &str) -> [String; 2] {
    let budget = budget(store, id).await;
    [budget.spent, budget.held].map(|amount| amount.to_string())
}

fn midnight() -> Millis {
    NOW - NOW % DAY
}

fn exceeded(owner: BudgetOwner, of: &str, available: &str) -> Rejection {
    Rejection::BudgetExceeded(ExceededBudget {
        owner,
        period: BudgetPeriod::Day,
        amount: amount(of),
        available: amount(available),
        resets_at: midnight() + DAY,
    })
}

async fn a_hard_budget_rejects_holds_beyond_it(db: &Db) {
    let store = node(db).await;
    for (name, owner) in [("ann", BudgetOwner::User), ("bob", BudgetOwner::Key)] {
        let ann = unlimited_account(&store, name, None).await;
        let id = create_budget(&store, new_budget(&ann, owner, "1", true), NOW).await;
        assert!(store.key(&ann.key_id).await.unwrap().unwrap().needs_hold());
        let paid = chat(&ann, "1", "1");
        assert_eq!(
            hold(&store, &paid, tokens(500_000, 0)).await,
            Ok(amount("0.5"))
        );
        settle(&store, &paid, true, tokens(400_000, 0)).await;
        let first = submit(&store, task(&ann, 1, "0.3")).await;
        assert_eq!(sums(&store, &id).await, ["0.4", "0.3"]);
        let rejection = exceeded(owner, "1", "0.3");
        let rejected = store.submit_task(task(&ann, 1, "0.31")).await;
        assert_eq!(rejected, Ok(SubmitOutcome::Rejected(rejection)));
        let too_much = tokens(310_000, 0);
        assert_eq!(
            hold(&store, &chat(&ann, "1", "1"), too_much).await,
            Err(rejection)
        );
        let reserved = reserve(&store, &chat(&ann, "1", "1"), too_much).await;
        assert_eq!(reserved.map(drop), Err(rejection));
        let exact = chat(&ann, "1", "1");
        let held = reserve(&store, &exact, tokens(300_000, 0)).await.unwrap();
        assert_eq!(matches!(held, ChatHold::Stored), store.is_shared());
        let rejected = store.submit_task(task(&ann, 1, "0.01")).await;
        let rejection = exceeded(owner, "1", "0");
        assert_eq!(rejected, Ok(SubmitOutcome::Rejected(rejection)));
        // A cost beyond the hold also counts as spent.
        assert_eq!(
            settle_hold(&store, &exact, &held, tokens(350_000, 0)).await,
            cost("0.35")
        );
        assert_eq!(sums(&store, &id).await, ["0.75", "0.3"]);
        let first = store.task(&first).await.unwrap().unwrap();
        cancel(&store, &first, NOW).await;
        submit(&store, task(&ann, 1, "0.25")).await;
        assert_eq!(sums(&store, &id).await, ["0.75", "0.25"]);
        // A request that costs nothing is always allowed.
        submit(&store, task(&ann, 1, "0")).await;
    }
}

async fn a_soft_budget_counts_spending_and_rejects_nothing(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "9").await;
    let new = new_budget(&ann, BudgetOwner::User, "1", false);
    let id = create_budget(&store, new, NOW).await;
    let new = chat(&ann, "1", "1");
    let held = reserve(&store, &new, tokens(3_000_000, 0)).await.unwrap();
    settle_hold(&store, &new, &held, tokens(2_000_000, 0)).await;
    submit(&store, task(&ann, 1, "3")).await;
    assert_eq!(sums(&store, &id).await, ["2", "3"]);
}

async fn a_hold_counts_on_the_day_it_is_settled(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "9").await;
    let late = midnight() + DAY - 1_000;
    let new = new_budget(&ann, BudgetOwner::User, "1", true);
    let id = create_budget(&store, new, late).await;
    submit(&store, task_at(&ann, 1, "0.6", late)).await;
    let leased = claim_one(&store, late).await;
    let tomorrow = midnight() + DAY + 5;
    let paid = NewChat {
        opened_at: late,
        ..chat(&ann, "1", "1")
    };
    hold(&store, &paid, tokens(400_000, 0)).await.unwrap();
    let end = ChatEnd {
        ended_at: late + 10,
        ..chat_end(tokens(400_000, 0))
    };
    let settled = store.settle_chat(paid, &ChatHold::Stored, end).await;
    assert_eq!(settled, Ok(cost("0.4")));
    assert_eq!(sums(&store, &id).await, ["0.4", "0.6"]);
    // The amount spent today does not count tomorrow, but today's holds may.
    let rejected = store.submit_task(task_at(&ann, 1, "0.5", tomorrow)).await;
    let expected = Rejection::BudgetExceeded(ExceededBudget {
        owner: BudgetOwner::User,
        period: BudgetPeriod::Day,
        amount: amount("1"),
        available: amount("0.4"),
        resets_at: midnight() + 2 * DAY,
    });
    assert_eq!(rejected, Ok(SubmitOutcome::Rejected(expected)));
    finish(&store, &leased, delivered(1), tomorrow).await;
    let now = budget(&store, &id).await;
    assert_eq!(
        (now.spent, now.period_start),
        (amount("0.6"), midnight() + DAY)
    );
    // A node whose clock is behind settles a chat of the day before: its cost does not count for the current day.
    let behind = NewChat {
        opened_at: late,
        ..chat(&ann, "1", "1")
    };
    let end = ChatEnd {
        ended_at: late + 20,
        ..chat_end(tokens(1_000_000, 0))
    };
    let settled = store.settle_chat(behind, &ChatHold::None, end).await;
    assert_eq!(settled, Ok(cost("1")));
    assert_eq!(sums(&store, &id).await, ["0.6", "0"]);
    assert_eq!(
        budget(&store, &id).await.spent_at(tomorrow + DAY),
        Amount::ZERO
    );
}

async fn spending_before_a_budget_was_created_counts(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "9").await;
    let other = with_key(&store, "ann", None).await;
    for (account, units) in [(&ann, 300_000), (&other, 200_000)] {
        let new = chat(account, "1", "1");
        settle(&store, &new, false, tokens(units, 0)).await;
    }
    // A week ago, on a Monday: 2026-09-14.
    let long_ago = NewChat {
        opened_at: midnight() - 7 * DAY,
        ..chat(&ann, "1", "1")
    };
    let end = ChatEnd {
        ended_at: midnight() - 7 * DAY,
        ..chat_end(tokens(1_000_000, 0))
    };
    let settled = store.settle_chat(long_ago, &ChatHold::None, end).await;
    assert_eq!(settled, Ok(cost("1")));
    // Half of the usage is rolled up.
    store.roll_up_usage().await.unwrap();
    settle(&store, &chat(&ann, "1", "1"), false, tokens(10_000, 0)).await;
    let of_user = new_budget(&ann, BudgetOwner::User, "5", true);
    let of_user = create_budget(&store, of_user, NOW).await;
    assert_eq!(sums(&store, &of_user).await, ["0.51", "0"]);
    let of_key = new_budget(&ann, BudgetOwner::Key, "5", true);
    let of_key = create_budget(&store, of_key, NOW).await;
    assert_eq!(sums(&store, &of_key).await, ["0.31", "0"]);
    let patch = BudgetPatch {
        period: Some(BudgetPeriod::Month),
        amount: Some(amount("1.6")),
        is_hard: None,
    };
    let stored = budget(&store, &of_user).await;
    let request = AdminRequest::cli(NOW);
    let changed = store.update_budget(&request, &stored, Some(1), patch.clone());
    let reply = changed.await.unwrap().unwrap();
    assert_eq!(
        (reply.version, &reply.body["spent"]),
        (Some(2), &"1.51".into())
    );
    let stale = store.update_budget(&request, &stored, Some(1), patch.clone());
    let stale = stale.await.unwrap();
    assert!(
        matches!(stale, Err(AdminRejection::Stale { version: 2, .. })),
        "{stale:?}"
    );
    let rejected = hold(&store, &chat(&other, "1", "1"), tokens(100_000, 0)).await;
    let Err(Rejection::BudgetExceeded(exceeded)) = rejected else {
        panic!("{rejected:?}")
    };
    assert_eq!(exceeded.available, amount("0.09"));
}

async fn refunds_reduce_the_spending_of_the_budget(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "9").await;
    let new = new_budget(&ann, BudgetOwner::Key, "1", true);
    let id = create_budget(&store, new, NOW).await;
    let paid = chat(&ann, "1", "1");
    settle(&store, &paid, false, tokens(900_000, 0)).await;
    let refund = NewRefund {
        amount: Some(amount("0.5")),
        reason: "blurred".to_owned(),
        unit: None,
    };
    let request = AdminRequest::cli(NOW + 2);
    let charge = store.chat_charge(&paid.id).await.unwrap().unwrap();
    let refunded = store.admin_refund_chat(&request, charge, refund).await;
    refunded.unwrap().unwrap();
    assert_eq!(sums(&store, &id).await, ["0.4", "0"]);
    submit(&store, task(&ann, 1, "0.6")).await;
}

async fn concurrent_holds_on_two_nodes_never_exceed_a_budget(db: &Db) {
    let (store, other) = (node(db).await, db.open().await);
    let ann = unlimited_account(&store, "ann", None).await;
    let second = with_key(&store, "ann", None).await;
    let new = new_budget(&ann, BudgetOwner::User, "1.379", true);
    let id = create_budget(&store, new, NOW).await;
    let holds = (0..500).map(|i| {
        let store = [&store, &other][i % 2].clone();
        let account = [&ann, &second][i / 2 % 2].clone();
        async move {
            let new = chat(&account, "1", "1");
            if i % 5 == 0 {
                let submitted = store.submit_task(task(&account, 1, "0.01")).await;
                return submitted == Ok(SubmitOutcome::Accepted);
            }
            let held = hold(&store, &new, tokens(9_000, 1_000)).await.is_ok();
            if held && i % 3 == 0 {
                settle(&store, &new, true, tokens(10_000, 0)).await;
            }
            held
        }
    });
    let accepted = all(holds).await.into_iter().filter(|held| *held).count();
    assert_eq!(accepted, 137);
    let [spent, held] = sums(&store, &id).await.map(|text| amount(&text));
    assert!(spent > Amount::ZERO && held > Amount::ZERO);
    assert_eq!(spent + held, amount("1.37"));
}

async fn budgets_and_reservations_in_memory_never_exceed_a_budget(db: &Db) {
    let store = node(db).await;
    let ann = unlimited_account(&store, "ann", None).await;
    let new = new_budget(&ann, BudgetOwner::Key, "1.379", true);
    let id = create_budget(&store, new, NOW).await;
    let turns = (0..600).map(|i| {
        let (store, ann) = (store.clone(), ann.clone());
        async move {
            let new = chat(&ann, "1", "1");
            let held = match i % 4 {
                0 => hold(&store, &new, tokens(10_000, 0))
                    .await
                    .map(|_| ChatHold::Stored),
                _ => reserve(&store, &new, tokens(10_000, 0)).await,
            };
            let Ok(held) = held else { return false };
            settle_hold(&store, &new, &held, tokens(10_000, 0)).await;
            true
        }
    });
    let paid = all(turns).await.into_iter().filter(|paid| *paid).count();
    assert_eq!(paid, 137);
    assert_eq!(sums(&store, &id).await, ["1.37", "0"]);
}

async fn a_deleted_budget_limits_nothing(db: &Db) {
    let store = node(db).await;
    let ann = unlimited_account(&store, "ann", None).await;
    let first = new_budget(&ann, BudgetOwner::Key, "0", true);
    let first = create_budget(&store, first, NOW).await;
    let rejected = store.submit_task(task(&ann, 1, "0.01")).await;
    assert!(
        matches!(rejected, Ok(SubmitOutcome::Rejected(_))),
        "{rejected:?}"
    );
    let stored = budget(&store, &first).await;
    let request = AdminRequest::cli(NOW);
    let deleted = store.delete_budget(&request, &stored, Some(1));
    assert_eq!(deleted.await.unwrap().unwrap().status, 204);
    assert_eq!(store.budget(&first).await, Ok(None));
    submit(&store, task(&ann, 1, "0.01")).await;
    assert!(!store.key(&ann.key_id).await.unwrap().unwrap().needs_hold());
    // The budget does not limit writes in the transaction that deletes it either: writes that arrive while another one commits share a transaction.
    let bob = unlimited_account(&store, "bob", None).await;
    let second = new_budget(&ann, BudgetOwner::Key, "0", true);
    let second = create_budget(&store, second, NOW).await;
    let stored = budget(&store, &second).await;
    let (_, deleted, submitted) = tokio::join!(
        store.submit_task(task(&bob, 2, "0.01")),
        store.delete_budget(&request, &stored, Some(1)),
        store.submit_task(task(&ann, 2, "0.01")),
    );
    assert_eq!(deleted.unwrap().unwrap().status, 204);
    assert_eq!(submitted, Ok(SubmitOutcome::Accepted));
    for _ in 0..10 {
        let new = new_budget(&ann, BudgetOwner::Key, "1", false);
        create_budget(&store, new, NOW).await;
    }
    let eleventh = new_budget(&ann, BudgetOwner::Key, "1", false);
    let rejected = store.create_budget(&AdminRequest::cli(NOW), eleventh).await;
    let rejected = rejected.unwrap();
    assert!(
        matches!(
            rejected,
            Err(AdminRejection::Invalid {
                field: "key_id",
                ..
            })
        ),
        "{rejected:?}"
    );
}

async fn a_budget_needs_an_owner_that_exists(db: &Db) {
    let store = node(db).await;
    let nobody = TestAccount {
        name: "nobody".to_owned(),
        user_id: "user_0".to_owned(),
        key_id: "key_0".to_owned(),
    };
    for (owner, expected) in [(BudgetOwner::User, "user_id"), (BudgetOwner::Key, "key_id")] {
        let new = new_budget(&nobody, owner, "1", true);
        let rejected = store.create_budget(&AdminRequest::cli(NOW), new).await;
        let Err(AdminRejection::Invalid { field, .. }) = rejected.unwrap() else {
            panic!("a budget of nobody")
        };
        assert_eq!(field, expected);
    }
}

async fn a_changed_sum_is_a_violation(db: &Db) {
    let store = node(db).await;
    let ann = account(&store, "ann", "9").await;
    let new = new_budget(&ann, BudgetOwner::User, "1", true);
    create_budget(&store, new, NOW).await;
    settle(&store, &chat(&ann, "1", "1"), false, tokens(10, 0)).await;
    assert_clean(&store).await;
    for (change, undo, check) in [
        (
            "UPDATE budgets SET spent = spent + 1",
            "UPDATE budgets SET spent = spent - 1",
            "budgets",
        ),
        (
            "UPDATE users SET budgets = 0",
            "UPDATE users SET budgets = 1",
            "budget_owners",
        ),
    ] {
        db.raw(change).await;
        let found = store.audit().await.unwrap();
        assert_eq!(found.iter().map(|v| v.check).collect::<Vec<_>>(), [check]);
        db.raw(undo).await;
    }
}
