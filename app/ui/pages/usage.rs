//! What the fleet was used for: figures, days, groups, and hours of the week.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use leptos_router::params::ParamsMap;

use super::jobs::jobs_address;
use super::{Skeleton, use_desk};
use crate::domain::access::Permission;
use crate::domain::time::{Millis, Timestamp};
use crate::protocol::queue::JobsQuery;
use crate::protocol::usage::{UsageBy, UsageGroup, UsageQuery, UsageReport};
use crate::ui::clock::use_clock;
use crate::ui::components::empty::Empty;
use crate::ui::components::failure::Failure;
use crate::ui::components::figure::Figure;
use crate::ui::components::filters::{Filter, Filters};
use crate::ui::components::icon::{Glyph, Icon};
use crate::ui::components::page_head::PageHead;
use crate::ui::components::scale::Scale;
use crate::ui::components::usage_charts::{Days, Hours};
use crate::ui::erase::Erase;
use crate::ui::format::query_string;
use crate::ui::i18n::t;
use crate::ui::prefs::Prefs;

const DAY: i64 = 86_400_000;
/// The lengths of time that are one click away, in days.
const RANGES: [i64; 3] = [7, 30, 90];

/// What stands in the address: the last days, or from a day to another one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Asked {
    days: Option<i64>,
    from: Option<String>,
    to: Option<String>,
    by: UsageBy,
}

impl Asked {
    fn of(params: &ParamsMap) -> Self {
        let text = |name| params.get(name).filter(|text| !text.is_empty());
        let days = text("days").and_then(|days| days.parse().ok()).filter(|days| RANGES.contains(days));
        let by = text("by").and_then(|word| UsageBy::parse(&word)).unwrap_or_default();
        Self { days, from: text("from"), to: text("to"), by }
    }

    fn href(&self, path: &str) -> String {
        let by = (self.by != UsageBy::User).then(|| self.by.as_str().to_owned());
        let days = self.days.map(|days| days.to_string());
        let pairs = [("days", days), ("from", self.from.clone()), ("to", self.to.clone()), ("by", by)];
        format!("{path}{}", query_string(&pairs))
    }

    /// As the API is asked. A day's name is that of its beginning, and the last day belongs to it.
    fn query(&self, now: Timestamp) -> UsageQuery {
        let midnight = |day: &String| format!("{day}T00:00:00Z");
        let (since, until) = if let Some(days) = self.days {
            (Some(Timestamp(now.0 - days * DAY).to_string()), None)
        } else {
            let end =
                |day: &String| Timestamp::parse_rfc3339(&midnight(day)).map(|day| (day + Millis(DAY)).to_string());
            (self.from.as_ref().map(midnight), self.to.as_ref().map(|day| end(day).unwrap_or_else(|| midnight(day))))
        };
        UsageQuery { since, until, by: self.by }
    }
}

/// The page.
#[component]
pub(crate) fn UsagePage() -> impl IntoView {
    let words = &t().plain().usage;
    let desk = use_desk();
    let asked = use_query_map().with_untracked(Asked::of);
    let all = use_context::<Prefs>().is_some_and(|prefs| prefs.may(Permission::JobViewAll));
    let query = asked.query(use_clock().now());
    let csv = format!(
        "/api/usage/export{}",
        query_string(&[
            ("since", query.since.clone()),
            ("until", query.until.clone()),
            ("by", Some(query.by.as_str().to_owned())),
        ])
    );
    let report = Resource::new(|| (), move |()| desk.usage(query.clone()));
    let shown = {
        let asked = asked.clone();
        move || {
            let asked = asked.clone();
            Suspend::new(async move {
                match report.await {
                    Ok(report) => view! { <Report report=report asked=asked/> }.erased(),
                    Err(problem) => view! { <Failure problem=problem/> }.erased(),
                }
            })
        }
    };
    view! {
        <PageHead title=t().nav.usage intro=if all { words.intro } else { words.intro_own }>
            <a class="btn btn-sm" href=csv><Icon glyph=Glyph::Download/>{words.export}</a>
        </PageHead>
        <Range asked=asked/>
        <div data-part="usage"><Suspense fallback=Skeleton>{shown}</Suspense></div>
    }
    .erased()
}

