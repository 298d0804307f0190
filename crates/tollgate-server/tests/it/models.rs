//! Every image model of the specification, from a request to the decoded files, and a refusal of each family.

use image::ImageFormat::{self, Jpeg, Png, WebP};
use serde_json::{Value, json};

use crate::gate::{Backend, Client, Gate, Setup, links, on_one};
use crate::pictures::{decoded, png};

on_one!(
    every_model_makes_its_pictures,
    every_family_refuses_what_it_must,
    added_models_follow_the_one_they_are_like,
    models_are_listed,
);

/// Model, fields besides the prompt, and the files: how many, of which format and size. A field `reference` stands
/// for one uploaded picture of 360x240.
type Order = (&'static str, Value, usize, ImageFormat, (u32, u32));

fn orders() -> Vec<Order> {
    let small = json!({ "resolution": "0.5K", "size": "4:3" });
    let mut orders = vec![
        ("gpt-image-2-official", json!({}), 1, Png, (1024, 1024)),
        (
            "gpt-image-2-official",
            json!({ "size": "3:1", "output_format": "webp", "output_compression": 40 }),
            1,
            WebP,
            (1536, 512),
        ),
        (
            "gpt-image-2-official",
            json!({ "size": "887x1774", "output_format": "jpeg", "quality": "high" }),
            1,
            Jpeg,
            (887, 1774),
        ),
        (
            "gpt-image-2-official",
            json!({ "size": "auto", "reference": true, "n": 2 }),
            2,
            Png,
            (1536, 1024),
        ),
        (
            "gpt-image-1-official",
            json!({ "size": "2:3", "output_format": "jpeg" }),
            1,
            Jpeg,
            (1024, 1536),
        ),
        (
            "gpt-image-1.5-official",
            json!({ "background": "transparent", "n": 0 }),
            1,
            Png,
            (1024, 1024),
        ),
        (
            "grok-imagine-1.0-partner",
            json!({ "size": "9:16", "n": 3 }),
            3,
            Jpeg,
            (720, 1280),
        ),
        (
            "grok-imagine-1.0-edit-partner",
            json!({ "reference": true }),
            1,
            Jpeg,
            (1248, 832),
        ),
        (
            "imagen-4.0-partner",
            json!({ "size": "21:9" }),
            1,
            Png,
            (1408, 768),
        ),
        (
            "gemini-3.1-flash-image-preview",
            small.clone(),
            1,
            Png,
            (600, 448),
        ),
        (
            "gemini-3.1-flash-image-preview-official",
            small,
            1,
            Png,
            (600, 448),
        ),
        (
            "wan2.7-image-pro",
            json!({ "size": "800*900", "n": 2 }),
            2,
            Png,
            (800, 900),
        ),
        (
            "wan2.7-image",
            json!({ "size": "1K", "seed": 7 }),
            1,
            Png,
            (1024, 1024),
        ),
        (
            "wan2.7-image",
            json!({ "reference": true, "size": "768x768", "bbox_list": [[[1, 1, 90, 80]]] }),
            1,
            Png,
            (768, 768),
        ),
        (
            "gpt-image-2.5-async",
            json!({ "size": "1024x1365" }),
            1,
            Png,
            (1024, 1365),
        ),
    ];
    let gemini = [
        "gemini-2.5-flash-image-preview",
        "gemini-3-pro-image-preview",
    ];
    let official = [
        "gemini-2.5-flash-image-preview-official",
        "gemini-3-pro-image-preview-official",
    ];
    for model in [gemini, official].concat() {
        orders.push((model, json!({}), 1, Png, (1024, 1024)));
    }
    let seedream = [
        "doubao-seedance-4-5",
        "Doubao-Seedream-4.5",
        "doubao-seedream-4.5",
        "doubao-seedream-4-5",
    ];
    for model in seedream {
        orders.push((model, json!({ "size": "21:9" }), 1, Jpeg, (3024, 1296)));
    }
    let lite = [
        "doubao-seedream-5-0-lite",
        "doubao-seedream-5.0-lite",
        "Doubao-Seedream-5.0-lite",
    ];
    for model in lite {
        orders.push((model, json!({ "size": "3:4" }), 1, Jpeg, (1728, 2304)));
    }
    let group = json!({ "size": "3:4", "n": 2, "output_format": "png" });
    orders.push((lite[0], group, 2, Png, (1728, 2304)));
    orders
}

/// The request of an order.
fn request(model: &str, fields: &Value, reference: &str) -> Value {
    let mut body = fields.clone();
    body["model"] = model.into();
    body["prompt"] = "a harbour in the morning".into();
    if body.get("reference").is_some() {
        body["image_urls"] = json!([reference]);
        body.as_object_mut().unwrap().remove("reference");
    }
    body
}

async fn every_model_makes_its_pictures(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    let reference = client.uploaded(&png(360, 240)).await;
    let mut submitted = Vec::new();
    for (model, fields, n, format, size) in orders() {
        let body = request(model, &fields, &reference);
        submitted.push((client.submit(&body).await, body, n, format, size));
    }
    for (id, body, n, format, (width, height)) in submitted {
        let record = client.ended(&id).await;
        assert_eq!(record["status"], "completed", "{body}: {record}");
        let files = links(&record);
        assert_eq!(files.len(), n, "{body}");
        for link in files {
            let file = client.fetch(&link).await.expect(200);
            assert_eq!(decoded(&file.body), (format, width, height), "{body}");
            assert_eq!(file.header("content-type"), format.to_mime_type(), "{body}");
        }
    }
    gate.close().await;
}

async fn every_family_refuses_what_it_must(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    let link = "https://example.com/a.png";
    for (model, fields, says) in [
        (
            "gpt-image-2-official",
            json!({ "size": "1000x1000" }),
            "`size`",
        ),
        (
            "gpt-image-2-official",
            json!({ "size": "2880x2880", "resolution": "1k" }),
            "size",
        ),
        ("gpt-image-1-official", json!({ "size": "16:9" }), "`size`"),
        (
            "gpt-image-1.5-official",
            json!({ "background": "transparent", "output_format": "jpeg" }),
            "transparent",
        ),
        ("doubao-seedream-4.5", json!({ "n": 2 }), "`n`"),
        (
            "doubao-seedance-4-5",
            json!({ "resolution": "1K" }),
            "`resolution`",
        ),
        (
            "doubao-seedream-5-0-lite",
            json!({ "size": "9:21" }),
            "`size`",
        ),
        ("grok-imagine-1.0-partner", json!({ "n": 11 }), "`n`"),
        ("grok-imagine-1.0-edit-partner", json!({}), "`image_urls`"),
        (
            "imagen-4.0-partner",
            json!({ "image_urls": [link] }),
            "only supports text-to-image",
        ),
        (
            "gemini-2.5-flash-image-preview",
            json!({ "prompt": "x".repeat(1001) }),
            "`prompt`",
        ),
        (
            "gemini-3-pro-image-preview-official",
            json!({ "official_fallback": true }),
            "`official_fallback`",
        ),
        (
            "gemini-3.1-flash-image-preview",
            json!({ "engine_image_search": true }),
            "`engine_search`",
        ),
        ("wan2.7-image", json!({ "size": "4K" }), "`size`"),
        ("wan2.7-image-pro", json!({ "n": 5 }), "`n`"),
        ("gpt-image-2.5-async", json!({ "size": "1:1" }), "`size`"),
    ] {
        let mut body = json!({ "model": model, "prompt": "a harbour" });
        body.as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        let message = client
            .order(&body)
            .await
            .error(400, "invalid_request_error");
        assert!(message.contains(says), "{body}: {message}");
    }
    let tasks = client.get("/v1/tasks").await.expect(200).json();
    assert_eq!(tasks, json!({ "data": [], "next_cursor": null }));
    gate.close().await;
}

async fn added_models_follow_the_one_they_are_like(backend: Backend) {
    let gate = Setup::new(backend)
        .config(
            "[[model]]\nname = \"studio\"\nlike = \"wan2.7-image\"\n\
             [[model]]\nname = \"sketch\"\nlike = \"gpt-image-2\"\n\
             [price.studio]\nper_image = 0.25\n",
        )
        .start()
        .await;
    let client = gate.somebody().await;
    let body = json!({ "model": "studio", "prompt": "a hall", "size": "768*768" });
    let receipt = client.order(&body).await.expect(200).json();
    assert_eq!(receipt["code"], "success");
    let record = client.make(&body).await;
    assert_eq!(record["cost"], 0.25);
    let record = client
        .make(&json!({ "model": "sketch", "prompt": "a hall", "size": "3:1" }))
        .await;
    let file = client.fetch(&links(&record)[0]).await;
    assert_eq!(decoded(&file.body), (Png, 1536, 512));
    let wrong = json!({ "model": "studio", "prompt": "a hall", "size": "4K" });
    client
        .order(&wrong)
        .await
        .error(400, "invalid_request_error");
    gate.close().await;
}

async fn listed(client: &Client) -> Vec<String> {
    let list = client.get("/v1/models").await.expect(200).json();
    assert_eq!(list["object"], "list");
    let models = list["data"].as_array().unwrap().iter();
    models
        .map(|model| {
            assert_eq!(model["object"], "model");
            model["id"].as_str().unwrap().to_owned()
        })
        .collect()
}

async fn models_are_listed(backend: Backend) {
    let gate = Setup::new(backend)
        .config("[[model]]\nname = \"studio\"\nlike = \"wan2.7-image\"\n")
        .start()
        .await;
    let client = gate.somebody().await;
    let all = listed(&client).await;
    for (model, ..) in orders() {
        assert!(all.iter().any(|name| name == model), "{model}");
    }
    assert!(all.contains(&"studio".to_owned()));
    gate.user("guest", &[]).await;
    let guest = gate
        .key("guest", &["--models", "studio,wan2.7-image"])
        .await;
    assert_eq!(listed(&guest).await, ["studio", "wan2.7-image"]);
    let body = json!({ "model": "gpt-image-2-official", "prompt": "x" });
    let message = guest.order(&body).await.error(403, "permission_error");
    assert!(message.contains("studio, wan2.7-image"), "{message}");
    guest
        .make(&json!({ "model": "studio", "prompt": "x", "size": "768x768" }))
        .await;
    gate.close().await;
}
