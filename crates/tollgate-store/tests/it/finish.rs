//! The end of a task: once, and with the right charge.

use tollgate_core::TaskState;
use tollgate_store::{CancelOutcome, FinishOutcome, TaskEnd};

use crate::databases::{Db, on_both};
use crate::fixtures::{
    NOW, account, amount, cancel, claim_one, claim_tasks, delivered, failed, finish, start_attempt,
    submit, task, task_finish, user_sums,
};

on_both!(
    a_task_is_finished_once,
    a_task_is_cancelled_once,
    an_ended_task_has_a_result_or_an_error,
    racing_cancel_and_finish_end_the_task_once,
    only_the_own_user_can_cancel_or_pay,
);

async fn a_task_is_finished_once(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "1").await;
    let id = submit(&store, task(&ann, 2, "0.25")).await;
    let leased = claim_one(&store, NOW).await;
    let cost = amount("0.25");
    assert_eq!(
        finish(&store, &leased, delivered(1), NOW + 1).await,
        FinishOutcome::Finished { cost }
    );
    assert_eq!(
        finish(&store, &leased, delivered(2), NOW + 1).await,
        FinishOutcome::AlreadyFinal
    );
    assert_eq!(
        finish(&store, &leased, failed(), NOW + 2).await,
        FinishOutcome::AlreadyFinal
    );
    let ended = store.task(&id).await.unwrap().unwrap();
    assert_eq!(
        store.cancel_task(&ended, NOW + 3).await,
        Ok(CancelOutcome::AlreadyFinal)
    );
    let still = store.task(&id).await.unwrap().unwrap();
    assert_eq!(
        (still.state, still.ended_at),
        (TaskState::Completed, Some(NOW + 1))
    );
    assert_eq!(user_sums(&store, &ann).await, ["0.75", "0", "0.25"]);
    assert!(claim_tasks(&store, NOW + 99_999).await.is_empty());
}

async fn a_task_is_cancelled_once(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "1").await;
    let waiting = submit(&store, task(&ann, 1, "0.25")).await;
    let waiting = store.task(&waiting).await.unwrap().unwrap();
    cancel(&store, &waiting, NOW).await;
    assert_eq!(
        store.cancel_task(&waiting, NOW).await,
        Ok(CancelOutcome::AlreadyFinal)
    );
    assert!(claim_tasks(&store, NOW).await.is_empty());

    submit(&store, task(&ann, 1, "0.25")).await;
    let leased = claim_one(&store, NOW).await;
    assert_eq!(start_attempt(&store, &leased, NOW).await, Some(1));
    cancel(&store, &leased.task, NOW).await;
    assert_eq!(
        finish(&store, &leased, delivered(1), NOW).await,
        FinishOutcome::AlreadyFinal
    );
    assert_eq!(start_attempt(&store, &leased, NOW).await, None);
    let outcome = db.raw("SELECT outcome FROM attempts").await.concat();
    assert_eq!(outcome, [Some("cancelled".to_owned())]);
    let seen = store.task(&leased.task.id).await.unwrap().unwrap();
    assert_eq!(seen.state, TaskState::Cancelled);
    assert_eq!(seen.error.unwrap().0, "cancelled");
    assert_eq!(user_sums(&store, &ann).await, ["1", "0", "0"]);
}

async fn an_ended_task_has_a_result_or_an_error(db: &Db) {
    let store = db.open().await;
    let ann = account(&store, "ann", "1").await;
    submit(&store, task(&ann, 1, "0.25")).await;
    let good = claim_one(&store, NOW).await;
    finish(&store, &good, delivered(1), NOW + 7).await;
    let seen = store.task(&good.task.id).await.unwrap().unwrap();
    assert_eq!((seen.progress, seen.error), (100, None));
    assert_eq!(seen.result.as_deref(), Some(r#"{"files":[{"name":"x"}]}"#));
    assert_eq!(seen.ended_at, Some(NOW + 7));

    submit(&store, task(&ann, 1, "0.25")).await;
    let bad = claim_one(&store, NOW).await;
    store
        .set_progress(&bad.task.id, bad.fence, 40)
        .await
        .unwrap();
    // A provider's words may hold anything, even what PostgreSQL cannot store.
    let end = TaskEnd::Failed {
        code: "provider_error".to_owned(),
        message: "a\0b 'c' \u{1f5bc}".to_owned(),
    };
    assert!(matches!(
        finish(&store, &bad, end, NOW).await,
        FinishOutcome::Finished { .. }
    ));
    let seen = store.task(&bad.task.id).await.unwrap().unwrap();
    assert_eq!((seen.progress, seen.result), (40, None));
    let (code, message) = seen.error.unwrap();
    assert_eq!(code, "provider_error");
    assert!(message.ends_with("b 'c' \u{1f5bc}"), "{message:?}");
}

async fn racing_cancel_and_finish_end_the_task_once(db: &Db) {
    let nodes = [db.open().await, db.open().await];
    let ann = account(&nodes[0], "ann", "10").await;
    for _ in 0..40 {
        submit(&nodes[0], task(&ann, 1, "0.1")).await;
    }
    let mut running = tokio::task::JoinSet::new();
    for (i, leased) in claim_tasks(&nodes[0], NOW).await.into_iter().enumerate() {
        let [worker, user] = [nodes[0].clone(), nodes[i % 2].clone()];
        running.spawn(async move {
            let end = task_finish(&leased, delivered(1), NOW);
            let (ended, cancelled) = if i % 4 < 2 {
                tokio::join!(worker.finish_task(end), user.cancel_task(&leased.task, NOW))
            } else {
                let (cancelled, ended) =
                    tokio::join!(user.cancel_task(&leased.task, NOW), worker.finish_task(end));
                (ended, cancelled)
            };
            match (ended.unwrap(), cancelled.unwrap()) {
                (FinishOutcome::Finished { .. }, CancelOutcome::AlreadyFinal) => true,
                (FinishOutcome::AlreadyFinal, CancelOutcome::Cancelled) => false,
                both => panic!("{both:?}"),
            }
        });
    }
    let delivered = running.join_all().await.into_iter().filter(|d| *d).count();
    let user = nodes[1].user(&ann.user_id).await.unwrap().unwrap();
    assert_eq!(user.used.nanos(), 100_000_000 * delivered as i64);
    assert_eq!(user.held.nanos(), 0);
    assert_eq!(user.balance + user.used, amount("10"));
}

async fn only_the_own_user_can_cancel_or_pay(db: &Db) {
    let store = db.open().await;
    let (ann, bob) = (
        account(&store, "ann", "1").await,
        account(&store, "bob", "1").await,
    );
    submit(&store, task(&ann, 1, "0.5")).await;
    let leased = claim_one(&store, NOW).await;
    let mut strange = leased.task.clone();
    strange.user_id.clone_from(&bob.user_id);
    assert_eq!(
        store.cancel_task(&strange, NOW).await,
        Ok(CancelOutcome::NotFound)
    );
    strange = leased.task.clone();
    strange.id = tollgate_core::id::task_id(NOW);
    assert_eq!(
        store.cancel_task(&strange, NOW).await,
        Ok(CancelOutcome::NotFound)
    );
    let mut wrong = task_finish(&leased, delivered(1), NOW);
    wrong.user_id.clone_from(&bob.user_id);
    wrong.key_id.clone_from(&bob.key_id);
    assert!(store.finish_task(wrong).await.is_err());
    assert_eq!(user_sums(&store, &bob).await, ["1", "0", "0"]);
    assert_eq!(user_sums(&store, &ann).await, ["1", "0.5", "0"]);
}
