use proptest::prelude::*;

use super::*;
use crate::protocol::gpus::history::MetricGap;
use crate::ui::components::chart::options::Smoothing;

fn series(name: &str) -> MetricSeries {
    MetricSeries {
        name: name.to_owned(),
        steps: vec![1, 5],
        seconds: vec![0.0, 2.5],
        values: vec![2.0, 1.0],
        gaps: Vec::new(),
    }
}

fn metrics() -> JobMetrics {
    JobMetrics { metrics: vec![series("loss"), series("learning_rate"), series("<b>own</b>")], ..JobMetrics::default() }
}

fn smoothed(weight: f64) -> ChartOptions {
    ChartOptions { smoothing: Smoothing::new(weight), ..ChartOptions::default() }
}

#[test]
fn every_number_has_a_chart_over_steps_time_or_epochs() {
    let titles: Vec<_> =
        metric_charts(&metrics(), &ChartOptions::default()).into_iter().map(|chart| chart.title).collect();
    assert_eq!(titles, ["Loss", "Learning rate", "<b>own</b>"]);
    let epochs = MetricSeries { steps: vec![1, 9], values: vec![0.0, 2.0], ..series("epoch") };
    let with_epochs = JobMetrics { metrics: [metrics().metrics, vec![epochs]].concat(), ..JobMetrics::default() };
    let xs = |metrics: &JobMetrics, horizontal| {
        let options = ChartOptions { horizontal, ..ChartOptions::default() };
        metric_charts(metrics, &options)[1].series[0].points.clone()
    };
    assert_eq!(xs(&metrics(), Horizontal::Steps), [(1.0, 2.0), (5.0, 1.0)]);
    assert_eq!(xs(&metrics(), Horizontal::Time), [(0.0, 2.0), (2.5, 1.0)]);
    assert_eq!(xs(&with_epochs, Horizontal::Epochs), [(0.0, 2.0), (1.0, 1.0)]);
    assert_eq!(xs(&metrics(), Horizontal::Epochs), [(1.0, 2.0), (5.0, 1.0)], "without epochs, by step");
}

#[test]
fn epochs_are_known_between_and_beyond_their_points() {
    let epochs = MetricSeries { steps: vec![10, 20], values: vec![1.0, 3.0], ..MetricSeries::default() };
    assert_eq!([0.0, 10.0, 15.0, 20.0, 99.0].map(|step| epoch_at(&epochs, step)).to_vec(), [1.0, 1.0, 2.0, 3.0, 3.0]);
    assert!(epoch_at(&MetricSeries::default(), 1.0).is_nan());
}

#[test]
fn noisy_metrics_are_smoothed_over_their_raw_values() {
    let charts = metric_charts(&metrics(), &ChartOptions::default());
    assert_eq!(charts[0].series[0].background, [(1.0, 2.0), (5.0, 1.0)]);
    assert_eq!(charts[1].series[0].background, []);
}

#[test]
fn smoothing_is_named_and_can_be_turned_off() {
    let notes = |weight| metric_charts(&metrics(), &smoothed(weight)).remove(0).note;
    assert_eq!((notes(0.6).as_deref(), notes(0.0)), (Some("smoothed, 0.6"), None));
    let charts = metric_charts(&metrics(), &smoothed(0.0));
    assert_eq!(charts[0].series[0], ChartSeries { points: vec![(1.0, 2.0), (5.0, 1.0)], ..ChartSeries::default() });
    assert_eq!(metric_charts(&metrics(), &smoothed(0.9))[1].note, None, "a learning rate is as it is");
}

