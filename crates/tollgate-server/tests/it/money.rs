//! What is charged: prices by size, resolution and quality, per delivered picture, in each currency; and that
//! nothing is ever overdrawn.

use serde_json::{Value, json};

use crate::gate::{Backend, Client, Gate, Setup, links, on_both, status, until};

on_both!(
    prices_follow_what_is_asked,
    only_what_is_delivered_is_charged,
    currencies_have_their_prices,
    concurrent_submissions_never_overdraw,
    prices_are_read_again,
);

const PRICES: &str = r#"
[price."gpt-image-2-official"]
per_image = 0.04
when = [
  { resolution = "2k", quality = "high", per_image = 0.3 },
  { resolution = "2k", per_image = 0.19 },
  { size = "3:1", per_image = 0.05 },
  { size = "1024x1536", per_image = 0.06 },
  { quality = "low", per_image = 0.000000001 },
]
[price."wan2.7-image"]
when = [{ size = "1K", per_image = 0.1 }]
[price."grok-imagine-1.0-partner"]
per_image = 0.333333333
"#;

/// What a record says was charged.
fn cost(record: &Value) -> f64 {
    record["cost"]
        .as_f64()
        .unwrap_or_else(|| panic!("{record}"))
}

/// An order of pictures of `grok-imagine-1.0-partner`, which take `n` up to 10.
fn order(prompt: &str, n: u32) -> Value {
    json!({ "model": "grok-imagine-1.0-partner", "prompt": prompt, "n": n })
}

async fn prices_follow_what_is_asked(backend: Backend) {
    let gate = Setup::new(backend).config(PRICES).start().await;
    let client = gate.somebody_with("payer", &["--balance", "100"]).await;
    // What is held tells the price; the picture itself need not be made.
    for (model, fields, price) in [
        ("gpt-image-2-official", json!({}), 0.04),
        ("gpt-image-2-official", json!({ "n": 4 }), 0.16),
        ("gpt-image-2-official", json!({ "resolution": "2K" }), 0.19),
        (
            "gpt-image-2-official",
            json!({ "resolution": "2k", "quality": "high" }),
            0.3,
        ),
        (
            "gpt-image-2-official",
            json!({ "size": "2048x1360", "n": 2 }),
            0.38,
        ),
        (
            "gpt-image-2-official",
            json!({ "size": "3:1", "quality": "low" }),
            0.05,
        ),
        ("gpt-image-2-official", json!({ "size": "2:3" }), 0.06),
        (
            "gpt-image-2-official",
            json!({ "quality": "low", "n": 3 }),
            0.000000003,
        ),
        ("wan2.7-image", json!({}), 0.0),
        ("wan2.7-image", json!({ "size": "1k", "n": 4 }), 0.4),
        (
            "wan2.7-image",
            json!({ "size": "1k", "n": 12, "enable_sequential": true }),
            1.2,
        ),
        ("grok-imagine-1.0-partner", json!({ "n": 10 }), 3.33333333),
        ("imagen-4.0-partner", json!({}), 0.0),
    ] {
        let mut body = json!({ "model": model, "prompt": "[[sandbox:hang]]" });
        body.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        let id = client.submit(&body).await;
        let (remains, used) = client.purse().await;
        let held = 100.0 - remains;
        assert!(
            (held - price).abs() < 1e-10 && used == 0.0,
            "{body}: {held}"
        );
        client.cancel(&id).await.expect(200);
    }
    assert_eq!(client.purse().await, (100.0, 0.0));
    gate.close().await;
}

async fn only_what_is_delivered_is_charged(backend: Backend) {
    let gate = Setup::new(backend)
        .config("[price.\"grok-imagine-1.0-partner\"]\nper_image = 2\n")
        .start()
        .await;
    let client = gate.somebody_with("payer", &["--balance", "20"]).await;
    let mut spent = 0.0;
    for (prompt, n, ends, charged, pictures) in [
        ("a mill", 3, "completed", 6.0, 3),
        ("[[sandbox:partial=2]]", 5, "completed", 4.0, 2),
        ("[[sandbox:partial=9]]", 1, "completed", 2.0, 1),
        ("[[sandbox:partial=0]]", 2, "failed", 0.0, 0),
        ("[[sandbox:fail]]", 4, "failed", 0.0, 0),
        ("[[sandbox:fail=1]]", 1, "completed", 2.0, 1),
        ("[[sandbox:moderated]]", 3, "failed", 0.0, 0),
    ] {
        let id = client.submit(&order(prompt, n)).await;
        let record = client.ended(&id).await;
        spent += charged;
        assert_eq!(
            (status(&record), cost(&record)),
            (ends, charged),
            "{prompt}: {record}"
        );
        if pictures > 0 {
            assert_eq!(links(&record).len(), pictures, "{prompt}");
        }
        assert_eq!(client.purse().await, (20.0 - spent, spent), "{prompt}");
    }
    // Asked for more than there is: nothing happens.
    client
        .order(&order("a mill", 4))
        .await
        .error(402, "payment_required");
    assert_eq!(client.purse().await, (6.0, 14.0));
    // All that there is may be held, and comes back.
    let held = client.submit(&order("[[sandbox:hang]]", 3)).await;
    assert_eq!(client.purse().await, (0.0, 14.0));
    client
        .order(&order("a mill", 1))
        .await
        .error(402, "payment_required");
    client.cancel(&held).await.expect(200);
    assert_eq!(client.purse().await, (6.0, 14.0));
    gate.close().await;
}

