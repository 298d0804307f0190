//! Films: the state of a task.

use serde_json::json;

use super::words::plain;
use crate::course::Verdict;
use crate::desk::{Desk, Made, Media};
use crate::directive::Stage;
use crate::made::{Film, Recipe};
use crate::tasks::{Phase, Task};

/// Ticks of a dollar for a second.
const COST: u64 = 500_000_000;

pub(super) fn get(id: &str) -> Media {
    let name = id.to_owned();
    Media::about(Stage::Poll, vec![id.to_owned()], move |desk| {
        let found = desk.look(&name, |task, phase| record(desk, task, phase));
        let missing = || Box::new(plain(404, "task", "Deferred request not found"));
        found.ok_or_else(missing)
    })
}

/// The state: status 202 as long as it is not done, without a word at first.
fn record(desk: &Desk<'_>, task: &mut Task, phase: Phase) -> Made {
    let model = task.fact("model").to_owned();
    let seconds = task.count("seconds");
    let cost = json!({"cost_in_usd_ticks": COST * seconds});
    let failed = |code: &str, message: &str| {
        let error = json!({"code": code, "message": message});
        Made::json(json!({"status": "failed", "model": model, "error": error}))
    };
    match phase {
        Phase::Queued => Made::nothing(202),
        Phase::Running(percent) => {
            Made::json(json!({"status": "pending", "progress": percent})).status(202)
        }
        Phase::Ended(Verdict::Good) => {
            let url = desk.results(task, recipe)[0].clone();
            let video = json!({"url": url, "duration": seconds, "respect_moderation": true});
            Made::json(json!({
                "status": "done", "progress": 100, "model": model, "video": video, "usage": cost,
            }))
        }
        Phase::Ended(Verdict::Filtered | Verdict::Blocked) => {
            let video = json!({"url": "", "duration": 0, "respect_moderation": false});
            Made::json(json!({"status": "done", "model": model, "video": video, "usage": cost}))
        }
        Phase::Ended(Verdict::Expired) => Made::json(json!({"status": "expired", "model": model})),
        Phase::Ended(Verdict::Failed) | Phase::Cancelled => {
            failed("internal_error", "Video generation failed.")
        }
    }
}

fn recipe(task: &Task) -> Vec<Recipe> {
    vec![Recipe::Film(Film {
        size: (task.count("width") as u32, task.count("height") as u32),
        seconds: task.count("seconds") as u32,
        number: task.number,
    })]
}
