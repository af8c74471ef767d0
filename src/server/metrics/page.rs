//! A page of metrics in the text format of `OpenMetrics`, which Prometheus reads.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::histogram::Counted;

/// What it is sent as.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Before every name of ours.
const PREFIX: &str = "simpletuner_";

/// A family of metrics: a name, what it says, and its values by their labels.
#[derive(Debug)]
struct Family {
    name: String,
    help: &'static str,
    values: Values,
}

#[derive(Debug)]
enum Values {
    Gauges(Vec<(Labels, f64)>),
    Counters(Vec<(Labels, u64)>),
    Histograms(Vec<(Labels, Counted)>),
}

/// Names and values.
pub type Labels = Vec<(&'static str, String)>;

/// See the module.
#[derive(Debug, Default)]
pub struct Page(Vec<Family>);

impl Page {
    /// Numbers that go up and down.
    pub fn gauges(&mut self, name: &str, help: &'static str, values: impl IntoIterator<Item = (Labels, f64)>) {
        self.add(name, help, Values::Gauges(values.into_iter().collect()));
    }

    /// A number that goes up and down.
    pub fn gauge(&mut self, name: &str, help: &'static str, value: f64) {
        self.gauges(name, help, [(Vec::new(), value)]);
    }

    /// Numbers that only grow; `_total` is added to the name.
    pub fn counters(&mut self, name: &str, help: &'static str, values: impl IntoIterator<Item = (Labels, u64)>) {
        self.add(name, help, Values::Counters(values.into_iter().collect()));
    }

    /// Distributions.
    pub fn histograms(&mut self, name: &str, help: &'static str, values: impl IntoIterator<Item = (Labels, Counted)>) {
        self.add(name, help, Values::Histograms(values.into_iter().collect()));
    }

    /// A distribution.
    pub fn histogram(&mut self, name: &str, help: &'static str, value: Counted) {
        self.histograms(name, help, [(Vec::new(), value)]);
    }

    fn add(&mut self, name: &str, help: &'static str, values: Values) {
        // Names about the process are everybody's.
        let prefix = if name.starts_with("process_") { "" } else { PREFIX };
        self.0.push(Family { name: format!("{prefix}{name}"), help, values });
    }

    /// The text.
    pub fn text(self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut page = String::new();
        text::encode(&mut page, &registry).expect("a string takes everything");
        page
    }
}

impl Collector for Page {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.0.iter().try_for_each(|family| family.encode(&mut encoder))
    }
}

impl Family {
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let kind = match self.values {
            Values::Gauges(_) => MetricType::Gauge,
            Values::Counters(_) => MetricType::Counter,
            Values::Histograms(_) => MetricType::Histogram,
        };
        let mut metric = encoder.encode_descriptor(&self.name, self.help, None, kind)?;
        match &self.values {
            Values::Gauges(values) => each(&mut metric, values, |metric, &value| metric.encode_gauge(&value)),
            Values::Counters(values) => {
                each(&mut metric, values, |metric, value| metric.encode_counter::<NoLabelSet, u64, u64>(value, None))
            }
            Values::Histograms(values) => each(&mut metric, values, |metric, Counted { sum, count, buckets }| {
                metric.encode_histogram::<NoLabelSet>(*sum, *count, buckets, None)
            }),
        }
    }
}

fn each<V>(
    metric: &mut MetricEncoder<'_>,
    values: &[(Labels, V)],
    mut encode: impl FnMut(&mut MetricEncoder<'_>, &V) -> Result<(), fmt::Error>,
) -> Result<(), fmt::Error> {
    for (labels, value) in values {
        if labels.is_empty() {
            encode(metric, value)?;
        } else {
            encode(&mut metric.encode_family(labels)?, value)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_reads_as_the_format_says() {
        let mut page = Page::default();
        page.gauges("workers", "Workers by state.", [(vec![("state", "idle".to_owned())], 2.0)]);
        page.counters("x", "How often.", [(vec![("what", "a\"b\\c\nd".to_owned())], 3)]);
        let counted = Counted { sum: 1.5, count: 2, buckets: vec![(1.0, 1), (f64::INFINITY, 1)] };
        page.histogram("took_seconds", "How long.", counted);
        let expected = "# HELP simpletuner_workers Workers by state.\n# TYPE simpletuner_workers gauge\n\
            simpletuner_workers{state=\"idle\"} 2.0\n\
            # HELP simpletuner_x How often.\n# TYPE simpletuner_x counter\n\
            simpletuner_x_total{what=\"a\\\"b\\\\c\\nd\"} 3\n\
            # HELP simpletuner_took_seconds How long.\n# TYPE simpletuner_took_seconds histogram\n\
            simpletuner_took_seconds_sum 1.5\nsimpletuner_took_seconds_count 2\n\
            simpletuner_took_seconds_bucket{le=\"1.0\"} 1\nsimpletuner_took_seconds_bucket{le=\"+Inf\"} 2\n# EOF\n";
        assert_eq!(page.text(), expected);
    }
}
