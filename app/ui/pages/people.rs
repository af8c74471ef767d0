//! Everybody who may use the server, and the form that adds somebody.

use leptos::prelude::*;

use super::{Skeleton, use_desk};
use crate::domain::access::Role;
use crate::protocol::access::UserView;
use crate::ui::components::failure::{Failure, Refusal};
use crate::ui::components::field::Field;
use crate::ui::components::icon::{Glyph, Icon};
use crate::ui::components::page_head::PageHead;
use crate::ui::components::time::Moment;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, refused};
use crate::ui::i18n::t;

/// The page.
#[component]
pub(crate) fn PeoplePage() -> impl IntoView {
    let words = &t().plain().people;
    let desk = use_desk();
    let people = Resource::new(|| (), move |()| desk.people());
    let shown = move || {
        Suspend::new(async move {
            match people.await {
                Ok(page) => {
                    let rows = page.users.into_iter().map(|user| view! { <Row user=user/> }).collect_view();
                    view! {
                        <div class="space-y-6">
                            <section class="panel"><ul class="rows">{rows}</ul></section>
                            <Add/>
                            <Roles/>
                        </div>
                    }
                    .erased()
                }
                Err(problem) => view! { <Failure problem=problem/> }.erased(),
            }
        })
    };
    view! {
        <PageHead title=t().nav.people intro=words.intro/>
        <Suspense fallback=Skeleton>{shown}</Suspense>
    }
    .erased()
}

#[component]
fn Row(user: UserView) -> impl IntoView {
    let words = &t().plain().people;
    view! {
        <li class="fleet-row">
            <span class="min-w-0">
                <a class="row-link font-medium" href=format!("/admin/users/{}", user.id)>{user.name}</a>
                <span class="row-sub">{user.role.as_str()}", "{words.since}" "<Moment at=user.created_at/></span>
            </span>
            {user.disabled.then(|| view! { <span class="text-sm text-bad">{words.shut_out}</span> })}
        </li>
    }
    .erased()
}

/// A choice among the roles.
#[component]
pub(super) fn RoleSelect(chosen: Role) -> impl IntoView {
    let option = |role: Role| view! { <option value=role.as_str() selected=role == chosen>{role.as_str()}</option> };
    view! {
        <select class="select w-full" id="role" name="role">{Role::ALL.into_iter().map(option).collect_view()}</select>
    }
    .erased()
}

#[component]
fn Add() -> impl IntoView {
    let words = &t().plain().people;
    let (problem, typed) = refused(FormName::Person);
    let name = typed.get("name").cloned().unwrap_or_default();
    let role = typed.get("role").and_then(|role| Role::parse(role)).unwrap_or(Role::Researcher);
    view! {
        <section class="panel form" aria-labelledby="add">
            <h2 id="add" class="panel-title">{words.add}</h2>
            {problem.map(|problem| view! { <Refusal problem=problem/> })}
            <form method="post" action="/ui/users" class="space-y-4">
                <Field id="name" label=t().plain().login.name hint=t().plain().login.name_hint>
                    <input class="input w-full" id="name" name="name" required=true maxlength="32" autocomplete="off"
                        autocapitalize="none" aria-describedby="name-hint" value=name/>
                </Field>
                <Field id="role" label=words.role><RoleSelect chosen=role/></Field>
                <Field id="password" label=t().plain().login.password hint=words.password_optional optional=true>
                    <input class="input w-full" id="password" name="password" type="password" autocomplete="new-password"
                        minlength="10" aria-describedby="password-hint"/>
                </Field>
                <div class="form-actions">
                    <button class="btn btn-primary"><Icon glyph=Glyph::Plus/>{words.add_submit}</button>
                </div>
            </form>
        </section>
    }
    .erased()
}

#[component]
fn Roles() -> impl IntoView {
    let words = &t().plain().people;
    let entry = |role: Role| {
        let text = match role {
            Role::Viewer => words.viewer,
            Role::Researcher => words.researcher,
            Role::Lead => words.lead,
            Role::Admin => words.admin,
        };
        view! { <div><dt class="font-medium">{role.as_str()}</dt><dd class="text-muted">{text}</dd></div> }
    };
    view! {
        <section class="panel p-5" aria-labelledby="roles">
            <h2 id="roles" class="panel-title">{words.roles_title}</h2>
            <dl class="mt-3 space-y-3 text-sm">{Role::ALL.into_iter().map(entry).collect_view()}</dl>
        </section>
    }
    .erased()
}
