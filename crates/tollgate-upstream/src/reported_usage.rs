//! [`ReportedUsage`]: the tokens that a provider's usage API reports, by model and day.

/// A period of whole days in UTC, each counted from 1970-01-01.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsagePeriod {
    /// The first day.
    pub from: i64,
    /// The day after the last.
    pub until: i64,
}

/// The tokens of one model on one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedUsage {
    /// The day in UTC, counted from 1970-01-01.
    pub day: i64,
    /// The provider's id of the model; empty if the provider does not report it.
    pub model: String,
    /// The tokens of complete prompts, including those read from and written to the cache.
    pub input: u64,
    /// The tokens of complete outputs, including reasoning.
    pub output: u64,
}
