//! Metrics of a trainer, for charts.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use app::domain::ids::{AttemptNumber, JobId};
use app::domain::job::Job;
use app::domain::time::Timestamp;
use app::protocol::agents::ProgressPoint;
use app::protocol::gpus::history::{JobMetrics, LEADING_METRICS, MetricGap, MetricSeries};
use app::protocol::jobs::{ProgressSeries, SeriesQuery};

use crate::service::error::ServiceError;
use crate::service::jobs::JobService;

/// The maximum number of points in a list.
const MAX_POINTS_LISTED: u32 = 600;
/// The number of points that are read; of a longer attempt, every n-th.
const MAX_POINTS_READ: u32 = 10_000;
/// The maximum number of values of a metric in a chart.
const MAX_CHART_VALUES: usize = 480;
/// The number of values that a metric keeps, however many metrics there are.
const MIN_CHART_VALUES: usize = 32;
/// The maximum number of gaps of a metric.
const MAX_GAPS: usize = 100;
/// The number of periods over which the step rate is computed: between single points it would be noise.
const RATE_BUCKETS: usize = 120;

/// The name of the step rate.
const RATE_METRIC: &str = LEADING_METRICS[3];

/// Limits of what is read for charts.
#[derive(Debug, Clone, Copy)]
pub(super) struct SeriesLimits {
    /// The number of points that are read; of a longer attempt, every n-th.
    points: u32,
    /// The number of values of all metrics together, if each keeps enough of them.
    values: usize,
}

impl SeriesLimits {
    const ONE_JOB: Self = Self { points: MAX_POINTS_READ, values: usize::MAX };

    /// Limits with which several jobs take about as long as a few.
    pub(super) fn each_of(jobs: usize) -> Self {
        const MAX_POINTS: usize = 20_000;
        const MAX_VALUES: usize = 60_000;
        let jobs = jobs.max(1);
        let points = u32::try_from(MAX_POINTS / jobs).unwrap_or(MAX_POINTS_READ);
        Self { points: points.min(MAX_POINTS_READ), values: MAX_VALUES / jobs }
    }
}

impl JobService {
    /// Returns the given attempt, or the newest.
    pub async fn resolve_attempt(
        &self,
        job: &JobId,
        attempt: Option<AttemptNumber>,
    ) -> Result<AttemptNumber, ServiceError> {
        let newest =
            self.context.read().await?.job(job).await?.ok_or_else(|| ServiceError::JobNotFound(job.clone()))?.attempt;
        match attempt {
            Some(attempt) if attempt.0 == 0 || attempt > newest => Err(ServiceError::AttemptNotFound(attempt.0)),
            other => Ok(other.unwrap_or(newest)),
        }
    }

    /// Returns an attempt's points; by default of the newest.
    pub async fn progress_series(&self, id: &JobId, query: SeriesQuery) -> Result<ProgressSeries, ServiceError> {
        let attempt = self.resolve_attempt(id, query.attempt.map(AttemptNumber)).await?;
        Ok(ProgressSeries { attempt, points: self.points(id, attempt, query.steps(), MAX_POINTS_LISTED).await? })
    }

    /// Returns an attempt's metrics; by default of the newest.
    pub async fn job_metrics(&self, id: &JobId, query: SeriesQuery) -> Result<JobMetrics, ServiceError> {
        let attempt = self.resolve_attempt(id, query.attempt.map(AttemptNumber)).await?;
        self.metrics_of(id, attempt, query.steps(), SeriesLimits::ONE_JOB).await
    }

    /// Returns an attempt's points, by default of the newest, to be exported.
    pub async fn exported_points(
        &self,
        id: &JobId,
        attempt: Option<AttemptNumber>,
    ) -> Result<Vec<ProgressPoint>, ServiceError> {
        let attempt = self.resolve_attempt(id, attempt).await?;
        self.points(id, attempt, SeriesQuery::default().steps(), MAX_POINTS_READ).await
    }

