//! Who gets the next GPU: the shares of teams and their members. Admins manage them here.

mod settings;
mod team;

use leptos::prelude::*;

pub(crate) use self::team::{TeamMemberPage, TeamNewPage, TeamPage};
use crate::domain::access::Permission;
use crate::protocol::shares::{ShareView, SharesView, TeamShareView};
use crate::ui::backend::use_page_backend;
use crate::ui::components::action::ButtonLink;
use crate::ui::components::field::Field;
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::{ProblemNotice, ProblemPanel};
use crate::ui::components::progress_bar::ProgressBar;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, form_problem};
use crate::ui::form_errors::FormErrors;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::prefs::Prefs;

/// The path of the list; each team is below it.
pub(crate) const SHARES_URL: &str = "/shares";

#[component]
pub(crate) fn SharesPage() -> impl IntoView {
    let words = &t().server_pages().shares;
    let page_backend = use_page_backend();
    let manages = use_context::<Prefs>().is_some_and(|prefs| prefs.has_permission(Permission::AdminTeams));
    let shares = Resource::new(|| (), move |()| page_backend.shares());
    let shown = move || {
        Suspend::new(async move {
            match shares.await {
                Ok(shares) => view! { <SharesContent shares=shares manages=manages/> }.into_erased(),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    let create = manages.then(|| view! { <ButtonLink href="/shares/new" glyph=Glyph::Plus label=words.create/> });
    view! {
        <PageHeader title=t().nav.shares intro=words.intro>{create}</PageHeader>
        <Suspense fallback=Skeleton>{shown}</Suspense>
    }
    .into_erased()
}

#[component]
fn SharesContent(shares: SharesView, manages: bool) -> impl IntoView {
    let words = &t().server_pages().shares;
    let SharesView { rules, gpus, guaranteed_gpus, teams } = shares;
    let over_fleet = (guaranteed_gpus > gpus).then(|| {
        let text = words.over_fleet.with(&[&guaranteed_gpus, &gpus]);
        view! { <p class="notice notice-warn"><Icon glyph=Glyph::Warning/><span>{text}</span></p> }
    });
    let rows = teams.into_iter().map(|team| team_rows(team, manages)).collect_view();
    let half_life = manages.then(|| view! { <HalfLifeForm hours=rules.half_life_hours/> });
    view! {
        <div class="space-y-6">
            <div data-part="shares" class="space-y-6">
                {over_fleet}
                <section class="panel" aria-labelledby="shares">
                    <h2 id="shares" class="sr-only">{words.caption}</h2>
                    <div class="table-scroll">
                        <table class="data">
                            <caption class="sr-only">{words.caption}</caption>
                            <thead>
                                <tr>
                                    <th scope="col">{words.name}</th>
                                    <th scope="col" class="num max-md:hidden">{words.weight}</th>
                                    <th scope="col" class="num">{words.share}</th>
                                    <th scope="col">{words.used}</th>
                                    <th scope="col" class="num">{words.now}</th>
                                    <th scope="col" class="num max-md:hidden">{words.running}</th>
                                    <th scope="col" class="num">{words.waiting}</th>
                                    <th scope="col" class="num max-md:hidden">{words.month}</th>
                                    <th scope="col" class="num max-md:hidden">{words.owed}</th>
                                </tr>
                            </thead>
                            <tbody>{rows}</tbody>
                        </table>
                    </div>
                    <p class="p-5 text-sm text-muted">{words.owed_hint.of(rules.half_life_hours)}</p>
                </section>
            </div>
            {half_life}
        </div>
    }
    .into_erased()
}

/// A team and its members, one row each.
fn team_rows(team: TeamShareView, manages: bool) -> impl IntoView {
    let TeamShareView { share, members } = team;
    let name = if manages {
        let href = format!("{SHARES_URL}/{}", share.name);
        view! { <a class="row-link" href=href>{share.name.clone()}</a> }.into_erased()
    } else {
        view! { <bdi class="font-medium wrap-anywhere">{share.name.clone()}</bdi> }.into_erased()
    };
    let member_rows = members.into_iter().map(|member| {
        let name = view! { <bdi class="pl-4 wrap-anywhere">{member.name.clone()}</bdi> }.into_erased();
        share_row(&member, name)
    });
    (share_row(&share, name), member_rows.collect_view()).into_erased()
}

fn share_row(share: &ShareView, name: AnyView) -> impl IntoView + use<> {
    let language = t();
    let words = &language.server_pages().shares;
    let label = format!("{}: {}", words.used, share.name);
    let guaranteed = Some(share.settings.guaranteed_gpus).filter(|gpus| *gpus > 0);
    let notes = [
        guaranteed.map(|gpus| format!("{}: {gpus}", words.guaranteed)),
        (share.borrowed_gpus > 0 && guaranteed.is_some()).then(|| words.borrowed.of(share.borrowed_gpus)),
        (share.idle_gpus > 0).then(|| words.idle.of(share.idle_gpus)),
    ];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    let notes = (!notes.is_empty()).then(|| view! { <span class="row-sub">{notes.join(" · ")}</span> });
    let hours = share.settings.max_gpu_hours.map(|max| view! { <span class="row-sub">"/ "{max}</span> });
    view! {
        <tr>
            <th scope="row"><span class="block min-w-24">{name}</span></th>
            <td class="num max-md:hidden">{share.settings.weight}</td>
            <td class="num">{language.format_percent(share.share_percent)}</td>
            <td class="share">
                <ProgressBar percent=Some(share.used_percent) label=label over=true/>
                <span class="row-sub">{language.format_percent(share.used_percent)}</span>
            </td>
            <td class="num">{share.running_gpus}{notes}</td>
            <td class="num max-md:hidden">{share.running_jobs}</td>
            <td class="num">{share.waiting_jobs}</td>
            <td class="num max-md:hidden">{language.format_hours(share.month_gpu_hours)}{hours}</td>
            <td class="num max-md:hidden">{signed_hours(share.owed_gpu_hours)}</td>
        </tr>
    }
    .into_erased()
}

/// Hours with a sign, so that they are not read as usage.
fn signed_hours(hours: f64) -> String {
    let text = t().format_hours(hours.abs());
    if hours.abs() < 0.05 {
        "0".to_owned()
    } else if hours < 0.0 {
        format!("−{text}")
    } else {
        format!("+{text}")
    }
}

#[component]
fn HalfLifeForm(hours: u32) -> impl IntoView {
    let words = &t().server_pages().shares;
    let (problem, typed) = form_problem(FormName::ShareRules);
    let errors = FormErrors::from_problem(problem, &[("half_life_hours", &["half_life_hours"])]);
    let value = typed.get("half_life_hours").cloned().unwrap_or_else(|| hours.to_string());
    view! {
        <section class="panel form" aria-labelledby="rules">
            <h2 id="rules" class="panel-title">{words.settings}</h2>
            {errors.general().map(|problem| view! { <ProblemNotice problem=problem/> })}
            <form method="post" action="/ui/shares/rules" class="space-y-4">
                <Field id="half_life_hours" label=words.half_life hint=words.half_life_hint error=errors.message("half_life_hours")>
                    <input class="input w-40" id="half_life_hours" name="half_life_hours" type="number" required=true min="1" max="8760"
                        aria-describedby=errors.aria_describedby("half_life_hours", Some("half_life_hours-hint"))
                        aria-invalid=errors.aria_invalid("half_life_hours") value=value/>
                </Field>
                <div class="form-actions"><button class="btn">{words.save}</button></div>
            </form>
        </section>
    }
    .into_erased()
}
