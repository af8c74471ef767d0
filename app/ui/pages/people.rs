//! Everybody who may use the server, and the form that adds somebody.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use leptos_router::params::ParamsMap;

use super::{Skeleton, asked, use_desk};
use crate::domain::access::Role;
use crate::domain::password::SHORTEST;
use crate::protocol::access::{ListedUser, UserCounts, UsersPage, UsersQuery};
use crate::ui::components::empty::Empty;
use crate::ui::components::failure::{Failure, Refusal};
use crate::ui::components::field::Field;
use crate::ui::components::filters::{Filter, Filters};
use crate::ui::components::icon::{Glyph, Icon};
use crate::ui::components::list::ListSearch;
use crate::ui::components::page_head::PageHead;
use crate::ui::components::pager::Pager;
use crate::ui::components::time::Moment;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, refused};
use crate::ui::format::query_string;
use crate::ui::i18n::t;

/// How many people a page shows.
const PAGE: u32 = 100;

fn query_of(params: &ParamsMap) -> UsersQuery {
    UsersQuery {
        q: asked(params, "q"),
        role: asked(params, "role").and_then(|role| Role::parse(&role)),
        disabled: (params.get_str("disabled") == Some("true")).then_some(true),
        limit: Some(PAGE),
        cursor: asked(params, "cursor"),
    }
}

fn address(query: &UsersQuery) -> String {
    let UsersQuery { q, role, disabled, cursor, .. } = query.clone();
    let (role, disabled) = (role.map(|role| role.as_str().to_owned()), disabled.map(|disabled| disabled.to_string()));
    format!("/admin/users{}", query_string(&[("q", q), ("role", role), ("disabled", disabled), ("cursor", cursor)]))
}

/// The page.
#[component]
pub(crate) fn PeoplePage() -> impl IntoView {
    let words = &t().plain().people;
    let (desk, query) = (use_desk(), use_query_map().with_untracked(query_of));
    let people = Resource::new(|| (), {
        let query = query.clone();
        move |()| desk.people(query.clone())
    });
    let shown = move || {
        let query = query.clone();
        Suspend::new(async move {
            match people.await {
                Ok(page) => view! {
                    <Filters label=words.role filters=filters(&query, page.counts)/>
                    <div class="asking">{search(&query)}</div>
                    <div class="space-y-6">
                        <div data-part="people"><List page=page query=query/></div>
                        <Add/>
                        <Roles/>
                    </div>
                }
                .erased(),
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

/// The roles, counted among those whose name is as it is asked for.
fn filters(query: &UsersQuery, counts: UserCounts) -> Vec<Filter> {
    let filter = |label, count, role, disabled| Filter {
        href: address(&UsersQuery { role, disabled, cursor: None, ..query.clone() }),
        label,
        count: Some(count),
        current: query.role == role && query.disabled == disabled,
    };
    let all = Role::ALL.iter().map(|role| counts.of(*role)).sum::<u64>() + counts.disabled;
    let each = Role::ALL.into_iter().map(|role| filter(role.as_str(), counts.of(role), Some(role), None));
    let shut_out = filter(t().plain().people.shut_out, counts.disabled, None, Some(true));
    std::iter::once(filter(t().common.all, all, None, None)).chain(each).chain([shut_out]).collect()
}

fn search(query: &UsersQuery) -> AnyView {
    let role = query.role.map(|role| role.as_str().to_owned());
    let keeps = vec![("role", role), ("disabled", query.disabled.map(|disabled| disabled.to_string()))];
    view! { <ListSearch action="/admin/users" q=query.q.clone() keeps=keeps hint=t().plain().login.name/> }.erased()
}

#[component]
fn List(page: UsersPage, query: UsersQuery) -> impl IntoView {
    let words = t().plain();
    if page.users.is_empty() {
        return view! {
            <div class="panel">
                <Empty glyph=Glyph::Search title=words.people.none text=words.people.none_hint>
                    <a class="btn btn-sm" href="/admin/users">{t().workers.clear}</a>
                </Empty>
            </div>
        }
        .erased();
    }
    let first = query.cursor.is_some().then(|| address(&UsersQuery { cursor: None, ..query.clone() }));
    let next = page.next_cursor.map(|cursor| address(&UsersQuery { cursor: Some(cursor), ..query }));
    view! {
        <div>
            <div class="panel">
                <table class="data">
                    <caption class="sr-only">{t().nav.people}</caption>
                    <thead>
                        <tr>
                            <th scope="col">{words.login.name}</th>
                            <th scope="col">{words.people.role}</th>
                            <th scope="col">{words.account.used}</th>
                            <th scope="col" class="num max-md:hidden">{words.account.tokens}</th>
                            <th scope="col" class="max-md:hidden">{words.people.added}</th>
                        </tr>
                    </thead>
                    <tbody>{page.users.into_iter().map(|user| view! { <Row listed=user/> }).collect_view()}</tbody>
                </table>
            </div>
            <Pager label=t().nav.people first=first next=next names=(t().common.first, t().workers.next)/>
        </div>
    }
    .erased()
}

#[component]
fn Row(listed: ListedUser) -> impl IntoView {
    let words = t().plain();
    let ListedUser { user, last_used_at, tokens, second_factor } = listed;
    let used = match last_used_at {
        Some(at) => view! { <Moment at=at/> }.erased(),
        None => words.account.never_used.into_any(),
    };
    view! {
        <tr>
            <th scope="row">
                <a class="row-link font-medium" href=format!("/admin/users/{}", user.id)>{user.name}</a>
                {user.disabled.then(|| view! { <span class="row-sub text-bad">{words.people.shut_out}</span> })}
            </th>
            <td>
                {user.role.as_str()}
                {second_factor.then(|| view! { <span class="row-sub">{words.factors.title}</span> })}
            </td>
            <td class="text-muted">{used}</td>
            <td class="num max-md:hidden">{t().whole(tokens)}</td>
            <td class="text-muted max-md:hidden"><Moment at=user.created_at/></td>
        </tr>
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
                        minlength=SHORTEST.to_string() aria-describedby="password-hint"/>
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_queries_are_inverse() {
        let mut params = ParamsMap::new();
        for (name, value) in [("q", " a&b "), ("role", "lead"), ("disabled", "true"), ("cursor", "ada")] {
            params.insert(name, value.to_owned());
        }
        assert_eq!(address(&query_of(&params)), "/admin/users?q=a%26b&role=lead&disabled=true&cursor=ada");
        assert_eq!(address(&query_of(&ParamsMap::new())), "/admin/users");
    }
}
