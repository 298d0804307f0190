//! Writes the text format of OpenMetrics 1.0 (<https://prometheus.io/docs/specs/om/open_metrics_spec/>). It differs from Prometheus's format: the
//! families of counters are named without `_total`, bounds are floats, and buckets have exemplars. The crate `prometheus` has encoders only for
//! Prometheus's text format and for protobuf, and both write no exemplars.

use std::fmt::Write as _;
use std::time::UNIX_EPOCH;

use prometheus::proto::{Histogram, LabelPair, MetricFamily, MetricType};

use super::exemplars::{Exemplar, Exemplars};

/// The metrics as text.
pub(super) fn write(families: &[MetricFamily], exemplars: &Exemplars) -> String {
    let mut text = String::with_capacity(64 * 1024);
    for family in families {
        write_family(&mut text, family, exemplars);
    }
    text.push_str("# EOF\n");
    text
}

fn write_family(text: &mut String, family: &MetricFamily, exemplars: &Exemplars) {
    let (kind, name) = match family.get_field_type() {
        MetricType::COUNTER => ("counter", family.name().trim_end_matches("_total")),
        MetricType::GAUGE => ("gauge", family.name()),
        MetricType::HISTOGRAM => ("histogram", family.name()),
        // The gateway has no metrics of these types.
        MetricType::SUMMARY | MetricType::UNTYPED => return,
    };
    line(
        text,
        format_args!("# HELP {name} {}", Escaped(family.help())),
    );
    line(text, format_args!("# TYPE {name} {kind}"));
    for metric in family.get_metric() {
        let labels = metric.get_label();
        let own = Labels(labels, None);
        match family.get_field_type() {
            MetricType::COUNTER => {
                let value = metric.get_counter().get_value();
                line(text, format_args!("{name}_total{own} {value}"));
            }
            MetricType::HISTOGRAM => {
                let exemplars = exemplars.for_series(family.name(), labels);
                write_histogram(text, name, metric.get_histogram(), labels, exemplars);
            }
            _ => {
                let value = metric.get_gauge().get_value();
                line(text, format_args!("{name}{own} {value}"));
            }
        }
    }
}

fn write_histogram(
    text: &mut String,
    name: &str,
    histogram: &Histogram,
    labels: &[LabelPair],
    exemplars: &[Option<Exemplar>],
) {
    let count = histogram.get_sample_count();
    let bounds = histogram.get_bucket().iter();
    let finite = bounds.filter(|bucket| bucket.upper_bound().is_finite());
    let finite = finite.map(|bucket| (bucket.upper_bound(), bucket.cumulative_count()));
    let mut exemplars = exemplars.iter();
    for (bound, below) in finite.chain([(f64::INFINITY, count)]) {
        let bound = canonical(bound);
        let labels = Labels(labels, Some(&bound));
        let exemplar = exemplars.next().copied().flatten();
        let exemplar = exemplar.map_or_else(String::new, exemplar_text);
        line(
            text,
            format_args!("{name}_bucket{labels} {below}{exemplar}"),
        );
    }
    let own = Labels(labels, None);
    line(text, format_args!("{name}_count{own} {count}"));
    let sum = histogram.get_sample_sum();
    line(text, format_args!("{name}_sum{own} {sum}"));
}

/// The exemplar after the value of a bucket.
fn exemplar_text(exemplar: Exemplar) -> String {
    let since = exemplar.at.duration_since(UNIX_EPOCH).unwrap_or_default();
    format!(
        " # {{trace_id=\"{}\",span_id=\"{}\"}} {} {:.3}",
        exemplar.span.trace_hex(),
        exemplar.span.span_hex(),
        exemplar.value,
        since.as_secs_f64()
    )
}

/// A bound in the canonical form of OpenMetrics, so that the label is the same in all programs: `0.5`, `1.0`, `1e+06`, `+Inf`.
fn canonical(bound: f64) -> String {
    if bound.is_infinite() {
        return "+Inf".to_owned();
    }
    if bound < 1e6 {
        return format!("{bound:?}");
    }
    let text = format!("{bound:e}");
    match text.split_once('e') {
        Some((digits, exponent)) => format!("{digits}e+{exponent:0>2}"),
        None => text,
    }
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
    let _ = writeln!(text, "{line}");
}

