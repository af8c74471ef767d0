//! The password once more, and the second factor, before something that a stranger at this browser must not do.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::passkeys::{PasskeySaid, PasskeyScript};
use super::{Skeleton, use_desk};
use crate::domain::factor::Ways;
use crate::ui::components::failure::{Failure, Refusal};
use crate::ui::components::field::Field;
use crate::ui::components::page_head::PageHead;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, refused};
use crate::ui::i18n::t;
use crate::ui::pending::{CODE_FIELD, CREDENTIAL_FIELD, PASSWORD_FIELD, PendingForm};

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
    let desk = use_desk();
    let shown = move || {
        let (desk, form) = (desk.clone(), form.clone());
        Suspend::new(async move {
            match desk.ways_to_prove().await {
                Ok(ways) => view! { <Asking form=form name=name ways=ways/> }.erased(),
                Err(problem) => view! { <Failure problem=problem/> }.erased(),
            }
        })
    };
    view! {
        <PageHead title=words.title intro=words.intro/>
        <section class="panel form">
            {problem.map(|problem| view! { <Refusal problem=problem/> })}
            <Suspense fallback=Skeleton>{shown}</Suspense>
        </section>
    }
    .erased()
}

#[component]
fn Asking(form: PendingForm, name: &'static str, ways: Option<Ways>) -> impl IntoView {
    let words = &t().plain().confirm;
    let hidden = |(name, value)| view! { <input type="hidden" name=name value=value/> };
    let fields = form.fields.into_iter().map(hidden).collect_view();
    let passkey = ways.as_ref().and_then(|ways| ways.passkey.clone());
    let kind = passkey.is_some().then_some("get");
    let answer = kind.map(|_| view! { <input type="hidden" name=CREDENTIAL_FIELD data-passkey-answer=""/> });
    view! {
        {kind.map(|_| view! { <PasskeySaid/> })}
        <form method="post" action=form.action class="space-y-4" data-passkey=kind data-options=passkey>
            {fields}
            {answer}
            <Field id="password" label=t().plain().login.password hint=words.hint>
                <input class="input w-full" id="password" name=name type="password" autocomplete="current-password"
                    required=true autofocus=true aria-describedby="password-hint"/>
            </Field>
            {ways.map(|ways| code_field(&ways))}
            <div class="form-actions"><button class="btn btn-primary">{words.submit}</button></div>
        </form>
        {kind.map(|_| view! { <PasskeyScript/> })}
    }
    .erased()
}

/// The code of whoever has a second factor; a passkey stands in for it.
fn code_field(ways: &Ways) -> AnyView {
    let words = t().plain();
    let has_passkey = ways.passkey.is_some();
    let hint = match (has_passkey, ways.app) {
        (true, _) => words.passkeys.instead,
        (false, true) => words.factors.login_hint,
        (false, false) => words.passkeys.recovery_hint,
    };
    view! {
        <Field id="code" label=words.factors.code hint=hint optional=has_passkey>
            <input class="input w-full font-mono" id="code" name=CODE_FIELD autocomplete="one-time-code" autocapitalize="none"
                required=!has_passkey maxlength="64" data-passkey-instead="" aria-describedby="code-hint"/>
        </Field>
    }
    .erased()
}
