//! What a trainer measured, as charts take it.

use std::collections::BTreeMap;

use app::domain::ids::{Attempt, JobId};
use app::domain::time::Timestamp;
use app::protocol::history::{JobMetrics, MetricSeries};
use app::protocol::queue::ProgressSeries;
use app::protocol::worker::ProgressPoint;

use crate::service::Core;
use crate::service::refusal::Refusal;

/// How many points a list of them has.
const LISTED: u32 = 600;
/// Of how many points the numbers are looked at one by one. Of a longer attempt it is every so many.
const READ: u32 = 10_000;
/// How many values of a number a chart gets.
const CHARTED: usize = 480;
/// Over how many stretches the rate of steps is counted: from one point to the next it would be noise.
const RATES: usize = 120;

/// The rate of steps.
const RATE: &str = "steps_per_second";
/// What comes before what the trainer names.
const FIRST: [&str; 4] = ["loss", "learning_rate", "epoch", RATE];

impl Core {
    /// An attempt's points; of the newest if none is named.
    pub async fn progress_series(&self, id: &JobId, attempt: Option<Attempt>) -> Result<ProgressSeries, Refusal> {
        let attempt = self.attempt_of(id, attempt).await?;
        Ok(ProgressSeries { attempt, points: self.points(id, attempt, LISTED).await? })
    }

    /// An attempt's numbers; those of the newest if none is named.
    pub async fn job_metrics(&self, id: &JobId, attempt: Option<Attempt>) -> Result<JobMetrics, Refusal> {
        let attempt = self.attempt_of(id, attempt).await?;
        let points = self.points(id, attempt, READ).await?;
        let kept_every = Some(self.read().await?.points_every(id, attempt).await?).filter(|every| *every > 1);
        let from = points.first().map(|point| point.at);
        Ok(JobMetrics { attempt, from, kept_every, metrics: metrics(&points) })
    }

    async fn points(&self, id: &JobId, attempt: Attempt, most: u32) -> Result<Vec<ProgressPoint>, Refusal> {
        let points = self.read().await?.points(id, attempt, most).await?;
        Ok(points.iter().filter_map(|point| serde_json::from_str(point).ok()).collect())
    }
}

/// A value, with its step and its moment.
type Value = (u64, Timestamp, f64);

/// Every number there is, each thinned by itself.
fn metrics(points: &[ProgressPoint]) -> Vec<MetricSeries> {
    let Some(from) = points.first().map(|point| point.at) else { return Vec::new() };
    let mut by_name: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for point in points {
        let own = [("loss", point.loss), ("learning_rate", point.learning_rate), ("epoch", point.epoch)];
        let own = own.into_iter().filter_map(|(name, value)| Some((name, value?)));
        // What a trainer calls like one of those is the same number.
        let others = point.metrics.iter().map(|(name, value)| (name.as_str(), *value));
        for (name, value) in others.filter(|(name, _)| !FIRST[..3].contains(name)).chain(own) {
            if value.is_finite() {
                by_name.entry(name).or_default().push((point.step, point.at, value));
            }
        }
    }
    by_name.entry(RATE).or_insert_with(|| rates(points));
    let first = FIRST.iter().filter_map(|name| Some((*name, by_name.remove(name)?))).collect::<Vec<_>>();
    let series = |(name, values): (&str, Vec<Value>)| {
        let kept = thinned(&values, CHARTED);
        let seconds = |at: Timestamp| f64::from(i32::try_from((at - from).0 / 100).unwrap_or(i32::MAX)) / 10.0;
        MetricSeries {
            name: name.to_owned(),
            steps: kept.iter().map(|(step, ..)| *step).collect(),
            seconds: kept.iter().map(|(_, at, _)| seconds(*at)).collect(),
            values: kept.iter().map(|(.., value)| *value).collect(),
        }
    };
    first.into_iter().chain(by_name).filter(|(_, values)| !values.is_empty()).map(series).collect()
}

