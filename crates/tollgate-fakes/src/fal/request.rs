//! A request in the queue: its state, its result, its end.

use serde_json::{Value, json};

use super::words;
use crate::course::Verdict;
use crate::desk::{Desk, Made, Media};
use crate::directive::Stage;
use crate::hosted;
use crate::refusal::{Judged, Refusal};
use crate::tasks::{Phase, Task};

/// The state, without a word on how it went unless it broke.
pub(super) fn status(app: &[&str; 2], id: &str) -> Media {
    look(Stage::Poll, app, id, |desk, task, phase| {
        let base = format!(
            "{}/{}/requests/{}",
            desk.origin(),
            task.fact("app"),
            task.id
        );
        let mut state = json!({"request_id": task.id, "response_url": base});
        let (word, status) = match phase {
            Phase::Queued => ("IN_QUEUE", 202),
            Phase::Running(_) => ("IN_PROGRESS", 202),
            Phase::Ended(_) | Phase::Cancelled => ("COMPLETED", 200),
        };
        state["status"] = json!(word);
        match phase {
            Phase::Queued => state["queue_position"] = json!(0),
            Phase::Running(_) => state["logs"] = json!([]),
            Phase::Ended(Verdict::Failed) => {
                state["error"] = json!("The runner failed while it processed the request");
                state["error_type"] = json!("runner_error");
            }
            Phase::Cancelled => {
                state["error"] = json!("The request was cancelled");
                state["error_type"] = json!("request_cancelled");
            }
            Phase::Ended(_) => state["metrics"] = json!({"inference_time": 1.25}),
        }
        Ok(Made::json(state).status(status))
    })
}

/// What the model has made, or the error that it gave.
pub(super) fn result(app: &[&str; 2], id: &str) -> Media {
    look(Stage::Poll, app, id, |desk, task, phase| {
        let failed = |refusal: Refusal| Err(Box::new(refusal.of_work()));
        match phase {
            Phase::Queued | Phase::Running(_) => {
                let detail = "Request is still in progress";
                Err(Box::new(words::plain(400, "early", detail)))
            }
            Phase::Ended(Verdict::Good) => Ok(Made::json(output(desk, task))),
            Phase::Ended(Verdict::Failed) | Phase::Cancelled => {
                failed(words::plain(500, "behaviour", "Internal Server Error"))
            }
            Phase::Ended(Verdict::Expired) => {
                let refusal = words::plain(504, "behaviour", "Request timed out");
                failed(refusal.header("x-fal-request-timeout-type", "user"))
            }
            Phase::Ended(Verdict::Filtered | Verdict::Blocked) => failed(words::policy()),
        }
    })
}

/// Takes a request from the queue, or asks it to stop.
pub(super) fn cancel(app: &[&str; 2], id: &str) -> Media {
    let (app, name) = (app.join("/"), id.to_owned());
    Media::about(Stage::Cancel, vec![id.to_owned()], move |desk| {
        let phase = desk.look(&name, |task, phase| {
            let is_here = task.fact("app") == app;
            if is_here && matches!(phase, Phase::Running(_)) {
                task.cancel();
            }
            is_here.then_some(phase)
        });
        let answer = |status, word: &str| Ok(Made::json(json!({"status": word})).status(status));
        match phase.flatten() {
            None => answer(404, "NOT_FOUND"),
            Some(Phase::Ended(_) | Phase::Cancelled) => answer(400, "ALREADY_COMPLETED"),
            Some(Phase::Running(_)) => answer(202, "CANCELLATION_REQUESTED"),
            Some(Phase::Queued) => {
                desk.tasks(|tasks| tasks.remove(&name));
                answer(202, "CANCELLATION_REQUESTED")
            }
        }
    })
}

/// A request about a request, found under the app that it is of.
fn look(
    stage: Stage,
    app: &[&str; 2],
    id: &str,
    tell: impl FnOnce(&Desk<'_>, &mut Task, Phase) -> Judged<Made> + Send + 'static,
) -> Media {
    let (app, name) = (app.join("/"), id.to_owned());
    Media::about(stage, vec![id.to_owned()], move |desk| {
        let found = desk.look(&name, |task, phase| {
            (task.fact("app") == app).then(|| tell(desk, task, phase))
        });
        let missing = || Err(Box::new(words::missing("task")));
        found.flatten().unwrap_or_else(missing)
    })
}

fn output(desk: &Desk<'_>, task: &mut Task) -> Value {
    let count = match task.fact("family") {
        "picture" => task.count("count") as usize,
        _ => 1,
    };
    let good = task.course.good(count);
    // Those that are not good are there all the same, and are said to be black.
    let links = desk.results(task, |task| hosted::recipes(task, count));
    let recipe = hosted::recipes(task, 1);
    let media_type = recipe[0].media_type();
    let name = |link: &String| link.rsplit('/').next().unwrap_or_default().to_owned();
    match task.fact("family") {
        "film" => json!({"video": {
            "url": links[0], "content_type": media_type, "file_name": name(&links[0]),
            "file_size": recipe[0].make(task.course.bytes).len(),
        }}),
        "sound" => json!({"audio": {"url": links[0], "content_type": media_type}}),
        _ => {
            let image = |link: &String| {
                json!({
                    "url": link, "width": task.facts["width"], "height": task.facts["height"],
                    "content_type": media_type,
                })
            };
            let images: Vec<Value> = links.iter().map(image).collect();
            let flags: Vec<bool> = (0..count).map(|nth| nth >= good).collect();
            json!({
                "images": images, "seed": 7, "has_nsfw_concepts": flags,
                "timings": {"inference": 1.25}, "prompt": task.facts["input"]["prompt"],
            })
        }
    }
}
