//! The state of a prediction.

use serde_json::{Value, json};

use super::words;
use crate::clock;
use crate::course::Verdict;
use crate::desk::{Desk, Made, Media};
use crate::directive::Stage;
use crate::hosted;
use crate::tasks::{Phase, Task};

pub(super) fn get(id: &str) -> Media {
    let name = id.to_owned();
    Media::about(Stage::Poll, vec![id.to_owned()], move |desk| {
        let found = desk.look(&name, |task, phase| record(desk, task, phase));
        let missing = || Box::new(words::missing("task"));
        found.map(Made::json).ok_or_else(missing)
    })
}

/// Ends a prediction that has not ended.
pub(super) fn cancel(id: &str) -> Media {
    let name = id.to_owned();
    Media::about(Stage::Cancel, vec![id.to_owned()], move |desk| {
        let found = desk.look(&name, |task, mut phase| {
            if matches!(phase, Phase::Queued | Phase::Running(_)) {
                task.cancel();
                phase = Phase::Cancelled;
            }
            record(desk, task, phase)
        });
        let missing = || Box::new(words::missing("task"));
        found.map(Made::json).ok_or_else(missing)
    })
}

pub(super) fn record(desk: &Desk<'_>, task: &mut Task, phase: Phase) -> Value {
    let (status, error) = match phase {
        Phase::Queued => ("starting", None),
        Phase::Running(_) => ("processing", None),
        Phase::Cancelled => ("canceled", None),
        Phase::Ended(Verdict::Good) => ("succeeded", None),
        Phase::Ended(Verdict::Failed) => (
            "failed",
            Some("Prediction interrupted; please retry (code: PA)"),
        ),
        Phase::Ended(Verdict::Expired) => ("aborted", None),
        Phase::Ended(Verdict::Blocked) => (
            "failed",
            Some("NSFW content detected. Try running it again, or try a different prompt."),
        ),
        Phase::Ended(Verdict::Filtered) => (
            "failed",
            Some("The input or output was flagged as sensitive. Please try again. (E005)"),
        ),
    };
    let has_ended = !matches!(phase, Phase::Queued | Phase::Running(_));
    let is_kept = !has_ended || desk.is_kept(task);
    let origin = desk.origin();
    let url = |end: &str| format!("{origin}/v1/predictions/{}{end}", task.id);
    let logs = match phase {
        Phase::Running(percent) => format!("{percent:3}%|####      | 4/10\n"),
        _ => String::new(),
    };
    let mut record = json!({
        "id": task.id, "model": task.fact("model"), "version": task.fact("version"),
        "input": task.facts["input"], "output": null, "logs": logs, "error": error,
        "status": status, "data_removed": !is_kept, "created_at": clock::iso(task.made_at),
        "started_at": null, "completed_at": null,
        "urls": {"get": url(""), "cancel": url("/cancel"), "web": url("/web")},
    });
    if phase != Phase::Queued {
        record["started_at"] = json!(clock::iso(task.made_at));
    }
    if has_ended {
        record["completed_at"] = json!(clock::iso(task.changed_at()));
    }
    if !is_kept {
        record["input"] = json!({});
    } else if phase == Phase::Ended(Verdict::Good) {
        record["metrics"] = json!({"predict_time": 1.25, "total_time": 1.5});
        record["output"] = output(desk, task);
    }
    record
}

/// A link, or a list of them: by model.
fn output(desk: &Desk<'_>, task: &mut Task) -> Value {
    let is_list = task.fact("family") == "picture" && !task.fact("model").contains("nano-banana");
    let wanted = if is_list {
        task.count("count") as usize
    } else {
        1
    };
    let good = task.course.good(wanted);
    let links = desk.results(task, |task| hosted::recipes(task, good));
    match is_list {
        true => json!(links),
        false => json!(links.first()),
    }
}
