//! GPU usage as bars for each day, and as a heat map of the week. Each value is also in the page as text.

use leptos::prelude::*;

use crate::protocol::usage::{UsageDay, UsageHour};
use crate::ui::clock::use_clock;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;

/// The height of the chart in SVG units; each day is one unit wide.
const CHART_HEIGHT: f64 = 40.0;

/// For each day, a bar of the GPU hours allocated in front of one of the GPU hours available.
#[component]
pub(crate) fn DailyUsage(days: Vec<UsageDay>) -> impl IntoView {
    let (language, clock) = (t(), use_clock());
    let words = &language.server_pages().usage;
    let max_hours =
        days.iter().map(|day| day.gpu_hours.max(day.gpu_hours_available.unwrap_or(0.0))).fold(0.0, f64::max);
    let height = |hours: f64| if max_hours > 0.0 { hours / max_hours * CHART_HEIGHT } else { 0.0 };
    let bar = |(index, day): (usize, &UsageDay)| {
        let rect = |class: &'static str, hours: f64| {
            let (x, y) = (format!("{index}.12"), format!("{:.2}", CHART_HEIGHT - height(hours)));
            view! { <rect class=class x=x y=y width="0.76" height=format!("{:.2}", height(hours))></rect> }
        };
        view! { {day.gpu_hours_available.map(|hours| rect("bar-there", hours))} {rect("bar-held", day.gpu_hours)} }
    };
    let bars = days.iter().enumerate().map(bar).collect_view();
    let date = |day: &UsageDay| clock.format_day(day.day);
    let (first, last) = (days.first().map(date), days.last().map(date));
    let has_available = days.iter().any(|day| day.gpu_hours_available.is_some());
    let row = |day: &UsageDay| {
        let available = has_available.then(|| {
            let hours = day.gpu_hours_available.map_or_else(|| "–".to_owned(), |hours| language.format_hours(hours));
            view! { <td class="num">{hours}</td> }
        });
        view! { <tr><th scope="row">{date(day)}</th><td class="num">{language.format_hours(day.gpu_hours)}</td>{available}</tr> }
    };
    let rows = days.iter().map(row).collect_view();
    view! {
        <section class="panel" aria-labelledby="days">
            <div class="panel-head">
                <h2 id="days">{words.per_day}</h2>
                <ul class="legend">
                    <li><span class="legend-mark is-held"></span>{words.held}</li>
                    {has_available.then(|| view! { <li><span class="legend-mark is-there"></span>{words.there}</li> })}
                </ul>
            </div>
            <figure class="day-bars" aria-hidden="true">
                <span class="day-most">{language.format_hours(max_hours)}</span>
                <svg viewBox=format!("0 0 {} {CHART_HEIGHT}", days.len().max(1)) preserveAspectRatio="none">{bars}</svg>
                <figcaption><span>{first}</span><span>{clock.zone_name()}</span><span>{last}</span></figcaption>
            </figure>
            <details class="fold px-4 pb-3">
                <summary>{words.as_table}</summary>
                <table class="data">
                    <caption class="sr-only">{words.per_day}</caption>
                    <thead>
                        <tr>
                            <th scope="col">{words.day}" ("{clock.zone_name()}")"</th>
                            <th scope="col" class="num">{words.held}</th>
                            {has_available.then(|| view! { <th scope="col" class="num">{words.there}</th> })}
                        </tr>
                    </thead>
                    <tbody>{rows}</tbody>
                </table>
            </details>
        </section>
    }
    .into_erased()
}

/// The hours of the week as a table; the more GPU hours were allocated, the stronger the color of the cell.
#[component]
pub(crate) fn WeeklyHeatmap(week: Vec<UsageHour>, own: bool) -> impl IntoView {
    let words = &t().server_pages().usage;
    let hint = if own { words.by_hour_own_hint } else { words.by_hour_hint }.of(use_clock().zone_name());
    let max_hours = week.iter().map(|hour| hour.gpu_hours).fold(0.0, f64::max);
    let hours = (0..24).map(|hour| view! { <th scope="col">{format!("{hour:02}")}</th> }).collect_view();
    let day = |(name, hours): (&'static str, &[UsageHour])| {
        let cells = hours.iter().map(|hour| view! { <HeatmapCell hour=*hour max_hours=max_hours/> }).collect_view();
        view! { <tr><th scope="row">{name}</th>{cells}</tr> }
    };
    let days = &words.weekdays;
    let days = [days.monday, days.tuesday, days.wednesday, days.thursday, days.friday, days.saturday, days.sunday];
    let rows = days.into_iter().zip(week.chunks(24)).map(day).collect_view();
    view! {
        <section class="panel" aria-labelledby="hours">
            <div class="panel-head">
                <h2 id="hours">{words.by_hour}</h2>
                <span class="panel-note max-md:hidden">{hint.clone()}</span>
            </div>
            <div class="heat-scroll" tabindex="0" role="group" aria-labelledby="hours">
                <table class="heat">
                    <caption class="sr-only">{hint}</caption>
                    <thead><tr><td></td>{hours}</tr></thead>
                    <tbody>{rows}</tbody>
                </table>
            </div>
        </section>
    }
    .into_erased()
}

/// The share of the GPU hours available, if known; otherwise relative to `max_hours`, the maximum of all hours.
#[component]
fn HeatmapCell(hour: UsageHour, max_hours: f64) -> impl IntoView {
    let language = t();
    let (fraction, text) = match hour.gpu_hours_available {
        Some(available) if available > 0.0 => {
            let fraction = hour.gpu_hours / available;
            (fraction, language.format_percent(fraction * 100.0))
        }
        Some(_) => return view! { <td class="heat-none"><span class="sr-only">"–"</span></td> }.into_erased(),
        None if max_hours > 0.0 => (hour.gpu_hours / max_hours, language.format_hours(hour.gpu_hours)),
        None => (0.0, language.format_hours(0.0)),
    };
    view! { <td class=heat_class(fraction) title=text.clone()><span class="sr-only">{text.clone()}</span></td> }
        .into_erased()
}

/// Returns the class for a fraction from 0 to 1: one of six steps, of which the first means no usage.
fn heat_class(fraction: f64) -> &'static str {
    match fraction {
        _ if fraction <= 0.0 => "heat-0",
        ..0.2 => "heat-1",
        0.2..0.4 => "heat-2",
        0.4..0.6 => "heat-3",
        0.6..0.8 => "heat-4",
        _ => "heat-5",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heat_classes_cover_all_values() {
        let classes = [0.0, -1.0, 0.001, 0.2, 0.5, 0.79, 1.0, 3.0].map(heat_class);
        assert_eq!(classes, ["heat-0", "heat-0", "heat-1", "heat-2", "heat-3", "heat-4", "heat-5", "heat-5"]);
    }

    #[test]
    fn heatmap_is_one_landmark() {
        let html = Owner::new().with(|| view! { <WeeklyHeatmap week=Vec::new() own=false/> }.to_html());
        assert!(html.contains("<section") && !html.contains(r#"role="region""#), "{html}");
    }
}
