//! What was just done or refused, in the corner; and the list in which it can be read again.

use std::sync::Arc;

use leptos::prelude::*;

use super::action::{Turn, UndoButton};
use super::failure::RequestId;
use super::icon::{Glyph, Icon};
use super::time::Moment;
use crate::ui::erase::Erase;
use crate::ui::i18n::t;
use crate::ui::notes::{Note, Notes, Toast, use_notes};

/// The corner. Its two parts are there before anything is said in them, or nobody would hear it.
#[component]
pub(crate) fn Toasts() -> impl IntoView {
    let notes = use_notes();
    let part = move |wrong: bool| {
        move || {
            let toasts = notes.toasts.get().into_iter().filter(|toast| toast.note.wrong == wrong);
            toasts.map(|toast| view! { <ToastCard toast=toast notes=notes/> }).collect_view()
        }
    };
    view! {
        <div class="toasts">
            <div role="status">{part(false)}</div>
            <div role="alert">{part(true)}</div>
        </div>
    }
    .erased()
}

#[component]
fn ToastCard(toast: Toast, notes: Notes) -> impl IntoView {
    let Toast { id, note, undo } = toast;
    let (class, glyph) = look(&note);
    let undo = undo.map(|undo| {
        let gone: Turn = Arc::new(move |_| notes.dismiss(id));
        view! { <UndoButton undo=undo gone=gone/> }
    });
    view! {
        <div class=format!("toast {class}")>
            <Icon glyph=glyph/>
            <div class="toast-text">
                <p>{note.text}</p>
                {note.request_id.map(|id| view! { <p class="toast-id"><RequestId id=id/></p> })}
            </div>
            {undo}
            <button type="button" class="icon-button" aria-label=t().common.dismiss on:click=move |_| notes.dismiss(id)>
                <Icon glyph=Glyph::Cross/>
            </button>
        </div>
    }
    .erased()
}

fn look(note: &Note) -> (&'static str, Glyph) {
    if note.wrong { ("notice-bad", Glyph::Warning) } else { ("notice-good", Glyph::CheckCircle) }
}

/// What was said in this tab, the newest first.
#[component]
pub(crate) fn NotesMenu() -> impl IntoView {
    let words = &t().habits;
    let Some(notes) = use_context::<Notes>() else { return ().erased() };
    let lines = move || {
        let past = notes.past.get();
        if past.is_empty() {
            return view! { <p class="text-muted">{words.notes_none}</p> }.erased();
        }
        let line = |note: Note| {
            let (class, glyph) = look(&note);
            view! {
                <li class=class>
                    <Icon glyph=glyph/>
                    <div class="toast-text">
                        <p>{note.text}</p>
                        <p class="toast-id"><Moment at=note.at/>{note.request_id.map(|id| view! { <RequestId id=id/> })}</p>
                    </div>
                </li>
            }
        };
        view! { <ol class="notes-list">{past.into_iter().rev().map(line).collect_view()}</ol> }.erased()
    };
    view! {
        <details class="js-only notes">
            <summary class="nav-link">
                <Icon glyph=Glyph::Bell/>
                {words.notes}
                {move || Some(notes.past.with(Vec::len)).filter(|count| *count > 0).map(|count| view! { <span class="filter-count ml-auto">{count}</span> })}
            </summary>
            <div class="notes-body">{lines}</div>
        </details>
    }
    .erased()
}
