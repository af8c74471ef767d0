//! The list of users, and the form that adds one.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;
use leptos_router::params::ParamsMap;

use crate::domain::access::Role;
use crate::domain::password::MIN_CHARS;
use crate::protocol::access::{ListedUser, UserCounts, UsersPage, UsersQuery};
use crate::ui::backend::use_page_backend;
use crate::ui::components::empty_panel::EmptyPanel;
use crate::ui::components::field::Field;
use crate::ui::components::filters::{FilterBar, FilterLink};
use crate::ui::components::icon::Icon;
use crate::ui::components::list_controls::ListSearch;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::pager::Pager;
use crate::ui::components::problem_panel::{ProblemNotice, ProblemPanel};
use crate::ui::components::skeleton::Skeleton;
use crate::ui::components::time::RelativeTime;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, form_problem};
use crate::ui::form_errors::{FieldAliases, FormErrors};
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::page_query::{from_params, query_pairs, query_string};

/// Number of users per page.
const PAGE_SIZE: u32 = 100;

fn query_from_params(params: &ParamsMap) -> UsersQuery {
    UsersQuery { limit: Some(PAGE_SIZE), ..from_params(params) }
}

fn users_url(query: &UsersQuery) -> String {
    format!("/admin/users{}", query_string(&UsersQuery { limit: None, ..query.clone() }))
}

