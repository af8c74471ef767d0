//! The configuration and state of the server.

use leptos::prelude::*;

use crate::domain::text::escape;
use crate::domain::time::Millis;
use crate::protocol::system::{CheckView, EffectiveLimitsView, ServerView, SettingView, SystemView};
use crate::ui::backend::use_page_backend;
use crate::ui::clock::use_clock;
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::ProblemPanel;
use crate::ui::components::progress_bar::ProgressBar;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::components::time::RelativeTime;
use crate::ui::erase::Erase;
use crate::ui::format::to_f64;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;

/// A smaller difference between two clocks is not shown.
const CLOCK_TOLERANCE_MS: i64 = 1_000;

#[component]
pub(crate) fn SystemPage() -> impl IntoView {
    let page_backend = use_page_backend();
    let system = Resource::new(|| (), move |()| page_backend.system());
    let shown = move || {
        Suspend::new(async move {
            match system.await {
                Ok(system) => view! { <SystemContent system=system/> }.into_erased(),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! {
        <PageHeader title=t().nav.system intro=t().server_pages().system.intro>
            <a class="btn btn-sm" href="/api/admin/system/support" title=t().server_pages().system.support_hint>
                <Icon glyph=Glyph::Download/>{t().server_pages().system.support}
            </a>
        </PageHeader>
        <div data-part="facts"><Suspense fallback=Skeleton>{shown}</Suspense></div>
    }
    .into_erased()
}

#[component]
fn SystemContent(system: SystemView) -> impl IntoView {
    let settings = system.settings.clone();
    let (checks, servers, limits) = (system.checks.clone(), system.servers.clone(), system.in_force);
    view! {
        <div class="space-y-6">
            <div class="system-grid">
                <div class="space-y-6"><Checks checks=checks/><Server system=system.clone()/><EffectiveSettings values=limits/></div>
                <div class="space-y-6"><Database system=system.clone() servers=servers/><Storage system=system/></div>
            </div>
            <Settings settings=settings/>
        </div>
    }
    .into_erased()
}

/// A panel of names and values.
#[component]
fn Facts(id: &'static str, title: &'static str, children: Children) -> impl IntoView {
    view! {
        <section class="panel" aria-labelledby=id>
            <h2 id=id class="panel-head">{title}</h2>
            <dl class="facts">{children()}</dl>
        </section>
    }
    .into_erased()
}

#[component]
fn Fact(name: &'static str, children: Children) -> impl IntoView {
    view! { <div><dt>{name}</dt><dd>{children()}</dd></div> }.into_erased()
}

#[component]
fn Checks(checks: Vec<CheckView>) -> impl IntoView {
    let words = &t().server_pages().system;
    let row = |check: CheckView| {
        let (class, glyph, message) = match check.status.as_str() {
            "ok" => ("status status-good", Glyph::CheckCircle, words.ok),
            "warning" => ("status status-warn", Glyph::Warning, words.warning),
            _ => ("status status-bad", Glyph::CrossCircle, words.failed),
        };
        view! {
            <li class="fleet-row">
                <span class="min-w-0">
                    <code>{check.name}</code>
                    {check.detail.map(|detail| view! { <span class="row-sub">{detail}</span> })}
                </span>
                <span class=class><Icon glyph=glyph/><span>{message}</span></span>
            </li>
        }
    };
    view! {
        <section class="panel" aria-labelledby="checks">
            <h2 id="checks" class="panel-head">{words.checks}<code class="panel-note ml-auto">"/readyz"</code></h2>
            <ul class="rows">{checks.into_iter().map(row).collect_view()}</ul>
        </section>
    }
    .into_erased()
}

#[component]
fn Server(system: SystemView) -> impl IntoView {
    let (language, clock) = (t(), use_clock());
    let words = &language.server_pages().system;
    let offset = language.format_duration(Millis(system.clock_ahead_ms.abs()));
    let deviation = match system.clock_ahead_ms {
        ahead if ahead.abs() < CLOCK_TOLERANCE_MS => words.clock_same.to_owned(),
        ahead if ahead > 0 => words.clock_ahead.of(offset),
        _ => words.clock_behind.of(offset),
    };
    let streams = &system.streams;
    let format_integer = |number| language.format_integer(number);
    let streams = words.streams_of.with(&[
        &format_integer(streams.workers),
        &format_integer(streams.most_workers),
        &format_integer(streams.listeners),
    ]);
    let tls = match system.tls {
        None => view! { <Fact name=words.tls>{words.no_tls}</Fact> }.into_erased(),
        Some(tls) => {
            let ends = tls
                .ends_at
                .map(|at| view! { <span class="row-sub">{words.ends}" "{clock.format_timestamp(at)}</span> });
            let issuer = if tls.vouched_for { words.ca_signed } else { words.self_signed };
            view! {
                <Fact name=words.tls>{issuer}{ends}</Fact>
                <Fact name=words.fingerprint><code class="setting-value">{tls.fingerprint.to_string()}</code></Fact>
            }
            .into_erased()
        }
    };
    view! {
        <Facts id="server" title=words.server>
            <Fact name=words.version>{system.version}</Fact>
            <Fact name=words.started><RelativeTime at=system.started_at/></Fact>
            <Fact name=words.clock>{clock.format_timestamp(system.server_time)}<span class="row-sub">{deviation}</span></Fact>
            {tls}
            <Fact name=words.streams>{streams}</Fact>
        </Facts>
    }
    .into_erased()
}

#[component]
fn Database(system: SystemView, servers: Vec<ServerView>) -> impl IntoView {
    let language = t();
    let words = &language.server_pages().system;
    let database = system.database;
    let name = if database.engine == "sqlite" { "SQLite" } else { "PostgreSQL" };
    let wal = database.wal_bytes.map(|bytes| view! { <Fact name=words.wal>{language.format_bytes(bytes)}</Fact> });
    let schema = if database.schema == database.known_schema {
        database.schema.to_string()
    } else {
        language.common.of.with(&[&database.schema, &database.known_schema])
    };
    let backup = match system.backed_up_at {
        Some(at) => view! { <RelativeTime at=at/> }.into_erased(),
        None => view! { <span class="text-muted">{words.no_backup}</span> }.into_erased(),
    };
    let row = |server: ServerView| {
        let marks = [server.this.then_some(words.this_server), server.leads.then_some(words.leads)];
        let marks =
            marks.into_iter().flatten().map(|mark| view! { " "<span class="chip">{mark}</span> }).collect_view();
        let version = server
            .version
            .map(|version| view! { <span class="row-sub">{words.version}" "{escape(&version).into_owned()}</span> });
        let last_seen = server.seen_at.map(|at| view! { <span class="row-sub"><RelativeTime at=at/></span> });
        view! { <li><code class="wrap-anywhere">{escape(&server.id).into_owned()}</code>{marks}{version}{last_seen}</li> }
    };
    view! {
        <Facts id="database" title=words.database>
            <Fact name=words.engine>{name}" "{database.version}</Fact>
            <Fact name=words.size>{language.format_bytes(database.bytes)}</Fact>
            {wal}
            <Fact name=words.schema>{schema}</Fact>
            <Fact name=words.backup>{backup}</Fact>
            <Fact name=words.servers><ul class="space-y-1">{servers.into_iter().map(row).collect_view()}</ul></Fact>
        </Facts>
    }
    .into_erased()
}

#[component]
fn Storage(system: SystemView) -> impl IntoView {
    let language = t();
    let words = &language.server_pages().system;
    let disk = system.disk.map(|disk| {
        let used = disk.total.saturating_sub(disk.free);
        let full = disk.full_since.map(|at| view! { <span class="status status-warn"><Icon glyph=Glyph::Warning/><span>{words.full_since}" "<RelativeTime at=at/></span></span> });
        view! {
            <Fact name=words.disk>
                {words.disk_free.with(&[&language.format_bytes(disk.free), &language.format_bytes(disk.total)])}
                <ProgressBar percent=Some(to_f64(used) * 100.0 / to_f64(disk.total.max(1))) label=words.disk over=true/>
                <span class="row-sub">{words.disk_floor.of(language.format_bytes(disk.floor))}</span>
                {full}
            </Fact>
        }
    });
    view! {
        <Facts id="storage" title=words.storage>
            {disk}
            <Fact name=words.logs>{language.format_bytes(system.log_bytes)}</Fact>
            <Fact name=words.artifacts>{language.format_bytes(system.artifact_bytes)}</Fact>
            <Fact name=words.audit_log>{language.server_pages().audit.entries.of(system.audit_entries)}</Fact>
        </Facts>
    }
    .into_erased()
}

#[component]
fn EffectiveSettings(values: EffectiveLimitsView) -> impl IntoView {
    let language = t();
    let words = &language.server_pages().system;
    let seconds =
        |seconds: u64| language.format_duration(Millis::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX)));
    view! {
        <Facts id="in-force" title=words.in_force>
            <Fact name=words.heartbeat_interval>{seconds(values.heartbeat_interval)}</Fact>
            <Fact name=words.heartbeat_timeout>{seconds(values.heartbeat_timeout)}</Fact>
            <Fact name=words.offer_timeout>{seconds(values.offer_timeout)}</Fact>
            <Fact name=words.artifact_limit>{language.format_bytes(values.artifact_limit)}</Fact>
            <Fact name=words.log_limit>{language.format_bytes(values.log_limit)}</Fact>
            <Fact name=words.most_artifacts>{language.format_integer(values.most_artifacts)}</Fact>
        </Facts>
    }
    .into_erased()
}

#[component]
fn Settings(settings: Vec<SettingView>) -> impl IntoView {
    let words = &t().server_pages().system;
    let row = |setting: SettingView| {
        let source = match setting.source.as_str() {
            "flag" => words.from_flag,
            "environment" => words.from_environment,
            _ => words.from_default,
        };
        let is_changed = setting.source != "default";
        let value = match setting.value {
            None => view! { <span class="text-muted">{words.not_set}</span> }.into_erased(),
            Some(value) if value == "(not shown)" => {
                view! { <span class="text-muted">{words.hidden}</span> }.into_erased()
            }
            Some(value) => view! { <code class="setting-value">{escape(&value).into_owned()}</code> }.into_erased(),
        };
        view! {
            <tr>
                <th scope="row"><code>{setting.flag}</code>{setting.variable.map(|name| view! { <code class="row-sub max-md:hidden">{name}</code> })}</th>
                <td>{value}</td>
                <td class=if is_changed { "font-medium" } else { "text-muted" }>{source}</td>
            </tr>
        }
    };
    view! {
        <section class="panel" aria-labelledby="settings">
            <div class="panel-head"><h2 id="settings">{words.settings}</h2><span class="panel-note max-md:hidden">{words.settings_hint}</span></div>
            <table class="data">
                <caption class="sr-only">{words.settings_hint}</caption>
                <thead>
                    <tr>
                        <th scope="col">{words.setting}</th>
                        <th scope="col">{words.value}</th>
                        <th scope="col">{words.source}</th>
                    </tr>
                </thead>
                <tbody>{settings.into_iter().map(row).collect_view()}</tbody>
            </table>
        </section>
    }
    .into_erased()
}