async fn currencies_have_their_prices(backend: Backend) {
    let wan = |model: &str| json!({ "model": model, "prompt": "x", "size": "768x768", "n": 2 });
    let gate = Setup::new(backend)
        .config("currency = \"CNY\"\n[price.\"wan2.7-image\"]\nper_image = 0.3\n")
        .start()
        .await;
    let client = gate.somebody_with("payer", &["--balance", "1.7"]).await;
    assert_eq!(cost(&client.make(&wan("wan2.7-image-pro")).await), 1.0);
    assert_eq!(
        cost(&client.make(&wan("wan2.7-image")).await),
        0.6,
        "what is configured goes first"
    );
    let message = client
        .order(&wan("wan2.7-image"))
        .await
        .error(402, "payment_required");
    assert!(message.contains("0.1 CNY"), "{message}");
    gate.close().await;

    let gate = Setup::new(backend)
        .config("currency = \"Tokens\"\n[price.\"wan2.7-image\"]\nper_image = 1500\n")
        .start()
        .await;
    let client = gate.somebody_with("payer", &["--balance", "5000"]).await;
    assert_eq!(cost(&client.make(&wan("wan2.7-image")).await), 3000.0);
    assert_eq!(
        cost(&client.make(&wan("wan2.7-image-pro")).await),
        0.0,
        "built in for CNY alone"
    );
    let message = client
        .order(&wan("wan2.7-image"))
        .await
        .error(402, "payment_required");
    assert!(message.contains("2000 Tokens"), "{message}");
    gate.close().await;
}

async fn concurrent_submissions_never_overdraw(backend: Backend) {
    let gate = Setup::new(backend)
        .config("[price.\"grok-imagine-1.0-partner\"]\nper_image = 0.5\n")
        .start()
        .await;
    // The user has money for 7; of the other's two keys one has a quota for 3.
    let first = gate.somebody_with("seven", &["--balance", "3.7"]).await;
    gate.user("shared", &["--balance", "2.5"]).await;
    let three = gate.key("shared", &["--quota", "1.5"]).await;
    let open = gate.key("shared", &[]).await;
    let taken = crowd(&[&first; 50]).await;
    assert_eq!(taken, [7]);
    let (remains, used) = first.purse().await;
    assert!(
        (remains - 0.2).abs() < 1e-9 && used == 0.0,
        "{remains} {used}"
    );
    let mixed: Vec<&Client> = (0..40).flat_map(|_| [&three, &open]).take(40).collect();
    let taken = crowd(&mixed).await;
    assert_eq!(taken.iter().sum::<u32>(), 5, "{taken:?}");
    let of_three = three.balance().await["remain_balance"].as_f64().unwrap();
    assert!(of_three >= 0.0, "{of_three}");
    assert_eq!(open.purse().await.0, 0.0);
    for client in [&first, &open] {
        for task in client.get("/v1/tasks?limit=100").await.json()["data"]
            .as_array()
            .unwrap()
        {
            client
                .cancel(task["id"].as_str().unwrap())
                .await
                .expect(200);
        }
    }
    assert_eq!(first.purse().await, (3.7, 0.0));
    assert_eq!(open.purse().await, (2.5, 0.0));
    gate.close().await;
}

/// Everybody submits at once; how many submissions were taken, of each key. All others are refused with 402.
async fn crowd(clients: &[&Client]) -> Vec<u32> {
    let submissions: Vec<_> = clients
        .iter()
        .map(|client| {
            let client = (*client).clone();
            tokio::spawn(async move {
                (
                    client.key_id.clone(),
                    client.order(&order("[[sandbox:hang]]", 1)).await,
                )
            })
        })
        .collect();
    let mut taken = std::collections::BTreeMap::new();
    for submission in submissions {
        let (key, reply) = submission.await.unwrap();
        match reply.status {
            200 => *taken.entry(key).or_insert(0) += 1,
            _ => drop(reply.error(402, "payment_required")),
        }
    }
    taken.into_values().collect()
}

async fn prices_are_read_again(backend: Backend) {
    let price =
        |amount: &str| format!("[price.\"grok-imagine-1.0-partner\"]\nper_image = {amount}\n");
    let gate = Setup::new(backend).config(&price("1")).start().await;
    let client = gate.somebody_with("payer", &["--balance", "100"]).await;
    let early = client.submit(&order("[[sandbox:delay=700]]", 1)).await;
    gate.set_config(&price("3"));
    gate.signal("HUP").await;
    let heard = async |words: &str, gate: &Gate| {
        until(words, async || gate.log().contains(words).then_some(())).await;
    };
    heard("channels and prices were read again", &gate).await;
    assert_eq!(cost(&client.make(&order("a mill", 1)).await), 3.0);
    assert_eq!(
        cost(&client.ended(&early).await),
        1.0,
        "frozen when it was taken"
    );
    // A file that is wrong changes nothing.
    gate.set_config("[price.\"grok-imagine-1.0-partner\"]\nper_picture = 5\n");
    gate.signal("HUP").await;
    heard("the configuration was not taken", &gate).await;
    assert!(gate.log().contains("per_picture"));
    assert_eq!(cost(&client.make(&order("a mill", 1)).await), 3.0);
    gate.set_config(&price("3"));
    gate.close().await;
}
