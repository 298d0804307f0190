//! Usage as the admin API reports it.

use serde_json::{Value, json};

use super::{ADMIN, image, priced_gateway, send};
use crate::harness::*;

on_both!(usage_is_reported_by_time_model_user_key_and_channel);

async fn usage_is_reported_by_time_model_user_key_and_channel(backend: Backend) {
    let (gateway, owner, client) = priced_gateway(backend).await;
    let get = async |query: &str| owner.get_json(&format!("{ADMIN}/usage{query}")).await;
    let nothing = json!([{ "cost": "0", "requests": 0, "tokens": 0, "images": 0, "seconds": 0, "failed": 0 }]);
    assert_eq!(get("").await["data"], nothing);
    assert_eq!(get("?group_by=model").await["data"], json!([]));
    let say =
        |text: &str| json!({ "model": "gpt-5", "messages": [{ "role": "user", "content": text }] });
    let chats = "/v1/chat/completions";
    client.post(chats, &say("Hello")).await.expect(200);
    let fails = client.post(chats, &say("[[sandbox:status=500]]")).await;
    assert_ne!(fails.status, 200);
    let task = task_id(&client.generate(&image("a mill")).await);
    let part = json!({ "amount": "0.1", "reason": "too dark" });
    let path = format!("/tasks/{task}/refund");
    let refund = send(&owner, "POST", &path, &[("idempotency-key", "1")], &part);
    refund.await.expect(201);

    let data = get("?group_by=hour,model,user,key,channel").await["data"].clone();
    let rows = data.as_array().unwrap();
    let of = |model: &str, channel: Value| {
        let is_it = |row: &&Value| row["model"] == model && row["channel"] == channel;
        rows.iter().find(is_it).unwrap_or_else(|| panic!("{data}"))
    };
    let key = gateway
        .query("SELECT id, user_id FROM keys")
        .await
        .remove(0);
    let image = of("gpt-image-2-official", json!("sandbox"));
    assert_has(
        image,
        json!({ "hour": "<string>", "key_id": key[0], "user_id": key[1], "cost": "0.3", "requests": 1, "tokens": 0, "images": 1, "seconds": 0, "failed": 0 }),
    );
    let spent = gateway
        .query("SELECT SUM(settled), SUM(input + output) FROM chats")
        .await;
    let chats = get("?metric=failed,requests,tokens,cost&model=gpt-5").await["data"].clone();
    assert_has(
        &chats,
        json!([{ "requests": 2, "failed": 1, "tokens": spent[0][1].parse::<i64>().unwrap() }]),
    );
    let cost: f64 = chats[0]["cost"].as_str().unwrap().parse().unwrap();
    assert_eq!((cost * 1e9).round().to_string(), spent[0][0]);
    assert_eq!(
        chats[0]["images"],
        Value::Null,
        "a metric that was not requested"
    );
    let day = get("?group_by=day&metric=images,requests").await;
    assert_has(
        &day,
        json!({ "data": [{ "day": "<string>", "images": 1, "requests": 3 }], "next_cursor": null, "watermark": "<string>" }),
    );
    assert!(
        day["data"][0]["day"]
            .as_str()
            .unwrap()
            .ends_with("T00:00:00.000Z")
    );
    assert_eq!(get("?to=2020-01-01T00:00:00Z").await["data"], nothing);

    // Pages and CSV have the same rows as the list.
    let (mut paged, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = get(&format!(
            "?group_by=hour,model,user,key,channel&limit=1{cursor}"
        ))
        .await;
        paged.extend(page["data"].as_array().unwrap().clone());
        let Some(next) = page["next_cursor"].as_str() else {
            break;
        };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(&paged, rows);
    let path = format!("{ADMIN}/usage?group_by=model&metric=requests");
    let csv = owner.send_with("GET", &path, &[("accept", "text/csv")], "");
    assert_eq!(
        csv.await.expect(200).text(),
        "model,requests\r\ngpt-5,2\r\ngpt-image-2-official,1\r\n"
    );

    // The roll-up does not change the sums.
    until_true("the roll-up", async || {
        gateway
            .query_number("SELECT COUNT(*) FROM usage_pending")
            .await
            == 0
    })
    .await;
    assert_eq!(
        &get("?group_by=hour,model,user,key,channel").await["data"],
        &data
    );
    gateway.close().await;
}
