//! The values of a chart as a table, for users who cannot see the drawing.

use leptos::prelude::*;

use super::data::Axis;
use super::draw::describe_x;
use super::{ChartSignals, value_text};
use crate::ui::clock::PageClock;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// Maximum number of rows: more are tedious to read.
const MAX_ROWS: usize = 16;

/// Returns the positions of the rows: evenly spread, with the first and the last one.
fn sample_rows(grid: &[f64]) -> Vec<f64> {
    let last = grid.len().saturating_sub(1);
    let rows = grid.len().min(MAX_ROWS);
    (0..rows).map(|row| grid[if rows < 2 { 0 } else { row * last / (rows - 1) }]).collect()
}

/// Returns the rows as text, updated only while the table is open.
fn table_rows(signals: ChartSignals, open: RwSignal<bool>) -> Memo<Vec<(f64, Vec<String>)>> {
    Memo::new(move |previous: Option<&Vec<(f64, Vec<String>)>>| {
        if let (Some(previous), false) = (previous, open.get()) {
            return previous.clone();
        }
        let plot = signals.plot.get();
        signals.chart.with(|chart| {
            let cells = |x| chart.series.iter().map(|line| value_text(chart, plot, line, Some(x))).collect();
            sample_rows(&chart.x_positions()).into_iter().map(|x| (x, cells(x))).collect()
        })
    })
}

#[component]
pub(super) fn DataTable(signals: ChartSignals, title: Memo<String>, clock: PageClock) -> impl IntoView {
    let words = &t().charts;
    let axis = Memo::new(move |_| signals.chart.with(|chart| chart.axis));
    let open = RwSignal::new(false);
    let table = table_rows(signals, open);
    let header_cells = move || {
        let header_cell = |(name, _)| {
            let name = if String::is_empty(&name) { title.get() } else { name };
            view! { <th scope="col" class="num"><bdi>{name}</bdi></th> }
        };
        signals.lines.get().into_iter().map(header_cell).collect_view()
    };
    let body = move || {
        let row = |(x, cells): (f64, Vec<String>)| {
            let cells = cells.into_iter().map(|cell| view! { <td class="num">{cell}</td> }).collect_view();
            view! { <tr><th scope="row">{describe_x(axis.get(), x, clock)}</th>{cells}</tr> }
        };
        table.get().into_iter().map(row).collect_view()
    };
    let x_label = move || match axis.get() {
        Axis::Steps => words.step,
        Axis::Epochs => t().job.epoch,
        Axis::Elapsed | Axis::Clock => words.time,
    };
    view! {
        <details class="fold chart-numbers" on:toggle=move |_| open.update(|open| *open = !*open)>
            <summary>{words.numbers}<span class="sr-only">": "{title}</span></summary>
            <div class="chart-table" tabindex="0" role="group" aria-label=title>
                <table class="data">
                    <caption class="sr-only">{title}</caption>
                    <thead><tr><th scope="col">{x_label}</th>{header_cells}</tr></thead>
                    <tbody>{body}</tbody>
                </table>
            </div>
        </details>
    }
    .into_erased()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sampled_rows_are_few_and_include_both_ends() {
        let grid: Vec<f64> = (0..100).map(f64::from).collect();
        let rows = sample_rows(&grid);
        assert_eq!((rows.len(), rows[0], rows[MAX_ROWS - 1]), (MAX_ROWS, 0.0, 99.0));
        assert!(rows.is_sorted_by(|a, b| a < b));
        assert_eq!(sample_rows(&grid[..3]), [0.0, 1.0, 2.0]);
        assert_eq!((sample_rows(&grid[..1]), sample_rows(&[])), (vec![0.0], vec![]));
    }
}
