//! The second step of a sign-in: entering a second factor, or setting one up.

use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;

use super::passkeys::PasskeyForm;
use super::second_factor::TotpEnrollForm;
use crate::domain::second_factor::AvailableFactors;
use crate::ui::components::field::Field;
use crate::ui::components::layout::Brand;
use crate::ui::components::problem_panel::ProblemNotice;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, form_problem};
use crate::ui::i18n::t;
use crate::ui::pending::SecondFactorPrompt;

fn next_url() -> String {
    use_query_map().with_untracked(|query| query.get("next")).unwrap_or_else(|| "/".to_owned())
}

/// The layout of a step, with a link to start again.
fn login_step(title: &'static str, intro: Vec<String>, content: AnyView) -> AnyView {
    let words = t().server_pages();
    view! {
        <Title text=t().common.title.of(title)/>
        <main class="login" id="content">
            <div class="login-card">
                <Brand/>
                <h1 class="mt-8">{title}</h1>
                {intro.into_iter().map(|text| view! { <p class="mt-1 mb-4 text-muted">{text}</p> }).collect_view()}
                {content}
                <p class="mt-6"><a class="row-link" href="/login">{words.factors.start_over}</a></p>
            </div>
        </main>
    }
    .into_erased()
}

/// Asks for a passkey, a code of the app, or a recovery code, depending on what the user has.
#[component]
pub(crate) fn LoginCodePage() -> impl IntoView {
    let words = t().server_pages();
    let Some(SecondFactorPrompt { name, factors, .. }) = use_context() else { return ().into_erased() };
    let (problem, _) = form_problem(FormName::Login);
    let has_codes = factors.app || factors.recovery_codes;
    let title = if factors.passkey.is_some() { words.passkeys.login_title } else { words.factors.login_title };
    let other_origin_note = factors.other_origin.as_ref().map(|origin| {
        let phrase = if has_codes { &words.passkeys.elsewhere } else { &words.passkeys.elsewhere_only };
        view! { <p class="text-muted">{phrase.of(origin)}</p> }
    });
    let with_passkey = factors.passkey.clone().map(|options| {
        view! {
            <PasskeyForm action="/ui/login/passkey" kind="get" options=options submit=words.passkeys.sign_in>
                <input type="hidden" name="next" value=next_url()/>
            </PasskeyForm>
        }
    });
    let form = view! {
        {problem.map(|problem| view! { <ProblemNotice problem=problem/> })}
        {other_origin_note}
        {with_passkey}
        {has_codes.then(|| code_form(&factors))}
        <dl class="login-help"><div><dt>{words.factors.lost}</dt><dd>{words.factors.lost_text}</dd></div></dl>
    };
    login_step(title, vec![words.factors.login_intro.of(name)], form.into_erased())
}

/// Asks for a code. Below a passkey, it is the alternative and does not get the focus.
fn code_form(factors: &AvailableFactors) -> AnyView {
    let words = t().server_pages();
    let is_alternative = factors.passkey.is_some();
    let heading = is_alternative.then(|| view! { <h2 class="login-or">{words.passkeys.or_code}</h2> });
    let hint = if factors.app { words.factors.login_hint } else { words.passkeys.recovery_hint };
    let class = if is_alternative { "btn w-full" } else { "btn btn-primary w-full" };
    view! {
        {heading}
        <form method="post" action="/ui/login/code" class="space-y-4">
            <input type="hidden" name="next" value=next_url()/>
            <Field id="code" label=words.factors.code hint=hint>
                <input class="input w-full font-mono" id="code" name="code" autocomplete="one-time-code" autocapitalize="none"
                    required=true maxlength="64" autofocus=!is_alternative aria-describedby="code-hint"/>
            </Field>
            <button class=class>{words.login.submit}</button>
        </form>
    }
    .into_erased()
}

/// Sets up an authenticator app before the session begins.
#[component]
pub(crate) fn LoginEnrollPage() -> impl IntoView {
    let words = &t().server_pages().factors;
    let pending = use_context::<SecondFactorPrompt>();
    let Some((name, enrollment)) = pending.and_then(|pending| Some((pending.name, pending.enrolment?))) else {
        return ().into_erased();
    };
    let intro = vec![words.login_intro.of(name), words.required.to_owned(), words.enrol_intro.to_owned()];
    let form = view! {
        <TotpEnrollForm enrollment=enrollment action="/ui/login/enrol" form=FormName::Login>
            <input type="hidden" name="next" value=next_url()/>
        </TotpEnrollForm>
    };
    login_step(words.enrol_title, intro, form.into_erased())
}
