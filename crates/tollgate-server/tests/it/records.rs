//! Receipts and records of every shape, and the ways to a user's tasks.

use serde_json::{Value, json};

use crate::gate::{Backend, Client, Gate, Setup, links, on_both, status, task_id};

on_both!(
    receipts_and_records_have_their_familys_shape,
    tasks_are_found_one_by_one_in_batches_and_in_pages,
    tasks_are_cancelled,
    tasks_are_their_users_alone,
);

const DAY: i64 = 86_400;

/// The names of an object's members, sorted.
#[track_caller]
pub(crate) fn names(value: &Value) -> Vec<&str> {
    let members = value.as_object().unwrap_or_else(|| panic!("{value}"));
    let mut names: Vec<&str> = members.keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// The time in Unix seconds.
pub(crate) fn now() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap().as_secs().cast_signed()
}

/// Whether a moment in Unix seconds is about `expected`.
pub(crate) fn about(value: &Value, expected: i64) -> bool {
    value.as_i64().is_some_and(|at| (at - expected).abs() < 120)
}

/// An order that nobody finishes: it waits for its cancellation.
fn hanging(model: &str) -> Value {
    json!({ "model": model, "prompt": "[[sandbox:hang]]" })
}

async fn receipts_and_records_have_their_familys_shape(backend: Backend) {
    let gate = Setup::new(backend)
        .config("[price.\"imagen-4.0-partner\"]\nper_image = 0.125\n")
        .start()
        .await;
    let client = gate.somebody().await;
    standard(&client).await;
    processing(&client).await;
    asynchronous(&client).await;
    long_links(&client).await;
    adjustments(&client).await;
    gate.close().await;
}

async fn standard(client: &Client) {
    let body = json!({ "model": "imagen-4.0-partner", "prompt": "a mill" });
    let receipt = client.order(&body).await.expect(200).json();
    let id = task_id(&receipt);
    assert_eq!(
        receipt,
        json!({ "code": 200, "data": [{ "status": "submitted", "task_id": id }] })
    );
    client.ended(&id).await;
    let record = client
        .get(&format!("/v1/tasks/{id}"))
        .await
        .expect(200)
        .json();
    assert_eq!(names(&record), ["code", "data"]);
    assert_eq!(record["code"], 200);
    let data = &record["data"];
    let members = [
        "actual_time",
        "cost",
        "created_at",
        "id",
        "progress",
        "result",
        "status",
    ];
    assert_eq!(names(data), members);
    assert_eq!(data["id"], *id);
    assert_eq!(
        (&data["status"], &data["progress"]),
        (&json!("completed"), &json!(100))
    );
    assert_eq!(data["cost"], 0.125);
    assert!(
        data["actual_time"].is_i64() && about(&data["created_at"], now()),
        "{data}"
    );
    let image = &data["result"]["images"][0];
    assert_eq!(names(image), ["expires_at", "url"]);
    assert!(about(&image["expires_at"], now() + DAY), "{image}");
    let link = image["url"][0].as_str().unwrap();
    assert!(link.starts_with(&client.url("/files/")), "{link}");

    let shown = client
        .get(&format!("/v1/images/generations/{id}"))
        .await
        .expect(200)
        .json();
    assert_eq!(
        shown,
        json!({ "task_id": id, "status": "completed", "progress": 100, "url": link, "fail_reason": "" })
    );

    let id = client
        .submit(&json!({ "model": "imagen-4.0-partner", "prompt": "[[sandbox:fail]]" }))
        .await;
    let record = client.ended(&id).await;
    let members = [
        "actual_time",
        "cost",
        "created_at",
        "error",
        "id",
        "progress",
        "status",
    ];
    assert_eq!(names(&record), members);
    assert_eq!(
        (&record["status"], &record["cost"]),
        (&json!("failed"), &json!(0.0))
    );
    assert_eq!(record["error"]["code"], "provider_error");
    let shown = client
        .get(&format!("/v1/images/generations/{id}"))
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&shown["status"], &shown["url"]),
        (&json!("failed"), &json!(""))
    );
    assert_eq!(shown["fail_reason"], record["error"]["message"]);

    let id = client.submit(&hanging("imagen-4.0-partner")).await;
    client.started(&id).await;
    let record = client.task(&id).await;
    assert_eq!(
        names(&record),
        [
            "actual_time",
            "cost",
            "created_at",
            "id",
            "progress",
            "status"
        ]
    );
    assert_eq!(
        (&record["cost"], &record["actual_time"]),
        (&json!(0.0), &json!(0))
    );
    client.cancel(&id).await.expect(200);
}

