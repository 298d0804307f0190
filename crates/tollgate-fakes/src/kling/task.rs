//! The states of tasks, in the words of the older and of the newer APIs.

use std::sync::Arc;

use serde_json::{Value, json};

use super::words::{invalid, task_missing};
use crate::clock;
use crate::course::Verdict;
use crate::desk::{Desk, Made, Media};
use crate::directive::Stage;
use crate::incoming::Seen;
use crate::made::{Film, Recipe, Sound, SoundForm};
use crate::refusal::Judged;
use crate::tasks::{Phase, Task};

/// What an older API has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Speech,
    Text,
    Image,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Speech => "tts",
            Self::Text => "text2video",
            Self::Image => "image2video",
        }
    }
}

/// What every answer stands in.
pub(super) fn envelope(desk: &Desk<'_>, data: Value) -> Value {
    json!({"code": 0, "message": "SUCCEED", "request_id": desk.request, "data": data})
}

/// Begins a task, unless its own id is that of another already.
pub(super) fn begin(desk: &Desk<'_>, facts: Value, external: Option<&str>) -> Judged<String> {
    let id = desk.digits();
    if let Some(external) = external
        && !desk.tasks(|tasks| tasks.name(external, &id))
    {
        let message = format!("external_task_id {external} already exists");
        return Err(Box::new(invalid("external-id", message)));
    }
    desk.begin(&id, facts);
    Ok(id)
}

/// A task of an older API, asked for where it was made, by its id or by that of the client.
pub(super) fn older(id: &str, kind: Kind) -> Media {
    let name = id.to_owned();
    Media::about(Stage::Poll, vec![id.to_owned()], move |desk| {
        let named = desk.tasks(|tasks| tasks.named(&name).map(str::to_owned));
        let id = named.as_ref().unwrap_or(&name);
        let found = desk.look(id, |task, phase| {
            let fits = task.fact("kind") == kind.name();
            fits.then(|| record_older(desk, task, phase))
        });
        let missing = || Box::new(task_missing(&name));
        let state = found.flatten().ok_or_else(missing)?;
        Ok(Made::json(envelope(desk, state)))
    })
}

/// Tasks of the newer APIs, by their ids or by those of the client; unknown ones are left out.
pub(super) fn several(request: &Arc<Seen>) -> Judged<Media> {
    let list = |name: &str| -> Option<Vec<String>> {
        let text = request.query_value(name)?;
        Some(text.split(',').map(str::to_owned).collect())
    };
    let (ids, external) = match (list("task_ids"), list("external_task_ids")) {
        (Some(ids), None) => (ids, false),
        (None, Some(ids)) => (ids, true),
        _ => {
            let message = "exactly one of task_ids and external_task_ids is expected";
            return Err(Box::new(invalid("ids", message)));
        }
    };
    let wanted = ids.clone();
    let mut media = Media::about(Stage::Poll, ids, move |desk| {
        let look = |name: &String| {
            let id = match external {
                true => desk.tasks(|tasks| tasks.named(name).map(str::to_owned))?,
                false => name.clone(),
            };
            let state = desk.look(&id, |task, phase| {
                let is_newer = task.fact("kind").is_empty();
                is_newer.then(|| record(desk, task, phase))
            });
            state.flatten()
        };
        let states: Vec<Value> = wanted.iter().filter_map(look).collect();
        Ok(Made::json(envelope(desk, json!(states))))
    });
    media.external = external;
    Ok(media)
}

/// Why a task has failed.
fn reason(phase: Phase) -> &'static str {
    match phase {
        // The words of the codes 5000 and 5002: of tasks the documents name one reason only, the next.
        Phase::Ended(Verdict::Failed) => "Server internal error",
        Phase::Ended(Verdict::Expired) => "Server internal timeout",
        Phase::Ended(Verdict::Filtered | Verdict::Blocked) => {
            "Failure to pass the risk control system"
        }
        _ => "",
    }
}

/// A state in the words of the newer APIs.
pub(super) fn record(desk: &Desk<'_>, task: &mut Task, phase: Phase) -> Value {
    let status = match phase {
        Phase::Queued => "submitted",
        Phase::Running(_) => "processing",
        Phase::Ended(Verdict::Good) => "succeeded",
        Phase::Ended(_) | Phase::Cancelled => "failed",
    };
    let mut state = json!({
        "id": task.id, "status": status, "message": reason(phase),
        "create_time": clock::milliseconds(task.made_at),
        "update_time": clock::milliseconds(task.changed_at()),
        "external_id": task.facts["external"],
    });
    if phase == Phase::Ended(Verdict::Good) {
        let links = desk.results(task, results);
        let seconds = task.count("seconds").to_string();
        state["outputs"] = json!([{
            "type": "video", "id": format!("{}0", task.id), "url": links[0],
            "watermark_url": links.get(1), "duration": seconds,
        }]);
        state["billing"] = json!([{"charge_type": "units", "amount": "1.0", "currency": "UNIT"}]);
    }
    state
}

/// A state in the words of the older APIs.
pub(super) fn record_older(desk: &Desk<'_>, task: &mut Task, phase: Phase) -> Value {
    let status = match phase {
        Phase::Queued => "submitted",
        Phase::Running(_) => "processing",
        Phase::Ended(Verdict::Good) => "succeed",
        Phase::Ended(_) | Phase::Cancelled => "failed",
    };
    let mut state = json!({
        "task_id": task.id, "task_status": status, "task_status_msg": reason(phase),
        "created_at": clock::milliseconds(task.made_at),
        "updated_at": clock::milliseconds(task.changed_at()),
    });
    let is_speech = task.fact("kind") == Kind::Speech.name();
    if !is_speech {
        state["task_info"] = json!({"external_task_id": task.facts["external"]});
    }
    if phase != Phase::Ended(Verdict::Good) {
        return state;
    }
    let links = desk.results(task, results);
    let id = format!("{}0", task.id);
    if is_speech {
        let audio = json!({"id": id, "url": links[0], "duration": sound(task).seconds()});
        state["task_result"] = json!({"audios": [audio]});
        state["final_unit_deduction"] = json!("0.05");
    } else {
        let seconds = task.count("seconds").to_string();
        let video = json!({
            "id": id, "url": links[0], "watermark_url": links.get(1), "duration": seconds,
        });
        state["task_result"] = json!({"videos": [video]});
        state["final_unit_deduction"] = json!("1.0");
    }
    state
}

fn sound(task: &Task) -> Sound {
    let speed = task.facts["speed"].as_f64().unwrap_or(1.0);
    Sound::of(task.fact("text"), SoundForm::Mp3, speed)
}

/// The sound; or the film, and the same with a mark if that is wanted.
fn results(task: &Task) -> Vec<Recipe> {
    if task.fact("kind") == Kind::Speech.name() {
        return vec![Recipe::Sound(sound(task))];
    }
    let film = |number| {
        Recipe::Film(Film {
            size: (task.count("width") as u32, task.count("height") as u32),
            seconds: task.count("seconds") as u32,
            number,
        })
    };
    let is_marked = task.facts["marked"] == true;
    let last = task.number + u64::from(is_marked);
    (task.number..=last).map(film).collect()
}
