//! Requests, by the route's template: addresses have no end, templates are as many as the source has.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, RwLock};
use std::time::Duration;

use super::histogram::{Histogram, TIMES};

/// How the first digit of a status reads.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
/// What no route was found for.
const UNMATCHED: &str = "unmatched";

/// See the module.
#[derive(Debug, Default)]
pub struct Http(RwLock<BTreeMap<String, Arc<Route>>>);

/// One template.
#[derive(Debug)]
pub struct Route {
    answers: [AtomicU64; CLASSES.len()],
    /// How long it took until the answer began.
    pub times: Histogram,
}

impl Route {
    /// How many answers there were, by the class of their status.
    pub fn answers(&self) -> impl Iterator<Item = (&'static str, u64)> {
        CLASSES.into_iter().zip(&self.answers).map(|(class, number)| (class, number.load(Ordering::Relaxed)))
    }
}

impl Http {
    /// A request was answered.
    pub fn answered(&self, template: &str, status: u16, took: Duration) {
        let route = self.of(if template.is_empty() { UNMATCHED } else { template });
        let class = usize::from(status / 100).clamp(1, CLASSES.len()) - 1;
        route.answers[class].fetch_add(1, Ordering::Relaxed);
        route.times.took(took);
    }

    /// All that were asked for, with their templates.
    pub fn routes(&self) -> Vec<(String, Arc<Route>)> {
        let routes = self.0.read().expect("no panic while it is held");
        routes.iter().map(|(template, route)| (template.clone(), Arc::clone(route))).collect()
    }

    fn of(&self, template: &str) -> Arc<Route> {
        if let Some(route) = self.0.read().expect("no panic while it is held").get(template) {
            return Arc::clone(route);
        }
        let new = || Arc::new(Route { answers: Default::default(), times: Histogram::of_seconds(TIMES) });
        let mut routes = self.0.write().expect("no panic while it is held");
        Arc::clone(routes.entry(template.to_owned()).or_insert_with(new))
    }
}
