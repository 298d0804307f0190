//! Checks the final record of a task, and the files that it names, against its submission.

use image::ImageReader;
use serde_json::Value;
use std::io::Cursor;

use super::submission::{Ending, Submission};
use crate::http::HttpResponse;

/// The state of a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cancel {
    /// Not requested, or rejected because the task had already ended.
    No,
    /// Confirmed with 200.
    Confirmed,
    /// Requested; the response was lost.
    AnswerLost,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// Completed, with the links to its images.
    Completed(Vec<String>),
    /// The task failed, free of charge.
    Failed,
    /// Cancelled by its user.
    Cancelled,
}

/// The outcome that a record reports, if the task has ended.
pub(super) fn end(record: &Value) -> Option<End> {
    match record["status"].as_str() {
        Some("completed") => {
            let images = record["result"]["images"].as_array();
            let links = images.into_iter().flatten().map(|p| p["url"][0].as_str());
            let links: Option<Vec<String>> = links.map(|l| l.map(str::to_owned)).collect();
            Some(End::Completed(links.unwrap_or_default()))
        }
        Some("failed") if record["error"]["code"] == "cancelled" => Some(End::Cancelled),
        Some("failed") => Some(End::Failed),
        _ => None,
    }
}

/// The number of images in the record of an ended task; 0 for one that failed. `None` if the task has not ended.
pub(crate) fn images_of(record: &Value) -> Option<usize> {
    Some(match end(record)? {
        End::Completed(links) => links.len(),
        End::Failed | End::Cancelled => 0,
    })
}

/// The first mismatch between the final `record` and its submission. `None` if the record is correct.
pub(super) fn check_record(
    submission: &Submission,
    cancel: Cancel,
    record: &Value,
) -> Option<String> {
    let end = end(record)?;
    let cost = nanos(&record["cost"]);
    let (expected, price) = match (submission.ending, &end) {
        (_, End::Cancelled) if cancel != Cancel::No => (true, 0),
        (_, _) if cancel == Cancel::Confirmed => (false, 0),
        (_, End::Failed) if submission.on_bad_provider => (true, 0),
        (_, End::Completed(links)) if submission.on_bad_provider => {
            let paid = i64::try_from(links.len()).unwrap_or(0) * submission.price;
            let most = submission.body["n"].as_u64().unwrap_or(1);
            ((1..=most).contains(&(links.len() as u64)), paid)
        }
        (Ending::Images(count), End::Completed(links)) => {
            let paid = i64::try_from(count).unwrap_or(0) * submission.price;
            (links.len() as u64 == count, paid)
        }
        (Ending::Failure, End::Failed) => (true, 0),
        _ => (false, 0),
    };
    if !expected {
        return Some(format!(
            "must come to {:?} (cancelled: {cancel:?}) and is {record}",
            submission.ending
        ));
    }
    if let Some(expires) = expired(record) {
        return Some(format!("has a link that expires at {expires}: {record}"));
    }
    if cost != Some(price) {
        return Some(format!("must cost {price} billionths and is {record}"));
    }
    None
}

/// An `expires_at` of a record that is not about one day after the task.
fn expired(record: &Value) -> Option<&Value> {
    let created_at = record["created_at"].as_i64()?;
    let day = created_at + 80_000..created_at + 300_000;
    let images = record["result"]["images"].as_array()?.iter();
    let mut ends = images.map(|image| &image["expires_at"]);
    ends.find(|end| end.as_i64().is_none_or(|end| !day.contains(&end)))
}

/// The problem of a downloaded image. `None` if the image is correct.
pub(super) fn check_image_file(submission: &Submission, answer: &HttpResponse) -> Option<String> {
    if answer.status != 200 {
        return Some(format!("answers {}", answer.describe()));
    }
    let announced = answer
        .headers
        .get("content-length")
        .and_then(|v| v.to_str().ok());
    if announced != Some(answer.body.len().to_string().as_str()) {
        return Some(format!(
            "announces {announced:?} and has {} bytes",
            answer.body.len()
        ));
    }
    let reader = ImageReader::new(Cursor::new(&answer.body)).with_guessed_format();
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
pub(crate) fn nanos(amount: &Value) -> Option<i64> {
    // The digits of the JSON number: a float keeps fifteen digits exactly.
    let nanos = (amount.as_f64()? * 1e9).round();
    format!("{nanos:.0}").parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn submission(ending: Ending) -> Submission {
        Submission {
            body: json!({}),
            price: 40_000_000,
            ending,
            size: None,
            on_bad_provider: false,
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
        let two = submission(Ending::Images(2));
        assert_eq!(check_record(&two, Cancel::No, &completed(2, 0.08)), None);
        assert!(check_record(&two, Cancel::No, &completed(1, 0.04)).is_some());
        assert!(check_record(&two, Cancel::No, &completed(2, 0.04)).is_some());
        let failed = json!({"status": "failed", "cost": 0, "error": {"code": "provider_error"}});
        assert!(check_record(&two, Cancel::No, &failed).is_some());
        assert_eq!(
            check_record(&submission(Ending::Failure), Cancel::No, &failed),
            None
        );
    }

    #[test]
    fn what_a_bad_provider_gets_first_may_fail_and_is_paid_by_the_image() {
        let two = Submission {
            on_bad_provider: true,
            body: json!({"n": 2}),
            ..submission(Ending::Images(2))
        };
        let failed = json!({"status": "failed", "cost": 0, "error": {"code": "provider_error"}});
        assert_eq!(check_record(&two, Cancel::No, &failed), None);
        assert_eq!(check_record(&two, Cancel::No, &completed(1, 0.04)), None);
        assert!(check_record(&two, Cancel::No, &completed(1, 0.08)).is_some());
        assert!(check_record(&two, Cancel::No, &completed(3, 0.12)).is_some());
    }

    #[test]
    fn a_confirmed_cancellation_is_final_and_free() {
        let cancelled = json!({"status": "failed", "cost": 0, "error": {"code": "cancelled"}});
        let one = submission(Ending::Images(1));
        assert_eq!(check_record(&one, Cancel::Confirmed, &cancelled), None);
        assert!(check_record(&one, Cancel::Confirmed, &completed(1, 0.04)).is_some());
        assert!(check_record(&one, Cancel::No, &cancelled).is_some());
        assert_eq!(check_record(&one, Cancel::AnswerLost, &cancelled), None);
        assert_eq!(
            check_record(&one, Cancel::AnswerLost, &completed(1, 0.04)),
            None
        );
    }

    #[test]
    fn links_must_live_for_a_day() {
        let record = |end: i64| {
            let images = json!([{"url": ["a"], "expires_at": end}]);
            json!({"status": "completed", "cost": 0.04, "created_at": 1_000_000, "result": {"images": images}})
        };
        let one = submission(Ending::Images(1));
        assert_eq!(check_record(&one, Cancel::No, &record(1_086_400)), None);
        assert!(check_record(&one, Cancel::No, &record(1_086)).is_some());
    }

    #[test]
    fn amounts_are_read_exactly() {
        assert_eq!(nanos(&json!(0.107)), Some(107_000_000));
        assert_eq!(nanos(&json!(99_999.123_456_789)), Some(99_999_123_456_789));
        assert_eq!(nanos(&json!(-1)), Some(-1_000_000_000));
    }
}
