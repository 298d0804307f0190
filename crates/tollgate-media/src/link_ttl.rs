//! [`LinkTtl`]: how long links to result files stay valid.

/// Which of the two configured time-to-live values applies to a family's result links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkTtl {
    /// `expiry.images_s` of the configuration: 24 hours by default.
    Standard,
    /// `expiry.long_s` of the configuration: 72 hours by default.
    Long,
}

impl LinkTtl {
    /// The default, in hours.
    pub fn hours(self) -> u32 {
        match self {
            Self::Standard => 24,
            Self::Long => 72,
        }
    }
}
