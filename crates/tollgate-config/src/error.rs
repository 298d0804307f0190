//! The error of an invalid configuration.

/// Why a configuration is rejected: one sentence that states where the error is and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct ConfigError {
    pub(super) sentence: String,
    pub(super) field: Option<String>,
}

impl ConfigError {
    /// An error that is not about a single setting.
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            sentence: message.into(),
            field: None,
        }
    }

    /// The path of the setting; `None` if the error is not about a single setting.
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }
}
