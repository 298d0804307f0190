//! Receipts and records of every shape.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use tollgate_core::{Adjustment, Amount, TaskState};
use tollgate_media::{AnyFamily, ReceiptData, RecordData, ResultFile, response, video_resource};

const IMAGES: &[ResultFile<'_>] = &[
    file("https://h/1.png", "image/png"),
    file("https://h/2.png", "image/png"),
];

/// What image tasks keep of their requests.
static NOTHING: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);

const fn file(url: &'static str, media_type: &'static str) -> ResultFile<'static> {
    ResultFile {
        url,
        expires_at: 1_700_086_400_999,
        media_type,
        bytes: Some(1000),
    }
}

fn family(name: &str) -> AnyFamily {
    AnyFamily::by_name(name).unwrap()
}

fn task(state: TaskState) -> RecordData<'static> {
    let done = state == TaskState::Completed;
    RecordData {
        task_id: "task_1",
        model: "m",
        state,
        progress: if done { 100 } else { 40 },
        created_at: 1_700_000_000_000,
        started_at: Some(1_700_000_001_000),
        ended_at: state.is_final().then_some(1_700_000_008_900),
        cost: if done {
            Amount::from_nanos(80_000_000)
        } else {
            Amount::ZERO
        },
        files: if done { IMAGES } else { &[] },
        error: (state == TaskState::Failed).then_some(("provider_error", "it broke")),
        adjustments: &[],
        echoed_fields: &NOTHING,
    }
}

fn receipt(name: &str, adjustments: &[Adjustment]) -> Value {
    let data = ReceiptData {
        task_id: "task_1",
        model: "m",
        created_at: 1_700_000_000_000,
        size: "1024x1024",
        quality: Some("medium"),
        adjustments,
        echoed_fields: &NOTHING,
    };
    family(name).receipt(&data)
}

#[test]
fn receipts() {
    let standard = json!({ "code": 200, "data": [{ "status": "submitted", "task_id": "task_1" }] });
    for family in tollgate_media::image::FAMILIES {
        let expected = match family.name {
            "wan2.7" => json!({
                "code": "success",
                "message": "",
                "data": [{ "task_id": "task_1", "status": "processing" }],
            }),
            "gpt-image-2.5-async" => json!({
                "id": "task_1",
                "status": "queued",
                "mode": "generate",
                "model": "m",
                "size": "1024x1024",
                "quality": "medium",
                "created_at": "2023-11-14 22:13:20",
            }),
            _ => standard.clone(),
        };
        assert_eq!(receipt(family.name, &[]), expected, "{}", family.name);
    }
    let adjustments = [Adjustment::new("n", 9, 4, "too many")];
    let listed = json!([{ "field": "n", "asked": 9, "used": 4, "why": "too many" }]);
    assert_eq!(
        receipt("gpt-image-1", &adjustments)["data"][0]["adjustments"],
        listed
    );
    assert_eq!(
        receipt("wan2.7", &adjustments)["data"][0]["adjustments"],
        listed
    );
    assert_eq!(
        receipt("gpt-image-2.5-async", &adjustments)["adjustments"],
        listed
    );
}

#[test]
fn standard_records() {
    let family = family("gpt-image-2");
    let completed = json!({
        "id": "task_1",
        "status": "completed",
        "progress": 100,
        "created_at": 1_700_000_000,
        "actual_time": 7,
        "cost": 0.08,
        "result": { "images": [
            { "url": ["https://h/1.png"], "expires_at": 1_700_086_400 },
            { "url": ["https://h/2.png"], "expires_at": 1_700_086_400 },
        ] },
    });
    let data = task(TaskState::Completed);
    assert_eq!(family.bare_record(&data), completed);
    assert_eq!(
        family.record(&data),
        json!({ "code": 200, "data": completed })
    );
    for (state, status, error) in [
        (TaskState::Submitted, "submitted", Value::Null),
        (TaskState::InProgress, "in_progress", Value::Null),
        (
            TaskState::Failed,
            "failed",
            json!({ "code": "provider_error", "message": "it broke" }),
        ),
        (
            TaskState::Cancelled,
            "failed",
            json!({ "code": "cancelled", "message": "the task was cancelled" }),
        ),
    ] {
        let record = family.bare_record(&task(state));
        assert_eq!(record["status"], status);
        assert_eq!(record["error"], error);
        assert_eq!(record.get("result"), None);
        assert_eq!(record["cost"], 0.0);
        assert_eq!(record["actual_time"], if state.is_final() { 7 } else { 0 });
    }
    let adjustments = [Adjustment::new("n", 9, 4, "too many")];
    let data = RecordData {
        adjustments: &adjustments,
        ..task(TaskState::Submitted)
    };
    assert_eq!(family.record(&data)["data"]["adjustments"][0]["used"], 4);
}

