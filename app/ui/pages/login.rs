//! The sign-in page, and the setup of the first admin.

use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;

use crate::domain::password::MIN_CHARS;
use crate::ui::components::field::Field;
use crate::ui::components::flash_banner::FlashBanner;
use crate::ui::components::layout::Brand;
use crate::ui::components::problem_panel::ProblemNotice;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, form_problem};
use crate::ui::form_errors::{FieldAliases, FormErrors};
use crate::ui::i18n::t;
use crate::ui::prefs::Prefs;

/// The fields of the setup form, in their order.
const SETUP_FIELDS: [FieldAliases<'_>; 3] =
    [("code", &["wrong_token"]), ("name", &[]), ("password", &["weak_password"])];

/// Asks for name and password; on a server without an admin, for the setup code and the first admin's name and
/// password.
#[component]
pub(crate) fn LoginPage() -> impl IntoView {
    let words = &t().server_pages().login;
    let unclaimed = use_context::<Prefs>().is_some_and(|prefs| prefs.unclaimed);
    let (problem, typed) = form_problem(FormName::Login);
    let name = typed.get("name").cloned().unwrap_or_default();
    // An error does not reveal whether the name or the password is wrong.
    let errors = FormErrors::from_problem(problem, if unclaimed { &SETUP_FIELDS } else { &[] });
    let (title, intro) = if unclaimed { (words.setup_title, words.setup_intro) } else { (words.title, words.intro) };
    view! {
        <Title text=t().common.title.of(title)/>
        <main class="login" id="content">
            <div class="login-card">
                <Brand/>
                <h1 class="mt-8">{title}</h1>
                <p class="mt-1 mb-6 text-muted">{intro}</p>
                <FlashBanner/>
                {errors.general().map(|problem| view! { <ProblemNotice problem=problem/> })}
                {if unclaimed {
                    view! { <SetupForm name=name errors=errors/> }.into_erased()
                } else {
                    view! { <LoginForm name=name/> }.into_erased()
                }}
            </div>
        </main>
    }
    .into_erased()
}

#[component]
fn LoginForm(name: String) -> impl IntoView {
    let words = &t().server_pages().login;
    let next = use_query_map().with_untracked(|query| query.get("next")).unwrap_or_else(|| "/".to_owned());
    view! {
        <form method="post" action="/ui/login" class="space-y-4">
            <input type="hidden" name="next" value=next/>
            <Field id="name" label=words.name>
                <input class="input w-full" id="name" name="name" value=name autocomplete="username" autocapitalize="none" autofocus=true/>
            </Field>
            <Field id="password" label=words.password>
                <input
                    class="input w-full"
                    id="password"
                    name="password"
                    type="password"
                    autocomplete="current-password"
                    required=true
                />
            </Field>
            <button class="btn btn-primary w-full">{words.submit}</button>
        </form>
        <dl class="login-help">
            <div><dt>{words.with_token}</dt><dd>{words.with_token_text}</dd></div>
            <div><dt>{words.lost}</dt><dd>{words.lost_text}</dd></div>
        </dl>
    }
    .into_erased()
}

#[component]
fn SetupForm(name: String, errors: FormErrors) -> impl IntoView {
    let words = &t().server_pages().login;
    let name = if name.is_empty() { "admin".to_owned() } else { name };
    let code = use_query_map().with_untracked(|query| query.get("setup"));
    let has_autofocus = |is_default: bool, id| errors.is_first(id) || (errors.is_empty() && is_default);
    let (focus_code, focus_password) =
        (has_autofocus(code.is_none(), "code"), has_autofocus(code.is_some(), "password"));
    view! {
        <form method="post" action="/ui/setup" class="space-y-4">
            <Field id="code" label=words.code hint=words.code_hint error=errors.message("code")>
                <input
                    class="input w-full font-mono"
                    id="code"
                    name="code"
                    value=code
                    autocomplete="off"
                    required=true
                    autofocus=focus_code
                    aria-describedby=errors.aria_describedby("code", Some("code-hint"))
                    aria-invalid=errors.aria_invalid("code")
                />
            </Field>
            <Field id="name" label=words.name hint=words.name_hint error=errors.message("name")>
                <input
                    class="input w-full"
                    id="name"
                    name="name"
                    value=name
                    autocomplete="username"
                    autocapitalize="none"
                    required=true
                    maxlength="32"
                    aria-describedby=errors.aria_describedby("name", Some("name-hint"))
                    aria-invalid=errors.aria_invalid("name")
                    autofocus=errors.is_first("name")
                />
            </Field>
            <Field id="password" label=words.password hint=words.password_hint error=errors.message("password")>
                <input
                    class="input w-full"
                    id="password"
                    name="password"
                    type="password"
                    autocomplete="new-password"
                    required=true
                    autofocus=focus_password
                    minlength=MIN_CHARS.to_string()
                    aria-describedby=errors.aria_describedby("password", Some("password-hint"))
                    aria-invalid=errors.aria_invalid("password")
                />
            </Field>
            <button class="btn btn-primary w-full">{words.setup_submit}</button>
        </form>
    }
    .into_erased()
}