/// Which time: links for what is asked mostly, and a form for the rest.
#[component]
fn Range(asked: Asked) -> impl IntoView {
    let words = &t().plain().usage;
    let own = asked.from.is_some() || asked.to.is_some();
    let filter = |(days, label): (i64, &'static str)| Filter {
        href: Asked { days: Some(days), from: None, to: None, by: asked.by }.href("/usage"),
        label,
        count: None,
        current: asked.days == Some(days) || (days == RANGES[0] && asked.days.is_none() && !own),
    };
    let filters = RANGES.into_iter().zip([words.week, words.month, words.quarter]).map(filter).collect();
    let by = (asked.by != UsageBy::User).then(|| view! { <input type="hidden" name="by" value=asked.by.as_str()/> });
    view! {
        <div class="toolbar">
            <Filters label=words.range filters=filters/>
            <form method="get" action="/usage" class="range-form">
                {by}
                <label for="from">{words.from}</label>
                <input class="input input-sm" type="date" id="from" name="from" value=asked.from/>
                <label for="to">{words.to}</label>
                <input class="input input-sm" type="date" id="to" name="to" value=asked.to/>
                <button class="btn btn-sm">{words.show}</button>
            </form>
        </div>
    }
    .erased()
}

#[component]
fn Report(report: UsageReport, asked: Asked) -> impl IntoView {
    let words = &t().plain().usage;
    if report.total.attempts == 0 && report.waits.jobs == 0 {
        return view! {
            <Figures report=report/>
            <div class="panel"><Empty glyph=Glyph::Usage title=words.none text=words.none_hint/></div>
        }
        .erased();
    }
    let unknown = (report.fleet.is_none() && !report.own).then(|| {
        view! {
            <p class="notice notice-warn"><Icon glyph=Glyph::Warning/><span>{words.unknown_hint}</span></p>
        }
    });
    view! {
        <Figures report=report.clone()/>
        {unknown}
        <div class="space-y-6">
            <Days days=report.days.clone()/>
            <Groups report=report.clone() asked=asked/>
            <Hours week=report.week own=report.own/>
        </div>
    }
    .erased()
}

/// Five figures in a row.
#[component]
fn Figures(report: UsageReport) -> impl IntoView {
    let language = t();
    let words = &language.plain().usage;
    let seconds =
        |seconds: Option<f64>| seconds.map_or_else(|| "–".to_owned(), |seconds| language.span(millis(seconds)));
    let hours = |hours: f64| language.hours(hours);
    let running = words.run_hours_of.of(language.span(millis(report.total.run_hours * 3_600.0)));
    let long = report.waits.p95_seconds.map(|_| words.wait_long.of(seconds(report.waits.p95_seconds)));
    let jobs = language.whole(report.total.jobs);
    let attempts = words.attempts.of(report.total.attempts);
    let wait = seconds(report.waits.p50_seconds);
    let fleet = report.fleet.map(|fleet| {
        let used = (fleet.gpu_hours > 0.0).then(|| language.percent(report.total.gpu_hours * 100.0 / fleet.gpu_hours));
        (
            used.unwrap_or_else(|| "–".to_owned()),
            words.of_there.of(hours(fleet.gpu_hours)),
            seconds(Some(fleet.idle_while_queued_minutes * 60.0)),
        )
    });
    let of_fleet = match fleet {
        Some((used, there, idle)) => view! {
            <Figure name=words.utilisation value=used note=there/>
            <Figure name=words.idle value=idle hint=words.idle_hint/>
        }
        .erased(),
        None if report.own => ().erased(),
        None => view! { <Figure name=words.utilisation value=words.unknown/> }.erased(),
    };
    view! {
        <ul class="tiles tiles-figures">
            <Figure name=words.gpu_hours value=hours(report.total.gpu_hours) note=running/>
            <Figure name=words.jobs value=jobs note=attempts/>
            <Figure name=words.wait value=wait note=long.unwrap_or_default()/>
            {of_fleet}
        </ul>
    }
    .erased()
}

