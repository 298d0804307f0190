//! Requests and responses of the older APIs, which have a `model_name`.

use serde_json::{Map, Value, json};

use super::task::{Output, State, Task};
use super::video_plan::VideoRequest;
use crate::adapter::InlineFiles;

/// The request body. `inline_files` receives the frames.
pub(super) fn body(video: &VideoRequest<'_>, inline_files: &mut InlineFiles) -> Value {
    let (job, plan) = (video.job, video.plan);
    let mut body = Map::new();
    let mut put = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
    put("model_name", video.name.into());
    if !job.prompt.is_empty() {
        put("prompt", job.prompt.as_str().into());
    }
    if let Some(avoid) = &job.negative_prompt {
        put("negative_prompt", avoid.as_str().into());
    }
    for (name, file) in ["image", "image_tail"].iter().zip(video.images) {
        // Bare base64, because a data URI is rejected.
        put(name, inline_files.base64(file).into());
    }
    if let Some(mode) = plan.tier.mode {
        put("mode", mode.into());
    }
    // A string, unlike in the newer APIs.
    put("duration", plan.seconds.to_string().into());
    if let Some(ratio) = plan.ratio {
        put("aspect_ratio", ratio.into());
    }
    if let Some(audio) = plan.audio {
        put("sound", if audio { "on" } else { "off" }.into());
    }
    if let Some(mark) = job.watermark {
        put("watermark_info", json!({ "enabled": mark }));
    }
    put("external_task_id", video.external_id.into());
    Value::Object(body)
}

/// Parses a task.
pub(super) fn parse_task(task: &Value) -> Task<'_> {
    let videos = task["task_result"]["videos"].as_array();
    Task {
        state: State::parse(&task["task_status"]),
        message: task["task_status_msg"].as_str().unwrap_or_default(),
        outputs: videos.into_iter().flatten().map(Output::parse).collect(),
    }
}
