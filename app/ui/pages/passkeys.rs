//! Passkeys: the reader's own on the account page, the page that makes one, and the form that asks a browser for one.

use leptos::nonce::use_nonce;
use leptos::prelude::*;

use super::{Skeleton, use_desk};
use crate::domain::passkey::{LONGEST_NAME, NoPasskeys, Origin};
use crate::protocol::factors::{PasskeyEnrolment, PasskeyView};
use crate::ui::components::action::Question;
use crate::ui::components::failure::{Failure, Refusal};
use crate::ui::components::field::Field;
use crate::ui::components::icon::{Glyph, Icon};
use crate::ui::components::page_head::PageHead;
use crate::ui::components::time::Moment;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, refused};
use crate::ui::i18n::t;
use crate::ui::prefs::Prefs;

/// What asks the browser, on the page itself: it is too little for a file of its own.
const SCRIPT: &str = include_str!("passkey.js");

/// The rows of somebody's passkeys. The buttons that remove one are there where they are the reader's own.
#[component]
pub(super) fn Passkeys(passkeys: Vec<PasskeyView>, remove_text: Option<&'static str>) -> impl IntoView {
    let words = t().plain();
    let row = |key: PasskeyView| {
        let used = match key.last_used_at {
            Some(at) => view! { {words.account.used}" "<Moment at=at/> }.erased(),
            None => view! { {words.account.never_used} }.erased(),
        };
        let remove = remove_text.map(|text| {
            view! {
                <Question action=format!("/ui/account/passkeys/{}/remove", key.id) label=words.factors.remove
                    named=Some(format!("{}: {}", words.factors.remove, key.name)) text=text
                    confirm=words.factors.remove_confirm class="btn btn-sm btn-ghost text-bad"/>
            }
        });
        view! {
            <li class="fleet-row">
                <span class="min-w-0">
                    <span class="font-medium break-words">{key.name}</span>
                    <span class="row-sub">{words.passkeys.added.of(t().moment(key.created_at))}" · "{used}</span>
                    <span class="row-sub break-words">{key.origin}</span>
                </span>
                {remove}
            </li>
        }
    };
    passkeys.into_iter().map(row).collect_view().into_any()
}

/// The button that begins to add a passkey, or why there can be none at this address.
#[component]
pub(super) fn AddPasskey() -> impl IntoView {
    let words = &t().plain().passkeys;
    let here = use_context::<Prefs>().and_then(|prefs| prefs.session).map(|session| session.base_url);
    match Origin::of_url(&here.unwrap_or_default()) {
        Ok(_) => view! {
            <form method="post" action="/ui/account/passkeys">
                <button class="btn"><Icon glyph=Glyph::Plus/>{words.add}</button>
            </form>
        }
        .erased(),
        Err(why) => {
            let text = match why {
                NoPasskeys::Insecure => words.insecure,
                NoPasskeys::NoName => words.no_name,
            };
            view! { <p class="max-w-prose text-sm text-muted">{text}</p> }.erased()
        }
    }
}

/// The page that adds a passkey.
#[component]
pub(crate) fn PasskeyNewPage() -> impl IntoView {
    let words = &t().plain().passkeys;
    let desk = use_desk();
    let enrolment = Resource::new(|| (), move |()| desk.passkey_enrolment());
    let shown = move || {
        Suspend::new(async move {
            match enrolment.await {
                Ok(enrolment) => view! { <New enrolment=enrolment/> }.erased(),
                Err(problem) => view! { <Failure problem=problem/> }.erased(),
            }
        })
    };
    view! {
        <PageHead title=words.title above=("/account", t().nav.account) intro=words.intro/>
        <Suspense fallback=Skeleton>{shown}</Suspense>
    }
    .erased()
}

#[component]
fn New(enrolment: PasskeyEnrolment) -> impl IntoView {
    let words = &t().plain().passkeys;
    let (problem, _) = refused(FormName::Factor);
    view! {
        <section class="panel form">
            {problem.map(|problem| view! { <Refusal problem=problem/> })}
            <PasskeyForm action="/ui/account/passkeys/confirm" kind="create" options=enrolment.options.to_string() submit=words.create>
                <Field id="name" label=words.name hint=words.name_hint>
                    <input class="input w-full" id="name" name="name" required=true maxlength=LONGEST_NAME.to_string()
                        autocomplete="off" autofocus=true aria-describedby="name-hint"/>
                </Field>
            </PasskeyForm>
        </section>
    }
    .erased()
}

/// A form that takes along what the browser says when it is given these options: to make a passkey (`create`), or to sign
/// with one (`get`). It shows itself once its script runs.
#[component]
pub(super) fn PasskeyForm(
    action: &'static str,
    kind: &'static str,
    options: String,
    submit: &'static str,
    children: Children,
) -> impl IntoView {
    view! {
        <PasskeySaid/>
        <form method="post" action=action class="space-y-4" hidden=true data-passkey=kind data-options=options>
            {children()}
            <input type="hidden" name="credential" data-passkey-answer=""/>
            <div class="form-actions">
                <button class="btn btn-primary grow"><Icon glyph=Glyph::Key/>{submit}</button>
            </div>
        </form>
        <p class="text-muted script-off-only">{t().plain().passkeys.need_script}</p>
        <PasskeyScript/>
    }
    .erased()
}

/// Where the script says what went wrong; before its form.
#[component]
pub(super) fn PasskeySaid() -> impl IntoView {
    let words = &t().plain().passkeys;
    view! {
        <p class="notice notice-bad" role="alert" hidden=true data-passkey-said="" data-unsupported=words.unsupported
            data-refused=words.refused data-there=words.there data-failed=words.failed></p>
    }
    .erased()
}

/// What asks the browser; after its form.
#[component]
pub(super) fn PasskeyScript() -> impl IntoView {
    view! { <script nonce=use_nonce()>{SCRIPT}</script> }.erased()
}
