//! When a webhook is delivered again: with a backoff between attempts, until it is given up after a day or on 410 Gone.

use tollgate_core::{Millis, clock};
use tollgate_store::{DueWebhook, NextDelivery};

/// Backoff between attempts; the last one is repeated until [`MAX_AGE`].
const BACKOFF: [Millis; 8] = [
    5 * clock::SECOND,
    30 * clock::SECOND,
    2 * clock::MINUTE,
    10 * clock::MINUTE,
    30 * clock::MINUTE,
    clock::HOUR,
    2 * clock::HOUR,
    3 * clock::HOUR,
];
/// How long after the end of its task a webhook is retried.
const MAX_AGE: Millis = 24 * clock::HOUR;

/// What happens after an attempt with that status; `None` if the receiver did not respond.
pub(super) fn next_delivery(
    webhook: &DueWebhook,
    status: Option<u16>,
    now: Millis,
) -> NextDelivery {
    // With 410 Gone a receiver unsubscribes (Standard Webhooks).
    match status {
        Some(200..=299) => return NextDelivery::Delivered,
        Some(410) => return NextDelivery::GivenUp,
        _ => {}
    }
    let earlier_attempts = usize::try_from(webhook.earlier_attempts).unwrap_or(usize::MAX);
    let backoff = BACKOFF[earlier_attempts.min(BACKOFF.len() - 1)];
    if now + backoff > webhook.task_ended_at + MAX_AGE {
        return NextDelivery::GivenUp;
    }
    NextDelivery::RetryAt(now + backoff)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn webhook(earlier_attempts: i64) -> DueWebhook {
        DueWebhook {
            task_id: "task_1".to_owned(),
            key_id: "key_1".to_owned(),
            url: "https://a.example/b".to_owned(),
            receiver: "https://a.example".to_owned(),
            earlier_attempts,
            task_ended_at: 0,
        }
    }

    #[test]
    fn a_webhook_is_retried_for_a_day_until_a_2xx_or_410() {
        let mut now = 0;
        let mut tries = 0;
        loop {
            match next_delivery(&webhook(tries), Some(500), now) {
                NextDelivery::RetryAt(at) => {
                    assert!(at > now && at <= MAX_AGE);
                    now = at;
                    tries += 1;
                }
                NextDelivery::GivenUp => break,
                NextDelivery::Delivered => panic!("500 is not a success"),
            }
        }
        assert!(
            tries > 10 && now > 20 * clock::HOUR,
            "{tries} attempts until {now}"
        );
        let next = |status| next_delivery(&webhook(0), status, 0);
        assert_eq!(next(Some(204)), NextDelivery::Delivered);
        assert_eq!(next(Some(410)), NextDelivery::GivenUp);
        assert_eq!(
            next(Some(302)),
            NextDelivery::RetryAt(5_000),
            "a redirect is not followed and not a success"
        );
        assert_eq!(next(None), NextDelivery::RetryAt(5_000));
    }
}
