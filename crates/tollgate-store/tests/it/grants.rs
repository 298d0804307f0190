//! Grants: money that nodes take out of a balance in advance for their chats. Only on PostgreSQL: a process that uses the database alone has none.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tollgate_core::{Amount, Millis};
use tollgate_store::{
    AdminRequest, BudgetOwner, ChatHold, Rejection, SettleOutcome, Store, SubmitOutcome,
};

use crate::budgets::new_budget;
use crate::databases::{Db, on_postgres};
use crate::fixtures::{
    NODE, NOW, TestAccount, account, all, amount, assert_clean, cancel, chat, cost, key_sums,
    reserve, set_quota, settle_hold, submit, task, tokens, user_sums, with_key,
};
use crate::proxy::Proxy;

macro_rules! on_postgres_only {
    ($($test:ident),+ $(,)?) => { $(
        mod $test {
            #[test]
            fn postgres() {
                super::on_postgres(super::$test);
            }
        }
    )+ };
}

on_postgres_only!(
    a_busy_key_is_served_from_a_grant,
    a_cost_beyond_the_hold_is_covered_by_the_free_part_of_the_grant,
    a_request_can_use_the_amounts_in_grants_of_other_nodes,
    a_quota_limits_grants,
    grants_of_a_dead_node_are_released,
    a_suspended_node_uses_none_of_its_grants,
    an_idle_grant_is_closed,
);

mod nodes_with_grants_never_overdraw {
    #[test]
    fn postgres() {
        crate::lost_commits::run_with_proxy(super::nodes_with_grants_never_overdraw);
    }
}

mod a_grant_is_consistent_after_lost_commits {
    #[test]
    fn postgres() {
        crate::lost_commits::run_with_proxy(super::a_grant_is_consistent_after_lost_commits);
    }
}

const LEASE: Millis = 30_000;

fn allow(store: &Store, node: &str) {
    store.allow_grants(node, Instant::now(), NOW, LEASE);
}

/// Opens a node that may use grants.
async fn node(db: &Db, name: &str) -> Store {
    let store = db.open().await;
    store.heartbeat(name, NOW + LEASE).await.unwrap();
    allow(&store, name);
    store
}

/// Reserves 0.01 for a new chat.
async fn reserve_cent(store: &Store, ann: &TestAccount) -> (tollgate_store::NewChat, ChatHold) {
    let new = chat(ann, "1", "1");
    let held = reserve(store, &new, tokens(10_000, 0)).await;
    (new, held.unwrap())
}

/// Holds chats of 0.01 until one gets a grant: the second one does, unless the machine pauses. The chats before it are settled at no cost.
async fn reserve_from_grant(
    store: &Store,
    ann: &TestAccount,
) -> (tollgate_store::NewChat, ChatHold) {
    for _ in 0..100 {
        let (new, hold) = reserve_cent(store, ann).await;
        if matches!(hold, ChatHold::Granted(_)) {
            return (new, hold);
        }
        settle_hold(store, &new, &hold, tokens(0, 0)).await;
    }
    panic!("no chat gets a grant");
}

/// The sum of the nodes' grants, and their number.
async fn granted(db: &Db) -> (Amount, i64) {
    let sum = "SELECT CAST(COALESCE(SUM(amount), 0) AS BIGINT) FROM grants";
    let count = db.number("SELECT COUNT(*) FROM grants").await;
    (Amount::from_nanos(db.number(sum).await), count)
}

/// The amount that the rows of users hold beside grants. Read in one statement, because a grant may be raised at any time.
async fn held_beside_grants(db: &Db) -> i64 {
    let difference =
        "SELECT CAST((SELECT SUM(held) FROM users) - (SELECT SUM(amount) FROM grants) AS BIGINT)";
    db.number(difference).await
}

async fn held_in_rows(db: &Db) -> Amount {
    Amount::from_nanos(
        db.number("SELECT CAST(SUM(held) AS BIGINT) FROM users")
            .await,
    )
}

