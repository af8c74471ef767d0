use serde_json::json;

use super::*;
use crate::protocol::gpus::history::JobMetrics;
use crate::protocol::jobs::JobView;
use crate::protocol::jobs::compare::ComparedJob;

type Metrics<'a> = &'a [(&'a str, Option<f64>)];

fn key(name: &str, values: &[Value]) -> ComparedConfigKey {
    let values: Vec<_> = values.iter().map(|value| Some(value.clone()).filter(|value| !value.is_null())).collect();
    ComparedConfigKey { key: name.to_owned(), differs: values.iter().any(|value| *value != values[0]), values }
}

fn compared(jobs: &[Metrics], config: Vec<ComparedConfigKey>) -> JobComparison {
    let job = |metrics: &Metrics| ComparedJob {
        job: JobView::example(),
        final_metrics: metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
        metrics: JobMetrics::default(),
    };
    JobComparison { jobs: jobs.iter().map(job).collect(), missing: Vec::new(), config: Some(config) }
}

fn plot_of(comparison: &JobComparison, wanted: Option<&str>) -> ParallelPlot {
    let names: Vec<String> = (1..=comparison.jobs.len()).map(|number| format!("job {number}")).collect();
    ParallelPlot::new(comparison, &names, wanted)
}

fn titles(plot: &ParallelPlot) -> Vec<&str> {
    plot.axes.iter().map(|axis| axis.title.as_str()).collect()
}

fn tick_texts(axis: &PlotAxis) -> Vec<&str> {
    axis.ticks.iter().map(|(_, text)| text.as_str()).collect()
}

fn sweep() -> JobComparison {
    let losses = [0.5, 0.25, 1.0].map(|loss| vec![("loss", Some(loss)), ("accuracy", Some(1.0 - loss))]);
    let config = vec![
        key("learning_rate", &[json!(1e-4), json!("1e-2"), json!(0.001)]),
        key("optimizer", &[json!("lion"), json!("adamw"), Value::Null]),
        key("same", &[json!(1), json!(1), json!(1)]),
    ];
    compared(&losses.each_ref().map(Vec::as_slice), config)
}

#[test]
fn each_value_that_differs_has_an_axis_and_the_metric_is_last() {
    let plot = plot_of(&sweep(), None);
    assert_eq!(titles(&plot), ["learning_rate", "optimizer", "Loss"]);
    assert_eq!(plot.axes.iter().map(|axis| axis.is_logarithmic).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(tick_texts(&plot.axes[0]), ["0.0001", "0.001", "1e-2"]);
    assert_eq!(tick_texts(&plot.axes[1]), ["adamw", "lion"]);
    assert_eq!(tick_texts(&plot.axes[2]), ["0.2500", "0.5000", "1.00"]);
    let positions: Vec<_> = plot.lines[1].values.iter().map(|(position, _)| *position).collect();
    assert_eq!(positions, [Some(1.0), Some(0.0), Some(0.0)]);
    assert_eq!(plot.lines[2].values[1], (None, "–".to_owned()));
    assert_eq!(plot.lines.iter().map(|line| line.is_best).collect::<Vec<_>>(), [false, true, false]);
    assert!(plot.has_gaps());
    assert_eq!(plot.describe(), "Parallel coordinates: learning_rate, optimizer, Loss");
    assert_eq!(plot.describe_line(2), "job 3: learning_rate 0.001, optimizer –, Loss 1.00");
    assert_eq!(plot.describe_line(3), "");
    assert_eq!(plot.better_values(), Some("lower is better"));
}

#[test]
fn the_metric_of_the_address_is_shown_if_it_has_a_number() {
    let metric = |comparison: &JobComparison, wanted| {
        let plot = plot_of(comparison, wanted);
        (plot.metric, plot.metrics.join(" "))
    };
    let chosen = |name: &str, all: &str| (name.to_owned(), all.to_owned());
    assert_eq!(metric(&sweep(), Some("accuracy")), chosen("accuracy", "loss accuracy"));
    assert_eq!(metric(&sweep(), Some("unknown")), chosen("loss", "loss accuracy"));
    assert_eq!(plot_of(&sweep(), Some("accuracy")).better_values(), Some("higher is better"));

    let config = || vec![key("rank", &[json!(8), json!(16)])];
    let diverged = compared(&[&[("epoch", Some(1.0)), ("loss", None)], &[("b_fid", Some(f64::NAN))]], config());
    assert_eq!(metric(&diverged, Some("loss")), chosen("epoch", "epoch"), "no number, and unknown which is better");
    assert_eq!(plot_of(&diverged, None).better_values(), None);
    assert_eq!(plot_of(&diverged, None).lines[1].values[1], (None, "–".to_owned()));
    let partly = compared(&[&[("loss", Some(1.0))], &[("loss", None)]], config());
    assert_eq!(plot_of(&partly, None).lines[1].values[1], (None, "NaN".to_owned()));
    assert_eq!(plot_of(&partly, None).lines[0].values[1].0, Some(0.5), "one number is in the middle");
}

#[test]
fn without_differences_or_metrics_nothing_is_drawn() {
    let with_loss: Metrics = &[("loss", Some(1.0))];
    let differing = || vec![key("rank", &[json!(8), json!(16)])];
    assert_eq!(plot_of(&compared(&[&[], &[("loss", None)]], differing()), None), ParallelPlot::default());
    assert_eq!(plot_of(&compared(&[with_loss; 2], Vec::new()), None), ParallelPlot::default());
    let hidden = JobComparison { config: None, ..compared(&[with_loss; 2], Vec::new()) };
    assert_eq!(plot_of(&hidden, None), ParallelPlot::default());
    assert_eq!(titles(&plot_of(&compared(&[with_loss; 2], differing()), None)), ["rank", "Loss"]);
}

#[test]
fn values_of_any_kind_are_categories_and_long_ones_are_cut() {
    let long = "x".repeat(300);
    let odd = [json!([1, {"a": null}]), json!({}), json!(true), json!(long), json!("\u{202e}")];
    let with_loss: Metrics = &[("loss", Some(1.0))];
    let plot = plot_of(&compared(&[with_loss; 5], vec![key("<b>", &odd)]), None);
    let texts = tick_texts(&plot.axes[0]);
    assert_eq!((texts[0], texts[1], texts[3], texts[4]), ("[1,{\"a\":null}]", "true", "{}", "\\u{202e}"));
    assert_eq!(texts[2].chars().count(), 201);
    assert!(plot.describe_line(3).contains('…'));
}

#[test]
fn further_values_that_differ_are_counted() {
    let with_loss: Metrics = &[("loss", Some(1.0))];
    let config = (0..15).map(|number| key(&format!("key_{number:02}"), &[json!(1), json!(2)])).collect();
    let plot = plot_of(&compared(&[with_loss; 2], config), None);
    assert_eq!((plot.axes.len(), plot.left_out), (13, 3));
    assert_eq!((titles(&plot)[0], titles(&plot)[11]), ("key_00", "key_11"));
}

#[test]
fn many_numbers_have_round_ticks_that_do_not_overlap() {
    let with_loss: Metrics = &[("loss", Some(1.0))];
    let ticks = |values: &[f64]| {
        let values: Vec<Value> = values.iter().map(|value| json!(value)).collect();
        let jobs = vec![with_loss; values.len()];
        let plot = plot_of(&compared(&jobs, vec![key("a", &values)]), None);
        tick_texts(&plot.axes[0]).join(" ")
    };
    assert_eq!(ticks(&[1.0, 3.0, 7.0, 9.0, 12.0, 14.0, 20.0]), "5 10 15 20");
    assert_eq!(ticks(&[1e-5, 2e-5, 3e-4, 4e-4, 5e-3, 6e-3, 0.1]), "1.0e-5 1.0e-4 0.001 0.01 0.1");
    assert_eq!(ticks(&[1.0, 1.01, 2.0, 2.99, 3.0]), "1.0 2.0 3.0", "both ends stay");
}
