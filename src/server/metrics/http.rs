//! HTTP requests by route template: paths are unlimited, templates are not.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use super::histogram::{Histogram, LATENCY_BOUNDS};

/// Labels by the first digit of the status.
const STATUS_CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
/// The label of requests without a route.
const UNMATCHED: &str = "unmatched";

#[derive(Debug, Default)]
pub struct HttpMetrics(RwLock<BTreeMap<String, Arc<RouteMetrics>>>);

/// The metrics of one template.
#[derive(Debug)]
pub struct RouteMetrics {
    counts_by_class: [AtomicU64; STATUS_CLASSES.len()],
    /// The time until the response started.
    pub latency: Histogram,
}

impl RouteMetrics {
    /// The number of responses by status class.
    pub fn counts_by_class(&self) -> impl Iterator<Item = (&'static str, u64)> {
        STATUS_CLASSES
            .into_iter()
            .zip(&self.counts_by_class)
            .map(|(class, number)| (class, number.load(Ordering::Relaxed)))
    }
}

impl HttpMetrics {
    /// Records a response.
    pub fn record(&self, template: &str, status: u16, elapsed: Duration) {
        let route = self.route(if template.is_empty() { UNMATCHED } else { template });
        let class = usize::from(status / 100).clamp(1, STATUS_CLASSES.len()) - 1;
        route.counts_by_class[class].fetch_add(1, Ordering::Relaxed);
        route.latency.observe_duration(elapsed);
    }

    /// All requested templates.
    pub fn routes(&self) -> Vec<(String, Arc<RouteMetrics>)> {
        let routes = self.0.read().expect("no panic while it is held");
        routes.iter().map(|(template, route)| (template.clone(), Arc::clone(route))).collect()
    }

    fn route(&self, template: &str) -> Arc<RouteMetrics> {
        if let Some(route) = self.0.read().expect("no panic while it is held").get(template) {
            return Arc::clone(route);
        }
        let new = || {
            Arc::new(RouteMetrics {
                counts_by_class: Default::default(),
                latency: Histogram::of_seconds(LATENCY_BOUNDS),
            })
        };
        let mut routes = self.0.write().expect("no panic while it is held");
        Arc::clone(routes.entry(template.to_owned()).or_insert_with(new))
    }
}
