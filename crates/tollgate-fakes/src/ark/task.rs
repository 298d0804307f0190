//! The state of a task, as it is asked for and as it is ended.

use std::sync::Arc;

use serde_json::{Value, json};

use super::words;
use crate::clock;
use crate::course::Verdict;
use crate::desk::{Desk, Made, Media};
use crate::directive::Stage;
use crate::incoming::Seen;
use crate::made::{Film, Picture, PictureForm, Recipe};
use crate::tasks::{Phase, Task};

pub(super) fn get(id: &str) -> Media {
    let name = id.to_owned();
    Media::about(Stage::Poll, vec![id.to_owned()], move |desk| {
        let found = desk.look(&name, |task, phase| record(desk, task, phase));
        let missing = || Box::new(words::task_missing(&name));
        found.map(Made::json).ok_or_else(missing)
    })
}

/// The tasks that fit the filters; a poll of those that are asked for by their ids.
pub(super) fn list(request: &Arc<Seen>) -> Media {
    let wanted = request.query_values("filter.task_ids");
    let seen = Arc::clone(request);
    Media::about(Stage::Poll, wanted.clone(), move |desk| {
        let number = |name: &str| seen.query_value(name).and_then(|text| text.parse().ok());
        let page: usize = number("page_num").unwrap_or(1).max(1);
        let size: usize = number("page_size").unwrap_or(20);
        let status = seen.query_value("filter.status");
        let model = seen.query_value("filter.model");
        let mut ids = desk.tasks(|tasks| tasks.ids().to_vec());
        ids.retain(|id| wanted.is_empty() || wanted.contains(id));
        let look = |id: &String| desk.look(id, |task, phase| record(desk, task, phase));
        let mut items: Vec<Value> = ids.iter().filter_map(look).collect();
        items.retain(|item| {
            status
                .as_ref()
                .is_none_or(|status| item["status"] == *status)
                && model.as_ref().is_none_or(|model| item["model"] == *model)
        });
        let total = items.len();
        let items: Vec<Value> = items
            .into_iter()
            .skip((page - 1) * size)
            .take(size)
            .collect();
        Ok(Made::json(json!({"items": items, "total": total})))
    })
}

/// Cancels a task that is queued, removes one that has ended, refuses one in between.
pub(super) fn delete(id: &str) -> Media {
    let name = id.to_owned();
    Media::about(Stage::Cancel, vec![id.to_owned()], move |desk| {
        let phase = desk.look(&name, |task, phase| {
            if phase == Phase::Queued {
                task.cancel();
            }
            phase
        });
        match phase {
            None => Err(Box::new(words::task_missing(&name))),
            Some(Phase::Running(_)) => {
                let message = "The task is running and cannot be deleted.";
                let code = "OperationDenied.InvalidState";
                Err(Box::new(words::of_code(403, code, "running", message)))
            }
            Some(Phase::Queued) => Ok(Made::json(json!({}))),
            Some(Phase::Ended(_) | Phase::Cancelled) => {
                desk.tasks(|tasks| tasks.remove(&name));
                Ok(Made::json(json!({})))
            }
        }
    })
}

fn record(desk: &Desk<'_>, task: &mut Task, phase: Phase) -> Value {
    let (status, error) = match phase {
        Phase::Queued => ("queued", Value::Null),
        Phase::Running(_) => ("running", Value::Null),
        Phase::Cancelled => ("cancelled", Value::Null),
        Phase::Ended(Verdict::Good) => ("succeeded", Value::Null),
        Phase::Ended(Verdict::Expired) => ("expired", Value::Null),
        Phase::Ended(Verdict::Failed) => (
            "failed",
            json!({"code": "InternalServiceError", "message": "The service encountered an \
                unexpected internal error."}),
        ),
        Phase::Ended(Verdict::Filtered | Verdict::Blocked) => (
            "failed",
            json!({"code": "OutputVideoSensitiveContentDetected", "message": "The request failed \
                because the output video may contain sensitive information."}),
        ),
    };
    let mut record = json!({
        "id": task.id, "model": task.fact("model"), "status": status, "error": error,
        "created_at": clock::seconds(task.made_at), "updated_at": clock::seconds(task.changed_at()),
        "service_tier": task.fact("service_tier"),
        "execution_expires_after": task.count("execution_expires_after"),
    });
    if status != "succeeded" {
        return record;
    }
    let links = desk.results(task, recipes);
    record["content"] = json!({"video_url": links[0]});
    if let Some(last) = links.get(1) {
        record["content"]["last_frame_url"] = json!(last);
    }
    let tokens = task.count("width") * task.count("height") * 24 * task.count("seconds") / 1024;
    record["usage"] = json!({"completion_tokens": tokens, "total_tokens": tokens});
    for name in ["seed", "resolution", "ratio", "generate_audio", "draft"] {
        if let Some(value) = task.facts.get(name) {
            record[name] = value.clone();
        }
    }
    let length = match task.facts.get("frames") {
        Some(frames) => ("frames", frames.clone()),
        None => ("duration", json!(task.count("seconds"))),
    };
    record[length.0] = length.1;
    record["framespersecond"] = json!(24);
    record
}

/// The film, and its last frame if that is wanted.
fn recipes(task: &Task) -> Vec<Recipe> {
    let size = (task.count("width") as u32, task.count("height") as u32);
    let number = task.number;
    let seconds = task.count("seconds") as u32;
    let mut recipes = vec![Recipe::Film(Film {
        size,
        seconds,
        number,
    })];
    if task.facts.get("return_last_frame") == Some(&Value::Bool(true)) {
        let form = PictureForm::Jpeg;
        recipes.push(Recipe::Picture(Picture { form, size, number }));
    }
    recipes
}
