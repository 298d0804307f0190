//! Sign-in to console and portal: links, sessions, and the keys of users who sign in by an OpenID provider.

use tollgate_core::{Millis, id};
use tollgate_store::{
    AdminPatch, AdminRejection, AdminRequest, BudgetOwner, BudgetPatch, Key, KeyPatch, NewAdmin,
    NewPortalSession, NewSession, OidcIdentity, OidcUsers, SignIn, SignInAttempt,
    SignInAttemptOutcome, Store,
};

use crate::budgets::{create_budget, new_budget};
use crate::databases::{Db, on_both};
use crate::fixtures::{NOW, TestAccount, account, amount, chat, new_key, reserve, settle, tokens};

on_both!(
    a_rejected_sign_in_does_not_use_up_its_link,
    a_rotation_ends_the_other_portal_sessions_of_its_key,
    a_new_portal_key_has_the_limits_of_the_one_that_it_replaces,
    a_portal_key_with_a_hard_budget_is_not_replaced,
);

fn request() -> AdminRequest {
    AdminRequest::cli(NOW)
}

async fn a_rejected_sign_in_does_not_use_up_its_link(db: &Db) {
    let store = db.open().await;
    let new = NewAdmin {
        name: "ann".to_owned(),
        role: "viewer".to_owned(),
        link_hash: "link".to_owned(),
    };
    let created = store.create_admin(&request(), new).await.unwrap().unwrap();
    let admin_id = created.body["id"].as_str().unwrap();
    let disable = async |disabled: bool| {
        let patch = AdminPatch {
            disabled: Some(disabled),
            ..AdminPatch::default()
        };
        let changed = store.update_admin(&request(), admin_id, None, patch).await;
        changed.unwrap().unwrap();
    };
    let sign_in = async |hash: &str| {
        let new = NewSession {
            hash: hash.to_owned(),
            address: String::new(),
            sign_in: SignIn::Link {
                hash: "link".to_owned(),
                password: "hash of the password".to_owned(),
                name: None,
            },
            attempt: None,
        };
        let started = store.begin_session(&request(), new).await.unwrap();
        started.map(drop)
    };
    disable(true).await;
    assert_eq!(sign_in("1").await, Err(AdminRejection::NotFound));
    disable(false).await;
    assert_eq!(sign_in("2").await, Ok(()));
    assert_eq!(sign_in("3").await, Err(AdminRejection::NotFound));
}

async fn attempt(store: &Store) -> SignInAttempt {
    match store.begin_sign_in(Vec::new(), NOW).await.unwrap() {
        SignInAttemptOutcome::Allowed(attempt) => attempt,
        SignInAttemptOutcome::Throttled { .. } => panic!("there is no limit"),
    }
}