#[test]
fn values_that_are_not_finite_interrupt_the_line() {
    let gap = |first_step: u64, last_step: u64| MetricGap { first_step, last_step, values: 2, ..MetricGap::default() };
    let mut metrics = metrics();
    metrics.metrics[0].gaps = vec![gap(2, 3), gap(7, 9)];
    let charts = metric_charts(&metrics, &ChartOptions::default());
    let line = &charts[0].series[0];
    let finite = |points: &[(f64, f64)]| points.iter().map(|(x, y)| (*x, y.is_finite())).collect::<Vec<_>>();
    let expected = [(1.0, true), (2.0, false), (5.0, true), (7.0, false)];
    assert_eq!((finite(&line.points), finite(&line.background)), (expected.to_vec(), expected.to_vec()));
    assert_eq!(line.gaps[1], Gap { from: 7.0, to: 9.0, values: 2 });
    assert_eq!(charts[0].not_finite(), 4);
    // All charts have the axis on which the gap ends.
    let spans: Vec<_> = charts.iter().map(|chart| chart.span).collect();
    assert_eq!(spans, [Some(AxisRange { low: 1.0, high: 9.0 }); 3]);
}

#[test]
fn runs_are_overlaid_and_keep_their_places() {
    let (one, two) = (metrics(), JobMetrics { metrics: vec![series("fid")], ..JobMetrics::default() });
    let runs = [("a".to_owned(), Some(&one)), ("b".to_owned(), None), ("c".to_owned(), Some(&two))];
    let charts = overlaid_charts(&["loss", "fid"].map(str::to_owned), &runs, &ChartOptions::default());
    let lines =
        |chart: &Chart| chart.series.iter().map(|line| (line.name.clone(), line.points.len())).collect::<Vec<_>>();
    let line = |name: &str, points: usize| (name.to_owned(), points);
    assert_eq!(lines(&charts[0]), [line("a", 2), line("b", 0), line("c", 0)]);
    assert_eq!(lines(&charts[1]), [line("a", 0), line("b", 0), line("c", 2)]);
    assert!(charts.iter().all(|chart| chart.series.iter().all(|line| line.background.is_empty())));
}

fn long(steps: impl Iterator<Item = u64>) -> JobMetrics {
    let steps: Vec<u64> = steps.collect();
    let values: Vec<f64> = steps.iter().map(|step| to_f64(*step)).collect();
    let loss = MetricSeries { name: "loss".to_owned(), seconds: values.clone(), values, steps, gaps: Vec::new() };
    JobMetrics { metrics: vec![loss], ..JobMetrics::default() }
}

#[test]
fn visible_steps_include_one_on_both_sides() {
    let all = long((0..=100).step_by(10));
    let steps = |low: f64, high: f64| {
        zoomed_steps(&all, &ChartOptions { zoom: Some(AxisRange { low, high }), ..ChartOptions::default() })
    };
    assert_eq!(steps(25.0, 45.0), Some((20, 50)));
    assert_eq!(steps(31.0, 32.0), Some((30, 40)), "between two points");
    assert_eq!(steps(-5.0, 500.0), Some((0, 100)));
    assert_eq!(steps(200.0, 300.0), None, "beyond the end");
    assert_eq!(zoomed_steps(&all, &ChartOptions::default()), None);
}

proptest! {
    #[test]
    fn a_refined_line_has_the_points_of_the_part(stride in 1_u64..20, from in 0_u64..200, length in 0_u64..200) {
        let (all, part) = (long((0..=200).step_by(usize::try_from(stride).unwrap())), long(from..=from + length));
        let line = &refined(&all, &part).metrics[0];
        prop_assert!(line.steps.is_sorted_by(|a, b| a < b));
        prop_assert!(line.steps.iter().zip(&line.values).all(|(step, value)| to_f64(*step).total_cmp(value).is_eq()));
        let is_inside = |step: &&u64| (from..=from + length).contains(*step);
        prop_assert!(line.steps.iter().filter(is_inside).copied().eq(from..=from + length));
        prop_assert!(line.steps.iter().filter(|step| !is_inside(step)).eq(all.metrics[0].steps.iter().filter(|step| !is_inside(step))));
        let other = JobMetrics { attempt: crate::domain::ids::AttemptNumber(2), ..part };
        prop_assert_eq!(refined(&all, &other), all, "of another attempt");
    }
}
