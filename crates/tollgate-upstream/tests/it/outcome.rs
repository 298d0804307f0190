//! The outcome of a call, written as the cases write it.

use tollgate_upstream::{Completed, Found, Polled, ProviderError, Started};

/// The outcome of a call.
pub(crate) struct Outcome {
    /// The outcome as text, such as `accepted ID`, `pending 40`, `error Moderated`.
    pub(crate) text: String,
    pub(crate) error: Option<ProviderError>,
    /// The kinds of the missing results' errors.
    pub(crate) failures: Vec<String>,
}

impl Outcome {
    fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            error: None,
            failures: Vec::new(),
        }
    }

    fn failed(how: &str, error: ProviderError) -> Self {
        Self {
            error: Some(error.clone()),
            ..Self::new(format!("{how} {:?}", error.kind))
        }
    }

    fn completed(completed: &Completed) -> Self {
        let kinds = completed.failures.iter();
        Self {
            failures: kinds.map(|error| format!("{:?}", error.kind)).collect(),
            ..Self::new("completed")
        }
    }

    pub(crate) fn started(result: Result<Started, ProviderError>) -> Self {
        match result {
            Ok(Started::Completed(completed)) => Self::completed(&completed),
            Ok(Started::Accepted(id)) => Self::new(format!("accepted {id}")),
            Err(error) => Self::failed("error", error),
        }
    }

    pub(crate) fn polled(result: Result<Polled, ProviderError>) -> Self {
        match result {
            Ok(Polled::Pending(None)) => Self::new("pending"),
            Ok(Polled::Pending(Some(percent))) => Self::new(format!("pending {percent}")),
            Ok(Polled::Completed(completed)) => Self::completed(&completed),
            Ok(Polled::Failed(error)) => Self::failed("failed", error),
            Err(error) => Self::failed("error", error),
        }
    }

    pub(crate) fn found(result: Result<Found, ProviderError>) -> Self {
        match result {
            Ok(Found::Accepted(id)) => Self::new(format!("found {id}")),
            Ok(Found::Nothing) => Self::new("nothing"),
            Ok(Found::Unknown) => Self::new("unknown"),
            Err(error) => Self::failed("error", error),
        }
    }

    pub(crate) fn ok<T>(result: Result<T, ProviderError>) -> Self {
        match result {
            Ok(_) => Self::new("ok"),
            Err(error) => Self::failed("error", error),
        }
    }
}
