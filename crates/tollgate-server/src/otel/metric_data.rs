//! The metrics of `/metrics` in the form of OTLP: the same counts under the same names, so that dashboards of both agree. Only times of providers have
//! the name and attributes of OpenTelemetry's conventions for generative models.

use std::collections::HashMap;

use prometheus::proto::{LabelPair, Metric as Source, MetricFamily, MetricType};

use super::metrics_proto::{
    Data, Gauge, Histogram, HistogramDataPoint, Metric, NumberDataPoint, Sum,
};
use super::proto::{KeyValue, Value};
use super::semconv;
use super::span::key_value;
use crate::metrics::PROVIDER_SECONDS;

/// OTLP's number of counts since the start of the process.
const CUMULATIVE: i32 = 2;

/// What the points of one message have in common.
pub(super) struct Points<'a> {
    /// When counting began, in nanoseconds since 1970.
    pub(super) started: u64,
    /// When the points were read, in nanoseconds since 1970.
    pub(super) now: u64,
    /// The kinds of providers by the names of their channels.
    pub(super) providers: &'a HashMap<String, String>,
}

impl Points<'_> {
    /// A metric with all its points. `None` for a kind of metric that the gateway does not have.
    pub(super) fn metric(&self, family: &MetricFamily) -> Option<Metric> {
        let is_provider_time = family.name() == PROVIDER_SECONDS;
        let attributes = |labels: &[LabelPair]| match is_provider_time {
            true => self.provider_attributes(labels),
            false => labels
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
                    .map(|point| self.histogram(point, attributes(point.get_label())))
                    .collect(),
                aggregation_temporality: CUMULATIVE,
            }),
            MetricType::SUMMARY | MetricType::UNTYPED => return None,
        };
        let name = match is_provider_time {
            true => semconv::OPERATION_DURATION,
            false => family.name(),
        };
        Some(Metric {
            name: name.to_owned(),
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

    fn histogram(&self, point: &Source, attributes: Vec<KeyValue>) -> HistogramDataPoint {
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
            attributes,
        }
    }

    /// The attributes of a provider's time: its labels are the channel, and the kind of request.
    fn provider_attributes(&self, labels: &[LabelPair]) -> Vec<KeyValue> {
        let mut attributes: Vec<(&str, Value)> = Vec::new();
        for label in labels {
            match (label.name(), label.value()) {
                ("kind", "chat") => {
                    attributes.push((semconv::OPERATION_NAME, semconv::CHAT.into()));
                }
                ("kind", output) => attributes.extend([
                    (
                        semconv::OPERATION_NAME,
                        Value::from(semconv::GENERATE_CONTENT),
                    ),
                    (semconv::OUTPUT_TYPE, output.into()),
                ]),
                (_, channel) => {
                    attributes.push((semconv::CHANNEL, channel.into()));
                    // A channel that was deleted has no provider any more.
                    let provider = self.providers.get(channel).map(String::as_str);
                    let provider = provider.unwrap_or(semconv::OTHER_PROVIDER);
                    attributes.push((semconv::provider_attribute(), provider.into()));
                }
            }
        }
        attributes.into_iter().map(key_value).collect()
    }
}

/// The unit that a name of Prometheus ends with, as OTLP writes it (UCUM).
fn unit(name: &str) -> &'static str {
    let name = name.strip_suffix("_total").unwrap_or(name);
    match name.rsplit('_').next() {
        Some("seconds") => "s",
        Some("bytes") => "By",
        _ => "",
    }
}