/// Writes labels in braces, with `le` if there is a bound. Writes nothing if there are neither.
struct Labels<'a>(&'a [LabelPair], Option<&'a str>);

impl std::fmt::Display for Labels<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let own = self.0.iter().map(|label| (label.name(), label.value()));
        let pairs = own.chain(self.1.map(|bound| ("le", bound)));
        let mut before = "{";
        for (name, value) in pairs {
            write!(f, "{before}{name}=\"{}\"", Escaped(value))?;
            before = ",";
        }
        f.write_str(if before == "," { "}" } else { "" })
    }
}

/// Escapes a text for a quoted string or a single line.
struct Escaped<'a>(&'a str);

impl std::fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.chars().try_for_each(|c| match c {
            '\\' => f.write_str("\\\\"),
            '\n' => f.write_str("\\n"),
            '"' => f.write_str("\\\""),
            c => f.write_char(c),
        })
    }
}

#[cfg(test)]
mod tests {
    use prometheus::{Gauge, IntCounterVec, Opts, Registry};

    use super::super::exemplars::{ExemplarStore, LinkedHistograms};
    use super::*;
    use crate::otel::context::SpanContext;

    #[test]
    fn counters_gauges_and_histograms_are_written_as_open_metrics_requires() {
        let (registry, store) = (Registry::new(), ExemplarStore::default());
        let counters =
            IntCounterVec::new(Opts::new("b_total", "A \"count\"\\"), &["name"]).unwrap();
        counters.with_label_values(&["a\"b\\c\nd"]).inc_by(3);
        registry.register(Box::new(counters)).unwrap();
        let gauge = Gauge::with_opts(Opts::new("c_info", "A level").const_label("v", "1")).unwrap();
        gauge.set(-0.5);
        registry.register(Box::new(gauge)).unwrap();
        let bounds: &[f64] = &[0.5, 1.0, 4_194_304.0];
        let histograms =
            LinkedHistograms::new(&registry, &store, ("a_tokens", "Sizes"), &["kind"], bounds);
        let span = SpanContext {
            trace_id: [0xab; 16],
            span_id: [0x0c; 8],
        };
        histograms.observe(&["x"], 0.25, None);
        histograms.observe(&["x"], 0.75, Some(span));
        let text = write(&registry.gather(), &store.snapshot());
        let (exemplars, families) = (store.snapshot(), registry.gather());
        let of_family = exemplars.for_series("a_tokens", families[0].get_metric()[0].get_label());
        let at = of_family[1].unwrap().at.duration_since(UNIX_EPOCH).unwrap();
        let expected = format!(
            "# HELP a_tokens Sizes\n# TYPE a_tokens histogram\n\
             a_tokens_bucket{{kind=\"x\",le=\"0.5\"}} 1\n\
             a_tokens_bucket{{kind=\"x\",le=\"1.0\"}} 2 # {{trace_id=\"{}\",span_id=\"{}\"}} 0.75 {:.3}\n\
             a_tokens_bucket{{kind=\"x\",le=\"4.194304e+06\"}} 2\n\
             a_tokens_bucket{{kind=\"x\",le=\"+Inf\"}} 2\n\
             a_tokens_count{{kind=\"x\"}} 2\na_tokens_sum{{kind=\"x\"}} 1\n\
             # HELP b A \\\"count\\\"\\\\\n# TYPE b counter\nb_total{{name=\"a\\\"b\\\\c\\nd\"}} 3\n\
             # HELP c_info A level\n# TYPE c_info gauge\nc_info{{v=\"1\"}} -0.5\n# EOF\n",
            "ab".repeat(16),
            "0c".repeat(8),
            at.as_secs_f64(),
        );
        assert_eq!(text, expected);
    }
}
