//! Videos of the sandbox: both endpoints, the contents of receipts and records, the file completely and in ranges, and the charges.

use serde_json::{Value, json};

use crate::harness::images::png;
use crate::harness::*;

on_both!(
    both_endpoints_generate_a_video,
    videos_are_charged_per_second_or_per_video,
    failed_videos_are_not_charged,
);
on_sqlite!(
    a_form_with_an_image_generates_a_video,
    videos_are_visible_to_their_user_alone,
    video_links_expire,
);

const GENERATIONS: &str = "/v1/video/generations";
const VIDEOS: &str = "/v1/videos";
const MODEL: &str = "grok-imagine-video-1.5";

/// The smallest video: one second of 480 × 480.
fn video(prompt: &str) -> Value {
    json!({ "model": MODEL, "prompt": prompt, "duration": 1, "aspect_ratio": "1:1" })
}

/// Submits a video, which must be accepted; returns the task's id.
async fn submit(client: &Client, body: &Value) -> String {
    task_id(&client.post(GENERATIONS, body).await.expect(200).json())
}

/// The response of `GET /v1/videos/<id>/content`.
async fn content(client: &Client, id: &str, headers: &[(&str, &str)]) -> Reply {
    let path = format!("/v1/videos/{id}/content");
    client.send_with("GET", &path, headers, "").await
}

fn receipt() -> Value {
    json!({
        "id": "<string>", "task_id": "<string>", "object": "video", "model": MODEL, "status": "queued", "progress": "0%",
        "code": "success", "seconds": "1", "size": "480x480", "created_at": "<now>",
    })
}

/// The pattern of a record without a result; `more` replaces members.
fn record(id: &str, status: &str, more: Value) -> Value {
    let mut record = json!({
        "id": id, "task_id": id, "object": "video", "model": MODEL, "status": status, "seconds": "1", "size": "480x480",
        "created_at": "<now>", "completed_at": null, "expires_at": null, "error": null, "metadata": {}, "cost": 0.0,
        "url": "", "result_url": "", "video_url": "", "progress": "<string>",
    });
    let members = record.as_object_mut().unwrap();
    members.extend(more.as_object().unwrap().clone());
    record
}

fn failed(id: &str, code: &str) -> Value {
    let error = json!({ "code": code, "message": "<string>" });
    record(id, "failed", json!({ "error": error }))
}

async fn both_endpoints_generate_a_video(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    for path in [GENERATIONS, VIDEOS] {
        let body = video("[[sandbox:delay=1200]] a lighthouse");
        let reply = client.post(path, &body).await.expect(200).json();
        assert_shape(&reply, receipt());
        let id = task_id(&reply);
        assert_eq!(reply["task_id"], id, "{reply}");
        let running = until("progress", async || {
            let record = client.task(&id).await;
            let progress = record["progress"].as_str()?.strip_suffix('%')?;
            (progress.parse::<u8>().ok()? > 0).then_some(record)
        });
        let running = running.await;
        if status(&running) != "completed" {
            assert_shape(&running, record(&id, "in_progress", json!({})));
        }
        let ended = client.wait_for_end(&id).await;
        check_completed(&client, &ended, &id).await;
    }
    gateway.close().await;
}

/// Checks the record, OpenAI's resource and the file.
async fn check_completed(client: &Client, ended: &Value, id: &str) {
    let url = ended["url"].as_str().expect("a link");
    assert!(url.starts_with(&client.url("/files/")), "{url}");
    let done = json!({
        "progress": "100%", "completed_at": "<now>", "expires_at": "<now+86400>", "url": url, "result_url": url, "video_url": url,
        "metadata": { "url": url },
    });
    assert_shape(ended, record(id, "completed", done));
    let mut resource = ended.clone();
    let members = resource.as_object_mut().unwrap();
    members
        .retain(|name, _| !["task_id", "cost"].contains(&name.as_str()) && !name.ends_with("url"));
    resource["progress"] = json!(100);
    let path = format!("/v1/videos/{id}");
    assert_eq!(client.get_json(&path).await, resource);

    let file = client.fetch(url).await.expect(200);
    assert_eq!(file.header("content-type"), "video/mp4");
    assert_eq!(mp4_ms(&file.body), 1000);
    let sent = content(client, id, &[]).await.expect(200);
    assert_eq!(sent.header("content-type"), "video/mp4");
    assert_eq!(sent.header("accept-ranges"), "bytes");
    assert!(sent.body == file.body, "the same video");
    let length = file.body.len();
    for (range, from, to) in [
        ("bytes=0-7", 0, 8),
        ("bytes=100-", 100, length),
        ("bytes=-16", length - 16, length),
    ] {
        let part = content(client, id, &[("range", range)]).await.expect(206);
        assert!(part.body == file.body[from..to], "{range}");
        let expected = format!("bytes {from}-{}/{length}", to - 1);
        assert_eq!(part.header("content-range"), expected, "{range}");
    }
    let outside = format!("bytes={length}-");
    let outside = [("range", outside.as_str())];
    content(client, id, &outside).await.expect(416);
    let url = client.url(&format!("{path}/content"));
    client.fetch(&url).await.rejected(401, "");
}

