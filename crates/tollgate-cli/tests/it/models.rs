//! Every image model, from a request to the decoded files; added models; and the list of models.

use serde_json::{Value, json};

use crate::harness::images::png;
use crate::harness::*;

on_sqlite!(
    every_image_model_generates_its_images,
    added_models_have_the_rules_of_the_model_they_are_like,
    models_are_listed,
    one_model_is_described_under_v1,
);

async fn every_image_model_generates_its_images(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let reference = client.upload_image(&png(360, 240)).await;
    let values = [("reference", reference.as_str())];
    cases::check(&client, "images_generated", &values).await;
    gateway.close().await;
}

async fn added_models_have_the_rules_of_the_model_they_are_like(backend: Backend) {
    let config = "[[model]]\nname = \"added-model\"\nlike = \"wan2.7-image\"\n\
                  [[model]]\nname = \"sketch\"\nlike = \"gpt-image-2\"\n\
                  [price.added-model]\nper_image = 0.25\n";
    let (gateway, client) = TestGateway::with_config(backend, config).await;
    let body = json!({ "model": "added-model", "prompt": "a hall", "size": "768*768" });
    let receipt = client.post_image(&body).await.expect(200).json();
    assert_eq!(receipt["code"], "success");
    client.wait_for_end(&task_id(&receipt)).await;
    cases::check(&client, "models_added", &[]).await;
    gateway.close().await;
}

async fn list(client: &Client) -> Vec<String> {
    let list = client.get_json("/v1/models").await;
    assert_eq!(list["object"], "list");
    let id = |model: &Value| {
        assert_eq!(model["object"], "model");
        model["id"].as_str().unwrap().to_owned()
    };
    list["data"].as_array().unwrap().iter().map(id).collect()
}

async fn models_are_listed(backend: Backend) {
    let config = "[[model]]\nname = \"added-model\"\nlike = \"wan2.7-image\"\n";
    let gateway = Setup::new(backend).config(config).start().await;
    let all = list(&gateway.unlimited_client().await).await;
    let rows: Vec<Value> = cases::rows_with("images_generated", &[("reference", "")]);
    for row in &rows[1..] {
        let model = row["body"]["model"].as_str().unwrap();
        assert!(all.iter().any(|listed| listed == model), "{model}");
    }
    assert!(all.contains(&"added-model".to_owned()));
    gateway.user("guest", &[]).await;
    let models = ["--models", "added-model,wan2.7-image"];
    let guest = gateway.key("guest", &models).await;
    assert_eq!(list(&guest).await, ["added-model", "wan2.7-image"]);
    let body = json!({ "model": "gpt-image-2-official", "prompt": "x" });
    let reply = guest.post_image(&body).await;
    reply.rejected(403, "added-model, wan2.7-image");
    let body = json!({ "model": "added-model", "prompt": "x", "size": "768x768" });
    guest.generate(&body).await;
    gateway.close().await;
}

async fn one_model_is_described_under_v1(backend: Backend) {
    let gateway = TestGateway::start(backend).await;
    gateway.user("owner", &[]).await;
    let client = gateway.key("owner", &["--models", "gpt-5,sora-2"]).await;
    let same = client.get_json("/openai/v1/models/gpt-5").await;
    assert_eq!(client.get_json("/v1/models/gpt-5").await, same);
    let video = client.get_json("/v1/models/sora-2").await;
    assert_has(&video, json!({ "id": "sora-2", "object": "model" }));
    for unknown in ["gpt-4o", "nothing", "a/b"] {
        let reply = client.get(&format!("/v1/models/{unknown}")).await;
        reply.rejected(404, "");
    }
    gateway.close().await;
}
