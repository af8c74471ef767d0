//! The password once more, before something that a stranger at this browser must not do.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use crate::ui::components::failure::Refusal;
use crate::ui::components::field::Field;
use crate::ui::components::page_head::PageHead;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, refused};
use crate::ui::i18n::t;
use crate::ui::pending::{PASSWORD_FIELD, PendingForm};

/// The page: by itself, or in answer to a form, which then goes on.
#[component]
pub(crate) fn ConfirmPage() -> impl IntoView {
    let words = &t().plain().confirm;
    let (problem, _) = refused(FormName::Password);
    let next = || use_query_map().with_untracked(|query| query.get("next")).unwrap_or_else(|| "/".to_owned());
    let by_itself = || {
        let fields = vec![("next".to_owned(), next())];
        (PendingForm { action: "/ui/confirm".to_owned(), fields }, "password")
    };
    let (form, name) = use_context::<PendingForm>().map_or_else(by_itself, |pending| (pending, PASSWORD_FIELD));
    let hidden = |(name, value)| view! { <input type="hidden" name=name value=value/> };
    let fields = form.fields.into_iter().map(hidden).collect_view();
    view! {
        <PageHead title=words.title intro=words.intro/>
        <section class="panel form">
            {problem.map(|problem| view! { <Refusal problem=problem/> })}
            <form method="post" action=form.action class="space-y-4">
                {fields}
                <Field id="password" label=t().plain().login.password hint=words.hint>
                    <input class="input w-full" id="password" name=name type="password" autocomplete="current-password"
                        required=true autofocus=true aria-describedby="password-hint"/>
                </Field>
                <div class="form-actions"><button class="btn btn-primary">{words.submit}</button></div>
            </form>
        </section>
    }
    .erased()
}
