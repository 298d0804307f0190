//! `Idempotency-Key`: a request that is sent several times is submitted once.

use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::harness::*;

on_both!(
    repeated_requests_return_the_first_receipt,
    concurrent_repeats_create_one_task
);

const GENERATIONS: &str = "/v1/images/generations";
const PRICE: &str = "[price.\"imagen-4.0-partner\"]\nper_image = 1\n";

async fn submit(client: &Client, key: &str, body: &Value) -> Reply {
    let reply = client.try_post_once(GENERATIONS, key, body).await;
    reply.expect("a response")
}

async fn repeated_requests_return_the_first_receipt(backend: Backend) {
    let mut gateway = Setup::new(backend).config(PRICE).start().await;
    let client = gateway.funded_client("3").await;
    let other_key = gateway.key("account", &[]).await;
    let stranger = gateway.unlimited_client().await;
    let body = json!({ "model": "imagen-4.0-partner", "prompt": "a mill", "size": "1:1" });
    let first = submit(&client, "key-1", &body).await.expect(200);
    let id = task_id(&first.json());
    client.wait_for_end(&id).await;

    // The same JSON value in other bytes, with another key of the user, after the task's end: the response has the same bytes, and the task is
    // charged once.
    let reordered =
        "{ \"size\":\"1:1\",\n \"prompt\":\"a mill\", \"model\":\"imagen-4.0-partner\" }";
    let headers = [("idempotency-key", "key-1")];
    let again = client.send_with("POST", GENERATIONS, &headers, reordered);
    assert_eq!(again.await.expect(200).body, first.body);
    let again = submit(&other_key, "key-1", &body).await;
    assert_eq!(again.body, first.body);
    assert_eq!(client.balances().await, (2.0, 1.0));
    assert_eq!(client.tasks().await.len(), 1);

    // Another body is a conflict; another user's request, or another idempotency key, is another submission.
    let different = json!({ "model": "imagen-4.0-partner", "prompt": "a mill" });
    let reply = submit(&client, "key-1", &different).await;
    reply.rejected(409, "Idempotency-Key");
    assert_eq!(client.tasks().await.len(), 1);
    for (client, key, body) in [(&stranger, "key-1", &different), (&client, "key-2", &body)] {
        let receipt = submit(client, key, body).await.expect(200).json();
        assert_ne!(task_id(&receipt), id);
    }

    // A rejected submission does not use up its idempotency key.
    let third = json!({ "model": "imagen-4.0-partner", "prompt": "a mill", "size": "4:3" });
    let hanging = json!({ "model": "imagen-4.0-partner", "prompt": "[[sandbox:hang]]" });
    let held = client.submit(&hanging).await;
    submit(&client, "key-3", &third).await.rejected(402, "");
    let invalid = json!({ "model": "imagen-4.0-partner", "prompt": "a mill", "n": 2 });
    submit(&client, "key-3", &invalid).await.rejected(400, "");
    client.cancel(&held).await.expect(200);
    submit(&client, "key-3", &third).await.expect(200);

    // After a restart, an account without money still gets the receipt of the task that it has paid.
    gateway.idle().await;
    assert_eq!(client.balances().await, (0.0, 3.0));
    gateway.restart().await;
    let again = submit(&client, "key-1", &body).await;
    assert_eq!(again.body, first.body);
    for (length, status) in [(0, 400), (256, 400), (255, 402)] {
        let reply = submit(&client, &"k".repeat(length), &third).await;
        assert_eq!(reply.status, status, "{length} characters");
    }
    gateway.close().await;
}

async fn concurrent_repeats_create_one_task(backend: Backend) {
    let gateway = Setup::new(backend).config(PRICE).start().await;
    let client = gateway.funded_client("5").await;
    let body = json!({ "model": "imagen-4.0-partner", "prompt": "a mill" });
    let mut other = body.clone();
    other["size"] = "1:1".into();
    // Every third request is another one under the same key.
    let bodies = (0..30).map(|i| if i % 3 == 2 { &other } else { &body });
    let replies = join_all(bodies.map(|body| submit(&client, "rush", body))).await;
    let (mut receipts, mut conflicts) = (Vec::new(), Vec::new());
    for (i, reply) in replies.into_iter().enumerate() {
        if reply.status == 200 {
            receipts.push((i % 3 == 2, reply.body));
        } else {
            reply.rejected(409, "");
            conflicts.push(i % 3 == 2);
        }
    }
    let winner = &receipts[0];
    assert!(receipts.iter().all(|receipt| receipt == winner));
    assert!(conflicts.iter().all(|is_other| *is_other != winner.0));
    assert_eq!(receipts.len(), if winner.0 { 10 } else { 20 });
    gateway.idle().await;
    assert_eq!(client.tasks().await.len(), 1);
    assert_eq!(client.balances().await, (4.0, 1.0));
    gateway.close().await;
}
