//! Kling: speech at once, films as tasks of two kinds; keys and tokens.

use serde_json::{Value, json};
use tollgate_fakes::{Options, Provider};

use crate::client::send;
use crate::media::{Site, base64, data_uri, png};

const LINK: &str = "https://example.org/a.png";
const JSON: (&str, &str) = ("content-type", "application/json");

// Tokens of the access key `ak`, made elsewhere: signed with `sk` and valid until 2100; signed with
// something else; of another key; not valid yet; no longer valid; without `nbf`; without signing.
const GOOD: &str = "Bearer eyJhbGciOiAiSFMyNTYiLCAidHlwIjogIkpXVCJ9.eyJpc3MiOiAiYWsiLCAiZXhwIjogNDEwMjQ0NDgwMCwgIm5iZiI6IDE3MDAwMDAwMDB9.Ovf2utA2SljCc7XyBHok46aelIkTG_TnZhTZUk9goQU";
const FORGED: &str = "Bearer eyJhbGciOiAiSFMyNTYiLCAidHlwIjogIkpXVCJ9.eyJpc3MiOiAiYWsiLCAiZXhwIjogNDEwMjQ0NDgwMCwgIm5iZiI6IDE3MDAwMDAwMDB9.KzWo4oRFRMMALKhW62ADKVBnSJqoNUwEI58psfU1Sas";
const STRANGE: &str = "Bearer eyJhbGciOiAiSFMyNTYiLCAidHlwIjogIkpXVCJ9.eyJpc3MiOiAid2hvIiwgImV4cCI6IDQxMDI0NDQ4MDAsICJuYmYiOiAxNzAwMDAwMDAwfQ.oFlmamJFOL-10cXQ_Ir-duMFRMOUzA6wyBH4rWnxgrI";
const EARLY: &str = "Bearer eyJhbGciOiAiSFMyNTYiLCAidHlwIjogIkpXVCJ9.eyJpc3MiOiAiYWsiLCAiZXhwIjogNDEwMjQ0NDgwMCwgIm5iZiI6IDQxMDI0NDMwMDB9.GPV0bBN_V_OClsgqa0bhzf3nIw_XokyiPFwqsd3hf_k";
const LATE: &str = "Bearer eyJhbGciOiAiSFMyNTYiLCAidHlwIjogIkpXVCJ9.eyJpc3MiOiAiYWsiLCAiZXhwIjogMTcwMDAwMTgwMCwgIm5iZiI6IDE3MDAwMDAwMDB9.MlqpctiFVSRHJyNgRONB8vUlWRMyj-JCnxs35Cc1YbM";
const BARE: &str = "Bearer eyJhbGciOiAiSFMyNTYiLCAidHlwIjogIkpXVCJ9.eyJpc3MiOiAiYWsiLCAiZXhwIjogNDEwMjQ0NDgwMH0.Ca51vf_FqEsOQjPCTG4i34fUBmRxjFmCrzJaZt3IZBw";
const UNSIGNED: &str = "Bearer eyJhbGciOiAibm9uZSIsICJ0eXAiOiAiSldUIn0.eyJpc3MiOiAiYWsiLCAiZXhwIjogNDEwMjQ0NDgwMCwgIm5iZiI6IDE3MDAwMDAwMDB9.WvlF7ZsURgDgDS7wOPH2hkatNoSIVG6BrMffGL-Hsw8";

fn options() -> Options {
    Options {
        keys: vec!["k".to_owned(), "ak:sk".to_owned()],
        ..Options::default()
    }
}

async fn site() -> Site {
    Site::start(
        Provider::Kling,
        options(),
        "",
        &[("authorization", "Bearer k")],
    )
    .await
}

fn speech() -> Value {
    json!({"text": "hello to all of you", "voice_id": "oversea_male1", "voice_language": "en"})
}

fn film() -> Value {
    json!({"prompt": "a tree", "settings": {"resolution": "1080p", "aspect_ratio": "9:16",
        "duration": 5, "audio": "native"}})
}