async fn a_form_with_an_image_generates_a_video(backend: Backend) {
    let (gateway, client) = TestGateway::with_client(backend).await;
    let form = async |path: &str, file: &[u8], fields: &[(&str, &str)]| {
        let part = |(name, value): &(&str, &str)| {
            format!("--edge\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
        };
        let fields: String = fields.iter().map(part).collect();
        let head = "--edge\r\nContent-Disposition: form-data; name=\"input_reference\"; filename=\"bay.png\"\r\n\
                    Content-Type: image/png\r\n\r\n";
        let end = b"\r\n--edge--\r\n";
        let form = [fields.as_bytes(), head.as_bytes(), file, end].concat();
        let media_type = "multipart/form-data; boundary=edge";
        client.post_bytes(path, media_type, &form).await
    };
    let image = png(320, 240);
    let fields = [
        ("model", MODEL),
        ("prompt", "a quiet bay"),
        ("seconds", "1"),
    ];
    let reply = form(VIDEOS, &image, &fields).await.expect(200).json();
    let mut expected = receipt();
    expected["size"] = json!("<string>");
    assert_shape(&reply, expected);
    let record = client.wait_for_end(&task_id(&reply)).await;
    assert_eq!(status(&record), "completed", "{record}");
    assert_eq!(record["size"], "640x480", "the image's ratio");
    let file = client.fetch(record["url"].as_str().unwrap()).await;
    assert_eq!(mp4_ms(&file.expect(200).body), 1000);

    // The other endpoint accepts only JSON; for a file that is not an image, the error names the field.
    form(GENERATIONS, &image, &fields).await.rejected(400, "");
    let reply = form(VIDEOS, b"no image", &[]).await;
    reply.rejected(400, "`input_reference`");
    gateway.close().await;
}

const PRICES: &str = r#"
[price."grok-imagine-video-1.5"]
per_second = 0.25
when = [{ resolution = "720p", per_second = 0.5 }, { size = "9:16", per_video = 0.7 }]
[price."veo-3.1-flash"]
per_video = 1.5
"#;

async fn videos_are_charged_per_second_or_per_video(backend: Backend) {
    let gateway = Setup::new(backend).config(PRICES).start().await;
    let client = gateway.funded_client("20").await;
    cases::check(&client, "video_prices", &[]).await;
    client.check_balances(20.0 - 0.95, 0.95).await;
    // A request whose price the balance does not cover is rejected.
    let poor = gateway.user_client("poor", &["--balance", "1"]).await;
    let body = json!({ "model": MODEL, "prompt": "x", "duration": 5 });
    poor.post(VIDEOS, &body).await.rejected(402, "");
    assert_eq!(poor.balances().await, (1.0, 0.0));
    gateway.close().await;
}

async fn failed_videos_are_not_charged(backend: Backend) {
    let config = format!("[time_limits]\nvideo_s = 2\n{PRICES}");
    let gateway = Setup::new(backend).config(&config).start().await;
    let client = gateway.funded_client("3").await;
    let mut tasks = Vec::new();
    for (prompt, code) in [
        ("[[sandbox:fail]]", "provider_error"),
        ("[[sandbox:partial=0]]", "provider_error"),
        ("[[sandbox:moderated]]", "moderated"),
        ("[[sandbox:status=400]]", "invalid_request"),
        ("[[sandbox:hang]]", "timeout"),
    ] {
        tasks.push((submit(&client, &video(prompt)).await, code));
    }
    for (id, code) in tasks {
        let record = client.wait_for_end(&id).await;
        assert_shape(&record, failed(&id, code));
        content(&client, &id, &[]).await.rejected(409, "failed");
    }
    let id = submit(&client, &video("[[sandbox:hang]]")).await;
    assert_eq!(client.balances().await, (2.75, 0.0));
    let early = content(&client, &id, &[]).await;
    early.rejected(409, "not completed");
    let record = client.cancel(&id).await.expect(200).json();
    assert_shape(&record, failed(&id, "cancelled"));
    client.cancel(&id).await.rejected(409, "");
    assert_eq!(client.balances().await, (3.0, 0.0));
    gateway.close().await;
}

async fn videos_are_visible_to_their_user_alone(backend: Backend) {
    let gateway = TestGateway::start(backend).await;
    let owner = gateway.unlimited_client().await;
    let other = gateway.unlimited_client().await;
    let id = submit(&owner, &video("a mill")).await;
    owner.wait_for_end(&id).await;
    let unknown = "task_01hzzzzzzzzzzzzzzzzzzzzzzz";
    for path in ["/v1/videos/ID", "/v1/videos/ID/content", "/v1/tasks/ID"] {
        let foreign = other.get(&path.replace("ID", &id)).await;
        foreign.rejected(404, "");
        let nothing = other.get(&path.replace("ID", unknown)).await;
        assert_eq!(foreign.body, nothing.body, "{path}");
    }
    other.cancel(&id).await.rejected(404, "");
    // The endpoints of videos do not return an image, whoever owns it.
    let image = json!({ "model": "imagen-4.0-partner", "prompt": "a mill", "size": "1:1" });
    let image = owner.submit(&image).await;
    for path in ["", "/content"] {
        let reply = owner.get(&format!("/v1/videos/{image}{path}")).await;
        reply.rejected(404, "");
    }
    gateway.close().await;
}

async fn video_links_expire(backend: Backend) {
    let config = "[expiry]\nimages_s = 3\n";
    let (gateway, client) = TestGateway::with_config(backend, config).await;
    let id = submit(&client, &video("a mill")).await;
    let record = client.wait_for_end(&id).await;
    let url = record["url"].as_str().unwrap();
    let expired = until("the link to expire", async || {
        let reply = client.fetch(url).await;
        assert!(matches!(reply.status, 200 | 410), "{}", reply.status);
        (reply.status == 410).then_some(reply)
    });
    let kind = expired.await.json()["error"]["type"].clone();
    assert!(now() >= record["expires_at"].as_i64().unwrap());
    let reply = content(&client, &id, &[]).await;
    reply.error(410, kind.as_str().unwrap());
    gateway.close().await;
}

/// The boxes in `bytes`, one after the other; they must fill `bytes` completely.
#[track_caller]
fn boxes(bytes: &[u8]) -> Vec<(&[u8], &[u8])> {
    let (mut found, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        let length = u32::from_be_bytes(rest[..4].try_into().unwrap()) as usize;
        assert!((8..=rest.len()).contains(&length), "a box of {length}");
        found.push((&rest[4..8], &rest[8..length]));
        rest = &rest[length..];
    }
    found
}

/// The duration of an MP4 file in milliseconds. It must start with `ftyp` and have `moov` and `mdat`.
#[track_caller]
pub(crate) fn mp4_ms(file: &[u8]) -> u64 {
    let all = boxes(file);
    let find = |boxes: &[(&[u8], &[u8])], name: &[u8]| {
        let found = boxes.iter().position(|(there, _)| *there == name);
        found.unwrap_or_else(|| panic!("no {}", String::from_utf8_lossy(name)))
    };
    assert_eq!(find(&all, b"ftyp"), 0, "a video starts with its type");
    assert!(all[find(&all, b"mdat")].1.len() > 100, "frames");
    let movie = boxes(all[find(&all, b"moov")].1);
    let header = movie[find(&movie, b"mvhd")].1;
    let number = |at: usize| u64::from(u32::from_be_bytes(header[at..at + 4].try_into().unwrap()));
    assert_eq!(header[0], 0, "the header's version");
    // After the version, the flags and two dates: the units per second, and the duration in these units.
    1000 * number(16) / number(12)
}
