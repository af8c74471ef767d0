//! The reader's second factor: the part of the account page, and the page that sets an authenticator app up.

use leptos::prelude::*;

use super::{Skeleton, use_desk};
use crate::protocol::factors::{FactorsView, RecoveryCodes, TotpEnrolment};
use crate::ui::components::action::Question;
use crate::ui::components::copy::CopyBlock;
use crate::ui::components::failure::{Failure, Refusal};
use crate::ui::components::field::Field;
use crate::ui::components::icon::{Glyph, Icon};
use crate::ui::components::page_head::PageHead;
use crate::ui::components::qr::Qr;
use crate::ui::erase::Erase;
use crate::ui::flash::{CurrentFlash, Flash, FormName, refused};
use crate::ui::i18n::t;

/// The part of the account page.
#[component]
pub(super) fn SecondFactor(factors: FactorsView) -> impl IntoView {
    let words = &t().plain().factors;
    let (problem, _) = refused(FormName::Factor);
    let inside = if factors.totp_since.is_some() { set_up(&factors) } else { not_set_up(&factors) };
    view! {
        <section class="panel form" aria-labelledby="second-factor">
            <h2 id="second-factor" class="panel-title">{words.title}</h2>
            {problem.map(|problem| view! { <Refusal problem=problem/> })}
            {inside}
        </section>
    }
    .erased()
}

fn not_set_up(factors: &FactorsView) -> AnyView {
    let words = &t().plain().factors;
    view! {
        <p class="max-w-prose text-muted">{words.none}</p>
        {factors.required.then(|| view! { <p class="max-w-prose">{words.required}</p> })}
        <form method="post" action="/ui/account/totp" class="form-actions">
            <button class="btn"><Icon glyph=Glyph::Key/>{words.set_up}</button>
        </form>
    }
    .erased()
}

fn set_up(factors: &FactorsView) -> AnyView {
    let words = &t().plain().factors;
    view! {
        {state(factors)}
        <div class="form-actions">
            <Question action="/ui/account/recovery-codes" label=words.renew text=words.renew_text confirm=words.renew_confirm/>
            <Question action="/ui/account/totp/remove" label=words.remove text=words.remove_text confirm=words.remove_confirm
                class="btn btn-sm btn-ghost text-bad"/>
        </div>
    }
    .erased()
}

/// Since when there is one, and how many recovery codes are left; or that there is none.
fn state(factors: &FactorsView) -> AnyView {
    let words = &t().plain().factors;
    match factors.totp_since {
        Some(at) => {
            let left = words.codes_left.of(factors.recovery_codes_left.into());
            view! { <p>{words.since.of(t().moment(at))}</p> <p class="text-muted">{left}</p> }.erased()
        }
        None => view! { <p class="text-muted">{words.person_none}</p> }.erased(),
    }
}

/// Somebody else's; the button that removes it takes no password of theirs.
#[component]
pub(super) fn FactorsOf(factors: FactorsView, form: String) -> impl IntoView {
    let words = &t().plain().factors;
    let (problem, _) = refused(FormName::Factor);
    let remove = factors.totp_since.is_some().then(|| {
        view! {
            <Question action=format!("{form}/factors/remove") label=words.remove text=words.person_remove_text
                confirm=words.remove_confirm class="btn btn-sm btn-ghost text-bad"/>
        }
    });
    view! {
        <section class="panel form" aria-labelledby="second-factor" data-part="second-factor">
            <h2 id="second-factor" class="panel-title">{words.title}</h2>
            {problem.map(|problem| view! { <Refusal problem=problem/> })}
            {state(&factors)}
            {remove}
        </section>
    }
    .erased()
}

/// The recovery codes that were made a moment ago, if this is the page after that.
#[component]
pub(super) fn NewCodes() -> impl IntoView {
    let words = &t().plain().factors;
    let codes = match use_context::<CurrentFlash>().and_then(|flash| flash.0.get_untracked()) {
        Some(Flash::RecoveryCodes(RecoveryCodes { recovery_codes })) => recovery_codes.join("\n"),
        _ => return ().erased(),
    };
    view! {
        <section class="panel mb-6 p-5" aria-labelledby="recovery-codes">
            <h2 id="recovery-codes" class="panel-title"><Icon glyph=Glyph::Key/>{words.codes_title}</h2>
            <p class="mt-1 mb-3 max-w-prose text-muted">{words.codes_text}</p>
            <CopyBlock text=codes label=words.codes_title/>
        </section>
    }
    .erased()
}

/// The page that sets an authenticator app up.
#[component]
pub(crate) fn TotpPage() -> impl IntoView {
    let words = &t().plain().factors;
    let desk = use_desk();
    let enrolment = Resource::new(|| (), move |()| desk.totp_enrolment());
    let shown = move || {
        Suspend::new(async move {
            match enrolment.await {
                Ok(enrolment) => view! {
                    <section class="panel form"><Enrol enrolment=enrolment action="/ui/account/totp/confirm" form=FormName::Factor/></section>
                }
                .erased(),
                Err(problem) => view! { <Failure problem=problem/> }.erased(),
            }
        })
    };
    view! {
        <PageHead title=words.enrol_title above=("/account", t().nav.account) intro=words.enrol_intro/>
        <Suspense fallback=Skeleton>{shown}</Suspense>
    }
    .erased()
}

/// What the app takes over, and the form for its first code.
#[component]
pub(super) fn Enrol(
    enrolment: TotpEnrolment,
    action: &'static str,
    form: FormName,
    #[prop(optional)] children: Option<Children>,
) -> impl IntoView {
    let words = &t().plain().factors;
    let (problem, _) = refused(form);
    view! {
        <Qr text=enrolment.url label=words.qr/>
        <CopyBlock text=grouped(&enrolment.secret) label=words.key/>
        {problem.map(|problem| view! { <Refusal problem=problem/> })}
        <form method="post" action=action class="space-y-4">
            {children.map(|children| children())}
            <Field id="code" label=words.code hint=words.code_hint>
                <input class="input w-full font-mono" id="code" name="code" inputmode="numeric" autocomplete="one-time-code"
                    required=true maxlength="16" aria-describedby="code-hint"/>
            </Field>
            <div class="form-actions"><button class="btn btn-primary">{words.turn_on}</button></div>
        </form>
    }
    .erased()
}

/// A key as people type it: in groups of four.
fn grouped(secret: &str) -> String {
    let letters: Vec<char> = secret.chars().collect();
    letters.chunks(4).map(|group| group.iter().collect::<String>()).collect::<Vec<_>>().join(" ")
}
