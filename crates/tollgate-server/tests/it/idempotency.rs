//! `Idempotency-Key`: one submission, however often it is sent.

use serde_json::{Value, json};

use crate::gate::{Backend, Client, Reply, Setup, on_both, task_id};

on_both!(
    repeats_get_the_first_receipt,
    concurrent_repeats_are_one_task
);

const GENERATIONS: &str = "/v1/images/generations";
const PRICE: &str = "[price.\"imagen-4.0-partner\"]\nper_image = 1\n";

async fn submit(client: &Client, key: &str, body: &Value) -> Reply {
    client
        .post_with(GENERATIONS, body, &[("idempotency-key", key)])
        .await
}

async fn count(client: &Client) -> usize {
    client.get("/v1/tasks?limit=100").await.expect(200).json()["data"]
        .as_array()
        .unwrap()
        .len()
}

async fn repeats_get_the_first_receipt(backend: Backend) {
    let mut gate = Setup::new(backend).config(PRICE).start().await;
    gate.user("payer", &["--balance", "3"]).await;
    let (client, same_user) = (gate.key("payer", &[]).await, gate.key("payer", &[]).await);
    let other = gate.somebody().await;
    let body = json!({ "model": "imagen-4.0-partner", "prompt": "a mill", "size": "1:1" });
    let first = submit(&client, "order-1", &body).await.expect(200);
    let id = task_id(&first.json());
    client.ended(&id).await;

    // The same as a JSON value, by another key of the user, after the end: the same bytes, charged once.
    let reordered =
        "{ \"size\":\"1:1\",\n \"prompt\":\"a mill\", \"model\":\"imagen-4.0-partner\" }";
    let request = client.request(http::Method::POST, GENERATIONS);
    let request = request.header("idempotency-key", "order-1");
    let again = client
        .send(request.body(reordered.into()).unwrap())
        .await
        .expect(200);
    assert_eq!(again.body, first.body);
    assert_eq!(submit(&same_user, "order-1", &body).await.body, first.body);
    assert_eq!(client.purse().await, (2.0, 1.0));
    assert_eq!(count(&client).await, 1);

    // Another body or another endpoint is another request; another user or key is nobody's business.
    let different = json!({ "model": "imagen-4.0-partner", "prompt": "a mill" });
    let message = submit(&client, "order-1", &different)
        .await
        .error(409, "invalid_request_error");
    assert!(message.contains("Idempotency-Key"), "{message}");
    assert_eq!(count(&client).await, 1);
    let theirs = submit(&other, "order-1", &different).await.expect(200);
    assert_ne!(task_id(&theirs.json()), id);
    let second = submit(&client, "order-2", &body).await.expect(200);
    assert_ne!(task_id(&second.json()), id);

    // What was refused used nothing up.
    let dear = json!({ "model": "imagen-4.0-partner", "prompt": "a mill", "size": "4:3" });
    let held = client
        .submit(&json!({ "model": "imagen-4.0-partner", "prompt": "[[sandbox:hang]]" }))
        .await;
    submit(&client, "order-3", &dear)
        .await
        .error(402, "payment_required");
    let wrong = json!({ "model": "imagen-4.0-partner", "prompt": "a mill", "n": 2 });
    submit(&client, "order-3", &wrong)
        .await
        .error(400, "invalid_request_error");
    client.cancel(&held).await.expect(200);
    submit(&client, "order-3", &dear).await.expect(200);

    // Restarts and prices change nothing; a poor user still gets the receipt that was paid for.
    gate.idle().await;
    assert_eq!(client.purse().await, (0.0, 3.0));
    gate.restart().await;
    assert_eq!(submit(&client, "order-1", &body).await.body, first.body);

    for (key, status) in [("", 400), (&"k".repeat(256), 400), (&"k".repeat(255), 402)] {
        assert_eq!(
            submit(&client, key, &dear).await.status,
            status,
            "{} characters",
            key.len()
        );
    }
    // Uploads, lists and cancellations take no notice of it.
    gate.close().await;
}

async fn concurrent_repeats_are_one_task(backend: Backend) {
    let gate = Setup::new(backend).config(PRICE).start().await;
    let client = gate.somebody_with("payer", &["--balance", "5"]).await;
    let body = json!({ "model": "imagen-4.0-partner", "prompt": "a mill" });
    let submissions: Vec<_> = (0..30)
        .map(|i| {
            let (client, mut body) = (client.clone(), body.clone());
            // Every third one is another request under the same key.
            if i % 3 == 2 {
                body["size"] = "1:1".into();
            }
            tokio::spawn(async move { (i % 3 == 2, submit(&client, "rush", &body).await) })
        })
        .collect();
    let mut receipts = Vec::new();
    let mut refused = Vec::new();
    for submission in submissions {
        let (is_other, reply) = submission.await.unwrap();
        match reply.status {
            200 => receipts.push((is_other, reply.body)),
            _ => {
                reply.error(409, "invalid_request_error");
                refused.push(is_other);
            }
        }
    }
    assert!(
        receipts.iter().all(|receipt| *receipt == receipts[0]),
        "one receipt for all"
    );
    let winner = receipts[0].0;
    assert!(refused.iter().all(|other| *other != winner));
    assert_eq!(receipts.len(), if winner { 10 } else { 20 });
    gate.idle().await;
    assert_eq!(count(&client).await, 1);
    assert_eq!(client.purse().await, (4.0, 1.0));
    gate.close().await;
}
