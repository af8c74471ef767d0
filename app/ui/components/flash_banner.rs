//! What the server says once, at the top of the page after a form.

use std::sync::Arc;

use leptos::prelude::*;
use leptos_router::hooks::use_location;

use super::action::{Turn, UndoButton};
use super::failure::Refusal;
use super::icon::{Glyph, Icon};
use crate::ui::erase::Erase;
use crate::ui::flash::{CurrentFlash, Flash, FormName, Notice, Undo};
use crate::ui::i18n::t;
use crate::ui::locales::sentence::Text;
use crate::ui::notes::Notes;

/// The flash, unless the page itself shows it: a new worker's token, or a refusal beside its form.
#[component]
pub(crate) fn FlashBanner() -> impl IntoView {
    let Some(CurrentFlash(flash)) = use_context() else { return ().erased() };
    let path = use_location().pathname;
    remember(flash);
    // It belongs to the page it came with.
    Effect::new(move |before: Option<String>| {
        let path = path.get();
        if before.is_some_and(|before| before != path) {
            flash.set(None);
        }
        path
    });
    (move || match flash.get() {
        Some(Flash::Notice { code }) => done(word(code).to_owned(), Vec::new(), None, flash),
        Some(Flash::Done { code, undo }) => done(word(code).to_owned(), Vec::new(), Some(undo), flash),
        Some(Flash::Several { text, refused, undo }) => done(text, refused, undo, flash),
        Some(Flash::Problem { form: FormName::Action, problem, .. }) => view! { <Refusal problem=problem/> }.erased(),
        _ => ().erased(),
    })
    .erased()
}

/// Keeps what is said with what was said in the corner, to be read again.
pub(crate) fn remember(flash: RwSignal<Option<Flash>>) {
    let Some(notes) = use_context::<Notes>() else { return };
    Effect::new(move |_| match flash.get_untracked() {
        Some(Flash::Notice { code } | Flash::Done { code, .. }) => notes.keep(word(code), false),
        Some(Flash::Problem { form: FormName::Action, problem, .. }) => notes.keep(problem.detail, true),
        Some(Flash::Several { text, refused, .. }) => {
            let wrong = !refused.is_empty();
            notes.keep([vec![text], refused].concat().join(" "), wrong);
        }
        _ => {}
    });
}

/// The sentence for what was done.
pub(crate) fn word(notice: Notice) -> Text {
    let words = &t().flash;
    match notice {
        Notice::SignedOut => words.signed_out,
        Notice::WorkerDeleted => words.worker_deleted,
        Notice::WorkerDraining => words.worker_draining,
        Notice::WorkerResumed => words.worker_resumed,
        Notice::JobSubmitted => words.job_submitted,
        Notice::JobCancelled => words.job_cancelled,
        Notice::JobPrioritised => words.job_prioritised,
        Notice::TokenRevoked => words.token_revoked,
        Notice::PasswordChanged => words.password_changed,
        Notice::PasswordReset => words.password_reset,
        Notice::SessionEnded => words.session_ended,
        Notice::Confirmed => words.confirmed,
        Notice::PersonChanged | Notice::WorkerChanged => words.changed,
        Notice::FactorAdded => words.factor_added,
        Notice::FactorRemoved => words.factor_removed,
        Notice::SecretKept => words.secret_kept,
        Notice::SecretGone => words.secret_gone,
        Notice::ConfigStored => words.config_stored,
        Notice::AlarmSettled => t().token.conflict_settled,
    }
}

/// What was done, and what of it was not.
fn done(text: String, refused: Vec<String>, undo: Option<Undo>, flash: RwSignal<Option<Flash>>) -> AnyView {
    let undo = undo.map(|undo| {
        let gone: Turn = Arc::new(move |_| flash.set(None));
        view! { <UndoButton undo=undo gone=gone/> }
    });
    let (class, glyph) = if refused.is_empty() {
        ("notice notice-good", Glyph::CheckCircle)
    } else {
        ("notice notice-warn", Glyph::Warning)
    };
    let refused = refused.into_iter().map(|line| view! { <p class="wrap-anywhere">{line}</p> }).collect_view();
    view! {
        <div class=class role="status">
            <Icon glyph=glyph/>
            <div class="grow"><p>{text}</p>{refused}</div>
            {undo}
            <button type="button" class="js-only icon-button" aria-label=t().common.dismiss on:click=move |_| flash.set(None)>
                <Icon glyph=Glyph::Cross/>
            </button>
        </div>
    }
    .erased()
}