async fn a_busy_key_is_served_from_a_grant(db: &Db) {
    let store = node(db, NODE).await;
    let ann = account(&store, "ann", "9").await;
    // A key with few chats gets no grant.
    let (new, first) = reserve_cent(&store, &ann).await;
    assert!(matches!(first, ChatHold::Stored));
    let settled = settle_hold(&store, &new, &first, tokens(0, 0)).await;
    assert_eq!(settled, cost("0"));
    drop(reserve_from_grant(&store, &ann).await);
    let holds = all((0..20).map(|_| {
        let (store, ann) = (store.clone(), ann.clone());
        async move { reserve_cent(&store, &ann).await }
    }))
    .await;
    let is_granted = |hold: &ChatHold| matches!(hold, ChatHold::Granted(_));
    assert!(holds.iter().all(|(_, hold)| is_granted(hold)));
    let open = "SELECT COUNT(*) FROM chats WHERE node IS NOT NULL";
    assert_eq!(db.number(open).await, 0);
    // The rows hold the complete grant; the amounts that users see include only what chats of this node hold.
    let (sum, count) = granted(db).await;
    assert!(sum >= amount("0.2") && count == 1, "{sum} {count}");
    assert_eq!(held_beside_grants(db).await, 0);
    assert_eq!(user_sums(&store, &ann).await, ["9", "0", "0"]);
    let reserved = store.reserved_amounts(&ann.user_id, &ann.key_id);
    assert_eq!(reserved, [amount("0.2"); 2]);
    assert_clean(&store).await;
    for (new, hold) in &holds[..10] {
        let settled = settle_hold(&store, new, hold, tokens(1_000, 0)).await;
        assert_eq!(settled, cost("0.001"));
        // A second call returns the first outcome.
        let again = settle_hold(&store, new, hold, tokens(2_000, 0)).await;
        assert_eq!(again, cost("0.001"));
    }
    assert_eq!(user_sums(&store, &ann).await, ["8.99", "0", "0.01"]);
    assert_eq!(key_sums(&store, &ann).await, ["0", "0.01"]);
    assert_eq!(held_beside_grants(db).await, 0);
    drop(holds);
    let reserved = store.reserved_amounts(&ann.user_id, &ann.key_id);
    assert_eq!(reserved, [Amount::ZERO; 2]);
    // What a new budget shows as held does not include the grant.
    let new = new_budget(&ann, BudgetOwner::Key, "9", false);
    let budget = store.create_budget(&AdminRequest::cli(NOW), new).await;
    assert_eq!(budget.unwrap().unwrap().body["held"], "0");
    store.return_all_grants(NOW).await.unwrap();
    assert_eq!(granted(db).await, (Amount::ZERO, 0));
    assert_eq!(held_in_rows(db).await, Amount::ZERO);
}

async fn a_cost_beyond_the_hold_is_covered_by_the_free_part_of_the_grant(db: &Db) {
    let store = node(db, NODE).await;
    let ann = account(&store, "ann", "9").await;
    let (new, hold) = reserve_from_grant(&store, &ann).await;
    let before = granted(db).await.0;
    let settled = settle_hold(&store, &new, &hold, tokens(15_000, 0)).await;
    assert_eq!(settled, cost("0.015"));
    assert_eq!(granted(db).await.0, before - amount("0.015"));
    // A cost beyond the grant is taken from the balance, and what the balance does not cover is a debt.
    let (new, hold) = reserve_from_grant(&store, &ann).await;
    let settled = settle_hold(&store, &new, &hold, tokens(9_000_000, 0)).await;
    let SettleOutcome::SettledInDebt { cost, debt } = settled else {
        panic!("{settled:?}")
    };
    assert_eq!(cost, amount("9"));
    assert!(debt >= amount("0.015"), "{debt}");
    assert_clean(&store).await;
    drop(hold);
    store.return_all_grants(NOW).await.unwrap();
    assert_eq!(user_sums(&store, &ann).await, ["-0.015", "0", "9.015"]);
}

/// Makes a node maintain its grants until the flag is cleared.
fn keep_grants(store: &Store) -> Arc<AtomicBool> {
    let is_running = Arc::new(AtomicBool::new(true));
    let (store, running) = (store.clone(), Arc::clone(&is_running));
    tokio::spawn(async move {
        while running.load(Ordering::Relaxed) {
            tokio::time::sleep(Duration::from_millis(20)).await;
            store.return_unused_grants(NOW).await.unwrap();
        }
    });
    is_running
}

async fn a_request_can_use_the_amounts_in_grants_of_other_nodes(db: &Db) {
    let (one, two) = (node(db, NODE).await, node(db, "node_2").await);
    let ann = account(&one, "ann", "1").await;
    for store in [&one, &two] {
        drop(reserve_from_grant(store, &ann).await);
    }
    assert_eq!(granted(db).await.1, 2);
    let running = [keep_grants(&one), keep_grants(&two)];
    // The task needs the complete balance, and grants of both nodes have a part of it.
    let all_of_it = one.submit_task(task(&ann, 1, "1")).await;
    assert_eq!(all_of_it, Ok(SubmitOutcome::Accepted));
    assert_eq!(granted(db).await, (Amount::ZERO, 0));
    // Now the balance is 0, and the rejection is immediate, because no node has a grant.
    let available = Amount::ZERO;
    let rejection = Rejection::InsufficientBalance { available };
    let new = chat(&ann, "1", "1");
    let rejected = reserve(&two, &new, tokens(1, 0)).await;
    assert_eq!(rejected.map(drop), Err(rejection));
    for running in running {
        running.store(false, Ordering::Relaxed);
    }
    // A debit also makes the node return its grant.
    let bob = account(&one, "bob", "1").await;
    drop(reserve_from_grant(&one, &bob).await);
    assert_eq!(granted(db).await.1, 1);
    one.credit_user("bob", amount("-1"), None, NOW)
        .await
        .unwrap();
    assert_eq!(user_sums(&one, &bob).await, ["0", "0", "0"]);
}