    /// Returns the metrics of a job's newest attempt that has any.
    pub(super) async fn newest_metrics(&self, job: &Job, limits: SeriesLimits) -> Result<JobMetrics, ServiceError> {
        for attempt in (1..=job.attempt.0).rev().map(AttemptNumber) {
            let metrics = self.metrics_of(&job.id, attempt, SeriesQuery::default().steps(), limits).await?;
            if metrics.from.is_some() {
                return Ok(metrics);
            }
        }
        Ok(JobMetrics { attempt: job.attempt, ..JobMetrics::default() })
    }

    async fn metrics_of(
        &self,
        id: &JobId,
        attempt: AttemptNumber,
        steps: RangeInclusive<i64>,
        limits: SeriesLimits,
    ) -> Result<JobMetrics, ServiceError> {
        let all = SeriesQuery::default().steps();
        let points = self.points(id, attempt, steps.clone(), limits.points).await?;
        let first = if steps == all { None } else { self.points(id, attempt, all, 1).await?.into_iter().next() };
        let from = first.as_ref().or(points.first()).map(|point| point.at);
        let kept_every = Some(self.context.read().await?.point_stride(id, attempt).await?).filter(|every| *every > 1);
        let loss_nan_since = nan_since(&points);
        let metrics = from.map(|from| metric_series(&points, from, limits.values)).unwrap_or_default();
        Ok(JobMetrics { attempt, from, kept_every, loss_nan_since, metrics })
    }

    async fn points(
        &self,
        id: &JobId,
        attempt: AttemptNumber,
        steps: RangeInclusive<i64>,
        max: u32,
    ) -> Result<Vec<ProgressPoint>, ServiceError> {
        let points = self.context.read().await?.points(id, attempt, steps, max).await?;
        Ok(points.iter().filter_map(|point| serde_json::from_str(point).ok()).collect())
    }
}

/// The first step from which the loss was not finite until the end.
fn nan_since(points: &[ProgressPoint]) -> Option<u64> {
    points.iter().fold(None, |since, point| match point.loss {
        Some(_) => None,
        None => since.or(point.loss_is_nan.then_some(point.step)),
    })
}

type MetricPoint = (u64, Timestamp, f64);

/// Returns each metric, downsampled separately; about `max_values` values in all. Seconds count from `from`.
fn metric_series(points: &[ProgressPoint], from: Timestamp, max_values: usize) -> Vec<MetricSeries> {
    let mut by_name: BTreeMap<&str, Vec<MetricPoint>> = BTreeMap::new();
    for point in points {
        let standard = [("loss", point.loss), ("learning_rate", point.learning_rate), ("epoch", point.epoch)];
        let standard = standard.into_iter().filter_map(|(name, value)| Some((name, value?)));
        // A trainer's metric of the same name is the same metric.
        let others = point.metrics.iter().map(|(name, value)| (name.as_str(), *value));
        for (name, value) in others.filter(|(name, _)| !LEADING_METRICS[..3].contains(name)).chain(standard) {
            if value.is_finite() {
                by_name.entry(name).or_default().push((point.step, point.at, value));
            }
        }
    }
    by_name.entry(RATE_METRIC).or_insert_with(|| step_rates(points));
    let leading = LEADING_METRICS.iter().filter_map(|name| Some((*name, by_name.remove(name)?))).collect::<Vec<_>>();
    let max_each = (max_values / (leading.len() + by_name.len())).clamp(MIN_CHART_VALUES, MAX_CHART_VALUES);
    let series = |(name, values): (&str, Vec<MetricPoint>)| {
        let sampled = downsample(&values, max_each);
        MetricSeries {
            name: name.to_owned(),
            steps: sampled.iter().map(|(step, ..)| *step).collect(),
            seconds: sampled.iter().map(|(_, at, _)| seconds_between(from, *at)).collect(),
            values: sampled.iter().map(|(.., value)| *value).collect(),
            gaps: if name == LEADING_METRICS[0] { loss_gaps(points, from) } else { Vec::new() },
        }
    };
    leading.into_iter().chain(by_name).filter(|(_, values)| !values.is_empty()).map(series).collect()
}

fn seconds_between(from: Timestamp, at: Timestamp) -> f64 {
    f64::from(i32::try_from((at - from).0 / 100).unwrap_or(i32::MAX)) / 10.0
}

