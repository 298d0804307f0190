//! Uploads and the files that links lead to.

use http::Method;
use http::header::CONTENT_TYPE;
use image::ImageFormat;
use serde_json::{Value, json};

use crate::gate::{Backend, Client, Gate, Reply, Setup, on_one, until};
use crate::pictures::{opaque, png};

on_one!(
    pictures_are_taken_by_their_content,
    bad_forms_are_refused,
    sizes_are_exact,
    files_are_served_whole_and_in_part,
    links_expire,
);

const UPLOADS: &str = "/v1/uploads/images";
const MAX: usize = 20_971_520;

/// The message of an error in the upload endpoint's envelope.
#[track_caller]
fn refusal(reply: &Reply, status: u16, kind: &str) -> String {
    let body = reply.clone().expect(status).json();
    let message = body["error"]["message"]
        .as_str()
        .expect("a message")
        .to_owned();
    assert_eq!(
        body,
        json!({ "error": { "message": message, "type": kind } })
    );
    message
}

async fn pictures_are_taken_by_their_content(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    for (format, extension) in [
        (ImageFormat::Png, "png"),
        (ImageFormat::Jpeg, "jpg"),
        (ImageFormat::WebP, "webp"),
        (ImageFormat::Gif, "gif"),
    ] {
        let file = opaque(format, 30, 20);
        let now = jiff::Timestamp::now().as_second();
        // Neither the name nor the declared type matters.
        let reply = client
            .upload("holiday 1.exe", "text/html", &file)
            .await
            .expect(200);
        let record = reply.json();
        let url = record["url"].as_str().unwrap().to_owned();
        let created_at = record["created_at"].as_i64().unwrap();
        assert!((created_at - now).abs() < 60, "{record}");
        assert_eq!(
            record,
            json!({
                "url": url,
                "filename": "holiday 1.exe",
                "content_type": format.to_mime_type(),
                "bytes": file.len(),
                "created_at": created_at,
            })
        );
        assert!(url.starts_with(&client.url("/files/")), "{url}");
        assert!(url.ends_with(&format!(".{extension}")), "{url}");
        let served = client.fetch(&url).await.expect(200);
        assert_eq!(served.body, file);
        assert_eq!(served.header("content-type"), format.to_mime_type());
    }
    let hostile = "../../etc/passwd.png";
    let record = client
        .upload(hostile, "image/png", &png(3, 3))
        .await
        .expect(200)
        .json();
    assert_eq!(record["filename"], "passwd.png");
    for (what, file) in [
        ("text", b"hello".to_vec()),
        ("a page", b"<html><script>alert(1)</script></html>".to_vec()),
        (
            "a drawing",
            b"<svg xmlns='http://www.w3.org/2000/svg'/>".to_vec(),
        ),
        ("a bitmap", opaque(ImageFormat::Bmp, 30, 20)),
        ("half a signature", png(3, 3)[..6].to_vec()),
        ("a head alone", png(3, 3)[..20].to_vec()),
        ("nothing", Vec::new()),
        ("a bomb", bomb()),
    ] {
        let reply = client.upload("a.png", "image/png", &file).await;
        let message = refusal(&reply, 400, "invalid_request_error");
        assert!(message.contains("`file`"), "{what}: {message}");
    }
    gate.close().await;
}

/// A small file that claims to be a picture of two billion pixels.
fn bomb() -> Vec<u8> {
    let mut file = png(3, 3);
    file[16..20].copy_from_slice(&50_000_u32.to_be_bytes());
    file[20..24].copy_from_slice(&40_000_u32.to_be_bytes());
    file
}

