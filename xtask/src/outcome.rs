//! [`Outcome`]: how a command ends.

/// The result of a command; an error is one sentence for a person.
pub(crate) type Outcome = Result<(), String>;
