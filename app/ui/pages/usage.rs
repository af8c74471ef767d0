//! The usage of the fleet: figures, days, groups, and hours of the week.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use leptos_router::params::ParamsMap;

use crate::domain::access::Permission;
use crate::domain::time::{Millis, Timestamp};
use crate::protocol::jobs::JobsQuery;
use crate::protocol::usage::{UsageBy, UsageGroup, UsageQuery, UsageReport};
use crate::ui::backend::use_page_backend;
use crate::ui::clock::use_clock;
use crate::ui::components::empty_panel::EmptyPanel;
use crate::ui::components::filters::{FilterBar, FilterLink};
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::ProblemPanel;
use crate::ui::components::progress_bar::ProgressBar;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::components::stat_tile::StatTile;
use crate::ui::components::usage_charts::{DailyUsage, WeeklyHeatmap};
use crate::ui::erase::Erase;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::page_query::{jobs_url, query_string};
use crate::ui::prefs::Prefs;
use crate::ui::time_zone::TimeZone;

const DAY_MS: i64 = 86_400_000;
/// The time ranges that have a link, in days.
const RANGES: [i64; 3] = [7, 30, 90];

/// The time range and grouping in the address: a number of past days, or a first and a last day.
#[derive(Debug, Clone, PartialEq, Eq)]
struct UsagePageQuery {
    days: Option<i64>,
    from: Option<String>,
    to: Option<String>,
    by: UsageBy,
}

impl UsagePageQuery {
    fn from_params(params: &ParamsMap) -> Self {
        let text = |name| params.get(name).filter(|text| !text.is_empty());
        let days = text("days").and_then(|days| days.parse().ok()).filter(|days| RANGES.contains(days));
        let by = text("by").and_then(|name| UsageBy::parse(&name)).unwrap_or_default();
        Self { days, from: text("from"), to: text("to"), by }
    }

    fn href(&self, path: &str) -> String {
        let by = (self.by != UsageBy::User).then(|| self.by.as_str().to_owned());
        let days = self.days.map(|days| days.to_string());
        let pairs = [("days", days), ("from", self.from.clone()), ("to", self.to.clone()), ("by", by)];
        format!("{path}{}", query_string(&pairs))
    }

    /// The query for the API. Days are in the user's time zone, and the last one is included.
    fn to_query(&self, now: Timestamp, zone: Option<&TimeZone>) -> UsageQuery {
        let midnight = |day: &String, days_later: i64| {
            let midnight = format!("{day}T00:00:00Z");
            let Some(local_time) = Timestamp::parse_rfc3339(&midnight) else { return midnight };
            let local_time = local_time + Millis(days_later * DAY_MS);
            zone.map_or(Some(local_time), |zone| zone.from_local_time(local_time)).unwrap_or(local_time).to_string()
        };
        let (since, until) = if let Some(days) = self.days {
            (Some(Timestamp(now.0 - days * DAY_MS).to_string()), None)
        } else {
            (self.from.as_ref().map(|day| midnight(day, 0)), self.to.as_ref().map(|day| midnight(day, 1)))
        };
        UsageQuery { since, until, by: self.by }
    }
}

#[component]
pub(crate) fn UsagePage() -> impl IntoView {
    let (words, clock) = (&t().server_pages().usage, use_clock());
    let page_backend = use_page_backend();
    let page_query = use_query_map().with_untracked(UsagePageQuery::from_params);
    let sees_all = use_context::<Prefs>().is_some_and(|prefs| prefs.has_permission(Permission::JobViewAll));
    let query = page_query.to_query(clock.now(), clock.zone().as_ref());
    let csv = format!("/api/usage/export{}", query_string(&query));
    let report = Resource::new(|| (), move |()| page_backend.usage(query.clone()));
    let shown = {
        let page_query = page_query.clone();
        move || {
            let page_query = page_query.clone();
            Suspend::new(async move {
                match report.await {
                    Ok(report) => view! { <ReportContent report=report page_query=page_query/> }.into_erased(),
                    Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
                }
            })
        }
    };
    view! {
        <PageHeader title=t().nav.usage intro=if sees_all { words.intro } else { words.intro_own }>
            <a class="btn btn-sm" href=csv><Icon glyph=Glyph::Download/>{words.export}</a>
        </PageHeader>
        <RangeForm page_query=page_query/>
        <div data-part="usage"><Suspense fallback=Skeleton>{shown}</Suspense></div>
    }
    .into_erased()
}

