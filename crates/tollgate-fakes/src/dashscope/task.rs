//! The state of a task, as it is asked for and as it is ended.

use std::sync::Arc;

use serde_json::{Value, json};

use super::words::of_code;
use crate::clock;
use crate::course::{Course, Verdict};
use crate::desk::{Desk, Made, Media};
use crate::directive::Stage;
use crate::incoming::Seen;
use crate::made::{Picture, PictureForm, Recipe};
use crate::tasks::{Phase, Task};

pub(super) fn get(id: &str) -> Media {
    let name = id.to_owned();
    Media::about(Stage::Poll, vec![id.to_owned()], move |desk| {
        let found = desk.look(&name, |task, phase| record(desk, task, phase));
        // A task that is not known is no error.
        let unknown = || json!({"output": {"task_id": name, "task_status": "UNKNOWN"}});
        let mut answer = found.unwrap_or_else(unknown);
        answer["request_id"] = json!(desk.request);
        Ok(Made::json(answer))
    })
}

pub(super) fn list(request: &Arc<Seen>) -> Media {
    let seen = Arc::clone(request);
    Media::about(Stage::Poll, Vec::new(), move |desk| {
        let number = |name: &str| seen.query_value(name).and_then(|text| text.parse().ok());
        let page: usize = number("page_no").unwrap_or(1).max(1);
        let size: usize = number("page_size").unwrap_or(10).max(1);
        let status = seen.query_value("status");
        let ids = desk.tasks(|tasks| tasks.ids().to_vec());
        let look = |id: &String| desk.look(id, |task, phase| short(task, phase));
        let mut items: Vec<Value> = ids.iter().filter_map(look).collect();
        items.retain(|item| {
            status
                .as_ref()
                .is_none_or(|status| item["status"] == *status)
        });
        let total = items.len();
        let items: Vec<Value> = items
            .into_iter()
            .skip((page - 1) * size)
            .take(size)
            .collect();
        Ok(Made::json(json!({
            "request_id": desk.request, "data": items, "total": total,
            "total_page": total.div_ceil(size), "page_no": page, "page_size": size,
        })))
    })
}

/// Cancels a task that waits, and no other.
pub(super) fn cancel(id: &str) -> Media {
    let name = id.to_owned();
    Media::about(Stage::Cancel, vec![id.to_owned()], move |desk| {
        let waits = desk.look(&name, |task, phase| {
            if phase == Phase::Queued {
                task.cancel();
            }
            phase == Phase::Queued
        });
        if waits == Some(true) {
            return Ok(Made::json(json!({"request_id": desk.request})));
        }
        let message = "Failed to cancel the task, please confirm if the task is in PENDING status.";
        let refusal = of_code(400, "UnsupportedOperation", "not-pending", message);
        Err(Box::new(refusal))
    })
}

fn status(phase: Phase) -> &'static str {
    match phase {
        Phase::Queued => "PENDING",
        Phase::Running(_) => "RUNNING",
        Phase::Cancelled => "CANCELED",
        Phase::Ended(Verdict::Good) => "SUCCEEDED",
        Phase::Ended(_) => "FAILED",
    }
}

/// An entry of the list.
fn short(task: &Task, phase: Phase) -> Value {
    json!({
        "task_id": task.id, "model_name": task.fact("model"), "status": status(phase),
        "start_time": clock::milliseconds(task.made_at),
    })
}

fn record(desk: &Desk<'_>, task: &mut Task, phase: Phase) -> Value {
    let mut output = match phase {
        Phase::Ended(Verdict::Good) => {
            let links = desk.results(task, |task| recipes(&task.facts, &task.course, task.number));
            choices(&task.facts, &links)
        }
        _ => json!({}),
    };
    let error = match phase {
        Phase::Ended(Verdict::Failed) => Some(("InternalError.Algo", "Inference error.")),
        Phase::Ended(Verdict::Expired) => Some((
            "InternalError.Timeout",
            "The task was not finished in time.",
        )),
        Phase::Ended(Verdict::Filtered | Verdict::Blocked) => Some((
            "DataInspectionFailed",
            "Output data may contain inappropriate content.",
        )),
        _ => None,
    };
    if let Some((code, message)) = error {
        output["code"] = json!(code);
        output["message"] = json!(message);
    }
    output["task_id"] = json!(task.id);
    output["task_status"] = json!(status(phase));
    output["submit_time"] = json!(clock::plain(task.made_at));
    if phase != Phase::Queued {
        output["scheduled_time"] = json!(clock::plain(task.made_at));
    }
    let mut record = json!({"output": output});
    if let Phase::Ended(verdict) = phase {
        record["output"]["end_time"] = json!(clock::plain(task.changed_at()));
        if verdict == Verdict::Good {
            record["output"]["finished"] = json!(true);
            record["usage"] = usage(&task.facts, task.results.len());
        }
    }
    record
}

fn number(facts: &Value, name: &str) -> u64 {
    facts.get(name).and_then(Value::as_u64).unwrap_or_default()
}

/// The good pictures.
pub(super) fn recipes(facts: &Value, course: &Course, first: u64) -> Vec<Recipe> {
    let count = course.good(number(facts, "count") as usize) as u64;
    let size = (
        number(facts, "width") as u32,
        number(facts, "height") as u32,
    );
    let form = PictureForm::Png;
    let picture = |number| Recipe::Picture(Picture { form, size, number });
    (first..first + count).map(picture).collect()
}

/// A choice for each picture; one for all of a group.
pub(super) fn choices(facts: &Value, links: &[String]) -> Value {
    let item = |link: &String| json!({"image": link, "type": "image"});
    let choice = |content: Vec<Value>| {
        let message = json!({"role": "assistant", "content": content});
        json!({"finish_reason": "stop", "message": message})
    };
    let choices: Vec<Value> = if facts["group"] == true {
        vec![choice(links.iter().map(item).collect())]
    } else {
        links.iter().map(|link| choice(vec![item(link)])).collect()
    };
    json!({"choices": choices})
}

pub(super) fn usage(facts: &Value, images: usize) -> Value {
    let size = format!("{}*{}", facts["width"], facts["height"]);
    json!({
        "image_count": images, "size": size, "input_tokens": 0, "output_tokens": 0,
        "total_tokens": 0,
    })
}
