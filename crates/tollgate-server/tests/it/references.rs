//! Pictures that come with a request: uploads and data URIs are checked when it is taken, other URLs when it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::response::Redirect;
use axum::routing::get;
use image::ImageFormat;
use serde_json::{Value, json};

use crate::gate::{Backend, Client, Gate, Setup, links, on_both, on_one, status};
use crate::pictures::{data_uri, decoded, mask, opaque, png};

on_one!(
    uploads_are_checked_at_submission,
    data_uris_are_checked_at_submission
);
on_both!(
    urls_are_fetched_when_the_task_runs,
    private_addresses_are_out_of_reach
);

/// A request with reference pictures.
fn order(model: &str, images: &[&str]) -> Value {
    json!({ "model": model, "prompt": "a mill", "image_urls": images })
}

async fn uploads_are_checked_at_submission(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    let square = client.uploaded(&png(300, 300)).await;
    let wide = client.uploaded(&png(400, 100)).await;
    let tiny = client.uploaded(&png(14, 14)).await;
    let gif = client.uploaded(&opaque(ImageFormat::Gif, 300, 300)).await;
    let (fitting, small) = (
        client.uploaded(&mask(300, 300)).await,
        client.uploaded(&mask(299, 300)).await,
    );
    let mut heavy = png(300, 300);
    heavy.resize(10 * 1_048_576 + 1, 0);
    let heavy = client.uploaded(&heavy).await;
    let missing = format!("{}{}", &square[..square.len() - 6], "zz.png");
    for (model, images, mask, says) in [
        (
            "gpt-image-2-official",
            vec![&square],
            Some(&square),
            "`mask_url` must have an alpha",
        ),
        (
            "gpt-image-2-official",
            vec![&square],
            Some(&small),
            "`mask_url` must have the size",
        ),
        (
            "gpt-image-1-official",
            vec![&wide],
            Some(&fitting),
            "`mask_url` must have the size",
        ),
        (
            "gpt-image-2-official",
            vec![],
            Some(&fitting),
            "`mask_url` requires `image_urls`",
        ),
        (
            "gpt-image-2-official",
            vec![&square; 17],
            None,
            "at most 16 images",
        ),
        (
            "gpt-image-2-official",
            vec![&square, &missing],
            None,
            "`image_urls[1]`",
        ),
        ("doubao-seedream-4.5", vec![&wide], None, "ratio"),
        (
            "doubao-seedream-4.5",
            vec![&square, &tiny],
            None,
            "`image_urls[1]`",
        ),
        ("doubao-seedream-4.5", vec![&heavy], None, "10 MB"),
        ("wan2.7-image", vec![&wide], None, "240 to 8000"),
        ("wan2.7-image", vec![&gif], None, "got gif"),
        ("gemini-3-pro-image-preview", vec![&gif], None, "got gif"),
    ] {
        let images: Vec<&str> = images.into_iter().map(String::as_str).collect();
        let mut body = order(model, &images);
        if let Some(mask) = mask {
            body["mask_url"] = mask.as_str().into();
        }
        let message = client
            .order(&body)
            .await
            .error(400, "invalid_request_error");
        assert!(message.contains(says), "{model}: {message}, not {says}");
    }
    let boxes = json!({
        "model": "wan2.7-image", "prompt": "x", "image_urls": [square], "bbox_list": [[[0, 0, 301, 20]]],
    });
    let message = client
        .order(&boxes)
        .await
        .error(400, "invalid_request_error");
    assert!(message.contains("bbox_list"), "{message}");

    let mut body = order("gpt-image-2-official", &[&square]);
    body["mask_url"] = fitting.as_str().into();
    client.make(&body).await;
    // The picture's own ratio decides where the size says so.
    let mut body = order("gpt-image-2-official", &[&wide]);
    body["size"] = "auto".into();
    let record = client.make(&body).await;
    let file = client.fetch(&links(&record)[0]).await.expect(200);
    assert_eq!(decoded(&file.body), (ImageFormat::Png, 1536, 512));
    gate.close().await;
}

