//! Names and limits of the generate-content format.

/// The format's name.
pub(super) const NAME: &str = "generate-content";
/// The vendor whose signatures upstreams of this format understand.
pub(super) const VENDOR: &str = "gemini";

/// Maximum number of stop sequences (Google's limit).
pub(crate) const MAX_STOP_SEQUENCES: usize = 5;

/// Candidates with a higher index were never requested: `candidateCount` is at most 8.
pub(crate) const MAX_CHOICE_INDEX: u32 = 127;
