//! Creates, changes and deletes teams, and manages their members.

use leptos::prelude::*;
use leptos_router::hooks::use_params_map;

use super::SHARES_URL;
use super::settings::{ShareFields, TEAM_FIELDS};
use crate::domain::job_share::DEFAULT_TEAM;
use crate::domain::shares::ShareSettings;
use crate::protocol::problem::Problem;
use crate::protocol::shares::{TeamMemberView, TeamView};
use crate::ui::backend::use_page_backend;
use crate::ui::components::action::ConfirmedForm;
use crate::ui::components::field::Field;
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::{ProblemNotice, ProblemPanel};
use crate::ui::components::skeleton::Skeleton;
use crate::ui::components::time::RelativeTime;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, form_problem};
use crate::ui::form_errors::FormErrors;
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;

#[component]
pub(crate) fn TeamNewPage() -> impl IntoView {
    let words = &t().server_pages().shares;
    let (problem, typed) = form_problem(FormName::Team);
    let errors = FormErrors::from_problem(problem, TEAM_FIELDS);
    let filled = |name: &str| typed.get(name).cloned().unwrap_or_default();
    let (name, description) = (filled("name"), filled("description"));
    view! {
        <PageHeader title=words.create above=(SHARES_URL, t().nav.shares) intro=words.new_intro/>
        {errors.general().map(|problem| view! { <ProblemNotice problem=problem/> })}
        <form method="post" action="/ui/teams" class="panel form">
            <Field id="name" label=words.name hint=words.name_hint error=errors.message("name")>
                <input class="input w-full font-mono" id="name" name="name" required=true maxlength="32" autocomplete="off"
                    autocapitalize="none" spellcheck="false" aria-describedby=errors.aria_describedby("name", Some("name-hint"))
                    aria-invalid=errors.aria_invalid("name") autofocus=errors.is_first("name") value=name/>
            </Field>
            <DescriptionField description=description errors=errors/>
            <ShareFields settings=ShareSettings::default() typed=typed errors=errors/>
            <div class="form-actions">
                <button class="btn btn-primary">{words.create}</button>
                <a class="btn btn-ghost" href=SHARES_URL>{t().common.cancel}</a>
            </div>
        </form>
    }
    .into_erased()
}

#[component]
fn DescriptionField(description: String, errors: FormErrors) -> impl IntoView {
    view! {
        <Field id="description" label=t().server_pages().shares.description optional=true error=errors.message("description")>
            <input class="input w-full" id="description" name="description" maxlength="200" autocomplete="off"
                aria-describedby=errors.aria_describedby("description", None) aria-invalid=errors.aria_invalid("description")
                autofocus=errors.is_first("description") value=description/>
        </Field>
    }
    .into_erased()
}

