//! One user: role, password, second factors, tokens, and sessions.

use leptos::prelude::*;
use leptos_router::hooks::use_params_map;

use super::account::{SessionList, TokenList};
use super::second_factor::UserFactors;
use super::users::RoleSelect;
use crate::domain::ids::UserId;
use crate::domain::password::MIN_CHARS;
use crate::protocol::access::{UserDetail, UserView};
use crate::protocol::problem::Problem;
use crate::ui::backend::use_page_backend;
use crate::ui::components::action::ConfirmedForm;
use crate::ui::components::field::Field;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::{ProblemNotice, ProblemPanel};
use crate::ui::components::skeleton::Skeleton;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, form_problem};
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;

#[component]
pub(crate) fn UserDetailPage() -> impl IntoView {
    let page_backend = use_page_backend();
    let id = use_params_map().with_untracked(|params| params.get("id")).unwrap_or_default();
    let user_detail = Resource::new(
        || (),
        move |()| {
            let (page_backend, id) = (page_backend.clone(), UserId::parse(&id));
            async move {
                match id {
                    Ok(id) => page_backend.user(id).await,
                    Err(_) => Err(Problem::new(404, "Not Found", "user_not_found", String::new())),
                }
            }
        },
    );
    let shown = move || {
        Suspend::new(async move {
            match user_detail.await {
                Ok(user_detail) => view! { <UserContent user_detail=user_detail/> }.into_erased(),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! { <Suspense fallback=Skeleton>{shown}</Suspense> }.into_erased()
}

#[component]
fn UserContent(user_detail: UserDetail) -> impl IntoView {
    let words = &t().server_pages().users;
    let UserDetail { user, tokens, sessions, factors } = user_detail;
    let user_url = format!("/admin/users/{}", user.id);
    let form = format!("/ui/users/{}", user.id);
    view! {
        <PageHeader title=user.name.clone() above=("/admin/users", t().nav.users) intro=words.user_intro/>
        <div class="space-y-6">
            <AccessForm form=form.clone() user=user/>
            <PasswordResetForm form=format!("{form}/password")/>
            <UserFactors factors=factors form=form.clone()/>
            <TokenList tokens=tokens back=user_url.clone() none=words.no_tokens/>
            <SessionList sessions=sessions back=user_url/>
        </div>
    }
    .into_erased()
}

#[component]
fn AccessForm(form: String, user: UserView) -> impl IntoView {
    let words = &t().server_pages().users;
    let (problem, _) = form_problem(FormName::User);
    let role = user.role.as_str();
    let enabled_field = || view! { <input type="hidden" name="enabled" value="on"/> };
    let access_form = if user.disabled {
        view! {
            <form method="post" action=form.clone() class="form-actions items-center">
                <span class="text-bad">{words.disabled}</span>
                <input type="hidden" name="role" value=role/>
                {enabled_field()}
                <button class="btn btn-sm">{words.enable}</button>
            </form>
        }
        .into_erased()
    } else {
        view! {
            <ConfirmedForm action=form.clone() label=words.disable text=words.disable_text confirm=words.disable_confirm glyph=Glyph::StopCircle>
                <input type="hidden" name="role" value=role/>
            </ConfirmedForm>
        }
        .into_erased()
    };
    view! {
        <section class="panel form" aria-labelledby="access">
            <h2 id="access" class="panel-title">{words.access}</h2>
            {problem.map(|problem| view! { <ProblemNotice problem=problem/> })}
            <form method="post" action=form.clone() class="space-y-4">
                {(!user.disabled).then(enabled_field)}
                <Field id="role" label=words.role><RoleSelect chosen=user.role/></Field>
                <div class="form-actions"><button class="btn btn-primary">{words.save}</button></div>
            </form>
            {access_form}
        </section>
    }
    .into_erased()
}

#[component]
fn PasswordResetForm(form: String) -> impl IntoView {
    let words = &t().server_pages().users;
    let (problem, _) = form_problem(FormName::Password);
    let open = problem.is_some();
    view! {
        <section class="panel form" aria-labelledby="password">
            <h2 id="password" class="panel-title">{t().server_pages().account.new_password}</h2>
            {problem.map(|problem| view! { <ProblemNotice problem=problem/> })}
            <ConfirmedForm action=form label=words.reset text=words.reset_text confirm=words.reset_confirm glyph=Glyph::Key open=open>
                <Field id="new" label=t().server_pages().account.new_password hint=t().server_pages().login.password_hint>
                    <input class="input w-full" id="new" name="new" type="password" autocomplete="new-password" required=true
                        minlength=MIN_CHARS.to_string() aria-describedby="new-hint"/>
                </Field>
            </ConfirmedForm>
        </section>
    }
    .into_erased()
}
