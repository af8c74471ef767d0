//! What the server says once, at the top of the page after a form.

use leptos::prelude::*;
use leptos_router::hooks::use_location;

use super::failure::Refusal;
use super::icon::{Glyph, Icon};
use crate::ui::erase::Erase;
use crate::ui::flash::{CurrentFlash, Flash, FormName, Notice};
use crate::ui::i18n::t;
use crate::ui::locales::sentence::Text;
use crate::ui::locales::words::frame::FlashWords;

/// The flash, unless the page itself shows it: a new worker's token, or a refusal beside its form.
#[component]
pub(crate) fn FlashBanner() -> impl IntoView {
    let Some(CurrentFlash(flash)) = use_context() else { return ().erased() };
    let path = use_location().pathname;
    // It belongs to the page it came with.
    Effect::new(move |before: Option<String>| {
        let path = path.get();
        if before.is_some_and(|before| before != path) {
            flash.set(None);
        }
        path
    });
    (move || match flash.get() {
        Some(Flash::Notice { code }) => view! { <Said text=word(&t().flash, code) flash=flash/> }.erased(),
        Some(Flash::Problem { form: FormName::Action, problem, .. }) => view! { <Refusal problem=problem/> }.erased(),
        _ => ().erased(),
    })
    .erased()
}

fn word(words: &FlashWords, notice: Notice) -> Text {
    match notice {
        Notice::SignedOut => words.signed_out,
        Notice::WorkerDeleted => words.worker_deleted,
        Notice::WorkerDraining => words.worker_draining,
        Notice::WorkerResumed => words.worker_resumed,
        Notice::JobSubmitted => words.job_submitted,
        Notice::JobCancelled => words.job_cancelled,
        Notice::TokenRevoked => words.token_revoked,
        Notice::PasswordChanged => words.password_changed,
        Notice::SessionEnded => words.session_ended,
        Notice::Confirmed => words.confirmed,
        Notice::PersonChanged => words.person_changed,
        Notice::SecretKept => words.secret_kept,
        Notice::SecretGone => words.secret_gone,
        Notice::AlarmSettled => t().token.conflict_settled,
    }
}

#[component]
fn Said(text: &'static str, flash: RwSignal<Option<Flash>>) -> impl IntoView {
    view! {
        <div class="notice notice-good" role="status">
            <Icon glyph=Glyph::CheckCircle/>
            <p class="grow">{text}</p>
            <button type="button" class="js-only icon-button" aria-label=t().common.dismiss on:click=move |_| flash.set(None)>
                <Icon glyph=Glyph::Cross/>
            </button>
        </div>
    }
    .erased()
}
