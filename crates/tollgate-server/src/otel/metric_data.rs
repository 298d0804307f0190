//! Converts the metrics of `/metrics` to OTLP: the same counts with the same names, so that dashboards of both show the same. Only durations of
//! providers and tokens of single chats have the names and attributes of OpenTelemetry's conventions for generative models.

use std::collections::HashMap;

use prometheus::proto::{LabelPair, Metric as Source, MetricFamily, MetricType};

use super::metrics_proto::{
    Data, Exemplar, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum,
};
use super::proto::{KeyValue, Value};
use super::semconv;
use super::span::{key_value, nanos};
use crate::metrics::{self, Exemplars, FIRST_TOKEN_SECONDS, PROVIDER_SECONDS, REQUEST_TOKENS};

/// OTLP's number for counts since the start of the process.
const CUMULATIVE: i32 = 2;

/// The values that all points of one message share.
pub(super) struct Points<'a> {
    /// When the counts began, in nanoseconds since 1970.
    pub(super) started: u64,
    /// When the points were read, in nanoseconds since 1970.
    pub(super) now: u64,
    /// The exemplars of histograms.
    pub(super) exemplars: &'a Exemplars,
    /// The kinds of providers by the names of their channels.
    pub(super) providers: &'a HashMap<String, String>,
}

impl Points<'_> {
    /// A metric with all its points. `None` for a kind of metric that the gateway does not have.
    pub(super) fn metric(&self, family: &MetricFamily) -> Option<Metric> {
        let conventional_name = conventional_name(family.name());
        let attributes = |labels: &[LabelPair]| match conventional_name {
            Some(_) => self.conventional_attributes(labels),
            None => labels
                .iter()
                .map(|label| key_value((label.name(), label.value().into())))
                .collect(),
        };
        let points = family.get_metric().iter();
        let number = |value: fn(&Source) -> f64| {
            move |point: &Source| self.number(value(point), attributes(point.get_label()))
        };
        let data = match family.get_field_type() {
            MetricType::COUNTER => Data::Sum(Sum {
                data_points: points
                    .map(number(|point| point.get_counter().get_value()))
                    .collect(),
                aggregation_temporality: CUMULATIVE,
                is_monotonic: true,
            }),
            MetricType::GAUGE => Data::Gauge(Gauge {
                data_points: points
                    .map(number(|point| point.get_gauge().get_value()))
                    .collect(),
            }),
            MetricType::HISTOGRAM => Data::Histogram(Histogram {
                data_points: points
                    .map(|point| HistogramDataPoint {
                        attributes: attributes(point.get_label()),
                        exemplars: self.exemplars(family.name(), point.get_label()),
                        ..self.histogram(point)
                    })
                    .collect(),
                aggregation_temporality: CUMULATIVE,
            }),
            MetricType::SUMMARY | MetricType::UNTYPED => return None,
        };
        Some(Metric {
            name: conventional_name.unwrap_or(family.name()).to_owned(),
            description: family.help().to_owned(),
            unit: unit(family.name()).to_owned(),
            data: Some(data),
        })
    }

    fn number(&self, value: f64, attributes: Vec<KeyValue>) -> NumberDataPoint {
        NumberDataPoint {
            start_time_unix_nano: self.started,
            time_unix_nano: self.now,
            as_double: Some(value),
            attributes,
        }
    }

    /// A point without attributes and exemplars.
    fn histogram(&self, point: &Source) -> HistogramDataPoint {
        let histogram = point.get_histogram();
        let buckets = histogram.get_bucket().iter();
        let finite = buckets.filter(|bucket| bucket.upper_bound().is_finite());
        let (mut explicit_bounds, mut bucket_counts, mut below) = (Vec::new(), Vec::new(), 0);
        for bucket in finite {
            explicit_bounds.push(bucket.upper_bound());
            bucket_counts.push(bucket.cumulative_count().saturating_sub(below));
            below = bucket.cumulative_count();
        }
        let count = histogram.get_sample_count();
        bucket_counts.push(count.saturating_sub(below));
        HistogramDataPoint {
            start_time_unix_nano: self.started,
            time_unix_nano: self.now,
            count,
            sum: Some(histogram.get_sample_sum()),
            bucket_counts,
            explicit_bounds,
            ..HistogramDataPoint::default()
        }
    }

    fn exemplars(&self, name: &str, labels: &[LabelPair]) -> Vec<Exemplar> {
        let exemplar = |found: &metrics::Exemplar| Exemplar {
            time_unix_nano: nanos(found.at),
            as_double: Some(found.value),
            span_id: found.span.span_id.to_vec(),
            trace_id: found.span.trace_id.to_vec(),
        };
        let found = self.exemplars.for_series(name, labels).iter().flatten();
        found.map(exemplar).collect()
    }

    /// The attributes that the conventions define for these labels. Without the label `kind`, they are those of a chat.
    fn conventional_attributes(&self, labels: &[LabelPair]) -> Vec<KeyValue> {
        let kind = labels.iter().find(|label| label.name() == "kind");
        let kind = kind.map_or("chat", LabelPair::value);
        let mut attributes: Vec<(&str, Value)> = match kind {
            "chat" => vec![(semconv::OPERATION_NAME, semconv::CHAT.into())],
            output => vec![
                (semconv::OPERATION_NAME, semconv::GENERATE_CONTENT.into()),
                (semconv::OUTPUT_TYPE, output.into()),
            ],
        };
        for label in labels {
            match (label.name(), label.value()) {
                ("channel", channel) => {
                    attributes.push((semconv::CHANNEL, channel.into()));
                    // If the channel was deleted, its provider is unknown.
                    let provider = self.providers.get(channel).map(String::as_str);
                    let provider = provider.map_or(semconv::OTHER_PROVIDER, semconv::provider);
                    attributes.push((semconv::provider_attribute(), provider.into()));
                }
                ("model", model) => attributes.push((semconv::REQUEST_MODEL, model.into())),
                ("direction", direction) => {
                    attributes.push((semconv::TOKEN_TYPE, direction.into()))
                }
                _ => {}
            }
        }
        attributes.into_iter().map(key_value).collect()
    }
}

/// The name in OpenTelemetry's conventions for a metric. `None` if they define none.
fn conventional_name(name: &str) -> Option<&'static str> {
    match name {
        PROVIDER_SECONDS => Some(semconv::OPERATION_DURATION),
        FIRST_TOKEN_SECONDS => Some(semconv::time_to_first_token()),
        REQUEST_TOKENS => Some(semconv::TOKEN_USAGE),
        _ => None,
    }
}

/// The unit at the end of a Prometheus name, as OTLP writes it (UCUM).
fn unit(name: &str) -> &'static str {
    let name = name.strip_suffix("_total").unwrap_or(name);
    match name.rsplit('_').next() {
        Some("seconds") => "s",
        Some("bytes") => "By",
        Some("tokens") => "{token}",
        _ => "",
    }
}