/// Selects the time range: links to common ranges, and a form for others.
#[component]
fn RangeForm(page_query: UsagePageQuery) -> impl IntoView {
    let words = &t().server_pages().usage;
    let has_dates = page_query.from.is_some() || page_query.to.is_some();
    let filter = |(days, label): (i64, &'static str)| FilterLink {
        href: UsagePageQuery { days: Some(days), from: None, to: None, by: page_query.by }.href("/usage"),
        label,
        count: None,
        current: page_query.days == Some(days) || (days == RANGES[0] && page_query.days.is_none() && !has_dates),
    };
    let filters = RANGES.into_iter().zip([words.week, words.month, words.quarter]).map(filter).collect();
    let by = (page_query.by != UsageBy::User)
        .then(|| view! { <input type="hidden" name="by" value=page_query.by.as_str()/> });
    view! {
        <div class="toolbar">
            <FilterBar label=words.range filters=filters/>
            <form method="get" action="/usage" class="range-form">
                {by}
                <label for="from">{words.from}</label>
                <input class="input input-sm" type="date" id="from" name="from" value=page_query.from/>
                <label for="to">{words.to}</label>
                <input class="input input-sm" type="date" id="to" name="to" value=page_query.to/>
                <button class="btn btn-sm">{words.show}</button>
            </form>
        </div>
    }
    .into_erased()
}

#[component]
fn ReportContent(report: UsageReport, page_query: UsagePageQuery) -> impl IntoView {
    let words = &t().server_pages().usage;
    if report.total.attempts == 0 && report.waits.jobs == 0 {
        return view! {
            <UsageFigures report=report/>
            <div class="panel"><EmptyPanel glyph=Glyph::Usage title=words.none text=words.none_hint/></div>
        }
        .into_erased();
    }
    let unknown = (report.fleet.is_none() && !report.own).then(|| {
        view! {
            <p class="notice notice-warn"><Icon glyph=Glyph::Warning/><span>{words.unknown_hint}</span></p>
        }
    });
    view! {
        <UsageFigures report=report.clone()/>
        {unknown}
        <div class="space-y-6">
            <DailyUsage days=report.days.clone()/>
            <GroupTable report=report.clone() page_query=page_query/>
            <WeeklyHeatmap week=report.week own=report.own/>
        </div>
    }
    .into_erased()
}

