//! Files in S3: stored completely or not at all, served completely or in ranges, and none lost while the bucket fails.

use std::time::Duration;

use http::Method;
use serde_json::json;
use tollgate_fakes::{Options, Provider, start};

use crate::harness::fake_s3::{FakeS3, Fault};
use crate::harness::images::{data_uri, png};
use crate::harness::priced_images::{PRICES, images};
use crate::harness::*;

on_both!(
    files_are_stored_and_served_from_the_bucket,
    results_wait_for_the_bucket_and_are_generated_once,
);
on_sqlite!(
    uploads_are_retried_and_then_fail_with_an_error,
    large_files_are_uploaded_in_parts,
    interrupted_downloads_are_resumed_or_cut_off,
    clients_are_redirected_to_the_bucket,
    expired_objects_are_deleted_and_no_others,
    doctor_reports_operations_that_the_bucket_forbids,
);

/// A size that needs more than one part.
const LARGE: usize = 18_000_000;

async fn gateway(backend: Backend, config: &str) -> (FakeS3, TestGateway, Client) {
    let s3 = FakeS3::start().await;
    let setup = Setup::new(backend).config(config);
    let gateway = s3.setup(setup).start().await;
    let client = gateway.unlimited_client().await;
    (s3, gateway, client)
}

/// A PNG file of `bytes` bytes, with an ancillary chunk as padding.
fn padded_png(bytes: usize) -> Vec<u8> {
    let image = png(8, 8);
    let (start, end) = image.split_at(33);
    let padding = bytes - image.len() - 12;
    let length = u32::try_from(padding).unwrap().to_be_bytes();
    // Decoders do not check the checksum of an ancillary chunk. Each part of the padding has other content.
    let mut content = vec![0; padding];
    for (number, part) in (0..=250).cycle().zip(content.chunks_mut(1_000)) {
        part.fill(number);
    }
    [start, &length, b"paDd", &content, &[0; 4], end].concat()
}

async fn files_are_stored_and_served_from_the_bucket(backend: Backend) {
    let (s3, gateway, client) = gateway(backend, PRICES).await;
    let image = png(64, 48);
    let url = client.upload_image(&image).await;
    let name = url.rsplit('/').next().unwrap();
    assert_eq!(s3.keys(), [format!("data/public/{name}")]);
    let served = client.fetch(&url).await.expect(200);
    assert_eq!(
        (&served.body[..], served.header("content-type")),
        (&image[..], "image/png")
    );
    assert_eq!(served.header("content-length"), image.len().to_string());
    assert!(served.header("content-security-policy").contains("sandbox"));
    let get = async |header: &'static str, value: &str| {
        client
            .fetch_with(Method::GET, &url, &[(header, value)])
            .await
    };
    let part = get("range", "bytes=8-15").await.expect(206);
    assert_eq!(part.body, image[8..16]);
    assert_eq!(
        part.header("content-range"),
        format!("bytes 8-15/{}", image.len())
    );
    let tail = get("range", "bytes=-5").await.expect(206);
    assert_eq!(tail.body, image[image.len() - 5..]);
    get("range", "bytes=99999-").await.expect(416);
    let tag = served.header("etag");
    assert!(get("if-none-match", tag).await.expect(304).body.is_empty());
    let head = client.fetch_with(Method::HEAD, &url, &[]).await.expect(200);
    assert_eq!(head.header("content-length"), image.len().to_string());

    // The files are results, with an upload and a data URI of the request as references.
    let mut body = images("a pier", 1);
    body["image_urls"] = json!([url, data_uri("image/png", &image)]);
    let record = client.generate(&body).await;
    let [result] = &image_urls(&record)[..] else {
        panic!("{record}")
    };
    assert!(!client.fetch(result).await.expect(200).body.is_empty());
    let is_private = |key: &String| key.starts_with("data/private/");
    until_true("the private copy to be deleted", async || {
        !s3.keys().iter().any(is_private)
    })
    .await;
    assert_eq!(s3.keys().len(), 2);
    s3.clear();
    client.fetch(result).await.error(404, "not_found_error");
    let mut body = images("a quay", 1);
    body["image_urls"] = json!([url]);
    client.post_image(&body).await.rejected(400, "has expired");
    let left = std::fs::read_dir(gateway.data_dir().join("files/tmp")).unwrap();
    assert_eq!(left.count(), 0);
    gateway.close().await;
}