#[test]
fn wan_records() {
    for (state, status) in [
        (TaskState::Submitted, "processing"),
        (TaskState::InProgress, "processing"),
        (TaskState::Completed, "completed"),
        (TaskState::Failed, "failed"),
        (TaskState::Cancelled, "failed"),
    ] {
        let record = family("wan2.7").record(&task(state));
        assert_eq!(record["code"], 200);
        assert_eq!(record["data"]["status"], status);
        let mut usual = family("gpt-image-2").bare_record(&task(state));
        usual["status"] = status.into();
        assert_eq!(record["data"], usual);
    }
}

#[test]
fn gpt_async_records() {
    let family = family("gpt-image-2.5-async");
    let data = RecordData {
        files: &IMAGES[..1],
        ..task(TaskState::Completed)
    };
    let completed = json!({
        "task_id": "task_1",
        "status": "completed",
        "progress": "100%",
        "model": "m",
        "created_at": "2023-11-14 22:13:20",
        "actual_time": 7,
        "cost": 0.08,
        "expires_at": 1_700_086_400,
        "result_url": "https://h/1.png",
        "result": { "items": [
            { "id": "task_1_0", "status": "success", "data": [{ "url": "https://h/1.png" }] },
        ] },
    });
    assert_eq!(family.record(&data), completed);
    assert_eq!(family.bare_record(&data), completed);
    for (state, status, code) in [
        (TaskState::Submitted, "queued", None),
        (TaskState::InProgress, "in_progress", None),
        (TaskState::Failed, "failed", Some("provider_error")),
        (TaskState::Cancelled, "cancelled", Some("cancelled")),
    ] {
        let record = family.record(&task(state));
        assert_eq!(record["status"], status);
        assert_eq!(record["progress"], "40%");
        assert_eq!(record["result_url"], "");
        assert_eq!(record["error"]["code"].as_str(), code);
    }
}

#[test]
fn generation_records() {
    for (name, state, expected) in [
        (
            "seedream-4.5",
            TaskState::Completed,
            ("completed", 100, "https://h/1.png", ""),
        ),
        (
            "seedream-4.5",
            TaskState::InProgress,
            ("in_progress", 40, "", ""),
        ),
        (
            "seedream-4.5",
            TaskState::Failed,
            ("failed", 40, "", "it broke"),
        ),
        ("wan2.7", TaskState::Submitted, ("processing", 40, "", "")),
        (
            "gpt-image-2.5-async",
            TaskState::Cancelled,
            ("cancelled", 40, "", "the task was cancelled"),
        ),
    ] {
        let (status, progress, url, reason) = expected;
        let record = family(name).generation_record(&task(state));
        assert_eq!(
            record,
            json!({
                "task_id": "task_1", "status": status, "progress": progress,
                "url": url, "fail_reason": reason,
            })
        );
    }
}

const VIDEO: &[ResultFile<'_>] = &[
    file("https://h/last.png", "image/png"),
    file("https://h/1.mp4", "video/mp4"),
];

