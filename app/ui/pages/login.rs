//! Sign in, and the first time set up.

use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;

use crate::domain::password::SHORTEST;
use crate::ui::components::failure::Refusal;
use crate::ui::components::field::Field;
use crate::ui::components::flash_banner::FlashBanner;
use crate::ui::components::layout::Brand;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, refused};
use crate::ui::i18n::t;
use crate::ui::prefs::Prefs;

/// A name with its password; on a server that nobody can log in to yet, the setup code and who the first admin is.
#[component]
pub(crate) fn LoginPage() -> impl IntoView {
    let words = &t().plain().login;
    let unclaimed = use_context::<Prefs>().is_some_and(|prefs| prefs.unclaimed);
    let (problem, typed) = refused(FormName::Login);
    let name = typed.get("name").cloned().unwrap_or_default();
    let (title, intro) = if unclaimed { (words.setup_title, words.setup_intro) } else { (words.title, words.intro) };
    view! {
        <Title text=t().common.title.of(title)/>
        <main class="login" id="content">
            <div class="login-card">
                <Brand/>
                <h1 class="mt-8">{title}</h1>
                <p class="mt-1 mb-6 text-muted">{intro}</p>
                <FlashBanner/>
                {problem.map(|problem| view! { <Refusal problem=problem/> })}
                {if unclaimed {
                    view! { <SetupForm name=name/> }.erased()
                } else {
                    view! { <LoginForm name=name/> }.erased()
                }}
            </div>
        </main>
    }
    .erased()
}

#[component]
fn LoginForm(name: String) -> impl IntoView {
    let words = &t().plain().login;
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
    .erased()
}

#[component]
fn SetupForm(name: String) -> impl IntoView {
    let words = &t().plain().login;
    let name = if name.is_empty() { "admin".to_owned() } else { name };
    view! {
        <form method="post" action="/ui/setup" class="space-y-4">
            <Field id="code" label=words.code hint=words.code_hint>
                <input
                    class="input w-full font-mono"
                    id="code"
                    name="code"
                    autocomplete="off"
                    required=true
                    autofocus=true
                    aria-describedby="code-hint"
                />
            </Field>
            <Field id="name" label=words.name hint=words.name_hint>
                <input
                    class="input w-full"
                    id="name"
                    name="name"
                    value=name
                    autocomplete="username"
                    autocapitalize="none"
                    required=true
                    maxlength="32"
                    aria-describedby="name-hint"
                />
            </Field>
            <Field id="password" label=words.password hint=words.password_hint>
                <input
                    class="input w-full"
                    id="password"
                    name="password"
                    type="password"
                    autocomplete="new-password"
                    required=true
                    minlength=SHORTEST.to_string()
                    aria-describedby="password-hint"
                />
            </Field>
            <button class="btn btn-primary w-full">{words.setup_submit}</button>
        </form>
    }
    .erased()
}
