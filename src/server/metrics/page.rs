//! A page of metrics in the `OpenMetrics` text format, or in Prometheus's older one.

use std::collections::BTreeSet;
use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::histogram::HistogramSnapshot;

/// The content type.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The content type of the older format.
pub const PLAIN_CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The prefix of our metric names.
const PREFIX: &str = "simpletuner_";

/// A metric family: name, help, and values by labels.
#[derive(Debug)]
struct Family {
    name: String,
    help: &'static str,
    values: FamilyValues,
}

#[derive(Debug)]
enum FamilyValues {
    Gauges(Vec<(MetricLabels, f64)>),
    Counters(Vec<(MetricLabels, u64)>),
    Histograms(Vec<(MetricLabels, HistogramSnapshot)>),
}

/// Label names and values.
pub type MetricLabels = Vec<(&'static str, String)>;

#[derive(Debug, Default)]
pub struct MetricsPage(Vec<Family>);

impl MetricsPage {
    /// Adds a family of gauges.
    pub fn gauges(&mut self, name: &str, help: &'static str, values: impl IntoIterator<Item = (MetricLabels, f64)>) {
        self.add(name, help, FamilyValues::Gauges(values.into_iter().collect()));
    }

    /// Adds a gauge.
    pub fn gauge(&mut self, name: &str, help: &'static str, value: f64) {
        self.gauges(name, help, [(Vec::new(), value)]);
    }

    /// Adds a family of counters; `_total` is added to the name.
    pub fn counters(&mut self, name: &str, help: &'static str, values: impl IntoIterator<Item = (MetricLabels, u64)>) {
        self.add(name, help, FamilyValues::Counters(values.into_iter().collect()));
    }

    /// Adds a family of histograms.
    pub fn histograms(
        &mut self,
        name: &str,
        help: &'static str,
        values: impl IntoIterator<Item = (MetricLabels, HistogramSnapshot)>,
    ) {
        self.add(name, help, FamilyValues::Histograms(values.into_iter().collect()));
    }

    /// Adds a histogram.
    pub fn histogram(&mut self, name: &str, help: &'static str, value: HistogramSnapshot) {
        self.histograms(name, help, [(Vec::new(), value)]);
    }

    fn add(&mut self, name: &str, help: &'static str, values: FamilyValues) {
        // `process_` names are standard, without our prefix.
        let prefix = if name.starts_with("process_") { "" } else { PREFIX };
        self.0.push(Family { name: format!("{prefix}{name}"), help, values });
    }

    /// Renders the page.
    pub fn render(self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut page = String::new();
        text::encode(&mut page, &registry).expect("writing to a string never fails");
        page
    }

    /// Renders the older format: the family of a counter has the whole name, and there is no end marker.
    pub fn render_plain(self) -> String {
        let counters = self.0.iter().filter(|family| matches!(family.values, FamilyValues::Counters(_)));
        let counters: BTreeSet<_> = counters.map(|family| family.name.clone()).collect();
        let to_plain = |line: &str| {
            let is_comment = line.starts_with("# HELP ") || line.starts_with("# TYPE ");
            match line.splitn(4, ' ').collect::<Vec<_>>()[..] {
                [mark, keyword, name, rest] if is_comment && counters.contains(name) => {
                    format!("{mark} {keyword} {name}_total {rest}\n")
                }
                _ => format!("{line}\n"),
            }
        };
        self.render().lines().filter(|line| *line != "# EOF").map(to_plain).collect()
    }
}

impl Collector for MetricsPage {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.0.iter().try_for_each(|family| family.encode(&mut encoder))
    }
}

impl Family {
    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let kind = match self.values {
            FamilyValues::Gauges(_) => MetricType::Gauge,
            FamilyValues::Counters(_) => MetricType::Counter,
            FamilyValues::Histograms(_) => MetricType::Histogram,
        };
        let mut metric = encoder.encode_descriptor(&self.name, self.help, None, kind)?;
        match &self.values {
            FamilyValues::Gauges(values) => {
                encode_each(&mut metric, values, |metric, &value| metric.encode_gauge(&value))
            }
            FamilyValues::Counters(values) => encode_each(&mut metric, values, |metric, value| {
                metric.encode_counter::<NoLabelSet, u64, u64>(value, None)
            }),
            FamilyValues::Histograms(values) => {
                encode_each(&mut metric, values, |metric, HistogramSnapshot { sum, count, buckets }| {
                    metric.encode_histogram::<NoLabelSet>(*sum, *count, buckets, None)
                })
            }
        }
    }
}

fn encode_each<V>(
    metric: &mut MetricEncoder<'_>,
    values: &[(MetricLabels, V)],
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
    fn older_format_names_counters_with_total() {
        let mut page = MetricsPage::default();
        page.gauge("x_total_size", "How large.", 1.0);
        page.counters("x", "How often.", [(Vec::new(), 3)]);
        let expected = "# HELP simpletuner_x_total_size How large.\n# TYPE simpletuner_x_total_size gauge\n\
            simpletuner_x_total_size 1.0\n\
            # HELP simpletuner_x_total How often.\n# TYPE simpletuner_x_total counter\nsimpletuner_x_total 3\n";
        assert_eq!(page.render_plain(), expected);
    }

    #[test]
    fn page_follows_the_openmetrics_format() {
        let mut page = MetricsPage::default();
        page.gauges("workers", "Workers by state.", [(vec![("state", "idle".to_owned())], 2.0)]);
        page.counters("x", "How often.", [(vec![("what", "a\"b\\c\nd".to_owned())], 3)]);
        let counted = HistogramSnapshot { sum: 1.5, count: 2, buckets: vec![(1.0, 1), (f64::INFINITY, 1)] };
        page.histogram("took_seconds", "How long.", counted);
        let expected = "# HELP simpletuner_workers Workers by state.\n# TYPE simpletuner_workers gauge\n\
            simpletuner_workers{state=\"idle\"} 2.0\n\
            # HELP simpletuner_x How often.\n# TYPE simpletuner_x counter\n\
            simpletuner_x_total{what=\"a\\\"b\\\\c\\nd\"} 3\n\
            # HELP simpletuner_took_seconds How long.\n# TYPE simpletuner_took_seconds histogram\n\
            simpletuner_took_seconds_sum 1.5\nsimpletuner_took_seconds_count 2\n\
            simpletuner_took_seconds_bucket{le=\"1.0\"} 1\nsimpletuner_took_seconds_bucket{le=\"+Inf\"} 2\n# EOF\n";
        assert_eq!(page.render(), expected);
    }
}