fn older() -> Value {
    json!({"model_name": "kling-v2-6", "prompt": "a tree", "mode": "std", "duration": "5"})
}

#[tokio::test]
async fn keys_and_tokens() {
    let site = site().await;
    let tts = "/v1/audio/tts";
    let film_of_old = "/v1/videos/text2video";
    let newer = "/text-to-video/kling-2.6";
    for (path, authorization, code, rule) in [
        (tts, "Bearer k", 0, ""),
        (newer, "Bearer k", 0, ""),
        (tts, GOOD, 0, ""),
        (film_of_old, "Bearer k", 0, ""),
        (film_of_old, GOOD, 0, ""),
        (film_of_old, FORGED, 1000, "jwt-signature"),
        (film_of_old, LATE, 1004, "jwt-late"),
        (newer, GOOD, 1002, "jwt-path"),
        (tts, "", 1001, "auth"),
        (tts, "Bearer no", 1002, "key"),
        (tts, STRANGE, 1002, "key"),
        (tts, FORGED, 1000, "jwt-signature"),
        (tts, EARLY, 1003, "jwt-early"),
        (tts, LATE, 1004, "jwt-late"),
        (tts, BARE, 1002, "jwt-claims"),
        (tts, UNSIGNED, 1002, "jwt-header"),
    ] {
        let body = match path {
            path if path == tts => speech(),
            path if path == newer => film(),
            _ => older(),
        };
        let headers = [JSON, ("authorization", authorization)];
        let reply = send(&site.fake, "POST", path, &headers, body.to_string()).await;
        let reply = reply.expect("an answer");
        assert_eq!(
            (&reply.json()["code"], reply.header("x-fake-rule")),
            (&json!(code), rule)
        );
        assert_eq!(reply.status, if code == 0 { 200 } else { 401 });
        assert_eq!(reply.json()["request_id"], reply.header("x-request-id"));
    }
    let reply = site.get("/v1/audio").await;
    assert_eq!((reply.status, &reply.json()["code"]), (404, &json!(1202)));
}

#[tokio::test]
async fn speech_is_made() {
    let site = site().await;
    let path = "/v1/audio/tts";
    let answer = site.good(path, &speech()).await;
    assert_eq!(
        (&answer["code"], &answer["data"]["task_status"]),
        (&json!(0), &json!("succeed"))
    );
    let audio = &answer["data"]["task_result"]["audios"][0];
    assert!(
        audio["duration"]
            .as_str()
            .is_some_and(|text| text.parse::<f64>().is_ok())
    );
    let file = site.fetch(&audio["url"]).await;
    assert_eq!(file.header("content-type"), "audio/mpeg");
    let id = answer["data"]["task_id"].as_str().expect("an id");
    let again = site.get(&format!("{path}/{id}")).await.json();
    assert_eq!(
        again["data"]["task_result"]["audios"][0]["url"],
        audio["url"]
    );
    let mut body = speech();
    body["text"] = json!("[[fake:polls=2]]");
    let answer = site.good(path, &body).await;
    assert_eq!(answer["data"]["task_status"], "submitted");
    let own = format!(
        "{path}/{}",
        answer["data"]["task_id"].as_str().expect("an id")
    );
    assert_eq!(
        site.get(&own).await.json()["data"]["task_status"],
        "processing"
    );
    assert_eq!(
        site.get(&own).await.json()["data"]["task_status"],
        "succeed"
    );
    body["text"] = json!("[[fake:fail]]");
    let answer = site.good(path, &body).await;
    assert_eq!(
        (&answer["code"], &answer["data"]["task_status"]),
        (&json!(0), &json!("failed"))
    );
    assert!(
        answer["data"]["task_status_msg"]
            .as_str()
            .is_some_and(|text| !text.is_empty())
    );
    body["text"] = json!("[[fake:blocked]]");
    let reply = site.post(path, &body).await;
    assert_eq!((reply.status, &reply.json()["code"]), (400, &json!(1301)));
    site.table(
        path,
        &speech(),
        &[
            ("", json!({"voice_speed": 1.25})),
            (
                "",
                json!({"voice_id": "genshin_vindi2", "voice_language": "zh"}),
            ),
            ("voice", json!({"voice_language": "zh"})),
            ("voice", json!({"voice_id": "no such voice"})),
            ("missing-field", json!({"voice_language": null})),
            ("value", json!({"voice_language": "de"})),
            ("range", json!({"voice_speed": 0.5})),
            ("length", json!({"text": "x".repeat(1001)})),
            ("empty-text", json!({"text": ""})),
            ("unknown-field", json!({"callback_url": LINK})),
            ("unknown-field", json!({"external_task_id": "mine"})),
            ("unknown-field", json!({"model_name": "kling-v3"})),
        ],
    )
    .await;
}