/// Returns where the loss is not finite: runs of such values, of which only the first `MAX_GAPS` are separate.
fn loss_gaps(points: &[ProgressPoint], from: Timestamp) -> Vec<MetricGap> {
    let mut gaps: Vec<MetricGap> = Vec::new();
    let mut is_open = false;
    for point in points {
        if point.loss.is_some() {
            is_open = false;
        } else if point.loss_is_nan {
            let (step, second) = (point.step, seconds_between(from, point.at));
            let is_full = gaps.len() == MAX_GAPS;
            match gaps.last_mut().filter(|_| is_open || is_full) {
                Some(gap) => {
                    (gap.last_step, gap.last_second) = (step, second);
                    gap.values += 1;
                }
                None => gaps.push(MetricGap {
                    first_step: step,
                    last_step: step,
                    first_second: second,
                    last_second: second,
                    values: 1,
                }),
            }
            is_open = true;
        }
    }
    gaps
}

/// Steps per second over periods of the attempt, each at its end.
fn step_rates(points: &[ProgressPoint]) -> Vec<MetricPoint> {
    let period_points = points.len().div_ceil(RATE_BUCKETS).max(1);
    let period_ends = points.iter().step_by(period_points);
    let rate = |(before, after): (&ProgressPoint, &ProgressPoint)| {
        let (steps, time) = (after.step.checked_sub(before.step)?, (after.at - before.at).0);
        let steps = f64::from(u32::try_from(steps).ok().filter(|steps| *steps > 0)?);
        (time > 0).then(|| (after.step, after.at, steps * 1_000.0 / f64::from(i32::try_from(time).unwrap_or(i32::MAX))))
    };
    period_ends.clone().zip(period_ends.skip(1)).filter_map(rate).collect()
}

