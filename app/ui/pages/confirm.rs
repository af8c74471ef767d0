//! Asks for the password and the second factor again before a sensitive action, in case someone else uses this browser.

use leptos::prelude::*;
use leptos_router::hooks::use_query_map;

use super::passkeys::{PasskeyError, PasskeyScript};
use crate::domain::second_factor::AvailableFactors;
use crate::ui::backend::use_page_backend;
use crate::ui::components::field::Field;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::{ProblemNotice, ProblemPanel};
use crate::ui::components::skeleton::Skeleton;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, form_problem};
use crate::ui::i18n::t;
use crate::ui::pending::{CODE_FIELD, CREDENTIAL_FIELD, PASSWORD_FIELD, PendingForm};

/// The page, visited directly or in response to a form, which is then sent again.
#[component]
pub(crate) fn ConfirmPage() -> impl IntoView {
    let words = &t().server_pages().confirm;
    let (problem, _) = form_problem(FormName::Password);
    let next = || use_query_map().with_untracked(|query| query.get("next")).unwrap_or_else(|| "/".to_owned());
    let direct_form = || {
        let fields = vec![("next".to_owned(), next())];
        (PendingForm { action: "/ui/confirm".to_owned(), fields }, "password")
    };
    let (form, name) = use_context::<PendingForm>().map_or_else(direct_form, |pending| (pending, PASSWORD_FIELD));
    let page_backend = use_page_backend();
    let shown = move || {
        let (page_backend, form) = (page_backend.clone(), form.clone());
        Suspend::new(async move {
            match page_backend.second_factor_methods().await {
                Ok(factors) => view! { <ConfirmForm form=form name=name factors=factors/> }.into_erased(),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! {
        <PageHeader title=words.title intro=words.intro/>
        <section class="panel form">
            {problem.map(|problem| view! { <ProblemNotice problem=problem/> })}
            <Suspense fallback=Skeleton>{shown}</Suspense>
        </section>
    }
    .into_erased()
}

#[component]
fn ConfirmForm(form: PendingForm, name: &'static str, factors: Option<AvailableFactors>) -> impl IntoView {
    let words = &t().server_pages().confirm;
    let hidden = |(name, value)| view! { <input type="hidden" name=name value=value/> };
    let fields = form.fields.into_iter().map(hidden).collect_view();
    let passkey = factors.as_ref().and_then(|factors| factors.passkey.clone());
    let kind = passkey.is_some().then_some("get");
    let credential_input =
        kind.map(|_| view! { <input type="hidden" name=CREDENTIAL_FIELD data-passkey-credential_input=""/> });
    view! {
        {kind.map(|_| view! { <PasskeyError/> })}
        <form method="post" action=form.action class="space-y-4" data-passkey=kind data-options=passkey>
            {fields}
            {credential_input}
            <Field id="password" label=t().server_pages().login.password hint=words.hint>
                <input class="input w-full" id="password" name=name type="password" autocomplete="current-password"
                    required=true autofocus=true aria-describedby="password-hint"/>
            </Field>
            {factors.map(|factors| code_field(&factors))}
            <div class="form-actions"><button class="btn btn-primary">{words.submit}</button></div>
        </form>
        {kind.map(|_| view! { <PasskeyScript/> })}
    }
    .into_erased()
}

/// The field for a code, for users with a second factor; a passkey replaces it.
fn code_field(factors: &AvailableFactors) -> AnyView {
    let words = t().server_pages();
    let has_passkey = factors.passkey.is_some();
    let hint = match (has_passkey, factors.app) {
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
    .into_erased()
}
