//! Users and keys: their stored members, unique names, amounts in range.

use std::time::Duration;

use tollgate_core::{Amount, money};
use tollgate_store::{
    AccessChange, AccessChanges, AdminRejection, AdminRequest, DatabaseLocation, KeyLimits,
    RateLimits, Store, StoreError, User, UserPatch,
};

use crate::databases::{Db, on_both};
use crate::fixtures::{NOW, account, amount, assert_invalid, new_key, task, unlimited_account};

const MAX_POLLS: u32 = 1_500;
const PAUSE: Duration = Duration::from_millis(20);

on_both!(
    a_user_is_stored_and_listed,
    a_key_is_stored_and_found_by_its_hash,
    user_names_are_unique_byte_by_byte,
    a_name_that_another_node_inserts_concurrently_is_rejected,
    amounts_out_of_range_are_invalid,
    every_change_of_users_and_keys_is_in_the_feed,
);

async fn create(
    store: &Store,
    name: &str,
    unlimited: bool,
    balance: Amount,
) -> Result<User, StoreError> {
    let rates = RateLimits::default();
    store
        .create_user(name, unlimited, balance, rates, NOW)
        .await
}

/// Waits until a transaction on this PostgreSQL database waits for a lock.
async fn wait_for_blocked_transaction(db: &Db) {
    let waiting = "SELECT COUNT(*) FROM pg_stat_activity
        WHERE datname = current_database() AND wait_event_type = 'Lock'";
    for _ in 0..MAX_POLLS {
        if db.number(waiting).await > 0 {
            return;
        }
        tokio::time::sleep(PAUSE).await;
    }
    panic!("no transaction waits for a lock");
}

async fn a_name_that_another_node_inserts_concurrently_is_rejected(db: &Db) {
    let store = db.open().await;
    let ann = create(&store, "ann", false, Amount::ZERO).await.unwrap();
    let insert = "INSERT INTO users (id, name, unlimited, balance, held, used, created_at)
        VALUES ('user_other', 'bob', 0, 0, 0, 0, 1)";
    let rename = async {
        let patch = UserPatch {
            name: Some("bob".to_owned()),
            ..UserPatch::default()
        };
        let request = AdminRequest::cli(NOW);
        let renamed = store.admin_update_user(&request, &ann.id, None, patch);
        renamed.await.unwrap().unwrap_err()
    };
    let rejection = match &db.location {
        DatabaseLocation::Sqlite(_) => {
            db.raw(insert).await;
            rename.await
        }
        // The other node commits after this one has looked for the name, while this one waits for its row.
        DatabaseLocation::Postgres(_) => {
            let other = Db::new(db.location.clone());
            other.batch(&format!("BEGIN; {insert}")).await;
            let commit = async {
                wait_for_blocked_transaction(db).await;
                other.batch("COMMIT").await;
            };
            tokio::join!(rename, commit).0
        }
    };
    let is_taken =
        matches!(&rejection, AdminRejection::Conflict { code, .. } if *code == "name_taken");
    assert!(is_taken, "{rejection:?}");
    db.raw("DELETE FROM users WHERE id = 'user_other'").await;
}

async fn a_user_is_stored_and_listed(db: &Db) {
    let store = db.open().await;
    assert_eq!(store.has_users().await, Ok(false));
    let user = create(&store, "ann", false, amount("12.5")).await.unwrap();
    assert_eq!(store.has_users().await, Ok(true));
    assert!(user.id.starts_with("user_"));
    assert_eq!((user.name.as_str(), user.unlimited), ("ann", false));
    assert_eq!(user.balance, amount("12.5"));
    assert_eq!(store.user(&user.id).await, Ok(Some(user.clone())));
    assert_eq!(store.user_by_name("ann").await, Ok(user));
    assert_eq!(store.user("user_none").await, Ok(None));
    create(&store, "bob", true, Amount::ZERO).await.unwrap();
    let users = store.list_users().await.unwrap();
    let mut users: Vec<_> = users.iter().map(|u| (&*u.name, u.unlimited)).collect();
    // Both were created in the same millisecond.
    users.sort_unstable();
    assert_eq!(users, [("ann", false), ("bob", true)]);
    let unknown = store.user_by_name("eve").await;
    let sentence = "there is no user \"eve\": see `tollgate user list`";
    assert_eq!(unknown, Err(StoreError::Invalid(sentence.to_owned())));
}

