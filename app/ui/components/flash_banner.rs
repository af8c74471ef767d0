//! What the server says once, at the top of the page after a form.

use leptos::prelude::*;
use leptos_router::hooks::use_location;

use super::copy::CopyBlock;
use super::failure::Refusal;
use super::icon::{Glyph, Icon};
use crate::ui::erase::Erase;
use crate::ui::flash::{CurrentFlash, Flash, FormName, Notice};
use crate::ui::i18n::t;
use crate::ui::locales::{FlashWords, Text};

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
        Some(Flash::AdminToken { token }) => view! { <AdminToken token=token/> }.erased(),
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

#[component]
fn AdminToken(token: String) -> impl IntoView {
    let words = &t().flash;
    view! {
        <section class="panel mb-6 p-5" aria-labelledby="admin-token">
            <h2 id="admin-token" class="panel-title"><Icon glyph=Glyph::Key/>{words.admin_token}</h2>
            <p class="mt-1 mb-3 max-w-prose text-muted">{words.admin_token_text}</p>
            <CopyBlock text=token label=words.admin_token/>
        </section>
    }
    .erased()
}
