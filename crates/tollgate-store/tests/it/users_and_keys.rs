//! Users and keys: create, find, credit, disable, revoke.

use tollgate_core::{Amount, id, money};
use tollgate_store::{KeyLimits, RateLimits, Rejection, StoreError, SubmitOutcome};

use crate::databases::{Db, on_both};
use crate::fixtures::{
    NOW, account, amount, assert_invalid, new_key, submit, task, unlimited_account, user_sums,
};

on_both!(
    a_user_is_created_credited_disabled_and_listed,
    a_key_is_created_found_and_revoked,
    user_names_are_unique_byte_by_byte,
    a_debit_never_takes_what_is_held,
    amounts_out_of_range_are_invalid,
    the_access_version_is_raised_by_every_change_of_users_and_keys,
    a_submission_of_a_missing_revoked_or_disabled_account_is_rejected,
);

async fn a_user_is_created_credited_disabled_and_listed(db: &Db) {
    let store = db.open().await;
    assert!(!store.has_users().await.unwrap());
    let user = store
        .create_user("ann", false, amount("12.5"), RateLimits::default(), NOW)
        .await
        .unwrap();
    assert!(store.has_users().await.unwrap());
    assert!(user.id.starts_with("user_"));
    assert_eq!((user.name.as_str(), user.unlimited), ("ann", false));
    assert_eq!(user.balance, amount("12.5"));
    assert_eq!(store.user(&user.id).await, Ok(Some(user.clone())));
    assert_eq!(store.user_by_name("ann").await, Ok(user.clone()));
    assert_eq!(store.user("user_none").await, Ok(None));

    let richer = store.credit_user("ann", amount("0.000000001"), Some("a gift"), NOW);
    assert_eq!(richer.await.unwrap().balance, amount("12.500000001"));
    let disabled = store.disable_user("ann", NOW + 5).await.unwrap();
    assert_eq!(disabled.disabled_at, Some(NOW + 5));
    let again = store.disable_user("ann", NOW + 9).await.unwrap();
    assert_eq!(again.disabled_at, Some(NOW + 5), "the first time stands");

    store
        .create_user("bob", true, Amount::ZERO, RateLimits::default(), NOW + 1)
        .await
        .unwrap();
    let names: Vec<_> = store.list_users().await.unwrap();
    let names: Vec<_> = names
        .iter()
        .map(|u| (u.name.as_str(), u.unlimited))
        .collect();
    assert_eq!(names, [("ann", false), ("bob", true)]);
    for unknown in [
        store.user_by_name("eve").await,
        store.credit_user("eve", amount("1"), None, NOW).await,
        store.disable_user("eve", NOW).await,
    ] {
        let sentence = "there is no user \"eve\": see `tollgate user list`";
        assert_eq!(unknown, Err(StoreError::Invalid(sentence.to_owned())));
    }
}

async fn a_key_is_created_found_and_revoked(db: &Db) {
    let store = db.open().await;
    let user = store
        .create_user("ann", false, Amount::ZERO, RateLimits::default(), NOW)
        .await
        .unwrap();
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
    };
    let key = store.create_key(wanted.clone()).await.unwrap();
    assert_eq!((&key.id, &key.label), (&wanted.id, &wanted.label));
    assert_eq!((&key.user_id, &key.user), (&user.id, &user.name));
    assert_eq!(key.quota, Some(amount("3")));
    assert_eq!(key.limits, wanted.limits);
    assert_eq!((key.revoked_at, key.user_disabled_at), (None, None));
    assert_eq!(store.key_by_hash(&wanted.hash).await, Ok(Some(key.clone())));
    assert_eq!(store.key(&key.id).await, Ok(Some(key.clone())));
    assert_eq!(store.key_by_hash("0").await, Ok(None));

    let plain = store.create_key(new_key("ann", None)).await.unwrap();
    assert_eq!((plain.quota, plain.limits), (None, KeyLimits::default()));
    assert_eq!(store.list_keys().await.unwrap().len(), 2);

    let revoked = store.revoke_key(&key.id, NOW + 1).await.unwrap();
    assert_eq!(revoked.revoked_at, Some(NOW + 1));
    let again = store.revoke_key(&key.id, NOW + 2).await.unwrap();
    assert_eq!(again.revoked_at, Some(NOW + 1));
    store.disable_user("ann", NOW + 3).await.unwrap();
    let seen = store.key_by_hash(&wanted.hash).await.unwrap().unwrap();
    assert_eq!(seen.user_disabled_at, Some(NOW + 3));

    let nobody = store.revoke_key("key_none", NOW).await;
    let sentence = "there is no key \"key_none\": see `tollgate key list`";
    assert_eq!(nobody, Err(StoreError::Invalid(sentence.to_owned())));
    let orphan = store.create_key(new_key("eve", None)).await;
    assert!(matches!(orphan, Err(StoreError::Invalid(_))));
}

