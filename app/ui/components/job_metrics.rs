//! The metrics of a job's charts: of one attempt, with more points where it is zoomed, or of all attempts.

use leptos::prelude::*;
use leptos::task::spawn_local;
use serde::{Deserialize, Serialize};

use super::chart::data::Chart;
use super::chart::options::ChartOptions;
use super::chart::state::ChartState;
use super::metric_charts::system::system_charts;
use super::metric_charts::{metric_charts, metric_names, overlaid_charts, refined, zoomed_steps};
use crate::domain::ids::{AttemptNumber, JobId};
use crate::protocol::gpus::history::{GpuHistory, JobMetrics};
use crate::protocol::jobs::SeriesQuery;
use crate::protocol::problem::Problem;
use crate::ui::backend::SharedBackend;
use crate::ui::i18n::t;

/// The maximum number of attempts that are drawn together, which is the number of different strokes.
const MAX_ATTEMPTS: u32 = 20;

/// What a page of charts starts with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct LoadedMetrics {
    attempt: JobMetrics,
    /// Its visible part, with more points.
    part: Option<JobMetrics>,
    /// The other attempts, if all are drawn.
    others: Vec<JobMetrics>,
    /// GPU readings of the attempt, if they are drawn.
    gpus: Option<GpuHistory>,
}

impl LoadedMetrics {
    /// Loads an attempt, by default the newest, or all of them up to a number.
    pub async fn load(
        backend: SharedBackend,
        id: JobId,
        (attempt, all): (Option<AttemptNumber>, Option<u32>),
        options: ChartOptions,
        with_gpus: bool,
    ) -> Result<Self, Problem> {
        let attempt = backend.job_metrics(id.clone(), of_attempt(attempt)).await?;
        let mut others = Vec::new();
        for number in all.into_iter().flat_map(|newest| newest.saturating_sub(MAX_ATTEMPTS) + 1..=newest) {
            if number != attempt.attempt.0 {
                others.push(backend.job_metrics(id.clone(), of_attempt(Some(AttemptNumber(number)))).await?);
            }
        }
        // Without them, the metrics are drawn alone.
        let gpus = if with_gpus { backend.job_gpus(id.clone()).await.ok() } else { None };
        // Without the part, fewer points are drawn.
        let part = match zoomed_steps(&attempt, &options) {
            Some(steps) if all.is_none() => backend.job_metrics(id, of_steps(attempt.attempt, steps)).await.ok(),
            _ => None,
        };
        Ok(Self { attempt, part, others, gpus })
    }
}

fn of_attempt(attempt: Option<AttemptNumber>) -> SeriesQuery {
    SeriesQuery { attempt: attempt.map(|attempt| attempt.0), ..SeriesQuery::default() }
}

fn of_steps(attempt: AttemptNumber, (from, to): (u64, u64)) -> SeriesQuery {
    SeriesQuery { attempt: Some(attempt.0), from: Some(from), to: Some(to) }
}

/// The metrics that are drawn.
#[derive(Clone, Copy)]
pub(crate) struct ShownMetrics {
    /// The attempt, which the job's feed updates.
    pub now: RwSignal<JobMetrics>,
    part: RwSignal<Option<JobMetrics>>,
    others: StoredValue<Vec<JobMetrics>>,
    has_all: bool,
    /// GPU readings, which the job's feed updates.
    pub gpus: Option<RwSignal<GpuHistory>>,
}

impl ShownMetrics {
    pub fn new(loaded: LoadedMetrics, has_all: bool) -> Self {
        let LoadedMetrics { attempt, part, others, gpus } = loaded;
        let (now, part, others) = (RwSignal::new(attempt), RwSignal::new(part), StoredValue::new(others));
        Self { now, part, others, has_all, gpus: gpus.map(RwSignal::new) }
    }

    /// Returns all charts, drawn as the page's address says.
    pub fn charts(self, state: ChartState) -> Memo<Vec<Chart>> {
        let options = drawn_options(state);
        Memo::new(move |_| options.with(|options| self.now.with(|now| self.draw(now, options))))
    }