#[tokio::test]
async fn faults() {
    let site = site().await;
    let mut body = speech();
    for (text, status, code) in [
        ("[[fake:quota-exhausted]]", 429, 1102),
        ("[[fake:rate-limited]]", 429, 1302),
        ("[[fake:overloaded]]", 429, 1303),
        ("[[fake:key-refused]]", 401, 1002),
        ("[[fake:model-missing]]", 404, 1203),
        ("[[fake:status=500]]", 500, 5000),
        ("[[fake:status=503]]", 503, 5001),
        ("[[fake:status=504]]", 504, 5002),
    ] {
        body["text"] = json!(text);
        let reply = site.post("/v1/audio/tts", &body).await;
        assert_eq!(
            (reply.status, &reply.json()["code"]),
            (status, &json!(code)),
            "{text}"
        );
    }
}

#[tokio::test]
async fn films_of_the_newer_apis() {
    let site = site().await;
    let path = "/text-to-video/kling-2.6";
    let mut body = film();
    body["prompt"] = json!("[[fake:polls=3]]");
    body["options"] = json!({"external_task_id": "mine", "watermark_info": {"enabled": true}});
    let answer = site.good(path, &body).await;
    let id = answer["data"]["id"].as_str().expect("an id");
    assert_eq!(
        (&answer["data"]["status"], &answer["data"]["external_id"]),
        (&json!("submitted"), &json!("mine"))
    );
    let twice = site.post(path, &body).await;
    assert_eq!(
        (twice.status, twice.header("x-fake-rule")),
        (400, "external-id")
    );
    let by_own = site.get("/tasks?external_task_ids=mine").await.json();
    assert_eq!(by_own["data"][0]["id"], id);
    let by_id = format!("/tasks?task_ids=none,{id}");
    assert_eq!(
        site.get(&by_id).await.json()["data"][0]["status"],
        "processing"
    );
    let state = site.get(&by_id).await.json();
    assert_eq!(
        state["data"].as_array().map(Vec::len),
        Some(1),
        "unknown ids are left out"
    );
    let output = &state["data"][0]["outputs"][0];
    assert_eq!(
        (&state["data"][0]["status"], &output["duration"]),
        (&json!("succeeded"), &json!("5"))
    );
    for link in ["url", "watermark_url"] {
        assert_eq!(
            site.fetch(&output[link]).await.header("content-type"),
            "video/mp4"
        );
    }
    assert_eq!(site.fake.polls()[0].1.len(), 3);
    assert_eq!(
        site.get("/tasks?task_ids=none").await.json()["data"],
        json!([])
    );
    assert_eq!(site.get("/tasks").await.header("x-fake-rule"), "ids");
    for (text, message) in [
        ("[[fake:content-filter]]", "risk control"),
        ("[[fake:fail]]", "internal error"),
    ] {
        let answer = site.good(path, &json!({"prompt": text})).await;
        let id = answer["data"]["id"].as_str().expect("an id");
        let state = site.get(&format!("/tasks?task_ids={id}")).await.json();
        assert_eq!(
            (&state["code"], &state["data"][0]["status"]),
            (&json!(0), &json!("failed"))
        );
        assert!(
            state["data"][0]["message"]
                .as_str()
                .is_some_and(|text| text.contains(message))
        );
    }
}

