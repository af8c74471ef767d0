//! The user's own account: notices, API tokens, password, second factor, and sessions.

use leptos::prelude::*;

use super::account_notices::NoticeList;
use super::second_factor::{NewRecoveryCodes, SecondFactor};
use crate::domain::access::Permission;
use crate::domain::password::MIN_CHARS;
use crate::domain::time::Millis;
use crate::protocol::access::factors::FactorsView;
use crate::protocol::access::notices::NoticesPage;
use crate::protocol::access::{CreatedToken, SessionEntry, SessionsPage, TokenView, TokensPage};
use crate::protocol::problem::Problem;
use crate::ui::backend::use_page_backend;
use crate::ui::clock::use_clock;
use crate::ui::components::action::ConfirmedForm;
use crate::ui::components::copy::CopyBlock;
use crate::ui::components::field::Field;
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::{ProblemNotice, ProblemPanel};
use crate::ui::components::skeleton::Skeleton;
use crate::ui::components::time::RelativeTime;
use crate::ui::erase::Erase;
use crate::ui::flash::{CurrentFlash, Flash, FormName, form_problem};
use crate::ui::form_errors::{FieldAliases, FormErrors};
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::prefs::Prefs;

const PAGE_URL: &str = "/account";

/// The data of the page, requested together.
type Snapshot = (TokensPage, SessionsPage, FactorsView, NoticesPage);

