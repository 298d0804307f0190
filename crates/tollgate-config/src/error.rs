//! Why a configuration is not used.

/// Why a configuration is not used: one sentence that says where and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct ConfigError {
    pub(super) sentence: String,
    pub(super) field: Option<String>,
}

impl ConfigError {
    /// An error that is of no single setting.
    pub(super) fn new(message: impl Into<String>) -> Self {
        Self {
            sentence: message.into(),
            field: None,
        }
    }

    /// The path of the setting; `None` if it is none of a single setting.
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }
}