#[tokio::test]
async fn films_of_the_newer_apis_are_refused() {
    let site = site().await;
    let set = |settings: Value| json!({"settings": settings});
    site.table(
        "/text-to-video/kling-2.6",
        &film(),
        &[
            ("", json!({})),
            ("missing-field", json!({"prompt": null})),
            ("length", json!({"prompt": "x".repeat(2501)})),
            ("unknown-field", json!({"negative_prompt": "x"})),
            ("unknown-field", json!({"duration": 5})),
            ("unknown-field", set(json!({"seed": 1}))),
            ("type", set(json!({"duration": "5"}))),
            ("duration", set(json!({"duration": 7}))),
            ("resolution", set(json!({"resolution": "4k"}))),
            ("audio", set(json!({"audio": "native"}))),
            ("multi-shot", set(json!({"multi_shot": true}))),
            ("value", set(json!({"aspect_ratio": "4:3"}))),
            ("callback-url", json!({"options": {"callback_url": "here"}})),
        ],
    )
    .await;
    site.table(
        "/text-to-video/kling-3.0",
        &film(),
        &[
            ("", json!({"prompt": "x".repeat(3072)})),
            (
                "",
                set(json!({"duration": 7, "resolution": "4k", "audio": "native"})),
            ),
        ],
    )
    .await;
    site.table(
        "/text-to-video/kling-3.0-turbo",
        &json!({"prompt": "a tree", "settings": {"duration": 7}}),
        &[
            ("", json!({})),
            ("audio", set(json!({"audio": "off"}))),
            ("resolution", set(json!({"resolution": "4k"}))),
            ("multi-shot", set(json!({"multi_shot": false}))),
        ],
    )
    .await;
    let unknown = site.post("/text-to-video/kling-9", &film()).await;
    assert_eq!(
        (unknown.status, &unknown.json()["code"]),
        (404, &json!(1203))
    );
    let frame = |kind: &str, url: &str| json!({"type": kind, "url": url});
    let first = frame("first_frame", LINK);
    let base = json!({"contents": [{"type": "prompt", "text": "a tree"}, first]});
    let contents = |items: &[Value]| json!({"contents": items});
    let bytes = png(300, 300);
    let both = |settings: Value| {
        let last = frame("last_frame", LINK);
        json!({"contents": [frame("first_frame", &base64(&bytes)), last], "settings": settings})
    };
    for (model, rule) in [
        ("kling-3.0", ""),
        ("kling-3.0-turbo", "last-frame"),
        ("kling-2.5-turbo", "last-frame"),
    ] {
        let path = format!("/image-to-video/{model}");
        site.table(&path, &both(json!({})), &[(rule, json!({}))])
            .await;
    }
    site.table(
        "/image-to-video/kling-2.6",
        &base,
        &[
            ("", json!({})),
            ("", both(json!({"resolution": "1080p"}))),
            ("last-frame", both(json!({}))),
            (
                "last-frame",
                both(json!({"resolution": "1080p", "audio": "native"})),
            ),
            (
                "data-uri",
                contents(&[frame("first_frame", &data_uri("image/png", &bytes))]),
            ),
            ("image-data", contents(&[frame("first_frame", "AAAA")])),
            (
                "frames",
                contents(&[json!({"type": "prompt", "text": "a tree"})]),
            ),
            ("frames", contents(&[first.clone(), first.clone()])),
            (
                "content",
                contents(&[json!({"type": "first_frame", "text": LINK})]),
            ),
            ("value", contents(&[frame("image", LINK)])),
            (
                "unknown-field",
                json!({"settings": {"aspect_ratio": "16:9"}}),
            ),
            ("unknown-field", json!({"prompt": "x"})),
        ],
    )
    .await;
}

