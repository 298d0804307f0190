//! The audit finds chats that contradict each other, and holds that nobody releases.

use tollgate_store::Store;

use crate::audit_money::{assert_violation_until_undone, live as fill_database};
use crate::databases::{Db, on_both};
use crate::fixtures::{
    NODE, NOW, TestAccount, assert_clean, chat, hold, settle, tokens, unlimited_account,
};

on_both!(
    contradicting_chats_are_violations,
    a_hold_orphaned_for_an_hour_is_a_violation,
);

/// Chats in every state: open, ended with something released, beyond the hold, written off, lost, without a hold; some free,
/// one whose cost rounds to 0.
pub(crate) async fn live(store: &Store, [ann, bob]: [&TestAccount; 2]) {
    let cid = unlimited_account(store, "cid", None).await;
    store.heartbeat(NODE, NOW + 30_000).await.unwrap();
    for (account, price, worst, used) in [
        (ann, "1", 100_000, 50_000),
        (bob, "1", 100_000, 150_000),
        (bob, "1", 100_000, 9_000_000),
        (ann, "0", 100_000, 50_000),
        (ann, "0.000000001", 400_000, 1),
    ] {
        let new = chat(account, price, "2");
        hold(store, &new, tokens(worst, 0)).await.unwrap();
        settle(store, &new, true, tokens(used, 0)).await;
    }
    settle(store, &chat(&cid, "1", "2"), false, tokens(10, 20)).await;
    settle(store, &chat(&cid, "0", "0"), false, tokens(10, 20)).await;
    settle(store, &chat(bob, "1", "2"), false, tokens(10, 20)).await;
    hold(store, &chat(ann, "1", "2"), tokens(100_000, 0))
        .await
        .unwrap();
    store.heartbeat("node_dead", NOW).await.unwrap();
    let lost = chat(ann, "1", "2");
    let worst = tokens(100_000, 0);
    let held = store.hold_chat(&lost, &worst, "node_dead").await.unwrap();
    held.unwrap();
    store.release_orphaned_chats(NOW, NODE).await.unwrap();
}

async fn contradicting_chats_are_violations(db: &Db) {
    let store = db.open().await;
    fill_database(&store).await;
    assert_clean(&store).await;
    let completed = "settled > 0 AND held > settled";
    let (open, lost) = ("closed_at IS NULL", "outcome = 'lost'");
    let unheld = "held IS NULL AND settled > 0";
    for (set, row) in [
        ("closed_at = NULL", completed),
        ("closed_at = 1", open),
        ("settled = NULL", completed),
        ("settled = 0", open),
        ("forgiven = NULL", completed),
        ("forgiven = 0", open),
        ("outcome = NULL", completed),
        ("outcome = 'done'", open),
        ("outcome = 'lost'", completed),
        ("node = 'node_1'", completed),
        ("node = NULL", open),
        ("node = 'node_2'", open),
        ("held = NULL", completed),
        ("held = NULL", lost),
        ("held = 0", unheld),
        ("held = NULL", open),
        ("streamed = 2", completed),
        ("estimated = 2", completed),
        ("user_id = 'user_x'", unheld),
        ("key_id = 'key_x'", unheld),
    ] {
        let ids = format!("SELECT MIN(id) FROM chats WHERE {row}");
        let id = db.raw(&ids).await.concat()[0].clone().expect(row);
        let column = set.split(' ').next().unwrap();
        let cell = format!("SELECT {column} FROM chats WHERE id = '{id}'");
        let old = db.raw(&cell).await.concat()[0].clone();
        let old = match &old {
            None => "NULL".to_owned(),
            Some(text) if text.parse::<i64>().is_ok() => text.clone(),
            Some(text) => format!("'{text}'"),
        };
        let change = format!("UPDATE chats SET {set} WHERE id = '{id}'");
        let back = format!("UPDATE chats SET {column} = {old} WHERE id = '{id}'");
        assert_violation_until_undone(db, &store, &change, &back).await;
    }
    // A second charge of one that is its own entry.
    let of = format!("SELECT id, 'charge', user_id, key_id, 1, NULL, 0 FROM chats WHERE {unheld}");
    let charge = format!("INSERT INTO ledger {of}");
    let back = "DELETE FROM ledger WHERE kind = 'charge' AND amount = 1";
    assert_violation_until_undone(db, &store, &charge, back).await;
    // Entries under another kind's name.
    for (from, to, row) in [
        ("charge", "release", "settled > held"),
        ("settle", "charge", completed),
        ("hold", "charge", open),
        ("hold", "settle", open),
        ("release", "charge", lost),
        ("release", "settle", lost),
    ] {
        let id = db
            .raw(&format!("SELECT MIN(id) FROM chats WHERE {row}"))
            .await
            .concat();
        let id = id[0].clone().expect(row);
        let set = |from: &str, to: &str| {
            format!("UPDATE ledger SET kind = '{to}' WHERE ref = '{id}' AND kind = '{from}'")
        };
        assert_violation_until_undone(db, &store, &set(from, to), &set(to, from)).await;
    }
}

async fn a_hold_orphaned_for_an_hour_is_a_violation(db: &Db) {
    let store = db.open().await;
    fill_database(&store).await;
    let (hour, limit) = (3_600_000, NOW + 30_000);
    for alive in [limit, limit + hour] {
        store.heartbeat("node_2", alive).await.unwrap();
        // Its node may have died a moment ago.
        assert_clean(&store).await;
    }
    store.heartbeat("node_2", limit + hour + 1).await.unwrap();
    let violations = store.audit().await.unwrap();
    let checks: Vec<_> = violations.iter().map(|v| v.check).collect();
    assert_eq!(checks, ["open_chats"]);
    store
        .release_orphaned_chats(limit + hour, "node_2")
        .await
        .unwrap();
}
