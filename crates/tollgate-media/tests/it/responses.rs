//! Tests receipts and records: a golden file for each response format, in every state.

use serde_json::{Map, Value, json};
use tollgate_core::{Adjustment, Amount, TaskState};
use tollgate_media::{AnyFamily, ReceiptData, RecordData, ResultFile, response, video_resource};

use crate::cases::check_golden;

#[test]
fn every_family_writes_the_responses_of_its_format() {
    for family in AnyFamily::all() {
        let (format, files, echoed) = match (family, family.name()) {
            (_, "wan2.7") => ("wan", images(2), vec![json!({})]),
            (_, "gpt-image-2.5-async") => ("gpt_image_async", images(1), vec![json!({})]),
            (AnyFamily::Image(_), _) => ("standard", images(2), vec![json!({})]),
            (AnyFamily::Video(_), _) => ("video", video(), vec![video_fields()]),
            (AnyFamily::Speech(_), _) => {
                let named = json!({ "external_task_id": "x-1" });
                let wav = file("https://h/1.wav", "audio/wav");
                ("speech", vec![wav], vec![json!({}), named])
            }
        };
        let all = echoed.iter().map(|echoed| {
            let echoed = echoed.as_object().unwrap();
            let states = TaskState::ALL.into_iter().map(|state| {
                let record = record(state, &files, echoed, &[]);
                (format!("{state:?}"), records(family, &record))
            });
            json!({
                "echoed_fields": echoed,
                "receipt": receipt(family, echoed, &[]),
                "adjusted_receipt": receipt(family, echoed, &adjusted()),
                "adjusted_record": family.record(&record(TaskState::Submitted, &files, echoed, &adjusted())),
                "records": states.collect::<Map<_, _>>(),
            })
        });
        check_golden(&format!("responses/{format}.json"), &all.collect());
    }
}

#[test]
fn a_video_without_its_last_frame_links_the_video_alone() {
    let (echoed, files) = (video_fields(), video());
    let data = record(
        TaskState::Completed,
        &files[1..],
        echoed.as_object().unwrap(),
        &[],
    );
    let link = json!({ "url": "https://h/1.mp4" });
    let family = AnyFamily::by_name("seedance-2.0").unwrap();
    for record in [video_resource(&data), family.record(&data)] {
        assert_eq!(record["metadata"], link);
    }
}

#[test]
fn records_have_what_their_schemas_require() {
    let echoed = json!({ "seconds": "5", "size": "1280x720", "external_task_id": "x" });
    for family in AnyFamily::all() {
        for state in TaskState::ALL {
            let files = images(2);
            let data = record(state, &files, echoed.as_object().unwrap(), &[]);
            let schema = (family.response_format().record_schema)();
            for (record, schema) in [
                (family.bare_record(&data), schema),
                (video_resource(&data), response::video_resource_schema()),
            ] {
                let properties = schema["properties"].as_object().unwrap();
                for name in record.as_object().unwrap().keys() {
                    assert!(properties.contains_key(name), "{family:?} {name}");
                }
                for name in schema["required"].as_array().unwrap() {
                    let name = name.as_str().unwrap();
                    assert!(record.get(name).is_some(), "{family:?} {name}");
                }
                let states = schema["properties"]["status"]["enum"].as_array().unwrap();
                assert!(states.contains(&record["status"]), "{family:?}");
            }
        }
    }
}

/// All forms of a task's record.
fn records(family: AnyFamily, data: &RecordData<'_>) -> Value {
    let mut all = json!({
        "record": family.record(data),
        "bare_record": family.bare_record(data),
        "generation_record": family.generation_record(data),
    });
    if matches!(family, AnyFamily::Video(_)) {
        all["video_resource"] = video_resource(data);
    }
    all
}

fn record<'a>(
    state: TaskState,
    files: &'a [ResultFile<'a>],
    echoed_fields: &'a Map<String, Value>,
    adjustments: &'a [Adjustment],
) -> RecordData<'a> {
    let done = state == TaskState::Completed;
    RecordData {
        task_id: "task_1",
        model: "m",
        state,
        progress: if done { 100 } else { 40 },
        created_at: 1_700_000_000_000,
        started_at: Some(1_700_000_001_000),
        ended_at: state.is_final().then_some(1_700_000_008_900),
        cost: Amount::from_nanos(if done { 80_000_000 } else { 0 }),
        refunded: Amount::ZERO,
        files: if done { files } else { &[] },
        error: (state == TaskState::Failed).then_some(("provider_error", "it broke")),
        adjustments,
        echoed_fields,
    }
}

fn receipt(family: AnyFamily, echoed: &Map<String, Value>, adjustments: &[Adjustment]) -> Value {
    family.receipt(&ReceiptData {
        task_id: "task_1",
        model: "m",
        created_at: 1_700_000_000_999,
        size: "1024x1024",
        quality: Some("medium"),
        adjustments,
        echoed_fields: echoed,
    })
}

fn adjusted() -> [Adjustment; 1] {
    [Adjustment::new("n", 9, 4, "too many")]
}

fn images(count: usize) -> Vec<ResultFile<'static>> {
    let all = ["https://h/1.png", "https://h/2.png"];
    all[..count]
        .iter()
        .map(|url| file(url, "image/png"))
        .collect()
}

/// The image of a video's last frame, followed by the video.
fn video() -> Vec<ResultFile<'static>> {
    let last = file("https://h/last.png", "image/png");
    vec![last, file("https://h/1.mp4", "video/mp4")]
}

fn video_fields() -> Value {
    json!({ "seconds": "5", "size": "1280x720" })
}

fn file(url: &'static str, media_type: &'static str) -> ResultFile<'static> {
    ResultFile {
        url,
        expires_at: 1_700_086_400_999,
        media_type,
        bytes: Some(1000),
    }
}
