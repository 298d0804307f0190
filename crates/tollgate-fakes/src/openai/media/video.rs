//! Films: the state of a task, and its result.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::super::words;
use crate::clock;
use crate::course::Verdict;
use crate::desk::{Desk, Made, Media};
use crate::directive::Stage;
use crate::incoming::Seen;
use crate::made::{Film, Picture, PictureForm, Recipe};
use crate::refusal::{Judged, Refusal};
use crate::tasks::{Phase, Task};

/// How long a film is kept.
const LIFE: Duration = Duration::from_secs(24 * 3600);

fn missing(id: &str) -> Box<Refusal> {
    let message = format!("Video with id '{id}' not found.");
    Box::new(Refusal::new(404, "invalid_request_error", "task", message))
}

pub(super) fn get(id: &str) -> Media {
    let name = id.to_owned();
    Media::about(Stage::Poll, vec![id.to_owned()], move |desk| {
        let found = desk.look(&name, |task, phase| record(desk, task, phase));
        found.map(Made::json).ok_or_else(|| missing(&name))
    })
}

pub(super) fn list() -> Media {
    Media::about(Stage::Poll, Vec::new(), |desk| {
        let ids = desk.tasks(|tasks| tasks.ids().to_vec());
        let look = |id: &String| desk.look(id, |task, phase| record(desk, task, phase));
        let data: Vec<Value> = ids.iter().rev().filter_map(look).collect();
        Ok(Made::json(
            json!({"object": "list", "data": data, "has_more": false}),
        ))
    })
}

pub(super) fn delete(id: &str) -> Media {
    let name = id.to_owned();
    Media::about(Stage::Cancel, vec![id.to_owned()], move |desk| {
        let found = desk.look(&name, |_, _| ());
        found.ok_or_else(|| missing(&name))?;
        desk.tasks(|tasks| tasks.remove(&name));
        Ok(Made::json(
            json!({"id": name, "object": "video.deleted", "deleted": true}),
        ))
    })
}

/// The film itself, or a picture of it.
pub(super) fn content(request: &Arc<Seen>, id: &str) -> Judged<Media> {
    let variant = request.query_value("variant");
    let is_film = match variant.as_deref() {
        None | Some("video") => true,
        Some("thumbnail" | "spritesheet") => false,
        Some(other) => {
            let message = format!("Invalid value: '{other}'.");
            return Err(Box::new(words::invalid_value(
                "variant", "variant", message,
            )));
        }
    };
    let name = id.to_owned();
    Ok(Media::about(
        Stage::File,
        vec![id.to_owned()],
        move |desk| {
            let found = desk.look(&name, |task, phase| {
                let kept = desk.is_kept(task);
                let bytes = task.course.bytes;
                (phase == Phase::Ended(Verdict::Good) && kept)
                    .then(|| (recipe(task, is_film), bytes))
            });
            let found = found.ok_or_else(|| missing(&name))?;
            let (recipe, bytes) = found.ok_or_else(|| {
                let message = "Video is not ready yet, or is no longer kept.";
                Box::new(Refusal::new(
                    404,
                    "invalid_request_error",
                    "not-ready",
                    message,
                ))
            })?;
            let bytes = bytes.filter(|_| is_film);
            Ok(Made::file(recipe.media_type(), recipe.make(bytes)))
        },
    ))
}

fn recipe(task: &Task, is_film: bool) -> Recipe {
    let size = (task.count("width") as u32, task.count("height") as u32);
    let number = task.number;
    if !is_film {
        let form = PictureForm::WebP;
        return Recipe::Picture(Picture { form, size, number });
    }
    let seconds = task.fact("seconds").parse().unwrap_or(4);
    Recipe::Film(Film {
        size,
        seconds,
        number,
    })
}

/// The resource.
pub(super) fn record(desk: &Desk<'_>, task: &Task, phase: Phase) -> Value {
    let (status, progress, error) = match phase {
        Phase::Queued => ("queued", 0, None),
        Phase::Running(percent) => ("in_progress", percent, None),
        Phase::Ended(Verdict::Good) => ("completed", 100, None),
        Phase::Ended(Verdict::Filtered | Verdict::Blocked) => (
            "failed",
            99,
            Some((
                "moderation_blocked",
                "Your request was blocked by our moderation system.",
            )),
        ),
        Phase::Ended(Verdict::Failed | Verdict::Expired) | Phase::Cancelled => (
            "failed",
            50,
            Some(("video_generation_failed", "Video generation failed.")),
        ),
    };
    let ended = matches!(phase, Phase::Ended(Verdict::Good)).then(|| task.changed_at());
    let life = desk.link_life().unwrap_or(LIFE);
    json!({
        "id": task.id, "object": "video", "model": task.fact("model"), "status": status,
        "progress": progress, "created_at": clock::seconds(task.made_at),
        "completed_at": ended.map(clock::seconds),
        "expires_at": ended.map(|at| clock::seconds(at + life)),
        "prompt": task.fact("prompt"), "size": task.fact("size"), "seconds": task.fact("seconds"),
        "remixed_from_video_id": null,
        "error": error.map(|(code, message)| json!({"code": code, "message": message})),
    })
}
