//! One line of the output of `tollgate doctor`.

use std::fmt;

use serde_json::{Value, json};

/// The outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Level {
    Ok,
    /// The gateway works, but something should be improved.
    Warn,
    /// The gateway does not start, or a part of it cannot work.
    Fail,
}

impl Level {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }
}

/// The result of a check, and the advice for the operator.
#[derive(Debug)]
pub(super) struct Finding {
    check: &'static str,
    pub(super) level: Level,
    message: String,
    action: Option<String>,
}

impl Finding {
    pub(super) fn ok(check: &'static str, message: impl fmt::Display) -> Self {
        Self {
            check,
            level: Level::Ok,
            message: message.to_string(),
            action: None,
        }
    }

    pub(super) fn warn(
        check: &'static str,
        message: impl fmt::Display,
        action: impl fmt::Display,
    ) -> Self {
        Self {
            level: Level::Warn,
            action: Some(action.to_string()),
            ..Self::ok(check, message)
        }
    }

    pub(super) fn fail(
        check: &'static str,
        message: impl fmt::Display,
        action: impl fmt::Display,
    ) -> Self {
        Self {
            level: Level::Fail,
            ..Self::warn(check, message, action)
        }
    }

    pub(super) fn to_json(&self) -> Value {
        json!({ "check": self.check, "level": self.level.name(), "message": self.message, "action": self.action })
    }
}

impl fmt::Display for Finding {
    /// `warn  prices: 3 models without a price; set them under [price]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { check, message, .. } = self;
        write!(f, "{:4}  {check}: {message}", self.level.name())?;
        match &self.action {
            Some(action) => write!(f, "; {action}"),
            None => Ok(()),
        }
    }
}