async fn a_rotation_ends_the_other_portal_sessions_of_its_key(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "1").await;
    let other = crate::fixtures::with_key(&store, "ann", None).await;
    let mut ids = Vec::new();
    for (hash, account) in [("own", &ann), ("stolen", &ann), ("other", &other)] {
        let new = NewPortalSession {
            hash: hash.to_owned(),
            key_id: account.key_id.clone(),
            user_id: account.user_id.clone(),
            attempt: attempt(&store).await,
            nonce_hash: None,
        };
        let started = store.begin_portal_session(&request(), new).await;
        ids.push(
            started.unwrap().unwrap().body["id"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    let rotate = async |hash: &str, kept: Option<&str>| {
        let (request, hash) = (request(), id::key_hash(hash));
        let hint = "sk-".to_owned();
        let rotated = store.admin_rotate_key(&request, &ann.key_id, hash, hint, NOW, kept);
        rotated.await.unwrap().unwrap();
    };
    let open = async || {
        let mut open = Vec::new();
        for hash in ["own", "stolen", "other"] {
            let session = store.portal_session_by_hash(hash, NOW).await.unwrap();
            open.push(session.is_some());
        }
        open
    };
    assert_eq!(open().await, [true, true, true]);
    rotate("second secret", Some(&ids[0])).await;
    assert_eq!(open().await, [true, false, true]);
    rotate("third secret", None).await;
    assert_eq!(open().await, [false, false, true]);
}

fn identity() -> OidcIdentity {
    OidcIdentity {
        issuer: "https://id.example.com".to_owned(),
        subject: "7".to_owned(),
    }
}

/// Signs in to the portal by the provider. Returns the key that is used.
async fn sign_in(store: &Store, now: Millis) -> Result<Key, AdminRejection> {
    let request = AdminRequest::cli(now);
    let user = store.sign_in_oidc_user(&request, identity(), "bob", OidcUsers::Create);
    let user = user.await.unwrap().unwrap();
    let user_id = user.body["id"].as_str().unwrap();
    let key = store.oidc_portal_key(&request, identity(), user_id, new_key("", None));
    let key = key.await.unwrap()?;
    let key = store.key(key.body["id"].as_str().unwrap()).await;
    Ok(key.unwrap().unwrap())
}

fn portal_account(key: &Key) -> TestAccount {
    TestAccount {
        name: key.user.clone(),
        user_id: key.user_id.clone(),
        key_id: key.id.clone(),
    }
}

async fn a_new_portal_key_has_the_limits_of_the_one_that_it_replaces(db: &Db) {
    let store = crate::fixtures::node(db).await;
    let first = sign_in(&store, NOW).await.unwrap();
    assert_eq!(sign_in(&store, NOW).await.unwrap().id, first.id);
    store
        .credit_user("bob", amount("9"), None, NOW)
        .await
        .unwrap();
    let patch = KeyPatch {
        quota: Some(Some(amount("1"))),
        rpm: Some(Some(5)),
        models: Some(Some(vec!["gpt-5".to_owned()])),
        expires_at: Some(Some(NOW + 100)),
        ..KeyPatch::default()
    };
    let request = request();
    let patched = store.admin_update_key(&request, &first.id, first.version, patch);
    patched.await.unwrap().unwrap();
    let bob = portal_account(&first);
    settle(&store, &chat(&bob, "1", "1"), false, tokens(200_000, 0)).await;
    let running = chat(&bob, "1", "1");
    let held = reserve(&store, &running, tokens(300_000, 0)).await.unwrap();
    store.revoke_key(&first.id, NOW).await.unwrap();
    let second = sign_in(&store, NOW).await.unwrap();
    assert_ne!(second.id, first.id);
    assert_eq!(second.quota, Some(amount("0.5")));
    assert_eq!(second.limits.rates.rpm, Some(5));
    assert_eq!(second.limits.models, Some(vec!["gpt-5".to_owned()]));
    assert_eq!(second.limits.expires_at, Some(NOW + 100));
    drop(held);
    // An expired key is replaced by one that does not expire.
    let third = sign_in(&store, NOW + 100).await.unwrap();
    assert_ne!(third.id, second.id);
    assert_eq!(third.limits.expires_at, None);
    assert_eq!(
        (third.quota, third.limits.rates.rpm),
        (second.quota, Some(5))
    );
}

async fn a_portal_key_with_a_hard_budget_is_not_replaced(db: &Db) {
    let store = db.open().await;
    let first = sign_in(&store, NOW).await.unwrap();
    let new = new_budget(&portal_account(&first), BudgetOwner::Key, "1", true);
    let budget = create_budget(&store, new, NOW).await;
    assert_eq!(sign_in(&store, NOW).await.unwrap().id, first.id);
    store.revoke_key(&first.id, NOW).await.unwrap();
    let rejection = sign_in(&store, NOW).await.unwrap_err();
    let AdminRejection::Conflict { code, message, .. } = rejection else {
        panic!("{rejection:?}")
    };
    assert_eq!(code, "disabled");
    assert!(message.contains(&budget), "{message}");
    let budget = store.budget(&budget).await.unwrap().unwrap();
    let soft = BudgetPatch {
        is_hard: Some(false),
        ..BudgetPatch::default()
    };
    let changed = store.update_budget(&request(), &budget, None, soft).await;
    changed.unwrap().unwrap();
    assert_ne!(sign_in(&store, NOW).await.unwrap().id, first.id);
}