async fn uploads_are_retried_and_then_fail_with_an_error(backend: Backend) {
    let (s3, gateway, client) = gateway(backend, "").await;
    let image = png(64, 48);
    for fault in [
        Fault::Unavailable,
        Fault::Slow(Duration::from_secs(1)),
        Fault::CutRequest,
        Fault::Damaged,
        Fault::MismatchedTag,
    ] {
        s3.fail(fault, Method::PUT, 2);
        let url = client.upload_image(&image).await;
        assert_eq!(
            client.fetch(&url).await.expect(200).body,
            image,
            "{fault:?}"
        );
    }
    s3.clear();
    for fault in [Fault::Unavailable, Fault::Forbidden, Fault::MismatchedTag] {
        s3.fail(fault, Method::PUT, u32::MAX);
        let reply = client.upload("a.png", "image/png", &image).await;
        assert_eq!(reply.header("retry-after"), "5", "{fault:?}");
        let error = reply.expect(500).json();
        let expected = json!({ "message": "failed to upload image", "type": "<string>" });
        assert_shape(&error, json!({ "error": expected }));
        // The object may be stored, but no client got a link to it.
        s3.clear_faults();
        until_true("the storage to be available", async || {
            client.upload("a.png", "image/png", &image).await.status == 200
        })
        .await;
    }
    s3.fail(Fault::Unavailable, Method::PUT, u32::MAX);
    until_true("/readyz to miss the bucket", async || {
        let reply = client.get("/readyz").await;
        reply.status == 503 && reply.json()["part"] == "storage"
    })
    .await;
    s3.fail(Fault::Slow(Duration::from_secs(60)), Method::PUT, u32::MAX);
    let ready = client.get("/readyz").await;
    assert_eq!(ready.expect(503).json()["part"], "storage");
    s3.clear_faults();
    client.get("/readyz").await.expect(200);
    gateway.close().await;
}

async fn large_files_are_uploaded_in_parts(backend: Backend) {
    let (s3, gateway, client) = gateway(backend, "").await;
    let image = padded_png(LARGE);
    for fault in [Fault::Unavailable, Fault::MismatchedTag, Fault::CutRequest] {
        s3.fail(fault, Method::PUT, 2);
        let url = client.upload_image(&image).await;
        assert!(
            client.fetch(&url).await.expect(200).body == image,
            "{fault:?}"
        );
    }
    // The response to the last request is lost: the repeated request finds no upload, but a complete object.
    s3.fail_at(Fault::CutResponse, Method::POST, "uploadId", 1);
    let url = client.upload_image(&image).await;
    assert!(client.fetch(&url).await.expect(200).body == image);
    assert_eq!(s3.uploads(), (4, 0));

    s3.fail(Fault::Unavailable, Method::PUT, u32::MAX);
    let reply = client.upload("a.png", "image/png", &image).await;
    reply.expect(500);
    until_true("the upload to be aborted", async || s3.uploads() == (5, 0)).await;
    gateway.close().await;
}

async fn interrupted_downloads_are_resumed_or_cut_off(backend: Backend) {
    let (s3, gateway, client) = gateway(backend, "").await;
    let image = padded_png(3_000_000);
    let url = client.upload_image(&image).await;
    s3.fail(Fault::CutResponse, Method::GET, 2);
    assert!(client.fetch(&url).await.expect(200).body == image);
    assert_eq!(s3.count(&Method::GET, "/data/public/"), 3);
    s3.fail(Fault::Unavailable, Method::GET, 2);
    assert!(client.fetch(&url).await.expect(200).body == image);
    s3.fail(Fault::Unavailable, Method::GET, u32::MAX);
    let reply = client.fetch(&url).await;
    assert_eq!(reply.header("retry-after"), "5");
    reply.error(503, "unavailable");

    // The last byte never arrives: the client detects that the file is incomplete.
    s3.fail(Fault::CutResponse, Method::GET, u32::MAX);
    let mut connection = gateway.raw().await;
    let path = url.strip_prefix(&client.url("")).unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    connection.write(head.as_bytes()).await;
    let received = connection.read_to_end().await;
    let head_end = received.windows(4).position(|w| w == b"\r\n\r\n").unwrap() + 4;
    assert!(received.starts_with(b"HTTP/1.1 200"));
    // Bytes that were not sent yet when the connection was closed may also be missing.
    let body = &received[head_end..];
    assert!(body.len() > image.len() / 2 && body.len() < image.len());
    assert!(image.starts_with(body));
    gateway.close().await;
}