async fn data_uris_are_checked_at_submission(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    let (square, jpeg) = (png(300, 300), opaque(ImageFormat::Jpeg, 300, 300));
    let webp = opaque(ImageFormat::WebP, 300, 300);
    let good = data_uri("image/png", &square);
    for (model, image, says) in [
        ("gpt-image-2-official", good.clone(), "/v1/uploads/images"),
        ("gpt-image-1.5-official", good.clone(), "/v1/uploads/images"),
        (
            "doubao-seedream-4.5",
            data_uri("image/webp", &webp),
            "`image_urls[0]`",
        ),
        (
            "doubao-seedream-4.5",
            data_uri("image/png", &jpeg),
            "`image_urls[0]`",
        ),
        (
            "doubao-seedream-4.5",
            data_uri("text/plain", &square),
            "`image_urls[0]`",
        ),
        (
            "doubao-seedream-4.5",
            data_uri("image/png", b"no picture"),
            "`image_urls[0]`",
        ),
        (
            "doubao-seedream-4.5",
            data_uri("image/png", &png(400, 100)),
            "ratio",
        ),
        ("doubao-seedream-4.5", format!("{good}*"), "base64"),
        ("doubao-seedream-4.5", good.replace(";base64", ""), "base64"),
        (
            "doubao-seedream-4.5",
            "data:image/png;base64,".to_owned(),
            "`image_urls[0]`",
        ),
        (
            "wan2.7-image",
            data_uri("image/png", &png(239, 300)),
            "240 to 8000",
        ),
        (
            "grok-imagine-1.0-edit-partner",
            data_uri("image/bmp", b"BM"),
            "`image_urls[0]`",
        ),
    ] {
        let message = client
            .order(&order(model, &[&image]))
            .await
            .error(400, "invalid_request_error");
        assert!(message.contains(says), "{model}: {message}, not {says}");
        assert!(message.len() < 1000, "what came is not sent back");
    }
    for (model, image) in [
        ("doubao-seedream-4.5", &good),
        (
            "gemini-2.5-flash-image-preview",
            &data_uri("image/webp", &webp),
        ),
        (
            "wan2.7-image",
            &data_uri("image/bmp", &opaque(ImageFormat::Bmp, 300, 300)),
        ),
        (
            "grok-imagine-1.0-edit-partner",
            &data_uri("image/jpeg", &jpeg),
        ),
    ] {
        client.make(&order(model, &[image])).await;
    }
    // Private copies go when their task has ended.
    let private = gate.data_dir().join("files/private");
    crate::gate::until("no private copies", async || {
        is_empty(&private).then_some(())
    })
    .await;
    gate.close().await;
}

fn is_empty(folder: &std::path::Path) -> bool {
    let mut entries = std::fs::read_dir(folder).unwrap().flatten();
    entries.all(|entry| entry.path().is_dir() && is_empty(&entry.path()))
}

/// A server of pictures on this machine; it counts who comes.
async fn site() -> (String, Arc<AtomicU32>) {
    let visits = Arc::new(AtomicU32::new(0));
    let mut heavy = png(300, 300);
    heavy.resize(10 * 1_048_576 + 1, 0);
    let file = |bytes: Vec<u8>| get(move || async move { bytes });
    let router = Router::new()
        .route("/good.png", file(png(300, 300)))
        .route("/wide.png", file(png(400, 100)))
        .route("/tiny.png", file(png(9, 9)))
        .route("/heavy.png", file(heavy))
        .route("/mask.png", file(mask(300, 300)))
        .route("/page.png", file(b"<html></html>".to_vec()))
        .route("/hop", get(|| async { Redirect::temporary("/good.png") }))
        .route("/loop", get(|| async { Redirect::temporary("/loop") }))
        .route(
            "/away",
            get(|| async { Redirect::temporary("http://10.0.0.1/good.png") }),
        )
        .route(
            "/file",
            get(|| async { Redirect::temporary("file:///etc/passwd") }),
        );
    let counted = Arc::clone(&visits);
    let router = router.layer(axum::middleware::from_fn(
        move |request, next: axum::middleware::Next| {
            counted.fetch_add(1, Ordering::Relaxed);
            next.run(request)
        },
    ));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (format!("http://{address}"), visits)
}