async fn processing(client: &Client) {
    let body = json!({ "model": "wan2.7-image", "prompt": "a mill", "size": "768x768" });
    let receipt = client.order(&body).await.expect(200).json();
    let id = task_id(&receipt);
    let task = json!({ "task_id": id, "status": "processing" });
    assert_eq!(
        receipt,
        json!({ "code": "success", "message": "", "data": [task] })
    );
    client.ended(&id).await;
    let record = client
        .get(&format!("/v1/tasks/{id}"))
        .await
        .expect(200)
        .json();
    assert_eq!(
        (&record["code"], &record["data"]["status"]),
        (&json!(200), &json!("completed"))
    );
    assert_eq!(links(&record["data"]).len(), 1);

    let id = client.submit(&hanging("wan2.7-image")).await;
    assert_eq!(status(&client.task(&id).await), "processing");
    let record = client.cancel(&id).await.expect(200).json();
    assert_eq!(
        (&record["code"], status(&record["data"])),
        (&json!(200), "failed")
    );
    assert_eq!(record["data"]["error"]["code"], "cancelled");
}

async fn asynchronous(client: &Client) {
    let body = json!({ "model": "gpt-image-2.5-async", "prompt": "a mill", "quality": "medium" });
    let receipt = client.order(&body).await.expect(200).json();
    let members = [
        "created_at",
        "id",
        "mode",
        "model",
        "quality",
        "size",
        "status",
    ];
    assert_eq!(names(&receipt), members);
    for (name, value) in [
        ("status", "queued"),
        ("mode", "generate"),
        ("model", "gpt-image-2.5-async"),
        ("size", "1024x1024"),
        ("quality", "medium"),
    ] {
        assert_eq!(receipt[name], value, "{name}");
    }
    let created_at = receipt["created_at"].as_str().unwrap();
    let pattern: String = created_at
        .chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect();
    assert_eq!(pattern, "0000-00-00 00:00:00");

    let id = task_id(&receipt);
    let record = client.ended(&id).await;
    assert_eq!(
        (&record["task_id"], &record["progress"]),
        (&json!(id), &json!("100%"))
    );
    let link = record["result_url"].as_str().unwrap();
    let item = &record["result"]["items"][0];
    assert_eq!(
        (&item["status"], &item["data"]),
        (&json!("success"), &json!([{ "url": link }]))
    );
    assert!(
        item["id"].is_string() && about(&record["expires_at"], now() + DAY),
        "{record}"
    );
    client.fetch(link).await.expect(200);

    let failing = json!({ "model": "gpt-image-2.5-async", "prompt": "[[sandbox:fail]]" });
    let record = client.ended(&client.submit(&failing).await).await;
    assert_eq!(
        (status(&record), &record["result_url"]),
        ("failed", &json!(""))
    );
    assert_eq!(record["error"]["code"], "provider_error");

    let id = client.submit(&hanging("gpt-image-2.5-async")).await;
    assert!(["queued", "in_progress"].contains(&status(&client.task(&id).await)));
    let record = client.cancel(&id).await.expect(200).json();
    assert_eq!(
        (status(&record), &record["error"]["code"]),
        ("cancelled", &json!("cancelled"))
    );
}

async fn long_links(client: &Client) {
    let body = json!({ "model": "doubao-seedream-5.0-lite", "prompt": "a mill", "size": "3:4" });
    let record = client.make(&body).await;
    let expires_at = &record["result"]["images"][0]["expires_at"];
    assert!(about(expires_at, now() + 3 * DAY), "{record}");
}

async fn adjustments(client: &Client) {
    let asked =
        json!({ "model": "gpt-image-1-official", "prompt": "a mill", "n": -2, "colour": "red" });
    let receipt = client.order(&asked).await.expect(200).json();
    let listed = receipt["data"][0]["adjustments"].clone();
    let summary: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|a| {
            assert_eq!(names(a), ["asked", "field", "used", "why"]);
            (a["field"].clone(), a["asked"].clone(), a["used"].clone())
        })
        .collect();
    assert!(
        summary.contains(&(json!("n"), json!(-2), json!(1))),
        "{listed}"
    );
    assert!(
        summary.contains(&(json!("colour"), json!("red"), Value::Null)),
        "{listed}"
    );
    let record = client.ended(&task_id(&receipt)).await;
    assert_eq!(record["adjustments"], listed);

    let strict = [("x-tollgate-strict", "true")];
    let reply = client
        .post_with("/v1/images/generations", &asked, &strict)
        .await;
    let message = reply.error(400, "invalid_request_error");
    assert!(message.contains("colour"), "{message}");
}

