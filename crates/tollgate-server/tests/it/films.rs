//! Films of the sandbox: both ways in, what receipts and records say, the file whole and in part, and the bill.

use bytes::Bytes;
use http::Method;
use http::header::CONTENT_TYPE;
use http_body_util::Full;
use serde_json::{Value, json};

use crate::gate::{Backend, Client, Gate, Reply, Setup, on_both, on_one, status, until};
use crate::pictures::png;
use crate::records::{about, names, now};

on_both!(
    both_ways_in_make_a_film,
    films_are_charged_by_the_second_or_the_piece,
    what_makes_no_film_costs_nothing,
);
on_one!(
    a_form_with_a_picture_makes_a_film,
    others_see_nothing_of_a_film,
    links_to_films_expire,
);

/// Where films are ordered.
const WAYS: [&str; 2] = ["/v1/video/generations", "/v1/videos"];
const MODEL: &str = "grok-imagine-video-1.5";
const DAY: i64 = 86_400;

const RECEIPT: [&str; 10] = [
    "code",
    "created_at",
    "id",
    "model",
    "object",
    "progress",
    "seconds",
    "size",
    "status",
    "task_id",
];
const RECORD: [&str; 17] = [
    "completed_at",
    "cost",
    "created_at",
    "error",
    "expires_at",
    "id",
    "metadata",
    "model",
    "object",
    "progress",
    "result_url",
    "seconds",
    "size",
    "status",
    "task_id",
    "url",
    "video_url",
];
const RESOURCE: [&str; 12] = [
    "completed_at",
    "created_at",
    "error",
    "expires_at",
    "id",
    "metadata",
    "model",
    "object",
    "progress",
    "seconds",
    "size",
    "status",
];

/// A gateway whose sandbox films in no time.
fn studio(backend: Backend) -> Setup {
    Setup::new(backend).env("TOLLGATE_SANDBOX__VIDEO_MS", "0")
}

/// The smallest film that there is: a second of 480 × 480.
fn film(prompt: &str) -> Value {
    json!({ "model": MODEL, "prompt": prompt, "duration": 1, "aspect_ratio": "1:1" })
}

/// Orders a film, which must be taken; answers the task's id.
async fn order(client: &Client, body: &Value) -> String {
    let receipt = client.post(WAYS[0], body).await.expect(200).json();
    receipt["task_id"].as_str().expect("an id").to_owned()
}

async fn resource(client: &Client, id: &str) -> Value {
    let reply = client.get(&format!("/v1/videos/{id}")).await;
    reply.expect(200).json()
}