/// Reduces values to about `max`: the first, the last, and the lowest and highest of each period between.
fn downsample(values: &[MetricPoint], max: usize) -> Vec<MetricPoint> {
    if values.len() <= max {
        return values.to_vec();
    }
    let period_points = (values.len() * 2).div_ceil(max);
    let mut indexes = vec![0, values.len() - 1];
    for (number, period) in values.chunks(period_points).enumerate() {
        let by_value = |a: &(usize, &MetricPoint), b: &(usize, &MetricPoint)| a.1.2.total_cmp(&b.1.2);
        let extremes = [period.iter().enumerate().min_by(by_value), period.iter().enumerate().max_by(by_value)];
        indexes.extend(extremes.into_iter().flatten().map(|(index, _)| number * period_points + index));
    }
    indexes.sort_unstable();
    indexes.dedup();
    indexes.into_iter().map(|index| values[index]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const START: Timestamp = Timestamp(0);

    #[test]
    fn gaps_are_runs_of_losses_that_are_not_finite() {
        let nan =
            |step: u64| ProgressPoint { loss_is_nan: true, ..point(step, i64::try_from(step).unwrap(), None, &[]) };
        let finite = |step| point(step, 0, Some(1.0), &[]);
        let missing = |step| point(step, 0, None, &[]);
        let gaps = |points: &[ProgressPoint]| {
            let gaps = loss_gaps(points, Timestamp(-1_000)).into_iter();
            gaps.map(|gap| (gap.first_step, gap.last_step, gap.last_second, gap.values)).collect::<Vec<_>>()
        };
        assert_eq!(gaps(&[finite(1), missing(2)]), []);
        let points = [nan(1), finite(2), nan(3), missing(4), nan(5), finite(6)];
        assert_eq!(gaps(&points), [(1, 1, 2.0, 1), (3, 5, 6.0, 2)], "a step without a loss interrupts nothing");
        let alternating: Vec<_> = (0..1_000).flat_map(|step| [finite(step * 2), nan(step * 2 + 1)]).collect();
        let gaps = gaps(&alternating);
        assert_eq!((gaps.len(), gaps.iter().map(|gap| gap.3).sum::<u64>()), (MAX_GAPS, 1_000), "all are counted");
    }

    #[test]
    fn loss_is_nan_since_the_step_after_the_last_finite_one() {
        let nan = |step| ProgressPoint { loss_is_nan: true, ..point(step, 0, None, &[]) };
        let finite = |step| point(step, 0, Some(1.0), &[]);
        assert_eq!(nan_since(&[finite(1), point(2, 0, None, &[]), nan(3), nan(4)]), Some(3));
        assert_eq!(nan_since(&[finite(1), nan(3), point(4, 0, None, &[])]), Some(3), "not sent again");
        assert_eq!(nan_since(&[nan(3), finite(4)]), None, "it is a number again");
        assert_eq!((nan_since(&[]), nan_since(&[point(1, 0, None, &[])])), (None, None));
    }

    fn point(step: u64, at: i64, loss: Option<f64>, metrics: &[(&str, f64)]) -> ProgressPoint {
        let metrics = metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        ProgressPoint { step, at: Timestamp(at * 1_000), loss, metrics, ..ProgressPoint::default() }
    }

    #[test]
    fn each_metric_is_a_series_and_step_rate_is_computed() {
        let points = [
            point(10, 0, Some(2.0), &[]),
            point(20, 4, None, &[("grad_norm", 3.0), ("loss", 7.0)]),
            point(40, 8, Some(1.0), &[("grad_norm", 2.0), ("accuracy", f64::NAN)]),
        ];
        let series = metric_series(&points, START, usize::MAX);
        let actual: Vec<_> =
            series.iter().map(|metric| (metric.name.as_str(), &metric.steps[..], &metric.values[..])).collect();
        let expected: [(&str, &[u64], &[f64]); 3] = [
            ("loss", &[10, 40], &[2.0, 1.0]),
            (RATE_METRIC, &[20, 40], &[2.5, 5.0]),
            ("grad_norm", &[20, 40], &[3.0, 2.0]),
        ];
        assert_eq!(actual, expected);
        assert_eq!(series[0].seconds, [0.0, 8.0]);
        assert_eq!(metric_series(&[], START, usize::MAX), []);
    }

    #[test]
    fn trainers_own_rate_is_used_and_stopped_clocks_give_none() {
        let own = [point(1, 0, None, &[(RATE_METRIC, 9.0)]), point(2, 1, None, &[(RATE_METRIC, 8.0)])];
        let series = metric_series(&own, START, 0);
        assert_eq!((series[0].name.as_str(), &series[0].values[..]), (RATE_METRIC, &[9.0, 8.0][..]));
        let stopped = [point(1, 5, None, &[]), point(2, 5, None, &[]), point(3, 4, None, &[])];
        assert_eq!(metric_series(&stopped, START, usize::MAX), []);
    }

    #[test]
    fn many_metrics_share_the_values_and_each_keeps_some() {
        let points: Vec<_> =
            (0..1_000_u32).map(|step| point(step.into(), 0, Some(1.0), &[("a", f64::from(step % 7))])).collect();
        let lengths = |max| metric_series(&points, START, max).iter().map(|series| series.values.len()).max();
        assert!(lengths(usize::MAX).is_some_and(|length| (400..=MAX_CHART_VALUES + 3).contains(&length)));
        assert!(lengths(300).is_some_and(|length| (100..=103).contains(&length)), "{:?}", lengths(300));
        assert!(lengths(0).is_some_and(|length| (20..=MIN_CHART_VALUES + 3).contains(&length)));
    }

    proptest! {
        #[test]
        fn downsampling_keeps_ends_order_and_extremes(
            values in prop::collection::vec(-1e6..1e6_f64, 1..3_000),
            max in 4_usize..600,
        ) {
            let all: Vec<MetricPoint> = (0..).zip(&values).map(|(step, value)| (step, Timestamp(0), *value)).collect();
            let sampled = downsample(&all, max);
            prop_assert!(sampled.len() <= max + 3);
            prop_assert!(sampled.is_sorted_by(|a, b| a.0 < b.0));
            prop_assert_eq!((sampled.first(), sampled.last()), (all.first(), all.last()));
            for extreme in [f64::min, f64::max] {
                let extreme_of = |points: &[MetricPoint]| points.iter().map(|value| value.2).reduce(extreme);
                prop_assert_eq!(extreme_of(&sampled), extreme_of(&all));
            }
        }
    }
}