#[component]
pub(crate) fn TeamPage() -> impl IntoView {
    let team = team_of_page();
    let shown = move || {
        Suspend::new(async move {
            match team.await {
                Ok(team) => view! { <TeamContent team=team/> }.into_erased(),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! { <Suspense fallback=Skeleton>{shown}</Suspense> }.into_erased()
}

fn team_of_page() -> Resource<Result<TeamView, Problem>> {
    let page_backend = use_page_backend();
    let name = use_params_map().with_untracked(|params| params.get("team")).unwrap_or_default();
    Resource::new(|| (), move |()| page_backend.team(name.clone()))
}

#[component]
fn TeamContent(team: TeamView) -> impl IntoView {
    let words = &t().server_pages().shares;
    let (problem, typed) = form_problem(FormName::Team);
    let errors = FormErrors::from_problem(problem, TEAM_FIELDS);
    let form = format!("/ui/teams/{}", team.name);
    let description = typed.get("description").cloned().unwrap_or_else(|| team.description.clone());
    let user = typed.get("user").cloned().unwrap_or_default();
    let is_default = team.name == DEFAULT_TEAM;
    let everyone = is_default.then(|| view! { <p class="px-5 pt-5 text-muted">{words.everyone}</p> });
    let none =
        (team.members.is_empty() && !is_default).then(|| view! { <p class="p-5 text-muted">{words.no_members}</p> });
    let rows = team.members.iter().map(|member| member_row(&team.name, member)).collect_view();
    let delete = (!is_default).then(|| {
        view! {
            <ConfirmedForm action=format!("{form}/delete") label=words.delete text=words.delete_text confirm=words.delete
                glyph=Glyph::Trash class="btn btn-sm btn-ghost text-bad"/>
        }
    });
    view! {
        <PageHeader title=team.name.clone() above=(SHARES_URL, t().nav.shares)>{delete}</PageHeader>
        {errors.general().map(|problem| view! { <ProblemNotice problem=problem/> })}
        <div class="space-y-6">
            <section class="panel form" aria-labelledby="settings">
                <h2 id="settings" class="panel-title">{words.settings}</h2>
                <form method="post" action=form.clone() class="space-y-4">
                    <DescriptionField description=description errors=errors/>
                    <ShareFields settings=team.settings typed=typed errors=errors/>
                    <div class="form-actions"><button class="btn btn-primary">{words.save}</button></div>
                </form>
            </section>
            <section class="panel" aria-labelledby="members">
                <h2 id="members" class="panel-head">{words.members}</h2>
                <div data-part="members">{everyone}{none}<ul class="rows">{rows}</ul></div>
                <form method="post" action=format!("{form}/members") class="form space-y-4">
                    <Field id="user" label=words.user error=errors.message("user")>
                        <input class="input w-full" id="user" name="user" required=true maxlength="64" autocomplete="off" autocapitalize="none"
                            spellcheck="false" aria-describedby=errors.aria_describedby("user", None) aria-invalid=errors.aria_invalid("user")
                            autofocus=errors.is_first("user") value=user/>
                    </Field>
                    <div class="form-actions"><button class="btn"><Icon glyph=Glyph::Plus/>{words.add_member}</button></div>
                </form>
            </section>
        </div>
    }
    .into_erased()
}

fn member_row(team: &str, member: &TeamMemberView) -> impl IntoView + use<> {
    let words = &t().server_pages().shares;
    let TeamMemberView { user, since, settings } = member.clone();
    let limits = [
        (words.guaranteed, Some(settings.guaranteed_gpus).filter(|gpus| *gpus > 0)),
        (words.max_gpus, settings.max_gpus),
        (words.max_gpu_hours, settings.max_gpu_hours),
        (words.max_running_jobs, settings.max_running_jobs),
        (words.max_waiting_jobs, settings.max_waiting_jobs),
    ];
    let limits = limits.into_iter().filter_map(|(label, limit)| Some(format!("{label}: {}", limit?)));
    let facts = std::iter::once(format!("{}: {}", words.weight, settings.weight)).chain(limits);
    let facts = facts.collect::<Vec<_>>().join(" · ");
    view! {
        <li class="fleet-row">
            <span class="min-w-0">
                <bdi class="font-medium wrap-anywhere">{user.clone()}</bdi>
                <span class="row-sub">{facts}" · "<RelativeTime at=since/></span>
            </span>
            <span class="flex gap-2">
                <a class="btn btn-sm" href=format!("{SHARES_URL}/{team}/{user}") aria-label=format!("{}: {user}", words.change)>{words.change}</a>
                <ConfirmedForm action=format!("/ui/teams/{team}/members/{user}/remove") label=words.remove
                    named=Some(format!("{}: {user}", words.remove)) text=words.remove_text confirm=words.remove_confirm
                    class="btn btn-sm btn-ghost text-bad"/>
            </span>
        </li>
    }
    .into_erased()
}

#[component]
pub(crate) fn TeamMemberPage() -> impl IntoView {
    let team = team_of_page();
    let user = use_params_map().with_untracked(|params| params.get("user")).unwrap_or_default();
    let shown = move || {
        let user = user.clone();
        Suspend::new(async move {
            let (team, member) = match team.await {
                Ok(team) => (team.name, team.members.into_iter().find(|member| member.user == user)),
                Err(problem) => return view! { <ProblemPanel problem=problem/> }.into_erased(),
            };
            if let Some(member) = member {
                view! { <MemberForm team=team member=member/> }.into_erased()
            } else {
                let problem = Problem::new(404, "Not Found", "user_not_found", String::new());
                view! { <ProblemPanel problem=problem/> }.into_erased()
            }
        })
    };
    view! { <Suspense fallback=Skeleton>{shown}</Suspense> }.into_erased()
}

#[component]
fn MemberForm(team: String, member: TeamMemberView) -> impl IntoView {
    let words = &t().server_pages().shares;
    let (problem, typed) = form_problem(FormName::Team);
    let errors = FormErrors::from_problem(problem, TEAM_FIELDS);
    let team_url = format!("{SHARES_URL}/{team}");
    view! {
        <PageHeader title=member.user.clone() above=(team_url.clone(), team.clone())/>
        {errors.general().map(|problem| view! { <ProblemNotice problem=problem/> })}
        <form method="post" action=format!("/ui/teams/{team}/members/{}", member.user) class="panel form">
            <ShareFields settings=member.settings typed=typed errors=errors/>
            <div class="form-actions">
                <button class="btn btn-primary">{words.save}</button>
                <a class="btn btn-ghost" href=team_url>{t().common.cancel}</a>
            </div>
        </form>
    }
    .into_erased()
}