/// The film as `GET /v1/videos/<id>/content` sends it.
async fn content(client: &Client, id: &str, headers: &[(&str, &str)]) -> Reply {
    let path = format!("/v1/videos/{id}/content");
    let mut request = client.request(Method::GET, &path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    client.send(request.body(Full::default()).unwrap()).await
}

/// The boxes that stand in `bytes` one after the other; they must fill it to the last byte.
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

/// How long an MP4 file plays, in milliseconds. It must begin with `ftyp` and hold `moov` and `mdat`.
#[track_caller]
pub(crate) fn mp4_ms(file: &[u8]) -> u64 {
    let all = boxes(file);
    let inside = |boxes: &[(&[u8], &[u8])], name: &[u8]| {
        let found = boxes.iter().position(|(there, _)| *there == name);
        found.unwrap_or_else(|| panic!("no {}", String::from_utf8_lossy(name)))
    };
    assert_eq!(inside(&all, b"ftyp"), 0, "a film begins with its type");
    assert!(all[inside(&all, b"mdat")].1.len() > 100, "pictures");
    let movie = boxes(all[inside(&all, b"moov")].1);
    let header = movie[inside(&movie, b"mvhd")].1;
    let number = |at: usize| u64::from(u32::from_be_bytes(header[at..at + 4].try_into().unwrap()));
    assert_eq!(header[0], 0, "the header's version");
    // After version, flags and two dates: units in a second, and the length in them.
    1000 * number(16) / number(12)
}

async fn both_ways_in_make_a_film(backend: Backend) {
    let gate = studio(backend).start().await;
    let client = gate.somebody().await;
    for way in WAYS {
        let body = film("[[sandbox:delay=1200]] a lighthouse");
        let receipt = client.post(way, &body).await.expect(200).json();
        assert_eq!(names(&receipt), RECEIPT, "{receipt}");
        let id = receipt["task_id"].as_str().unwrap();
        assert!(id.starts_with("task_") && receipt["id"] == id, "{receipt}");
        for (name, value) in [
            ("object", "video"),
            ("model", MODEL),
            ("status", "queued"),
            ("progress", "0%"),
            ("code", "success"),
            ("seconds", "1"),
            ("size", "480x480"),
        ] {
            assert_eq!(receipt[name], value, "{way} {name}");
        }
        assert!(about(&receipt["created_at"], now()), "{receipt}");

        unfinished(&client, id).await;
        let record = client.ended(id).await;
        finished(&client, &record).await;
    }
    gate.close().await;
}

/// Looks at a film that is being made.
async fn unfinished(client: &Client, id: &str) {
    let record = until("progress", async || {
        let record = client.task(id).await;
        assert_ne!(status(&record), "failed", "{record}");
        let progress = record["progress"].as_str()?.strip_suffix('%')?;
        (progress.parse::<u8>().ok()? > 0).then_some(record)
    })
    .await;
    assert_eq!(names(&record), RECORD, "{record}");
    if status(&record) == "completed" {
        return;
    }
    assert_eq!(status(&record), "in_progress");
    for link in ["result_url", "url", "video_url"] {
        assert_eq!(record[link], "", "{record}");
    }
    for name in ["completed_at", "expires_at", "error"] {
        assert!(record[name].is_null(), "{record}");
    }
    assert_eq!(record["metadata"], json!({}), "{record}");
}

/// Looks at a film that is made, from every side.
async fn finished(client: &Client, record: &Value) {
    let id = record["id"].as_str().unwrap();
    assert_eq!(names(record), RECORD, "{record}");
    assert_eq!(status(record), "completed", "{record}");
    assert_eq!(record["task_id"], id);
    assert_eq!(record["progress"], "100%");
    let (seconds, size) = (&record["seconds"], &record["size"]);
    assert_eq!((seconds, size), (&json!("1"), &json!("480x480")));
    assert!(about(&record["completed_at"], now()), "{record}");
    assert!(about(&record["expires_at"], now() + DAY), "{record}");
    assert!(record["error"].is_null(), "{record}");
    let url = record["result_url"].as_str().expect("a link");
    assert!(url.starts_with(&client.url("/files/")), "{url}");
    assert_eq!(
        (&record["url"], &record["video_url"]),
        (&json!(url), &json!(url))
    );
    assert_eq!(record["metadata"], json!({ "url": url }));

    // OpenAI's resource says the same, its progress as a number.
    let resource = resource(client, id).await;
    assert_eq!(names(&resource), RESOURCE, "{resource}");
    assert_eq!(resource["progress"], 100);
    for name in RESOURCE.iter().filter(|name| **name != "progress") {
        assert_eq!(resource[*name], record[*name], "{name}");
    }
    let batch = client
        .post("/v1/tasks/batch", &json!({ "task_ids": [id] }))
        .await;
    assert_eq!(batch.expect(200).json()["data"], json!([record]));

    files(client, id, url).await;
}

/// Looks at a film's file: by its link and by its task, whole and in part.
async fn files(client: &Client, id: &str, url: &str) {
    let whole = client.fetch(url).await.expect(200);
    assert_eq!(whole.header("content-type"), "video/mp4");
    assert_eq!(mp4_ms(&whole.body), 1000);
    let sent = content(client, id, &[]).await.expect(200);
    assert_eq!(sent.header("content-type"), "video/mp4");
    assert_eq!(sent.header("accept-ranges"), "bytes");
    assert!(sent.body == whole.body, "the same film");

    let length = whole.body.len();
    for (range, from, to) in [
        ("bytes=0-7", 0, 8),
        ("bytes=100-", 100, length),
        ("bytes=-16", length - 16, length),
    ] {
        let part = content(client, id, &[("range", range)]).await.expect(206);
        assert!(part.body == whole.body[from..to], "{range}");
        let said = format!("bytes {from}-{}/{length}", to - 1);
        assert_eq!(part.header("content-range"), said, "{range}");
    }
    let outside = format!("bytes={length}-");
    content(client, id, &[("range", &outside)])
        .await
        .expect(416);
    let address = client.url(&format!("/v1/videos/{id}/content"));
    let nobody = client.fetch(&address).await;
    nobody.error(401, "authentication_error");
}

async fn a_form_with_a_picture_makes_a_film(backend: Backend) {
    let gate = studio(backend).start().await;
    let client = gate.somebody().await;
    let picture = png(320, 240);
    let mut form = Vec::new();
    for (name, value) in [
        ("model", MODEL),
        ("prompt", "a quiet bay"),
        ("seconds", "1"),
    ] {
        let part =
            format!("--edge\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        form.extend_from_slice(part.as_bytes());
    }
    form.extend_from_slice(
        b"--edge\r\nContent-Disposition: form-data; name=\"input_reference\"; filename=\"bay.png\"\r\n\
          Content-Type: image/png\r\n\r\n",
    );
    form.extend_from_slice(&picture);
    form.extend_from_slice(b"\r\n--edge--\r\n");
    let send = |form: Vec<u8>| {
        let request = client
            .request(Method::POST, WAYS[1])
            .header(CONTENT_TYPE, "multipart/form-data; boundary=edge");
        client.send(request.body(Full::from(Bytes::from(form))).unwrap())
    };
    let receipt = send(form.clone()).await.expect(200).json();
    assert_eq!(names(&receipt), RECEIPT, "{receipt}");
    let id = receipt["id"].as_str().unwrap();
    let record = client.ended(id).await;
    assert_eq!(status(&record), "completed", "{record}");
    assert_eq!(record["size"], "640x480", "the picture's ratio");
    let film = client.fetch(record["url"].as_str().unwrap()).await;
    assert_eq!(mp4_ms(&film.expect(200).body), 1000);

    // The JSON path takes no form, and a file that is no picture is named.
    let request = client
        .request(Method::POST, WAYS[0])
        .header(CONTENT_TYPE, "multipart/form-data; boundary=edge");
    let reply = client.send(request.body(Full::from(Bytes::from(form))).unwrap());
    reply.await.error(400, "invalid_request_error");
    let broken = "--edge\r\nContent-Disposition: form-data; name=\"input_reference\"; filename=\"x\"\r\n\r\n\
                  no picture\r\n--edge--\r\n";
    let message = send(broken.into())
        .await
        .error(400, "invalid_request_error");
    assert!(message.contains("`input_reference`"), "{message}");
    gate.close().await;
}

const PRICES: &str = r#"
[price."grok-imagine-video-1.5"]
per_second = 0.25
when = [{ resolution = "720p", per_second = 0.5 }, { size = "9:16", per_video = 0.7 }]
[price."veo-3.1-flash"]
per_video = 1.5
"#;

async fn films_are_charged_by_the_second_or_the_piece(backend: Backend) {
    let gate = studio(backend).config(PRICES).start().await;
    let client = gate.somebody_with("payer", &["--balance", "20"]).await;
    // What is held tells the price; the film itself need not be made.
    for (fields, price) in [
        (json!({ "duration": 1 }), 0.25),
        (json!({ "seconds": "7" }), 1.75),
        (json!({}), 1.5),
        (json!({ "duration": 15, "resolution": "720p" }), 7.5),
        (json!({ "duration": 9, "size": "1280x720" }), 4.5),
        (json!({ "duration": 9, "aspect_ratio": "9:16" }), 0.7),
        (json!({ "model": "veo-3.1-flash" }), 1.5),
        (json!({ "model": "veo-3.1-flash", "duration": 4 }), 1.5),
        (json!({ "model": "veo-3.1-pro" }), 0.0),
    ] {
        let mut body = json!({ "model": MODEL, "prompt": "[[sandbox:hang]]" });
        let fields = fields.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(fields);
        let id = order(&client, &body).await;
        assert_eq!(client.purse().await, (20.0 - price, 0.0), "{body}");
        client.cancel(&id).await.expect(200);
    }
    assert_eq!(client.purse().await, (20.0, 0.0));

    let mut spent = 0.0;
    for (ratio, price) in [("1:1", 0.25), ("9:16", 0.7)] {
        let mut body = film("[[sandbox:fail=1]] a harbour");
        body["aspect_ratio"] = ratio.into();
        let record = client.ended(&order(&client, &body).await).await;
        assert_eq!(status(&record), "completed", "{record}");
        assert_eq!(record["cost"], price, "{record}");
        spent += price;
        let (remains, used) = client.purse().await;
        let off = (remains - (20.0 - spent)).abs() + (used - spent).abs();
        assert!(off < 1e-9, "{remains} {used}");
    }
    // Nothing is taken that the account cannot pay.
    let poor = gate.somebody_with("poor", &["--balance", "1"]).await;
    let body = json!({ "model": MODEL, "prompt": "x", "duration": 5 });
    let refused = poor.post(WAYS[1], &body).await;
    refused.error(402, "payment_required");
    assert_eq!(poor.purse().await, (1.0, 0.0));
    gate.close().await;
}

async fn what_makes_no_film_costs_nothing(backend: Backend) {
    let config = format!("[time_limits]\nvideo_s = 2\n{PRICES}");
    let gate = studio(backend).config(&config).start().await;
    let client = gate.somebody_with("payer", &["--balance", "1"]).await;
    for (prompt, code) in [
        ("[[sandbox:fail]]", "provider_error"),
        ("[[sandbox:partial=0]]", "provider_error"),
        ("[[sandbox:moderated]]", "moderated"),
        ("[[sandbox:status=400]]", "invalid_request"),
        ("[[sandbox:hang]]", "timeout"),
    ] {
        let id = order(&client, &film(prompt)).await;
        let record = client.ended(&id).await;
        assert_eq!(names(&record), RECORD, "{record}");
        assert_eq!(status(&record), "failed", "{prompt}: {record}");
        assert_eq!(record["error"]["code"], code, "{prompt}: {record}");
        assert_eq!(record["cost"], 0.0, "{prompt}: {record}");
        assert_eq!(
            (&record["url"], &record["metadata"]),
            (&json!(""), &json!({}))
        );
        assert!(record["completed_at"].is_null(), "{record}");
        let none = content(&client, &id, &[]).await;
        let message = none.error(409, "invalid_request_error");
        assert!(message.contains("failed"), "{message}");
    }
    let id = order(&client, &film("[[sandbox:hang]]")).await;
    assert_eq!(client.purse().await, (0.75, 0.0));
    let early = content(&client, &id, &[]).await;
    let message = early.error(409, "invalid_request_error");
    assert!(message.contains("not completed"), "{message}");
    let record = client.cancel(&id).await.expect(200).json();
    assert_eq!(names(&record), RECORD, "{record}");
    assert_eq!(status(&record), "failed");
    assert_eq!(record["error"]["code"], "cancelled", "{record}");
    assert_eq!(record["cost"], 0.0);
    client.cancel(&id).await.error(409, "invalid_request_error");
    assert_eq!(client.purse().await, (1.0, 0.0));
    gate.close().await;
}

async fn others_see_nothing_of_a_film(backend: Backend) {
    let gate = studio(backend).start().await;
    let (owner, other) = (gate.somebody().await, gate.somebody().await);
    let id = order(&owner, &film("a mill")).await;
    owner.ended(&id).await;
    let unknown = "task_01hzzzzzzzzzzzzzzzzzzzzzzz";
    for way in ["/v1/videos/ID", "/v1/videos/ID/content", "/v1/tasks/ID"] {
        let of = |id: &str| way.replace("ID", id);
        let theirs = other.get(&of(&id)).await.expect(404);
        let nobodys = other.get(&of(unknown)).await.expect(404);
        assert_eq!(theirs.body, nobodys.body, "{way}");
        theirs.error(404, "not_found_error");
    }
    other.cancel(&id).await.error(404, "not_found_error");
    // A picture is no film, whosever it is.
    let picture = json!({ "model": "imagen-4.0-partner", "prompt": "a mill", "size": "1:1" });
    let picture = owner.submit(&picture).await;
    for way in ["", "/content"] {
        let reply = owner.get(&format!("/v1/videos/{picture}{way}")).await;
        reply.error(404, "not_found_error");
    }
    owner.ended(&picture).await;
    gate.close().await;
}

async fn links_to_films_expire(backend: Backend) {
    let gate: Gate = studio(backend)
        .config("[expiry]\nimages_s = 3\n")
        .start()
        .await;
    let client = gate.somebody().await;
    let id = order(&client, &film("a mill")).await;
    let record = client.ended(&id).await;
    let url = record["url"].as_str().unwrap();
    let gone = until("the link to expire", async || {
        let reply = client.fetch(url).await;
        assert!(matches!(reply.status, 200 | 410), "{}", reply.status);
        (reply.status == 410).then_some(reply)
    })
    .await;
    assert!(now() >= record["expires_at"].as_i64().unwrap());
    let kind = gone.json()["error"]["type"].as_str().unwrap().to_owned();
    content(&client, &id, &[]).await.error(410, &kind);
    gate.close().await;
}
