//! Exemplars: for each bucket of a histogram, the trace of one of its values. Only values of sampled requests have one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use prometheus::proto::LabelPair;
use prometheus::{Histogram, HistogramOpts, HistogramVec, Registry};

use super::register::register;
use crate::otel::context::SpanContext;

/// A value of a histogram, and the span in which it was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Exemplar {
    /// The value, in the histogram's unit.
    pub value: f64,
    /// When it was measured.
    pub at: SystemTime,
    /// The span in which it was measured.
    pub span: SpanContext,
}

/// The latest exemplar of each bucket of one series, the bucket without a bound last. Empty before the first.
type BucketExemplars = Vec<Option<Exemplar>>;

/// The exemplars of one series.
type Series = Arc<Mutex<BucketExemplars>>;

/// The exemplars of every series by [`series_key`]; clones share them.
#[derive(Clone, Default)]
pub(super) struct ExemplarStore(Arc<Mutex<HashMap<String, Series>>>);

impl ExemplarStore {
    fn series(&self, key: String) -> Series {
        let mut series = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(series.entry(key).or_default())
    }

    /// A copy of all exemplars.
    pub(super) fn snapshot(&self) -> Exemplars {
        let series = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let buckets = series.iter().map(|(key, buckets)| {
            let buckets = buckets.lock().unwrap_or_else(PoisonError::into_inner);
            (key.clone(), buckets.clone())
        });
        Exemplars(buckets.filter(|(_, found)| !found.is_empty()).collect())
    }
}

/// The exemplars at one moment.
#[derive(Debug, Default)]
pub struct Exemplars(HashMap<String, BucketExemplars>);

impl Exemplars {
    /// The exemplars of the series of the histogram `name` with `labels`, in the order of its buckets; empty if it has none.
    pub fn for_series(&self, name: &str, labels: &[LabelPair]) -> &[Option<Exemplar>] {
        let labels = labels.iter().map(|label| (label.name(), label.value()));
        let found = self.0.get(&series_key(name, labels.collect()));
        found.map_or(&[], Vec::as_slice)
    }
}

/// A key for a series: the name of its metric and its labels, which may be in any order.
fn series_key(name: &str, mut labels: Vec<(&str, &str)>) -> String {
    labels.sort_unstable();
    let mut key = name.to_owned();
    for (name, value) in labels {
        // No label's value contains this character; otherwise values could not be separated from names.
        key.extend(["\u{1f}", name, "\u{1f}", value]);
    }
    key
}

/// One series of a histogram, with exemplars.
#[derive(Clone)]
pub(super) struct LinkedHistogram {
    histogram: Histogram,
    bounds: &'static [f64],
    exemplars: Series,
}

impl LinkedHistogram {
    /// The series of the histogram `name` with the constant `labels`, in `registry`.
    pub(super) fn new(
        registry: &Registry,
        store: &ExemplarStore,
        (name, help): (&str, &str),
        labels: &[(&str, &str)],
        bounds: &'static [f64],
    ) -> Self {
        let mut opts = HistogramOpts::new(name, help).buckets(bounds.to_vec());
        for (label, value) in labels {
            opts = opts.const_label(*label, *value);
        }
        let histogram = Histogram::with_opts(opts).expect("a valid name");
        Self {
            histogram: register(registry, histogram),
            bounds,
            exemplars: store.series(series_key(name, labels.to_vec())),
        }
    }

    /// Counts a value. `span` is the span in which it was measured; `None` outside of sampled traces.
    pub(super) fn observe(&self, value: f64, span: Option<SpanContext>) {
        self.histogram.observe(value);
        let Some(span) = span else { return };
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        let mut buckets = self
            .exemplars
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        // The memory for exemplars is allocated at the first one.
        buckets.resize(self.bounds.len() + 1, None);
        buckets[bucket] = Some(Exemplar {
            value,
            at: SystemTime::now(),
            span,
        });
    }
}

/// A histogram with labels, with exemplars.
#[derive(Clone)]
pub(super) struct LinkedHistograms {
    name: &'static str,
    labels: &'static [&'static str],
    bounds: &'static [f64],
    histograms: HistogramVec,
    store: ExemplarStore,
}

impl LinkedHistograms {
    /// The histogram `name`, in `registry`; `bounds` are the upper bounds of its buckets.
    pub(super) fn new(
        registry: &Registry,
        store: &ExemplarStore,
        (name, help): (&'static str, &str),
        labels: &'static [&'static str],
        bounds: &'static [f64],
    ) -> Self {
        let opts = HistogramOpts::new(name, help).buckets(bounds.to_vec());
        let histograms = HistogramVec::new(opts, labels).expect("a valid name");
        Self {
            name,
            labels,
            bounds,
            histograms: register(registry, histograms),
            store: store.clone(),
        }
    }

    /// The series with these values of the labels.
    pub(super) fn series(&self, values: &[&str]) -> LinkedHistogram {
        let labels = self.labels.iter().copied().zip(values.iter().copied());
        LinkedHistogram {
            histogram: self.histograms.with_label_values(values),
            bounds: self.bounds,
            exemplars: self.store.series(series_key(self.name, labels.collect())),
        }
    }

    /// Counts a value in the series with these values of the labels, as [`LinkedHistogram::observe`] does.
    pub(super) fn observe(&self, values: &[&str], value: f64, span: Option<SpanContext>) {
        match span {
            None => self.histograms.with_label_values(values).observe(value),
            Some(_) => self.series(values).observe(value, span),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPAN: SpanContext = SpanContext {
        trace_id: [7; 16],
        span_id: [8; 8],
    };

    #[test]
    fn the_last_value_of_a_sampled_request_is_its_buckets_exemplar() {
        let (registry, store) = (Registry::new(), ExemplarStore::default());
        let texts = ("seconds", "A time");
        let histograms = LinkedHistograms::new(&registry, &store, texts, &["b", "a"], &[1.0, 2.0]);
        histograms.observe(&["x", "y"], 0.5, None);
        histograms.observe(&["x", "z"], 0.5, None);
        assert!(store.snapshot().0.is_empty());
        for value in [1.0, 0.25, 3.0, 2.5] {
            histograms.observe(&["x", "y"], value, Some(SPAN));
        }
        let families = registry.gather();
        let exemplars = store.snapshot();
        let of =
            |at: usize| exemplars.for_series("seconds", families[0].get_metric()[at].get_label());
        let values: Vec<_> = of(0).iter().map(|found| found.map(|e| e.value)).collect();
        assert_eq!(values, [Some(0.25), None, Some(2.5)]);
        assert!(of(1).is_empty());
        assert_eq!(of(0)[0].unwrap().span, SPAN);
    }
}
