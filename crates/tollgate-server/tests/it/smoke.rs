//! The first thing anybody does: a user, a key, a picture, the bill.

use serde_json::json;

use crate::gate::{Backend, Gate, links, on_both};

on_both!(a_picture_is_made);

async fn a_picture_is_made(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    let record = client
        .make(&json!({ "model": "gpt-image-2-official", "prompt": "a lighthouse", "size": "3:2" }))
        .await;
    assert_eq!(record["progress"], 100);
    let file = client.fetch(&links(&record)[0]).await.expect(200);
    let picture = image::load_from_memory(&file.body).unwrap();
    assert_eq!((picture.width(), picture.height()), (1536, 1024));
    gate.close().await;
}
