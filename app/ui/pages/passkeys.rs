//! Passkeys: the user's own on the account page, the page that adds one, and the form that requests one from the
//! browser.

use leptos::nonce::use_nonce;
use leptos::prelude::*;

use crate::domain::passkey::{MAX_NAME_CHARS, PasskeyOrigin, PasskeyOriginError};
use crate::protocol::access::factors::{PasskeyEnrollment, PasskeyView};
use crate::ui::backend::use_page_backend;
use crate::ui::clock::use_clock;
use crate::ui::components::action::ConfirmedForm;
use crate::ui::components::field::Field;
use crate::ui::components::icon::Icon;
use crate::ui::components::page_header::PageHeader;
use crate::ui::components::problem_panel::{ProblemNotice, ProblemPanel};
use crate::ui::components::skeleton::Skeleton;
use crate::ui::components::time::RelativeTime;
use crate::ui::erase::Erase;
use crate::ui::flash::{FormName, form_problem};
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::prefs::Prefs;

/// Requests a passkey from the browser. It is inlined into the page because it is too small for a file of its own.
const PASSKEY_SCRIPT: &str = include_str!("passkey.js");

/// The passkeys of a user, with buttons to remove them if they are the user's own.
#[component]
pub(super) fn PasskeyRows(passkeys: Vec<PasskeyView>, remove_text: Option<&'static str>) -> impl IntoView {
    let (words, clock) = (t().server_pages(), use_clock());
    let row = |key: PasskeyView| {
        let used = match key.last_used_at {
            Some(at) => view! { {words.account.used}" "<RelativeTime at=at/> }.into_erased(),
            None => view! { {words.account.never_used} }.into_erased(),
        };
        let remove = remove_text.map(|text| {
            view! {
                <ConfirmedForm action=format!("/ui/account/passkeys/{}/remove", key.id) label=words.factors.remove
                    named=Some(format!("{}: {}", words.factors.remove, key.name)) text=text
                    confirm=words.factors.remove_confirm class="btn btn-sm btn-ghost text-bad"/>
            }
        });
        view! {
            <li class="fleet-row">
                <span class="min-w-0">
                    <span class="font-medium break-words">{key.name}</span>
                    <span class="row-sub">{words.passkeys.added.of(clock.format_timestamp(key.created_at))}" · "{used}</span>
                    <span class="row-sub break-words">{key.origin}</span>
                </span>
                {remove}
            </li>
        }
    };
    passkeys.into_iter().map(row).collect_view().into_any()
}

/// The button that adds a passkey, or the reason why this address does not permit passkeys.
#[component]
pub(super) fn AddPasskey() -> impl IntoView {
    let words = &t().server_pages().passkeys;
    let base_url = use_context::<Prefs>().and_then(|prefs| prefs.session).map(|session| session.base_url);
    match PasskeyOrigin::from_url(&base_url.unwrap_or_default()) {
        Ok(_) => view! {
            <form method="post" action="/ui/account/passkeys">
                <button class="btn"><Icon glyph=Glyph::Plus/>{words.add}</button>
            </form>
        }
        .into_erased(),
        Err(error) => {
            let text = match error {
                PasskeyOriginError::Insecure => words.insecure,
                PasskeyOriginError::NoHostName => words.no_name,
            };
            view! { <p class="max-w-prose text-sm text-muted">{text}</p> }.into_erased()
        }
    }
}

/// The page that adds a passkey.
#[component]
pub(crate) fn PasskeyNewPage() -> impl IntoView {
    let words = &t().server_pages().passkeys;
    let page_backend = use_page_backend();
    let enrollment = Resource::new(|| (), move |()| page_backend.passkey_enrollment());
    let shown = move || {
        Suspend::new(async move {
            match enrollment.await {
                Ok(enrollment) => view! { <NewPasskeyForm enrollment=enrollment/> }.into_erased(),
                Err(problem) => view! { <ProblemPanel problem=problem/> }.into_erased(),
            }
        })
    };
    view! {
        <PageHeader title=words.title above=("/account", t().nav.account) intro=words.intro/>
        <Suspense fallback=Skeleton>{shown}</Suspense>
    }
    .into_erased()
}

#[component]
fn NewPasskeyForm(enrollment: PasskeyEnrollment) -> impl IntoView {
    let words = &t().server_pages().passkeys;
    let (problem, _) = form_problem(FormName::Factor);
    view! {
        <section class="panel form">
            {problem.map(|problem| view! { <ProblemNotice problem=problem/> })}
            <PasskeyForm action="/ui/account/passkeys/confirm" kind="create" options=enrollment.options.to_string() submit=words.create>
                <Field id="name" label=words.name hint=words.name_hint>
                    <input class="input w-full" id="name" name="name" required=true maxlength=MAX_NAME_CHARS.to_string()
                        autocomplete="off" autofocus=true aria-describedby="name-hint"/>
                </Field>
            </PasskeyForm>
        </section>
    }
    .into_erased()
}

/// A form that sends the browser's answer to `options`: a new passkey (`create`), or a signature by an existing one
/// (`get`). It is hidden until its script runs.
#[component]
pub(super) fn PasskeyForm(
    action: &'static str,
    kind: &'static str,
    options: String,
    submit: &'static str,
    children: Children,
) -> impl IntoView {
    view! {
        <PasskeyError/>
        <form method="post" action=action class="space-y-4" hidden=true data-passkey=kind data-options=options>
            {children()}
            <input type="hidden" name="credential" data-passkey-answer=""/>
            <div class="form-actions">
                <button class="btn btn-primary grow"><Icon glyph=Glyph::Key/>{submit}</button>
            </div>
        </form>
        <p class="text-muted script-off-only">{t().server_pages().passkeys.need_script}</p>
        <PasskeyScript/>
    }
    .into_erased()
}

/// The element before the form in which its script shows errors.
#[component]
pub(super) fn PasskeyError() -> impl IntoView {
    let words = &t().server_pages().passkeys;
    view! {
        <p class="notice notice-bad" role="alert" hidden=true data-passkey-said="" data-unsupported=words.unsupported
            data-cancelled=words.cancelled data-exists=words.exists data-failed=words.failed></p>
    }
    .into_erased()
}

/// The script, which must follow its form.
#[component]
pub(super) fn PasskeyScript() -> impl IntoView {
    view! { <script nonce=use_nonce()>{PASSKEY_SCRIPT}</script> }.into_erased()
}