async fn bad_forms_are_refused(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    let send = async |content_type: &str, body: &[u8]| {
        let request = client
            .request(Method::POST, UPLOADS)
            .header(CONTENT_TYPE, content_type);
        client
            .send(request.body(body.to_vec().into()).unwrap())
            .await
    };
    let picture = png(3, 3);
    let mut cut = b"--edge\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n".to_vec();
    cut.extend_from_slice(&picture);
    let other = [
        &b"--edge\r\nContent-Disposition: form-data; name=\"image\"\r\n\r\n"[..],
        &picture,
        b"\r\n--edge--\r\n",
    ]
    .concat();
    let form = "multipart/form-data; boundary=edge";
    for (content_type, body, says) in [
        ("application/json", &b"{}"[..], "multipart/form-data"),
        ("multipart/form-data", &cut, "boundary"),
        ("image/png", &picture, "multipart/form-data"),
        (form, b"", "broke off"),
        (form, b"rubbish", ""),
        (form, &cut, "broke off"),
        (form, &other, "`file`"),
        (form, b"--edge--\r\n", "`file`"),
        (form, b"--edge\r\n\xff\xfe: x\r\n\r\nx\r\n--edge--\r\n", ""),
        ("multipart/form-data; boundary=other", &other, ""),
    ] {
        let message = refusal(
            &send(content_type, body).await,
            400,
            "invalid_request_error",
        );
        assert!(message.contains(says), "{content_type}: {message}");
    }
    // A form that breaks off in the middle leaves nothing behind, and the server well.
    let head = format!(
        "POST {UPLOADS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Content-Type: {form}\r\nContent-Length: 100000\r\n\r\n",
        client.secret.as_deref().unwrap()
    );
    let mut raw = gate.raw().await;
    raw.write(&[head.as_bytes(), &cut].concat()).await;
    drop(raw);
    client.uploaded(&picture).await;
    let temporary = gate.data_dir().join("files/tmp");
    until("no temporary files", async || {
        (std::fs::read_dir(&temporary).unwrap().count() == 0).then_some(())
    })
    .await;
    gate.close().await;
}

async fn sizes_are_exact(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    let mut file = png(300, 200);
    file.resize(MAX + 1, 0);
    let message = refusal(
        &client.upload("a.png", "image/png", &file).await,
        413,
        "invalid_request_error",
    );
    assert!(message.contains("20971520"), "{message}");
    file.pop();
    let record = client
        .upload("a.png", "image/png", &file)
        .await
        .expect(200)
        .json();
    assert_eq!(record["bytes"], MAX);
    let served = client
        .fetch(record["url"].as_str().unwrap())
        .await
        .expect(200);
    assert_eq!(served.body.len(), MAX);
    // The declared length alone is enough to say no, and the answer is seen.
    let mut raw = gate.raw().await;
    let head = format!(
        "POST {UPLOADS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\
         Content-Type: multipart/form-data; boundary=edge\r\nContent-Length: 99999999999\r\n\
         Expect: 100-continue\r\n\r\n",
        client.secret.as_deref().unwrap()
    );
    raw.write(head.as_bytes()).await;
    assert_eq!(raw.answer().await.map(|(status, ..)| status), Some(413));
    client.uploaded(&png(3, 3)).await;
    gate.close().await;
}

