//! The ends of a task: once, and with the right money.

use tollgate_core::TaskState;
use tollgate_store::{Cancelled, End, Ended};

use crate::db::{Db, on_both};
use crate::world::{
    NOW, amount, assert_clean, begin_attempt, claim, claim_one, delivered, failed, finish,
    finish_of, payer, submit, sums, task,
};

on_both!(
    a_task_is_finished_once,
    a_task_is_cancelled_once,
    what_is_shown_at_the_end,
    cancel_and_finish_race,
    only_its_own_user_pays_or_cancels,
);

async fn a_task_is_finished_once(db: &Db) {
    let store = db.open().await;
    let ann = payer(&store, "ann", "1").await;
    let id = submit(&store, task(&ann, 2, "0.25")).await;
    let leased = claim_one(&store, NOW).await;
    let cost = amount("0.25");
    assert_eq!(
        finish(&store, &leased, delivered(1), NOW + 1).await,
        Ended::Done { cost }
    );
    assert_eq!(
        finish(&store, &leased, delivered(2), NOW + 1).await,
        Ended::Already
    );
    assert_eq!(
        finish(&store, &leased, failed(), NOW + 2).await,
        Ended::Already
    );
    let ended = store.task(&id).await.unwrap().unwrap();
    assert_eq!(
        store.cancel(&ended, NOW + 3).await,
        Ok(Cancelled::AlreadyFinal)
    );
    let still = store.task(&id).await.unwrap().unwrap();
    assert_eq!(
        (still.state, still.ended_at),
        (TaskState::Completed, Some(NOW + 1))
    );
    assert_eq!(sums(&store, &ann).await, ["0.75", "0", "0.25"]);
    assert!(claim(&store, NOW + 99_999).await.is_empty());
    assert_clean(&store).await;
}

async fn a_task_is_cancelled_once(db: &Db) {
    let store = db.open().await;
    let ann = payer(&store, "ann", "1").await;
    let waiting = submit(&store, task(&ann, 1, "0.25")).await;
    let waiting = store.task(&waiting).await.unwrap().unwrap();
    assert_eq!(store.cancel(&waiting, NOW).await, Ok(Cancelled::Done));
    assert_eq!(
        store.cancel(&waiting, NOW).await,
        Ok(Cancelled::AlreadyFinal)
    );
    assert!(claim(&store, NOW).await.is_empty());

    submit(&store, task(&ann, 1, "0.25")).await;
    let leased = claim_one(&store, NOW).await;
    assert_eq!(begin_attempt(&store, &leased, NOW).await, Some(1));
    assert_eq!(store.cancel(&leased.task, NOW).await, Ok(Cancelled::Done));
    assert_eq!(
        finish(&store, &leased, delivered(1), NOW).await,
        Ended::Already
    );
    assert_eq!(begin_attempt(&store, &leased, NOW).await, None);
    let outcome = db.raw("SELECT outcome FROM attempts").await.concat();
    assert_eq!(outcome, [Some("cancelled".to_owned())]);
    let seen = store.task(&leased.task.id).await.unwrap().unwrap();
    assert_eq!(seen.state, TaskState::Cancelled);
    assert_eq!(seen.error.unwrap().0, "cancelled");
    assert_eq!(sums(&store, &ann).await, ["1", "0", "0"]);
    assert_clean(&store).await;
}

async fn what_is_shown_at_the_end(db: &Db) {
    let store = db.open().await;
    let ann = payer(&store, "ann", "1").await;
    submit(&store, task(&ann, 1, "0.25")).await;
    let good = claim_one(&store, NOW).await;
    finish(&store, &good, delivered(1), NOW + 7).await;
    let seen = store.task(&good.task.id).await.unwrap().unwrap();
    assert_eq!((seen.progress, seen.error), (100, None));
    assert_eq!(seen.result.as_deref(), Some(r#"{"files":[{"name":"x"}]}"#));
    assert_eq!(seen.ended_at, Some(NOW + 7));

    submit(&store, task(&ann, 1, "0.25")).await;
    let bad = claim_one(&store, NOW).await;
    store.progress(&bad.task.id, bad.fence, 40).await.unwrap();
    // A provider's words may hold anything, even what PostgreSQL cannot store.
    let end = End::Failed {
        code: "provider_error".to_owned(),
        message: "a\0b 'c' \u{1f5bc}".to_owned(),
    };
    assert!(matches!(
        finish(&store, &bad, end, NOW).await,
        Ended::Done { .. }
    ));
    let seen = store.task(&bad.task.id).await.unwrap().unwrap();
    assert_eq!((seen.progress, seen.result), (40, None));
    let (code, message) = seen.error.unwrap();
    assert_eq!(code, "provider_error");
    assert!(message.ends_with("b 'c' \u{1f5bc}"), "{message:?}");
    assert_clean(&store).await;
}

async fn cancel_and_finish_race(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    let ann = payer(&nodes[0], "ann", "10").await;
    for _ in 0..40 {
        submit(&nodes[0], task(&ann, 1, "0.1")).await;
    }
    let mut running = tokio::task::JoinSet::new();
    for (i, leased) in claim(&nodes[0], NOW).await.into_iter().enumerate() {
        let [worker, user] = [nodes[0].clone(), nodes[i % 2].clone()];
        running.spawn(async move {
            let end = finish_of(&leased, delivered(1), NOW);
            let (ended, cancelled) = if i % 4 < 2 {
                tokio::join!(worker.finish(end), user.cancel(&leased.task, NOW))
            } else {
                let (cancelled, ended) =
                    tokio::join!(user.cancel(&leased.task, NOW), worker.finish(end));
                (ended, cancelled)
            };
            match (ended.unwrap(), cancelled.unwrap()) {
                (Ended::Done { .. }, Cancelled::AlreadyFinal) => true,
                (Ended::Already, Cancelled::Done) => false,
                both => panic!("{both:?}"),
            }
        });
    }
    let delivered = running.join_all().await.into_iter().filter(|d| *d).count();
    let user = nodes[1].user(&ann.user_id).await.unwrap().unwrap();
    assert_eq!(user.used.nanos(), 100_000_000 * delivered as i64);
    assert_eq!(user.held.nanos(), 0);
    assert_eq!(user.balance + user.used, amount("10"));
    assert_clean(&nodes[0]).await;
}

async fn only_its_own_user_pays_or_cancels(db: &Db) {
    let store = db.open().await;
    let (ann, bob) = (
        payer(&store, "ann", "1").await,
        payer(&store, "bob", "1").await,
    );
    submit(&store, task(&ann, 1, "0.5")).await;
    let leased = claim_one(&store, NOW).await;
    let mut strange = leased.task.clone();
    strange.user_id.clone_from(&bob.user_id);
    assert_eq!(store.cancel(&strange, NOW).await, Ok(Cancelled::NotFound));
    strange = leased.task.clone();
    strange.id = tollgate_core::id::task_id(NOW);
    assert_eq!(store.cancel(&strange, NOW).await, Ok(Cancelled::NotFound));
    let mut wrong = finish_of(&leased, delivered(1), NOW);
    wrong.user_id.clone_from(&bob.user_id);
    wrong.key_id.clone_from(&bob.key_id);
    assert!(store.finish(wrong).await.is_err());
    assert_eq!(sums(&store, &bob).await, ["1", "0", "0"]);
    assert_eq!(sums(&store, &ann).await, ["1", "0.5", "0"]);
    assert_clean(&store).await;
}
