//! Requests and responses of the newer APIs, which have the model in their path.

use serde_json::{Map, Value, json};

use super::task::{Output, State, Task};
use super::video_plan::{Plan, VideoRequest};
use crate::adapter::{InlineFiles, percent_encode};

/// The path of a request.
pub(super) fn path(video: &VideoRequest<'_>) -> String {
    let api = match video.images {
        [] => "text-to-video",
        _ => "image-to-video",
    };
    format!("/{api}/{}", percent_encode(video.name))
}

/// The request body. `inline_files` receives the frames.
pub(super) fn body(video: &VideoRequest<'_>, inline_files: &mut InlineFiles) -> Value {
    let (job, plan) = (video.job, video.plan);
    let settings = settings(plan);
    let mut options = json!({ "external_task_id": video.external_id });
    if let Some(mark) = job.watermark {
        options["watermark_info"] = json!({ "enabled": mark });
    }
    if video.images.is_empty() {
        return json!({ "prompt": job.prompt, "settings": settings, "options": options });
    }
    let mut contents = Vec::new();
    if !job.prompt.is_empty() {
        contents.push(json!({ "type": "prompt", "text": job.prompt }));
    }
    for (kind, file) in ["first_frame", "last_frame"].iter().zip(video.images) {
        // Bare base64, because a data URI is rejected.
        contents.push(json!({ "type": kind, "url": inline_files.base64(file) }));
    }
    json!({ "contents": contents, "settings": settings, "options": options })
}

fn settings(plan: &Plan) -> Map<String, Value> {
    let mut settings = Map::new();
    let mut put = |name: &str, value: Value| drop(settings.insert(name.to_owned(), value));
    put("resolution", plan.tier.name.into());
    put("duration", plan.seconds.into());
    if let Some(audio) = plan.audio {
        put("audio", if audio { "native" } else { "off" }.into());
    }
    if let Some(ratio) = plan.ratio {
        put("aspect_ratio", ratio.into());
    }
    settings
}

/// Parses a task.
pub(super) fn parse_task(task: &Value) -> Task<'_> {
    let outputs = task["outputs"].as_array().into_iter().flatten();
    let videos = outputs.filter(|output| output["type"] == "video");
    Task {
        state: State::parse(&task["status"]),
        message: task["message"].as_str().unwrap_or_default(),
        outputs: videos.map(Output::parse).collect(),
    }
}
