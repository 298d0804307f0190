//! Receipts and records of every shape, and how users find and cancel their tasks.

use serde_json::{Value, json};

use crate::harness::*;

on_both!(
    receipts_and_records_have_their_familys_shape,
    tasks_are_read_one_by_one_in_batches_and_in_pages,
    tasks_are_cancelled,
    tasks_are_visible_to_their_user_alone,
);

/// A request whose task waits for its cancellation.
fn hanging(model: &str) -> Value {
    json!({ "model": model, "prompt": "[[sandbox:hang]]" })
}

async fn receipts_and_records_have_their_familys_shape(backend: Backend) {
    let prices = "[price.\"imagen-4.0-partner\"]\nper_image = 0.125\n";
    let (gateway, client) = TestGateway::with_config(backend, prices).await;
    check_standard_shape(&client).await;
    check_processing_shape(&client).await;
    check_asynchronous_shape(&client).await;
    check_adjustments(&client).await;
    // Links of this family are valid for three days.
    let body = json!({ "model": "doubao-seedream-5.0-lite", "prompt": "a mill", "size": "3:4" });
    let record = client.generate(&body).await;
    let image = &record["result"]["images"][0];
    assert_has(image, json!({ "expires_at": "<now+259200>" }));
    gateway.close().await;
}

async fn check_standard_shape(client: &Client) {
    let body = json!({ "model": "imagen-4.0-partner", "prompt": "a mill" });
    let receipt = client.post_image(&body).await.expect(200).json();
    let id = task_id(&receipt);
    let task = json!({ "status": "submitted", "task_id": id });
    assert_eq!(receipt, json!({ "code": 200, "data": [task] }));
    client.wait_for_end(&id).await;
    let record = client.get_json(&format!("/v1/tasks/{id}")).await;
    let image = json!({ "url": ["<string>"], "expires_at": "<now+86400>" });
    let data = json!({
        "id": id, "status": "completed", "progress": 100, "cost": 0.125, "created_at": "<now>", "actual_time": "<integer>",
        "result": { "images": [image] },
    });
    assert_shape(&record, json!({ "code": 200, "data": data }));
    let link = image_urls(&record["data"]).remove(0);
    assert!(link.starts_with(&client.url("/files/")), "{link}");
    let short = format!("/v1/images/generations/{id}");
    let expected = json!({
        "task_id": id, "status": "completed", "progress": 100, "url": link, "fail_reason": "",
    });
    assert_eq!(client.get_json(&short).await, expected);

    let failing = json!({ "model": "imagen-4.0-partner", "prompt": "[[sandbox:fail]]" });
    let id = client.submit(&failing).await;
    let record = client.wait_for_end(&id).await;
    let expected = json!({
        "id": id, "status": "failed", "progress": "<integer>", "cost": 0.0, "created_at": "<now>", "actual_time": "<integer>",
        "error": { "code": "provider_error", "message": "<string>" },
    });
    assert_shape(&record, expected);
    let path = format!("/v1/images/generations/{id}");
    let reason = &record["error"]["message"];
    let expected = json!({ "status": "failed", "url": "", "fail_reason": reason });
    assert_has(&client.get_json(&path).await, expected);

    let id = client.submit(&hanging("imagen-4.0-partner")).await;
    client.wait_for_start(&id).await;
    let expected = json!({
        "id": id, "status": "in_progress", "progress": "<integer>", "cost": 0.0, "created_at": "<now>", "actual_time": 0,
    });
    assert_shape(&client.task(&id).await, expected);
    client.cancel(&id).await.expect(200);
}

async fn check_processing_shape(client: &Client) {
    let body = json!({ "model": "wan2.7-image", "prompt": "a mill", "size": "768x768" });
    let receipt = client.post_image(&body).await.expect(200).json();
    let id = task_id(&receipt);
    let task = json!({ "task_id": id, "status": "processing" });
    let expected = json!({ "code": "success", "message": "", "data": [task] });
    assert_eq!(receipt, expected);
    client.wait_for_end(&id).await;
    let record = client.get_json(&format!("/v1/tasks/{id}")).await;
    assert_has(
        &record,
        json!({ "code": 200, "data": { "status": "completed" } }),
    );
    assert_eq!(image_urls(&record["data"]).len(), 1);

    let id = client.submit(&hanging("wan2.7-image")).await;
    assert_eq!(status(&client.task(&id).await), "processing");
    let record = client.cancel(&id).await.expect(200).json();
    let data = json!({ "status": "failed", "error": { "code": "cancelled" } });
    assert_has(&record, json!({ "code": 200, "data": data }));
}