/// Steps per second over stretches of the attempt, each at its end.
fn rates(points: &[ProgressPoint]) -> Vec<Value> {
    let stretch = points.len().div_ceil(RATES).max(1);
    let ends = points.iter().step_by(stretch);
    let rate = |(before, after): (&ProgressPoint, &ProgressPoint)| {
        let (steps, time) = (after.step.checked_sub(before.step)?, (after.at - before.at).0);
        let steps = f64::from(u32::try_from(steps).ok().filter(|steps| *steps > 0)?);
        (time > 0).then(|| (after.step, after.at, steps * 1_000.0 / f64::from(i32::try_from(time).unwrap_or(i32::MAX))))
    };
    ends.clone().zip(ends.skip(1)).filter_map(rate).collect()
}

/// At most about so many of them: the first, the last, and of each stretch between the lowest and the highest.
fn thinned(values: &[Value], most: usize) -> Vec<Value> {
    if values.len() <= most {
        return values.to_vec();
    }
    let stretch = (values.len() * 2).div_ceil(most);
    let mut places = vec![0, values.len() - 1];
    for (number, part) in values.chunks(stretch).enumerate() {
        let by_value = |a: &(usize, &Value), b: &(usize, &Value)| a.1.2.total_cmp(&b.1.2);
        let ends = [part.iter().enumerate().min_by(by_value), part.iter().enumerate().max_by(by_value)];
        places.extend(ends.into_iter().flatten().map(|(place, _)| number * stretch + place));
    }
    places.sort_unstable();
    places.dedup();
    places.into_iter().map(|place| values[place]).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn point(step: u64, at: i64, loss: Option<f64>, metrics: &[(&str, f64)]) -> ProgressPoint {
        let metrics = metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        ProgressPoint { step, at: Timestamp(at * 1_000), loss, metrics, ..ProgressPoint::default() }
    }

    #[test]
    fn every_number_is_a_series_and_the_rate_is_counted() {
        let points = [
            point(10, 0, Some(2.0), &[]),
            point(20, 4, None, &[("grad_norm", 3.0), ("loss", 7.0)]),
            point(40, 8, Some(1.0), &[("grad_norm", 2.0), ("accuracy", f64::NAN)]),
        ];
        let series = metrics(&points);
        let told: Vec<_> = series.iter().map(|one| (one.name.as_str(), &one.steps[..], &one.values[..])).collect();
        let expected: [(&str, &[u64], &[f64]); 3] =
            [("loss", &[10, 40], &[2.0, 1.0]), (RATE, &[20, 40], &[2.5, 5.0]), ("grad_norm", &[20, 40], &[3.0, 2.0])];
        assert_eq!(told, expected);
        assert_eq!(series[0].seconds, [0.0, 8.0]);
        assert_eq!(metrics(&[]), []);
    }

    #[test]
    fn the_trainers_own_rate_counts_and_clocks_that_stand_still_make_none() {
        let told = metrics(&[point(1, 0, None, &[(RATE, 9.0)]), point(2, 1, None, &[(RATE, 8.0)])]);
        assert_eq!((told[0].name.as_str(), &told[0].values[..]), (RATE, &[9.0, 8.0][..]));
        assert_eq!(metrics(&[point(1, 5, None, &[]), point(2, 5, None, &[]), point(3, 4, None, &[])]), []);
    }

    proptest! {
        #[test]
        fn what_is_thinned_keeps_its_ends_its_order_and_its_extremes(
            values in prop::collection::vec(-1e6..1e6_f64, 1..3_000),
            most in 4_usize..600,
        ) {
            let all: Vec<Value> = (0..).zip(&values).map(|(step, value)| (step, Timestamp(0), *value)).collect();
            let kept = thinned(&all, most);
            prop_assert!(kept.len() <= most + 3);
            prop_assert!(kept.is_sorted_by(|a, b| a.0 < b.0));
            prop_assert_eq!((kept.first(), kept.last()), (all.first(), all.last()));
            for extreme in [f64::min, f64::max] {
                let of = |some: &[Value]| some.iter().map(|value| value.2).reduce(extreme);
                prop_assert_eq!(of(&kept), of(&all));
            }
        }
    }
}
