//! Whether a task's final record, and the files it names, are what the order must come to.

use image::ImageReader;
use serde_json::Value;
use std::io::Cursor;

use super::order::{Ending, Order};
use crate::http::Answer;

/// What is known about a cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cancel {
    /// Nobody asked, or it was too late.
    No,
    /// It was confirmed.
    Done,
    /// It was asked for, and the answer was lost.
    Perhaps,
}

/// How a task ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// With the links of its pictures.
    Completed(Vec<String>),
    /// For nothing.
    Failed,
    /// Because its user said so.
    Cancelled,
}

/// The end that a record tells of, if the task has ended.
pub(super) fn end(record: &Value) -> Option<End> {
    match record["status"].as_str() {
        Some("completed") => {
            let pictures = record["result"]["images"].as_array();
            let links = pictures.into_iter().flatten().map(|p| p["url"][0].as_str());
            let links: Option<Vec<String>> = links.map(|l| l.map(str::to_owned)).collect();
            Some(End::Completed(links.unwrap_or_default()))
        }
        Some("failed") if record["error"]["code"] == "cancelled" => Some(End::Cancelled),
        Some("failed") => Some(End::Failed),
        _ => None,
    }
}

/// What is wrong with the final `record` of an order.
pub(super) fn judge(order: &Order, cancel: Cancel, record: &Value) -> Option<String> {
    let end = end(record)?;
    let cost = nanos(&record["cost"]);
    let (expected, price) = match (order.ending, &end) {
        (_, End::Cancelled) if cancel != Cancel::No => (true, 0),
        (_, _) if cancel == Cancel::Done => (false, 0),
        (Ending::Pictures(count), End::Completed(links)) => {
            let paid = i64::try_from(count).unwrap_or(0) * order.price;
            (links.len() as u64 == count, paid)
        }
        (Ending::Failure, End::Failed) => (true, 0),
        _ => (false, 0),
    };
    if !expected {
        return Some(format!(
            "must come to {:?} (cancelled: {cancel:?}) and is {record}",
            order.ending
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

/// An `expires_at` of a record that is not a day after the task, more or less.
fn expired(record: &Value) -> Option<&Value> {
    let made = record["created_at"].as_i64()?;
    let day = made + 80_000..made + 300_000;
    let pictures = record["result"]["images"].as_array()?.iter();
    let mut ends = pictures.map(|picture| &picture["expires_at"]);
    ends.find(|end| end.as_i64().is_none_or(|end| !day.contains(&end)))
}

/// What is wrong with a downloaded picture.
pub(super) fn examine(order: &Order, answer: &Answer) -> Option<String> {
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
        Ok(picture) => {
            let size = (picture.width(), picture.height());
            let wrong = order.size.is_some_and(|expected| expected != size);
            wrong.then(|| format!("is {size:?} and must be {:?}", order.size))
        }
    }
}

/// A JSON amount in billionths.
pub(super) fn nanos(amount: &Value) -> Option<i64> {
    // The number's own digits: a float of fifteen digits loses none of them.
    let nanos = (amount.as_f64()? * 1e9).round();
    format!("{nanos:.0}").parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn order(ending: Ending) -> Order {
        Order {
            body: json!({}),
            price: 40_000_000,
            ending,
            size: None,
            idempotency_key: None,
        }
    }

    fn completed(links: usize, cost: f64) -> Value {
        let pictures: Vec<Value> = (0..links)
            .map(|at| json!({"url": [at.to_string()]}))
            .collect();
        json!({"status": "completed", "cost": cost, "result": {"images": pictures}})
    }

    #[test]
    fn a_record_must_show_the_pictures_and_their_price() {
        let two = order(Ending::Pictures(2));
        assert_eq!(judge(&two, Cancel::No, &completed(2, 0.08)), None);
        assert!(judge(&two, Cancel::No, &completed(1, 0.04)).is_some());
        assert!(judge(&two, Cancel::No, &completed(2, 0.04)).is_some());
        let failed = json!({"status": "failed", "cost": 0, "error": {"code": "provider_error"}});
        assert!(judge(&two, Cancel::No, &failed).is_some());
        assert_eq!(judge(&order(Ending::Failure), Cancel::No, &failed), None);
    }

    #[test]
    fn a_confirmed_cancellation_is_final_and_free() {
        let cancelled = json!({"status": "failed", "cost": 0, "error": {"code": "cancelled"}});
        let one = order(Ending::Pictures(1));
        assert_eq!(judge(&one, Cancel::Done, &cancelled), None);
        assert!(judge(&one, Cancel::Done, &completed(1, 0.04)).is_some());
        assert!(judge(&one, Cancel::No, &cancelled).is_some());
        assert_eq!(judge(&one, Cancel::Perhaps, &cancelled), None);
        assert_eq!(judge(&one, Cancel::Perhaps, &completed(1, 0.04)), None);
    }

    #[test]
    fn links_must_live_for_a_day() {
        let record = |end: i64| {
            let pictures = json!([{"url": ["a"], "expires_at": end}]);
            json!({"status": "completed", "cost": 0.04, "created_at": 1_000_000, "result": {"images": pictures}})
        };
        let one = order(Ending::Pictures(1));
        assert_eq!(judge(&one, Cancel::No, &record(1_086_400)), None);
        assert!(judge(&one, Cancel::No, &record(1_086)).is_some());
    }

    #[test]
    fn amounts_are_read_exactly() {
        assert_eq!(nanos(&json!(0.107)), Some(107_000_000));
        assert_eq!(nanos(&json!(99_999.123_456_789)), Some(99_999_123_456_789));
        assert_eq!(nanos(&json!(-1)), Some(-1_000_000_000));
    }
}