async fn check_asynchronous_shape(client: &Client) {
    let body = json!({ "model": "gpt-image-2.5-async", "prompt": "a mill", "quality": "medium" });
    let receipt = client.post_image(&body).await.expect(200).json();
    let expected = json!({
        "id": "<string>", "status": "queued", "mode": "generate", "model": "gpt-image-2.5-async", "size": "1024x1024",
        "quality": "medium", "created_at": "<string>",
    });
    assert_shape(&receipt, expected);
    let created_at = receipt["created_at"].as_str().unwrap();
    let pattern = created_at.replace(|c: char| c.is_ascii_digit(), "0");
    assert_eq!(pattern, "0000-00-00 00:00:00");

    let id = task_id(&receipt);
    let record = client.wait_for_end(&id).await;
    let link = image_urls(&record).remove(0);
    let item = json!({ "id": "<string>", "status": "success", "data": [{ "url": link }] });
    let expected = json!({
        "task_id": id, "progress": "100%", "result_url": link, "result": { "items": [item] }, "expires_at": "<now+86400>",
    });
    assert_has(&record, expected);
    assert_eq!(
        record["result"]["items"][0]["data"],
        json!([{ "url": link }])
    );
    client.fetch(&link).await.expect(200);

    let failing = json!({ "model": "gpt-image-2.5-async", "prompt": "[[sandbox:fail]]" });
    let record = client.wait_for_end(&client.submit(&failing).await).await;
    let error = json!({ "code": "provider_error" });
    let expected = json!({ "status": "failed", "result_url": "", "error": error });
    assert_has(&record, expected);

    let id = client.submit(&hanging("gpt-image-2.5-async")).await;
    assert!(["queued", "in_progress"].contains(&status(&client.task(&id).await)));
    let record = client.cancel(&id).await.expect(200).json();
    let error = json!({ "code": "cancelled" });
    assert_has(&record, json!({ "status": "cancelled", "error": error }));
}

async fn check_adjustments(client: &Client) {
    let body =
        json!({ "model": "gpt-image-1-official", "prompt": "a mill", "n": -2, "colour": "red" });
    let receipt = client.post_image(&body).await.expect(200).json();
    let mut listed = receipt["data"][0]["adjustments"].clone();
    let record = client.wait_for_end(&task_id(&receipt)).await;
    assert_eq!(record["adjustments"], listed);
    let list = listed.as_array_mut().unwrap();
    list.sort_by_key(|one| one["field"].to_string());
    let expected = json!([
        { "field": "colour", "asked": "red", "used": null, "why": "<string>" },
        { "field": "n", "asked": -2, "used": 1, "why": "<string>" },
    ]);
    assert_shape(&listed, expected);
    let strict = [("x-tollgate-strict", "true")];
    let path = "/v1/images/generations";
    let reply = client.post_with(path, &body, &strict).await;
    reply.rejected(400, "colour");
}