#[component]
fn Groups(report: UsageReport, asked: Asked) -> impl IntoView {
    let words = &t().plain().usage;
    let names = [words.by_user, words.by_label, words.by_worker, words.by_config];
    let filter = |(by, label): (UsageBy, &'static str)| Filter {
        href: Asked { by, ..asked.clone() }.href("/usage"),
        label,
        count: None,
        current: by == report.by,
    };
    let filters = UsageBy::ALL.into_iter().zip(names).map(filter).collect();
    let name = UsageBy::ALL.into_iter().zip(names).find(|(by, _)| *by == report.by).map_or("", |(_, name)| name);
    // Without GPUs in the fleet, the time that jobs ran tells them apart.
    let by_gpus = report.total.gpu_hours > 0.0;
    let whole = if by_gpus { report.total.gpu_hours } else { report.total.run_hours };
    let row = |group: UsageGroup| {
        let share = if by_gpus { group.amount.gpu_hours } else { group.amount.run_hours } * 100.0
            / whole.max(f64::MIN_POSITIVE);
        view! { <GroupRow group=group by=report.by share=share/> }
    };
    view! {
        <section class="panel" aria-labelledby="groups">
            <div class="panel-head panel-head-wide">
                <h2 id="groups">{words.by}</h2>
                <Filters label=words.by filters=filters/>
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
    .erased()
}

#[component]
fn GroupRow(group: UsageGroup, by: UsageBy, share: f64) -> impl IntoView {
    let language = t();
    let words = &language.plain().usage;
    let jobs = jobs_of(&group, by);
    let UsageGroup { name, worker_id, amount } = group;
    let shown = if name.is_empty() { words.no_label.to_owned() } else { name };
    let label = format!("{}: {shown}", words.share);
    let number = language.whole(amount.jobs);
    let of_whom = format!("{}: {number} · {shown}", words.jobs);
    let number = match jobs {
        Some(query) => {
            view! { <a class="quiet-link" href=jobs_address(&query) rel="external" aria-label=of_whom>{number}</a> }
                .erased()
        }
        None => number.erased(),
    };
    let name = match worker_id {
        Some(id) => {
            view! { <a class="row-link" href=format!("/admin/workers/{id}") rel="external">{shown}</a> }.erased()
        }
        None => view! { <bdi class="font-medium wrap-anywhere">{shown}</bdi> }.erased(),
    };
    view! {
        <tr>
            <th scope="row">{name}</th>
            <td class="num">{language.hours(amount.gpu_hours)}</td>
            <td class="share">
                <Scale percent=Some(share) label=label over=true/>
                <span class="row-sub">{language.percent(share)}</span>
            </td>
            <td class="num max-md:hidden">{language.span(millis(amount.run_hours * 3_600.0))}</td>
            <td class="num">{number}</td>
        </tr>
    }
    .erased()
}

/// The list of a group's jobs, if it can be asked for.
fn jobs_of(group: &UsageGroup, by: UsageBy) -> Option<JobsQuery> {
    let name = Some(group.name.clone()).filter(|name| !name.is_empty());
    let all = JobsQuery::default();
    match by {
        UsageBy::User => Some(JobsQuery { user: Some(name?), ..all }),
        UsageBy::Label => Some(JobsQuery { label: Some(name?), ..all }),
        UsageBy::Worker => Some(JobsQuery { worker: Some(group.worker_id.clone()?), ..all }),
        UsageBy::Config => None,
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
    fn an_address_names_the_last_days_or_from_one_to_another() {
        let asked = |query: &[(&str, &str)]| {
            let mut params = ParamsMap::new();
            for (name, value) in query {
                params.insert(name.to_string(), (*value).to_owned());
            }
            Asked::of(&params)
        };
        let now = Timestamp::parse_rfc3339("2024-01-31T12:00:00Z").expect("a moment");
        let days = asked(&[("days", "30"), ("by", "worker")]);
        assert_eq!(days.href("/usage"), "/usage?days=30&by=worker");
        assert_eq!(days.query(now).since.as_deref(), Some("2024-01-01T12:00:00.000Z"));
        let from = asked(&[("from", "2024-01-02"), ("to", "2024-01-03")]);
        let query = from.query(now);
        assert_eq!(query.since.as_deref(), Some("2024-01-02T00:00:00Z"));
        assert_eq!(query.until.as_deref(), Some("2024-01-04T00:00:00.000Z"), "the last day belongs to it");
        assert_eq!(from.href("/usage"), "/usage?from=2024-01-02&to=2024-01-03");
        let odd = asked(&[("days", "5000"), ("from", ""), ("to", "soon"), ("by", "x")]);
        assert_eq!((odd.days, odd.by, odd.query(now).until.as_deref()), (None, UsageBy::User, Some("soonT00:00:00Z")));
    }
}
