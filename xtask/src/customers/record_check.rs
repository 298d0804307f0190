//! Checks the final record of a task, and the files that it names, against its submission.

use image::ImageReader;
use serde_json::Value;
use std::io::Cursor;

use super::submission::{ExpectedOutcome, Submission};
use crate::http::HttpResponse;

/// The state of a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cancellation {
    /// Not requested, or rejected because the task had already ended.
    NotRequested,
    /// Confirmed with 200.
    Confirmed,
    /// Requested; the response was lost.
    ResponseLost,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum TaskOutcome {
    /// Completed, with the links to its images.
    Completed(Vec<String>),
    /// The task failed, free of charge.
    Failed,
    /// Cancelled by its user.
    Cancelled,
}

/// The outcome that a record reports, if the task has ended.
pub(super) fn task_outcome(record: &Value) -> Option<TaskOutcome> {
    match record["status"].as_str() {
        Some("completed") => {
            let images = record["result"]["images"].as_array();
            let links = images.into_iter().flatten().map(|p| p["url"][0].as_str());
            let links: Option<Vec<String>> = links.map(|l| l.map(str::to_owned)).collect();
            Some(TaskOutcome::Completed(links.unwrap_or_default()))
        }
        Some("failed") if record["error"]["code"] == "cancelled" => Some(TaskOutcome::Cancelled),
        Some("failed") => Some(TaskOutcome::Failed),
        _ => None,
    }
}

/// The number of images in the record of an ended task; 0 for one that failed. `None` if the task has not ended.
pub(crate) fn image_count(record: &Value) -> Option<usize> {
    Some(match task_outcome(record)? {
        TaskOutcome::Completed(links) => links.len(),
        TaskOutcome::Failed | TaskOutcome::Cancelled => 0,
    })
}

/// The first mismatch between the final `record` and its submission. `None` if the record is correct.
pub(super) fn check_record(
    submission: &Submission,
    cancellation: Cancellation,
    record: &Value,
) -> Option<String> {
    let outcome = task_outcome(record)?;
    let cost = billionths(&record["cost"]);
    let (is_expected, price) = match (submission.expected, &outcome) {
        (_, TaskOutcome::Cancelled) if cancellation != Cancellation::NotRequested => (true, 0),
        (_, _) if cancellation == Cancellation::Confirmed => (false, 0),
        (_, TaskOutcome::Failed) if submission.on_failing_provider => (true, 0),
        (_, TaskOutcome::Completed(links)) if submission.on_failing_provider => {
            let paid = i64::try_from(links.len()).unwrap_or(0) * submission.price;
            let max = submission.body["n"].as_u64().unwrap_or(1);
            ((1..=max).contains(&(links.len() as u64)), paid)
        }
        (ExpectedOutcome::Images(count), TaskOutcome::Completed(links)) => {
            let paid = i64::try_from(count).unwrap_or(0) * submission.price;
            (links.len() as u64 == count, paid)
        }
        (ExpectedOutcome::Failure, TaskOutcome::Failed) => (true, 0),
        _ => (false, 0),
    };
    if !is_expected {
        return Some(format!(
            "must end as {:?} (cancellation: {cancellation:?}) and is {record}",
            submission.expected
        ));
    }
    if let Some(expires) = find_invalid_expiry(record) {
        return Some(format!("has a link that expires at {expires}: {record}"));
    }
    if cost != Some(price) {
        return Some(format!("must cost {price} billionths and is {record}"));
    }
    None
}

/// An `expires_at` of a record that is not 80,000 to 300,000 seconds (about 1 to 3.5 days) after the creation of its task. `None` if there is none.
fn find_invalid_expiry(record: &Value) -> Option<&Value> {
    let created_at = record["created_at"].as_i64()?;
    let valid = created_at + 80_000..created_at + 300_000;
    let images = record["result"]["images"].as_array()?.iter();
    let mut expiries = images.map(|image| &image["expires_at"]);
    expiries.find(|expiry| {
        expiry
            .as_i64()
            .is_none_or(|expiry| !valid.contains(&expiry))
    })
}

