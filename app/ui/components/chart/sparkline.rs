//! A line chart so small that it fits beside a number.

use leptos::prelude::*;

use crate::ui::axis::svg_path;
use crate::ui::erase::Erase;
use crate::ui::format::to_f64;
use crate::ui::i18n::t;

/// Percentages over time, with the area below the line; nothing if no value is known. Missing values are gaps.
#[component]
pub(crate) fn Sparkline(values: Vec<Option<u8>>, label: String) -> impl IntoView {
    let known_values = || values.iter().flatten();
    let (Some(low), Some(high), Some(last)) = (known_values().min(), known_values().max(), known_values().last())
    else {
        return ().into_any();
    };
    let percent = |value: &u8| t().format_percent(f64::from(*value));
    let first = known_values().next().map(percent).unwrap_or_default();
    let words = t().charts.summary.with(&[&first, &percent(last), &percent(low), &percent(high)]);
    let width = to_f64(values.len() as u64);
    view! {
        <svg class="spark" viewBox=format!("0 0 {width} 20") preserveAspectRatio="none" role="img" aria-label=format!("{label}: {words}")>
            <path class="spark-area" d=area(&values)></path>
            <path class="spark-line" d=svg_path(points(&values))></path>
        </svg>
    }
    .into_erased()
}

fn points(values: &[Option<u8>]) -> impl Iterator<Item = (f64, f64)> {
    let height = |value: u8| 19.0 - f64::from(value.min(100)) * 0.18;
    (0_u64..).zip(values).map(move |(index, value)| (to_f64(index) + 0.5, value.map_or(f64::NAN, height)))
}

/// Returns the path of the area: each segment between gaps, closed at the bottom.
fn area(values: &[Option<u8>]) -> String {
    let points: Vec<_> = points(values).collect();
    let segments = points.split(|(_, y)| y.is_nan()).filter(|segment| !segment.is_empty());
    let paths = segments.map(|segment| {
        let (first, last) = (segment[0].0, segment[segment.len() - 1].0);
        format!("{}L{last:.1} 20L{first:.1} 20Z", svg_path(segment.iter().copied()))
    });
    paths.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn area_has_gaps() {
        assert_eq!(
            area(&[Some(0), Some(100), None, Some(50)]),
            "M0.5 19.0h0L1.5 1.0L1.5 20L0.5 20ZM3.5 10.0h0L3.5 20L3.5 20Z"
        );
        assert_eq!(area(&[None]), "");
    }
}