#[component]
pub(crate) fn AccountPage() -> impl IntoView {
    let words = &t().server_pages().account;
    let page_backend = use_page_backend();
    let name = use_context::<Prefs>().and_then(|prefs| prefs.session).map(|session| session.name).unwrap_or_default();
    let snapshot = Resource::new(
        || (),
        move |()| {
            let page_backend = page_backend.clone();
            async move {
                let (tokens, sessions) = (page_backend.tokens().await?, page_backend.sessions().await?);
                Ok::<Snapshot, Problem>((
                    tokens,
                    sessions,
                    page_backend.factors().await?,
                    page_backend.notices().await?,
                ))
            }
        },
    );
    let shown = move || {
        Suspend::new(async move {
            match snapshot.await {
                Ok((tokens, sessions, factors, notices)) => view! {
                    <div class="space-y-6">
                        <NoticeList notices=notices.notices/>
                        <TokenList tokens=tokens.tokens back=PAGE_URL none=t().server_pages().account.no_tokens/>
                        <NewTokenForm/>
                        <PasswordForm/>
                        <SecondFactor factors=factors/>
                        <SessionList lengths=Some(session_lifetime_text(&sessions)) sessions=sessions.sessions back=PAGE_URL/>
                    </div>
                }
                .into_erased(),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! {
        <PageHeader title=name intro=words.intro/>
        <NewRecoveryCodes/>
        {token_from_flash().map(|created| view! { <NewTokenNotice created=created/> })}
        <Suspense fallback=Skeleton>{shown}</Suspense>
    }
    .into_erased()
}

/// The token that was created by the previous request, if any.
fn token_from_flash() -> Option<CreatedToken> {
    match use_context::<CurrentFlash>()?.0.get_untracked()? {
        Flash::TokenMade(created) => Some(created),
        _ => None,
    }
}

#[component]
fn NewTokenNotice(created: CreatedToken) -> impl IntoView {
    let words = &t().server_pages().account;
    view! {
        <section class="panel mb-6 p-5" aria-labelledby="made">
            <h2 id="made" class="panel-title"><Icon glyph=Glyph::Key/>{words.made.of(&created.token.name)}</h2>
            <p class="mt-1 mb-3 max-w-prose text-muted">{words.created_text}</p>
            <CopyBlock text=created.secret label=words.secret/>
        </section>
    }
    .into_erased()
}

/// The API tokens of a user; revoking one leads back to `back`.
#[component]
pub(super) fn TokenList(tokens: Vec<TokenView>, #[prop(into)] back: String, none: &'static str) -> impl IntoView {
    let words = &t().server_pages().account;
    let none = tokens.is_empty().then(|| view! { <p class="p-5 text-muted">{none}</p> });
    let rows = tokens.into_iter().map(|token| view! { <TokenRow token=token back=back.clone()/> }).collect_view();
    view! {
        <section class="panel" aria-labelledby="tokens" data-part="tokens">
            <div class="panel-head">
                <h2 id="tokens">{words.tokens}</h2>
                <a class="row-link ml-auto text-sm font-normal" href="/docs/api">{words.api}</a>
            </div>
            {none}
            <ul class="rows">{rows}</ul>
        </section>
    }
    .into_erased()
}

#[component]
fn TokenRow(token: TokenView, back: String) -> impl IntoView {
    let words = &t().server_pages().account;
    let scopes = match token.scopes {
        None => words.everything.to_owned(),
        Some(scopes) => scopes.iter().map(Permission::as_str).collect::<Vec<_>>().join(", "),
    };
    let used = match token.last_used_at {
        Some(at) => view! { {words.used}" "<RelativeTime at=at/> }.into_erased(),
        None => view! { {words.never_used} }.into_erased(),
    };
    let ends = match token.expires_at {
        Some(at) => format!(" · {} {}", words.ends, use_clock().format_timestamp(at)),
        None => format!(" · {}", words.never_ends),
    };
    view! {
        <li class="fleet-row">
            <span class="min-w-0">
                <span class="font-medium">{token.name.clone()}</span>
                <span class="row-sub">{scopes}</span>
                <span class="row-sub">{used}{ends}</span>
            </span>
            <ConfirmedForm action=format!("/ui/account/tokens/{}/revoke", token.id) label=words.revoke
                named=Some(format!("{}: {}", words.revoke, token.name)) text=words.revoke_text confirm=words.revoke_confirm
                class="btn btn-sm btn-ghost text-bad">
                <input type="hidden" name="next" value=back/>
            </ConfirmedForm>
        </li>
    }
    .into_erased()
}

/// The fields of the form for a new token, in their order.
const TOKEN_FIELDS: [FieldAliases<'_>; 2] = [("name", &["name_taken"]), ("days", &["expires_in_days"])];

#[component]
fn NewTokenForm() -> impl IntoView {
    let words = &t().server_pages().account;
    let (problem, typed) = form_problem(FormName::Token);
    let typed = |name: &str| typed.get(name).cloned().unwrap_or_default();
    let (name, days) = (typed("name"), typed("days"));
    let errors = FormErrors::from_problem(problem, &TOKEN_FIELDS);
    let permissions = use_context::<Prefs>().and_then(|prefs| prefs.session).map(|session| session.permissions);
    let scope = |permission: Permission| {
        let id = format!("scope.{}", permission.as_str());
        let (label, name) = (id.clone(), id.clone());
        view! {
            <label class="flex items-center gap-2 font-mono text-sm" for=label>
                <input type="checkbox" class="checkbox checkbox-sm" id=id name=name/>
                {permission.as_str()}
            </label>
        }
    };
    let scopes = permissions.unwrap_or_default().iter().map(scope).collect_view();
    view! {
        <section class="panel form" aria-labelledby="new-token">
            <h2 id="new-token" class="panel-title">{words.new_token}</h2>
            {errors.general().map(|problem| view! { <ProblemNotice problem=problem/> })}
            <form method="post" action="/ui/account/tokens" class="space-y-4">
                <Field id="name" label=words.token_name hint=words.token_name_hint error=errors.message("name")>
                    <input class="input w-full" id="name" name="name" required=true maxlength="32" autocomplete="off"
                        aria-describedby=errors.aria_describedby("name", Some("name-hint")) aria-invalid=errors.aria_invalid("name")
                        autofocus=errors.is_first("name") value=name/>
                </Field>
                <Field id="days" label=words.days hint=words.days_hint optional=true error=errors.message("days")>
                    <input class="input w-full" id="days" name="days" type="number" min="1" max="3660"
                        aria-describedby=errors.aria_describedby("days", Some("days-hint")) aria-invalid=errors.aria_invalid("days")
                        autofocus=errors.is_first("days") value=days/>
                </Field>
                <label class="flex items-center gap-2" for="never_expires">
                    <input type="checkbox" class="checkbox checkbox-sm" id="never_expires" name="never_expires"/>
                    {words.never_expires}
                </label>
                <fieldset class="field">
                    <legend>{words.scopes}</legend>
                    <p class="field-hint">{words.scopes_hint}</p>
                    <div class="grid gap-1 sm:grid-cols-2">{scopes}</div>
                </fieldset>
                <div class="form-actions">
                    <button class="btn btn-primary"><Icon glyph=Glyph::Plus/>{words.make}</button>
                </div>
            </form>
        </section>
    }
    .into_erased()
}

#[component]
fn PasswordForm() -> impl IntoView {
    let words = &t().server_pages().account;
    let (problem, _) = form_problem(FormName::Password);
    view! {
        <section class="panel form" aria-labelledby="password">
            <h2 id="password" class="panel-title">{words.password}</h2>
            {problem.map(|problem| view! { <ProblemNotice problem=problem/> })}
            <form method="post" action="/ui/account/password" class="space-y-4">
                <Field id="old" label=words.old_password>
                    <input class="input w-full" id="old" name="old" type="password" autocomplete="current-password" required=true/>
                </Field>
                <Field id="new" label=words.new_password hint=t().server_pages().login.password_hint>
                    <input class="input w-full" id="new" name="new" type="password" autocomplete="new-password" required=true
                        minlength=MIN_CHARS.to_string() aria-describedby="new-hint"/>
                </Field>
                <div class="form-actions"><button class="btn">{words.change}</button></div>
            </form>
        </section>
    }
    .into_erased()
}

/// Describes how long sessions last.
fn session_lifetime_text(page: &SessionsPage) -> String {
    let span = |seconds: u64| t().format_duration(Millis::from_secs(seconds.cast_signed()));
    t().server_pages().account.session_lengths.with(&[&span(page.idle_seconds), &span(page.longest_seconds)])
}

/// The sessions of a user; ending one leads back to `back`.
#[component]
pub(super) fn SessionList(
    sessions: Vec<SessionEntry>,
    #[prop(into)] back: String,
    #[prop(optional_no_strip)] lengths: Option<String>,
) -> impl IntoView {
    let (words, clock) = (&t().server_pages().account, use_clock());
    let none =
        sessions.is_empty().then(|| view! { <p class="p-5 text-muted">{t().server_pages().users.no_sessions}</p> });
    let row = |session: SessionEntry| {
        let back = back.clone();
        let end = if session.current {
            view! { <span class="text-sm text-muted">{words.this_browser}</span> }.into_erased()
        } else {
            view! {
                <ConfirmedForm action=format!("/ui/account/sessions/{}/end", session.id) label=words.end
                    named=Some(format!("{}: {}", words.end, session.agent)) text=words.end_text confirm=words.end_confirm
                    class="btn btn-sm btn-ghost text-bad">
                    <input type="hidden" name="next" value=back/>
                </ConfirmedForm>
            }
            .into_erased()
        };
        view! {
            <li class="fleet-row">
                <span class="min-w-0">
                    <span class="break-words">{session.agent}</span>
                    <span class="row-sub">{session.host}" · "{words.used}" "<RelativeTime at=session.seen_at/></span>
                    <span class="row-sub">{words.ends}" "{clock.format_timestamp(session.idle_ends_at.min(session.expires_at))}</span>
                </span>
                {end}
            </li>
        }
    };
    view! {
        <section class="panel" aria-labelledby="sessions" data-part="sessions">
            <h2 id="sessions" class="panel-head">{words.sessions}</h2>
            {lengths.map(|text| view! { <p class="px-4 pt-3 pb-2 text-sm text-muted">{text}</p> })}
            {none}
            <ul class="rows">{sessions.into_iter().map(row).collect_view()}</ul>
        </section>
    }
    .into_erased()
}