/// The main figures, side by side.
#[component]
fn UsageFigures(report: UsageReport) -> impl IntoView {
    let language = t();
    let words = &language.server_pages().usage;
    let seconds = |seconds: Option<f64>| {
        seconds.map_or_else(|| "–".to_owned(), |seconds| language.format_duration(millis(seconds)))
    };
    let hours = |hours: f64| language.format_hours(hours);
    let running = words.run_hours_of.of(language.format_duration(millis(report.total.run_hours * 3_600.0)));
    let long_wait_note = report.waits.p95_seconds.map(|_| words.wait_long.of(seconds(report.waits.p95_seconds)));
    let jobs = language.format_integer(report.total.jobs);
    let attempts = words.attempts.of(report.total.attempts);
    let wait = seconds(report.waits.p50_seconds);
    let fleet = report.fleet.map(|fleet| {
        let utilization =
            (fleet.gpu_hours > 0.0).then(|| language.format_percent(report.total.gpu_hours * 100.0 / fleet.gpu_hours));
        (
            utilization.unwrap_or_else(|| "–".to_owned()),
            words.of_there.of(hours(fleet.gpu_hours)),
            seconds(Some(fleet.idle_while_queued_minutes * 60.0)),
        )
    });
    let fleet_tiles = match fleet {
        Some((utilization, note, idle)) => view! {
            <StatTile name=words.utilisation value=utilization note=note/>
            <StatTile name=words.idle value=idle hint=words.idle_hint/>
        }
        .into_erased(),
        None if report.own => ().into_erased(),
        None => view! { <StatTile name=words.utilisation value=words.unknown/> }.into_erased(),
    };
    view! {
        <ul class="tiles tiles-figures">
            <StatTile name=words.gpu_hours value=hours(report.total.gpu_hours) note=running/>
            <StatTile name=words.jobs value=jobs note=attempts/>
            <StatTile name=words.wait value=wait note=long_wait_note.unwrap_or_default()/>
            {fleet_tiles}
        </ul>
    }
    .into_erased()
}

#[component]
fn GroupTable(report: UsageReport, page_query: UsagePageQuery) -> impl IntoView {
    let words = &t().server_pages().usage;
    let names = [words.by_user, words.by_label, words.by_worker, words.by_config];
    let filter = |(by, label): (UsageBy, &'static str)| FilterLink {
        href: UsagePageQuery { by, ..page_query.clone() }.href("/usage"),
        label,
        count: None,
        current: by == report.by,
    };
    let filters = UsageBy::ALL.into_iter().zip(names).map(filter).collect();
    let name = UsageBy::ALL.into_iter().zip(names).find(|(by, _)| *by == report.by).map_or("", |(_, name)| name);
    // Without GPUs in the fleet, groups are compared by run time.
    let by_gpus = report.total.gpu_hours > 0.0;
    let total_hours = if by_gpus { report.total.gpu_hours } else { report.total.run_hours };
    let row = |group: UsageGroup| {
        let share = if by_gpus { group.amount.gpu_hours } else { group.amount.run_hours } * 100.0
            / total_hours.max(f64::MIN_POSITIVE);
        view! { <GroupRow group=group by=report.by share=share/> }
    };
    view! {
        <section class="panel" aria-labelledby="groups">
            <div class="panel-head panel-head-wide">
                <h2 id="groups">{words.by}</h2>
                <FilterBar label=words.by filters=filters/>
            </div>
            <table class="data">
                <caption class="sr-only">{words.by}" "{name}</caption>
                <thead>
                    <tr>
                        <th scope="col">{name}</th>
                        <th scope="col" class="num">{words.gpu_hours}</th>
                        <th scope="col">{words.share}</th>
                        <th scope="col" class="num max-md:hidden">{words.run_hours}</th>
                        <th scope="col" class="num">{words.jobs}</th>
                    </tr>
                </thead>
                <tbody>{report.groups.into_iter().map(row).collect_view()}</tbody>
            </table>
        </section>
    }
    .into_erased()
}

#[component]
fn GroupRow(group: UsageGroup, by: UsageBy, share: f64) -> impl IntoView {
    let language = t();
    let words = &language.server_pages().usage;
    let jobs = group_jobs_query(&group, by);
    let UsageGroup { name, worker_id, amount } = group;
    let shown_name = if name.is_empty() { words.no_label.to_owned() } else { name };
    let label = format!("{}: {shown_name}", words.share);
    let number = language.format_integer(amount.jobs);
    let link_label = format!("{}: {number} · {shown_name}", words.jobs);
    let number = match jobs {
        Some(query) => {
            view! { <a class="quiet-link" href=jobs_url(&query) rel="external" aria-label=link_label>{number}</a> }
                .into_erased()
        }
        None => number.into_erased(),
    };
    let name = match worker_id {
        Some(id) => view! { <a class="row-link" href=format!("/admin/workers/{id}") rel="external">{shown_name}</a> }
            .into_erased(),
        None => view! { <bdi class="font-medium wrap-anywhere">{shown_name}</bdi> }.into_erased(),
    };
    view! {
        <tr>
            <th scope="row">{name}</th>
            <td class="num">{language.format_hours(amount.gpu_hours)}</td>
            <td class="share">
                <ProgressBar percent=Some(share) label=label over=true/>
                <span class="row-sub">{language.format_percent(share)}</span>
            </td>
            <td class="num max-md:hidden">{language.format_duration(millis(amount.run_hours * 3_600.0))}</td>
            <td class="num">{number}</td>
        </tr>
    }
    .into_erased()
}