    fn draw(self, now: &JobMetrics, options: &ChartOptions) -> Vec<Chart> {
        if self.has_all {
            return self.others.with_value(|others| attempt_charts(now, others, options));
        }
        self.part.with(|part| match part {
            Some(part) => metric_charts(&refined(now, part), options),
            None => metric_charts(now, options),
        })
    }

    /// Returns the charts of GPU readings, on the x axis of `charts`.
    pub fn system_charts(self, charts: Memo<Vec<Chart>>, state: ChartState) -> Memo<Vec<Chart>> {
        let options = drawn_options(state);
        let span = Memo::new(move |_| charts.with(|charts| charts.first().and_then(|chart| chart.span)));
        Memo::new(move |_| {
            let Some(gpus) = self.gpus else { return Vec::new() };
            options.with(|options| self.now.with(|now| gpus.with(|gpus| system_charts(gpus, now, options, span.get()))))
        })
    }

    /// Loads more points whenever the reader has zoomed.
    pub fn follow_zoom(self, id: JobId, backend: SharedBackend, state: ChartState) {
        if self.has_all {
            return;
        }
        let wanted = Memo::new(move |_| {
            self.now.with(|now| Some((now.attempt, state.with(|options| zoomed_steps(now, options))?)))
        });
        Effect::new(move |previous: Option<()>| {
            let wanted_now = wanted.get();
            // The first part is loaded with the page.
            if previous.is_none() {
                return;
            }
            let Some((attempt, steps)) = wanted_now else { return self.part.set(None) };
            let response = backend.job_metrics(id.clone(), of_steps(attempt, steps));
            spawn_local(async move {
                // The reader may have zoomed again in the meantime.
                if let (Ok(part), true) = (response.await, wanted.try_get_untracked() == Some(wanted_now)) {
                    self.part.try_set(Some(part));
                }
            });
        });
    }
}

/// The options that change lines: a pinned position changes none.
fn drawn_options(state: ChartState) -> Memo<ChartOptions> {
    Memo::new(move |_| state.with(|options| ChartOptions { pinned: None, ..options.clone() }))
}

/// Returns charts with a line for each attempt.
fn attempt_charts(now: &JobMetrics, others: &[JobMetrics], options: &ChartOptions) -> Vec<Chart> {
    let mut attempts: Vec<&JobMetrics> = others.iter().chain([now]).collect();
    attempts.sort_by_key(|metrics| metrics.attempt);
    let runs: Vec<_> = attempts.iter().map(|metrics| (t().log.attempt.of(metrics.attempt.0), Some(*metrics))).collect();
    // The newest attempt orders the charts.
    overlaid_charts(&metric_names(attempts.iter().rev().copied()), &runs, options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::gpus::history::MetricSeries;

    #[test]
    fn each_attempt_is_a_line_in_the_order_of_attempts() {
        let attempt = |number: u32, names: &[&str]| {
            let series = |name: &&str| MetricSeries {
                name: (*name).to_owned(),
                steps: vec![1],
                seconds: vec![1.0],
                values: vec![f64::from(number)],
                ..MetricSeries::default()
            };
            JobMetrics {
                attempt: AttemptNumber(number),
                metrics: names.iter().map(series).collect(),
                ..JobMetrics::default()
            }
        };
        let others = [attempt(3, &["loss"]), attempt(1, &["loss", "fid"])];
        let charts = attempt_charts(&attempt(2, &["loss", "x"]), &others, &ChartOptions::default());
        let titles: Vec<_> = charts.iter().map(|chart| chart.title.as_str()).collect();
        assert_eq!(titles, ["Loss", "x", "fid"]);
        let lines: Vec<_> = charts[0].series.iter().map(|line| (line.name.as_str(), line.points[0].1)).collect();
        assert_eq!(lines, [("Attempt 1", 1.0), ("Attempt 2", 2.0), ("Attempt 3", 3.0)]);
    }
}
