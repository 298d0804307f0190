//! Uploads and the files that links lead to.

use std::path::Path;

use http::Method;
use image::ImageFormat;
use serde_json::json;

use crate::harness::images::{opaque, png};
use crate::harness::priced_images::public_files;
use crate::harness::*;

on_sqlite!(
    images_are_recognised_by_their_content,
    invalid_forms_are_rejected,
    the_size_limit_is_exact,
    files_are_served_complete_and_in_part,
    uploads_have_a_quota,
    a_disk_that_is_nearly_full_rejects_uploads,
);

const UPLOADS: &str = "/v1/uploads/images";
const MAX: usize = 20_971_520;
const FORM: &str = "multipart/form-data; boundary=edge";

/// Checks an error in the upload endpoint's envelope, whose message must contain `expected`.
#[track_caller]
fn check_rejected(reply: Reply, status: u16, expected: &str) {
    let body = reply.expect(status).json();
    let error = json!({ "message": "<string>", "type": "invalid_request_error" });
    assert_shape(&body, json!({ "error": error }));
    let message = body["error"]["message"].as_str().unwrap();
    assert!(message.contains(expected), "{message}, not {expected}");
}

async fn images_are_recognised_by_their_content(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    for (format, extension) in [
        (ImageFormat::Png, "png"),
        (ImageFormat::Jpeg, "jpg"),
        (ImageFormat::WebP, "webp"),
        (ImageFormat::Gif, "gif"),
    ] {
        let file = opaque(format, 30, 20);
        // The gateway ignores the name and the declared type.
        let reply = client.upload("holiday 1.exe", "text/html", &file).await;
        let record = reply.expect(200).json();
        let expected = json!({
            "url": "<string>", "filename": "holiday 1.exe", "content_type": format.to_mime_type(), "bytes": file.len(),
            "created_at": "<now>",
        });
        assert_shape(&record, expected);
        let url = record["url"].as_str().unwrap();
        assert!(url.starts_with(&client.url("/files/")), "{url}");
        assert!(url.ends_with(&format!(".{extension}")), "{url}");
        let served = client.fetch(url).await.expect(200);
        assert_eq!(served.body, file);
        assert_eq!(served.header("content-type"), format.to_mime_type());
        let cut = &file[..file.len() - 20];
        check_rejected(client.upload("a", "image/png", cut).await, 400, "cut off");
    }
    let small = png(3, 3);
    let reply = client
        .upload("../../etc/passwd.png", "image/png", &small)
        .await;
    assert_eq!(reply.expect(200).json()["filename"], "passwd.png");
    // A file that declares an image of two billion pixels.
    let mut bomb = small.clone();
    bomb[16..20].copy_from_slice(&50_000_u32.to_be_bytes());
    bomb[20..24].copy_from_slice(&40_000_u32.to_be_bytes());
    let bitmap = opaque(ImageFormat::Bmp, 30, 20);
    for file in [
        &b"hello"[..],
        b"<html><script>alert(1)</script></html>",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        &bitmap,
        &small[..6],
        &small[..20],
        b"",
        &bomb,
    ] {
        let reply = client.upload("a.png", "image/png", file).await;
        check_rejected(reply, 400, "`file`");
    }
    let reply = client
        .upload("a.txt", "text/plain", b"this is a text")
        .await;
    assert!(!reply.text().to_lowercase().contains("bmp"));
    check_rejected(reply, 400, "jpeg, png, gif, webp");
    gateway.close().await;
}