async fn results_wait_for_the_bucket_and_are_generated_once(backend: Backend) {
    let fake = start(Provider::OpenAi, Options::default()).await.unwrap();
    let config = format!(
        "[[channel]]\nname = \"up\"\nkind = \"openai\"\nbase_url = \"{}\"\napi_keys = [\"sk-fake\"]\n\
         models = [\"gpt-image-2-official\"]\n[price.\"gpt-image-2-official\"]\nper_image = 0.5\n",
        fake.base_url()
    );
    let s3 = FakeS3::start().await;
    let setup = Setup::new(backend).config(&config);
    let gateway = s3.setup(setup).start().await;
    let client = gateway.user_client("customer", &["--balance", "100"]).await;
    s3.fail(Fault::Unavailable, Method::PUT, u32::MAX);
    let image = json!({ "model": "gpt-image-2-official", "prompt": "a pier", "size": "1:1" });
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(client.submit(&image).await);
    }
    let submissions = || {
        fake.requests()
            .iter()
            .filter(|seen| seen.method == "POST")
            .count()
    };
    until_true("a submission to the provider", async || submissions() > 0).await;
    // The gateway retries the upload to the bucket.
    until_true("a retry of the upload", async || {
        s3.count(&Method::PUT, "") > 4
    })
    .await;
    for id in &ids {
        let record = client.task(id).await;
        assert!(
            !["completed", "failed"].contains(&status(&record)),
            "{record}"
        );
    }
    assert!(s3.keys().is_empty());
    s3.clear_faults();
    for id in &ids {
        let record = client.wait_for_end(id).await;
        assert_eq!(status(&record), "completed", "{record}");
        for url in image_urls(&record) {
            client.fetch(&url).await.expect(200);
        }
    }
    assert_eq!(submissions(), 3, "each was paid for once");
    assert_eq!(client.balances().await, (98.5, 1.5));
    gateway.close().await;
}

async fn clients_are_redirected_to_the_bucket(backend: Backend) {
    let (s3, gateway, client) = gateway(backend, "storage.serve = \"redirect\"").await;
    let image = png(64, 48);
    let url = client.upload_image(&image).await;
    let reply = client.fetch(&url).await.expect(302);
    assert_eq!(reply.header("cache-control"), "no-store");
    let link = reply.header("location");
    assert!(
        link.starts_with(&format!("http://{}/files/data/public/", s3.address())),
        "{link}"
    );
    let expires = link.split("X-Amz-Expires=").nth(1).unwrap();
    let expires: u32 = expires.split('&').next().unwrap().parse().unwrap();
    assert!(expires <= 900, "{link}");
    assert_eq!(client.fetch(link).await.expect(200).body, image);
    let head = client.fetch_with(Method::HEAD, &url, &[]).await.expect(302);
    assert_ne!(head.header("location"), link);
    s3.clear();
    client.fetch(&url).await.error(404, "not_found_error");
    gateway.close().await;
}

async fn expired_objects_are_deleted_and_no_others(backend: Backend) {
    let config = "[expiry]\nimages_s = 2\nlong_s = 6\n";
    let (s3, gateway, client) = gateway(backend, config).await;
    client.generate(&images("a pier", 2)).await;
    let upload = client.upload_image(&png(8, 8)).await;
    let name = upload.rsplit('/').next().unwrap().to_owned();
    assert_eq!(s3.keys().len(), 3);
    let kept = [format!("data/public/{name}")];
    until_true("the results to be deleted", async || s3.keys() == kept).await;
    until_true("the upload to be deleted", async || s3.keys().is_empty()).await;
    client.fetch(&upload).await.error(410, "not_found_error");
    gateway.close().await;
}

async fn doctor_reports_operations_that_the_bucket_forbids(backend: Backend) {
    let (s3, gateway, _) = gateway(backend, "").await;
    let finding = async || {
        let output = run_command(gateway.command(&["doctor"]).arg("--json")).await;
        let records = output.json();
        let mut records = records.as_array().unwrap().iter();
        let found = records.find(|record| record["check"] == "storage");
        found.unwrap().clone()
    };
    assert_has(&finding().await, json!({ "level": "ok" }));
    s3.fail(Fault::Forbidden, Method::PUT, u32::MAX);
    let found = finding().await;
    assert_has(&found, json!({ "level": "fail" }));
    let message = found["message"].as_str().unwrap();
    assert!(
        message.contains("PutObject") && message.contains("AccessDenied"),
        "{message}"
    );
    s3.fail(Fault::Forbidden, Method::DELETE, u32::MAX);
    let found = finding().await;
    assert!(
        found["message"].as_str().unwrap().contains("DeleteObject"),
        "{found}"
    );
    assert!(s3.keys().iter().all(|key| key.starts_with("data/probe-")));
    gateway.close().await;
}
