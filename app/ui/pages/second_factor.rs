//! Second factors: the section of the account page, the section of a user's page, and the setup of an authenticator
//! app.

use leptos::prelude::*;

use super::passkeys::{AddPasskey, PasskeyRows};
use crate::protocol::access::factors::{FactorsView, RecoveryCodes, TotpEnrollment};
use crate::ui::backend::use_page_backend;
use crate::ui::clock::use_clock;
use crate::ui::components::action::ConfirmedForm;
use crate::ui::components::copy::CopyBlock;
use crate::ui::components::field::Field;
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::{ProblemNotice, ProblemPanel};
use crate::ui::components::qr::Qr;
use crate::ui::components::skeleton::Skeleton;
use crate::ui::erase::Erase;
use crate::ui::flash::{CurrentFlash, Flash, FormName, form_problem};
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;

/// The section of the account page.
#[component]
pub(super) fn SecondFactor(factors: FactorsView) -> impl IntoView {
    let words = &t().server_pages().factors;
    let (problem, _) = form_problem(FormName::Factor);
    let none = (!has_factors(&factors)).then(|| {
        view! {
            <div class="space-y-4 px-5 pt-5">
                <p class="max-w-prose text-muted">{words.none}</p>
                {factors.required.then(|| view! { <p class="max-w-prose">{words.required}</p> })}
            </div>
        }
    });
    let is_last = factors.passkeys.len() + usize::from(factors.totp_since.is_some()) == 1;
    let remove_text = if is_last { words.remove_text } else { t().server_pages().passkeys.remove_one_text };
    let app = factors.totp_since.map(|_| {
        view! {
            <ConfirmedForm action="/ui/account/totp/remove" label=words.remove text=remove_text confirm=words.remove_confirm
                class="btn btn-sm btn-ghost text-bad"/>
        }
    });
    let rows = has_factors(&factors).then(|| {
        view! {
            <ul class="rows">
                {totp_row(&factors, app.map(Erase::into_erased))}
                <PasskeyRows passkeys=factors.passkeys.clone() remove_text=Some(remove_text)/>
                {recovery_codes_row(&factors)}
            </ul>
        }
    });
    let set_up = factors.totp_since.is_none().then(|| {
        view! {
            <form method="post" action="/ui/account/totp">
                <button class="btn"><Icon glyph=Glyph::Key/>{words.set_up}</button>
            </form>
        }
    });
    view! {
        <section class="panel" aria-labelledby="second-factor">
            <h2 id="second-factor" class="panel-head">{words.title}</h2>
            {problem.map(|problem| view! { <div class="px-5 pt-4"><ProblemNotice problem=problem/></div> })}
            {none}
            {rows}
            <div class="form-actions p-5">{set_up}<AddPasskey/></div>
        </section>
    }
    .into_erased()
}

fn has_factors(factors: &FactorsView) -> bool {
    factors.totp_since.is_some() || !factors.passkeys.is_empty()
}

/// The authenticator app, if one is set up, with the button that removes it.
fn totp_row(factors: &FactorsView, remove: Option<AnyView>) -> Option<AnyView> {
    let since = t().server_pages().factors.since.of(use_clock().format_timestamp(factors.totp_since?));
    Some(view! { <li class="fleet-row"><span>{since}</span>{remove}</li> }.into_erased())
}

/// The number of remaining recovery codes, with the button that creates new ones.
fn recovery_codes_row(factors: &FactorsView) -> Option<AnyView> {
    let words = &t().server_pages().factors;
    let left = has_factors(factors).then(|| words.codes_left.of(factors.recovery_codes_left.into()))?;
    let renew = view! {
        <ConfirmedForm action="/ui/account/recovery-codes" label=words.renew text=words.renew_text confirm=words.renew_confirm/>
    };
    Some(view! { <li class="fleet-row"><span class="text-muted">{left}</span>{renew}</li> }.into_erased())
}