#[tokio::test]
async fn films_of_the_older_apis() {
    let site = site().await;
    let path = "/v1/videos/text2video";
    let mut body = older();
    body["external_task_id"] = json!("mine");
    body["prompt"] = json!("[[fake:polls=2]]");
    let answer = site.good(path, &body).await;
    assert_eq!(answer["data"]["task_info"]["external_task_id"], "mine");
    let id = answer["data"]["task_id"].as_str().expect("an id");
    assert_eq!(
        site.get(&format!("{path}/{id}")).await.json()["data"]["task_status"],
        "processing"
    );
    let other = site.get(&format!("/v1/videos/image2video/{id}")).await;
    assert_eq!(
        (other.status, &other.json()["code"]),
        (404, &json!(1203)),
        "asked where it was made"
    );
    let by_own = site.get(&format!("{path}/mine")).await.json();
    assert_eq!(by_own["data"]["task_id"], id);
    assert_eq!(by_own["data"]["task_status"], "succeed");
    assert_eq!(site.fake.polls()[0].1.len(), 3, "by whichever id");
    let nobodys = site.get(&format!("{path}/nobodys")).await;
    assert_eq!(
        (nobodys.status, &nobodys.json()["code"]),
        (404, &json!(1203))
    );
    let state = site.get(&format!("{path}/{id}")).await.json();
    assert_eq!(state["data"]["task_status"], "succeed");
    let video = &state["data"]["task_result"]["videos"][0];
    assert_eq!(video["duration"], "5");
    assert_eq!(
        site.fetch(&video["url"]).await.header("content-type"),
        "video/mp4"
    );
    let whole = json!({
        "mode": "pro", "sound": "on", "aspect_ratio": "1:1", "negative_prompt": "fog",
        "watermark_info": {"enabled": true},
    });
    site.table(
        path,
        &older(),
        &[
            ("", json!({})),
            ("", whole),
            ("external-id", json!({"external_task_id": "mine"})),
            ("type", json!({"duration": 5})),
            ("value", json!({"duration": "2"})),
            ("duration", json!({"duration": "8"})),
            ("", json!({"duration": "8", "model_name": "kling-v3"})),
            ("mode", json!({"mode": "4k"})),
            (
                "",
                json!({"mode": "4k", "sound": "on", "model_name": "kling-v3"}),
            ),
            ("mode", json!({"model_name": "kling-v2-master"})),
            ("", json!({"mode": null, "model_name": "kling-v2-master"})),
            ("sound", json!({"sound": "on"})),
            ("model", json!({"model_name": "kling-2.6"})),
            ("model", json!({"model_name": "kling-v2-1"})),
            ("unknown-field", json!({"model": "kling-v2-6"})),
            ("unknown-field", json!({"image": LINK})),
            ("unknown-field", json!({"seed": 7})),
            ("unsupported", json!({"cfg_scale": 0.5})),
            ("", json!({"cfg_scale": 0.5, "model_name": "kling-v1-6"})),
            (
                "unsupported",
                json!({"sound": "on", "model_name": "kling-v1-6"}),
            ),
            ("empty-prompt", json!({"prompt": ""})),
            ("length", json!({"negative_prompt": "x".repeat(2501)})),
        ],
    )
    .await;
    let both = |more: Value| {
        let mut both = json!({"image": LINK, "image_tail": base64(&png(300, 300))});
        both.as_object_mut()
            .expect("an object")
            .extend(more.as_object().cloned().unwrap_or_default());
        both
    };
    let uri = data_uri("image/png", &png(300, 300));
    site.table(
        "/v1/videos/image2video",
        &older(),
        &[
            ("missing-field", json!({})),
            ("", json!({"image": LINK, "model_name": "kling-v2-1"})),
            ("", both(json!({"mode": "pro"}))),
            ("tail", both(json!({}))),
            ("tail", both(json!({"mode": "pro", "sound": "on"}))),
            ("", both(json!({"model_name": "kling-v3", "sound": "on"}))),
            ("", both(json!({"model_name": "kling-v1"}))),
            (
                "tail",
                both(json!({"model_name": "kling-v1", "duration": "10"})),
            ),
            (
                "tail",
                both(json!({"model_name": "kling-v2-1-master", "mode": null})),
            ),
            ("data-uri", json!({"image": uri})),
            (
                "unknown-field",
                json!({"image": LINK, "aspect_ratio": "16:9"}),
            ),
        ],
    )
    .await;
}
