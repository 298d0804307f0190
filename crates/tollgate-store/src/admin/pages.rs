//! Positions in lists that are read one page at a time, newest first.

use tollgate_core::Millis;

/// The position after which the next page of a list begins: the time and id of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageStart {
    /// The row's time.
    pub at: Millis,
    /// The row's id.
    pub id: String,
}

/// Values of `at` and `id` that precede every row of a list, newest first.
const FIRST_PAGE: (i64, &str) = (i64::MAX, "~");

/// The position of a page as parameters of a statement.
pub(crate) fn page_args(after: Option<&PageStart>) -> (i64, &str) {
    after.map_or(FIRST_PAGE, |after| (after.at, after.id.as_str()))
}
