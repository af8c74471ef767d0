//! Somebody: what they may do, and what is signed in as them.

use leptos::prelude::*;
use leptos_router::hooks::use_params_map;

use super::account::{Sessions, Tokens};
use super::people::RoleSelect;
use super::second_factor::FactorsOf;
use super::{Skeleton, use_desk};
use crate::domain::ids::UserId;
use crate::domain::password::SHORTEST;
use crate::protocol::access::{UserDetail, UserView};
use crate::protocol::problem::Problem;
use crate::ui::components::action::Question;
use crate::ui::components::failure::{Failure, Refusal};
use crate::ui::components::field::Field;
use crate::ui::components::icon::Glyph;
use crate::ui::components::page_head::PageHead;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, refused};
use crate::ui::i18n::t;

/// The page.
#[component]
pub(crate) fn PersonPage() -> impl IntoView {
    let desk = use_desk();
    let id = use_params_map().with_untracked(|params| params.get("id")).unwrap_or_default();
    let person = Resource::new(
        || (),
        move |()| {
            let (desk, id) = (desk.clone(), UserId::parse(&id));
            async move {
                match id {
                    Ok(id) => desk.person(id).await,
                    Err(_) => Err(Problem::new(404, "Not Found", "user_not_found", String::new())),
                }
            }
        },
    );
    let shown = move || {
        Suspend::new(async move {
            match person.await {
                Ok(person) => view! { <Somebody person=person/> }.erased(),
                Err(problem) => view! { <Failure problem=problem/> }.erased(),
            }
        })
    };
    view! { <Suspense fallback=Skeleton>{shown}</Suspense> }.erased()
}

#[component]
fn Somebody(person: UserDetail) -> impl IntoView {
    let words = &t().plain().people;
    let UserDetail { user, tokens, sessions, factors } = person;
    let page = format!("/admin/users/{}", user.id);
    let form = format!("/ui/users/{}", user.id);
    view! {
        <PageHead title=user.name.clone() above=("/admin/users", t().nav.people) intro=words.person_intro/>
        <div class="space-y-6">
            <Access form=form.clone() user=user/>
            <NewPassword form=format!("{form}/password")/>
            <FactorsOf factors=factors form=form.clone()/>
            <Tokens tokens=tokens back=page.clone() none=words.no_tokens/>
            <Sessions sessions=sessions back=page/>
        </div>
    }
    .erased()
}

#[component]
fn Access(form: String, user: UserView) -> impl IntoView {
    let words = &t().plain().people;
    let (problem, _) = refused(FormName::Person);
    let role = user.role.as_str();
    let let_in = || view! { <input type="hidden" name="let_in" value="on"/> };
    let door = if user.disabled {
        view! {
            <form method="post" action=form.clone() class="form-actions items-center">
                <span class="text-bad">{words.shut_out}</span>
                <input type="hidden" name="role" value=role/>
                {let_in()}
                <button class="btn btn-sm">{words.let_in}</button>
            </form>
        }
        .erased()
    } else {
        view! {
            <Question action=form.clone() label=words.shut text=words.shut_text confirm=words.shut_confirm glyph=Glyph::StopCircle>
                <input type="hidden" name="role" value=role/>
            </Question>
        }
        .erased()
    };
    view! {
        <section class="panel form" aria-labelledby="access">
            <h2 id="access" class="panel-title">{words.access}</h2>
            {problem.map(|problem| view! { <Refusal problem=problem/> })}
            <form method="post" action=form.clone() class="space-y-4">
                {(!user.disabled).then(let_in)}
                <Field id="role" label=words.role><RoleSelect chosen=user.role/></Field>
                <div class="form-actions"><button class="btn btn-primary">{words.save}</button></div>
            </form>
            {door}
        </section>
    }
    .erased()
}

#[component]
fn NewPassword(form: String) -> impl IntoView {
    let words = &t().plain().people;
    let (problem, _) = refused(FormName::Password);
    let open = problem.is_some();
    view! {
        <section class="panel form" aria-labelledby="password">
            <h2 id="password" class="panel-title">{t().plain().account.new_password}</h2>
            {problem.map(|problem| view! { <Refusal problem=problem/> })}
            <Question action=form label=words.reset text=words.reset_text confirm=words.reset_confirm glyph=Glyph::Key open=open>
                <Field id="new" label=t().plain().account.new_password hint=t().plain().login.password_hint>
                    <input class="input w-full" id="new" name="new" type="password" autocomplete="new-password" required=true
                        minlength=SHORTEST.to_string() aria-describedby="new-hint"/>
                </Field>
            </Question>
        </section>
    }
    .erased()
}
