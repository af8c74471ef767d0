//! Sign in.

use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;

use crate::ui::components::failure::Refusal;
use crate::ui::components::field::Field;
use crate::ui::components::flash_banner::FlashBanner;
use crate::ui::components::layout::Brand;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, refused};
use crate::ui::i18n::t;

/// One field for the admin's token or the one-time setup code.
#[component]
pub(crate) fn LoginPage() -> impl IntoView {
    let words = &t().login;
    let (problem, _) = refused(FormName::Login);
    let next = use_query_map().with_untracked(|query| query.get("next")).unwrap_or_else(|| "/".to_owned());
    view! {
        <Title text=(t().common.title)(words.title)/>
        <main class="login" id="content">
            <div class="login-card">
                <Brand/>
                <h1 class="mt-8">{words.title}</h1>
                <p class="mt-1 mb-6 text-muted">{words.intro}</p>
                <FlashBanner/>
                {problem.map(|problem| view! { <Refusal problem=problem/> })}
                <form method="post" action="/ui/login" class="space-y-4">
                    <input type="hidden" name="next" value=next/>
                    <Field id="token" label=words.token>
                        <input
                            class="input w-full font-mono"
                            id="token"
                            name="token"
                            type="password"
                            autocomplete="current-password"
                            required=true
                            autofocus=true
                        />
                    </Field>
                    <button class="btn btn-primary w-full">{words.submit}</button>
                </form>
                <dl class="login-help">
                    <div><dt>{words.where_code}</dt><dd>{words.where_code_text}</dd></div>
                    <div><dt>{words.where_token}</dt><dd>{words.where_token_text}</dd></div>
                </dl>
            </div>
        </main>
    }
    .erased()
}