async fn tasks_are_read_one_by_one_in_batches_and_in_pages(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let stranger = gateway.unlimited_client().await;
    let body = json!({ "model": "imagen-4.0-partner", "prompt": "x" });
    let foreign = stranger.submit(&body).await;
    let (mut ids, mut records) = (Vec::new(), Vec::new());
    for model in [
        "imagen-4.0-partner",
        "gpt-image-2.5-async",
        "gemini-3.1-flash-image-preview",
    ] {
        let body = json!({ "model": model, "prompt": "[[sandbox:fail]]" });
        ids.push(client.submit(&body).await);
        records.push(client.wait_for_end(&ids[ids.len() - 1]).await);
    }
    let other = if ids[0].ends_with('x') { 'y' } else { 'x' };
    let unknown = format!("{}{other}", &ids[0][..ids[0].len() - 1]);
    let wanted = json!([ids[2], unknown, ids[0], foreign, ids[1], "no id", ids[0]]);
    let batch = json!({ "task_ids": wanted });
    let batch = client.post("/v1/tasks/batch", &batch).await;
    let missing = |id: &str| json!({ "id": id, "status": "not_found" });
    let expected = json!([
        records[2],
        missing(&unknown),
        records[0],
        missing(&foreign),
        records[1],
        missing("no id"),
        records[0],
    ]);
    let expected = json!({ "code": 200, "data": expected });
    assert_eq!(batch.expect(200).json(), expected);
    let many = vec![format!("\"{}\"", ids[0]); 101].join(",");
    let values = [("id", ids[0].as_str()), ("101 ids", &many)];
    cases::check(&client, "tasks_rejected", &values).await;

    // The list is newest first, and its pages have no gaps.
    let mut found = Vec::new();
    let mut path = "/v1/tasks?limit=2".to_owned();
    loop {
        let page = client.get_json(&path).await;
        found.extend(page["data"].as_array().unwrap().iter().map(|record| {
            let id = record.get("id").or_else(|| record.get("task_id"));
            id.and_then(Value::as_str).expect("an id").to_owned()
        }));
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/v1/tasks?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    ids.reverse();
    assert_eq!(found, ids);
    gateway.close().await;
}

async fn tasks_are_cancelled(backend: Backend) {
    let prices = "[price.\"imagen-4.0-partner\"]\nper_image = 2\n";
    let gateway = Setup::new(backend).config(prices).start().await;
    let client = gateway.funded_client("5").await;
    let running = client.submit(&hanging("imagen-4.0-partner")).await;
    client.wait_for_start(&running).await;
    assert_eq!(client.balances().await, (3.0, 0.0));
    let record = client.cancel(&running).await.expect(200).json();
    assert_eq!(record["data"]["error"]["code"], "cancelled");
    assert_eq!(client.balances().await, (5.0, 0.0));
    assert_eq!(client.task(&running).await, record["data"]);
    // A final state never changes: after a second cancellation, and after one of a task that has ended by itself.
    let body = json!({ "model": "imagen-4.0-partner", "prompt": "a mill" });
    let done = client.submit(&body).await;
    client.wait_for_end(&done).await;
    for id in [&running, &done] {
        let before = client.task(id).await;
        client.cancel(id).await.rejected(409, "");
        assert_eq!(client.task(id).await, before);
    }
    assert_eq!(client.balances().await, (3.0, 2.0));
    gateway.close().await;
}

async fn tasks_are_visible_to_their_user_alone(backend: Backend) {
    let gateway = TestGateway::start(backend).await;
    let owner = gateway.user_client("owner", &[]).await;
    let other_key = gateway.key("owner", &[]).await;
    let stranger = gateway.unlimited_client().await;
    let id = owner.submit(&hanging("imagen-4.0-partner")).await;
    let other = if id.ends_with('0') { '1' } else { '0' };
    let unknown = format!("{}{other}", &id[..id.len() - 1]);
    for path in ["/v1/tasks/", "/v1/images/generations/"] {
        let foreign = stranger.get(&format!("{path}{id}")).await;
        foreign.rejected(404, "");
        let nothing = owner.get(&format!("{path}{unknown}")).await;
        assert_eq!(foreign.body, nothing.expect(404).body);
        other_key.get_json(&format!("{path}{id}")).await;
    }
    let foreign = stranger.cancel(&id).await;
    foreign.rejected(404, "");
    let nothing = stranger.cancel(&unknown).await;
    assert_eq!(foreign.body, nothing.expect(404).body);
    let empty = json!({ "data": [], "next_cursor": null });
    assert_eq!(stranger.get_json("/v1/tasks").await, empty);
    assert_eq!(other_key.tasks().await[0]["id"], *id);
    other_key.cancel(&id).await.expect(200);
    gateway.close().await;
}