fn shown(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn video_receipts() {
    let shown = shown(json!({ "seconds": "8", "size": "1280x720" }));
    let adjustments = [Adjustment::new("seconds", 4, 8, "so")];
    let data = ReceiptData {
        task_id: "task_1",
        model: "sora-2",
        created_at: 1_700_000_000_999,
        size: "16:9",
        quality: None,
        echoed_fields: &shown,
        adjustments: &[],
    };
    let mut expected = json!({
        "id": "task_1", "task_id": "task_1", "object": "video", "model": "sora-2", "status": "queued",
        "progress": "0%", "code": "success", "created_at": 1_700_000_000, "seconds": "8", "size": "1280x720",
    });
    let receipt = |data: &ReceiptData<'_>| family("sora-2").receipt(data);
    assert_eq!(receipt(&data), expected);
    expected["adjustments"] = json!([{ "field": "seconds", "asked": 4, "used": 8, "why": "so" }]);
    let adjusted = ReceiptData {
        adjustments: &adjustments,
        ..data
    };
    assert_eq!(receipt(&adjusted), expected);
}

#[test]
fn video_records() {
    let family = family("seedance-2.0");
    let shown = shown(json!({ "seconds": "5", "size": "1280x720" }));
    let task = |state, files| RecordData {
        files,
        echoed_fields: &shown,
        ..task(state)
    };
    let unfinished = json!({
        "id": "task_1", "task_id": "task_1", "object": "video", "model": "m", "status": "queued", "progress": "40%",
        "created_at": 1_700_000_000, "completed_at": null, "seconds": "5", "size": "1280x720", "result_url": "",
        "url": "", "video_url": "", "metadata": {}, "expires_at": null, "cost": 0.0, "error": null,
    });
    assert_eq!(family.record(&task(TaskState::Submitted, &[])), unfinished);
    let completed = json!({
        "id": "task_1", "task_id": "task_1", "object": "video", "model": "m", "status": "completed", "progress": "100%",
        "created_at": 1_700_000_000, "completed_at": 1_700_000_008, "seconds": "5", "size": "1280x720",
        "result_url": "https://h/1.mp4", "url": "https://h/1.mp4", "video_url": "https://h/1.mp4",
        "metadata": { "url": "https://h/1.mp4", "last_frame_url": "https://h/last.png" },
        "expires_at": 1_700_086_400, "cost": 0.08, "error": null,
    });
    let data = task(TaskState::Completed, VIDEO);
    assert_eq!(family.record(&data), completed);
    assert_eq!(family.bare_record(&data), completed);
    assert_eq!(family.generation_record(&data)["url"], "https://h/1.mp4");
    let resource = json!({
        "id": "task_1", "object": "video", "model": "m", "status": "completed", "progress": 100,
        "created_at": 1_700_000_000, "completed_at": 1_700_000_008, "expires_at": 1_700_086_400, "seconds": "5",
        "size": "1280x720", "error": null, "metadata": { "url": "https://h/1.mp4" },
    });
    assert_eq!(
        video_resource(&task(TaskState::Completed, &VIDEO[1..])),
        resource
    );
    for (state, status, code) in [
        (TaskState::Submitted, "queued", None),
        (TaskState::InProgress, "in_progress", None),
        (TaskState::Failed, "failed", Some("provider_error")),
        (TaskState::Cancelled, "failed", Some("cancelled")),
    ] {
        let data = task(state, &[]);
        for record in [family.record(&data), video_resource(&data)] {
            assert_eq!(record["status"], status);
            assert_eq!(record["error"]["code"].as_str(), code);
            assert_eq!(
                (&record["completed_at"], &record["metadata"]),
                (&Value::Null, &json!({}))
            );
        }
        assert_eq!(video_resource(&data)["progress"], 40);
    }
}

#[test]
fn speech_receipts_and_records() {
    let family = family("native-v3");
    let named = shown(json!({ "external_task_id": "x-1" }));
    let data = ReceiptData {
        task_id: "task_1",
        model: "native-v3",
        created_at: 1_700_000_000_999,
        size: "",
        quality: None,
        echoed_fields: &NOTHING,
        adjustments: &[],
    };
    let mut receipt = json!({
        "id": "task_1", "task_id": "task_1", "object": "audio", "model": "native-v3", "status": "queued",
        "progress": 0, "created_at": 1_700_000_000,
    });
    assert_eq!(family.receipt(&data), receipt);
    receipt["external_task_id"] = "x-1".into();
    let data = ReceiptData {
        echoed_fields: &named,
        ..data
    };
    assert_eq!(family.receipt(&data), receipt);

    let files = [file("https://h/1.wav", "audio/wav")];
    let data = RecordData {
        files: &files,
        echoed_fields: &named,
        ..task(TaskState::Completed)
    };
    let completed = json!({
        "id": "task_1", "task_id": "task_1", "object": "audio", "model": "m", "status": "completed", "progress": 100,
        "created_at": 1_700_000_000, "completed_at": 1_700_000_008, "expires_at": 1_700_086_400, "cost": 0.08,
        "error": null, "metadata": { "url": "https://h/1.wav" }, "external_task_id": "x-1",
    });
    assert_eq!(family.record(&data), completed);
    assert_eq!(family.bare_record(&data), completed);
    for (state, status, code) in [
        (TaskState::Submitted, "queued", None),
        (TaskState::InProgress, "in_progress", None),
        (TaskState::Failed, "failed", Some("provider_error")),
        (TaskState::Cancelled, "failed", Some("cancelled")),
    ] {
        let record = family.record(&task(state));
        assert_eq!(
            (&record["status"], &record["progress"]),
            (&json!(status), &json!(40))
        );
        assert_eq!(record["error"]["code"].as_str(), code);
        assert_eq!(
            (record.get("metadata"), record.get("external_task_id")),
            (None, None)
        );
    }
}

#[test]
fn records_have_what_their_schemas_require() {
    let shown = shown(json!({ "seconds": "5", "size": "1280x720", "external_task_id": "x" }));
    for family in AnyFamily::all() {
        for state in TaskState::ALL {
            let data = RecordData {
                echoed_fields: &shown,
                ..task(state)
            };
            let shape = family.response_format();
            let resource = (video_resource(&data), response::video_resource_schema());
            for (record, schema) in [
                (family.bare_record(&data), (shape.record_schema)()),
                resource,
            ] {
                let properties = schema["properties"].as_object().unwrap();
                for name in record.as_object().unwrap().keys() {
                    assert!(properties.contains_key(name), "{family:?} {name}");
                }
                for name in schema["required"].as_array().unwrap() {
                    assert!(
                        record.get(name.as_str().unwrap()).is_some(),
                        "{family:?} {name}"
                    );
                }
                let states = schema["properties"]["status"]["enum"].as_array().unwrap();
                assert!(states.contains(&record["status"]), "{family:?}");
            }
        }
    }
}
