//! The last value of each metric in each job.

use leptos::prelude::*;

use super::{Compared, job_headings, shown_text};
use crate::domain::job_comparison::best_values;
use crate::protocol::jobs::compare::{ComparedJob, FinalValue, JobComparison};
use crate::ui::components::metric_charts::metric_title;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// A metric with its last value in each job, as text, and whether it is best.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FinalRow {
    title: String,
    values: Vec<(String, bool)>,
}

/// Formats the last value of a metric.
pub(super) fn final_text(value: FinalValue) -> String {
    match value {
        FinalValue::NotReported => "–".to_owned(),
        FinalValue::NotANumber => "NaN".to_owned(),
        FinalValue::Number(number) => t().format_number(number),
    }
}

fn final_rows(comparison: &JobComparison) -> Vec<FinalRow> {
    let jobs = &comparison.jobs;
    let row = |name: String| {
        let values: Vec<FinalValue> = jobs.iter().map(|job| job.final_value(&name)).collect();
        let best = best_values(&name, &values.iter().map(|value| value.number()).collect::<Vec<_>>());
        FinalRow { title: metric_title(&name), values: values.into_iter().map(final_text).zip(best).collect() }
    };
    let step = |job: &ComparedJob| {
        let last_steps = job.metrics.metrics.iter().filter_map(|series| series.steps.last());
        let text = last_steps.max().map_or_else(|| "–".to_owned(), |step| t().format_integer(*step));
        (text, false)
    };
    let steps = FinalRow { title: t().job.step.to_owned(), values: jobs.iter().map(step).collect() };
    let rows: Vec<FinalRow> = comparison.metric_names().into_iter().map(row).collect();
    if rows.is_empty() { rows } else { std::iter::once(steps).chain(rows).collect() }
}

#[component]
pub(super) fn FinalMetrics(compared: Compared) -> impl IntoView {
    let words = &t().compare;
    let rows = Memo::new(move |_| compared.comparison.with(final_rows));
    let body = move || {
        let cell = |(text, is_best): (String, bool)| {
            if is_best {
                view! { <td class="num"><strong class="best-value">{text}</strong>" "<span class="best-mark">{words.best}</span></td> }
                    .into_erased()
            } else {
                view! { <td class="num">{text}</td> }.into_erased()
            }
        };
        let row = |FinalRow { title, values }| {
            view! {
                <tr>
                    <th scope="row"><bdi class="wrap-anywhere">{shown_text(&title)}</bdi></th>
                    {values.into_iter().map(cell).collect_view()}
                </tr>
            }
        };
        rows.get().into_iter().map(row).collect_view()
    };
    let has_rows = Memo::new(move |_| rows.with(|rows| !rows.is_empty()));
    let section = move || {
        has_rows.get().then(|| {
            view! {
                <section class="panel" aria-labelledby="final">
                    <h2 id="final" class="panel-head">{words.final_metrics}</h2>
                    <div class="compare-scroll" tabindex="0" role="group" aria-label=words.final_metrics>
                        <table class="data compare-table">
                            <caption class="sr-only">{words.final_metrics}</caption>
                            <thead><tr><th scope="col">{words.metric}</th>{job_headings(compared)}</tr></thead>
                            <tbody>{body}</tbody>
                        </table>
                    </div>
                </section>
            }
        })
    };
    view! { {section} }.into_erased()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::gpus::history::{JobMetrics, MetricSeries};
    use crate::protocol::jobs::JobView;

    #[test]
    fn rows_are_the_step_then_known_metrics_then_others() {
        let job = |metrics: &[(&str, Option<f64>)], step: u64| ComparedJob {
            job: JobView::example(),
            final_metrics: metrics.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect(),
            metrics: JobMetrics {
                metrics: vec![MetricSeries { steps: vec![1, step], ..MetricSeries::default() }],
                ..JobMetrics::default()
            },
        };
        let jobs = [
            job(&[("loss", Some(0.5)), ("val_loss", Some(2.0)), ("fid", Some(7.0))], 1_000_000_000),
            job(&[("loss", None), ("val_loss", Some(1.0)), ("learning_rate", Some(0.01))], 20),
        ];
        let compare = |jobs: Vec<ComparedJob>| JobComparison { jobs, ..JobComparison::default() };
        let texts = |row: &FinalRow| {
            let cell = |(text, is_best): &(String, bool)| if *is_best { format!("{text}*") } else { text.clone() };
            (row.title.clone(), row.values.iter().map(cell).collect::<Vec<_>>().join(" "))
        };
        let expected = [
            ("Step", "1,000,000,000 20"),
            ("Loss", "0.5000 NaN"),
            ("Learning rate", "– 0.0100"),
            ("fid", "7.00 –"),
            ("val_loss", "2.00 1.00*"),
        ];
        let rows: Vec<_> = final_rows(&compare(jobs.into())).iter().map(texts).collect();
        assert_eq!(rows, expected.map(|(title, values)| (title.to_owned(), values.to_owned())));
        assert_eq!(final_rows(&compare(vec![job(&[], 1)])), []);
    }
}
