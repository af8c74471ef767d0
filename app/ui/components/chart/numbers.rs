//! A chart's numbers as a table, for whoever does not see it.

use std::sync::Arc;

use leptos::prelude::*;

use super::data::{Axis, Chart, Plot};
use super::draw::at;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// So many rows are read with patience.
const ROWS: usize = 16;

/// The rows that are shown: spread over all places, the first and last among them.
fn rows(grid: &[f64]) -> Vec<f64> {
    let last = grid.len().saturating_sub(1);
    let rows = grid.len().min(ROWS);
    (0..rows).map(|row| grid[if rows < 2 { 0 } else { row * last / (rows - 1) }]).collect()
}

#[component]
pub(super) fn Numbers(chart: Arc<Chart>, plot: Plot, ahead: Signal<f64>) -> impl IntoView {
    let words = &t().charts;
    let axis = chart.axis;
    let over = if axis == Axis::Steps { words.step } else { words.time };
    let heads = chart.lines.iter().map(|line| {
        let name = if line.name.is_empty() { &chart.title } else { &line.name };
        view! { <th scope="col" class="num"><bdi>{name.clone()}</bdi></th> }
    });
    let body = rows(&chart.grid()).into_iter().map(|x| {
        let cells = chart.lines.iter().map(|line| {
            let value = plot.read(line, x).map_or(f64::NAN, |(_, y)| y);
            view! { <td class="num">{chart.unit.value(value)}</td> }
        });
        let cells = cells.collect_view();
        view! { <tr><th scope="row">{move || at(axis, x, ahead.get())}</th>{cells}</tr> }
    });
    view! {
        <details class="fold chart-numbers">
            <summary>{words.numbers}<span class="sr-only">": "{chart.title.clone()}</span></summary>
            <div class="chart-table" tabindex="0" role="group" aria-label=chart.title.clone()>
                <table class="data">
                    <caption class="sr-only">{chart.title.clone()}</caption>
                    <thead><tr><th scope="col">{over}</th>{heads.collect_view()}</tr></thead>
                    <tbody>{body.collect_view()}</tbody>
                </table>
            </div>
        </details>
    }
    .erased()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_few_and_hold_both_ends() {
        let grid: Vec<f64> = (0..100).map(f64::from).collect();
        let shown = rows(&grid);
        assert_eq!((shown.len(), shown[0], shown[ROWS - 1]), (ROWS, 0.0, 99.0));
        assert!(shown.is_sorted_by(|a, b| a < b));
        assert_eq!(rows(&grid[..3]), [0.0, 1.0, 2.0]);
        assert_eq!((rows(&grid[..1]), rows(&[])), (vec![0.0], vec![]));
    }
}