async fn invalid_forms_are_rejected(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let image = png(3, 3);
    let part =
        |name: &str| format!("--edge\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
    let cut = [part("file").as_bytes(), &image].concat();
    let other = [part("image").as_bytes(), &image, b"\r\n--edge--\r\n"].concat();
    for (content_type, body, expected) in [
        ("application/json", &b"{}"[..], "multipart/form-data"),
        ("application/json", b"{}", "got \"application/json\""),
        ("multipart/form-data", &cut, "boundary"),
        ("image/png", &image, "multipart/form-data"),
        (FORM, b"", "broke off"),
        (FORM, b"rubbish", ""),
        (FORM, &cut, "broke off"),
        (FORM, &other, "`file`"),
        (FORM, b"--edge--\r\n", "`file`"),
        (FORM, b"--edge\r\n\xff\xfe: x\r\n\r\nx\r\n--edge--\r\n", ""),
        ("multipart/form-data; boundary=other", &other, ""),
    ] {
        let reply = client.post_bytes(UPLOADS, content_type, body).await;
        check_rejected(reply, 400, expected);
    }
    // A form that breaks off leaves no file behind.
    let headers = format!("Content-Type: {FORM}\r\nContent-Length: 100000\r\n");
    let mut raw = gateway.raw().await;
    let head = client.raw_head(UPLOADS, &headers);
    raw.write(&[head.as_bytes(), &cut].concat()).await;
    drop(raw);
    client.upload_image(&image).await;
    let temporary = gateway.data_dir().join("files/tmp");
    let is_empty = async || std::fs::read_dir(&temporary).unwrap().count() == 0;
    until_true("no temporary files", is_empty).await;
    gateway.close().await;
}

async fn the_size_limit_is_exact(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let mut file = png(300, 200);
    file.resize(MAX + 1, 0);
    let reply = client.upload("a.png", "image/png", &file).await;
    check_rejected(reply, 413, "20971520");
    let files = gateway.data_dir().join("files");
    until_true("no file", async || count_files(&files) == 0).await;
    file.pop();
    let reply = client.upload("a.png", "image/png", &file).await;
    let record = reply.expect(200).json();
    assert_eq!(record["bytes"], MAX);
    let served = client.fetch(record["url"].as_str().unwrap()).await;
    assert_eq!(served.expect(200).body.len(), MAX);
    // A declared length over the limit is rejected, with a response before the body arrives.
    let headers =
        format!("Content-Type: {FORM}\r\nContent-Length: 99999999999\r\nExpect: 100-continue\r\n");
    let mut raw = gateway.raw().await;
    raw.write(client.raw_head(UPLOADS, &headers).as_bytes())
        .await;
    assert_eq!(raw.status().await, Some(413));
    client.upload_image(&png(3, 3)).await;
    gateway.close().await;
}

async fn files_are_served_complete_and_in_part(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let file = png(300, 200);
    let url = client.upload_image(&file).await;
    let get = async |headers: &[(&str, &str)]| client.fetch_with(Method::GET, &url, headers).await;
    let complete = get(&[]).await.expect(200);
    assert_eq!(complete.body, file);
    let length = file.len().to_string();
    for (name, value) in [
        ("content-type", "image/png"),
        ("content-length", &length),
        ("x-content-type-options", "nosniff"),
        ("accept-ranges", "bytes"),
        ("access-control-allow-origin", "*"),
        ("content-security-policy", "sandbox"),
        ("cache-control", "private, max-age="),
        ("cache-control", ", immutable"),
        ("content-disposition", "inline"),
    ] {
        let header = complete.header(name);
        assert!(header.contains(value), "{name}: {header}");
    }
    let head = client.fetch_with(Method::HEAD, &url, &[]).await.expect(200);
    assert!(head.body.is_empty());
    for name in [
        "content-length",
        "content-type",
        "etag",
        "x-content-type-options",
    ] {
        assert_eq!(head.header(name), complete.header(name));
    }
    let (len, end) = (file.len(), file.len() - 1);
    for (range, first, last) in [
        ("bytes=0-0", 0, 0),
        ("bytes=10-19", 10, 19),
        (&format!("bytes={end}-"), end, end),
        ("bytes=-7", len - 7, end),
        (&format!("bytes=5-{}", len * 2), 5, end),
    ] {
        let part = get(&[("range", range)]).await.expect(206);
        assert_eq!(part.body, file[first..=last], "{range}");
        let expected = format!("bytes {first}-{last}/{len}");
        assert_eq!(part.header("content-range"), expected);
        assert_eq!(part.header("content-type"), "image/png");
    }
    let outside = format!("bytes={len}-");
    let outside = get(&[("range", &outside)]).await;
    outside.rejected(416, "");
    assert_eq!(outside.header("content-range"), format!("bytes */{len}"));
    for range in ["bytes=9-1", "lines=1-2", "bytes=0-1,4-5", "rubbish"] {
        let reply = get(&[("range", range)]).await.expect(200);
        assert_eq!(reply.body, file, "{range}");
    }
    let tag = complete.header("etag");
    let one_byte = ("range", "bytes=0-0");
    for known in [tag, &format!("\"x\", W/{tag}")] {
        let reply = get(&[("if-none-match", known)]).await.expect(304);
        assert_eq!(
            (reply.header("etag"), reply.header("content-type")),
            (tag, "")
        );
        assert!(reply.body.is_empty());
    }
    get(&[("if-none-match", "\"other\"")]).await.expect(200);
    get(&[one_byte, ("if-range", tag)]).await.expect(206);
    get(&[one_byte, ("if-range", "\"other\"")])
        .await
        .expect(200);

    let reply = client.fetch_with(Method::DELETE, &url, &[]).await;
    reply.expect(405);

    let secret = gateway.data_dir().join("files/secret.png");
    std::fs::write(secret, "secret").unwrap();
    let name = url.rsplit('/').next().unwrap();
    let other = if name.starts_with('0') { '1' } else { '0' };
    for name in [
        "",
        "x",
        "../secret.png",
        "..%2fsecret.png",
        "%2fetc%2fpasswd",
        "..%2ftollgate.db",
        "..%2f..%2ftollgate.db",
        "%2e%2e/tollgate.db",
        "%00",
        "%ff",
        &name.to_uppercase(),
        &name[..name.len() - 4],
        &format!("{name}%00.png"),
        &format!("{other}{}", name[1..].replace(".png", ".gif")),
    ] {
        let reply = client.get(&format!("/files/{name}")).await;
        assert!(
            [404, 410].contains(&reply.status),
            "{name}: {}",
            reply.status
        );
    }
    // If its file is deleted, a link returns 404.
    std::fs::remove_file(public_files(&gateway).remove(0)).unwrap();
    client.fetch(&url).await.rejected(404, "");
    gateway.close().await;
}

fn count_files(dir: &Path) -> usize {
    let entries = std::fs::read_dir(dir).unwrap().flatten();
    let count = entries.map(|entry| match entry.path() {
        path if path.is_dir() => count_files(&path),
        _ => 1,
    });
    count.sum()
}

async fn uploads_have_a_quota(backend: Backend) {
    let config = "[fairness]\nupload_mb = 20\n[limits]\nupload_mb = 30\n";
    let gateway = Setup::new(backend).config(config).start().await;
    let ann = gateway.user_client("ann", &["--unlimited"]).await;
    let bob = gateway.user_client("bob", &["--unlimited"]).await;
    // A PNG of nine megabytes: bytes after the end of an image are allowed.
    let mut file = png(3, 3);
    file.resize(9 << 20, 0);
    for (client, status, expected) in [
        (&ann, 200, ""),
        (&ann, 200, ""),
        (&ann, 429, "your uploads may have 20 MB"),
        (&bob, 200, ""),
        (&bob, 429, "all uploads may have 30 MB"),
    ] {
        let reply = client.upload("a.png", "image/png", &file).await;
        let is_rejected = status == 429;
        assert_eq!(reply.header("retry-after").is_empty(), !is_rejected);
        let body = reply.expect(status).json();
        let message = body["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(expected), "{body}");
    }
    assert_eq!(public_files(&gateway).len(), 3);
    gateway.close().await;
}

async fn a_disk_that_is_nearly_full_rejects_uploads(backend: Backend) {
    let config = "[storage]\nreserve_mb = 1_000_000_000\n";
    let gateway = Setup::new(backend).config(config).start().await;
    let client = gateway.user_client("ann", &["--unlimited"]).await;
    let reply = client.upload("a.png", "image/png", &png(3, 3)).await;
    assert!(!reply.header("retry-after").is_empty());
    reply.expect(500);
    gateway.close().await;
}
