//! The table of figures that the bench prints.

/// Figures in the order in which they were measured.
#[derive(Default)]
pub(super) struct Table(Vec<Line>);

struct Line {
    what: String,
    measured: String,
    target: String,
    meets_target: Option<bool>,
}

impl Table {
    /// Adds a figure without a target.
    pub(super) fn note(&mut self, what: impl Into<String>, measured: impl Into<String>) {
        self.0.push(Line {
            what: what.into(),
            measured: measured.into(),
            target: String::new(),
            meets_target: None,
        });
        self.print_last_line();
    }

    /// Adds a figure that must not be below `target`.
    pub(super) fn at_least(&mut self, what: &str, target: f64, measured: f64) {
        self.add_with_target(
            what,
            format!(">= {}", format_short(target)),
            measured,
            measured >= target,
        );
    }

    /// Adds a figure that must not exceed `target`.
    pub(super) fn at_most(&mut self, what: &str, target: f64, measured: f64) {
        self.add_with_target(
            what,
            format!("<= {}", format_short(target)),
            measured,
            measured <= target,
        );
    }

    /// Adds the median, the 99th percentile and the maximum of times in milliseconds. The 99th percentile must not exceed `target`.
    pub(super) fn at_most_ms(&mut self, what: &str, target: f64, [median, p99, longest]: [f64; 3]) {
        self.0.push(Line {
            what: format!("{what}, ms: median, 99 %, longest"),
            measured: format!(
                "{} {} {}",
                format_short(median),
                format_short(p99),
                format_short(longest)
            ),
            target: format!("<= {}", format_short(target)),
            meets_target: Some(p99 <= target),
        });
        self.print_last_line();
    }

    /// The number of figures that miss their target.
    pub(super) fn missed_count(&self) -> usize {
        self.0
            .iter()
            .filter(|line| line.meets_target == Some(false))
            .count()
    }

    /// Prints the table to stdout.
    pub(super) fn print(&self) {
        let width = self.0.iter().map(|line| line.what.len()).max().unwrap_or(0);
        println!("{:<width$}  {:>14}  {:>10}", "figure", "measured", "target");
        for line in &self.0 {
            let label = match line.meets_target {
                Some(true) => "ok",
                Some(false) => "missed",
                None => "",
            };
            let row = format!(
                "{:<width$}  {:>14}  {:>10}  {label}",
                line.what, line.measured, line.target
            );
            println!("{}", row.trim_end());
        }
    }

    fn add_with_target(&mut self, what: &str, target: String, measured: f64, meets_target: bool) {
        self.0.push(Line {
            what: what.to_owned(),
            measured: format_short(measured),
            target,
            meets_target: Some(meets_target),
        });
        self.print_last_line();
    }

    /// Prints the last line at once, because a bench takes minutes.
    fn print_last_line(&self) {
        if let Some(line) = self.0.last() {
            eprintln!("  {}: {}", line.what, line.measured);
        }
    }
}

/// Formats a value with three digits: measurements on a shared machine are not more precise.
fn format_short(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.3}"),
    }
}

/// Bytes in MiB.
#[expect(clippy::cast_precision_loss, reason = "for people")]
pub(super) fn mib(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_below_their_target_are_counted() {
        let mut table = Table::default();
        table.at_least("a", 0.6, 0.61);
        table.at_least("b", 0.6, 0.59);
        table.at_most("c", 40.0, 41.0);
        table.note("d", "free");
        assert_eq!(table.missed_count(), 2);
        assert_eq!(format_short(0.61), "0.610");
        assert_eq!(format_short(12_345.6), "12346");
    }
}