#[component]
pub(crate) fn UserListPage() -> impl IntoView {
    let words = &t().server_pages().users;
    let (page_backend, query) = (use_page_backend(), use_query_map().with_untracked(query_from_params));
    let users = Resource::new(|| (), {
        let query = query.clone();
        move |()| page_backend.users(query.clone())
    });
    let shown = move || {
        let query = query.clone();
        Suspend::new(async move {
            match users.await {
                Ok(page) => view! {
                    <FilterBar label=words.role filters=role_filters(&query, page.counts)/>
                    <div class="asking">{search_form(&query)}</div>
                    <div class="space-y-6">
                        <div data-part="users"><UserTable page=page query=query/></div>
                        <AddUserForm/>
                        <RoleHelp/>
                    </div>
                }
                .into_erased(),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! {
        <PageHeader title=t().nav.users intro=words.intro/>
        <Suspense fallback=Skeleton>{shown}</Suspense>
    }
    .into_erased()
}

/// The filters by role, with the number of users that match the search.
fn role_filters(query: &UsersQuery, counts: UserCounts) -> Vec<FilterLink> {
    let filter = |label, count, role, disabled| FilterLink {
        href: users_url(&UsersQuery { role, disabled, cursor: None, ..query.clone() }),
        label,
        count: Some(count),
        current: query.role == role && query.disabled == disabled,
    };
    let all = Role::ALL.iter().map(|role| counts.count(*role)).sum::<u64>() + counts.disabled;
    let each = Role::ALL.into_iter().map(|role| filter(role.as_str(), counts.count(role), Some(role), None));
    let disabled = filter(t().server_pages().users.disabled, counts.disabled, None, Some(true));
    std::iter::once(filter(t().common.all, all, None, None)).chain(each).chain([disabled]).collect()
}

fn search_form(query: &UsersQuery) -> AnyView {
    let hidden_fields = query_pairs(&UsersQuery { q: None, cursor: None, limit: None, ..query.clone() });
    let hint = t().server_pages().login.name;
    view! { <ListSearch action="/admin/users" q=query.q.clone() hidden_fields=hidden_fields hint=hint/> }.into_erased()
}

#[component]
fn UserTable(page: UsersPage, query: UsersQuery) -> impl IntoView {
    let words = t().server_pages();
    if page.users.is_empty() {
        return view! {
            <div class="panel">
                <EmptyPanel glyph=Glyph::Search title=words.users.none text=words.users.none_hint>
                    <a class="btn btn-sm" href="/admin/users">{t().workers.clear}</a>
                </EmptyPanel>
            </div>
        }
        .into_erased();
    }
    let first = query.cursor.is_some().then(|| users_url(&UsersQuery { cursor: None, ..query.clone() }));
    let next = page.next_cursor.map(|cursor| users_url(&UsersQuery { cursor: Some(cursor), ..query }));
    view! {
        <div>
            <div class="panel">
                <table class="data">
                    <caption class="sr-only">{t().nav.users}</caption>
                    <thead>
                        <tr>
                            <th scope="col">{words.login.name}</th>
                            <th scope="col">{words.users.role}</th>
                            <th scope="col">{words.account.used}</th>
                            <th scope="col" class="num max-md:hidden">{words.account.tokens}</th>
                            <th scope="col" class="max-md:hidden">{words.users.added}</th>
                        </tr>
                    </thead>
                    <tbody>{page.users.into_iter().map(|user| view! { <UserRow listed=user/> }).collect_view()}</tbody>
                </table>
            </div>
            <Pager label=t().nav.users first=first next=next names=(t().common.first, t().workers.next)/>
        </div>
    }
    .into_erased()
}

#[component]
fn UserRow(listed: ListedUser) -> impl IntoView {
    let words = t().server_pages();
    let ListedUser { user, last_used_at, tokens, second_factor } = listed;
    let used = match last_used_at {
        Some(at) => view! { <RelativeTime at=at/> }.into_erased(),
        None => words.account.never_used.into_any(),
    };
    view! {
        <tr>
            <th scope="row">
                <a class="row-link font-medium" href=format!("/admin/users/{}", user.id)>{user.name}</a>
                {user.disabled.then(|| view! { <span class="row-sub text-bad">{words.users.disabled}</span> })}
            </th>
            <td>
                {user.role.as_str()}
                {second_factor.then(|| view! { <span class="row-sub">{words.factors.title}</span> })}
            </td>
            <td class="text-muted">{used}</td>
            <td class="num max-md:hidden">{t().format_integer(tokens)}</td>
            <td class="text-muted max-md:hidden"><RelativeTime at=user.created_at/></td>
        </tr>
    }
    .into_erased()
}

/// A select box of all roles.
#[component]
pub(super) fn RoleSelect(chosen: Role) -> impl IntoView {
    let option = |role: Role| view! { <option value=role.as_str() selected=role == chosen>{role.as_str()}</option> };
    view! {
        <select class="select w-full" id="role" name="role">{Role::ALL.into_iter().map(option).collect_view()}</select>
    }
    .into_erased()
}

/// The fields of the form for a new user, in their order.
const USER_FIELDS: [FieldAliases<'_>; 2] = [("name", &["name_taken"]), ("password", &["weak_password"])];

#[component]
fn AddUserForm() -> impl IntoView {
    let words = &t().server_pages().users;
    let (problem, typed) = form_problem(FormName::User);
    let name = typed.get("name").cloned().unwrap_or_default();
    let role = typed.get("role").and_then(|role| Role::parse(role)).unwrap_or(Role::Researcher);
    let errors = FormErrors::from_problem(problem, &USER_FIELDS);
    view! {
        <section class="panel form" aria-labelledby="add">
            <h2 id="add" class="panel-title">{words.add}</h2>
            {errors.general().map(|problem| view! { <ProblemNotice problem=problem/> })}
            <form method="post" action="/ui/users" class="space-y-4">
                <Field id="name" label=t().server_pages().login.name hint=t().server_pages().login.name_hint error=errors.message("name")>
                    <input class="input w-full" id="name" name="name" required=true maxlength="32" autocomplete="off"
                        autocapitalize="none" aria-describedby=errors.aria_describedby("name", Some("name-hint"))
                        aria-invalid=errors.aria_invalid("name") autofocus=errors.is_first("name") value=name/>
                </Field>
                <Field id="role" label=words.role><RoleSelect chosen=role/></Field>
                <Field id="password" label=t().server_pages().login.password hint=words.password_optional optional=true
                    error=errors.message("password")>
                    <input class="input w-full" id="password" name="password" type="password" autocomplete="new-password"
                        minlength=MIN_CHARS.to_string() aria-describedby=errors.aria_describedby("password", Some("password-hint"))
                        aria-invalid=errors.aria_invalid("password") autofocus=errors.is_first("password")/>
                </Field>
                <div class="form-actions">
                    <button class="btn btn-primary"><Icon glyph=Glyph::Plus/>{words.add_submit}</button>
                </div>
            </form>
        </section>
    }
    .into_erased()
}

#[component]
fn RoleHelp() -> impl IntoView {
    let words = &t().server_pages().users;
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
    .into_erased()
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
        assert_eq!(users_url(&query_from_params(&params)), "/admin/users?q=a%26b&role=lead&disabled=true&cursor=ada");
        assert_eq!(users_url(&query_from_params(&ParamsMap::new())), "/admin/users");
    }
}