/// The second factors of another user, with a button that removes all of them without that user's password.
#[component]
pub(super) fn UserFactors(factors: FactorsView, form: String) -> impl IntoView {
    let words = &t().server_pages().factors;
    let (problem, _) = form_problem(FormName::Factor);
    let content = if has_factors(&factors) {
        let left = words.codes_left.of(factors.recovery_codes_left.into());
        view! {
            <ul class="rows">
                {totp_row(&factors, None)}
                <PasskeyRows passkeys=factors.passkeys remove_text=None/>
            </ul>
            <p class="text-muted">{left}</p>
            <ConfirmedForm action=format!("{form}/factors/remove") label=words.remove text=words.user_remove_text
                confirm=words.remove_confirm class="btn btn-sm btn-ghost text-bad"/>
        }
        .into_erased()
    } else {
        view! { <p class="text-muted">{words.user_none}</p> }.into_erased()
    };
    view! {
        <section class="panel form" aria-labelledby="second-factor" data-part="second-factor">
            <h2 id="second-factor" class="panel-title">{words.title}</h2>
            {problem.map(|problem| view! { <ProblemNotice problem=problem/> })}
            {content}
        </section>
    }
    .into_erased()
}

/// The recovery codes that were created by the previous request, if any.
#[component]
pub(super) fn NewRecoveryCodes() -> impl IntoView {
    let words = &t().server_pages().factors;
    let codes = match use_context::<CurrentFlash>().and_then(|flash| flash.0.get_untracked()) {
        Some(Flash::RecoveryCodes(RecoveryCodes { recovery_codes })) => recovery_codes.join("\n"),
        _ => return ().into_erased(),
    };
    view! {
        <section class="panel mb-6 p-5" aria-labelledby="recovery-codes">
            <h2 id="recovery-codes" class="panel-title"><Icon glyph=Glyph::Key/>{words.codes_title}</h2>
            <p class="mt-1 mb-3 max-w-prose text-muted">{words.codes_text}</p>
            <CopyBlock text=codes label=words.codes_title/>
        </section>
    }
    .into_erased()
}

/// The page that sets up an authenticator app.
#[component]
pub(crate) fn TotpPage() -> impl IntoView {
    let words = &t().server_pages().factors;
    let page_backend = use_page_backend();
    let enrollment = Resource::new(|| (), move |()| page_backend.totp_enrollment());
    let shown = move || {
        Suspend::new(async move {
            match enrollment.await {
                Ok(enrollment) => view! {
                    <section class="panel form"><TotpEnrollForm enrollment=enrollment action="/ui/account/totp/confirm" form=FormName::Factor/></section>
                }
                .into_erased(),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! {
        <PageHeader title=words.enrol_title above=("/account", t().nav.account) intro=words.enrol_intro/>
        <Suspense fallback=Skeleton>{shown}</Suspense>
    }
    .into_erased()
}

/// The secret for the app, and the form for its first code.
#[component]
pub(super) fn TotpEnrollForm(
    enrollment: TotpEnrollment,
    action: &'static str,
    form: FormName,
    #[prop(optional)] children: Option<Children>,
) -> impl IntoView {
    let words = &t().server_pages().factors;
    let (problem, _) = form_problem(form);
    view! {
        <Qr text=enrollment.url label=words.qr/>
        <CopyBlock text=group_in_fours(&enrollment.secret) label=words.key/>
        {problem.map(|problem| view! { <ProblemNotice problem=problem/> })}
        <form method="post" action=action class="space-y-4">
            {children.map(|children| children())}
            <Field id="code" label=words.code hint=words.code_hint>
                <input class="input w-full font-mono" id="code" name="code" inputmode="numeric" autocomplete="one-time-code"
                    required=true maxlength="16" aria-describedby="code-hint"/>
            </Field>
            <div class="form-actions"><button class="btn btn-primary">{words.turn_on}</button></div>
        </form>
    }
    .into_erased()
}

/// Splits a secret into groups of four characters, so that it is easier to type.
fn group_in_fours(secret: &str) -> String {
    let letters: Vec<char> = secret.chars().collect();
    letters.chunks(4).map(|group| group.iter().collect::<String>()).collect::<Vec<_>>().join(" ")
}
