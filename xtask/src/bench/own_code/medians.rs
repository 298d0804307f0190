//! Processor time, and the figures of pieces of code that are measured in turn.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use super::super::table::Table;

/// The processor time that this process has used so far, user and system, on all threads.
pub(super) fn cpu_time() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// Adds the median of each list of `samples` to the table, and its ratio to the first, which is that of own code.
pub(super) fn add_medians<const N: usize>(
    what: &str,
    names: [&str; N],
    samples: [Vec<f64>; N],
    table: &mut Table,
) {
    let mut first = None;
    for (name, mut sorted) in names.into_iter().zip(samples) {
        sorted.sort_by(f64::total_cmp);
        let median = sorted[sorted.len() / 2];
        let ratio = median / *first.get_or_insert(median);
        table.note(
            format!("{what}: {name}"),
            format!("{median:.1} ({ratio:.2})"),
        );
    }
}
