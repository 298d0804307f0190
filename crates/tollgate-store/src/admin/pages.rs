//! Positions in lists that are read page by page, newest first.

use tollgate_core::Millis;

/// Where the next page of a list begins: after the row of this time and id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageStart {
    /// The row's time.
    pub at: Millis,
    /// The row's id.
    pub id: String,
}

/// The values of `at` and `id` with which a list, newest first, begins before every row.
const FIRST_PAGE: (i64, &str) = (i64::MAX, "~");

/// The position of a page as parameters.
pub(crate) fn page_args(after: Option<&PageStart>) -> (i64, &str) {
    after.map_or(FIRST_PAGE, |after| (after.at, after.id.as_str()))
}