/// The problem of a downloaded image. `None` if the image is correct.
pub(super) fn check_image_file(submission: &Submission, response: &HttpResponse) -> Option<String> {
    if response.status != 200 {
        return Some(format!("has the response {}", response.describe()));
    }
    let announced = response
        .headers
        .get("content-length")
        .and_then(|v| v.to_str().ok());
    if announced != Some(response.body.len().to_string().as_str()) {
        return Some(format!(
            "announces {announced:?} and has {} bytes",
            response.body.len()
        ));
    }
    let reader = ImageReader::new(Cursor::new(&response.body)).with_guessed_format();
    match reader
        .map_err(|e| e.to_string())
        .and_then(|r| r.decode().map_err(|e| e.to_string()))
    {
        Err(e) => Some(format!("does not decode: {e}")),
        Ok(image) => {
            let size = (image.width(), image.height());
            let differs = submission.size.is_some_and(|expected| expected != size);
            differs.then(|| format!("is {size:?} and must be {:?}", submission.size))
        }
    }
}

/// A JSON amount in billionths.
pub(crate) fn billionths(amount: &Value) -> Option<i64> {
    // The digits of the JSON number: a float keeps fifteen digits exactly.
    let rounded = (amount.as_f64()? * 1e9).round();
    format!("{rounded:.0}").parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn submission(expected: ExpectedOutcome) -> Submission {
        Submission {
            body: json!({}),
            price: 40_000_000,
            expected,
            size: None,
            on_failing_provider: false,
            idempotency_key: None,
        }
    }

    fn completed(links: usize, cost: f64) -> Value {
        let images: Vec<Value> = (0..links)
            .map(|at| json!({"url": [at.to_string()]}))
            .collect();
        json!({"status": "completed", "cost": cost, "result": {"images": images}})
    }

    #[test]
    fn a_record_must_have_the_images_and_their_price() {
        let two = submission(ExpectedOutcome::Images(2));
        assert_eq!(
            check_record(&two, Cancellation::NotRequested, &completed(2, 0.08)),
            None
        );
        assert!(check_record(&two, Cancellation::NotRequested, &completed(1, 0.04)).is_some());
        assert!(check_record(&two, Cancellation::NotRequested, &completed(2, 0.04)).is_some());
        let failed = json!({"status": "failed", "cost": 0, "error": {"code": "provider_error"}});
        assert!(check_record(&two, Cancellation::NotRequested, &failed).is_some());
        assert_eq!(
            check_record(
                &submission(ExpectedOutcome::Failure),
                Cancellation::NotRequested,
                &failed
            ),
            None
        );
    }

    #[test]
    fn tasks_on_a_failing_provider_may_fail_and_are_charged_per_image() {
        let two = Submission {
            on_failing_provider: true,
            body: json!({"n": 2}),
            ..submission(ExpectedOutcome::Images(2))
        };
        let failed = json!({"status": "failed", "cost": 0, "error": {"code": "provider_error"}});
        assert_eq!(
            check_record(&two, Cancellation::NotRequested, &failed),
            None
        );
        assert_eq!(
            check_record(&two, Cancellation::NotRequested, &completed(1, 0.04)),
            None
        );
        assert!(check_record(&two, Cancellation::NotRequested, &completed(1, 0.08)).is_some());
        assert!(check_record(&two, Cancellation::NotRequested, &completed(3, 0.12)).is_some());
    }

    #[test]
    fn a_confirmed_cancellation_is_final_and_free() {
        let cancelled = json!({"status": "failed", "cost": 0, "error": {"code": "cancelled"}});
        let one = submission(ExpectedOutcome::Images(1));
        assert_eq!(
            check_record(&one, Cancellation::Confirmed, &cancelled),
            None
        );
        assert!(check_record(&one, Cancellation::Confirmed, &completed(1, 0.04)).is_some());
        assert!(check_record(&one, Cancellation::NotRequested, &cancelled).is_some());
        assert_eq!(
            check_record(&one, Cancellation::ResponseLost, &cancelled),
            None
        );
        assert_eq!(
            check_record(&one, Cancellation::ResponseLost, &completed(1, 0.04)),
            None
        );
    }

    #[test]
    fn links_must_expire_after_a_day() {
        let record = |end: i64| {
            let images = json!([{"url": ["a"], "expires_at": end}]);
            json!({"status": "completed", "cost": 0.04, "created_at": 1_000_000, "result": {"images": images}})
        };
        let one = submission(ExpectedOutcome::Images(1));
        assert_eq!(
            check_record(&one, Cancellation::NotRequested, &record(1_086_400)),
            None
        );
        assert!(check_record(&one, Cancellation::NotRequested, &record(1_086)).is_some());
    }

    #[test]
    fn amounts_are_read_exactly() {
        assert_eq!(billionths(&json!(0.107)), Some(107_000_000));
        assert_eq!(
            billionths(&json!(99_999.123_456_789)),
            Some(99_999_123_456_789)
        );
        assert_eq!(billionths(&json!(-1)), Some(-1_000_000_000));
    }
}