const PRICES: &str = "[price.\"doubao-seedream-4.5\"]\nper_image = 1\n[price.\"gpt-image-2-official\"]\nper_image = 1\n";

async fn urls_are_fetched_when_the_task_runs(backend: Backend) {
    let (site, _) = site().await;
    let gate = Setup::new(backend)
        .config(&format!(
            "media.allow_private_urls = [\"127.0.0.0/8\"]\n{PRICES}"
        ))
        .start()
        .await;
    let client = gate.somebody_with("payer", &["--balance", "5"]).await;
    let at = |path: &str| format!("{site}/{path}");
    let mut tasks = Vec::new();
    for (path, says) in [
        ("wide.png", "ratio"),
        ("tiny.png", "`image_urls[0]`"),
        ("heavy.png", "larger than 10485760 bytes"),
        ("page.png", "`image_urls[0]`"),
        ("missing", "HTTP status 404"),
        ("loop", "redirects more than"),
        ("away", "not public"),
        ("file", "redirects to"),
    ] {
        let body = order("doubao-seedream-4.5", &[&at(path)]);
        let id = client.submit(&body).await;
        failed(&client, &id, says).await;
        tasks.push(id);
    }
    let mut body = order("gpt-image-2-official", &[&at("wide.png")]);
    body["mask_url"] = at("mask.png").into();
    let id = client.submit(&body).await;
    failed(&client, &id, "`mask_url` must have the size").await;
    body["mask_url"] = at("good.png").into();
    let id = client.submit(&body).await;
    failed(&client, &id, "`mask_url` must have an alpha").await;
    assert_eq!(client.purse().await, (5.0, 0.0), "what failed was free");

    client
        .make(&order(
            "doubao-seedream-4.5",
            &[&at("good.png"), &at("hop")],
        ))
        .await;
    let mut body = order("gpt-image-2-official", &[&at("good.png")]);
    body["mask_url"] = at("mask.png").into();
    body["size"] = "auto".into();
    let record = client.make(&body).await;
    let file = client.fetch(&links(&record)[0]).await.expect(200);
    assert_eq!(decoded(&file.body), (ImageFormat::Png, 1024, 1024));
    assert_eq!(client.purse().await, (3.0, 2.0));
    gate.close().await;
}

async fn private_addresses_are_out_of_reach(backend: Backend) {
    let (site, visits) = site().await;
    let gate = Setup::new(backend).config(PRICES).start().await;
    let client = gate.somebody_with("payer", &["--balance", "1"]).await;
    let port = site.rsplit(':').next().unwrap();
    for host in [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0.0.0.0",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "169.254.169.254",
    ] {
        let url = format!("http://{host}:{port}/good.png");
        let reply = client.order(&order("doubao-seedream-4.5", &[&url])).await;
        if reply.status == 200 {
            failed(
                &client,
                &crate::gate::task_id(&reply.json()),
                "`image_urls[0]`",
            )
            .await;
        } else {
            reply.error(400, "invalid_request_error");
        }
    }
    for url in [
        "file:///etc/passwd",
        "ftp://example.com/a.png",
        "gopher://127.0.0.1/",
        "javascript:alert(1)",
        "//example.com/a.png",
        "a.png",
        "",
        "http://",
    ] {
        let reply = client.order(&order("doubao-seedream-4.5", &[url])).await;
        reply.error(400, "invalid_request_error");
    }
    assert_eq!(visits.load(Ordering::Relaxed), 0, "nobody came");
    assert_eq!(client.purse().await, (1.0, 0.0));
    gate.close().await;
}

/// The task fails for its request, and says why.
async fn failed(client: &Client, id: &str, says: &str) {
    let record = client.ended(id).await;
    assert_eq!(
        (status(&record), &record["cost"]),
        ("failed", &json!(0.0)),
        "{record}"
    );
    assert_eq!(record["error"]["code"], "invalid_request", "{record}");
    let message = record["error"]["message"].as_str().unwrap();
    assert!(message.contains(says), "{message}, not {says}");
}