async fn tasks_are_found_one_by_one_in_batches_and_in_pages(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    let stranger = gate.somebody().await;
    let foreign = stranger
        .submit(&json!({ "model": "imagen-4.0-partner", "prompt": "x" }))
        .await;
    let mut ids = Vec::new();
    for model in [
        "imagen-4.0-partner",
        "gpt-image-2.5-async",
        "gemini-3.1-flash-image-preview",
    ] {
        let body = json!({ "model": model, "prompt": "[[sandbox:fail]]" });
        ids.push(client.submit(&body).await);
        client.ended(&ids[ids.len() - 1]).await;
    }
    let other = if ids[0].ends_with('x') { 'y' } else { 'x' };
    let unknown = format!("{}{other}", &ids[0][..ids[0].len() - 1]);
    let asked = json!({ "task_ids": [ids[2], unknown, ids[0], foreign, ids[1], "no id", ids[0]] });
    let batch = client
        .post("/v1/tasks/batch", &asked)
        .await
        .expect(200)
        .json();
    assert_eq!(
        (names(&batch), &batch["code"]),
        (vec!["code", "data"], &json!(200))
    );
    let missing = |id: &str| json!({ "id": id, "status": "not_found" });
    let first = client.task(&ids[0]).await;
    let expected = json!([
        client.task(&ids[2]).await,
        missing(&unknown),
        first,
        missing(&foreign),
        client.task(&ids[1]).await,
        missing("no id"),
        first,
    ]);
    assert_eq!(batch["data"], expected);
    let many: Vec<&String> = std::iter::repeat_n(&ids[0], 101).collect();
    for wrong in [
        json!({}),
        json!([]),
        json!({ "task_ids": [] }),
        json!({ "task_ids": many }),
        json!({ "task_ids": [1] }),
        json!({ "task_ids": ids[0] }),
    ] {
        let reply = client.post("/v1/tasks/batch", &wrong).await;
        let message = reply.error(400, "invalid_request_error");
        assert!(message.contains("`task_ids`"), "{message}");
    }

    // Newest first, in pages that fit together.
    let mut found = Vec::new();
    let mut path = "/v1/tasks?limit=2".to_owned();
    loop {
        let page = client.get(&path).await.expect(200).json();
        found.extend(page["data"].as_array().unwrap().iter().map(|record| {
            let id = record.get("id").or_else(|| record.get("task_id"));
            id.and_then(Value::as_str).expect("an id").to_owned()
        }));
        match page["next_cursor"].as_str() {
            Some(cursor) => path = format!("/v1/tasks?limit=2&cursor={cursor}"),
            None => break,
        }
    }
    let newest_first: Vec<String> = ids.iter().rev().cloned().collect();
    assert_eq!(found, newest_first);
    for query in [
        "limit=0",
        "limit=101",
        "limit=x",
        "limit=-1",
        "cursor=x",
        "cursor=%27",
    ] {
        let reply = client.get(&format!("/v1/tasks?{query}")).await;
        reply.error(400, "invalid_request_error");
    }
    gate.close().await;
}

async fn tasks_are_cancelled(backend: Backend) {
    let gate = Setup::new(backend)
        .config("[price.\"imagen-4.0-partner\"]\nper_image = 2\n")
        .start()
        .await;
    let client = gate.somebody_with("payer", &["--balance", "5"]).await;
    // One that runs.
    let running = client.submit(&hanging("imagen-4.0-partner")).await;
    client.started(&running).await;
    assert_eq!(client.purse().await, (3.0, 0.0));
    let record = client.cancel(&running).await.expect(200).json();
    assert_eq!(record["data"]["error"]["code"], "cancelled");
    assert_eq!(client.purse().await, (5.0, 0.0));
    assert_eq!(client.task(&running).await, record["data"]);
    // Once more, and one that has ended by itself.
    let done = client
        .submit(&json!({ "model": "imagen-4.0-partner", "prompt": "a mill" }))
        .await;
    client.ended(&done).await;
    for id in [&running, &done] {
        let before = client.task(id).await;
        client.cancel(id).await.error(409, "invalid_request_error");
        assert_eq!(client.task(id).await, before, "a final state never changes");
    }
    assert_eq!(client.purse().await, (3.0, 2.0));
    gate.close().await;
}

async fn tasks_are_their_users_alone(backend: Backend) {
    let gate = Gate::start(backend).await;
    gate.user("one", &[]).await;
    let (mine, also_mine) = (gate.key("one", &[]).await, gate.key("one", &[]).await);
    let stranger = gate.somebody().await;
    let id = mine.submit(&hanging("imagen-4.0-partner")).await;
    let other = if id.ends_with('0') { '1' } else { '0' };
    let unknown = format!("{}{other}", &id[..id.len() - 1]);
    let paths = |id: &str| {
        [
            format!("/v1/tasks/{id}"),
            format!("/v1/images/generations/{id}"),
        ]
    };
    for (path, of_nothing) in paths(&id).iter().zip(paths(&unknown)) {
        let foreign = stranger.get(path).await;
        foreign.error(404, "not_found_error");
        assert_eq!(foreign.body, mine.get(&of_nothing).await.expect(404).body);
        also_mine.get(path).await.expect(200);
    }
    let foreign = stranger.cancel(&id).await;
    foreign.error(404, "not_found_error");
    assert_eq!(
        foreign.body,
        stranger.cancel(&unknown).await.expect(404).body
    );
    let empty = json!({ "data": [], "next_cursor": null });
    assert_eq!(stranger.get("/v1/tasks").await.json(), empty);
    assert_eq!(
        also_mine.get("/v1/tasks").await.json()["data"][0]["id"],
        *id
    );
    also_mine.cancel(&id).await.expect(200);
    gate.close().await;
}