async fn files_are_served_whole_and_in_part(backend: Backend) {
    let gate = Gate::start(backend).await;
    let client = gate.somebody().await;
    let file = png(300, 200);
    let url = client.uploaded(&file).await;
    let get = async |headers: &[(&str, &str)]| client.fetch_with(Method::GET, &url, headers).await;
    let whole = get(&[]).await.expect(200);
    assert_eq!(whole.body, file);
    for (name, value) in [
        ("content-type", "image/png"),
        ("x-content-type-options", "nosniff"),
        ("accept-ranges", "bytes"),
        ("access-control-allow-origin", "*"),
    ] {
        assert_eq!(whole.header(name), value);
    }
    assert_eq!(whole.header("content-length"), file.len().to_string());
    assert!(whole.header("content-security-policy").contains("sandbox"));
    assert!(whole.header("cache-control").contains("immutable"));
    assert!(whole.header("content-disposition").starts_with("inline"));
    let head = client.fetch_with(Method::HEAD, &url, &[]).await.expect(200);
    assert!(head.body.is_empty());
    for name in [
        "content-length",
        "content-type",
        "etag",
        "x-content-type-options",
    ] {
        assert_eq!(head.header(name), whole.header(name));
    }
    let (len, end) = (file.len(), file.len() - 1);
    for (range, first, last) in [
        ("bytes=0-0".to_owned(), 0, 0),
        ("bytes=10-19".to_owned(), 10, 19),
        (format!("bytes={end}-"), end, end),
        ("bytes=-7".to_owned(), len - 7, end),
        (format!("bytes=5-{}", len * 2), 5, end),
    ] {
        let part = get(&[("range", &range)]).await.expect(206);
        assert_eq!(part.body, file[first..=last], "{range}");
        assert_eq!(
            part.header("content-range"),
            format!("bytes {first}-{last}/{len}")
        );
        assert_eq!(part.header("content-type"), "image/png");
    }
    let outside = get(&[("range", &format!("bytes={len}-"))]).await;
    outside.error(416, "invalid_request_error");
    assert_eq!(outside.header("content-range"), format!("bytes */{len}"));
    for range in ["bytes=9-1", "lines=1-2", "bytes=0-1,4-5", "rubbish"] {
        assert_eq!(
            get(&[("range", range)]).await.expect(200).body,
            file,
            "{range}"
        );
    }
    let tag = whole.header("etag").to_owned();
    get(&[("if-none-match", &tag)]).await.expect(304);
    get(&[("if-none-match", "\"other\"")]).await.expect(200);
    get(&[("range", "bytes=0-0"), ("if-range", &tag)])
        .await
        .expect(206);
    get(&[("range", "bytes=0-0"), ("if-range", "\"other\"")])
        .await
        .expect(200);

    let name = url.rsplit('/').next().unwrap();
    let wrong = format!(
        "{}{}",
        if name.starts_with('0') { '1' } else { '0' },
        &name[1..]
    );
    for name in [
        "x",
        "..%2ftollgate.db",
        "..%2f..%2ftollgate.db",
        "%2e%2e/tollgate.db",
        "%00",
        "%ff",
        &name.to_uppercase(),
        &name[..name.len() - 4],
        &format!("{name}%00.png"),
        &wrong.replace(".png", ".gif"),
    ] {
        let reply = client.get(&format!("/files/{name}")).await;
        assert!(
            [404, 410].contains(&reply.status),
            "{name}: {}",
            reply.status
        );
    }
    client
        .fetch_with(Method::DELETE, &url, &[])
        .await
        .expect(405);
    gate.close().await;
}

async fn links_expire(backend: Backend) {
    let gate = Setup::new(backend)
        .config("[expiry]\nimages_s = 2\nlong_s = 2\n")
        .start()
        .await;
    let client = gate.somebody().await;
    let upload = client.uploaded(&png(400, 400)).await;
    let result = client
        .make(&json!({ "model": "imagen-4.0-partner", "prompt": "a mill" }))
        .await;
    let result = crate::gate::links(&result).remove(0);
    for url in [&upload, &result] {
        until("a link to expire", async || {
            let reply = client.fetch(url).await;
            match reply.status {
                200 => None,
                _ => Some(reply.error(410, "not_found_error")),
            }
        })
        .await;
    }
    let stale =
        json!({ "model": "grok-imagine-1.0-edit-partner", "prompt": "x", "image_urls": [upload] });
    let message = client
        .order(&stale)
        .await
        .error(400, "invalid_request_error");
    assert!(message.contains("expired"), "{message}");
    until("the files to be deleted", async || {
        (count_files(&gate.data_dir().join("files/public")) == 0).then_some(())
    })
    .await;
    // Names that never were are another matter.
    let (_, name) = upload.rsplit_once('/').unwrap();
    let never = format!("{}{}", &name[..7], "z".repeat(26) + ".png");
    let status = client.get(&format!("/files/{never}")).await.status;
    assert!([404, 410].contains(&status), "{status}");
    assert_eq!(unfinished(&client).await, 0);
    gate.close().await;
}

async fn unfinished(client: &Client) -> usize {
    let tasks = client.get("/v1/tasks").await.expect(200).json();
    let is_open = |task: &&Value| task["status"] == "submitted" || task["status"] == "in_progress";
    tasks["data"]
        .as_array()
        .unwrap()
        .iter()
        .filter(is_open)
        .count()
}

fn count_files(folder: &std::path::Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    entries
        .map(|entry| {
            if entry.path().is_dir() {
                count_files(&entry.path())
            } else {
                1
            }
        })
        .sum()
}
