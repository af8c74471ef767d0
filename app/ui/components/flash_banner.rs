//! The flash message of a form, shown once at the top of the next page.

use std::sync::Arc;

use leptos::prelude::*;
use leptos_router::hooks::use_location;

use super::action::{OptimisticUpdate, UndoButton};
use super::icon::Icon;
use super::problem_panel::ProblemNotice;
use crate::ui::erase::Erase;
use crate::ui::flash::{CurrentFlash, Flash, FormName, Undo};
use crate::ui::glyph::Glyph;
use crate::ui::i18n::t;
use crate::ui::notifications::Notifications;

/// The flash message, unless the page itself shows it: a new token, recovery codes, or an error beside its form.
#[component]
pub(crate) fn FlashBanner() -> impl IntoView {
    let Some(CurrentFlash(flash)) = use_context() else { return ().into_erased() };
    let path = use_location().pathname;
    record_flash(flash);
    // A flash message belongs to the page that it was loaded with: navigation removes it.
    Effect::new(move |before: Option<String>| {
        let path = path.get();
        if before.is_some_and(|before| before != path) {
            flash.set(None);
        }
        path
    });
    (move || match flash.get() {
        Some(Flash::Notice { code }) => success_banner(code.text(t()).to_owned(), Vec::new(), None, flash),
        Some(Flash::Done { code, undo }) => success_banner(code.text(t()).to_owned(), Vec::new(), Some(undo), flash),
        Some(Flash::Several { text, rejected, undo }) => success_banner(text, rejected, undo, flash),
        Some(Flash::Problem { form: FormName::Action, problem, .. }) => {
            view! { <ProblemNotice problem=problem/> }.into_erased()
        }
        _ => ().into_erased(),
    })
    .into_erased()
}

/// Adds a flash message to the history of notifications, where it can be read again.
pub(crate) fn record_flash(flash: RwSignal<Option<Flash>>) {
    let Some(notifications) = use_context::<Notifications>() else { return };
    Effect::new(move |_| match flash.get_untracked() {
        Some(Flash::Notice { code } | Flash::Done { code, .. }) => notifications.record(code.text(t()), false),
        Some(Flash::Problem { form: FormName::Action, problem, .. }) => notifications.record(problem.detail, true),
        Some(Flash::Several { text, rejected, .. }) => {
            let has_rejections = !rejected.is_empty();
            notifications.record([vec![text], rejected].concat().join(" "), has_rejections);
        }
        _ => {}
    });
}

/// The banner of a form that succeeded: what was done, and in `rejected`, what was rejected.
fn success_banner(text: String, rejected: Vec<String>, undo: Option<Undo>, flash: RwSignal<Option<Flash>>) -> AnyView {
    let undo = undo.map(|undo| {
        let optimistic_update: OptimisticUpdate = Arc::new(move |_| flash.set(None));
        view! { <UndoButton undo=undo optimistic_update=optimistic_update/> }
    });
    let (class, glyph) = if rejected.is_empty() {
        ("notice notice-good", Glyph::CheckCircle)
    } else {
        ("notice notice-warn", Glyph::Warning)
    };
    let rejected = rejected.into_iter().map(|line| view! { <p class="wrap-anywhere">{line}</p> }).collect_view();
    view! {
        <div class=class role="status">
            <Icon glyph=glyph/>
            <div class="grow"><p>{text}</p>{rejected}</div>
            {undo}
            <button type="button" class="js-only icon-button" aria-label=t().common.dismiss on:click=move |_| flash.set(None)>
                <Icon glyph=Glyph::Cross/>
            </button>
        </div>
    }
    .into_erased()
}
