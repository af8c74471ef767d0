//! The login's second step: a code, or setting a second factor up.

use leptos::prelude::*;
use leptos_meta::Title;
use leptos_router::hooks::use_query_map;

use super::second_factor::Enrol;
use crate::ui::components::failure::Refusal;
use crate::ui::components::field::Field;
use crate::ui::components::layout::Brand;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, refused};
use crate::ui::i18n::t;
use crate::ui::pending::PendingLogin;

fn next() -> String {
    use_query_map().with_untracked(|query| query.get("next")).unwrap_or_else(|| "/".to_owned())
}

/// Around a step: who logs in, and the way back.
fn step(title: &'static str, intro: Vec<String>, inside: AnyView) -> AnyView {
    let words = t().plain();
    view! {
        <Title text=t().common.title.of(title)/>
        <main class="login" id="content">
            <div class="login-card">
                <Brand/>
                <h1 class="mt-8">{title}</h1>
                {intro.into_iter().map(|text| view! { <p class="mt-1 mb-4 text-muted">{text}</p> }).collect_view()}
                {inside}
                <p class="mt-6"><a class="row-link" href="/login">{words.factors.start_over}</a></p>
            </div>
        </main>
    }
    .erased()
}

/// Takes a code of the app, or a recovery code.
#[component]
pub(crate) fn LoginCodePage() -> impl IntoView {
    let words = &t().plain().factors;
    let Some(pending) = use_context::<PendingLogin>() else { return ().erased() };
    let (problem, _) = refused(FormName::Login);
    let form = view! {
        {problem.map(|problem| view! { <Refusal problem=problem/> })}
        <form method="post" action="/ui/login/code" class="space-y-4">
            <input type="hidden" name="next" value=next()/>
            <Field id="code" label=words.code hint=words.login_hint>
                <input class="input w-full font-mono" id="code" name="code" autocomplete="one-time-code" autocapitalize="none"
                    required=true maxlength="64" autofocus=true aria-describedby="code-hint"/>
            </Field>
            <button class="btn btn-primary w-full">{t().plain().login.submit}</button>
        </form>
        <dl class="login-help"><div><dt>{words.lost}</dt><dd>{words.lost_text}</dd></div></dl>
    };
    step(words.login_title, vec![words.login_intro.of(pending.name)], form.erased())
}

/// Sets an authenticator app up before the session begins.
#[component]
pub(crate) fn LoginEnrolPage() -> impl IntoView {
    let words = &t().plain().factors;
    let pending = use_context::<PendingLogin>();
    let Some((name, enrolment)) = pending.and_then(|pending| Some((pending.name, pending.enrolment?))) else {
        return ().erased();
    };
    let intro = vec![words.login_intro.of(name), words.required.to_owned(), words.enrol_intro.to_owned()];
    let form = view! {
        <Enrol enrolment=enrolment action="/ui/login/enrol" form=FormName::Login>
            <input type="hidden" name="next" value=next()/>
        </Enrol>
    };
    step(words.enrol_title, intro, form.erased())
}