/// The query for the jobs of a group, if the job list has such a filter.
fn group_jobs_query(group: &UsageGroup, by: UsageBy) -> Option<JobsQuery> {
    let name = Some(group.name.clone()).filter(|name| !name.is_empty());
    let all = JobsQuery::default();
    match by {
        UsageBy::User => Some(JobsQuery { user: Some(name?), ..all }),
        UsageBy::Label => Some(JobsQuery { label: Some(name?), ..all }),
        UsageBy::Worker => Some(JobsQuery { worker: Some(group.worker_id.clone()?), ..all }),
        UsageBy::Config => Some(JobsQuery { config: Some(name?), ..all }),
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a float saturates")]
fn millis(seconds: f64) -> Millis {
    Millis((seconds * 1_000.0) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn url_selects_recent_days_or_a_date_range() {
        let parse_query = |query: &[(&str, &str)]| {
            let mut params = ParamsMap::new();
            for (name, value) in query {
                params.insert(name.to_string(), (*value).to_owned());
            }
            UsagePageQuery::from_params(&params)
        };
        let now = Timestamp::parse_rfc3339("2024-01-31T12:00:00Z").expect("a time");
        let days = parse_query(&[("days", "30"), ("by", "worker")]);
        assert_eq!(days.href("/usage"), "/usage?days=30&by=worker");
        assert_eq!(days.to_query(now, None).since.as_deref(), Some("2024-01-01T12:00:00.000Z"));
        let from = parse_query(&[("from", "2024-01-02"), ("to", "2024-01-03")]);
        let query = from.to_query(now, None);
        assert_eq!(query.since.as_deref(), Some("2024-01-02T00:00:00.000Z"));
        assert_eq!(query.until.as_deref(), Some("2024-01-04T00:00:00.000Z"), "the last day is included");
        assert_eq!(from.href("/usage"), "/usage?from=2024-01-02&to=2024-01-03");
        let invalid = parse_query(&[("days", "5000"), ("from", ""), ("to", "soon"), ("by", "x")]);
        assert_eq!(
            (invalid.days, invalid.by, invalid.to_query(now, None).until.as_deref()),
            (None, UsageBy::User, Some("soonT00:00:00Z"))
        );
    }

    #[test]
    fn days_are_those_of_the_readers_zone() {
        let days_query = |from: &str, to: &str| UsagePageQuery {
            days: None,
            from: Some(from.to_owned()),
            to: Some(to.to_owned()),
            by: UsageBy::User,
        };
        let window = |zone, from, to| {
            let query = days_query(from, to).to_query(Timestamp(0), TimeZone::from_name(zone).as_ref());
            [query.since, query.until].map(Option::unwrap_or_default)
        };
        assert_eq!(
            window("Asia/Kolkata", "2024-01-02", "2024-01-02"),
            ["2024-01-01T18:30:00.000Z", "2024-01-02T18:30:00.000Z"]
        );
        // A day of 23 hours.
        assert_eq!(
            window("Europe/Berlin", "2024-03-31", "2024-03-31"),
            ["2024-03-30T23:00:00.000Z", "2024-03-31T22:00:00.000Z"]
        );
    }
}
