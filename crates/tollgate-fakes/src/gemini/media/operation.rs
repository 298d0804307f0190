//! Veo: the state of an operation, and its files.

use std::sync::Arc;

use serde_json::{Value, json};

use super::super::words;
use super::check;
use crate::course::Verdict;
use crate::desk::{Desk, Made, Media};
use crate::directive::Stage;
use crate::incoming::Seen;
use crate::made::{Film, Recipe};
use crate::refusal::{Judged, Refusal};
use crate::shape::{Kind, Shape, text_of};
use crate::tasks::{Phase, Task};

const FETCH: Shape = Shape {
    fields: &[("operationName", Kind::Str)],
    required: &["operationName"],
};

fn missing(name: &str) -> Box<Refusal> {
    let message = format!("Operation {name} not found.");
    Box::new(words::of_status(404, "task", message))
}

/// On the Developer API: `{model}/operations/{id}`.
pub(super) fn get(call: &str) -> Media {
    look(&format!("models/{call}"))
}

/// On the Agent Platform: by its name, asked of the model that it is an operation of.
pub(super) fn fetch(request: &Arc<Seen>, model: &str) -> Judged<Media> {
    check(request, &FETCH)?;
    let name = text_of(&request.body, "operationName").unwrap_or_default();
    if !name.contains(&format!("/models/{model}/operations/")) {
        let message = "The operation name does not belong to the model of the request.";
        return Err(Box::new(words::invalid("operation-name", message)));
    }
    Ok(look(name))
}

fn look(name: &str) -> Media {
    let name = name.to_owned();
    let id = name.rsplit('/').next().unwrap_or_default().to_owned();
    Media::about(Stage::Poll, vec![id.clone()], move |desk| {
        let found = desk.look(&id, |task, phase| {
            (task.fact("name") == name).then(|| record(desk, task, phase))
        });
        let found = found.flatten();
        found.map(Made::json).ok_or_else(|| missing(&name))
    })
}

fn record(desk: &Desk<'_>, task: &mut Task, phase: Phase) -> Value {
    let name = task.fact("name").to_owned();
    let failed = |code: u8, message: &str| json!({"name": name, "done": true, "error": {"code": code, "message": message}});
    match phase {
        // Nothing is said of an operation that is not done, not even that.
        Phase::Queued | Phase::Running(_) => json!({"name": name}),
        Phase::Cancelled => failed(1, "The operation was cancelled."),
        Phase::Ended(Verdict::Failed) => failed(13, "Video generation failed. Please try again."),
        Phase::Ended(Verdict::Expired) => failed(4, "Deadline expired."),
        Phase::Ended(_) => {
            json!({"name": name, "done": true, "response": response(desk, task, phase)})
        }
    }
}

fn response(desk: &Desk<'_>, task: &mut Task, phase: Phase) -> Value {
    let count = task.count("count") as usize;
    let good = match phase {
        Phase::Ended(Verdict::Good) => task.course.good(count),
        _ => 0,
    };
    let is_platform = task.facts["platform"] == true;
    let recipes: Vec<Recipe> = (0..good as u64).map(|nth| film(task, nth)).collect();
    let bytes = task.course.bytes;
    let mut filter = json!({});
    if good < count {
        let reason = "The video could not be created because it may violate Google's Responsible \
            AI practices.";
        filter["raiMediaFilteredCount"] = json!(count - good);
        filter["raiMediaFilteredReasons"] = json!(vec![reason; count - good]);
    }
    if !is_platform {
        let links = desk.results(task, |_| recipes);
        let origin = desk.origin();
        let sample = |nth: usize| {
            let uri = format!("{origin}/v1beta/files/{}-{nth}:download?alt=media", task.id);
            json!({"video": {"uri": uri}})
        };
        if good > 0 {
            filter["generatedSamples"] = (0..links.len()).map(sample).collect();
        }
        return json!({"generateVideoResponse": filter});
    }
    let storage = task.facts["storage"].as_str();
    let video = |(nth, recipe): (usize, &Recipe)| match storage {
        Some(storage) => {
            let uri = format!(
                "{}/{}/sample_{nth}.mp4",
                storage.trim_end_matches('/'),
                task.id
            );
            json!({"gcsUri": uri, "mimeType": "video/mp4"})
        }
        None => {
            let bytes = crate::media::encode(&recipe.make(bytes).bytes());
            json!({"bytesBase64Encoded": bytes, "mimeType": "video/mp4"})
        }
    };
    if good > 0 {
        filter["videos"] = recipes.iter().enumerate().map(video).collect();
    }
    filter
}

fn film(task: &Task, nth: u64) -> Recipe {
    Recipe::Film(Film {
        size: (task.count("width") as u32, task.count("height") as u32),
        seconds: task.count("seconds") as u32,
        number: task.number + nth,
    })
}

/// A file of the Developer API: with the key, and by way of another address.
pub(super) fn download(request: &Arc<Seen>, file: &str) -> Judged<Media> {
    let not_found = || {
        let message = "You do not have permission to access the file or it may not exist.";
        Box::new(words::of_status(403, "file", message))
    };
    let name = file.strip_suffix(":download").ok_or_else(not_found)?;
    let (id, nth) = name.rsplit_once('-').ok_or_else(not_found)?;
    let nth: usize = nth.parse().map_err(|_| not_found())?;
    if request.query_value("alt").as_deref() != Some("media") {
        let message = "Downloads need alt=media.";
        return Err(Box::new(words::invalid("alt", message)));
    }
    let id = id.to_owned();
    Ok(Media::about(Stage::File, vec![id.clone()], move |desk| {
        let link = desk.look(&id, |task, _| task.results.get(nth).cloned());
        let link = link.flatten().ok_or_else(not_found)?;
        Ok(Made::nothing(302).header("location", link))
    }))
}