async fn a_key_is_stored_and_found_by_its_hash(db: &Db) {
    let store = db.open().await;
    let user = create(&store, "ann", false, Amount::ZERO).await.unwrap();
    let mut wanted = new_key("ann", Some("3"));
    wanted.limits = KeyLimits {
        rates: RateLimits {
            rpm: Some(60),
            tpm: Some(90_000),
            max_concurrency: Some(u32::MAX),
        },
        models: Some(vec!["a".to_owned(), "b,\"c".to_owned()]),
        expires_at: Some(NOW + 100),
        bare_envelope: true,
        trace_content: true,
    };
    let key = store.create_key(wanted.clone()).await.unwrap();
    assert_eq!((&key.id, &key.label), (&wanted.id, &wanted.label));
    assert_eq!((&key.user_id, &key.user), (&user.id, &user.name));
    assert_eq!(key.quota, Some(amount("3")));
    assert_eq!(key.limits, wanted.limits);
    assert_eq!((key.revoked_at, key.user_disabled_at), (None, None));
    assert_eq!(store.key_by_hash(&wanted.hash).await, Ok(Some(key.clone())));
    assert_eq!(store.key(&key.id).await, Ok(Some(key)));
    assert_eq!(store.key_by_hash("0").await, Ok(None));
    let plain = store.create_key(new_key("ann", None)).await.unwrap();
    assert_eq!((plain.quota, plain.limits), (None, KeyLimits::default()));
    assert_eq!(store.list_keys().await.unwrap().len(), 2);
    store.disable_user("ann", NOW + 3).await.unwrap();
    let seen = store.key_by_hash(&wanted.hash).await.unwrap().unwrap();
    assert_eq!(seen.user_disabled_at, Some(NOW + 3));
}

async fn user_names_are_unique_byte_by_byte(db: &Db) {
    let store = db.open().await;
    create(&store, "ann", false, amount("1")).await.unwrap();
    let taken = create(&store, "ann", true, amount("5")).await;
    let sentence = "there is a user \"ann\" already: choose another name";
    assert_eq!(taken, Err(StoreError::Invalid(sentence.to_owned())));
    // Names are compared byte by byte, and never parsed as SQL.
    for name in ["Ann", "ann ", "a'; DROP TABLE users; --", "名"] {
        create(&store, name, false, Amount::ZERO).await.unwrap();
        assert_eq!(store.user_by_name(name).await.unwrap().name, name);
    }
    let (first, second) = tokio::join!(
        create(&store, "zoe", false, amount("2")),
        create(&store, "zoe", false, amount("3")),
    );
    assert!(first.is_ok() != second.is_ok(), "{first:?} {second:?}");
    let opened = first.or(second).unwrap().balance;
    assert_eq!(store.user_by_name("zoe").await.unwrap().balance, opened);
}

async fn amounts_out_of_range_are_invalid(db: &Db) {
    let store = db.open().await;
    account(&store, "ann", "0").await;
    let credit = async |by| store.credit_user("ann", by, None, NOW).await;
    let beyond = money::MAX + Amount::from_nanos(1);
    assert_invalid(&create(&store, "bob", false, amount("-1")).await);
    assert_invalid(&create(&store, "bob", true, beyond).await);
    assert_invalid(&credit(beyond).await);
    assert_invalid(&credit(Amount::from_nanos(i64::MIN)).await);
    assert_invalid(&store.create_key(new_key("ann", Some("-0.1"))).await);
    for _ in 0..9 {
        credit(money::MAX).await.unwrap();
    }
    assert_invalid(&credit(money::MAX).await);
    // The sum of all balances may exceed 64 bits.
    account(&store, "bob", "1000000000").await;
    assert_eq!(store.totals().await.unwrap().balance.nanos(), i64::MAX);
    // Prices of tasks that are out of range.
    let cid = unlimited_account(&store, "cid", None).await;
    for (price, units) in [
        (Amount::from_nanos(-1), 1),
        (money::MAX, 2),
        (Amount::from_nanos(i64::MAX), 1),
        (amount("1"), u64::MAX),
    ] {
        let mut new = task(&cid, units, "0");
        new.charge.price = price;
        assert_invalid(&store.submit_task(new).await);
    }
}

async fn every_change_of_users_and_keys_is_in_the_feed(db: &Db) {
    let (store, other) = (db.open().await, db.open().await);
    let start = other.access_version().await.unwrap();
    create(&store, "ann", false, Amount::ZERO).await.unwrap();
    let user = store.user_by_name("ann").await.unwrap().id;
    let key = store.create_key(new_key("ann", None)).await.unwrap().id;
    store.revoke_key(&key, NOW).await.unwrap();
    store.disable_user("ann", NOW).await.unwrap();
    let all = [
        AccessChange::User(user.clone()),
        AccessChange::Key(key.clone()),
        AccessChange::Key(key),
        AccessChange::User(user),
    ];
    for seen in 0..=all.len() {
        let changes = other.access_changes_since(start + seen as i64).await;
        let expected = AccessChanges {
            version: start + all.len() as i64,
            changes: Some(all[seen..].to_vec()),
        };
        assert_eq!(changes, Ok(expected), "{seen}");
    }
    // A node of a version without the feed only raises the number: any key may have changed then.
    db.raw("UPDATE meta SET value = value + 1 WHERE name = 'access_version'")
        .await;
    let newest = start + all.len() as i64 + 1;
    let unknown = AccessChanges {
        version: newest,
        changes: None,
    };
    assert_eq!(other.access_changes_since(start).await, Ok(unknown.clone()));
    assert_eq!(other.access_changes_since(newest - 1).await, Ok(unknown));
    // The same happens to a node that has missed more changes than are kept.
    db.raw("UPDATE meta SET value = value + 20000 WHERE name = 'access_version'")
        .await;
    store.purge_expired(0, NOW).await.unwrap();
    assert_eq!(db.number("SELECT COUNT(*) FROM access_changes").await, 0);
}
