//! The password once more, before something that a stranger at this browser must not do.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use crate::ui::components::failure::Refusal;
use crate::ui::components::field::Field;
use crate::ui::components::page_head::PageHead;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, refused};
use crate::ui::i18n::t;

/// The page.
#[component]
pub(crate) fn ConfirmPage() -> impl IntoView {
    let words = &t().plain().confirm;
    let (problem, _) = refused(FormName::Password);
    let next = use_query_map().with_untracked(|query| query.get("next")).unwrap_or_else(|| "/".to_owned());
    view! {
        <PageHead title=words.title intro=words.intro/>
        <section class="panel form">
            {problem.map(|problem| view! { <Refusal problem=problem/> })}
            <form method="post" action="/ui/confirm" class="space-y-4">
                <input type="hidden" name="next" value=next/>
                <Field id="password" label=t().plain().login.password hint=words.hint>
                    <input class="input w-full" id="password" name="password" type="password" autocomplete="current-password"
                        required=true autofocus=true aria-describedby="password-hint"/>
                </Field>
                <div class="form-actions"><button class="btn btn-primary">{words.submit}</button></div>
            </form>
        </section>
    }
    .erased()
}
