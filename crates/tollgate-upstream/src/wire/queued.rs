//! What adapters of providers with queues have in common.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::Answer;
use crate::provider::{Delivery, Done, Link, Made, Polled, ProviderError, ProviderErrorKind};

/// What stands in one segment of a path as it is.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~');

/// `text`, such as a provider's id, as one segment of a path or one value of a query.
pub(crate) fn segment(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

/// What an error in place of a task's state means: one about the task itself ends it; after any other the next poll asks
/// again.
pub(crate) fn unpolled(error: ProviderError) -> Result<Polled, ProviderError> {
    match error.kind {
        ProviderErrorKind::Rejected
        | ProviderErrorKind::Failed
        | ProviderErrorKind::ModelMissing
        | ProviderErrorKind::ChannelUnfit => Ok(Polled::Failed(ProviderError {
            kind: ProviderErrorKind::Failed,
            ..error
        })),
        _ => Err(error),
    }
}

/// What a submission's answer that names no task means, where its words alone say `error`: a success that broke off, or
/// is not all there, may have made one. A success of another kind is some page on the way, and nothing was made.
pub(crate) fn unnamed(answer: &Answer, error: ProviderError) -> ProviderError {
    let is_broken = answer.status.is_success() && answer.body.trim_ascii_start().starts_with(b"{");
    if is_broken && error.kind == ProviderErrorKind::Retryable {
        let words = "the upstream's answer names no task, although it may have made one";
        return ProviderError {
            status: error.status,
            ..ProviderError::new(ProviderErrorKind::Unknown, words)
        };
    }
    error
}

/// Delivers the results of a finished task in order. Those that are missing are told as refused, as long as there is one;
/// where one is there and does not come, the next poll delivers all of them again.
pub(crate) async fn hand_over(
    delivery: &dyn Delivery,
    results: Vec<Result<Link, ProviderError>>,
) -> Result<Polled, ProviderError> {
    let mut refused = Vec::new();
    let (mut delivered, mut again) = (0, None);
    for result in results {
        let link = match result {
            Ok(link) => link,
            Err(error) => {
                refused.push(error);
                continue;
            }
        };
        match delivery.deliver(Made::Link(link)).await {
            Ok(()) => delivered += 1,
            Err(error) => {
                if error.kind.may_be_tried_again() {
                    again = Some(error.clone());
                }
                refused.push(error);
            }
        }
    }
    if let Some(error) = again {
        return Err(error);
    }
    if delivered > 0 {
        return Ok(Polled::Done(Done { refused }));
    }
    let error = most_telling(refused).unwrap_or_else(|| {
        let message = "the upstream's task ended without a result";
        ProviderError::new(ProviderErrorKind::Failed, message)
    });
    Ok(Polled::Failed(error))
}

/// What a poll of finished work says whose one result was `delivered` or could not be: the next poll tries again what may
/// go better.
pub(crate) fn ended(delivered: Result<(), ProviderError>) -> Result<Polled, ProviderError> {
    match delivered {
        Ok(()) => Ok(Polled::Done(Done::default())),
        Err(error)
            if error.kind.may_be_tried_again() || error.kind == ProviderErrorKind::Interrupted =>
        {
            Err(error)
        }
        Err(error) => Ok(Polled::Failed(error)),
    }
}

/// Of several failures the one that decides what happens next.
pub(crate) fn most_telling(errors: Vec<ProviderError>) -> Option<ProviderError> {
    errors.into_iter().min_by_key(|error| match error.kind {
        ProviderErrorKind::Interrupted => 0,
        ProviderErrorKind::Moderated => 1,
        ProviderErrorKind::Rejected => 2,
        // One that may have been taken forbids another try, whatever became of the others.
        ProviderErrorKind::Unknown => 3,
        ProviderErrorKind::Failed => 4,
        ProviderErrorKind::KeyRefused => 5,
        ProviderErrorKind::QuotaExhausted => 6,
        ProviderErrorKind::ModelMissing => 7,
        ProviderErrorKind::ChannelUnfit => 8,
        ProviderErrorKind::RateLimited => 9,
        ProviderErrorKind::Retryable => 10,
    })
}

/// A success that is none of the provider's: a proxy's page, an empty answer.
pub(crate) fn not_as_asked(answer: &Answer) -> ProviderError {
    ProviderError {
        status: Some(answer.status.as_u16()),
        ..ProviderError::new(
            ProviderErrorKind::Retryable,
            "the upstream's answer is not of the kind asked for",
        )
    }
}

/// The same in place of what was asked to be made: where it begins as an answer does, the rest was lost on its way.
pub(crate) fn lost_answer(answer: &Answer) -> ProviderError {
    if !answer.is_begun() {
        return not_as_asked(answer);
    }
    ProviderError {
        kind: ProviderErrorKind::Unknown,
        ..not_as_asked(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ProviderErrorKind::{
        ChannelUnfit, Failed, KeyRefused, ModelMissing, Moderated, RateLimited, Rejected,
        Retryable, Unknown,
    };

    #[test]
    fn ids_stay_within_their_segment() {
        assert_eq!(segment("a-1_b.c~"), "a-1_b.c~");
        assert_eq!(segment("../x?y=z#é"), "..%2Fx%3Fy%3Dz%23%C3%A9");
    }

    #[test]
    fn only_an_error_about_the_task_ends_it() {
        for (kind, ends) in [
            (Rejected, true),
            (ModelMissing, true),
            (ChannelUnfit, true),
            (Retryable, false),
            (RateLimited, false),
            (KeyRefused, false),
        ] {
            match unpolled(ProviderError::new(kind, "x")) {
                Ok(Polled::Failed(error)) => assert!(ends && error.kind == Failed, "{kind:?}"),
                Ok(other) => panic!("{kind:?}: {other:?}"),
                Err(error) => assert!(!ends && error.kind == kind, "{kind:?}"),
            }
        }
    }

    #[test]
    fn a_success_without_a_task_may_have_made_one() {
        for (status, body, kind, expected) in [
            (200, "{\"id\": \"t", Retryable, Unknown),
            (201, " {}", Retryable, Unknown),
            (200, "{\"code\": 1302}", RateLimited, RateLimited),
            (200, "<html></html>", Retryable, Retryable),
            (200, "", Retryable, Retryable),
            (502, "{}", Retryable, Retryable),
        ] {
            let answer = Answer {
                status: status.try_into().unwrap(),
                headers: http::HeaderMap::new(),
                body: body.into(),
            };
            let error = unnamed(&answer, ProviderError::new(kind, "x"));
            assert_eq!(error.kind, expected, "{status} {body}");
        }
    }

    #[test]
    fn what_forbids_another_try_is_told_first() {
        for (kinds, expected) in [
            (&[Retryable, Moderated, Unknown][..], Moderated),
            (&[RateLimited, Unknown, KeyRefused], Unknown),
            (&[Retryable, RateLimited], RateLimited),
        ] {
            let errors = kinds.iter().map(|kind| ProviderError::new(*kind, "x"));
            assert_eq!(most_telling(errors.collect()).unwrap().kind, expected);
        }
        assert!(most_telling(Vec::new()).is_none());
    }
}