async fn a_quota_limits_grants(db: &Db) {
    let store = node(db, NODE).await;
    let ann = account(&store, "ann", "9").await;
    let small = with_key(&store, &ann.name, Some("0.1")).await;
    let mut held = Vec::new();
    let mut rejected = 0;
    for _ in 0..15 {
        let new = chat(&small, "1", "1");
        match reserve(&store, &new, tokens(10_000, 0)).await {
            Ok(hold) => held.push(hold),
            Err(Rejection::InsufficientQuota { .. }) => rejected += 1,
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!((held.len(), rejected), (10, 5));
    // The quota cannot be set below what chats have reserved from grants.
    assert!(set_quota(&store, &small, "0.05").await.is_err());
    set_quota(&store, &small, "0.1").await.unwrap();
    assert_clean(&store).await;
}

async fn grants_of_a_dead_node_are_released(db: &Db) {
    let (dead, other) = (node(db, NODE).await, node(db, "other").await);
    let ann = account(&other, "ann", "1").await;
    let (new, hold) = reserve_from_grant(&dead, &ann).await;
    let (late, late_hold) = reserve_from_grant(&dead, &ann).await;
    let too_early = other
        .release_orphaned_grants(NOW + LEASE - 1, "other")
        .await;
    assert_eq!(too_early, Ok(0));
    let released = other.release_orphaned_grants(NOW + LEASE, "other").await;
    assert_eq!(released, Ok(1));
    assert_eq!(user_sums(&other, &ann).await, ["1", "0", "0"]);
    assert_eq!(granted(db).await, (Amount::ZERO, 0));
    // The node was not dead but paused: what it delivered is paid from the available balance, and the remaining cost is a debt.
    let settled = settle_hold(&dead, &new, &hold, tokens(10_000, 0)).await;
    assert_eq!(settled, cost("0.01"));
    submit(&other, task(&ann, 1, "0.985")).await;
    let settled = settle_hold(&dead, &late, &late_hold, tokens(10_000, 0)).await;
    let debt = SettleOutcome::SettledInDebt {
        cost: amount("0.01"),
        debt: amount("0.005"),
    };
    assert_eq!(settled, debt);
    assert_clean(&other).await;
}

async fn a_suspended_node_uses_none_of_its_grants(db: &Db) {
    let store = node(db, NODE).await;
    let ann = account(&store, "ann", "9").await;
    let (_, hold) = reserve_from_grant(&store, &ann).await;
    let is_granted = async || {
        let (_, hold) = reserve_cent(&store, &ann).await;
        matches!(hold, ChatHold::Granted(_))
    };
    // Half the lease has passed since the heartbeat, by the wall clock or by the monotonic clock.
    let now = Instant::now();
    store.allow_grants(NODE, now, NOW - LEASE / 2, LEASE);
    assert!(!is_granted().await);
    let half = Duration::from_millis(LEASE.unsigned_abs() / 2);
    store.allow_grants(NODE, now.checked_sub(half).unwrap(), NOW, LEASE);
    assert!(!is_granted().await);
    allow(&store, NODE);
    drop(reserve_from_grant(&store, &ann).await);
    // After a longer gap other nodes may have released the node's grants: it opens another grant.
    let before = db.raw("SELECT id FROM grants").await;
    store.allow_grants(NODE, now.checked_sub(2 * half).unwrap(), NOW, LEASE);
    allow(&store, NODE);
    drop(reserve_from_grant(&store, &ann).await);
    let after = db.raw("SELECT id FROM grants ORDER BY opened_at").await;
    assert_eq!(after.len(), 2);
    assert!(after.contains(&before[0]));
    drop(hold);
    store.return_unused_grants(NOW).await.unwrap();
    assert!(!db.raw("SELECT id FROM grants").await.contains(&before[0]));
}

async fn an_idle_grant_is_closed(db: &Db) {
    let store = node(db, NODE).await;
    let ann = account(&store, "ann", "9").await;
    drop(reserve_from_grant(&store, &ann).await);
    let until = Instant::now() + Duration::from_secs(30);
    while granted(db).await.1 > 0 {
        assert!(Instant::now() < until, "the grant is never closed");
        store.return_unused_grants(NOW).await.unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(held_in_rows(db).await, Amount::ZERO);
}

async fn a_grant_is_consistent_after_lost_commits(db: &Db, proxy: &Proxy, store: &Store) {
    store.heartbeat(NODE, NOW + LEASE).await.unwrap();
    allow(store, NODE);
    let ann = account(store, "ann", "50").await;
    let mut paid = Amount::ZERO;
    for turn in 0..60 {
        // The lost commit is one of a hold, an opening, a raise, a settlement, or a return.
        if turn % 3 == 0 {
            proxy.lose_next_commit();
        }
        let (new, hold) = reserve_cent(store, &ann).await;
        if turn % 7 == 6 {
            drop(hold);
        } else {
            let settled = settle_hold(store, &new, &hold, tokens(4_000, 0)).await;
            assert_eq!(settled, cost("0.004"));
            paid += amount("0.004");
        }
        if turn % 11 == 10 {
            drop(store.return_all_grants(NOW).await);
        }
        assert_clean(store).await;
    }
    while granted(db).await.1 > 0 {
        drop(store.return_all_grants(NOW).await);
    }
    let user = store.user(&ann.user_id).await.unwrap().unwrap();
    assert_eq!(user.used, paid);
    // Stored holds of chats that never ended.
    let open = "SELECT CAST(COALESCE(SUM(held), 0) AS BIGINT) FROM chats WHERE node IS NOT NULL";
    assert_eq!(held_in_rows(db).await.nanos(), db.number(open).await);
}

/// Three nodes, one of which loses replies to commits, spend a complete balance on chats and tasks. The second node pauses now and then, while others
/// release its grants.
async fn nodes_with_grants_never_overdraw(db: &Db, proxy: &Proxy, first: &Store) {
    first.heartbeat(NODE, NOW + LEASE).await.unwrap();
    allow(first, NODE);
    let nodes = [
        first.clone(),
        node(db, "node_2").await,
        node(db, "node_3").await,
    ];
    let ann = account(first, "ann", "4").await;
    let bob = with_key(first, "ann", Some("1")).await;
    let running: Vec<_> = nodes.iter().map(keep_grants).collect();
    let callers = (0..18).map(|caller| {
        let (store, ann) = (nodes[caller % 3].clone(), ann.clone());
        let account = if caller % 6 > 3 { bob.clone() } else { ann };
        async move {
            let mut paid = Amount::ZERO;
            for turn in 0..40 {
                let choice = (caller * 7 + turn * 13) % 20;
                if choice == 0 {
                    let new = task(&account, 1, "0.05");
                    let id = new.id.clone();
                    if store.submit_task(new).await == Ok(SubmitOutcome::Accepted) {
                        let task = store.task(&id).await.unwrap().unwrap();
                        cancel(&store, &task, NOW).await;
                    }
                    continue;
                }
                let new = chat(&account, "1", "1");
                let Ok(hold) = reserve(&store, &new, tokens(10_000, 0)).await else {
                    continue;
                };
                if choice == 1 && !matches!(hold, ChatHold::Stored) {
                    continue;
                }
                let units = 500 * (choice as u64 + 1);
                match settle_hold(&store, &new, &hold, tokens(units, 0)).await {
                    SettleOutcome::Settled { cost } => paid += cost,
                    other => panic!("a chat within its hold: {other:?}"),
                }
            }
            paid
        }
    });
    let faults = {
        let sleeper = nodes[1].clone();
        async move {
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_millis(60)).await;
                if !proxy.has_commit_to_lose() {
                    proxy.lose_next_commit();
                }
                // The node returns its grants when it continues, whatever amount they still have.
                let long_ago = Instant::now() - Duration::from_secs(31);
                sleeper.allow_grants("node_2", long_ago, NOW, LEASE);
                allow(&sleeper, "node_2");
            }
        }
    };
    let (paid, ()) = tokio::join!(all(callers), faults);
    for running in running {
        running.store(false, Ordering::Relaxed);
    }
    assert_clean(first).await;
    while granted(db).await.1 > 0 {
        for store in &nodes {
            drop(store.return_all_grants(NOW).await);
        }
    }
    let paid = paid.into_iter().fold(Amount::ZERO, |sum, paid| sum + paid);
    let user = first.user(&ann.user_id).await.unwrap().unwrap();
    assert_eq!(user.used, paid);
    assert_eq!(user.balance, amount("4") - paid);
    assert_eq!(held_in_rows(db).await, Amount::ZERO);
    assert!(user.balance >= Amount::ZERO);
}