async fn user_names_are_unique_byte_by_byte(db: &Db) {
    let store = db.open().await;
    store
        .create_user("ann", false, amount("1"), RateLimits::default(), NOW)
        .await
        .unwrap();
    let taken = store
        .create_user("ann", true, amount("5"), RateLimits::default(), NOW)
        .await;
    let sentence = "there is a user \"ann\" already: choose another name";
    assert_eq!(taken, Err(StoreError::Invalid(sentence.to_owned())));
    // Names are compared byte by byte, and never parsed as SQL.
    for name in ["Ann", "ann ", "a'; DROP TABLE users; --", "名"] {
        store
            .create_user(name, false, Amount::ZERO, RateLimits::default(), NOW)
            .await
            .unwrap();
        assert_eq!(store.user_by_name(name).await.unwrap().name, name);
    }
    let (first, second) = tokio::join!(
        store.create_user("zoe", false, amount("2"), RateLimits::default(), NOW),
        store.create_user("zoe", false, amount("3"), RateLimits::default(), NOW),
    );
    assert!(first.is_ok() != second.is_ok(), "{first:?} {second:?}");
    let opened = first.or(second).unwrap().balance;
    assert_eq!(store.user_by_name("zoe").await.unwrap().balance, opened);
}

async fn a_debit_never_takes_what_is_held(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "10").await;
    submit(&store, task(&ann, 4, "1")).await;
    assert_eq!(user_sums(&store, &ann).await, ["10", "4", "0"]);
    let too_much = store
        .credit_user("ann", amount("-6.000000001"), None, NOW)
        .await;
    let sentence = "only 6 of the balance of \"ann\" can be taken: the rest is held or spent";
    assert_eq!(too_much, Err(StoreError::Invalid(sentence.to_owned())));
    assert_eq!(user_sums(&store, &ann).await, ["10", "4", "0"]);
    store
        .credit_user("ann", amount("-6"), None, NOW)
        .await
        .unwrap();
    assert_eq!(user_sums(&store, &ann).await, ["4", "4", "0"]);
    // An amount of 0 makes no entry.
    let entries = db.number("SELECT COUNT(*) FROM ledger").await;
    store
        .credit_user("ann", Amount::ZERO, None, NOW)
        .await
        .unwrap();
    assert_eq!(db.number("SELECT COUNT(*) FROM ledger").await, entries);

    let bob = unlimited_account(&store, "bob", None).await;
    store
        .credit_user("bob", amount("-6"), None, NOW)
        .await
        .unwrap();
    assert_eq!(user_sums(&store, &bob).await, ["-6", "0", "0"]);
}

async fn amounts_out_of_range_are_invalid(db: &Db) {
    let store = db.open().await;
    account(&store, "ann", "0").await;
    let beyond = money::MAX + Amount::from_nanos(1);
    let least = Amount::from_nanos(i64::MIN);
    for rejected in [
        store
            .create_user("bob", false, amount("-1"), RateLimits::default(), NOW)
            .await
            .map(|_| ()),
        store
            .create_user("bob", true, beyond, RateLimits::default(), NOW)
            .await
            .map(|_| ()),
        store
            .credit_user("ann", beyond, None, NOW)
            .await
            .map(|_| ()),
        store.credit_user("ann", least, None, NOW).await.map(|_| ()),
        store
            .create_key(new_key("ann", Some("-0.1")))
            .await
            .map(|_| ()),
    ] {
        assert_invalid(&rejected);
    }
    for _ in 0..9 {
        store
            .credit_user("ann", money::MAX, None, NOW)
            .await
            .unwrap();
    }
    let full = store.credit_user("ann", money::MAX, None, NOW).await;
    assert_invalid(&full);
    // The sum of all balances may exceed 64 bits.
    account(&store, "bob", "1000000000").await;
    assert_eq!(store.totals().await.unwrap().balance.nanos(), i64::MAX);
}

async fn the_access_version_is_raised_by_every_change_of_users_and_keys(db: &Db) {
    let store = db.open().await;
    let other = db.open().await;
    let mut seen = other.access_version().await.unwrap();
    let mut moved = async |what: &str| {
        let now = other.access_version().await.unwrap();
        assert!(now > seen, "{what}");
        seen = now;
    };
    store
        .create_user("ann", false, Amount::ZERO, RateLimits::default(), NOW)
        .await
        .unwrap();
    moved("a user was made").await;
    let key = store.create_key(new_key("ann", None)).await.unwrap();
    moved("a key was made").await;
    store.revoke_key(&key.id, NOW).await.unwrap();
    moved("a key was revoked").await;
    store.disable_user("ann", NOW).await.unwrap();
    moved("a user was disabled").await;
}

async fn a_submission_of_a_missing_revoked_or_disabled_account_is_rejected(db: &Db) {
    let store = db.open().await;
    let gone = Ok(SubmitOutcome::Rejected(Rejection::AccountInactive));
    let ann = account(&store, "ann", "10").await;
    let mut unknown = ann.clone();
    unknown.key_id = id::short_id("key_");
    assert_eq!(store.submit_task(task(&unknown, 1, "1")).await, gone);
    unknown = ann.clone();
    unknown.user_id = id::short_id("user_");
    assert_eq!(store.submit_task(task(&unknown, 1, "1")).await, gone);

    store.revoke_key(&ann.key_id, NOW).await.unwrap();
    assert_eq!(store.submit_task(task(&ann, 1, "1")).await, gone);
    assert_eq!(
        store.submit_task(task(&ann, 1, "0")).await,
        gone,
        "nor for nothing"
    );
    let bob = account(&store, "bob", "10").await;
    submit(&store, task(&bob, 1, "1")).await;
    store.disable_user("bob", NOW).await.unwrap();
    assert_eq!(store.submit_task(task(&bob, 1, "1")).await, gone);
    assert_eq!(
        user_sums(&store, &bob).await,
        ["10", "1", "0"],
        "what runs, runs on"
    );
}
